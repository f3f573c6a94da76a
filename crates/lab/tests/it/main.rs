//! Lab files and the plans made of them, without root. The tests of the command line make real labs.

mod files;
mod plans;
