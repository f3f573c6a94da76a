//! `polygraph net status` and `polygraph net clean`: what this program has changed on this host.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use polygraph_netsetup::{Ledger, RecordedChanges, State};
use serde_json::{Value, json};

use super::{done, failure};
use crate::exit::{Done, SETUP};
use crate::output;

/// Changes of one record that are listed one by one.
const LISTED: usize = 20;

/// Options of `net status`.
#[derive(Args, Debug)]
pub struct StatusArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Options of `net clean`.
#[derive(Args, Debug)]
pub struct CleanArgs {
    /// Undo also the changes that are there to stay, such as addresses that `aka` added
    #[arg(long)]
    all: bool,
}

/// Lists the changes.
pub fn status(args: &StatusArgs) -> Done {
    let records = Ledger::of_system().and_then(|ledger| ledger.records()).map_err(failure)?;
    if args.json {
        let all: Value = records.iter().map(json_of).collect();
        output::print_json(&json!({ "changes": all }));
        return done();
    }
    let mut text = String::new();
    for record in &records {
        let place = record.namespace.name().map(|name| format!(" in namespace {name}")).unwrap_or_default();
        let _ = writeln!(text, "{} ({}){place}", record.purpose, word(record.state));
        for change in record.changes.iter().take(LISTED) {
            let _ = writeln!(text, "    {change}");
        }
        if record.changes.len() > LISTED {
            let _ = writeln!(text, "    and {} more", record.changes.len() - LISTED);
        }
    }
    if records.is_empty() {
        text = "no changes\n".to_owned();
    }
    output::print(&text);
    done()
}

fn word(state: State) -> &'static str {
    match state {
        State::InUse => "in use",
        State::Kept => "kept",
        State::Abandoned => "abandoned: `polygraph net clean` undoes it",
    }
}

fn json_of(record: &RecordedChanges) -> Value {
    let state = match record.state {
        State::InUse => "in_use",
        State::Kept => "kept",
        State::Abandoned => "abandoned",
    };
    json!({
        "purpose": record.purpose,
        "state": state,
        "namespace": record.namespace.name(),
        "changes": record.changes.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

/// Undoes changes.
pub fn clean(args: &CleanArgs) -> Done {
    let wanted = |state| state == State::Abandoned || (args.all && state == State::Kept);
    let undone = Ledger::of_system().and_then(|ledger| ledger.undo(wanted)).map_err(failure)?;
    for change in &undone.done {
        output::print(&format!("undone: {change}\n"));
    }
    for (change, error) in &undone.failed {
        output::warn(&format!("not undone: {change}: {error}"));
    }
    if undone.done.is_empty() && undone.failed.is_empty() {
        output::print("nothing to undo\n");
    }
    Ok(if undone.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(SETUP) })
}
