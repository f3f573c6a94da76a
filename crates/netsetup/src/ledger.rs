//! The records of changes to this host, one file for each process that makes changes.
//!
//! A process holds a lock on its file. The system releases the lock when the process ends in any way, so a file
//! without a lock that is not marked as kept belongs to a process that was killed.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::process::getpid;

use crate::change::Change;
use crate::error::{Error, Result};
use crate::namespace::Namespace;
use crate::record::{Line, RecordedChanges, SUFFIX, State, Undone, undo_in};

/// The directory of the records of the whole system: empty after a boot, as the network is.
pub const SYSTEM_DIRECTORY: &str = "/run/polygraph/changes";

/// The file in it whose lock a process holds while it undoes the changes of others.
const UNDOING: &str = "undoing.lock";

/// The directory with the records of changes.
#[derive(Clone, Debug)]
pub struct Ledger {
    directory: PathBuf,
}

impl Ledger {
    /// The ledger of this system.
    ///
    /// # Errors
    /// If its directory cannot be created.
    pub fn of_system() -> Result<Ledger> {
        Ledger::at(Path::new(SYSTEM_DIRECTORY))
    }

    /// The ledger in a directory, which is created if it is not there.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn at(directory: &Path) -> Result<Ledger> {
        let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        created.map_err(|error| match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                Error::NotRoot { what: "changing the network of this host".to_owned() }
            }
            _ => Error::file(directory, error),
        })?;
        Ok(Ledger { directory: directory.to_owned() })
    }

    /// Starts a record of changes that this process is about to make. `purpose` is for people, for example the command.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn begin(&self, purpose: &str) -> Result<Changes> {
        let word: String =
            purpose.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(24).collect();
        for number in 0u32.. {
            let name = format!("{word}-{}-{number}{SUFFIX}", getpid().as_raw_nonzero());
            let path = self.directory.join(name);
            let file = match File::options().append(true).create_new(true).mode(0o600).open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(Error::file(&path, error)),
            };
            file.lock().map_err(|error| Error::file(&path, error))?;
            let mut changes =
                Changes { path, file, namespace: Namespace::current()?, made: Vec::new(), kept: false };
            changes.write(&Line::Start { purpose: purpose.to_owned(), namespace: changes.namespace })?;
            return Ok(changes);
        }
        unreachable!("a name is free")
    }

    /// The recorded changes of all processes, the oldest first.
    ///
    /// # Errors
    /// If the directory cannot be read. A damaged file is read up to the damage.
    pub fn records(&self) -> Result<Vec<RecordedChanges>> {
        let files = fs::read_dir(&self.directory).map_err(|error| Error::file(&self.directory, error))?;
        let mut found: Vec<(std::time::SystemTime, RecordedChanges)> = Vec::new();
        for file in files.flatten().map(|file| file.path()) {
            let is_record = file.file_name().is_some_and(|name| name.to_string_lossy().ends_with(SUFFIX));
            let changed = file.metadata().and_then(|facts| facts.modified()).ok();
            if let Some((changed, record)) = changed.filter(|_| is_record).zip(RecordedChanges::read(file)) {
                found.push((changed, record));
            }
        }
        found.sort_by_key(|(changed, _)| *changed);
        Ok(found.into_iter().map(|(_, record)| record).collect())
    }

    /// Undoes the changes of killed processes.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn undo_abandoned(&self) -> Result<Undone> {
        self.undo(|state| state == State::Abandoned)
    }

    /// Undoes the changes in these states. Waits for another process that does the same: while changes are being undone, they
    /// look as if they were in use.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn undo(&self, wanted: impl Fn(State) -> bool) -> Result<Undone> {
        let path = self.directory.join(UNDOING);
        let turn = File::options().create(true).append(true).mode(0o600).open(&path);
        let turn = turn.and_then(|file| file.lock().map(|()| file));
        let _turn = turn.map_err(|error| Error::file(&path, error))?;
        let mut all = Undone::default();
        // What a later change rests on was made earlier.
        for record in self.records()?.into_iter().rev().filter(|record| wanted(record.state)) {
            let undone = record.undo();
            all.done.extend(undone.done);
            all.failed.extend(undone.failed);
        }
        Ok(all)
    }
}

/// The changes of this process. Dropping them undoes them.
#[derive(Debug)]
pub struct Changes {
    path: PathBuf,
    /// The open file, which holds the lock.
    file: File,
    namespace: Namespace,
    made: Vec<Change>,
    kept: bool,
}

impl Changes {
    fn write(&mut self, line: &Line) -> Result<()> {
        let text = serde_json::to_string(line).map_err(std::io::Error::from).map(|text| text + "\n");
        text.and_then(|text| self.file.write_all(text.as_bytes()))
            .map_err(|error| Error::file(&self.path, error))
    }

    /// Records a change, then makes it.
    ///
    /// # Errors
    /// If the change cannot be recorded, or if `make` fails.
    pub fn make<T>(&mut self, change: Change, make: impl FnOnce() -> Result<T>) -> Result<T> {
        self.write(&Line::Change(change.clone()))?;
        self.made.push(change);
        make()
    }

    /// Gives a setting of the kernel another value. A setting that has this value already is not touched.
    ///
    /// # Errors
    /// If the setting cannot be read or written.
    pub fn set(&mut self, path: &Path, value: &str) -> Result<()> {
        let before = fs::read_to_string(path).map_err(|error| Error::file(path, error))?;
        if before.trim() == value.trim() {
            return Ok(());
        }
        self.make(Change::Setting { path: path.to_owned(), before }, || {
            fs::write(path, value).map_err(|error| Error::file(path, error))
        })
    }

    /// Runs a program that changes something, and records the command line that undoes it.
    ///
    /// # Errors
    /// If the change cannot be recorded, or if the program fails.
    pub fn run(&mut self, what: &str, command: &[&str], undo: &[&str]) -> Result<()> {
        let undo = undo.iter().map(|word| (*word).to_owned()).collect();
        let change = Change::Command { what: what.to_owned(), undo };
        self.make(change, || crate::program::run_program(command).map(drop))
    }

    /// The changes so far.
    pub fn made(&self) -> &[Change] {
        &self.made
    }

    /// Lets the changes stay after the end of this process, until someone asks for their removal.
    ///
    /// # Errors
    /// If this cannot be recorded; then they are undone.
    pub fn keep(mut self) -> Result<()> {
        self.write(&Line::Kept)?;
        self.kept = true;
        Ok(())
    }

    /// Undoes the changes, the last one first, as dropping them does, and says what was undone.
    pub fn undo(mut self) -> Undone {
        self.undo_all()
    }

    fn undo_all(&mut self) -> Undone {
        let (undone, left) = undo_in(self.namespace, std::mem::take(&mut self.made));
        if left.is_empty() {
            let _ = fs::remove_file(&self.path);
        }
        self.kept = true;
        undone
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        if !self.kept {
            self.undo_all();
        }
        // Closing the file may not suffice: a program that another thread is just starting has a copy of it, and of its lock.
        let _ = self.file.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> (tempfile::TempDir, Ledger, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let ledger = Ledger::at(&place.path().join("ledger")).unwrap();
        let setting = place.path().join("setting");
        fs::write(&setting, "0\n").unwrap();
        (place, ledger, setting)
    }

    fn states(ledger: &Ledger) -> Vec<(State, usize)> {
        ledger.records().unwrap().iter().map(|record| (record.state, record.changes.len())).collect()
    }

    #[test]
    fn kept_changes_are_free_even_if_a_program_that_starts_has_a_copy_of_their_file() {
        let _alone = crate::one_test_at_a_time();
        let (_place, ledger, setting) = places();
        let mut changes = ledger.begin("a test").unwrap();
        changes.set(&setting, "1").unwrap();
        let _copy = changes.file.try_clone().unwrap();
        changes.keep().unwrap();
        assert_eq!(states(&ledger), [(State::Kept, 1)]);
    }

    #[test]
    fn dropped_changes_are_undone() {
        let _alone = crate::one_test_at_a_time();
        let (_place, ledger, setting) = places();
        let mut changes = ledger.begin("a test").unwrap();
        changes.set(&setting, "1").unwrap();
        changes.set(&setting, "1").unwrap();
        assert_eq!(fs::read_to_string(&setting).unwrap(), "1");
        assert_eq!(states(&ledger), [(State::InUse, 1)]);
        assert!(ledger.undo_abandoned().unwrap().done.is_empty(), "changes in use are left alone");
        drop(changes);
        assert_eq!(fs::read_to_string(&setting).unwrap(), "0\n");
        assert_eq!(states(&ledger), []);
    }

    #[test]
    fn changes_of_killed_processes_are_undone_and_kept_ones_stay() {
        let _alone = crate::one_test_at_a_time();
        let (place, ledger, setting) = places();
        let mut changes = ledger.begin("net aka").unwrap();
        changes.set(&setting, "1").unwrap();
        changes.keep().unwrap();
        let mut killed = ledger.begin("client").unwrap();
        let file = place.path().join("file");
        fs::write(&file, "x").unwrap();
        killed.make(Change::File { path: file.clone() }, || Ok(())).unwrap();
        killed.file.unlock().unwrap();
        std::mem::forget(killed);
        let mut seen = states(&ledger);
        seen.sort_by_key(|(state, _)| *state == State::Abandoned);
        assert_eq!(seen, [(State::Kept, 1), (State::Abandoned, 1)]);
        assert_eq!(ledger.undo_abandoned().unwrap().done, [format!("file {}", file.display())]);
        assert!(!file.exists());
        assert_eq!(states(&ledger), [(State::Kept, 1)]);
        let [kept] = <[RecordedChanges; 1]>::try_from(ledger.records().unwrap()).unwrap();
        assert_eq!(kept.purpose, "net aka");
        assert_eq!(kept.undo().done.len(), 1);
        assert_eq!(fs::read_to_string(&setting).unwrap(), "0\n");
        assert_eq!(states(&ledger), []);
    }

    #[test]
    fn several_processes_may_read_records_and_one_undoes_them() {
        let _alone = crate::one_test_at_a_time();
        let (_place, ledger, setting) = places();
        let mut changes = ledger.begin("net aka").unwrap();
        changes.set(&setting, "1").unwrap();
        changes.keep().unwrap();
        let [first] = <[RecordedChanges; 1]>::try_from(ledger.records().unwrap()).unwrap();
        let [second] = <[RecordedChanges; 1]>::try_from(ledger.records().unwrap()).unwrap();
        assert_eq!([first.state, second.state], [State::Kept; 2]);
        drop(first);
        let [third] = <[RecordedChanges; 1]>::try_from(ledger.records().unwrap()).unwrap();
        let undo = std::thread::spawn(|| third.undo().done.len());
        // The other one waits for all who read, and finds nothing to do if it comes second.
        let done = second.undo().done.len() + undo.join().unwrap();
        assert_eq!((done, states(&ledger)), (1, Vec::new()));
    }

    #[test]
    fn kept_changes_are_abandoned_when_the_process_that_they_need_is_gone() {
        let _alone = crate::one_test_at_a_time();
        let (_place, ledger, setting) = places();
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let mut changes = ledger.begin("net wan").unwrap();
        changes.make(Change::needed_process(pid).unwrap(), || Ok(())).unwrap();
        changes.set(&setting, "1").unwrap();
        changes.keep().unwrap();
        assert_eq!(states(&ledger), [(State::Kept, 2)]);
        assert!(ledger.undo_abandoned().unwrap().done.is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(states(&ledger), [(State::Abandoned, 2)]);
        assert_eq!(ledger.undo_abandoned().unwrap().done.len(), 2);
        assert_eq!(fs::read_to_string(&setting).unwrap(), "0\n");
    }

    #[test]
    fn what_cannot_be_undone_stays_recorded() {
        let _alone = crate::one_test_at_a_time();
        let (place, ledger, _) = places();
        let marker = place.path().join("marker");
        let mut changes = ledger.begin("net").unwrap();
        let test = format!("test -e {}", marker.display());
        let change = Change::Command {
            what: "a rule".to_owned(),
            undo: ["sh", "-c", &test].map(str::to_owned).to_vec(),
        };
        changes.make(change, || Ok(())).unwrap();
        changes.file.unlock().unwrap();
        std::mem::forget(changes);
        let undone = ledger.undo_abandoned().unwrap();
        assert_eq!((undone.done.len(), undone.failed.len()), (0, 1));
        assert_eq!(states(&ledger), [(State::Abandoned, 1)]);
        fs::write(marker, "").unwrap();
        assert_eq!(ledger.undo_abandoned().unwrap().done, ["a rule"]);
        assert_eq!(states(&ledger), []);
    }
}
