//! The rules of the source tree that a machine can check: which files import which, which files there are, and which
//! commands its pages show.
//!
//! Nothing here is part of the program. The tests of this crate read the tree and fail where it breaks a rule.

#![allow(clippy::disallowed_methods, reason = "git knows the files of the tree")]

pub mod circles;
pub mod commands;
pub mod imports;
pub mod tree;
