//! `polygraph runs`: the runs and peak searches in a directory.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use jiff::{Timestamp, Zoned, civil};
use polygraph_history::{Index, IndexError, IndexedRun, RunFilter, RunStatus};
use polygraph_plan::values;
use polygraph_report::peak::PeakStatus;
use polygraph_report::text::{aligned, ms, number};
use polygraph_runner::Failure;

use crate::exit::Done;
use crate::output;

/// Options of `runs`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Examples:\n  polygraph runs\n  polygraph runs --verdict valid --device squid --since 2day\n  \
        polygraph runs --json | jq '.runs[] | select(.dhr_percent > 50) | .name'"
)]
pub struct Args {
    /// Only runs whose workload name contains TEXT
    #[arg(long, value_name = "TEXT")]
    workload: Option<String>,
    /// Only runs whose device name contains TEXT
    #[arg(long, value_name = "TEXT")]
    device: Option<String>,
    /// Only runs whose label or directory name contains TEXT
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Only runs with this verdict: valid, failed, invalid, running or unreadable; or peak searches that ended like this: found,
    /// 'not reached', 'bench limit', 'not narrowed down', 'not found', or searching
    #[arg(long, value_name = "VERDICT", value_parser = standing)]
    verdict: Option<RunStatus>,
    /// Only runs that started after TIME: an age such as 2day or 90min, a date, or a date and time
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Since>,
    /// Only the latest N runs
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Rebuild the index from all runs
    #[arg(long)]
    rebuild: bool,
    /// Print JSON; undefined figures are null
    #[arg(long)]
    json: bool,
    /// Parent directory of result directories
    #[arg(default_value = "runs")]
    directory: PathBuf,
}

fn standing(text: &str) -> Result<RunStatus, String> {
    RunStatus::from_word(text).ok_or_else(|| {
        format!(
            "`{text}` is not a verdict: write valid, failed, invalid, running or unreadable, or how a peak search ended, such as found"
        )
    })
}

/// Seconds since 1970.
#[derive(Clone, Copy, Debug)]
struct Since(i64);

fn since(text: &str) -> Result<Since, String> {
    if let Ok(seconds) = values::time(text) {
        return Ok(Since(Timestamp::now().as_second().saturating_sub(seconds as i64)));
    }
    let here =
        |time: civil::DateTime| Some(time.to_zoned(Zoned::now().time_zone().clone()).ok()?.timestamp());
    let time = text.parse::<Timestamp>().ok();
    let time = time.or_else(|| here(text.parse().ok()?));
    let time = time.or_else(|| here(text.parse::<civil::Date>().ok()?.to_datetime(civil::Time::midnight())));
    time.map(|time| Since(time.as_second()))
        .ok_or_else(|| format!("`{text}` is not a time: write 2day, 90min, 2026-11-21 or 2026-11-21T10:00"))
}

/// Lists runs.
pub fn run(args: Args) -> Done {
    let directory = &args.directory;
    if !directory.is_dir() {
        let text = format!(
            "there is no directory {}: no test has been run here, or the results are elsewhere",
            directory.display()
        );
        return Err(Failure::data(anyhow::anyhow!(text)));
    }
    let open = if args.rebuild { Index::rebuild } else { Index::open };
    let fresh = |mut index: Index| index.refresh().map(|()| index);
    let index = open(directory).and_then(fresh).or_else(|error| match error {
        IndexError::Directory { .. } => Err(error),
        // A directory without write access can be listed, too.
        _ => {
            output::warn(&format!("{error}; reading the runs without an index"));
            Index::in_memory(directory).and_then(fresh)
        }
    });
    let index = index.map_err(Failure::data)?;
    let filter = RunFilter {
        workload: args.workload,
        device: args.device,
        name: args.label,
        standing: args.verdict,
        since_s: args.since.map(|since| since.0),
    };
    let mut entries = index.list(&filter).map_err(Failure::data)?;
    let surplus = entries.len().saturating_sub(args.limit.unwrap_or(usize::MAX));
    entries.drain(..surplus);
    if args.json {
        let all: serde_json::Value = entries.iter().map(IndexedRun::json).collect();
        output::print_json(&serde_json::json!({ "runs": all }));
    } else if entries.is_empty() {
        output::note("no runs match");
    } else {
        output::print(&table(directory, &entries));
    }
    Ok(ExitCode::SUCCESS)
}

/// A line for each run, with the reason below it if the run is not valid, and for each peak search, with its result and what to
/// open.
fn table(directory: &Path, entries: &[IndexedRun]) -> String {
    let head = ["run", "verdict", "workload", "device", "rep/s", "mean", "p95", "hit %", "err %"];
    let row = |entry: &IndexedRun| {
        [
            entry.name.clone(),
            entry.verdict(),
            shortened(&entry.workload),
            shortened(&entry.device),
            number(entry.figure("rate"), 1),
            ms(entry.figure("rptm_mean_ms")),
            ms(entry.figure("rptm_p95_ms")),
            number(entry.figure("dhr_percent"), 1),
            number(entry.figure("errors_percent"), 2),
        ]
    };
    let rows: Vec<_> = std::iter::once(head.map(str::to_owned)).chain(entries.iter().map(row)).collect();
    let mut out = String::new();
    // Words are left-aligned, numbers right-aligned.
    for (index, line) in aligned(rows.iter().map(|row| row.as_slice()), 4).iter().enumerate() {
        let _ = writeln!(out, "{line}");
        let Some(entry) = index.checked_sub(1).map(|entry| &entries[entry]) else { continue };
        if !entry.reason.is_empty() {
            let _ = writeln!(out, "    {}", entry.reason);
        }
        if let RunStatus::Search(status) = entry.standing {
            let path = directory.join(&entry.name);
            let path = path.display();
            let _ = writeln!(out, "    report: {path}/report.html; its runs: polygraph runs {path}");
            if status == PeakStatus::Searching {
                let _ = writeln!(out, "    if it was interrupted: polygraph peak --resume {path}");
            }
        }
    }
    out
}

/// A workload name, which may be a sentence, in a few characters.
fn shortened(text: &str) -> String {
    const MOST: usize = 28;
    match text.char_indices().nth(MOST) {
        Some((cut, _)) => format!("{}...", text[..cut].trim_end()),
        None => text.to_owned(),
    }
}
