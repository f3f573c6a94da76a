//! Removes a lab.

use polygraph_netsetup::{Ledger, State, Undone};

use crate::directory::LabDirectory;
use crate::error::Result;
use crate::up::{purpose, undo_inside};

/// Removes a lab with all processes in it. Returns what was undone, and what could not be.
///
/// # Errors
/// If there is no such lab, or another process is making it at this moment.
pub fn take_down(name: &str, directory: &LabDirectory, ledger: &Ledger) -> Result<Undone> {
    let mut all = Undone { done: undo_inside(ledger, name)?, failed: Vec::new() };
    let mut found = false;
    for record in ledger.records()?.into_iter().rev().filter(|record| record.purpose == purpose(name)) {
        if record.state == State::InUse {
            return Err(polygraph_netsetup::Error::InUse { purpose: record.purpose.clone() }.into());
        }
        found = true;
        let undone = record.undo();
        all.done.extend(undone.done);
        all.failed.extend(undone.failed);
    }
    if !found {
        // Says that there is none.
        directory.read(name)?;
    }
    Ok(all)
}
