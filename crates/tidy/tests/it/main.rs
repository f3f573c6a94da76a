//! The rules of the source tree, as tests.

#![allow(clippy::disallowed_methods, reason = "cargo knows the dependencies")]

mod commands;
mod dependencies;
mod foreign_files;
mod import_circles;
mod pages;
mod words;
