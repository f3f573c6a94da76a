//! The data from which figures are computed: everything that some processes counted over some time.

use std::borrow::Cow;
use std::sync::OnceLock;

use polygraph_stats::{Block, ClassStats, Histogram, Interval, PackedBlock, PlannedPhase};

/// Names and goals of phases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseGoals {
    /// Names; those of concurrent phases are joined with `&`, those of sequential phases with `|`.
    pub name: String,
    /// Whether the workload measures one of the phases.
    pub primary: bool,
    /// Planned duration in seconds.
    pub duration_s: Option<f64>,
    /// Planned number of transactions.
    pub xactions: Option<u64>,
    /// Planned fill of the cache in bytes.
    pub fill_bytes: Option<u64>,
    /// Errors that end the test: a share if below 1, otherwise a number.
    pub errors: Option<f64>,
}

impl From<&PlannedPhase> for PhaseGoals {
    fn from(plan: &PlannedPhase) -> PhaseGoals {
        PhaseGoals {
            name: plan.name.clone(),
            primary: plan.primary,
            duration_s: plan.duration_s,
            xactions: plan.xactions,
            fill_bytes: plan.fill_bytes,
            errors: plan.errors,
        }
    }
}

impl PhaseGoals {
    /// Adds another plan. `seconds` combines the durations; numbers are added, and the larger of two shares
    /// counts.
    fn join(&mut self, other: &PhaseGoals, sign: char, seconds: fn(f64, f64) -> f64) {
        if !self.name.split(sign).any(|name| name == other.name) {
            self.name = format!("{}{sign}{}", self.name, other.name);
        }
        self.primary |= other.primary;
        self.duration_s = self.duration_s.into_iter().chain(other.duration_s).reduce(seconds);
        self.xactions = self.xactions.into_iter().chain(other.xactions).reduce(u64::saturating_add);
        self.fill_bytes = self.fill_bytes.into_iter().chain(other.fill_bytes).reduce(u64::saturating_add);
        let errors = |a: f64, b: f64| if a < 1.0 || b < 1.0 { a.max(b) } else { a + b };
        self.errors = self.errors.into_iter().chain(other.errors).reduce(errors);
    }
}

/// The combined plan of two scopes; `None` unless both have a plan.
fn join(mine: &mut Option<PhaseGoals>, other: &Option<PhaseGoals>, sign: char, seconds: fn(f64, f64) -> f64) {
    match (mine.as_mut(), other) {
        (Some(plan), Some(other)) => plan.join(other, sign, seconds),
        _ => *mine = None,
    }
}

/// A folded block with its duration and the health of the processes that filled it.
///
/// Scopes are combined in two ways. The combination of *concurrent* scopes (the same phase of several processes) has
/// the longer of the two durations; that of *sequential* scopes (phases of one process) has their sum. Counts are added
/// in both cases.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Number of logs.
    pub logs: u64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Statistics of the scope.
    pub block: Block,
    /// Processor time of all event loops, in seconds.
    pub cpu_seconds: f64,
    /// Share of the duration (0 to 1) in which the busiest event loop was working. The busiest loop may be another one
    /// in each interval, so this is an upper bound if several loops share the load.
    pub busiest_share: Option<f64>,
    /// Time in seconds for which quotas of processor time stopped an event loop, on average; of the process that was stopped for the
    /// largest time.
    pub throttled_seconds: f64,
    /// Resident memory in bytes: the largest of each process, summed over processes.
    pub rss_bytes: u64,
    /// The plan of the phases of the scope, if it consists of complete phases.
    pub plan: Option<PhaseGoals>,
    /// The largest step of the time-of-day clock within an interval, in nanoseconds, with its sign.
    pub clock_step_ns: i64,
    /// All classes of `block` together, as far as they have been asked for.
    pub(crate) together: AllClasses,
}

/// Histograms over all classes of a block. Many scopes are never asked for them, and they are expensive.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllClasses {
    rptm_us: OnceLock<Histogram>,
    due_rptm_us: OnceLock<Histogram>,
    sizes: OnceLock<Histogram>,
}

impl Scope {
    /// Response times of all classes together, from the actual start, in microseconds.
    pub fn rptm_us(&self) -> &Histogram {
        self.together.rptm_us.get_or_init(|| self.block.rptm_us())
    }

    /// Response times of all classes together, from the scheduled start, in microseconds.
    pub fn due_rptm_us(&self) -> &Histogram {
        self.together.due_rptm_us.get_or_init(|| self.block.due_rptm_us())
    }

    /// Reply sizes of all classes together, in bytes.
    pub fn sizes(&self) -> &Histogram {
        self.together.sizes.get_or_init(|| self.block.sizes())
    }

    /// All classes together.
    pub fn all(&self) -> ClassStats {
        ClassStats {
            rptm_us: self.rptm_us().clone(),
            due_rptm_us: self.due_rptm_us().clone(),
            size: self.sizes().clone(),
        }
    }

    /// The scope of a single interval.
    pub fn of_interval(interval: Interval) -> Scope {
        let seconds = interval.seconds();
        let mut scope = Scope {
            logs: 1,
            seconds,
            cpu_seconds: interval.cpu_ns as f64 * 1e-9,
            throttled_seconds: interval.throttled_ns as f64 * 1e-9,
            busiest_share: (seconds > 0.0).then(|| interval.busiest_loop_ns as f64 * 1e-9 / seconds),
            rss_bytes: interval.rss_bytes,
            ..Scope::default()
        };
        scope.note_clock_step(interval.clock_step_ns);
        scope.block = interval.block;
        scope
    }

    /// Folds the intervals of one process, in order.
    pub fn of_intervals<'a>(intervals: impl IntoIterator<Item = &'a Interval>) -> Scope {
        let mut growing = ScopeBuilder::default();
        intervals.into_iter().for_each(|interval| growing.add(interval));
        growing.scope()
    }

    /// Combines scopes of the same time.
    pub fn concurrent(scopes: impl IntoIterator<Item = Scope>) -> Option<Scope> {
        let mut all = scopes.into_iter().reduce(|mut all, other| {
            all.logs += other.logs;
            all.seconds = all.seconds.max(other.seconds);
            all.block.merge(&other.block);
            all.cpu_seconds += other.cpu_seconds;
            all.busiest_share = all.busiest_share.into_iter().chain(other.busiest_share).reduce(f64::max);
            all.throttled_seconds = all.throttled_seconds.max(other.throttled_seconds);
            all.rss_bytes += other.rss_bytes;
            join(&mut all.plan, &other.plan, '&', f64::max);
            all.note_clock_step(other.clock_step_ns);
            all
        })?;
        all.together = AllClasses::default();
        Some(all)
    }

    /// Combines scopes of the same processes that follow each other.
    pub fn sequential<'a>(scopes: impl IntoIterator<Item = &'a Scope>) -> Option<Scope> {
        let mut all = scopes.into_iter().cloned().reduce(|mut all, later| {
            let busy = all.busiest_share.unwrap_or(0.0) * all.seconds
                + later.busiest_share.unwrap_or(0.0) * later.seconds;
            all.logs = all.logs.max(later.logs);
            all.seconds += later.seconds;
            all.busiest_share = (all.seconds > 0.0).then(|| busy / all.seconds);
            all.block.concatenate(&later.block);
            all.cpu_seconds += later.cpu_seconds;
            all.throttled_seconds += later.throttled_seconds;
            all.rss_bytes = all.rss_bytes.max(later.rss_bytes);
            join(&mut all.plan, &later.plan, '|', |a, b| a + b);
            all.note_clock_step(later.clock_step_ns);
            all
        })?;
        all.together = AllClasses::default();
        Some(all)
    }

    fn note_clock_step(&mut self, step_ns: i64) {
        if step_ns.unsigned_abs() > self.clock_step_ns.unsigned_abs() {
            self.clock_step_ns = step_ns;
        }
    }

    /// Number of finished transactions, successful or not.
    pub fn ended_count(&self) -> u64 {
        self.block.ok_count() + self.block.failed_count()
    }

    /// `count` per second; undefined if no time passed.
    pub fn rate(&self, count: f64) -> Option<f64> {
        (self.seconds > 0.0).then(|| count / self.seconds)
    }

    /// One histogram over some classes.
    pub(crate) fn over(
        &self,
        classes: &[polygraph_stats::Class],
        pick: impl Fn(&ClassStats) -> &Histogram,
    ) -> Cow<'_, Histogram> {
        if let [class] = classes {
            return Cow::Borrowed(pick(self.block.class(*class)));
        }
        let mut hist = Histogram::new();
        classes.iter().for_each(|&class| hist.merge(pick(self.block.class(class))));
        Cow::Owned(hist)
    }
}

/// A scope of one process that grows interval by interval.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScopeBuilder {
    /// The scope so far; without its block if that is packed.
    scope: Scope,
    packed: Option<PackedBlock>,
    busiest_ns: u64,
}

impl ScopeBuilder {
    /// Adds the next interval.
    pub fn add(&mut self, interval: &Interval) {
        self.unpack();
        let scope = &mut self.scope;
        scope.seconds += interval.seconds();
        scope.block.concatenate(&interval.block);
        scope.cpu_seconds += interval.cpu_ns as f64 * 1e-9;
        self.busiest_ns += interval.busiest_loop_ns;
        scope.throttled_seconds += interval.throttled_ns as f64 * 1e-9;
        scope.rss_bytes = scope.rss_bytes.max(interval.rss_bytes);
        scope.note_clock_step(interval.clock_step_ns);
    }

    /// Saves memory until the next call.
    pub fn pack(&mut self) {
        if self.packed.is_none() {
            self.packed = Some(PackedBlock::new(&std::mem::take(&mut self.scope.block)));
        }
    }

    fn unpack(&mut self) {
        if let Some(packed) = self.packed.take() {
            self.scope.block = packed.unpack();
        }
    }

    /// The scope of all added intervals.
    pub fn scope(mut self) -> Scope {
        self.unpack();
        let ScopeBuilder { mut scope, busiest_ns, .. } = self;
        scope.logs = 1;
        scope.busiest_share = (scope.seconds > 0.0).then(|| busiest_ns as f64 * 1e-9 / scope.seconds);
        scope
    }
}
