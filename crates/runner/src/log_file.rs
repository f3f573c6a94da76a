//! Log files that the user names: checks that they can be written, and renames existing logs.

use std::fs::File;
use std::path::Path;

use crate::{Failure, Notice, Notify};

/// Checks that a log can be written, without changing any file.
///
/// # Errors
/// If the log cannot be written.
pub fn check_writable(path: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let is_new = !path.exists();
    open(path)?;
    if is_new {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Creates a log before anything else happens, and renames an older log of the same name to `<name>.old`. A server
/// opens its log only with the first request, which is too late to find out that it cannot be written.
///
/// # Errors
/// If the log cannot be written.
pub fn prepare(path: Option<&Path>, notify: Notify) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    if path.metadata().is_ok_and(|file| file.is_file() && file.len() > 0) {
        let mut kept = path.as_os_str().to_owned();
        kept.push(".old");
        if std::fs::rename(path, &kept).is_ok() {
            notify(Notice::Note(format!("renamed the existing {} to {}", path.display(), kept.display())));
        }
    }
    open(path).map(drop)
}

fn open(path: &Path) -> Result<File, Failure> {
    File::options()
        .create(true)
        .append(true)
        .open(path)
        .map_err(|e| Failure::setup(anyhow::anyhow!("cannot write the log {}: {e}", path.display())))
}

/// The directory of a log; the working directory without one.
pub fn directory(path: Option<&Path>) -> &Path {
    let parent = path.and_then(Path::parent).filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}
