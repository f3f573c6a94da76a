//! Applies remedies that are safe, and takes them back. Settings are recorded before they are changed.

use std::fs::File;
use std::path::{Path, PathBuf};

use polygraph_netsetup::{Error, Ledger, Namespace, RecordedChanges, Result, State, Undone};

use crate::catalogue::Diagnosis;

/// The purpose under which changes are recorded.
pub const PURPOSE: &str = "doctor --fix";

/// What was mended, and what could not be.
#[derive(Debug, Default)]
pub struct Mended {
    /// What was done, as command lines or descriptions.
    pub done: Vec<String>,
    /// What was not, each with the reason.
    pub failed: Vec<(String, String)>,
}

/// Applies the safe remedies of all findings. Changed settings stay until [`take_back`].
/// `temporary` is the directory for temporary files.
///
/// # Errors
/// If changes cannot be recorded; then none are made.
pub fn mend(diagnoses: &[Diagnosis], records: &Ledger, temporary: &Path) -> Result<Mended> {
    let mut mended = Mended::default();
    let remedies = || diagnoses.iter().flat_map(|diagnosis| &diagnosis.finding.remedies);
    if remedies().any(|remedy| remedy.cleans) {
        let undone = undo(records, |record| record.state == State::Abandoned)?;
        mended.done.extend(undone.done.into_iter().map(|what| format!("undone: {what}")));
        mended.failed.extend(undone.failed.into_iter().map(|(what, error)| (what, error.to_string())));
        let gone = polygraph_device::tidy_up(temporary);
        mended.done.extend(gone.into_iter().map(|directory| format!("removed: {}", directory.display())));
    }
    if remedies().all(|remedy| remedy.settings.is_empty()) {
        return Ok(mended);
    }
    let mut changes = records.begin(PURPOSE)?;
    for remedy in remedies().filter(|remedy| !remedy.settings.is_empty()) {
        let set = |(path, value): &(PathBuf, String)| {
            // A setting that cannot be written would stay in the records for nothing.
            let opened = File::options().write(true).open(path);
            opened.map_err(|error| Error::file(path, error))?;
            changes.set(path, value)
        };
        match remedy.settings.iter().try_for_each(set) {
            Ok(()) => mended.done.push(remedy.command.clone()),
            Err(error) => mended.failed.push((remedy.command.clone(), error.to_string())),
        }
    }
    // A record without changes would only look like one.
    if !changes.made().is_empty() {
        changes.keep()?;
    }
    Ok(mended)
}

/// Gives settings that [`mend`] changed their earlier values, the last change first.
///
/// # Errors
/// If the records cannot be read.
pub fn take_back(records: &Ledger) -> Result<Undone> {
    undo(records, |record| record.state == State::Kept && record.purpose == PURPOSE)
}

/// Undoes the wanted records of the network namespace of this process, the last one first. Other namespaces are other
/// hosts, each with its own doctor.
fn undo(records: &Ledger, is_wanted: impl Fn(&RecordedChanges) -> bool) -> Result<Undone> {
    let here = Namespace::current()?;
    let mut all = Undone::default();
    for record in records.records()?.into_iter().rev() {
        if record.namespace == here && is_wanted(&record) {
            let undone = record.undo();
            all.done.extend(undone.done);
            all.failed.extend(undone.failed);
        }
    }
    Ok(all)
}
