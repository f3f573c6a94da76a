//! One walk over the records of the logs of one side: phases, series, samples, ends.
//!
//! Records of several logs are processed in order of time, so a window of the series is complete when the first
//! interval of a later window arrives. One record of each log, one window, and the statistics of each log in the current
//! phase are in memory at a time; those of earlier phases are packed.

use std::borrow::Cow;
use std::collections::BTreeMap;

use polygraph_stats::stall::Stall;
use polygraph_stats::{ClockAhead, EndReason, Interval, Record, Side};

use crate::facts::{ErrorExample, IntervalTime, PhaseEnd, PhaseFacts, ProcessFacts, SideFacts};
use crate::scope::{PhaseGoals, Scope, ScopeBuilder};
use crate::series::SeriesBuilder;
use crate::source::{LogSource, RecordSource, of_side, offset_s};

/// Examples kept of each class of errors.
const SAMPLES_PER_KIND: usize = 3;

/// The facts of one side. `window_s` is the length of the windows of the series; statistics until `sound_until_s` are
/// also kept separately. `None` without logs of that side.
pub(crate) fn side<S: LogSource>(
    logs: &[S],
    side: Side,
    start_unix_ns: u64,
    window_s: f64,
    sound_until_s: Option<f64>,
) -> Option<SideFacts> {
    let mut logs: Vec<OneLog<'_, S>> =
        of_side(logs, side).into_iter().map(|log| OneLog::new(log, start_unix_ns, sound_until_s)).collect();
    logs.iter_mut().for_each(OneLog::advance);
    let mut windows = SeriesBuilder::new(window_s);
    while let Some((at_s, index)) = earliest(&logs) {
        let log = &mut logs[index];
        if let Some(Record::Interval(interval)) = log.next.as_deref() {
            windows.add(at_s, index, interval);
        }
        log.take();
    }
    facts(logs, side, windows)
}

/// The facts of all sides except series, from a walk over one log after the other. `each` sees all records with the
/// number of their log.
pub(crate) fn in_turn<S: LogSource>(
    logs: &[S],
    start_unix_ns: u64,
    mut each: impl FnMut(usize, Cow<'_, Record>),
) -> Vec<SideFacts> {
    let mut sides: [Vec<OneLog<'_, S>>; 2] = [Vec::new(), Vec::new()];
    for (number, log) in logs.iter().enumerate() {
        let mut one = OneLog::new(log, start_unix_ns, None);
        while let Some(record) = one.records.next() {
            one.add(&record);
            each(number, record);
        }
        one.pack(None);
        sides[usize::from(log.header().side == Side::Server)].push(one);
    }
    let [clients, servers] = sides;
    [(clients, Side::Client), (servers, Side::Server)]
        .into_iter()
        .filter_map(|(logs, side)| facts(logs, side, SeriesBuilder::new(f64::INFINITY)))
        .collect()
}

fn facts<S: LogSource>(
    mut logs: Vec<OneLog<'_, S>>,
    side: Side,
    windows: SeriesBuilder,
) -> Option<SideFacts> {
    if logs.is_empty() {
        return None;
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
fn earliest<S: LogSource>(logs: &[OneLog<'_, S>]) -> Option<(f64, usize)> {
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
struct OneLog<'a, S> {
    log: &'a S,
    records: RecordSource<'a>,
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
    /// The phase of the last interval.
    current: Option<u32>,
    intervals: Vec<IntervalTime>,
    samples: Vec<ErrorExample>,
    succeeded: u64,
    started: u64,
    clock: ClockAhead,
    stalls: Vec<Stall>,
    end: Option<(EndReason, u64)>,
    last_ns: u64,
}

impl<'a, S: LogSource> OneLog<'a, S> {
    fn new(log: &'a S, start_unix_ns: u64, sound_until_s: Option<f64>) -> OneLog<'a, S> {
        OneLog {
            log,
            records: log.records(),
            offset_s: offset_s(log.header(), start_unix_ns),
            sound_until_s,
            interval_s: 0.0,
            next: None,
            parts: BTreeMap::new(),
            current: None,
            intervals: Vec::new(),
            samples: Vec::new(),
            succeeded: 0,
            started: 0,
            clock: ClockAhead::default(),
            stalls: Vec::new(),
            end: None,
            last_ns: 0,
        }
    }

    fn next_middle_s(&self) -> Option<f64> {
        match self.next.as_deref() {
            Some(Record::Interval(i)) => Some(self.offset_s + (i.begin_ns as f64 + i.end_ns as f64) * 0.5e-9),
            _ => None,
        }
    }

    /// Counts the next interval, and reads the one after it.
    fn take(&mut self) {
        if let Some(record) = self.next.take() {
            self.add(&record);
        }
        self.advance();
    }

    /// Processes records up to the next interval. At the end, no phase grows any longer.
    fn advance(&mut self) {
        while let Some(record) = self.records.next() {
            if matches!(*record, Record::Interval(_)) {
                self.next = Some(record);
                return;
            }
            self.add(&record);
        }
        self.pack(None);
    }

    /// Packs the phase that intervals belonged to so far, if the next one belongs to another.
    fn pack(&mut self, next: Option<u32>) {
        if self.current != next
            && let Some(part) = self.current.and_then(|phase| self.parts.get_mut(&phase))
        {
            part.counted.pack();
            part.sound.pack();
        }
        self.current = next;
    }

    fn count(&mut self, interval: &Interval) {
        self.pack(Some(interval.phase));
        let end_s = self.offset_s + interval.end_ns as f64 * 1e-9;
        let &Interval { phase, begin_ns, end_ns, .. } = interval;
        self.intervals.push(IntervalTime { phase, begin_ns, end_ns });
        let sound = self.sound_until_s.is_some_and(|until| end_s <= until);
        self.interval_s = self.interval_s.max(interval.seconds());
        self.succeeded += interval.block.ok_count();
        self.started += interval.block.xacts.entered;
        interval.block.clock.seconds().iter().for_each(|seconds| self.clock.note(*seconds));
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

    fn add(&mut self, record: &Record) {
        match record {
            Record::Interval(interval) => self.count(interval),
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

    fn phase_name(&self, phase: u32) -> &str {
        self.log.phase_name(phase)
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
            log: self.log.name().to_owned(),
            header: self.log.header().clone(),
            end,
            unfinished,
            begin_s: self.offset_s,
            last_s: self.offset_s + self.last_ns as f64 * 1e-9,
            interval_s: self.interval_s,
            intervals: self.intervals,
            missing: self.records.missing().to_owned(),
            succeeded: self.succeeded,
            started: self.started,
            clock: self.clock,
            stalls,
        }
    }
}

/// The phases of all logs, merged by name, in the order of the plans.
fn phases<S: LogSource>(logs: &mut [OneLog<'_, S>]) -> Vec<PhaseFacts> {
    let mut names: Vec<String> = Vec::new();
    for log in &*logs {
        let planned = log.log.header().phases.iter().map(|plan| plan.name.as_str());
        let used = log.parts.iter().filter(|(_, part)| part.first_ns.is_some());
        for name in planned.chain(used.map(|(phase, _)| log.phase_name(*phase))) {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
    }
    names.into_iter().map(|name| phase(logs, name)).collect()
}

fn phase<S: LogSource>(logs: &mut [OneLog<'_, S>], name: String) -> PhaseFacts {
    let taken: Vec<(f64, &PhaseOfLog)> =
        logs.iter().filter_map(|log| Some((log.offset_s, log.part(&name)?))).collect();
    let at = |offset_s: f64, ns: u64| offset_s + ns as f64 * 1e-9;
    let begin_s = taken.iter().filter_map(|(o, part)| Some(at(*o, part.first_ns?))).reduce(f64::min);
    let counted = || taken.iter().filter(|(_, part)| part.first_ns.is_some());
    let end_s = counted().map(|(o, part)| at(*o, part.last_ns)).reduce(f64::max);
    let lost_s = taken.iter().map(|(_, part)| part.lost_s()).fold(0.0, f64::max);
    let end = logs.iter().map(|log| log.part(&name).map_or(PhaseEnd::NotReached, PhaseOfLog::end)).max();
    let plans: Vec<_> =
        logs.iter().flat_map(|log| &log.log.header().phases).filter(|plan| plan.name == name).collect();
    let (primary, goal_duration_s, goal_xactions) = (
        plans.iter().any(|plan| plan.primary),
        plans.iter().filter_map(|plan| plan.duration_s).reduce(f64::max),
        plans.iter().map(|plan| plan.xactions).sum(),
    );
    let load = plans.first().map(|plan| plan.load);
    // The counts of each log are needed only once, here.
    let scopes = logs.iter_mut().filter_map(|log| {
        let number = log.parts.keys().copied().find(|&phase| log.phase_name(phase) == name)?;
        let part = log.parts.get_mut(&number).filter(|part| part.first_ns.is_some())?;
        let counted = std::mem::take(&mut part.counted).scope();
        let planned = log.log.header().phases.get(number as usize);
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
        load,
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
fn samples<S: LogSource>(logs: &mut [OneLog<'_, S>]) -> Vec<ErrorExample> {
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
