//! Live statistics from log records.

use std::collections::BTreeMap;

use polygraph_stats::record::environment;
use polygraph_stats::{Block, Class, ErrorKind, Header, Interval, Record, Side};

use crate::statistics::{FORMAT, LiveCounts, LiveError, LivePhase, LiveState, LiveStatistics, LiveVerdict};

/// A message covers at least so many seconds, however short the statistics intervals are.
const LEAST_S: f64 = 0.9;
/// Classes of errors in a message.
const MOST_ERRORS: usize = 8;

/// Makes the messages of one side of a process.
#[derive(Debug)]
pub struct SideStatistics {
    now: LiveStatistics,
    phases: Vec<PhasePlan>,
    phase_begin_s: f64,
    /// What the next message will cover.
    pending: Option<Interval>,
    errors: BTreeMap<ErrorKind, u64>,
}

/// What is planned for a phase, as far as messages say it.
#[derive(Debug)]
struct PhasePlan {
    name: String,
    duration_s: Option<f64>,
    primary: bool,
}

impl SideStatistics {
    /// The statistics of a process that has counted nothing so far.
    pub fn new(header: &Header) -> SideStatistics {
        let phases = header.phases.iter().map(|phase| PhasePlan {
            name: phase.name.clone(),
            duration_s: phase.duration_s,
            primary: phase.primary,
        });
        SideStatistics {
            now: LiveStatistics {
                format: FORMAT,
                host: header.environment(environment::HOST).unwrap_or_default().to_owned(),
                pid: header.pid,
                side: header.side,
                label: header.label.clone(),
                workload: header.workload.clone(),
                version: header.version.clone(),
                start_unix_us: 0,
                elapsed_s: 0.0,
                state: LiveState::Waiting,
                end: None,
                phase: None,
                planned_rate: header.offered_rate,
                interval: LiveCounts::default(),
                total: LiveCounts::default(),
                rptm_p95_us: None,
                open_connections: 0,
                transactions: 0,
                agents: 0,
                rss_bytes: 0,
                errors: Vec::new(),
                verdict: None,
            },
            phases: phases.collect(),
            phase_begin_s: 0.0,
            pending: None,
            errors: BTreeMap::new(),
        }
    }

    /// The last message.
    pub fn now(&self) -> &LiveStatistics {
        &self.now
    }

    /// The next messages have this verdict.
    pub fn set_verdict(&mut self, verdict: Option<LiveVerdict>) {
        self.now.verdict = verdict;
    }

    /// Adds a record. True if there is a new message.
    pub fn add(&mut self, header: &Header, record: &Record) -> bool {
        self.now.start_unix_us = header.start_unix_ns / 1000;
        match record {
            Record::PhaseBegin { at_ns, phase } => {
                self.phase_begin_s = *at_ns as f64 * 1e-9;
                self.now.state = LiveState::Running;
                self.set_phase(*phase);
                false
            }
            Record::Interval(interval) => {
                self.pend(interval);
                self.is_due() && self.count()
            }
            // The last part of a phase belongs to its statistics.
            Record::PhaseEnd { .. } => self.count(),
            Record::End { at_ns, reason, .. } => {
                self.count();
                self.now.interval = LiveCounts::default();
                self.now.rptm_p95_us = None;
                self.now.elapsed_s = *at_ns as f64 * 1e-9;
                self.now.state = LiveState::Ended;
                self.now.end = Some(polygraph_report::lr::end_reason(reason));
                true
            }
            _ => false,
        }
    }

    fn set_phase(&mut self, number: u32) {
        let plan = self.phases.get(number as usize);
        self.now.phase = Some(LivePhase {
            name: plan.map_or_else(|| "dflt".to_owned(), |plan| plan.name.clone()),
            index: number,
            planned: self.phases.len().max(1) as u32,
            elapsed_s: 0.0,
            duration_s: plan.and_then(|plan| plan.duration_s),
            primary: plan.is_some_and(|plan| plan.primary),
        });
    }

    fn pend(&mut self, interval: &Interval) {
        match &mut self.pending {
            Some(pending) => pending.append(interval),
            None => self.pending = Some(interval.clone()),
        }
    }

    fn is_due(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.seconds() >= LEAST_S)
    }

    /// Counts what is pending. False if nothing is.
    fn count(&mut self) -> bool {
        let Some(interval) = self.pending.take() else { return false };
        let block = &interval.block;
        self.now.state = LiveState::Running;
        self.now.elapsed_s = interval.end_ns as f64 * 1e-9;
        self.now.interval = counts(&interval, self.now.side);
        self.now.total.append(&self.now.interval);
        self.now.rptm_p95_us = block.rptm_us().quantile(0.95);
        self.now.open_connections = block.conns.last;
        self.now.transactions = block.xacts.last;
        self.now.agents = block.populus.last;
        self.now.rss_bytes = interval.rss_bytes;
        if self.now.phase.is_none() {
            self.set_phase(interval.phase);
        }
        if let Some(phase) = &mut self.now.phase {
            phase.elapsed_s = (self.now.elapsed_s - self.phase_begin_s).max(0.0);
        }
        self.count_errors(block);
        true
    }

    fn count_errors(&mut self, block: &Block) {
        for (kind, count) in block.errors.iter().filter(|(_, count)| *count > 0) {
            *self.errors.entry(kind).or_default() += count;
        }
        let mut all: Vec<_> = self.errors.iter().map(|(kind, count)| (*kind, *count)).collect();
        all.sort_by_key(|(kind, count)| (!kind.fails(), std::cmp::Reverse(*count)));
        let error = |(kind, count): (ErrorKind, u64)| LiveError {
            number: kind.number().to_owned(),
            text: kind.text().to_owned(),
            count,
            fails: kind.fails(),
        };
        self.now.errors = all.into_iter().take(MOST_ERRORS).map(error).collect();
    }
}

fn counts(interval: &Interval, side: Side) -> LiveCounts {
    let block = &interval.block;
    // Servers do not see hits.
    let of_client = |count: u64| if side == Side::Client { count as f64 } else { 0.0 };
    LiveCounts {
        seconds: interval.seconds(),
        started: block.xacts.entered as f64,
        ok: block.ok_count() as f64,
        failed: block.failed_count() as f64,
        rptm_us: Class::ALL.iter().map(|&class| block.class(class).rptm_us.sum()).sum(),
        basic: of_client(block.count_of(&Class::BASIC)),
        hits: of_client(block.class(Class::Hit).size.count()),
        offered_hits: of_client(block.offered_hits.count),
        reply_bytes: block.ok_bytes(),
        cpu_s: interval.cpu_ns as f64 * 1e-9,
        busiest_s: interval.busiest_loop_ns as f64 * 1e-9,
    }
}
