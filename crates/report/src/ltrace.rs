//! Figures over time: a table with a line for each window.
//!
//! Within a log the intervals of a window are concatenated, then logs are merged (docs/reference/statistics.md, "Merging and concatenation").

use std::fmt::Write as _;

use polygraph_stats::Interval;

use crate::figures::{self, Figure, TableEntry};
use crate::log::Log;
use crate::lx::{LxError, LxSide, Unknown, contents, logs_of, select};
use crate::scope::Scope;
use crate::text::csv_cell;

/// Options of a trace.
#[derive(Clone, Debug)]
pub struct TraceOptions {
    /// Names of figures, complete first parts of dotted names, and names from [`EXTRA`]; never empty.
    pub objects: Vec<String>,
    /// The logs to use.
    pub side: LxSide,
    /// Length of a window in seconds, more than 0.
    pub window_s: f64,
    /// Unit of times, in seconds; times are counted from the first interval. `None`: seconds since 1970.
    pub time_unit_s: Option<f64>,
    /// Whether all logs are treated as if they had started at the same time.
    pub sync_times: bool,
    /// Whether the next window starts one interval later, instead of at the end of the previous window.
    pub smooth_slide: bool,
    /// Whether columns are separated by commas and the first line is not a comment.
    pub csv: bool,
}

impl Default for TraceOptions {
    fn default() -> Self {
        TraceOptions {
            objects: Vec::new(),
            side: LxSide::All,
            window_s: 60.0,
            time_unit_s: None,
            sync_times: false,
            smooth_slide: false,
            csv: false,
        }
    }
}

/// Columns besides figures: middle, start and end of the intervals of the window, their number, and the name of the
/// phase of the last interval.
pub const EXTRA: [&str; 5] = ["time", "interval.start", "interval.end", "interval.entries", "name"];

/// A trace, and the unknown names.
#[derive(Debug)]
pub struct Trace {
    /// The table: a line of names, then one for each window.
    pub text: String,
    /// Unknown names.
    pub unknown: Vec<Unknown>,
}

/// A column.
enum Column<'a> {
    Extra(&'static str),
    Figure(&'a Figure),
}

/// An interval with its time in seconds since 1970.
struct Placed<'a> {
    log: usize,
    begin: f64,
    end: f64,
    phase: &'a str,
    interval: &'a Interval,
}

/// Makes the table.
///
/// # Errors
/// If there is no log of the side, no interval, or none of the requested figures.
pub fn ltrace(logs: &[Log], options: &TraceOptions) -> Result<Trace, LxError> {
    let logs = logs_of(logs, options.side)?;
    let placed = place(&logs, options.sync_times);
    let Some(first) = placed.first().map(|entry| entry.begin) else { return Err(LxError::NothingMeasured) };
    let mut statuses: Vec<u16> = placed.iter().flat_map(|entry| entry.interval.block.statuses()).collect();
    statuses.sort_unstable();
    statuses.dedup();
    let of_run = figures::of_run(contents(logs.iter().copied()), &statuses);
    // Extra columns keep the requested position; the figures of each name follow the order of the table.
    let (mut columns, mut unknown) = (Vec::new(), Vec::new());
    for object in &options.objects {
        if let Some(extra) = EXTRA.iter().find(|extra| **extra == object) {
            columns.push(Column::Extra(extra));
            continue;
        }
        match select(std::slice::from_ref(object), &of_run) {
            Ok(found) => columns.extend(found.entries.into_iter().filter_map(|entry| match entry {
                TableEntry::Figure(figure) => Some(Column::Figure(figure)),
                _ => None,
            })),
            Err(LxError::NoSuchObject(names)) => unknown.extend(names),
            Err(other) => return Err(other),
        }
    }
    if columns.is_empty() {
        return Err(LxError::NoSuchObject(unknown));
    }
    let mut text = head(&columns, options.csv);
    let mut at = 0;
    while at < placed.len() {
        let begin = placed[at].begin;
        let inside = placed[at..].iter().take_while(|entry| entry.begin < begin + options.window_s).count();
        line(&mut text, &placed[at..at + inside], &columns, first, options);
        at += if options.smooth_slide { 1 } else { inside };
    }
    Ok(Trace { text, unknown })
}

/// The intervals of all logs in the order of their starts.
fn place<'a>(logs: &[&'a Log], sync_times: bool) -> Vec<Placed<'a>> {
    let start = |log: &Log| log.log.header.start_unix_ns as f64 * 1e-9;
    let earliest = logs.iter().map(|log| start(log)).reduce(f64::min).unwrap_or(0.0);
    let mut placed: Vec<Placed<'_>> = logs
        .iter()
        .enumerate()
        .flat_map(|(number, &log)| {
            let first = log.log.intervals().next().map_or(0.0, |interval| interval.begin_ns as f64 * 1e-9);
            let offset = if sync_times { earliest - first } else { start(log) };
            log.log.intervals().map(move |interval| Placed {
                log: number,
                begin: offset + interval.begin_ns as f64 * 1e-9,
                end: offset + interval.end_ns as f64 * 1e-9,
                phase: log.phase_name(interval.phase),
                interval,
            })
        })
        .collect();
    placed.sort_by(|a, b| a.begin.total_cmp(&b.begin));
    placed
}

fn head(columns: &[Column<'_>], csv: bool) -> String {
    let names: Vec<&str> = columns
        .iter()
        .map(|column| match column {
            Column::Extra(name) => name,
            Column::Figure(figure) => figure.name.as_str(),
        })
        .collect();
    let cells = || names.iter().map(|name| csv_cell(name)).collect::<Vec<_>>().join(",");
    if csv { cells() + "\n" } else { format!("# {}\n", names.join(" ")) }
}

fn line(
    text: &mut String,
    entries: &[Placed<'_>],
    columns: &[Column<'_>],
    first: f64,
    options: &TraceOptions,
) {
    let logs = entries.iter().map(|entry| entry.log).max().map_or(0, |last| last + 1);
    let of_log = |log| entries.iter().filter(move |entry| entry.log == log).map(|entry| entry.interval);
    let scopes =
        (0..logs).filter(|&log| of_log(log).next().is_some()).map(|log| Scope::of_intervals(of_log(log)));
    let Some(scope) = Scope::concurrent(scopes) else { return };
    let begin = entries.iter().map(|entry| entry.begin).fold(f64::MAX, f64::min);
    let end = entries.iter().map(|entry| entry.end).fold(f64::MIN, f64::max);
    let time = |at: f64| match options.time_unit_s {
        Some(unit) => format!("{:.3}", (at - first) / unit),
        None => format!("{at:.3}"),
    };
    let wanted = columns.iter().filter_map(|column| match column {
        Column::Figure(figure) => Some(*figure),
        Column::Extra(_) => None,
    });
    let mut values = figures::extract(wanted, &scope).into_iter();
    for (number, column) in columns.iter().enumerate() {
        let separator = match (number, options.csv) {
            (0, _) => "",
            (_, true) => ",",
            (_, false) => " ",
        };
        text.push_str(separator);
        let _ = match column {
            Column::Figure(figure) => match (values.next().flatten(), options.csv) {
                (None, true) => Ok(()),
                (value, true) => write!(text, "{}", value.unwrap_or(-1.0)),
                (value, false) => write!(text, "{}", figure.print(value.unwrap_or(-1.0))),
            },
            Column::Extra("time") => write!(text, "{}", time((begin + end) / 2.0)),
            Column::Extra("interval.start") => write!(text, "{}", time(begin)),
            Column::Extra("interval.end") => write!(text, "{}", time(end)),
            Column::Extra("interval.entries") => write!(text, "{}", entries.len()),
            Column::Extra(_) => {
                let phase = entries.last().map_or("?", |entry| entry.phase);
                if options.csv { write!(text, "{}", csv_cell(phase)) } else { write!(text, "{phase}") }
            }
        };
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testlog::Run;

    fn run() -> Run {
        // Intervals of a second.
        Run { phases: [2.0, 6.0, 1.0], ..Run::default() }
    }

    fn trace(logs: &[Log], objects: &str, change: impl Fn(&mut TraceOptions)) -> Vec<Vec<String>> {
        let objects = objects.split(',').map(str::to_owned).collect();
        let mut options = TraceOptions { objects, time_unit_s: Some(1.0), ..TraceOptions::default() };
        change(&mut options);
        let text = ltrace(logs, &options).unwrap().text;
        text.lines().skip(1).map(|line| line.split([' ', ',']).map(str::to_owned).collect()).collect()
    }

    #[test]
    fn windows_follow_each_other() {
        let columns = "time,interval.start,interval.end,interval.entries,name";
        let rows = trace(&[run().client()], columns, |options| options.window_s = 4.0);
        assert_eq!(
            rows,
            [
                ["2.000", "0.000", "4.000", "4", "meas"],
                ["6.000", "4.000", "8.000", "4", "meas"],
                ["8.500", "8.000", "9.000", "1", "cool"]
            ]
        );
        let minutes = trace(&[run().client()], "time", |options| options.time_unit_s = Some(60.0));
        assert_eq!(minutes, [["0.075"]]);
        let absolute = trace(&[run().client()], "interval.start", |options| options.time_unit_s = None);
        assert_eq!(absolute, [["920863899.000"]]);
    }

    #[test]
    fn windows_slide_by_an_interval() {
        let rows = trace(&[run().client()], "interval.start,interval.entries", |options| {
            (options.window_s, options.smooth_slide) = (4.0, true);
        });
        let starts: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(starts, ["0.000", "1.000", "2.000", "3.000", "4.000", "5.000", "6.000", "7.000", "8.000"]);
        assert_eq!(
            rows.iter().map(|row| row[1].as_str()).collect::<Vec<_>>(),
            ["4", "4", "4", "4", "4", "4", "3", "2", "1"]
        );
    }

    #[test]
    fn nothing_is_lost_and_logs_merge() {
        let (one, mut two) = (run().client(), Run { seed: 2, ..run() }.client());
        let sum = |rows: &[Vec<String>]| rows.iter().map(|row| row[0].parse::<u64>().unwrap()).sum::<u64>();
        let window = |options: &mut TraceOptions| options.window_s = 2.0;
        let each = [&one, &two].map(|log| log.log.intervals().map(|i| i.block.xacts.entered).sum::<u64>());
        assert_eq!(sum(&trace(std::slice::from_ref(&one), "xact.started", window)), each[0]);
        // Begun three seconds later: windows of one alone, of both, of the other alone.
        two.log.header.start_unix_ns += 3_000_000_000;
        let both = [one, two];
        let rows = trace(&both, "xact.started,log.count,duration", window);
        assert_eq!(sum(&rows), each[0] + each[1]);
        assert_eq!((rows[0][1].as_str(), rows[2][1].as_str(), rows.len()), ("1", "2", 6));
        let rows = trace(&both, "xact.started,log.count", |options| {
            (options.window_s, options.sync_times) = (2.0, true);
        });
        assert!(rows.iter().all(|row| row[1] == "2") && rows.len() == 5);
        assert_eq!(sum(&rows), each[0] + each[1]);
    }

    #[test]
    fn unknown_names_are_told() {
        let options = |objects: &[&str]| TraceOptions {
            objects: objects.iter().map(|&name| name.to_owned()).collect(),
            csv: true,
            ..TraceOptions::default()
        };
        let log = [run().client()];
        let trace = ltrace(&log, &options(&["name", "zzz", "hit.age"])).unwrap();
        assert_eq!(trace.unknown.len(), 1);
        assert!(trace.text.starts_with("name,hit.age.count,hit.age.mean,"), "{}", trace.text);
        // What is undefined is an empty cell.
        assert!(trace.text.lines().nth(1).unwrap().starts_with("cool,0,,,"), "{}", trace.text);
        assert!(matches!(ltrace(&log, &options(&["icp"])), Err(LxError::NoSuchObject(_))));
        let server = TraceOptions { side: LxSide::Server, ..options(&["name"]) };
        assert!(matches!(ltrace(&log, &server), Err(LxError::NoSuchSide("server"))));
    }
}
