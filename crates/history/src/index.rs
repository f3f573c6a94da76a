//! The index file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{
    Connection, ErrorCode, OptionalExtension, TransactionBehavior, params_from_iter, types::Value,
};

use crate::IndexError;
use crate::entry::{FIGURES, IndexedRun, RunStatus, Stamp};
use crate::filter::RunFilter;

/// Name of the index in a directory of runs.
pub const FILE: &str = ".runs.sqlite";
/// Version of the columns. An index of another version is rebuilt from the runs.
const VERSION: i64 = 3;
/// How long to wait for other writers.
const PATIENCE: Duration = Duration::from_secs(10);

/// The index of a directory of runs.
#[derive(Debug)]
pub struct Index {
    directory: PathBuf,
    database: Connection,
    /// Runs in progress, which are not stored because they will change.
    running: Vec<IndexedRun>,
}

impl Index {
    /// Opens or creates the index of a directory. A file that is damaged or of another version is replaced.
    ///
    /// # Errors
    /// If the file can be neither used nor replaced.
    pub fn open(directory: &Path) -> Result<Index, IndexError> {
        let path = directory.join(FILE);
        let opened = Connection::open(&path).and_then(prepare);
        let database = match opened {
            Ok(database) => database,
            Err(error) if is_damaged(&error) => {
                remove(&path)?;
                Connection::open(&path).and_then(prepare)?
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Index { directory: directory.to_owned(), database, running: Vec::new() })
    }

    /// An index in memory, for directories without write access.
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn in_memory(directory: &Path) -> Result<Index, IndexError> {
        let database = Connection::open_in_memory().and_then(prepare)?;
        Ok(Index { directory: directory.to_owned(), database, running: Vec::new() })
    }

    /// Reads all runs again. The file is not replaced, because other processes may have it open.
    ///
    /// # Errors
    /// If the directory cannot be read, or the index cannot be written.
    pub fn rebuild(directory: &Path) -> Result<Index, IndexError> {
        let mut index = Index::open(directory)?;
        index.read(|_, _| true)?;
        Ok(index)
    }

    /// Stores the entry of a run in place of an earlier one.
    ///
    /// # Errors
    /// If the index cannot be written.
    pub fn add(&mut self, entry: &IndexedRun) -> Result<(), IndexError> {
        Ok(insert(&self.database, entry)?)
    }

    /// Reads new and changed runs, and deletes the entries of removed ones.
    ///
    /// # Errors
    /// If the directory cannot be read, or the index cannot be written.
    pub fn refresh(&mut self) -> Result<(), IndexError> {
        self.read(|remembered, stamp| remembered != Some(stamp))
    }

    /// Reads runs that are stale, given the stamps of their entries and of their files, and deletes the entries of
    /// removed runs.
    fn read(&mut self, is_stale: impl Fn(Option<&Stamp>, &Stamp) -> bool) -> Result<(), IndexError> {
        let directory = self.directory.clone();
        let wrong = |source| IndexError::Directory { path: directory.display().to_string(), source };
        // The entries are listed before the directories, so that a run that another process adds in between does not
        // count as removed.
        let mut known: HashMap<String, Stamp> = HashMap::new();
        for entry in self.entries()? {
            known.insert(entry.name, entry.stamp);
        }
        let mut there: HashMap<String, Stamp> = HashMap::new();
        for entry in std::fs::read_dir(&directory).map_err(wrong)? {
            let path = entry.map_err(wrong)?.path();
            // Names that are not UTF-8 are ignored.
            let name = path.file_name().and_then(|name| name.to_str());
            if let (Some(name), Some(stamp)) = (name, Stamp::of(&path)) {
                there.insert(name.to_owned(), stamp);
            }
        }
        // Reading takes long; other processes should not have to wait.
        let (running, new): (Vec<IndexedRun>, Vec<IndexedRun>) = there
            .iter()
            .filter(|(name, stamp)| is_stale(known.get(*name), stamp))
            .map(|(name, stamp)| IndexedRun::read(&directory.join(name), *stamp))
            .partition(|entry| entry.standing == RunStatus::Running);
        let going_on = |name: &String| running.iter().any(|entry| entry.name == *name);
        let gone: Vec<&String> =
            known.keys().filter(|name| !there.contains_key(*name) || going_on(name)).collect();
        if new.is_empty() && gone.is_empty() {
            self.running = running;
            return Ok(());
        }
        let transaction = self.database.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for name in gone {
            transaction.execute("DELETE FROM runs WHERE name = ?1", [name])?;
        }
        new.iter().try_for_each(|entry| insert(&transaction, entry))?;
        transaction.commit()?;
        self.running = running;
        Ok(())
    }

    /// The runs that a filter selects, in the order of their starts.
    ///
    /// # Errors
    /// If the index cannot be read.
    pub fn list(&self, filter: &RunFilter) -> Result<Vec<IndexedRun>, IndexError> {
        let mut all = self.entries()?;
        all.extend(self.running.iter().cloned());
        all.retain(|entry| filter.wants(entry));
        all.sort_by(|a, b| (a.begin_s, &a.name).cmp(&(b.begin_s, &b.name)));
        Ok(all)
    }

    fn entries(&self) -> rusqlite::Result<Vec<IndexedRun>> {
        let mut query = self.database.prepare("SELECT * FROM runs")?;
        query.query_map([], IndexedRun::from_row)?.collect()
    }
}

/// Whether a database file must be replaced.
fn is_damaged(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
        || matches!(error, rusqlite::Error::InvalidColumnType(..) | rusqlite::Error::InvalidColumnName(_))
}

fn remove(path: &Path) -> Result<(), IndexError> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(IndexError::Replace { path: path.display().to_string(), source })
        }
        _ => Ok(()),
    }
}

/// Prepares a connection: creates the table if necessary, and checks the file.
fn prepare(mut database: Connection) -> rusqlite::Result<Connection> {
    database.busy_timeout(PATIENCE)?;
    // Data lost in a power failure is read again from the runs.
    database.pragma_update(None, "synchronous", "OFF")?;
    let transaction = database.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if version != VERSION {
        let figures: String = FIGURES.iter().map(|(name, _)| format!(", {name} REAL")).collect();
        transaction.execute_batch(&format!(
            "DROP TABLE IF EXISTS runs;
             CREATE TABLE runs (name TEXT PRIMARY KEY, begin_s INTEGER NOT NULL, label TEXT NOT NULL,
                 workload TEXT NOT NULL, device TEXT NOT NULL, version TEXT NOT NULL, verdict TEXT NOT NULL,
                 limited_by TEXT NOT NULL, reason TEXT NOT NULL, bytes INTEGER NOT NULL, modified_ns INTEGER NOT NULL{figures});
             PRAGMA user_version = {VERSION};"
        ))?;
    }
    transaction.commit()?;
    let sound: Option<String> =
        database.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).optional()?;
    // Reads every column once, so that a table of another form is detected now and not in the middle of a list.
    database
        .prepare("SELECT * FROM runs")?
        .query_map([], IndexedRun::from_row)?
        .try_for_each(|entry| entry.map(drop))?;
    match sound.as_deref() {
        Some("ok") => Ok(database),
        _ => Err(rusqlite::Error::SqliteFailure(
            rusqlite::ffi::Error { code: ErrorCode::DatabaseCorrupt, extended_code: 0 },
            None,
        )),
    }
}

fn insert(database: &Connection, entry: &IndexedRun) -> rusqlite::Result<()> {
    let mut columns = vec![
        ("name", Value::Text(entry.name.clone())),
        ("begin_s", Value::Integer(entry.begin_s)),
        ("label", Value::Text(entry.label.clone())),
        ("workload", Value::Text(entry.workload.clone())),
        ("device", Value::Text(entry.device.clone())),
        ("version", Value::Text(entry.version.clone())),
        ("verdict", Value::Text(entry.standing.word().into())),
        ("limited_by", Value::Text(entry.limit.clone())),
        ("reason", Value::Text(entry.reason.clone())),
        ("bytes", Value::Integer(entry.stamp.bytes)),
        ("modified_ns", Value::Integer(entry.stamp.modified_ns)),
    ];
    columns
        .extend(FIGURES.iter().map(|(name, _)| (*name, entry.figure(name).map_or(Value::Null, Value::Real))));
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let marks = vec!["?"; columns.len()].join(", ");
    let statement = format!("INSERT OR REPLACE INTO runs ({}) VALUES ({marks})", names.join(", "));
    database.execute(&statement, params_from_iter(columns.into_iter().map(|(_, value)| value))).map(drop)
}
