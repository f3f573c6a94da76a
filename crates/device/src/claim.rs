//! Ownership files, with which leftovers of killed runs are found and removed.
//!
//! Next to the work directory of a device there is a file that lists the directories of the device. The process that
//! started the device holds a lock on the file. The system releases the lock when the process ends in any way, so a
//! file without a lock has no owner.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, geteuid, kill_process};

/// The prefix of the names of private directories.
pub(crate) const PREFIX: &str = "polygraph-";
/// The suffix of the names of ownership files.
const SUFFIX: &str = ".owner";
/// The most bytes of an ownership file.
const MOST: u64 = 64 * 1024;

/// An ownership file and its lock. Dropping it removes the file.
#[derive(Debug)]
pub(crate) struct Claim {
    path: PathBuf,
    /// The open file, which holds the lock.
    _file: File,
}

impl Claim {
    /// Claims the directories of a device. The first one is its work directory.
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

/// Kills the processes and removes the directories of devices whose runs were killed. It does not touch directories
/// that a live run has claimed, or whose ownership file belongs to another user. Returns the removed directories.
pub fn tidy_up(place: &Path) -> Vec<PathBuf> {
    let mut gone = Vec::new();
    for path in ownership_files(place) {
        let Some((directories, _lock)) = abandoned(&path) else { continue };
        for directory in directories.iter().filter(|directory| is_ours(directory)) {
            end_processes(directory);
            if fs::remove_dir_all(directory).is_ok() {
                gone.push(directory.clone());
            }
        }
        let _ = fs::remove_file(path);
    }
    gone
}

/// The directories that [`tidy_up`] would remove.
pub fn abandoned_directories(place: &Path) -> Vec<PathBuf> {
    let found = ownership_files(place).filter_map(|path| Some(abandoned(&path)?.0)).flatten();
    found.filter(|directory| is_ours(directory)).collect()
}

/// The ownership files in a directory.
fn ownership_files(place: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(PREFIX) && name.ends_with(SUFFIX)
    })
}

/// The directories in an ownership file that nobody has locked, with the lock on the file.
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
    // An empty file may be new: its owner is about to lock it and to write.
    let mut text = Vec::new();
    file.read_to_end(&mut text).ok().filter(|&length| length > 0)?;
    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let directories = lines.map(|line| PathBuf::from(std::ffi::OsString::from_vec(line.to_vec())));
    Some((directories.collect(), file))
}

/// Whether a directory has a name of the form that this program creates.
fn is_ours(directory: &Path) -> bool {
    let named = directory.file_name().is_some_and(|name| name.to_string_lossy().starts_with(PREFIX));
    named && directory.is_absolute() && directory.symlink_metadata().is_ok_and(|there| there.is_dir())
}

/// Kills the processes whose current directory is inside a directory of a dead run.
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
        let mut listed = abandoned_directories(place.path());
        let mut gone = tidy_up(place.path());
        listed.sort();
        gone.sort();
        assert_eq!(listed, gone);
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
