//! Phases cut into blocks of time: the units that are drawn repeatedly to estimate random variation.
//!
//! Neighbouring intervals are correlated, because queues, bursts and other activities of the host last longer than a
//! second. Blocks that are longer than such effects are not. 10 to 30 blocks are known to work well (Schmeiser 1982).

use polygraph_stats::Interval;

use crate::facts::{PhaseFacts, RunFacts};

use crate::log::{Log, of_side, offset_s};
use crate::scope::Scope;

/// Approximate maximum number of blocks of a phase.
const BLOCKS: usize = 20;
/// Minimum number of blocks from which random variation can be estimated.
pub(super) const FEWEST: usize = 5;

/// The phases of a run that take part in a comparison.
pub(super) struct PhasesOfRun<'a> {
    logs: Vec<&'a Log>,
    phases: Vec<&'a PhaseFacts>,
    start_unix_ns: u64,
}

impl<'a> PhasesOfRun<'a> {
    /// The named phases that have statistics.
    pub(super) fn new(logs: &'a [Log], facts: &'a RunFacts, names: &[String]) -> PhasesOfRun<'a> {
        let side = facts.main_side();
        let measured = |phase: &&PhaseFacts| names.contains(&phase.name) && phase.scope.is_some();
        PhasesOfRun {
            logs: of_side(logs, side.side),
            phases: side.phases.iter().filter(measured).collect(),
            start_unix_ns: facts.start_unix_ns,
        }
    }

    /// All phases folded into one scope.
    pub(super) fn scope(&self) -> Option<Scope> {
        Scope::sequential(self.phases.iter().filter_map(|phase| phase.scope.as_ref()))
    }

    /// The number of blocks of whole intervals into which the phases can be cut: [`BLOCKS`] if there are enough
    /// intervals.
    pub(super) fn blocks(&self) -> usize {
        let of_log = |log: &&Log| log.log.intervals().filter(|i| self.place(log, i).is_some()).count();
        let intervals = self.logs.iter().map(of_log).max().unwrap_or(0);
        let each = ((intervals as f64 / BLOCKS as f64).round() as usize).max(1);
        intervals / each
    }

    /// Cuts the phases into `count` blocks of equal length. A block without intervals is empty.
    pub(super) fn into_blocks(self, count: usize) -> Vec<Scope> {
        let mut blocks = Vec::with_capacity(count);
        for block in 0..count {
            let of_log = |log: &&Log| {
                let within = log.log.intervals().filter(|interval| {
                    self.place(log, interval).is_some_and(|at| (at * count as f64) as usize == block)
                });
                Scope::of_intervals(within)
            };
            let scope = Scope::concurrent(self.logs.iter().map(of_log));
            blocks.push(scope.unwrap_or_default());
        }
        blocks
    }

    /// Position of the middle of an interval within the concatenated phases: from 0 to less than 1.
    fn place(&self, log: &Log, interval: &Interval) -> Option<f64> {
        let length = |phase: &PhaseFacts| Some(phase.end_s? - phase.begin_s?);
        let name = log.phase_name(interval.phase);
        let before = self.phases.iter().take_while(|phase| phase.name != name);
        let phase = self.phases.iter().find(|phase| phase.name == name)?;
        let middle =
            offset_s(log, self.start_unix_ns) + (interval.begin_ns + interval.end_ns) as f64 * 0.5e-9;
        let total: f64 = self.phases.iter().filter_map(|phase| length(phase)).sum();
        let at = (before.filter_map(|phase| length(phase)).sum::<f64>() + middle - phase.begin_s?) / total;
        (0.0..1.0).contains(&at).then_some(at)
    }
}
