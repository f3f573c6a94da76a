//! Log files that the user names: checks that they can be written, and renames existing logs.

use std::fs::File;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use polygraph_stats::{Header, LogWriter, Record};

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
/// opens its log only with the first request, which is too late to find out that it cannot be written. Until then, the log has
/// this header, so that it tells whose it is, should the process be killed before.
///
/// # Errors
/// If the log cannot be written.
pub fn prepare(path: Option<&Path>, header: &Header, notify: Notify) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    if path.metadata().is_ok_and(|file| file.is_file() && file.len() > 0) {
        let mut kept = path.as_os_str().to_owned();
        kept.push(".old");
        if std::fs::rename(path, &kept).is_ok() {
            notify(Notice::Note(format!("renamed the existing {} to {}", path.display(), kept.display())));
        }
    }
    let start_unix_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as u64);
    let header = Record::Header(Box::new(Header { start_unix_ns, ..header.clone() }));
    let written = LogWriter::new(open(path)?).and_then(|mut log| log.write(&header));
    written.map_err(|e| cannot_write(path, &e))
}

fn open(path: &Path) -> Result<File, Failure> {
    File::options().create(true).append(true).open(path).map_err(|e| cannot_write(path, &e))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::setup(anyhow::anyhow!("cannot write the log {}: {error}", path.display()))
}

/// The directory of a log; the working directory without one.
pub fn directory(path: Option<&Path>) -> &Path {
    let parent = path.and_then(Path::parent).filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}
