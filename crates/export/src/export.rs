//! One walk over the logs of a run that fills all tables.

use std::collections::BTreeMap;
use std::io;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::mpsc::sync_channel;

use polygraph_report::facts::SideFacts;
use polygraph_report::lx::contents;
use polygraph_report::{LogSource, fold_in_turn, mixed};
use polygraph_stats::{Record, Side};
use serde_json::Value;

use crate::counted::{self, Folded};
use crate::table::Table;
use crate::tables::{self, PhaseTimes};
use crate::write::{ExportError, Format, TableFile, io_error};

/// What was written.
#[derive(Debug)]
pub struct Exported {
    /// Number of tables.
    pub tables: usize,
    /// Number of their rows.
    pub rows: usize,
    /// What is missing in the logs, in sentences.
    pub missing: Vec<String>,
    /// Why the logs may not be those of one run, in the words of the verdict.
    pub mixed: Vec<String>,
}

/// Writes all tables of the logs of one run, each to a file of its name in `folder`, which is created if it does not
/// exist, and the description of their columns to `schema.json`. Files of earlier exports are overwritten.
///
/// # Errors
/// If a file cannot be written.
pub fn export<S: LogSource>(logs: &[S], folder: &Path, format: Format) -> Result<Exported, ExportError> {
    std::fs::create_dir_all(folder).map_err(io_error(folder))?;
    let create = |table: Table| TableFile::create(table, folder, format);
    let walk = Walk {
        intervals: create(counted::intervals())?,
        errors: create(tables::errors())?,
        error_samples: create(tables::error_samples())?,
        xacts: create(tables::xacts())?,
        messages: create(tables::messages())?,
        times: BTreeMap::new(),
        appeared: [Vec::new(), Vec::new()],
    };
    let (sides, walk) = walk.along(logs)?;
    let [runs, settings, phases] = about_logs(logs, &sides, &walk.times, create)?;
    let appeared = &walk.appeared;
    let (figures, histograms) = std::thread::scope(|scope| {
        let fill = |table: Table, add: AddFolded| -> Result<TableFile, ExportError> {
            let mut table = create(table)?;
            for side in &sides {
                for folded in counted::folded(side, &appeared[index(side.side)]) {
                    add(&mut table, &folded, contents(logs))?;
                }
            }
            Ok(table)
        };
        let histograms = scope.spawn(move || fill(counted::histograms(), counted::add_histograms));
        let figures = fill(counted::figures(), counted::add_figures);
        (figures, histograms.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    let (figures, histograms) = (figures?, histograms?);
    let Walk { intervals, errors, error_samples, xacts, messages, .. } = walk;
    // In the order of `tables`.
    let all =
        [runs, settings, phases, intervals, figures, histograms, errors, error_samples, xacts, messages];
    let tables = all.len();
    let finished = all.into_iter().map(TableFile::finish).collect::<Result<Vec<_>, _>>()?;
    let (rows, schema): (Vec<usize>, Vec<Value>) = finished.into_iter().unzip();
    let path = folder.join("schema.json");
    let text = serde_json::to_string_pretty(&schema).map_err(io::Error::from);
    text.and_then(|text| std::fs::write(&path, text + "\n")).map_err(io_error(&path))?;
    let mixed = mixed(&sides);
    let missing = sides.into_iter().flat_map(|side| side.processes).flat_map(|process| process.missing);
    Ok(Exported { tables, rows: rows.into_iter().sum(), missing: missing.collect(), mixed })
}

/// Adds the rows of a phase of one side to a table; kinds of content have these names.
type AddFolded = fn(&mut TableFile, &Folded, &[String]) -> Result<(), ExportError>;

/// The tables with rows that belong to logs as a whole.
fn about_logs<S: LogSource>(
    logs: &[S],
    sides: &[SideFacts],
    times: &BTreeMap<(usize, u32), PhaseTimes>,
    create: impl Fn(Table) -> Result<TableFile, ExportError>,
) -> Result<[TableFile; 3], ExportError> {
    let mut all = [create(tables::runs())?, create(tables::settings())?, create(tables::phases())?];
    let [runs, settings, phases] = &mut all;
    let processes =
        |wanted: Side| sides.iter().filter(move |side| side.side == wanted).flat_map(|side| &side.processes);
    let mut processes = [processes(Side::Client), processes(Side::Server)];
    for (number, log) in logs.iter().enumerate() {
        let header = log.header();
        if let Some(process) = processes[index(header.side)].next() {
            tables::add_run(runs, number, process)?;
        }
        tables::add_settings(settings, number, header)?;
        tables::add_phases(phases, number, header, |phase| {
            times.get(&(number, phase)).copied().unwrap_or_default()
        })?;
    }
    Ok(all)
}

fn index(side: Side) -> usize {
    usize::from(side == Side::Server)
}

/// Tables that grow record by record, and what later tables need.
struct Walk {
    intervals: TableFile,
    errors: TableFile,
    error_samples: TableFile,
    xacts: TableFile,
    messages: TableFile,
    /// By number of the log and of the phase.
    times: BTreeMap<(usize, u32), PhaseTimes>,
    /// Names of the phases with intervals, by side.
    appeared: [Vec<String>; 2],
}

/// Number of records that are handed over at once: threads that wait for each other at every record take a tenth of the
/// time.
const TOGETHER: usize = 32;
/// Maximum number of such groups that are folded, but not yet in the tables.
const AHEAD: usize = 2;

impl Walk {
    /// Folds the logs, and adds all their records to the tables on another thread, which takes about as long.
    fn along<S: LogSource>(mut self, logs: &[S]) -> Result<(Vec<SideFacts>, Walk), ExportError> {
        let (records, folded) = sync_channel::<Vec<(usize, Record)>>(AHEAD);
        std::thread::scope(|scope| {
            let tables = scope.spawn(move || {
                folded
                    .into_iter()
                    .flatten()
                    .try_for_each(|(number, record)| self.add(number, &logs[number], record))
                    .map(|()| self)
            });
            let mut together = Vec::new();
            let sides = fold_in_turn(logs, |number, record| {
                together.push((number, record.into_owned()));
                if together.len() == TOGETHER {
                    // If a table cannot be written, nobody takes the records; the result says why.
                    let _ = records.send(std::mem::take(&mut together));
                }
            });
            let _ = records.send(together);
            drop(records);
            let walk = tables.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            Ok((sides, walk))
        })
    }

    fn add(&mut self, number: usize, log: &impl LogSource, record: Record) -> Result<(), ExportError> {
        let header = log.header();
        match record {
            Record::PhaseBegin { at_ns, phase } => {
                self.times.entry((number, phase)).or_default().begin_ns.get_or_insert(at_ns);
            }
            Record::PhaseEnd { at_ns, phase, complete } => {
                self.times.entry((number, phase)).or_default().end.get_or_insert((at_ns, complete));
            }
            Record::Interval(interval) => {
                let (name, appeared) =
                    (log.phase_name(interval.phase), &mut self.appeared[index(header.side)]);
                if !appeared.iter().any(|known| known == name) {
                    appeared.push(name.to_owned());
                }
                tables::add_errors(&mut self.errors, number, log, &interval)?;
                counted::add_interval(&mut self.intervals, number, log, *interval)?;
            }
            Record::ErrorSample { at_ns, kind, detail, facts } => {
                let found = (kind, detail.as_str(), &facts[..]);
                tables::add_error_sample(&mut self.error_samples, number, header, at_ns, found)?;
            }
            Record::Xacts { sample, xacts } => {
                tables::add_xacts(&mut self.xacts, number, header, &sample, &xacts)?;
            }
            Record::Comment { at_ns, level, text } => {
                tables::add_message(&mut self.messages, number, header, at_ns, (level, &text))?;
            }
            _ => {}
        }
        Ok(())
    }
}
