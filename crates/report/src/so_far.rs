//! The verdict of a run that is still going on: the one that it would get if it ended now with all goals met.
//!
//! A verdict needs the phases of a run, and how figures changed within them. Both are kept at a bounded cost: each phase
//! has at most `MOST_PARTS` parts, which become longer as the phase does.

use std::collections::BTreeMap;

use polygraph_stats::{EndReason, Header, Interval, ReadLog, Record, Side};

use crate::fold::fold;
use crate::judge::LEAST_TRANSACTIONS;
use crate::log::Log;
use crate::verdict::Verdict;

/// Parts of a phase; when there are so many, neighbours become one.
const MOST_PARTS: usize = 32;
/// Stalls that are kept; more do not change the verdict.
const MOST_STALLS: usize = 1000;

/// What a process has measured so far.
#[derive(Debug, Default)]
pub struct RunSoFar {
    sides: BTreeMap<&'static str, SideSoFar>,
}

#[derive(Debug)]
struct SideSoFar {
    header: Header,
    phases: BTreeMap<u32, PhaseSoFar>,
    stalls: Vec<Record>,
    end: Option<Record>,
}

/// A phase that has begun.
#[derive(Debug, Default)]
struct PhaseSoFar {
    begin_ns: u64,
    parts: Vec<Interval>,
    /// Intervals in each part, the last one excepted.
    per_part: usize,
    /// Intervals in the last part.
    in_last: usize,
    ended: Option<Record>,
}

impl RunSoFar {
    /// Adds a record of one of the logs of the process.
    pub fn add(&mut self, header: &Header, record: &Record) {
        let side = self.sides.entry(header.side.name()).or_insert_with(|| SideSoFar {
            header: header.clone(),
            phases: BTreeMap::new(),
            stalls: Vec::new(),
            end: None,
        });
        match record {
            Record::PhaseBegin { at_ns, phase } => {
                side.phases.entry(*phase).or_default().begin_ns = *at_ns;
            }
            Record::Interval(interval) => side.phases.entry(interval.phase).or_default().add(interval),
            Record::PhaseEnd { phase, .. } => {
                side.phases.entry(*phase).or_default().ended = Some(record.clone());
            }
            Record::Stall(stall) if side.stalls.len() < MOST_STALLS => {
                side.stalls.push(Record::Stall(*stall));
            }
            Record::End { .. } => side.end = Some(record.clone()),
            _ => {}
        }
    }

    /// The verdict so far. `None` without a client side, and as long as too little was measured for a verdict.
    pub fn verdict(&self) -> Option<Verdict> {
        self.sides.get(Side::Client.name())?;
        let logs: Vec<Log> = self.sides.values().map(SideSoFar::log).collect();
        let facts = fold(&logs).ok()?;
        let ended = facts.headline.as_ref()?.scope.ended_count();
        (ended >= LEAST_TRANSACTIONS).then_some(facts.verdict)
    }
}

impl SideSoFar {
    /// The log that the side would have if the run ended now: later phases were never planned.
    fn log(&self) -> Log {
        let mut header = self.header.clone();
        let reached = self.phases.keys().last().map_or(0, |last| *last as usize + 1);
        header.phases.truncate(reached);
        let mut records = Vec::new();
        let mut last_ns = 0;
        for (number, phase) in &self.phases {
            records.push(Record::PhaseBegin { at_ns: phase.begin_ns, phase: *number });
            records.extend(phase.parts.iter().map(|part| Record::Interval(Box::new(part.clone()))));
            last_ns = phase.parts.last().map_or(phase.begin_ns, |part| part.end_ns);
            let now = Record::PhaseEnd { at_ns: last_ns, phase: *number, complete: true };
            records.push(phase.ended.clone().unwrap_or(now));
        }
        records.extend(self.stalls.iter().cloned());
        let now = Record::End { at_ns: last_ns, reason: EndReason::Finished, unfinished: 0 };
        records.push(self.end.clone().unwrap_or(now));
        Log {
            name: self.header.side.name().to_owned(),
            log: ReadLog { header, records, missing: Vec::new() },
        }
    }
}

impl PhaseSoFar {
    fn add(&mut self, interval: &Interval) {
        self.per_part = self.per_part.max(1);
        match self.parts.last_mut().filter(|_| self.in_last < self.per_part) {
            Some(last) => {
                last.append(interval);
                self.in_last += 1;
            }
            None => {
                if self.parts.is_empty() {
                    self.begin_ns = interval.begin_ns;
                }
                self.halve();
                self.parts.push(interval.clone());
                self.in_last = 1;
            }
        }
    }

    /// Makes pairs of parts into one if there is no room for another part.
    fn halve(&mut self) {
        if self.parts.len() < MOST_PARTS {
            return;
        }
        let mut whole = std::mem::take(&mut self.parts).into_iter();
        while let Some(mut part) = whole.next() {
            if let Some(later) = whole.next() {
                part.append(&later);
            }
            self.parts.push(part);
        }
        self.per_part *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testlog::Run;
    use crate::verdict::VerdictOutcome;

    fn so_far<'a>(logs: &'a [Log], keep: impl Fn(&Record) -> bool + 'a) -> RunSoFar {
        let mut run = RunSoFar::default();
        for log in logs {
            let records = log.log.records.iter().filter(|record| keep(record));
            records.for_each(|record| run.add(&log.log.header, record));
        }
        run
    }

    #[test]
    fn a_run_that_has_ended_has_its_verdict() {
        let logs = Run::default().logs();
        let found = so_far(&logs, |_| true).verdict().unwrap();
        assert_eq!(found.word(), fold(&logs).unwrap().verdict.word());
    }

    #[test]
    fn a_run_in_the_middle_of_its_last_phase_is_judged_by_what_it_has_done() {
        let logs = Run::default().logs();
        let end_ns = logs[0].log.intervals().map(|interval| interval.end_ns).max().unwrap();
        let first_half = |record: &Record| match record {
            Record::Interval(interval) => interval.end_ns <= end_ns * 2 / 3,
            Record::PhaseBegin { at_ns, .. } | Record::PhaseEnd { at_ns, .. } => *at_ns <= end_ns * 2 / 3,
            Record::End { .. } => false,
            _ => true,
        };
        let found = so_far(&logs, first_half).verdict().unwrap();
        assert_eq!(found.outcome, VerdictOutcome::Valid, "{}", found.text());
        // The same records as a log are those of a run that was cut short.
        let cut = |log: &Log| Log {
            name: log.name.clone(),
            log: ReadLog {
                header: log.log.header.clone(),
                records: log.log.records.iter().filter(|record| first_half(record)).cloned().collect(),
                missing: Vec::new(),
            },
        };
        let cut: Vec<Log> = logs.iter().map(cut).collect();
        assert_eq!(fold(&cut).unwrap().verdict.outcome, VerdictOutcome::Invalid);
    }

    #[test]
    fn nothing_is_judged_by_too_little() {
        let logs = Run::default().logs();
        assert_eq!(RunSoFar::default().verdict(), None);
        assert_eq!(so_far(&logs, |record| !matches!(record, Record::Interval(_))).verdict(), None);
        let servers: Vec<Log> =
            Run::default().logs().into_iter().filter(|log| log.log.header.side == Side::Server).collect();
        assert_eq!(so_far(&servers, |_| true).verdict(), None, "servers do not see the device");
    }

    #[test]
    fn the_parts_of_a_phase_are_few_and_complete() {
        let logs = Run::default().logs();
        let one = logs[0].log.intervals().next().unwrap();
        let mut phase = PhaseSoFar::default();
        for number in 0..1000 {
            let (begin_ns, end_ns) = (number * 1_000_000_000, (number + 1) * 1_000_000_000);
            phase.add(&Interval { begin_ns, end_ns, ..one.clone() });
            assert!(phase.parts.len() <= MOST_PARTS);
        }
        assert!(phase.parts.len() > MOST_PARTS / 2);
        let counted: u64 = phase.parts.iter().map(|part| part.block.ok_count()).sum();
        assert_eq!(counted, 1000 * one.block.ok_count());
        assert!(phase.parts.windows(2).all(|pair| pair[0].end_ns == pair[1].begin_ns));
        assert_eq!((phase.begin_ns, phase.parts.last().unwrap().end_ns), (0, 1_000_000_000_000));
    }
}
