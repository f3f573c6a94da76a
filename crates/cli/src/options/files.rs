//! Readers of options that name a file of this machine or a built-in one.

use std::path::PathBuf;

use polygraph_assets::{EntryKind, SCHEME, locate};

/// The path of a workload: a file, the name of a built-in workload, or `-`.
pub fn workload(text: &str) -> Result<String, String> {
    locate(EntryKind::Workload, text).map_err(|error| error.to_string())
}

/// The path of a bake-off plan: a file, or the name of a built-in plan.
pub fn bakeoff_plan(text: &str) -> Result<PathBuf, String> {
    path(EntryKind::Bakeoff, text)
}

/// The path of a lab file, or of a built-in lab.
pub fn lab_file(text: &str) -> Result<PathBuf, String> {
    path(EntryKind::Lab, text)
}

/// The name of a lab, or the path of its file, which is built in after `builtin:`.
pub fn lab(text: &str) -> Result<String, String> {
    if !text.starts_with(SCHEME) {
        return Ok(text.to_owned());
    }
    locate(EntryKind::Lab, text).map_err(|error| error.to_string())
}

/// The path of published results, in a file or built in.
pub fn published_results(text: &str) -> Result<PathBuf, String> {
    path(EntryKind::Results, text)
}

fn path(kind: EntryKind, text: &str) -> Result<PathBuf, String> {
    locate(kind, text).map(PathBuf::from).map_err(|error| error.to_string())
}
