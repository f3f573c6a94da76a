//! The figures: every number that `lx`, the reports and the console show, with its one definition and unit.
//!
//! Classic names of the 1.x extractor come first, then the dotted names of later versions. Where the original
//! gives a name to something that is not measured here, the name is missing rather than zero.

use std::collections::HashMap;
use std::sync::LazyLock;

use polygraph_stats::{Block, Class, ErrorKind, Hist, Level, Tally};

use crate::scope::Scope;

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of things, printed without decimals.
    Count,
    /// A mean or level of things.
    Things,
    /// Events per second.
    PerSecond,
    /// Milliseconds.
    Ms,
    /// Microseconds.
    Us,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Megabits (10^6 bits) per second.
    Mbps,
    /// Percent.
    Percent,
}

impl Unit {
    /// The unit as it is written behind a number; empty for plain numbers.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Count | Unit::Things => "",
            Unit::PerSecond => "/s",
            Unit::Ms => "ms",
            Unit::Us => "us",
            Unit::Seconds => "s",
            Unit::Bytes => "bytes",
            Unit::Mbps => "Mbit/s",
            Unit::Percent => "%",
        }
    }
}

type Compute = Box<dyn Fn(&Scope) -> Option<f64> + Send + Sync>;

/// A number with a name and a definition.
pub struct Figure {
    /// Its name, for example `req_rate` or `baseline.rptm.mean`.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// What it is.
    pub definition: String,
    compute: Compute,
}

impl Figure {
    /// Its value in a scope; `None` if it is undefined there.
    pub fn of(&self, scope: &Scope) -> Option<f64> {
        (self.compute)(scope)
    }

    /// A value as it is printed: counts as integers, all else with two decimals.
    pub fn print(&self, value: f64) -> String {
        match self.unit {
            Unit::Count => format!("{value:.0}"),
            _ => format!("{value:.2}"),
        }
    }
}

impl std::fmt::Debug for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Figure({})", self.name)
    }
}

static TABLE: LazyLock<Vec<Figure>> = LazyLock::new(table);
static INDEX: LazyLock<HashMap<&'static str, &'static Figure>> =
    LazyLock::new(|| TABLE.iter().map(|figure| (figure.name.as_str(), figure)).collect());

/// All figures in the order of printing.
pub fn all() -> &'static [Figure] {
    &TABLE
}

/// The figure with that name.
pub fn find(name: &str) -> Option<&'static Figure> {
    INDEX.get(name).copied()
}

/// The value of a figure that is known to exist.
pub(crate) fn value(name: &str, scope: &Scope) -> Option<f64> {
    find(name).unwrap_or_else(|| panic!("figure {name} is in the table")).of(scope)
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

fn percent(part: f64, whole: f64) -> Option<f64> {
    ratio(100.0 * part, whole)
}

const HIT: &[Class] = &[Class::Hit];
const NOT_HIT: &[Class] = &[Class::Miss, Class::Uncachable];
const FILL: &[Class] = &[Class::Miss];
const UNCACHABLE: &[Class] = &[Class::Uncachable];
const CACHABLE: &[Class] = &[Class::Hit, Class::Miss];

mod wire;

pub(crate) use wire::SPECIAL;
pub use wire::of_contents;

/// Collects the table.
#[derive(Default)]
struct Table(Vec<Figure>);

impl Table {
    fn one(
        &mut self,
        name: &str,
        unit: Unit,
        definition: &str,
        compute: impl Fn(&Scope) -> Option<f64> + Send + Sync + 'static,
    ) {
        let figure =
            Figure { name: name.into(), unit, definition: definition.into(), compute: Box::new(compute) };
        self.0.push(figure);
    }

    /// A further name for the figure `original`.
    fn alias(&mut self, name: &str, original: &'static str) {
        let known =
            self.0.iter().find(|figure| figure.name == original).expect("aliases follow their originals");
        let (unit, definition) = (known.unit, format!("{} (same as {original})", known.definition));
        self.one(name, unit, &definition, move |scope| value(original, scope));
    }

    /// The aggregates of a histogram. Values are multiplied by `scale`; `unit` is the unit after that.
    fn hist(
        &mut self,
        prefix: &str,
        what: &str,
        unit: Unit,
        scale: f64,
        pick: impl Fn(&Scope) -> Hist + Send + Sync + Clone + 'static,
    ) {
        let mut add = |leaf: &str, unit: Unit, text: String, compute: fn(&Hist, f64) -> Option<f64>| {
            let pick = pick.clone();
            self.one(&format!("{prefix}.{leaf}"), unit, &text, move |scope| compute(&pick(scope), scale));
        };
        add("count", Unit::Count, format!("number of values: {what}"), |hist, _| Some(hist.count() as f64));
        add("mean", unit, format!("mean of {what}"), |hist, scale| Some(hist.mean()? * scale));
        add("min", unit, format!("smallest {what}"), |hist, scale| Some(hist.min()? as f64 * scale));
        add("max", unit, format!("largest {what}"), |hist, scale| Some(hist.max()? as f64 * scale));
        add("std_dev", unit, format!("standard deviation of the sample: {what}"), |hist, scale| {
            Some(hist.std_dev()? * scale)
        });
        add(
            "rel_dev",
            Unit::Percent,
            format!("standard deviation in percent of the mean: {what}"),
            |hist, _| percent(hist.std_dev()?, hist.mean()?),
        );
        add("sum", unit, format!("sum of {what}"), |hist, scale| Some(hist.sum() * scale));
        for (leaf, q) in PERCENTILES {
            let pick = pick.clone();
            let text = format!("{} % of all values do not exceed it: {what}", q * 100.0);
            self.one(&format!("{prefix}.{leaf}"), unit, &text, move |scope| {
                Some(pick(scope).quantile(q)? as f64 * scale)
            });
        }
    }

    /// Response time from the due start of some classes.
    fn due(&mut self, prefix: &str, what: &str, classes: &'static [Class]) {
        let what = format!("response time from the due start, {what}");
        self.hist(&format!("{prefix}.due_rptm"), &what, Unit::Ms, 1e-3, move |scope| {
            scope.over(classes, |stats| &stats.due_rptm_us)
        });
    }

    /// Response time and size of some classes.
    fn class(&mut self, prefix: &str, what: &str, classes: &'static [Class]) {
        self.hist(
            &format!("{prefix}.rptm"),
            &format!("response time of {what}"),
            Unit::Ms,
            1e-3,
            move |scope| scope.over(classes, |stats| &stats.rptm_us),
        );
        self.hist(
            &format!("{prefix}.size"),
            &format!("reply size of {what}"),
            Unit::Bytes,
            1.0,
            move |scope| scope.over(classes, |stats| &stats.size),
        );
    }

    /// A count and its volume, under the names of an aggregate of sizes.
    fn pair(
        &mut self,
        prefix: &str,
        what: &str,
        pick: impl Fn(&Scope) -> Tally + Send + Sync + Clone + 'static,
    ) {
        let count = pick.clone();
        self.one(&format!("{prefix}.size.count"), Unit::Count, &format!("number of {what}"), move |s| {
            Some(count(s).count as f64)
        });
        self.one(&format!("{prefix}.size.sum"), Unit::Bytes, &format!("reply bytes of {what}"), move |s| {
            Some(pick(s).bytes as f64)
        });
    }

    fn level(&mut self, started: &str, level: &str, what: &str, pick: fn(&Block) -> &Level) {
        self.one(&format!("{started}.started"), Unit::Count, &format!("{what} begun"), move |scope| {
            Some(pick(&scope.block).entered as f64)
        });
        self.one(&format!("{started}.finished"), Unit::Count, &format!("{what} ended"), move |scope| {
            Some(pick(&scope.block).left as f64)
        });
        self.one(
            &format!("{level}.level.mean"),
            Unit::Things,
            &format!("mean number of {what} at a time, weighted by time"),
            move |scope| pick(&scope.block).mean(scope.seconds),
        );
        self.one(
            &format!("{level}.level.last"),
            Unit::Count,
            &format!("number of {what} at the end"),
            move |scope| Some(pick(&scope.block).last as f64),
        );
        self.one(
            &format!("{level}.level.peak"),
            Unit::Count,
            &format!("largest number of {what} at a time (sum of the loops' largest: an upper bound)"),
            move |scope| Some(pick(&scope.block).peak as f64),
        );
    }
}

const PERCENTILES: [(&str, f64); 7] = [
    ("p5", 0.05),
    ("p50", 0.50),
    ("p75", 0.75),
    ("p90", 0.90),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p999", 0.999),
];

fn table() -> Vec<Figure> {
    let mut table = Table::default();
    classic(&mut table);
    dotted(&mut table);
    table.0
}

/// The names of the 1.x extractor.
fn classic(table: &mut Table) {
    use Unit::{Bytes, Count, Ms, PerSecond, Percent, Things};
    let t = table;
    t.one("log_cnt", Count, "number of logs", |s| Some(s.logs as f64));
    t.one("req_rate", PerSecond, "offered rate: transactions started per second", |s| {
        s.rate(s.block.xacts.entered as f64)
    });
    t.one("rep_rate", PerSecond, "measured rate: transactions ended per second, failed ones included", |s| {
        s.rate(s.block.xacts.left as f64)
    });
    t.one("resp_tm_mean", Ms, "mean response time, from the actual start to the last byte", |s| {
        Some(s.all.rptm_us.mean()? * 1e-3)
    });
    t.one("conn_ttl_mean", Ms, "mean lifetime of closed connections", |s| {
        Some(s.block.conn_ttl_us.mean()? * 1e-3)
    });
    t.one("req_dhr", Percent, "offered document hit ratio: share of repeats of cachable objects", |s| {
        Some(100.0 * s.block.offered_hit_ratio()?)
    });
    t.one(
        "rep_dhr",
        Percent,
        "measured document hit ratio: share of replies that did not come first hand",
        |s| Some(100.0 * s.block.hit_ratio()?),
    );
    t.one("err_cnt", Count, "failed transactions", |s| Some(s.block.failed_count() as f64));
    t.one("err_pct", Percent, "failed transactions among all that ended", |s| {
        Some(100.0 * s.block.error_ratio()?)
    });
    t.one("req_bhr", Percent, "offered byte hit ratio", |s| Some(100.0 * s.block.offered_byte_hit_ratio()?));
    t.one("rep_bhr", Percent, "measured byte hit ratio", |s| Some(100.0 * s.block.byte_hit_ratio()?));
    for (leaf, q) in PERCENTILES {
        let text = format!("{} % of the response times do not exceed it", q * 100.0);
        t.one(&format!("resp_tm_{leaf}"), Ms, &text, move |s| Some(s.all.rptm_us.quantile(q)? as f64 * 1e-3));
    }
    t.one("due_resp_tm_mean", Ms, "mean response time from the moment the request was due", |s| {
        Some(s.all.due_rptm_us.mean()? * 1e-3)
    });
    t.one("rptm_mean:hit", Ms, "mean response time of hits", |s| {
        Some(s.block.class(Class::Hit).rptm_us.mean()? * 1e-3)
    });
    t.one("rptm_mean:miss", Ms, "mean response time of all that were no hits", |s| {
        Some(s.over(NOT_HIT, |stats| &stats.rptm_us).mean()? * 1e-3)
    });
    t.one("rep_sz_mean", Bytes, "mean reply size, head and body", |s| s.all.size.mean());
    t.one("conn_use_mean", Things, "mean number of transactions of closed connections", |s| {
        s.block.conn_uses.mean()
    });
    t.one("conn_lvl_mean", Things, "mean number of open connections, weighted by time", |s| {
        s.block.conns.mean(s.seconds)
    });
}

/// The dotted names of the later extractors, and ours in their manner.
fn dotted(table: &mut Table) {
    use Unit::{Bytes, Count, Mbps, Ms, PerSecond, Percent, Seconds, Things, Us};
    let t = table;
    t.one("duration", Seconds, "duration: the longest of concurrent processes, the sum of phases", |s| {
        Some(s.seconds)
    });
    t.alias("baseline.req.rate", "req_rate");
    t.alias("baseline.rep.rate", "rep_rate");
    t.hist("baseline.rptm", "response time of all transactions", Ms, 1e-3, |s| s.all.rptm_us.clone());
    t.hist("baseline.due_rptm", "response time from the due start", Ms, 1e-3, |s| s.all.due_rptm_us.clone());
    t.hist("baseline.rep.size", "reply size of all transactions", Bytes, 1.0, |s| s.all.size.clone());
    t.hist("rep.rptm", "response time of all replies, without aborted ones", Ms, 1e-3, |s| {
        s.over(wire::REPLIES, |stats| &stats.rptm_us)
    });
    t.hist("rep.size", "size of all replies, without aborted ones", Bytes, 1.0, |s| {
        s.over(wire::REPLIES, |stats| &stats.size)
    });
    t.one("rep.bwidth", Mbps, "reply bytes of good transactions per second", |s| {
        s.rate(s.block.ok_bytes() * 8e-6)
    });
    t.alias("offered.hit.ratio.obj", "req_dhr");
    t.alias("offered.hit.ratio.byte", "req_bhr");
    t.one(
        "offered.hit.size.count",
        Count,
        "basic transactions that a perfect cache would have answered",
        |s| Some(s.block.offered_hits.count as f64),
    );
    t.one("offered.hit.size.sum", Bytes, "reply bytes of offered hits", |s| {
        Some(s.block.offered_hits.bytes as f64)
    });
    t.alias("hit.ratio.obj", "rep_dhr");
    t.alias("hit.ratio.byte", "rep_bhr");
    t.class("hit", "hits", HIT);
    t.class("miss", "replies that are no hits", NOT_HIT);
    t.one("cachable.ratio.obj", Percent, "share of basic replies that are hits or cachable misses", |s| {
        percent(s.block.count_of(CACHABLE) as f64, s.block.count_of(&Class::BASIC) as f64)
    });
    t.one(
        "cachable.ratio.byte",
        Percent,
        "share of basic reply bytes that are hits or cachable misses",
        |s| percent(s.block.bytes_of(CACHABLE), s.block.bytes_of(&Class::BASIC)),
    );
    t.class("cachable", "hits and cachable misses", CACHABLE);
    t.class("uncachable", "uncachable replies", UNCACHABLE);
    t.class("fill", "cachable misses", FILL);
    for (prefix, what, classes) in [
        ("hit", "hits", HIT),
        ("miss", "replies that are no hits", NOT_HIT),
        ("fill", "cachable misses", FILL),
    ] {
        t.due(prefix, what, classes);
    }
    wire::misses(t);
    wire::classes(t);
    t.level("xact", "xact", "transactions", |block| &block.xacts);
    t.one("ok_xact.count", Count, "transactions that ended well", |s| Some(s.block.ok_count() as f64));
    t.one("ok_xact.rate", PerSecond, "transactions that ended well per second", |s| {
        s.rate(s.block.ok_count() as f64)
    });
    t.alias("err_xact.ratio", "err_pct");
    t.alias("err_xact.count", "err_cnt");
    t.one("retr_xact.count", Count, "transactions begun again after a persistent-connection race", |s| {
        Some(s.block.retried as f64)
    });
    t.level("conn.open", "conn.open", "open connections", |block| &block.conns);
    t.level("baseline", "baseline", "transactions", |block| &block.xacts);
    t.hist("conn.ttl", "lifetime of closed connections", Ms, 1e-3, |s| s.block.conn_ttl_us.clone());
    t.hist("conn.use", "transactions of closed connections", Things, 1.0, |s| s.block.conn_uses.clone());
    wire::exchange(t);
    t.one("so_read.size.sum", Bytes, "bytes read from sockets", |s| Some(s.block.bytes_read as f64));
    t.one("so_write.size.sum", Bytes, "bytes written to sockets", |s| Some(s.block.bytes_written as f64));
    t.one("errors.count", Count, "errors, those that were only noted included", |s| {
        Some((s.block.failed_count() + s.block.noted_count()) as f64)
    });
    t.one("errors.noted.count", Count, "errors of transactions that ended well nevertheless", |s| {
        Some(s.block.noted_count() as f64)
    });
    wire::verification(t);
    for kind in ErrorKind::all() {
        let text = format!("errors {}: {}", kind.number(), kind.text());
        t.one(&format!("errors.{}.count", kind.name()), Count, &text, move |s| {
            Some(error_count(&s.block, kind))
        });
    }
    t.hist("late", "lateness of starts: actual minus due", Ms, 1e-3, |s| s.block.late_us.clone());
    t.one("cpu.busiest.share", Percent, "share of the time that the busiest event loop was at work", |s| {
        Some(100.0 * s.busiest_share?)
    });
    t.one("cpu.xact.time", Us, "processor time of the event loops per ended transaction", |s| {
        ratio(s.cpu_seconds * 1e6, s.ended_count() as f64)
    });
    t.one("rss.size", Bytes, "resident memory, largest of each process, sum over processes", |s| {
        (s.rss_bytes > 0).then_some(s.rss_bytes as f64)
    });
    t.one("clock.step", Ms, "largest step of the time-of-day clock in an interval", |s| {
        Some(s.clock_step_ns as f64 * 1e-6)
    });
    t.alias("log.count", "log_cnt");
}

/// How often an error was counted.
pub(crate) fn error_count(block: &Block, kind: ErrorKind) -> f64 {
    block.errors[kind] as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_defined() {
        let mut seen = std::collections::HashSet::new();
        for figure in all() {
            assert!(seen.insert(&figure.name), "{} is there twice", figure.name);
            assert!(!figure.definition.is_empty(), "{}", figure.name);
        }
    }

    #[test]
    fn nothing_measured_is_undefined_not_zero() {
        let empty = Scope::default();
        for name in ["req_rate", "resp_tm_mean", "rep_dhr", "err_pct", "late.p99", "cpu.xact.time"] {
            assert_eq!(value(name, &empty), None, "{name}");
        }
        assert_eq!(value("err_cnt", &empty), Some(0.0));
    }

    #[test]
    fn every_figure_of_the_series_exists() {
        crate::series::FIGURES.iter().for_each(|name| assert!(find(name).is_some(), "{name}"));
    }
}
