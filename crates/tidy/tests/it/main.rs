//! The rules of the source tree, as tests.

mod dependencies;
mod foreign_files;
mod import_circles;
