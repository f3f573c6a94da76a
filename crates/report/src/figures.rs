//! The figures: every number that `lx`, the reports, the exports and the console show, with its one definition and unit.
//!
//! Classic names of the 1.x extractor come first, then the dotted names of later versions. Figures of the original that are not
//! measured here are missing rather than zero; [`absent`] says why.
//!
//! * `values`: statistics of many values: count, extremes, distribution.
//! * `table`: the builder of the table.
//! * `basic`: the names of generation 1.x, and totals, rates and ratios over all transactions.
//! * `transactions`: classes beside the basic ones, causes of misses, connections, look-ups, cookies, verification.
//! * `detail`: breakdowns of these by step, scheme, moment or choice.
//! * `run`: figures whose names come from the logs: kinds of content, status codes.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use polygraph_stats::{BinSet, Block, ErrorKind};

use crate::scope::Scope;

pub mod absent;
mod basic;
mod detail;
mod run;
mod table;
pub(crate) mod tls;
mod transactions;
mod values;

pub use run::{RunFigures, of_any_run, of_contents, of_run, of_statuses};
pub(crate) use transactions::SPECIAL;
pub use values::{BinRow, Values};

use table::{FigureTable, NeededBins};
use values::Statistic;

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A count, printed without decimals.
    Count,
    /// A mean or level of a count.
    Things,
    /// Events per second.
    PerSecond,
    /// Time in milliseconds.
    Ms,
    /// Time in microseconds.
    Us,
    /// Time in seconds.
    Seconds,
    /// Size in bytes.
    Bytes,
    /// Megabits (10^6 bits) per second.
    Mbps,
    /// A share in percent.
    Percent,
}

impl Unit {
    /// The unit as it is written after a number; empty for plain numbers.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Count | Unit::Things => "",
            Unit::PerSecond => "/s",
            Unit::Ms => "ms",
            Unit::Us => "µs",
            Unit::Seconds => "s",
            Unit::Bytes => "bytes",
            Unit::Mbps => "Mbit/s",
            Unit::Percent => "%",
        }
    }

    /// The unit in words; never empty.
    pub fn word(self) -> &'static str {
        match self {
            Unit::Count | Unit::Things => "count",
            unit => unit.symbol(),
        }
    }
}

type ComputeOne = Box<dyn Fn(&Scope) -> Option<f64> + Send + Sync>;
type ValuesOf = Arc<dyn for<'a> Fn(&'a Scope) -> Values<'a> + Send + Sync>;

enum Compute {
    One(ComputeOne),
    /// What the figure of this name computes.
    As(&'static str),
    /// One statistic of many values.
    Of {
        pick: ValuesOf,
        statistic: Statistic,
        scale: f64,
    },
}

/// A number with a name and a definition.
pub struct Figure {
    /// Name, for example `req_rate` or `baseline.rptm.mean`.
    pub name: String,
    /// Unit of the value.
    pub unit: Unit,
    /// Definition of the figure.
    pub definition: String,
    /// Section of the table.
    pub section: &'static str,
    /// The histograms whose bins the value depends on. With these, a figure has the same value as with all bins.
    pub bins: BinSet,
    compute: Compute,
}

impl Figure {
    /// The value in a scope; `None` if it is undefined.
    pub fn of(&self, scope: &Scope) -> Option<f64> {
        match &self.compute {
            Compute::One(compute) => compute(scope),
            Compute::As(original) => value(original, scope),
            Compute::Of { pick, statistic, scale } => statistic.of(&pick(scope), *scale),
        }
    }

    /// Whether it is the other figure, or another name for it.
    pub fn is_same_as(&self, other: &Figure) -> bool {
        self.original() == other.original()
    }

    /// The name of the figure of which this one is another name, or its own.
    fn original(&self) -> &str {
        match self.compute {
            Compute::As(original) => original,
            _ => &self.name,
        }
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

impl Figure {
    /// For a statistic of many values: the name of the values and that of the statistic, for example `baseline.rptm`
    /// and `mean`.
    pub fn parts(&self) -> Option<(&str, &str)> {
        match self.compute {
            Compute::One(_) | Compute::As(_) => None,
            Compute::Of { .. } => self.name.rsplit_once('.'),
        }
    }
}

/// A named list of rows of words.
#[derive(Debug)]
pub struct List {
    /// Name, for example `errors.tbl`.
    pub name: &'static str,
    /// Definition of the list.
    pub definition: &'static str,
    /// Names of the columns.
    pub columns: &'static [&'static str],
    /// Section of the table.
    pub section: &'static str,
    rows: fn(&Scope) -> Vec<Vec<String>>,
}

impl List {
    /// The rows in a scope.
    pub fn of(&self, scope: &Scope) -> Vec<Vec<String>> {
        (self.rows)(scope)
    }
}

/// An entry of the table.
#[derive(Clone, Copy, Debug)]
pub enum TableEntry<'a> {
    /// A number.
    Figure(&'a Figure),
    /// The bins of values whose figures precede this entry.
    Distribution(&'a Distribution),
    /// A list.
    List(&'a List),
}

impl TableEntry<'_> {
    /// The name; for bins, the name of the list.
    pub fn name(&self) -> String {
        match self {
            TableEntry::Figure(figure) => figure.name.clone(),
            TableEntry::Distribution(distribution) => distribution.list_name(),
            TableEntry::List(list) => list.name.to_owned(),
        }
    }

    /// Section of the table.
    pub fn section(&self) -> &'static str {
        match self {
            TableEntry::Figure(figure) => figure.section,
            TableEntry::Distribution(distribution) => distribution.section,
            TableEntry::List(list) => list.section,
        }
    }
}

/// Values of figures in a scope, in their order. This is much faster than computing single figures, because
/// neighbouring figures are statistics of the same values.
pub fn extract<'a>(figures: impl IntoIterator<Item = &'a Figure>, scope: &Scope) -> Vec<Option<f64>> {
    let mut last: Option<(&ValuesOf, Values<'_>)> = None;
    let mut value = |figure: &'a Figure| {
        let (pick, statistic, scale) = match &figure.compute {
            Compute::One(compute) => return compute(scope),
            Compute::As(original) => return self::value(original, scope),
            Compute::Of { pick, statistic, scale } => (pick, statistic, *scale),
        };
        if !last.as_ref().is_some_and(|(known, _)| Arc::ptr_eq(known, pick)) {
            last = Some((pick, pick(scope)));
        }
        last.as_ref().and_then(|(_, values)| statistic.of(values, scale))
    };
    figures.into_iter().map(&mut value).collect()
}

/// Values whose bins are known: the figures `NAME.mean`, `NAME.p95` and so on are their statistics.
pub struct Distribution {
    /// Name, for example `baseline.rptm`; the list of its bins has the name `NAME.hist`.
    pub name: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Definition of the values.
    pub definition: String,
    /// Section of the table.
    pub section: &'static str,
    /// Factor that converts values of the log to the unit.
    pub scale: f64,
    /// Width of the bins in percent of the values: 0.1 or 6.
    pub width_percent: f64,
    bins: NeededBins,
    pick: ValuesOf,
}

impl Distribution {
    /// The values in a scope, in the unit of the log.
    pub fn of<'a>(&self, scope: &'a Scope) -> Values<'a> {
        (self.pick)(scope)
    }

    /// The name of the list of bins.
    pub fn list_name(&self) -> String {
        format!("{}.hist", self.name)
    }
}

impl std::fmt::Debug for Distribution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Distribution({})", self.name)
    }
}

static TABLE: LazyLock<FigureTable> = LazyLock::new(|| {
    let mut table = FigureTable::default();
    basic::classic(&mut table);
    basic::dotted(&mut table);
    table
});
static INDEX: LazyLock<HashMap<&'static str, &'static Figure>> =
    LazyLock::new(|| all().iter().map(|figure| (figure.name.as_str(), figure)).collect());

/// All figures in the order of printing.
pub fn all() -> &'static [Figure] {
    &TABLE.figures
}

/// Everything in the order of printing.
pub fn entries<'a>() -> impl Iterator<Item = TableEntry<'a>> {
    let table: &'a FigureTable = &TABLE;
    table.entries()
}

/// All distributions in the order of printing.
pub fn distributions() -> &'static [Distribution] {
    &TABLE.distributions
}

/// The figure with this name.
pub fn find(name: &str) -> Option<&'static Figure> {
    INDEX.get(name).copied()
}

/// The histograms whose bins are needed for the values of these figures.
pub fn bins_of<'a>(figures: impl IntoIterator<Item = &'a Figure>) -> BinSet {
    figures.into_iter().fold(BinSet::NONE, |bins, figure| bins | figure.bins)
}

/// The value of a figure that is known to exist.
pub(crate) fn value(name: &str, scope: &Scope) -> Option<f64> {
    find(name).unwrap_or_else(|| panic!("figure {name} is in the table")).of(scope)
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

pub(crate) fn percent(part: f64, whole: f64) -> Option<f64> {
    ratio(100.0 * part, whole)
}

/// The number of errors of a class.
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
    fn all_at_once_are_as_one_by_one() {
        let run = crate::testlog::Run { rich: true, phases: [1.0, 2.0, 1.0], ..Default::default() };
        let scope = crate::fold(&[run.client()]).unwrap().headline.unwrap().scope;
        let at_once = extract(all(), &scope);
        for (figure, value) in all().iter().zip(at_once) {
            assert_eq!(figure.of(&scope), value, "{}", figure.name);
        }
    }

    #[test]
    fn figures_name_the_bins_that_they_need() {
        let run = crate::testlog::Run { rich: true, phases: [1.0, 2.0, 1.0], ..Default::default() };
        for log in run.logs() {
            let scope = crate::fold(&[log]).unwrap().headline.unwrap().scope;
            let sets = [BinSet::RESPONSE_TIMES, BinSet::DUE_RESPONSE_TIMES, BinSet::SIZES, BinSet::LATENESS];
            for bins in sets.into_iter().chain([BinSet::NONE, BinSet::ALL]) {
                let mut reduced = Scope { together: Default::default(), ..scope.clone() };
                reduced.block.keep_bins(bins);
                for figure in all().iter().filter(|figure| figure.bins == bins) {
                    assert_eq!(figure.of(&reduced), figure.of(&scope), "{}", figure.name);
                }
                // No other figure gets another value: it is undefined.
                for figure in all() {
                    let value = figure.of(&reduced);
                    assert!(value.is_none() || value == figure.of(&scope), "{}", figure.name);
                }
            }
        }
    }

    #[test]
    fn bins_hold_all_values() {
        let run = crate::testlog::Run { rich: true, phases: [1.0, 2.0, 1.0], ..Default::default() };
        let scope = crate::fold(&[run.client()]).unwrap().headline.unwrap().scope;
        for distribution in distributions() {
            let values = distribution.of(&scope);
            let counted: u64 = values.rows(0.01).iter().map(|row| row.count).sum();
            assert_eq!(
                Some(counted as f64),
                value(&format!("{}.count", distribution.name), &scope),
                "{distribution:?}"
            );
        }
    }

    #[test]
    fn every_figure_of_the_series_exists() {
        crate::series::FIGURES.iter().for_each(|name| assert!(find(name).is_some(), "{name}"));
    }
}
