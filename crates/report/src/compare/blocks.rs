//! Phases cut into blocks of time, the unit that is drawn again and again to learn what chance can do.
//!
//! Neighbouring intervals resemble each other: queues, bursts and what the host does last longer than a second. Blocks
//! that are long against such memory do not. 10 to 30 of them are known to serve well (Schmeiser 1982).

use polygraph_stats::Interval;

use crate::facts::{PhaseFacts, RunFacts};

use crate::log::{Log, of_side, offset_s};
use crate::scope::Scope;

/// No phase is cut into more blocks than about this.
const BLOCKS: usize = 20;
/// Fewer blocks tell nothing about chance.
pub(super) const FEWEST: usize = 5;

/// The phases of a run that take part in a comparison.
pub(super) struct PhasesOfRun<'a> {
    logs: Vec<&'a Log>,
    phases: Vec<&'a PhaseFacts>,
    start_unix_ns: u64,
}

impl<'a> PhasesOfRun<'a> {
    /// Those of the named phases that counted something.
    pub(super) fn new(logs: &'a [Log], facts: &'a RunFacts, names: &[String]) -> PhasesOfRun<'a> {
        let side = facts.main_side();
        let measured = |phase: &&PhaseFacts| names.contains(&phase.name) && phase.scope.is_some();
        PhasesOfRun {
            logs: of_side(logs, side.side),
            phases: side.phases.iter().filter(measured).collect(),
            start_unix_ns: facts.start_unix_ns,
        }
    }

    /// All of it as one.
    pub(super) fn scope(&self) -> Option<Scope> {
        Scope::sequential(self.phases.iter().filter_map(|phase| phase.scope.as_ref()))
    }

    /// Into how many blocks it can be cut: whole intervals each, as many as [`BLOCKS`] if there are enough.
    pub(super) fn blocks(&self) -> usize {
        let of_log = |log: &&Log| log.log.intervals().filter(|i| self.place(log, i).is_some()).count();
        let intervals = self.logs.iter().map(of_log).max().unwrap_or(0);
        let each = ((intervals as f64 / BLOCKS as f64).round() as usize).max(1);
        intervals / each
    }

    /// Cuts it into `count` blocks of equal length. A block that no interval falls into is empty.
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

    /// Where the middle of an interval lies in the phases, one behind the other: from 0 to less than 1.
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
