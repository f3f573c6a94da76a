//! The builder of the table of figures.

use std::borrow::Cow;
use std::sync::Arc;

use polygraph_stats::{BinSet, Block, Class, ClassStats, CountAndBytes, Histogram, Level, SummaryStats};

use super::values::Statistic;
use super::{Compute, Distribution, Figure, List, TableEntry, Unit, Values, ValuesOf};
use crate::scope::Scope;

/// Collects the entries of the table.
#[derive(Default)]
pub(super) struct FigureTable {
    pub(super) figures: Vec<Figure>,
    pub(super) distributions: Vec<Distribution>,
    pub(super) lists: Vec<List>,
    pub(super) order: Vec<EntryKind>,
    section: &'static str,
}

/// The section of the next entry.
#[derive(Clone, Copy, Debug)]
pub(super) enum EntryKind {
    Figure,
    Distribution,
    List,
}

/// The bins on which figures of many values depend.
#[derive(Clone, Copy)]
pub(super) struct NeededBins {
    percentiles: BinSet,
    moments: BinSet,
}

impl NeededBins {
    /// For sums of histograms of these sets.
    pub(super) fn of_sums(percentiles: BinSet) -> NeededBins {
        NeededBins { percentiles, moments: BinSet::NONE }
    }

    /// For histograms that are computed from any bins.
    pub(super) const OF_COMPUTED: NeededBins = NeededBins { percentiles: BinSet::ALL, moments: BinSet::ALL };
}

/// The aggregates of the original: name, start of the definition, and the statistic.
const AGGREGATE: [(&str, &str, Statistic); 7] = [
    ("count", "number of values: ", Statistic::Count),
    ("mean", "mean of ", Statistic::Mean),
    ("min", "smallest ", Statistic::Min),
    ("max", "largest ", Statistic::Max),
    ("std_dev", "standard deviation of the sample: ", Statistic::StdDev),
    ("rel_dev", "standard deviation in percent of the mean: ", Statistic::RelDev),
    ("sum", "sum of ", Statistic::Sum),
];

pub(super) const PERCENTILES: [(&str, f64); 7] = [
    ("p5", 0.05),
    ("p50", 0.50),
    ("p75", 0.75),
    ("p90", 0.90),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p999", 0.999),
];

impl FigureTable {
    /// Starts a section; the entries that follow belong to it.
    pub(super) fn start_section(&mut self, title: &'static str) {
        self.section = title;
    }

    fn push(&mut self, name: String, unit: Unit, definition: String, bins: BinSet, compute: Compute) {
        self.figures.push(Figure { name, unit, definition, section: self.section, bins, compute });
        self.order.push(EntryKind::Figure);
    }

    /// A list of rows of words.
    pub(super) fn add_list(
        &mut self,
        name: &'static str,
        definition: &'static str,
        columns: &'static [&'static str],
        rows: fn(&Scope) -> Vec<Vec<String>>,
    ) {
        self.lists.push(List { name, definition, columns, section: self.section, rows });
        self.order.push(EntryKind::List);
    }

    /// The entries in the order of printing.
    pub(super) fn entries(&self) -> impl Iterator<Item = TableEntry<'_>> {
        let (mut figures, mut distributions, mut lists) =
            (self.figures.iter(), self.distributions.iter(), self.lists.iter());
        self.order.iter().filter_map(move |place| match place {
            EntryKind::Figure => figures.next().map(TableEntry::Figure),
            EntryKind::Distribution => distributions.next().map(TableEntry::Distribution),
            EntryKind::List => lists.next().map(TableEntry::List),
        })
    }

    /// Adds a number that depends on no bins.
    pub(super) fn add_figure(
        &mut self,
        name: &str,
        unit: Unit,
        definition: &str,
        compute: impl Fn(&Scope) -> Option<f64> + Send + Sync + 'static,
    ) {
        self.add_figure_of_bins(BinSet::NONE, name, unit, definition, compute);
    }

    /// Adds a number that depends on these bins.
    pub(super) fn add_figure_of_bins(
        &mut self,
        bins: BinSet,
        name: &str,
        unit: Unit,
        definition: &str,
        compute: impl Fn(&Scope) -> Option<f64> + Send + Sync + 'static,
    ) {
        self.push(name.into(), unit, definition.into(), bins, Compute::One(Box::new(compute)));
    }

    /// Adds a count, which is never undefined.
    pub(super) fn add_count(
        &mut self,
        name: &str,
        definition: &str,
        compute: impl Fn(&Scope) -> u64 + Send + Sync + 'static,
    ) {
        self.add_figure(name, Unit::Count, definition, move |scope| Some(compute(scope) as f64));
    }

    /// Adds another name for the figure `original`.
    pub(super) fn add_alias(&mut self, name: &str, original: &'static str) {
        let known = self
            .figures
            .iter()
            .find(|figure| figure.name == original)
            .expect("aliases follow their originals");
        let (unit, bins) = (known.unit, known.bins);
        let definition = format!("{} (same as {original})", known.definition);
        self.push(name.into(), unit, definition, bins, Compute::As(original));
    }

    /// Adds another name for the distribution `original` and its figures.
    pub(super) fn add_distribution_alias(&mut self, prefix: &str, original: &str) {
        let known = self.distributions.iter().find(|known| known.name == original);
        let known = known.expect("aliases follow their originals");
        let (what, unit, scale) = (known.definition.clone(), known.unit, known.scale);
        let (width, bins, pick) = (known.width_percent, known.bins, Arc::clone(&known.pick));
        let what = format!("{what} (same as {original})");
        self.add_distribution(prefix, &what, unit, scale, width, (bins, pick));
    }

    /// Adds the figures of a histogram that scopes have. Values are multiplied by `scale`; `unit` is the unit after that.
    pub(super) fn add_histogram<const DIGITS: u8>(
        &mut self,
        prefix: &str,
        what: &str,
        unit: Unit,
        scale: f64,
        pick: impl for<'a> Fn(&'a Scope) -> &'a Histogram<DIGITS> + Send + Sync + 'static,
    ) where
        for<'a> Values<'a>: From<Cow<'a, Histogram<DIGITS>>>,
    {
        self.add_histogram_of(NeededBins::of_sums(BinSet::ALL), prefix, what, unit, scale, move |scope| {
            Cow::Borrowed(pick(scope))
        });
    }

    /// Adds the figures of a histogram, which may have to be added up or computed from these bins.
    pub(super) fn add_histogram_of<const DIGITS: u8>(
        &mut self,
        bins: NeededBins,
        prefix: &str,
        what: &str,
        unit: Unit,
        scale: f64,
        pick: impl for<'a> Fn(&'a Scope) -> Cow<'a, Histogram<DIGITS>> + Send + Sync + 'static,
    ) where
        for<'a> Values<'a>: From<Cow<'a, Histogram<DIGITS>>>,
    {
        let width = if DIGITS == 1 { 6.0 } else { 0.1 };
        let picked = (bins, values_of(move |scope| pick(scope).into()));
        self.add_distribution(prefix, what, unit, scale, width, picked);
    }

    fn add_distribution(
        &mut self,
        prefix: &str,
        what: &str,
        unit: Unit,
        scale: f64,
        width_percent: f64,
        (bins, pick): (NeededBins, ValuesOf),
    ) {
        self.add_aggregate(prefix, what, unit, scale, bins.moments, &pick);
        let within = if width_percent > 1.0 { " (bins are 6 % wide)" } else { "" };
        for (statistic, q) in PERCENTILES {
            let text = format!("{} % of all values do not exceed it{within}: {what}", q * 100.0);
            let compute = Compute::Of { pick: Arc::clone(&pick), statistic: Statistic::Quantile(q), scale };
            self.push(format!("{prefix}.{statistic}"), unit, text, bins.percentiles, compute);
        }
        self.distributions.push(Distribution {
            name: prefix.to_owned(),
            unit,
            definition: what.to_owned(),
            section: self.section,
            scale,
            width_percent,
            bins,
            pick,
        });
        self.order.push(EntryKind::Distribution);
    }

    /// Adds the figures of values whose distribution is not known.
    pub(super) fn add_summary(
        &mut self,
        prefix: &str,
        what: &str,
        unit: Unit,
        pick: impl Fn(&Scope) -> SummaryStats + Send + Sync + 'static,
    ) {
        let pick = values_of(move |scope| Values::from(pick(scope)));
        self.add_aggregate(prefix, what, unit, 1.0, BinSet::NONE, &pick);
    }

    fn add_aggregate(
        &mut self,
        prefix: &str,
        what: &str,
        unit: Unit,
        scale: f64,
        bins: BinSet,
        pick: &ValuesOf,
    ) {
        for (name, text, statistic) in AGGREGATE {
            let unit = match statistic {
                Statistic::Count => Unit::Count,
                Statistic::RelDev => Unit::Percent,
                _ => unit,
            };
            let compute = Compute::Of { pick: Arc::clone(pick), statistic, scale };
            self.push(format!("{prefix}.{name}"), unit, format!("{text}{what}"), bins, compute);
        }
    }

    /// Adds response time and size of transactions.
    pub(super) fn add_time_and_size<const DIGITS: u8>(
        &mut self,
        prefix: &str,
        what: &str,
        rptm_us: impl for<'a> Fn(&'a Scope) -> Cow<'a, Histogram<DIGITS>> + Send + Sync + 'static,
        size: impl for<'a> Fn(&'a Scope) -> Cow<'a, Histogram<DIGITS>> + Send + Sync + 'static,
    ) where
        for<'a> Values<'a>: From<Cow<'a, Histogram<DIGITS>>>,
    {
        self.add_histogram_of(
            NeededBins::OF_COMPUTED,
            &format!("{prefix}.rptm"),
            &format!("response time of {what}"),
            Unit::Ms,
            1e-3,
            rptm_us,
        );
        self.add_histogram_of(
            NeededBins::OF_COMPUTED,
            &format!("{prefix}.size"),
            &format!("reply size of {what}"),
            Unit::Bytes,
            1.0,
            size,
        );
    }

    /// Adds response time and size of some classes.
    pub(super) fn add_classes(&mut self, prefix: &str, what: &str, classes: &'static [Class]) {
        let text = format!("response time of {what}");
        self.add_histogram_of(
            NeededBins::of_sums(BinSet::RESPONSE_TIMES),
            &format!("{prefix}.rptm"),
            &text,
            Unit::Ms,
            1e-3,
            |scope| scope.over(classes, |stats| &stats.rptm_us),
        );
        let text = format!("reply size of {what}");
        self.add_histogram_of(
            NeededBins::of_sums(BinSet::SIZES),
            &format!("{prefix}.size"),
            &text,
            Unit::Bytes,
            1.0,
            |scope| scope.over(classes, |stats| &stats.size),
        );
    }

    /// Adds response time and size of the class statistics that `pick` returns.
    pub(super) fn add_class_stats(
        &mut self,
        prefix: &str,
        what: &str,
        pick: impl Fn(&Scope) -> ClassStats + Send + Sync + Clone + 'static,
    ) {
        let sizes = pick.clone();
        self.add_time_and_size(
            prefix,
            what,
            move |scope| Cow::Owned(pick(scope).rptm_us),
            move |scope| Cow::Owned(sizes(scope).size),
        );
    }

    /// Adds the response time of some classes from the scheduled start.
    pub(super) fn add_due_response_time(&mut self, prefix: &str, what: &str, classes: &'static [Class]) {
        let what = format!("response time from the scheduled start, {what}");
        let name = format!("{prefix}.due_rptm");
        self.add_histogram_of(
            NeededBins::of_sums(BinSet::DUE_RESPONSE_TIMES),
            &name,
            &what,
            Unit::Ms,
            1e-3,
            |scope| scope.over(classes, |stats| &stats.due_rptm_us),
        );
    }

    /// Adds a count and its bytes, under the names of an aggregate of sizes.
    pub(super) fn add_count_and_bytes(
        &mut self,
        prefix: &str,
        what: &str,
        pick: impl Fn(&Scope) -> CountAndBytes + Send + Sync + Clone + 'static,
    ) {
        let count = pick.clone();
        self.add_count(&format!("{prefix}.size.count"), &format!("number of {what}"), move |s| {
            count(s).count
        });
        self.add_figure(
            &format!("{prefix}.size.sum"),
            Unit::Bytes,
            &format!("reply bytes of {what}"),
            move |s| Some(pick(s).bytes as f64),
        );
    }

    /// A level: `NAME.started`, `NAME.finished`, `NAME.level.mean`, `.last`, `.peak`.
    pub(super) fn add_level(&mut self, name: &str, what: &str, pick: fn(&Block) -> &Level) {
        self.add_count(&format!("{name}.started"), &format!("{what} started"), move |s| {
            pick(&s.block).entered
        });
        self.add_count(&format!("{name}.finished"), &format!("{what} ended"), move |s| pick(&s.block).left);
        self.add_figure(
            &format!("{name}.level.mean"),
            Unit::Things,
            &format!("mean number of concurrent {what}, weighted by time"),
            move |scope| pick(&scope.block).mean(scope.seconds),
        );
        self.add_count(
            &format!("{name}.level.last"),
            &format!("number of {what} at the end"),
            move |scope| pick(&scope.block).last,
        );
        self.add_count(
            &format!("{name}.level.peak"),
            &format!("largest number of concurrent {what} (sum of the largest numbers of all loops: an upper bound)"),
            move |scope| pick(&scope.block).peak,
        );
    }
}

/// Closures that return what they borrow need to be told so.
fn values_of(pick: impl for<'a> Fn(&'a Scope) -> Values<'a> + Send + Sync + 'static) -> ValuesOf {
    Arc::new(pick)
}
