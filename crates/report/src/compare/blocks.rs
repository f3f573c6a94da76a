//! Phases cut into blocks of time: the units that are drawn repeatedly to estimate random variation.
//!
//! Neighbouring intervals are correlated, because queues, bursts and other activities of the host last longer than a
//! second. Blocks that are longer than such effects are not. 10 to 30 blocks are known to work well (Schmeiser 1982).

use polygraph_stats::Record;

use crate::facts::{IntervalTime, PhaseFacts, ProcessFacts};
use crate::parallel;
use crate::run_dir::WholeRun;
use crate::scope::{Scope, ScopeBuilder};
use crate::source::{LogSource, of_side, offset_s, phase_name};

/// Approximate maximum number of blocks of a phase.
const BLOCKS: usize = 20;
/// Minimum number of blocks from which random variation can be estimated.
pub(super) const FEWEST: usize = 5;

/// The phases of a run that take part in a comparison.
pub(super) struct PhasesOfRun<'a> {
    run: &'a WholeRun,
    phases: Vec<&'a PhaseFacts>,
}

impl<'a> PhasesOfRun<'a> {
    /// The named phases that have statistics.
    pub(super) fn new(run: &'a WholeRun, names: &[String]) -> PhasesOfRun<'a> {
        let measured = |phase: &&PhaseFacts| names.contains(&phase.name) && phase.scope.is_some();
        PhasesOfRun { run, phases: run.facts.main_side().phases.iter().filter(measured).collect() }
    }

    /// All phases folded into one scope.
    pub(super) fn scope(&self) -> Option<Scope> {
        Scope::sequential(self.phases.iter().filter_map(|phase| phase.scope.as_ref()))
    }

    /// The number of blocks of whole intervals into which the phases can be cut: [`BLOCKS`] if there are enough
    /// intervals.
    pub(super) fn blocks(&self) -> usize {
        let of_process = |process: &ProcessFacts| {
            process.intervals.iter().filter(|interval| self.place(process, interval).is_some()).count()
        };
        let intervals = self.run.facts.main_side().processes.iter().map(of_process).max().unwrap_or(0);
        let each = ((intervals as f64 / BLOCKS as f64).round() as usize).max(1);
        intervals / each
    }

    /// Cuts the phases into `count` blocks of equal length. A block without intervals is empty. Each log is read once.
    pub(super) fn into_blocks(self, count: usize) -> Vec<Scope> {
        let side = self.run.facts.main_side();
        let logs: Vec<_> = of_side(&self.run.logs, side.side).into_iter().zip(&side.processes).collect();
        let of_logs = parallel::map(&logs, |(log, process)| self.blocks_of(*log, process, count));
        let mut blocks: Vec<Option<Scope>> = vec![None; count];
        for of_log in of_logs {
            for (block, of_log) in blocks.iter_mut().zip(of_log) {
                *block = Scope::concurrent(block.take().into_iter().chain([of_log.scope()]));
            }
        }
        blocks.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// The blocks of one log, packed except for the last one.
    fn blocks_of(&self, log: &impl LogSource, process: &ProcessFacts, count: usize) -> Vec<ScopeBuilder> {
        let mut blocks = vec![ScopeBuilder::default(); count];
        let mut current = 0;
        for record in log.records() {
            let Record::Interval(interval) = &*record else { continue };
            let (phase, begin_ns, end_ns) = (interval.phase, interval.begin_ns, interval.end_ns);
            let place = self.place(process, &IntervalTime { phase, begin_ns, end_ns });
            let Some(block) = place.map(|at| (at * count as f64) as usize) else { continue };
            if block != current {
                blocks[current].pack();
                current = block;
            }
            blocks[block].add(interval);
        }
        blocks
    }

    /// Position of the middle of an interval within the concatenated phases: from 0 to less than 1.
    fn place(&self, process: &ProcessFacts, interval: &IntervalTime) -> Option<f64> {
        let length = |phase: &PhaseFacts| Some(phase.end_s? - phase.begin_s?);
        let name = phase_name(&process.header, interval.phase);
        let before = self.phases.iter().take_while(|phase| phase.name != name);
        let phase = self.phases.iter().find(|phase| phase.name == name)?;
        let middle = offset_s(&process.header, self.run.facts.start_unix_ns)
            + (interval.begin_ns + interval.end_ns) as f64 * 0.5e-9;
        let total: f64 = self.phases.iter().filter_map(|phase| length(phase)).sum();
        let at = (before.filter_map(|phase| length(phase)).sum::<f64>() + middle - phase.begin_s?) / total;
        (0.0..1.0).contains(&at).then_some(at)
    }
}
