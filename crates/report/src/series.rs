//! A run over time: windows of equal length, each a fold of the intervals whose middle lies in it.
//!
//! Long runs get longer windows, so that a chart has at most [`MAX_POINTS`] points and no interval is dropped.
//! Within a window the intervals of a process are concatenated, then processes are merged, as everywhere.

use crate::figures;
use crate::fold::{Log, offset_s};
use crate::scope::Scope;

/// No series has more points.
pub const MAX_POINTS: usize = 600;

/// Lengths of windows in seconds, for people to read.
const WINDOWS: [f64; 14] =
    [1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0];

/// The figures that every point has.
pub const FIGURES: [&str; 19] = [
    "baseline.req.rate",
    "baseline.rep.rate",
    "ok_xact.rate",
    "err_xact.count",
    "baseline.rptm.mean",
    "baseline.rptm.p50",
    "baseline.rptm.p95",
    "baseline.rptm.p99",
    "hit.rptm.mean",
    "fill.rptm.mean",
    "uncachable.rptm.mean",
    "hit.ratio.obj",
    "hit.ratio.byte",
    "offered.hit.ratio.obj",
    "conn.open.level.last",
    "xact.level.mean",
    "cpu.busiest.share",
    "late.p99",
    "rss.size",
];

/// One window.
#[derive(Clone, Debug)]
pub struct Point {
    /// Middle of the window in seconds since the start of the run.
    pub at_s: f64,
    /// Seconds in it that are covered by intervals.
    pub seconds: f64,
    /// Values in the order of [`FIGURES`]; `None` where undefined.
    values: Vec<Option<f64>>,
}

impl Point {
    /// The value of one of [`FIGURES`]; `None` if it is undefined here.
    pub fn get(&self, figure: &str) -> Option<f64> {
        FIGURES.iter().position(|&name| name == figure).and_then(|index| self.values[index])
    }
}

/// The length of the windows for a run of `seconds`.
pub fn window_s(seconds: f64) -> f64 {
    let least = seconds / MAX_POINTS as f64;
    WINDOWS.into_iter().find(|&window| window >= least).unwrap_or(least.ceil())
}

/// The series of logs of one side. Windows without intervals have no point.
pub(crate) fn of_logs(logs: &[&Log], start_unix_ns: u64) -> Vec<Point> {
    // (window, log, interval) in order of time; a log's intervals are in order already.
    let middle = |log: &Log, begin_ns: u64, end_ns: u64| {
        offset_s(log, start_unix_ns) + (begin_ns as f64 + end_ns as f64) * 0.5e-9
    };
    let placed: Vec<_> = logs
        .iter()
        .enumerate()
        .flat_map(|(index, log)| {
            log.log.intervals().map(move |i| (middle(log, i.begin_ns, i.end_ns), index, i))
        })
        .filter(|(_, _, interval)| interval.end_ns > interval.begin_ns)
        .collect();
    let Some(last) = placed.iter().map(|(at, _, _)| *at).reduce(f64::max) else { return Vec::new() };
    let window = window_s(last);
    let mut keyed: Vec<_> =
        placed.into_iter().map(|(at, log, interval)| ((at / window) as u64, log, interval)).collect();
    keyed.sort_by_key(|&(window, log, interval)| (window, log, interval.begin_ns));
    keyed
        .chunk_by(|a, b| a.0 == b.0)
        .filter_map(|chunk| {
            let scope = Scope::concurrent(
                chunk
                    .chunk_by(|a, b| a.1 == b.1)
                    .map(|of_log| Scope::of_intervals(of_log.iter().map(|(_, _, interval)| *interval))),
            )?;
            let values = FIGURES.iter().map(|name| figures::value(name, &scope)).collect();
            Some(Point { at_s: (chunk[0].0 as f64 + 0.5) * window, seconds: scope.seconds, values })
        })
        .collect()
}
