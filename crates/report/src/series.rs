//! A run over time: windows of equal length, each a fold of the intervals whose middle lies in it.
//!
//! Long runs get longer windows, so that a chart has at most [`MAX_POINTS`] points and no interval is dropped.
//! Within a window the intervals of a process are concatenated, then processes are merged, as everywhere.

use std::collections::BTreeMap;

use polygraph_stats::{BinSet, ByServer, Histogram, Interval};

use crate::figures;
use crate::scope::{Scope, ScopeBuilder};

/// Maximum number of points of a series.
pub const MAX_POINTS: usize = 600;

/// Lengths of windows in seconds: round values for people.
const WINDOWS: [f64; 14] =
    [1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0];

/// The figures that every point has.
pub const FIGURES: [&str; 32] = [
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
    "cpu.throttled.share",
    "late.p99",
    "rss.size",
    "rep.bwidth",
    "req.bwidth",
    "offered.hit.ratio.byte",
    "ims.rptm.mean",
    "wait.level.mean",
    "conn.use.mean",
    "conn.open.level.mean",
    "errors.no_descriptor.count",
    "errors.queue_full.count",
    "errors.stale.count",
    "errors.expired.count",
    "errors.false_not_modified.count",
];

/// A window of a series.
#[derive(Clone, Debug)]
pub struct SeriesPoint {
    /// Middle of the window in seconds since the start of the run.
    pub at_s: f64,
    /// Seconds of the window that intervals cover.
    pub seconds: f64,
    /// Response times of all successful transactions, counted in the bins of [`bin_edges_ms`].
    pub heat: Vec<u64>,
    /// What each server counted.
    pub servers: ByServer,
    /// Values in the order of [`FIGURES`]; `None` where undefined.
    values: Vec<Option<f64>>,
}

impl SeriesPoint {
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

/// Bins of response times per decade.
const BINS_PER_DECADE: usize = 8;
/// Lower end of the first bin in microseconds.
const FIRST_BIN_US: f64 = 10.0;
/// Number of bins: 0.01 ms to 1000 s.
const BINS: usize = 8 * BINS_PER_DECADE;

/// Edges of the bins of [`SeriesPoint::heat`] in milliseconds: ascending, one more than there are bins. Values below
/// the first or above the last edge are counted in the outermost bins.
pub fn bin_edges_ms() -> Vec<f64> {
    (0..=BINS).map(|i| FIRST_BIN_US * 1e-3 * 10f64.powf(i as f64 / BINS_PER_DECADE as f64)).collect()
}

/// The histograms whose bins points are made from.
pub(crate) fn bins() -> BinSet {
    BinSet::RESPONSE_TIMES | figures::bins_of(FIGURES.iter().filter_map(|name| figures::find(name)))
}

/// Counts of response times in logarithmic bins.
fn heat(rptm_us: &Histogram) -> Vec<u64> {
    let mut bins = vec![0; BINS];
    for (us, count) in rptm_us.bins() {
        let bin = ((us as f64 / FIRST_BIN_US).log10() * BINS_PER_DECADE as f64).floor();
        bins[(bin.max(0.0) as usize).min(BINS - 1)] += count;
    }
    bins
}

/// The windows of one side, filled in order of time.
pub(crate) struct SeriesBuilder {
    window_s: f64,
    /// The number of the current window, with the statistics of each log in it.
    current: u64,
    counting: BTreeMap<usize, ScopeBuilder>,
    points: Vec<SeriesPoint>,
}

impl SeriesBuilder {
    /// Creates a series of windows of this length in seconds; an infinite length yields no points.
    pub fn new(window_s: f64) -> SeriesBuilder {
        SeriesBuilder { window_s, current: 0, counting: BTreeMap::new(), points: Vec::new() }
    }

    /// Adds an interval of log number `log` whose middle is `at_s` seconds into the run.
    pub fn add(&mut self, at_s: f64, log: usize, interval: &Interval) {
        if interval.end_ns <= interval.begin_ns || self.window_s.is_infinite() {
            return;
        }
        let window = (at_s / self.window_s) as u64;
        if window != self.current {
            self.close();
            self.current = window;
        }
        self.counting.entry(log).or_default().add(interval);
    }

    fn close(&mut self) {
        let counted = std::mem::take(&mut self.counting);
        let Some(scope) = Scope::concurrent(counted.into_values().map(ScopeBuilder::scope)) else { return };
        self.points.push(SeriesPoint {
            at_s: (self.current as f64 + 0.5) * self.window_s,
            seconds: scope.seconds,
            values: figures::extract(FIGURES.iter().filter_map(|name| figures::find(name)), &scope),
            heat: heat(scope.rptm_us()),
            servers: scope.block.servers,
        });
    }

    /// The points.
    pub fn finish(mut self) -> Vec<SeriesPoint> {
        self.close();
        self.points
    }
}
