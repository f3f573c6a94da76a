//! How the table of figures is made.

use std::sync::Arc;

use polygraph_stats::{Aggr, Block, Class, ClassStats, Hist, Level, Tally};

use super::values::Leaf;
use super::{Compute, Distribution, Entry, Figure, List, Pick, Unit, Values, value};
use crate::scope::Scope;

/// Collects the table.
#[derive(Default)]
pub(super) struct Table {
    pub(super) figures: Vec<Figure>,
    pub(super) distributions: Vec<Distribution>,
    pub(super) lists: Vec<List>,
    pub(super) order: Vec<Place>,
    section: &'static str,
}

/// Where the next entry of the table is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Figure,
    Distribution,
    List,
}

/// The aggregate of the reference: name, text in front of what is aggregated, what it is.
const AGGREGATE: [(&str, &str, Leaf); 7] = [
    ("count", "number of values: ", Leaf::Count),
    ("mean", "mean of ", Leaf::Mean),
    ("min", "smallest ", Leaf::Min),
    ("max", "largest ", Leaf::Max),
    ("std_dev", "standard deviation of the sample: ", Leaf::StdDev),
    ("rel_dev", "standard deviation in percent of the mean: ", Leaf::RelDev),
    ("sum", "sum of ", Leaf::Sum),
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

impl Table {
    /// What follows belongs to this part of the table.
    pub(super) fn section(&mut self, title: &'static str) {
        self.section = title;
    }

    fn push(&mut self, name: String, unit: Unit, definition: String, compute: Compute) {
        self.figures.push(Figure { name, unit, definition, section: self.section, compute });
        self.order.push(Place::Figure);
    }

    /// A list of rows of words.
    pub(super) fn list(
        &mut self,
        name: &'static str,
        definition: &'static str,
        columns: &'static [&'static str],
        rows: fn(&Scope) -> Vec<Vec<String>>,
    ) {
        self.lists.push(List { name, definition, columns, section: self.section, rows });
        self.order.push(Place::List);
    }

    /// The entries in the order of printing.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let (mut figures, mut distributions, mut lists) =
            (self.figures.iter(), self.distributions.iter(), self.lists.iter());
        self.order.iter().filter_map(move |place| match place {
            Place::Figure => figures.next().map(Entry::Figure),
            Place::Distribution => distributions.next().map(Entry::Distribution),
            Place::List => lists.next().map(Entry::List),
        })
    }

    pub(super) fn one(
        &mut self,
        name: &str,
        unit: Unit,
        definition: &str,
        compute: impl Fn(&Scope) -> Option<f64> + Send + Sync + 'static,
    ) {
        self.push(name.into(), unit, definition.into(), Compute::One(Box::new(compute)));
    }

    /// A number of things, never undefined.
    pub(super) fn count(
        &mut self,
        name: &str,
        definition: &str,
        compute: impl Fn(&Scope) -> u64 + Send + Sync + 'static,
    ) {
        self.one(name, Unit::Count, definition, move |scope| Some(compute(scope) as f64));
    }

    /// A further name for the figure `original`.
    pub(super) fn alias(&mut self, name: &str, original: &'static str) {
        let known = self
            .figures
            .iter()
            .find(|figure| figure.name == original)
            .expect("aliases follow their originals");
        let (unit, definition) = (known.unit, format!("{} (same as {original})", known.definition));
        self.one(name, unit, &definition, move |scope| value(original, scope));
    }

    /// A further name for the distribution `original` and its figures.
    pub(super) fn alias_of(&mut self, prefix: &str, original: &str) {
        let known = self.distributions.iter().find(|known| known.name == original);
        let known = known.expect("aliases follow their originals");
        let (what, unit, scale) = (known.definition.clone(), known.unit, known.scale);
        let (width, pick) = (known.width_percent, Arc::clone(&known.pick));
        self.spread(prefix, &format!("{what} (same as {original})"), unit, scale, width, pick);
    }

    /// Facts about values of a histogram. Values are multiplied by `scale`; `unit` is the unit after that.
    pub(super) fn hist<const DIGITS: u8>(
        &mut self,
        prefix: &str,
        what: &str,
        unit: Unit,
        scale: f64,
        pick: impl Fn(&Scope) -> Hist<DIGITS> + Send + Sync + 'static,
    ) {
        let width = if DIGITS == 1 { 6.0 } else { 0.1 };
        self.spread(prefix, what, unit, scale, width, Arc::new(move |scope| pick(scope).into()));
    }

    fn spread(&mut self, prefix: &str, what: &str, unit: Unit, scale: f64, width_percent: f64, pick: Pick) {
        self.aggregate(prefix, what, unit, scale, &pick);
        let within = if width_percent > 1.0 { " (bins are 6 % wide)" } else { "" };
        for (leaf, q) in PERCENTILES {
            let text = format!("{} % of all values do not exceed it{within}: {what}", q * 100.0);
            let compute = Compute::Of { pick: Arc::clone(&pick), leaf: Leaf::Quantile(q), scale };
            self.push(format!("{prefix}.{leaf}"), unit, text, compute);
        }
        self.distributions.push(Distribution {
            name: prefix.to_owned(),
            unit,
            definition: what.to_owned(),
            section: self.section,
            scale,
            width_percent,
            pick,
        });
        self.order.push(Place::Distribution);
    }

    /// Facts about values whose distribution is not known.
    pub(super) fn moments(
        &mut self,
        prefix: &str,
        what: &str,
        unit: Unit,
        pick: impl Fn(&Scope) -> Aggr + Send + Sync + 'static,
    ) {
        let pick: Pick = Arc::new(move |scope| Values::from(pick(scope)));
        self.aggregate(prefix, what, unit, 1.0, &pick);
    }

    fn aggregate(&mut self, prefix: &str, what: &str, unit: Unit, scale: f64, pick: &Pick) {
        for (name, text, leaf) in AGGREGATE {
            let unit = match leaf {
                Leaf::Count => Unit::Count,
                Leaf::RelDev => Unit::Percent,
                _ => unit,
            };
            let compute = Compute::Of { pick: Arc::clone(pick), leaf, scale };
            self.push(format!("{prefix}.{name}"), unit, format!("{text}{what}"), compute);
        }
    }

    /// Response time and size of transactions.
    pub(super) fn timed<const DIGITS: u8>(
        &mut self,
        prefix: &str,
        what: &str,
        rptm_us: impl Fn(&Scope) -> Hist<DIGITS> + Send + Sync + 'static,
        size: impl Fn(&Scope) -> Hist<DIGITS> + Send + Sync + 'static,
    ) {
        self.hist(&format!("{prefix}.rptm"), &format!("response time of {what}"), Unit::Ms, 1e-3, rptm_us);
        self.hist(&format!("{prefix}.size"), &format!("reply size of {what}"), Unit::Bytes, 1.0, size);
    }

    /// Response time and size of some classes.
    pub(super) fn class(&mut self, prefix: &str, what: &str, classes: &'static [Class]) {
        self.timed(
            prefix,
            what,
            |scope| scope.over(classes, |stats| &stats.rptm_us),
            |scope| scope.over(classes, |stats| &stats.size),
        );
    }

    /// Response time and size of what `pick` gives.
    pub(super) fn stats(
        &mut self,
        prefix: &str,
        what: &str,
        pick: impl Fn(&Scope) -> ClassStats + Send + Sync + Clone + 'static,
    ) {
        let sizes = pick.clone();
        self.timed(prefix, what, move |scope| pick(scope).rptm_us, move |scope| sizes(scope).size);
    }

    /// Response time from the due start of some classes.
    pub(super) fn due(&mut self, prefix: &str, what: &str, classes: &'static [Class]) {
        let what = format!("response time from the due start, {what}");
        self.hist(&format!("{prefix}.due_rptm"), &what, Unit::Ms, 1e-3, |scope| {
            scope.over(classes, |stats| &stats.due_rptm_us)
        });
    }

    /// A count and its volume, under the names of an aggregate of sizes.
    pub(super) fn pair(
        &mut self,
        prefix: &str,
        what: &str,
        pick: impl Fn(&Scope) -> Tally + Send + Sync + Clone + 'static,
    ) {
        let count = pick.clone();
        self.count(&format!("{prefix}.size.count"), &format!("number of {what}"), move |s| count(s).count);
        self.one(&format!("{prefix}.size.sum"), Unit::Bytes, &format!("reply bytes of {what}"), move |s| {
            Some(pick(s).bytes as f64)
        });
    }

    /// A level: `NAME.started`, `NAME.finished`, `NAME.level.mean`, `.last`, `.peak`.
    pub(super) fn level(&mut self, name: &str, what: &str, pick: fn(&Block) -> &Level) {
        self.count(&format!("{name}.started"), &format!("{what} begun"), move |s| pick(&s.block).entered);
        self.count(&format!("{name}.finished"), &format!("{what} ended"), move |s| pick(&s.block).left);
        self.one(
            &format!("{name}.level.mean"),
            Unit::Things,
            &format!("mean number of {what} at a time, weighted by time"),
            move |scope| pick(&scope.block).mean(scope.seconds),
        );
        self.count(&format!("{name}.level.last"), &format!("number of {what} at the end"), move |scope| {
            pick(&scope.block).last
        });
        self.count(
            &format!("{name}.level.peak"),
            &format!("largest number of {what} at a time (sum of the loops' largest: an upper bound)"),
            move |scope| pick(&scope.block).peak,
        );
    }
}
