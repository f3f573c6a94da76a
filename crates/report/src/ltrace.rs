//! Figures over time: a table with a line for each window.
//!
//! Within a log the intervals of a window are concatenated, then logs are merged (docs/reference/statistics.md, "Merging and concatenation").

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use polygraph_stats::{Interval, Record};

use crate::figures::{self, Figure, TableEntry};
use crate::lx::{LxError, LxSide, Unknown, contents, logs_of, select};
use crate::mixed::{LogOfRun, sentences};
use crate::scope::{Scope, ScopeBuilder};
use crate::source::{LogSource, RecordSource, offset_s};
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
    /// What is missing in the logs, in sentences.
    pub missing: Vec<String>,
    /// Why the figures may not be those of one run, in the words of the verdict.
    pub mixed: Vec<String>,
}

/// A column.
enum Column<'a> {
    Extra(&'static str),
    Figure(&'a Figure),
}

/// An interval with its time in seconds since 1970.
struct Placed {
    log: usize,
    begin: f64,
    end: f64,
    interval: Box<Interval>,
}

/// Makes the table in one walk over the logs, or two if the names of some figures depend on all of them. Only the
/// statistics of the current window are in memory.
///
/// # Errors
/// If there is no log of the side, no interval, or none of the requested figures.
pub fn ltrace<S: LogSource>(logs: &[S], options: &TraceOptions) -> Result<Trace, LxError> {
    let logs = logs_of(logs, options.side)?;
    let of_run = figures::of_run(contents(&logs), &statuses(&logs, &options.objects));
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
    let mut intervals = InOrder::new(&logs, options.sync_times);
    let Some(first) = intervals.begin() else { return Err(LxError::NothingMeasured) };
    if columns.is_empty() {
        return Err(LxError::NoSuchObject(unknown));
    }
    let mut text = head(&columns, options.csv);
    let table = TraceTable { logs: &logs, columns, first, options };
    match options.smooth_slide {
        false => table.windows(&mut text, &mut intervals),
        true => table.sliding(&mut text, &mut intervals),
    }
    Ok(Trace { text, unknown, missing: intervals.missing(), mixed: intervals.mixed(&logs) })
}

/// The status codes in all intervals, if one of the names may be that of a figure of a status code.
fn statuses<S: LogSource>(logs: &[&S], objects: &[String]) -> Vec<u16> {
    if !objects.iter().any(|object| figures::of_statuses(object)) {
        return Vec::new();
    }
    let mut statuses = Vec::new();
    for record in logs.iter().flat_map(|log| log.records()) {
        if let Record::Interval(interval) = &*record {
            statuses.extend(interval.block.statuses());
            statuses.sort_unstable();
            statuses.dedup();
        }
    }
    statuses
}

/// The intervals of all logs in the order of their starts. One interval of each log is in memory.
struct InOrder<'a> {
    logs: Vec<OneLog<'a>>,
}

struct OneLog<'a> {
    records: RecordSource<'a>,
    /// Start of the log in seconds since 1970.
    offset: f64,
    next: Option<Box<Interval>>,
    /// End of the last interval so far, in nanoseconds since the start of the log.
    last_ns: u64,
    closed: bool,
}

impl OneLog<'_> {
    fn advance(&mut self) -> Option<Box<Interval>> {
        let next = self.records.find_map(|record| match record {
            Cow::Owned(Record::Interval(interval)) => Some(interval),
            Cow::Borrowed(Record::Interval(interval)) => Some(interval.clone()),
            other => {
                self.closed |= matches!(*other, Record::End { .. });
                None
            }
        });
        self.last_ns = next.as_ref().map_or(self.last_ns, |interval| interval.end_ns);
        std::mem::replace(&mut self.next, next)
    }

    fn begin(&self) -> Option<f64> {
        self.next.as_ref().map(|interval| self.offset + interval.begin_ns as f64 * 1e-9)
    }
}

impl<'a> InOrder<'a> {
    fn new<S: LogSource>(logs: &[&'a S], sync_times: bool) -> InOrder<'a> {
        let start = |log: &S| log.header().start_unix_ns as f64 * 1e-9;
        let earliest = logs.iter().map(|log| start(log)).reduce(f64::min).unwrap_or(0.0);
        let open = |log: &'a S| {
            let mut one =
                OneLog { records: log.records(), offset: start(log), next: None, last_ns: 0, closed: false };
            one.advance();
            if sync_times {
                let first = one.next.as_ref().map_or(0.0, |interval| interval.begin_ns as f64 * 1e-9);
                one.offset = earliest - first;
            }
            one
        };
        InOrder { logs: logs.iter().map(|log| open(log)).collect() }
    }

    /// The log with the earliest next interval, and the start of that interval.
    fn earliest(&self) -> Option<(usize, f64)> {
        let begins = self.logs.iter().enumerate().filter_map(|(log, one)| Some((log, one.begin()?)));
        begins.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Start of the next interval.
    fn begin(&self) -> Option<f64> {
        self.earliest().map(|(_, begin)| begin)
    }

    /// What is missing in the logs, in sentences; known only after the last interval.
    fn missing(&self) -> Vec<String> {
        self.logs.iter().flat_map(|log| log.records.missing()).cloned().collect()
    }

    /// Why the logs may not be those of one run, in sentences; known only after the last interval.
    fn mixed<S: LogSource>(&self, logs: &[&S]) -> Vec<String> {
        let start_unix_ns = logs.iter().map(|log| log.header().start_unix_ns).min().unwrap_or(0);
        let all = logs.iter().zip(&self.logs).map(|(log, one)| {
            let begin_s = offset_s(log.header(), start_unix_ns);
            LogOfRun {
                log: log.name(),
                header: log.header(),
                begin_s,
                last_s: begin_s + one.last_ns as f64 * 1e-9,
                closed: one.closed,
            }
        });
        sentences(&all.collect::<Vec<_>>())
    }
}

impl Iterator for InOrder<'_> {
    type Item = Placed;

    fn next(&mut self) -> Option<Placed> {
        let (log, begin) = self.earliest()?;
        let one = &mut self.logs[log];
        let interval = one.advance()?;
        Some(Placed { log, begin, end: one.offset + interval.end_ns as f64 * 1e-9, interval })
    }
}

/// The intervals of a window, folded by log.
#[derive(Default)]
struct TraceWindow {
    logs: BTreeMap<usize, ScopeBuilder>,
    begin: Option<f64>,
    end: f64,
    entries: usize,
    /// Log and phase of the last interval.
    last: Option<(usize, u32)>,
}

impl TraceWindow {
    fn add(&mut self, placed: &Placed) {
        self.logs.entry(placed.log).or_default().add(&placed.interval);
        self.begin = Some(self.begin.unwrap_or(placed.begin).min(placed.begin));
        self.end = if self.entries == 0 { placed.end } else { self.end.max(placed.end) };
        self.entries += 1;
        self.last = Some((placed.log, placed.interval.phase));
    }
}

struct TraceTable<'a, S> {
    logs: &'a [&'a S],
    columns: Vec<Column<'a>>,
    /// Start of the first interval.
    first: f64,
    options: &'a TraceOptions,
}

impl<S: LogSource> TraceTable<'_, S> {
    /// Lines for windows that follow each other.
    fn windows(&self, text: &mut String, intervals: &mut InOrder<'_>) {
        let mut window = TraceWindow::default();
        for placed in intervals {
            if window.begin.is_some_and(|begin| placed.begin >= begin + self.options.window_s) {
                self.line(text, std::mem::take(&mut window));
            }
            window.add(&placed);
        }
        self.line(text, window);
    }

    /// A line for the window that begins with each interval. Holds the intervals of one window.
    fn sliding(&self, text: &mut String, intervals: &mut InOrder<'_>) {
        let mut inside: VecDeque<Placed> = VecDeque::new();
        loop {
            let begin = match inside.front() {
                Some(first) => first.begin,
                None => match intervals.begin() {
                    Some(begin) => begin,
                    None => return,
                },
            };
            while intervals.begin().is_some_and(|next| next < begin + self.options.window_s) {
                inside.extend(intervals.next());
            }
            let mut window = TraceWindow::default();
            inside.iter().for_each(|placed| window.add(placed));
            self.line(text, window);
            inside.pop_front();
        }
    }

    fn line(&self, text: &mut String, window: TraceWindow) {
        let TraceWindow { logs, begin, end, entries, last } = window;
        let Some(scope) = Scope::concurrent(logs.into_values().map(ScopeBuilder::scope)) else { return };
        let begin = begin.unwrap_or(end);
        let time = |at: f64| match self.options.time_unit_s {
            Some(unit) => format!("{:.3}", (at - self.first) / unit),
            None => format!("{at:.3}"),
        };
        let csv = self.options.csv;
        let wanted = self.columns.iter().filter_map(|column| match column {
            Column::Figure(figure) => Some(*figure),
            Column::Extra(_) => None,
        });
        let mut values = figures::extract(wanted, &scope).into_iter();
        for (number, column) in self.columns.iter().enumerate() {
            let separator = match (number, csv) {
                (0, _) => "",
                (_, true) => ",",
                (_, false) => " ",
            };
            text.push_str(separator);
            let _ = match column {
                Column::Figure(figure) => match (values.next().flatten(), csv) {
                    (None, true) => Ok(()),
                    (value, true) => write!(text, "{}", value.unwrap_or(-1.0)),
                    (value, false) => write!(text, "{}", figure.print(value.unwrap_or(-1.0))),
                },
                Column::Extra("time") => write!(text, "{}", time((begin + end) / 2.0)),
                Column::Extra("interval.start") => write!(text, "{}", time(begin)),
                Column::Extra("interval.end") => write!(text, "{}", time(end)),
                Column::Extra("interval.entries") => write!(text, "{entries}"),
                Column::Extra(_) => {
                    let phase = last.map_or("?", |(log, phase)| self.logs[log].phase_name(phase));
                    if csv { write!(text, "{}", csv_cell(phase)) } else { write!(text, "{phase}") }
                }
            };
        }
        text.push('\n');
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Log;
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
    fn logs_of_several_runs_are_told() {
        let mixed = |logs: &[Log]| {
            let options = TraceOptions { objects: vec!["dhr".to_owned()], ..TraceOptions::default() };
            ltrace(logs, &options).unwrap().mixed
        };
        let later = |s: u64| {
            let mut log = Run { seed: 2, ..run() }.client();
            log.log.header.start_unix_ns += s * 1_000_000_000;
            log
        };
        assert_eq!(mixed(&[run().client(), later(8)]), [] as [&str; 0]);
        // The first one ended after nine seconds.
        let told = mixed(&[run().client(), later(10)]);
        assert!(told.len() == 1 && told[0].starts_with("the logs come from several runs"), "{told:?}");
        // A client that was killed may have been replaced.
        let mut killed = run().client();
        killed.log.records.retain(|record| !matches!(record, Record::End { .. }));
        assert_eq!(mixed(&[killed, later(10)]), [] as [&str; 0]);
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
