//! What a started device owns in the file system, so that it can be tidied up after a run that was killed.
//!
//! Beside the work directory lies a file that names the directories of the device. Whoever started it holds a lock on that file,
//! which the system takes away when the process ends, however it ends. A file without a lock belongs to nobody any more.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, geteuid, kill_process};

/// How the names of private directories begin.
pub(crate) const PREFIX: &str = "polygraph-";
/// How the names of claims end.
const SUFFIX: &str = ".owner";
/// No claim is larger.
const MOST: u64 = 64 * 1024;

/// A claim that is held. Dropping it gives it up.
#[derive(Debug)]
pub(crate) struct Claim {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

impl Claim {
    /// Claims the directories of a device, the first of which is its work directory.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn new(directories: &[&Path]) -> io::Result<Claim> {
        let work = directories.first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut path = work.as_os_str().to_owned();
        path.push(SUFFIX);
        let path = PathBuf::from(path);
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        file.lock()?;
        for directory in directories {
            file.write_all(std::path::absolute(directory)?.as_os_str().as_bytes())?;
            file.write_all(b"\n")?;
        }
        Ok(Claim { path, _file: file })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Ends what is left of devices whose runs were killed, and removes their directories. Nothing is touched that a living run
/// claims, or whose claim another user wrote. Returns the directories that are gone.
pub(crate) fn tidy_up(place: &Path) -> Vec<PathBuf> {
    let mut gone = Vec::new();
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with(PREFIX) || !name.ends_with(SUFFIX) {
            continue;
        }
        let Some((directories, _lock)) = abandoned(&entry.path()) else { continue };
        for directory in directories.iter().filter(|directory| is_ours(directory)) {
            end_processes(directory);
            if fs::remove_dir_all(directory).is_ok() {
                gone.push(directory.clone());
            }
        }
        let _ = fs::remove_file(entry.path());
    }
    gone
}

/// The directories of a claim that nobody holds, with the lock on it.
fn abandoned(path: &Path) -> Option<(Vec<PathBuf>, File)> {
    let mut file = File::options().read(true).custom_flags(OFlags::NOFOLLOW.bits() as i32).open(path).ok()?;
    let facts = file.metadata().ok()?;
    if !facts.is_file() || facts.uid() != geteuid().as_raw() || facts.len() > MOST {
        return None;
    }
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return None,
    }
    // Whoever made it may be about to lock it and to write; then it is empty.
    let mut text = Vec::new();
    file.read_to_end(&mut text).ok().filter(|&length| length > 0)?;
    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let directories = lines.map(|line| PathBuf::from(std::ffi::OsString::from_vec(line.to_vec())));
    Some((directories.collect(), file))
}

/// Whether a directory is named like those that we make.
fn is_ours(directory: &Path) -> bool {
    let named = directory.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    named && directory.is_absolute() && directory.symlink_metadata().is_ok_and(|there| there.is_dir())
}

/// Kills the processes that are at work in a directory that nobody but the device of a dead run ever was in.
fn end_processes(directory: &Path) {
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid =
            entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()).and_then(Pid::from_raw);
        let at_work = fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(directory));
        if let Some(pid) = pid.filter(|_| at_work) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_belongs_to_nobody_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let directory = |name: &str| {
            let path = place.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("cache"), "x").unwrap();
            path
        };
        let (dead, store, alive, stranger) = (
            directory("polygraph-squid-dead"),
            directory("polygraph-squid-store"),
            directory("polygraph-squid-alive"),
            directory("somebody-else"),
        );
        let held = Claim::new(&[&alive]).unwrap();
        // A process that was killed gives up its lock and removes nothing.
        drop_lock(Claim::new(&[&dead, &store, &stranger]).unwrap());
        let mut child =
            Command::new("sleep").arg("600").current_dir(&dead).stdin(Stdio::null()).spawn().unwrap();
        let mut gone = tidy_up(place.path());
        gone.sort();
        assert_eq!(gone, [dead.clone(), store.clone()]);
        assert!(!child.wait().unwrap().success(), "what was at work there was ended");
        assert!(alive.is_dir() && stranger.is_dir() && !dead.exists() && !store.exists());
        assert_eq!(tidy_up(place.path()), [] as [PathBuf; 0]);
        drop(held);
        assert!(!place.path().join("polygraph-squid-alive.owner").exists());
    }

    /// Gives up the lock of a claim and leaves its file.
    fn drop_lock(claim: Claim) {
        claim._file.unlock().unwrap();
        std::mem::forget(claim);
    }
}
