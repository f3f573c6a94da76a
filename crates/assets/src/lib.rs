//! The files that are built into the program: workloads, devices, bake-off plans, labs and published results, so that
//! standard tests need no source tree.
//!
//! | module | contents |
//! |---|---|
//! | `files` | all files, with their paths in the source tree |
//! | `entry` | what users name: a workload, a device, a plan, a lab, results; and the files that belong to each |
//! | `locate` | whether a user means a file of this machine or a built-in one |
//! | `read` | reading either kind |
//!
//! A built-in file has the path `builtin:` and its path in the source tree, for example
//! `builtin:workloads/polymix-4.pg`. It refers to other files by relative paths, as it does in the source tree.

mod entry;
mod files;
mod locate;
mod read;

pub use self::entry::{Entry, EntryKind, entries, find};
pub use self::files::{Asset, all, below};
pub use self::locate::{LocateError, closest, locate, similar};
pub use self::read::{SCHEME, builtin, copy, is_builtin, is_file, join, names_in, read_to_string};
