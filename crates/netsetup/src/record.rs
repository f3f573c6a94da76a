//! The recorded changes of one process, as its file has them.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use rustix::fs::OFlags;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::error::{Error, Result};
use crate::namespace::Namespace;

/// The suffix of the files of records.
pub(crate) const SUFFIX: &str = ".jsonl";

/// One line of a file of records.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Line {
    /// Always the first one.
    Start { purpose: String, namespace: Namespace },
    /// A change that is about to be made.
    Change(Change),
    /// All changes are made and stay after the end of the process.
    Kept,
}

/// Whether changes are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The process that made them is running.
    InUse,
    /// They are there to stay until someone asks for their removal.
    Kept,
    /// The process that made them was killed, or one that they need.
    Abandoned,
}

/// The recorded changes of one process.
#[derive(Debug)]
pub struct RecordedChanges {
    /// The name of the record: the command, and the id of the process.
    pub name: String,
    /// What the changes were made for.
    pub purpose: String,
    /// The namespace in which they were made.
    pub namespace: Namespace,
    /// Whether they are in use.
    pub state: State,
    /// The changes in the order in which they were made.
    pub changes: Vec<Change>,
    path: PathBuf,
    /// The file with a shared lock, unless the owner holds the lock.
    file: Option<File>,
}

/// The result of undoing recorded changes.
#[derive(Debug, Default)]
pub struct Undone {
    /// Descriptions of the changes that were undone, the last change first.
    pub done: Vec<String>,
    /// Descriptions of the changes that were not, each with the reason. They stay in the ledger.
    pub failed: Vec<(String, Error)>,
}

impl RecordedChanges {
    pub(crate) fn read(path: PathBuf) -> Option<RecordedChanges> {
        let flags = OFlags::NOFOLLOW.bits() as i32;
        let mut file = File::options().read(true).append(true).custom_flags(flags).open(&path).ok()?;
        if file.metadata().ok()?.uid() != geteuid().as_raw() {
            return None;
        }
        // Several processes may read a record at the same time; only its owner locks it for itself alone.
        let free = match file.try_lock_shared() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => false,
            Err(TryLockError::Error(_)) => return None,
        };
        let mut text = String::new();
        file.read_to_string(&mut text).ok()?;
        let mut lines = text.lines().map_while(|line| serde_json::from_str::<Line>(line).ok());
        // A file without its first line is new: its owner is about to lock it and to write.
        let Line::Start { purpose, namespace } = lines.next()? else { return None };
        let (mut changes, mut kept) = (Vec::new(), false);
        for line in lines {
            match line {
                Line::Change(change) => changes.push(change),
                Line::Kept => kept = true,
                Line::Start { .. } => {}
            }
        }
        let state = match (free, kept) {
            (false, _) => State::InUse,
            (true, true) if !changes.iter().any(Change::is_missed) => State::Kept,
            (true, _) => State::Abandoned,
        };
        let name = path.file_name()?.to_str()?.trim_end_matches(SUFFIX).to_owned();
        Some(RecordedChanges { name, purpose, namespace, state, changes, path, file: free.then_some(file) })
    }

    /// Undoes one change and forgets all but `left`. Changes in use are left alone.
    pub(crate) fn undo_in_part(&mut self, change: &Change, left: Vec<Change>) -> Result<()> {
        let Some(file) = &self.file else { return Err(Error::InUse { purpose: self.purpose.clone() }) };
        if !claim(file) {
            return Err(Error::InUse { purpose: self.purpose.clone() });
        }
        undo_one(self.namespace, change)?;
        let written = if left.is_empty() { fs::remove_file(&self.path) } else { rewrite(file, self, &left) };
        self.changes = left;
        written.map_err(|error| Error::file(&self.path, error))
    }

    /// Undoes the changes, the last one first, in the namespace in which they were made, and forgets those that are
    /// undone. Changes of a network that is gone are gone with it. Changes in use are left alone.
    pub fn undo(mut self) -> Undone {
        if !self.file.as_ref().is_some_and(claim) {
            return Undone::default();
        }
        let changes = std::mem::take(&mut self.changes);
        let (undone, left) = undo_in(self.namespace, changes);
        // What is left is tried again by the next one who asks.
        let _ = match &self.file {
            Some(file) if !left.is_empty() => rewrite(file, &self, &left),
            _ => fs::remove_file(&self.path),
        };
        undone
    }
}

impl Drop for RecordedChanges {
    fn drop(&mut self) {
        // A program that is just being started holds a copy of the descriptor, and of the lock with it.
        if let Some(file) = &self.file {
            let _ = file.unlock();
        }
    }
}

/// Locks a file of records for this process alone. Returns false if another process has removed it in the meantime.
fn claim(file: &File) -> bool {
    file.lock().is_ok() && file.metadata().is_ok_and(|facts| facts.nlink() > 0)
}

/// Replaces the lines of a file of records.
fn rewrite(mut file: &File, record: &RecordedChanges, left: &[Change]) -> std::io::Result<()> {
    let start = Line::Start { purpose: record.purpose.clone(), namespace: record.namespace };
    let mut text = serde_json::to_string(&start)? + "\n";
    for change in left {
        text += &(serde_json::to_string(&Line::Change(change.clone()))? + "\n");
    }
    if record.state == State::Kept {
        text += &(serde_json::to_string(&Line::Kept)? + "\n");
    }
    file.set_len(0)?;
    file.write_all(text.as_bytes())
}

/// Undoes a change in its namespace. A file or a process may have outlived the namespace.
fn undo_one(namespace: Namespace, change: &Change) -> Result<()> {
    match namespace.run(|| change.undo())? {
        Some(result) => result,
        None if change.is_of_network() => Ok(()),
        None => change.undo(),
    }
}

/// Undoes changes, and returns those that are left in the order in which they were made.
pub(crate) fn undo_in(namespace: Namespace, changes: Vec<Change>) -> (Undone, Vec<Change>) {
    let mut undone = Undone::default();
    let mut left = Vec::new();
    for change in changes.into_iter().rev() {
        match undo_one(namespace, &change) {
            Ok(()) => undone.done.push(change.to_string()),
            Err(error) => {
                undone.failed.push((change.to_string(), error));
                left.push(change);
            }
        }
    }
    left.reverse();
    (undone, left)
}
