//! The table of a view: a row for each process, host or side.

use std::collections::BTreeMap;
use std::time::Instant;

use polygraph_live::{LiveCounts, LiveStatistics};
use polygraph_report::text::{ms, number, percent};
use polygraph_stats::Side;
use serde_json::{Value, json};

use crate::watched::{ProcessKey, Watched, WatchedProcess};

/// What a row is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// One side of a process.
    #[default]
    Processes,
    /// All processes of a side on a host.
    Hosts,
    /// All processes of a side.
    Sides,
}

impl Grouping {
    /// The next one, for a key that goes through all of them.
    pub fn next(self) -> Grouping {
        match self {
            Grouping::Processes => Grouping::Hosts,
            Grouping::Hosts => Grouping::Sides,
            Grouping::Sides => Grouping::Processes,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Grouping::Processes => "processes",
            Grouping::Hosts => "hosts",
            Grouping::Sides => "sides",
        }
    }
}

/// Which processes are shown.
#[derive(Clone, Debug, Default)]
pub struct RowFilter {
    /// Only this side.
    pub side: Option<Side>,
    /// Words that must all occur in what is known of a process: host, label, workload, phase, state, verdict.
    pub words: String,
}

impl RowFilter {
    /// Whether a process is shown.
    pub fn shows(&self, process: &WatchedProcess, now: Instant) -> bool {
        let LiveStatistics { host, pid, side, label, workload, phase, verdict, .. } = &process.latest;
        if self.side.is_some_and(|wanted| wanted != *side) {
            return false;
        }
        let phase = phase.as_ref().map_or("", |phase| &phase.name);
        let verdict = verdict.as_ref().map_or("", |verdict| &verdict.word);
        let state = process.condition(now);
        let text = format!("{host} {pid} {} {label} {workload} {phase} {state} {verdict}", side.name());
        let text = text.to_lowercase();
        self.words.to_lowercase().split_whitespace().all(|word| text.contains(word))
    }
}

/// A row.
#[derive(Clone, Debug)]
pub struct TableRow {
    /// The name of the host; empty for a whole side.
    pub host: String,
    /// The process id; `None` if the row is about several processes.
    pub pid: Option<u32>,
    /// Client or server.
    pub side: Side,
    /// The number of processes, and how many of them run.
    pub processes: [usize; 2],
    /// The label of the run, if all processes agree.
    pub label: String,
    /// What the processes do, for example `running`, if all do the same; otherwise `mixed`.
    pub state: String,
    /// The phase, if all processes are in the same one; otherwise `mixed`.
    pub phase: String,
    /// How far the phase is, 0 to 1, if it has a planned length.
    pub progress: Option<f64>,
    /// Transactions that succeed per second now.
    pub rate: f64,
    /// The planned rate of requests per second.
    pub planned_rate: Option<f64>,
    /// What was counted in the last interval of each process that runs.
    pub interval: LiveCounts,
    /// What was counted since the start.
    pub total: LiveCounts,
    /// Open connections now.
    pub open_connections: u64,
    /// The worst verdict so far, with its meaning.
    pub verdict: Option<[String; 2]>,
}

/// Makes the rows of a view.
pub fn rows(watched: &Watched, grouping: Grouping, filter: &RowFilter, now: Instant) -> Vec<TableRow> {
    let mut rows: BTreeMap<ProcessKey, TableRow> = BTreeMap::new();
    for (key, process) in watched.processes().filter(|(_, process)| filter.shows(process, now)) {
        let key = match grouping {
            Grouping::Processes => key.clone(),
            Grouping::Hosts => ProcessKey { pid: 0, ..key.clone() },
            Grouping::Sides => ProcessKey { pid: 0, host: String::new(), side: key.side },
        };
        let row = row(&key, grouping, process, now);
        match rows.get_mut(&key) {
            Some(sum) => sum.merge(&row),
            None => drop(rows.insert(key, row)),
        }
    }
    rows.into_values().collect()
}

fn row(key: &ProcessKey, grouping: Grouping, process: &WatchedProcess, now: Instant) -> TableRow {
    let LiveStatistics { phase, interval, total, verdict, .. } = &process.latest;
    let runs = process.is_current(now);
    let interval = if runs { *interval } else { LiveCounts::default() };
    TableRow {
        host: key.host.clone(),
        pid: (grouping == Grouping::Processes).then_some(key.pid),
        side: process.latest.side,
        processes: [1, usize::from(runs)],
        label: process.latest.label.clone(),
        state: process.condition(now).to_owned(),
        phase: phase.as_ref().map_or_else(String::new, |phase| phase.name.clone()),
        progress: phase.as_ref().and_then(|phase| {
            let planned = phase.duration_s.filter(|planned| *planned > 0.0)?;
            Some((phase.elapsed_s / planned).clamp(0.0, 1.0))
        }),
        rate: interval.per_second(interval.ok).unwrap_or(0.0),
        planned_rate: process.latest.planned_rate,
        interval,
        total: *total,
        open_connections: if runs { process.latest.open_connections } else { 0 },
        verdict: verdict.as_ref().map(|verdict| [verdict.word.clone(), verdict.meaning.clone()]),
    }
}

/// How bad a verdict is.
fn severity(verdict: &Option<[String; 2]>) -> u8 {
    match verdict.as_ref().map(|[word, _]| word.as_str()) {
        None => 0,
        Some("VALID") => 1,
        Some(word) if word.starts_with("INVALID") => 2,
        Some(_) => 3,
    }
}

impl TableRow {
    fn merge(&mut self, other: &TableRow) {
        let agree = |mine: &mut String, other: &String, else_: &str| {
            if mine != other {
                else_.clone_into(mine);
            }
        };
        agree(&mut self.label, &other.label, "");
        agree(&mut self.state, &other.state, "mixed");
        agree(&mut self.phase, &other.phase, "mixed");
        self.progress = self.progress.into_iter().chain(other.progress).reduce(f64::min);
        self.processes = [self.processes[0] + other.processes[0], self.processes[1] + other.processes[1]];
        self.rate += other.rate;
        self.planned_rate = self.planned_rate.into_iter().chain(other.planned_rate).reduce(|a, b| a + b);
        self.interval.merge(&other.interval);
        self.total.merge(&other.total);
        self.open_connections += other.open_connections;
        if severity(&other.verdict) > severity(&self.verdict) {
            self.verdict.clone_from(&other.verdict);
        }
    }

    /// What the row is about: `host:pid`, a host, or the number of processes.
    pub fn name(&self) -> String {
        match (self.pid, self.processes[0]) {
            (Some(pid), _) => format!("{}:{pid}", self.host),
            (None, 1) if !self.host.is_empty() => self.host.clone(),
            (None, count) if !self.host.is_empty() => format!("{} ({count})", self.host),
            (None, count) => format!("all {count}"),
        }
    }

    /// The phase with its progress.
    pub fn phase_text(&self) -> String {
        match self.progress {
            Some(share) if self.state == "running" => format!("{} {}", self.phase, percent(share, 0)),
            _ => self.phase.clone(),
        }
    }

    /// The cells of the row, in the order of [`COLUMNS`].
    pub fn cells(&self) -> [String; COLUMNS.len()] {
        let runs = self.processes[1] > 0;
        let when = |value: f64| runs.then_some(value);
        [
            self.side.name().to_owned(),
            self.name(),
            self.state.clone(),
            self.phase_text(),
            number(when(self.rate), 1),
            ms(self.interval.mean_rptm_ms()),
            number(self.interval.hit_percent(), 1),
            number(when(self.interval.failed), 0),
            number(Some(self.total.failed), 0),
            number(self.total.error_percent(), 2),
            number(when(self.open_connections as f64), 0),
            self.verdict.as_ref().map_or_else(|| "–".to_owned(), |[word, _]| word.clone()),
        ]
    }

    /// The row for programs. Undefined figures are null.
    pub fn json(&self) -> Value {
        json!({
            "side": self.side.name(),
            "host": self.host,
            "pid": self.pid,
            "processes": self.processes[0],
            "running": self.processes[1],
            "label": self.label,
            "state": self.state,
            "phase": self.phase,
            "progress": self.progress,
            "rate": self.rate,
            "planned_rate": self.planned_rate,
            "rptm_ms": self.interval.mean_rptm_ms(),
            "dhr": self.interval.hit_percent(),
            "errors_now": self.interval.failed,
            "open_connections": self.open_connections,
            "total": {
                "ok": self.total.ok,
                "errors": self.total.failed,
                "err_pct": self.total.error_percent(),
                "rptm_ms": self.total.mean_rptm_ms(),
                "dhr": self.total.hit_percent(),
            },
            "verdict": self.verdict.as_ref().map(|[word, _]| word),
        })
    }
}

/// The columns of the table.
pub const COLUMNS: [&str; 12] = [
    "side",
    "process",
    "state",
    "phase",
    "rate/s",
    "response",
    "hits %",
    "err now",
    "errors",
    "err %",
    "open",
    "verdict so far",
];

/// The table as text, for `--once`.
pub fn text(rows: &[TableRow]) -> String {
    let mut lines = vec![COLUMNS.map(str::to_owned)];
    lines.extend(rows.iter().map(TableRow::cells));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; COLUMNS.len()] = std::array::from_fn(width);
    let mut out = String::new();
    for line in &lines {
        let cells = line.iter().zip(widths).enumerate().map(|(column, (cell, width))| {
            if is_number(column) { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}

/// Whether a column has numbers, which are aligned on the right.
pub fn is_number(column: usize) -> bool {
    (4..=10).contains(&column)
}
