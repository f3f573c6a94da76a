//! One walk over the records of the logs of one side: phases, series, samples, ends.
//!
//! Records of several logs are processed in order of time, so a window of the series is complete when the first
//! interval of a later window arrives. Only one window, and the statistics of each log by phase, are in memory at a
//! time.

use std::borrow::Cow;
use std::collections::BTreeMap;

use polygraph_stats::stall::Stall;
use polygraph_stats::{EndReason, Interval, Record, Side};

use crate::facts::{ErrorExample, PhaseEnd, PhaseFacts, ProcessFacts, SideFacts};
use crate::scope::{PhaseGoals, Scope, ScopeBuilder};
use crate::series::SeriesBuilder;
use crate::source::RecordSource;

/// Examples kept of each class of errors.
const SAMPLES_PER_KIND: usize = 3;

/// The facts of one side. `window_s` is the length of the windows of the series; statistics until `sound_until_s` are
/// also kept separately. `None` without logs of that side.
pub(crate) fn side(
    sources: Vec<RecordSource<'_>>,
    side: Side,
    start_unix_ns: u64,
    window_s: f64,
    sound_until_s: Option<f64>,
) -> Option<SideFacts> {
    let mut logs: Vec<OneLog<'_>> = sources
        .into_iter()
        .filter(|source| source.header().side == side)
        .map(|source| OneLog::new(source, start_unix_ns, sound_until_s))
        .collect();
    if logs.is_empty() {
        return None;
    }
    let mut windows = SeriesBuilder::new(window_s);
    while let Some((at_s, index)) = earliest(&logs) {
        let log = &mut logs[index];
        if let Some(Record::Interval(interval)) = log.next.as_deref() {
            windows.add(at_s, index, interval);
        }
        log.take();
    }
    let samples = samples(&mut logs);
    let phases = phases(&mut logs);
    Some(SideFacts {
        side,
        total: Scope::sequential(phases.iter().filter_map(|phase| phase.scope.as_ref())),
        phases,
        series: windows.finish(),
        samples,
        processes: logs.into_iter().map(OneLog::process).collect(),
    })
}

/// The log with the earliest next interval, and the middle of that interval.
fn earliest(logs: &[OneLog<'_>]) -> Option<(f64, usize)> {
    let next = logs.iter().enumerate().filter_map(|(index, log)| Some((log.next_middle_s()?, index)));
    next.min_by(|a, b| a.0.total_cmp(&b.0))
}

/// The statistics of a phase in one log.
#[derive(Default)]
struct PhaseOfLog {
    begun_ns: Option<u64>,
    ended: Option<(u64, bool)>,
    first_ns: Option<u64>,
    last_ns: u64,
    covered_s: f64,
    counted: ScopeBuilder,
    /// The part of the statistics that is kept separately.
    sound: ScopeBuilder,
}

/// A log that is being read.
struct OneLog<'a> {
    source: RecordSource<'a>,
    /// Seconds between the start of the run and the start of the process.
    offset_s: f64,
    /// Statistics until this time are kept separately.
    sound_until_s: Option<f64>,
    /// Length of the longest interval so far.
    interval_s: f64,
    /// The next interval.
    next: Option<Cow<'a, Record>>,
    /// Phases by number.
    parts: BTreeMap<u32, PhaseOfLog>,
    samples: Vec<ErrorExample>,
    stalls: Vec<Stall>,
    end: Option<(EndReason, u64)>,
    last_ns: u64,
}

impl<'a> OneLog<'a> {
    fn new(source: RecordSource<'a>, start_unix_ns: u64, sound_until_s: Option<f64>) -> OneLog<'a> {
        let offset_s = source.header().start_unix_ns.saturating_sub(start_unix_ns) as f64 * 1e-9;
        let mut log = OneLog {
            source,
            offset_s,
            sound_until_s,
            interval_s: 0.0,
            next: None,
            parts: BTreeMap::new(),
            samples: Vec::new(),
            stalls: Vec::new(),
            end: None,
            last_ns: 0,
        };
        log.advance();
        log
    }

    fn next_middle_s(&self) -> Option<f64> {
        match self.next.as_deref() {
            Some(Record::Interval(i)) => Some(self.offset_s + (i.begin_ns as f64 + i.end_ns as f64) * 0.5e-9),
            _ => None,
        }
    }

    /// Counts the next interval, and reads the one after it.
    fn take(&mut self) {
        if let Some(record) = self.next.take()
            && let Record::Interval(interval) = &*record
        {
            self.count(interval);
        }
        self.advance();
    }

    fn count(&mut self, interval: &Interval) {
        let end_s = self.offset_s + interval.end_ns as f64 * 1e-9;
        let sound = self.sound_until_s.is_some_and(|until| end_s <= until);
        self.interval_s = self.interval_s.max(interval.seconds());
        let part = self.parts.entry(interval.phase).or_default();
        part.first_ns = Some(part.first_ns.unwrap_or(u64::MAX).min(interval.begin_ns));
        part.last_ns = part.last_ns.max(interval.end_ns);
        part.covered_s += interval.seconds();
        part.counted.add(interval);
        if sound {
            part.sound.add(interval);
        }
        self.last_ns = interval.end_ns;
    }

    /// Processes records up to the next interval.
    fn advance(&mut self) {
        while let Some(record) = self.source.next() {
            match &*record {
                Record::Interval(_) => {
                    self.next = Some(record);
                    return;
                }
                Record::PhaseBegin { at_ns, phase } => {
                    self.parts.entry(*phase).or_default().begun_ns = Some(*at_ns);
                }
                Record::PhaseEnd { at_ns, phase, complete } => {
                    self.parts.entry(*phase).or_default().ended = Some((*at_ns, *complete));
                }
                Record::ErrorSample { at_ns, kind, detail, facts } => {
                    let at_s = self.offset_s + *at_ns as f64 * 1e-9;
                    self.samples.push(ErrorExample {
                        at_s,
                        kind: *kind,
                        detail: detail.clone(),
                        facts: facts.clone(),
                    });
                }
                Record::Stall(stall) => self.stalls.push(*stall),
                Record::End { reason, unfinished, .. } => self.end = Some((reason.clone(), *unfinished)),
                _ => {}
            }
        }
    }

    /// The name of a phase; a log without a plan has one phase `dflt`.
    fn phase_name(&self, phase: u32) -> &str {
        self.source.header().phases.get(phase as usize).map_or("dflt", |plan| &plan.name)
    }

    /// The facts of the phase with this name.
    fn part(&self, name: &str) -> Option<&PhaseOfLog> {
        self.parts.iter().find(|(phase, _)| self.phase_name(**phase) == name).map(|(_, part)| part)
    }

    fn process(self) -> ProcessFacts {
        let (end, unfinished) = self.end.unzip();
        let at_s = |ns: u64| self.offset_s + ns as f64 * 1e-9;
        // A stall that spans the edge of an interval may be in the log in overlapping parts.
        let stalls = Stall::united(self.stalls);
        let stalls = stalls.iter().map(|stall| (at_s(stall.begin_ns), at_s(stall.end_ns))).collect();
        ProcessFacts {
            log: self.source.name().to_owned(),
            header: self.source.header().clone(),
            end,
            unfinished,
            last_s: self.offset_s + self.last_ns as f64 * 1e-9,
            interval_s: self.interval_s,
            missing: self.source.missing(),
            stalls,
        }
    }
}

/// The phases of all logs, merged by name, in the order of the plans.
fn phases(logs: &mut [OneLog<'_>]) -> Vec<PhaseFacts> {
    let mut names: Vec<String> = Vec::new();
    for log in &*logs {
        let planned = log.source.header().phases.iter().map(|plan| plan.name.as_str());
        let used = log.parts.iter().filter(|(_, part)| part.first_ns.is_some());
        for name in planned.chain(used.map(|(phase, _)| log.phase_name(*phase))) {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
    }
    names.into_iter().map(|name| phase(logs, name)).collect()
}

fn phase(logs: &mut [OneLog<'_>], name: String) -> PhaseFacts {
    let taken: Vec<(f64, &PhaseOfLog)> =
        logs.iter().filter_map(|log| Some((log.offset_s, log.part(&name)?))).collect();
    let at = |offset_s: f64, ns: u64| offset_s + ns as f64 * 1e-9;
    let begin_s = taken.iter().filter_map(|(o, part)| Some(at(*o, part.first_ns?))).reduce(f64::min);
    let counted = || taken.iter().filter(|(_, part)| part.first_ns.is_some());
    let end_s = counted().map(|(o, part)| at(*o, part.last_ns)).reduce(f64::max);
    let lost_s = taken.iter().map(|(_, part)| part.lost_s()).fold(0.0, f64::max);
    let end = logs.iter().map(|log| log.part(&name).map_or(PhaseEnd::NotReached, PhaseOfLog::end)).max();
    let plans: Vec<_> =
        logs.iter().flat_map(|log| &log.source.header().phases).filter(|plan| plan.name == name).collect();
    let (primary, goal_duration_s, goal_xactions) = (
        plans.iter().any(|plan| plan.primary),
        plans.iter().filter_map(|plan| plan.duration_s).reduce(f64::max),
        plans.iter().map(|plan| plan.xactions).sum(),
    );
    // The counts of each log are needed only once, here.
    let scopes = logs.iter_mut().filter_map(|log| {
        let number = log.parts.keys().copied().find(|&phase| log.phase_name(phase) == name)?;
        let part = log.parts.get_mut(&number).filter(|part| part.first_ns.is_some())?;
        let counted = std::mem::take(&mut part.counted).scope();
        let planned = log.source.header().phases.get(number as usize);
        let plan = planned
            .map_or_else(|| PhaseGoals { name: name.clone(), ..PhaseGoals::default() }, PhaseGoals::from);
        Some(Scope { plan: Some(plan), ..counted })
    });
    let scope = Scope::concurrent(scopes);
    let until_s = logs.iter().find_map(|log| log.sound_until_s);
    let sound = until_s.map(|_| {
        let parts = logs.iter_mut().filter_map(|log| {
            let number = log.parts.keys().copied().find(|&phase| log.phase_name(phase) == name)?;
            Some(std::mem::take(&mut log.parts.get_mut(&number)?.sound).scope())
        });
        Scope::concurrent(parts).unwrap_or_default()
    });
    PhaseFacts {
        name,
        primary,
        goal_duration_s,
        goal_xactions,
        begin_s,
        end_s,
        lost_s,
        end: end.unwrap_or(PhaseEnd::NotReached),
        scope,
        sound,
    }
}

impl PhaseOfLog {
    /// Seconds between start and end that no interval covers.
    fn lost_s(&self) -> f64 {
        let (Some(begin), Some((end, _))) = (self.begun_ns, self.ended) else { return 0.0 };
        (end.saturating_sub(begin) as f64 * 1e-9 - self.covered_s).max(0.0)
    }

    fn end(&self) -> PhaseEnd {
        match self.ended {
            Some((_, true)) => PhaseEnd::Complete,
            Some((_, false)) => PhaseEnd::CutShort,
            None if self.begun_ns.is_some() || self.first_ns.is_some() => PhaseEnd::Unended,
            None => PhaseEnd::NotReached,
        }
    }
}

/// The first examples of each class.
fn samples(logs: &mut [OneLog<'_>]) -> Vec<ErrorExample> {
    let mut all: Vec<ErrorExample> =
        logs.iter_mut().flat_map(|log| std::mem::take(&mut log.samples)).collect();
    all.sort_by(|a, b| a.kind.cmp(&b.kind).then(a.at_s.total_cmp(&b.at_s)));
    let mut kept: Vec<ErrorExample> = Vec::new();
    for sample in all {
        if kept.iter().filter(|known| known.kind == sample.kind).count() < SAMPLES_PER_KIND {
            kept.push(sample);
        }
    }
    kept
}
