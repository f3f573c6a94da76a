//! The coordinator of a test: loops are started, their counts followed, phases ended, logs written.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use polygraph_link::{Nanos, SECOND, nanos};
use polygraph_plan::{Along, Schedule, WorkingSetLimit};
use polygraph_stats::{EndReason, Header, Record, Side};
use polygraph_traffic::store::Share;

use crate::freeze::{Event, WorkingSet};
use crate::gauge::Counts;
use crate::ledger::Ledger;
use crate::roles::{client_roles, server_roles};
use crate::run::{EngineError, Job, Outcome, StartRule};
use crate::side::{SideState, Starter};
use crate::signals::{Panicked, StopSignals, watch_panics};
use crate::timeline::Timeline;
use crate::timers;
use crate::worker::{self, Delivery, Frame, await_ready};

/// How often goals are looked at.
const TICK: Duration = Duration::from_millis(20);
/// Decisions are made this much ahead of their time, so that all loops see them before.
const NOTICE: Nanos = SECOND / 10;
/// Loops that do not deliver within so long after the end are given up.
const PATIENCE: Nanos = 5 * SECOND;

/// The phase that is going on.
#[derive(Clone, Copy)]
struct Current {
    phase: usize,
    begin: Nanos,
    /// What was counted before it began.
    before: Counts,
}

/// The coordinator of a test.
#[derive(Debug)]
pub struct Coordinator {
    schedule: Arc<Schedule>,
    timeline: Arc<Timeline>,
    start: StartRule,
    working_set: WorkingSet,
    /// Objects that an earlier test has filled.
    filled_before: u64,
    idle_timeout: Option<f64>,
    sides: Vec<SideState>,
    inbox: Receiver<Delivery>,
    /// Shares of the working set that were delivered, by loop; `None` if nobody wants them.
    shares: Option<BTreeMap<usize, Share>>,
    /// Loops, and relays of processes with loops: whatever ends when its loops end.
    threads: Vec<(Side, JoinHandle<io::Result<()>>)>,
    signals: StopSignals,
    panicked: Panicked,
}

impl Coordinator {
    /// Starts the loops and waits until they are there.
    ///
    /// # Errors
    /// If one cannot be started.
    pub fn start(job: Job) -> Result<Coordinator, EngineError> {
        let signals = StopSignals::new().map_err(EngineError::Loop)?;
        let panicked = watch_panics();
        let schedule = Arc::new(job.schedule);
        let timeline = Arc::new(Timeline::new(schedule.phases.len()));
        let frame = Frame {
            schedule: Arc::clone(&schedule),
            timeline: Arc::clone(&timeline),
            interval: job.interval,
            quantum: job.quantum,
        };
        // What was frozen when it was stored stays so.
        let earlier = job.client.as_ref().and_then(|client| client.earlier.as_ref());
        if earlier.is_some_and(polygraph_traffic::store::WorkingSet::is_frozen) {
            timeline.freeze();
        }
        let filled_before = earlier.map_or(0, |set| set.fill().count);
        let shares = job.client.as_ref().filter(|client| client.stores).map(|_| BTreeMap::new());
        let (filled, inbox) = channel();
        let (ready, all_ready) = channel();
        let mut starter = Starter::new(frame, filled, ready);
        let mut sides = Vec::new();
        if let Some(server) = &job.server {
            sides.push(starter.side(&server.header, &server.log, server.layout, server_roles(server))?);
        }
        if let Some(client) = &job.client {
            sides.push(starter.side(&client.header, &client.log, client.layout, client_roles(client))?);
        }
        let (of_sides, threads): (Vec<_>, Vec<_>) = starter.threads().into_iter().unzip();
        // Addresses stay reserved until the servers listen.
        await_ready(&all_ready, &threads).map_err(EngineError::Loop)?;
        Ok(Coordinator {
            schedule,
            timeline,
            start: job.start,
            working_set: WorkingSet::new(None, 0),
            filled_before,
            shares,
            idle_timeout: job.idle_timeout,
            sides,
            inbox,
            threads: of_sides.into_iter().zip(threads).collect(),
            signals,
            panicked,
        })
    }

    /// From the first traffic to the last record.
    ///
    /// # Errors
    /// If a log cannot be written.
    pub async fn follow(&mut self, watch: &mut impl FnMut(&Header, &Record)) -> Result<Outcome, EngineError> {
        let reason = match self.wait_for_traffic().await {
            Some(reason) => {
                let now = timers::now();
                self.open_ledgers(now, watch)?;
                self.timeline.cut(0, now);
                self.timeline.set_start(now);
                reason
            }
            None => {
                let start = timers::now() + NOTICE;
                self.open_ledgers(start, watch)?;
                self.timeline.set_start(start);
                self.go_through_phases(start, watch).await?
            }
        };
        self.finish(reason, watch)
    }

    /// Returns the reason to end if there is one before any traffic.
    async fn wait_for_traffic(&mut self) -> Option<EndReason> {
        if self.start == StartRule::Now {
            return None;
        }
        let begin = timers::now();
        loop {
            if self.sides.iter().any(|side| side.counts().connections > 0) {
                return None;
            }
            if self.tick().await {
                return Some(EndReason::Interrupted);
            }
            if let Some(why) = self.breakdown(false) {
                return Some(EndReason::Fatal(why));
            }
            if self.idle_timeout.is_some_and(|timeout| timers::now() > begin + nanos(timeout)) {
                return Some(EndReason::Idle);
            }
        }
    }

    fn open_ledgers(
        &mut self,
        start: Nanos,
        watch: &mut impl FnMut(&Header, &Record),
    ) -> Result<(), EngineError> {
        for side in &mut self.sides {
            let Some(header) = side.header.take() else { continue };
            let back = std::mem::take(&mut side.back);
            let mut ledger = Ledger::open(header, start, side.path.as_deref(), back)
                .map_err(|source| side.log_error(source))?;
            let record = Record::Header(Box::new(ledger.header().clone()));
            ledger.write(&record).map_err(|source| side.log_error(source))?;
            watch(ledger.header(), &record);
            side.ledger = Some(ledger);
        }
        Ok(())
    }

    /// Begins and ends phases until the last one is over or something ends the run before.
    async fn go_through_phases(
        &mut self,
        start: Nanos,
        watch: &mut impl FnMut(&Header, &Record),
    ) -> Result<EndReason, EngineError> {
        let mut current = Current { phase: 0, begin: start, before: Counts::default() };
        self.working_set = match self.timeline.is_frozen() {
            true => WorkingSet::frozen(),
            false => WorkingSet::new(self.working_set_limit(), start),
        };
        let mut last_traffic = (self.activity(), start);
        self.begin_phase(&current, watch)?;
        loop {
            let interrupted = self.tick().await;
            self.collect(watch)?;
            let now = timers::now();
            if last_traffic.0 != self.activity() {
                last_traffic = (self.activity(), now);
            }
            self.follow_working_set(now, watch)?;
            let idle = self.idle_timeout.is_some_and(|timeout| now > last_traffic.1 + nanos(timeout));
            let last = current.phase + 1 == self.schedule.phases.len();
            let over = last && self.timeline.end(current.phase).is_some_and(|end| now >= end);
            let cut = if interrupted {
                Some(EndReason::Interrupted)
            } else if let Some(why) = self.breakdown(over) {
                Some(EndReason::Fatal(why))
            } else if self.has_failed(&current) {
                Some(EndReason::ErrorGoal { phase: self.schedule.phases[current.phase].name.clone() })
            } else if idle {
                Some(EndReason::Idle)
            } else {
                None
            };
            if let Some(reason) = cut {
                // An endless phase has no goal that could be missed: being stopped is its end.
                let complete = self.schedule.phases[current.phase].goal.is_endless();
                let at = now.max(start) + NOTICE;
                self.timeline.cut(current.phase, at);
                self.end_phase(&current, at, complete, watch)?;
                return Ok(reason);
            }
            self.publish_progress(&current);
            self.decide_end(&current, now);
            match self.timeline.end(current.phase) {
                Some(end) if end <= now => {
                    self.end_phase(&current, end, true, watch)?;
                    if current.phase + 1 == self.schedule.phases.len() {
                        return Ok(EndReason::Finished);
                    }
                    current = Current { phase: current.phase + 1, begin: end, before: self.counts() };
                    self.begin_phase(&current, watch)?;
                }
                _ => {}
            }
        }
    }

    /// Sets the end of the current phase when it is known: ahead of time for durations, or when another goal is
    /// met; never while the phase waits for the working set.
    fn decide_end(&self, current: &Current, now: Nanos) {
        let phase = &self.schedule.phases[current.phase];
        let held = phase.wait_wss_freeze && self.working_set.holds_phases();
        if self.timeline.end(current.phase).is_some() || held {
            return;
        }
        let goal = &phase.goal;
        let planned = goal.duration.map(|duration| current.begin + nanos(duration));
        let done = self.counts() - current.before;
        // A time is published ahead, unless something else may still come first or stand against it.
        let sure = goal.xactions.is_none() && goal.fill_size.is_none() && !phase.wait_wss_freeze;
        let end = if goal.is_met(done.ended(), done.fill_bytes) {
            planned.unwrap_or(Nanos::MAX).min(now + NOTICE)
        } else {
            match planned {
                Some(planned) if sure || planned <= now + 2 * NOTICE => planned,
                _ => return,
            }
        };
        // Never in the past, even if this comes late: loops may be beyond it already.
        let end = if end <= now { now + NOTICE } else { end };
        self.timeline.set_end(current.phase, end);
    }

    /// Publishes how far the current phase is, if its factors follow that.
    fn publish_progress(&self, current: &Current) {
        let phase = &self.schedule.phases[current.phase];
        if phase.factors.are_flat() {
            return;
        }
        let done = self.counts() - current.before;
        let share = match phase.goal.along() {
            Some(Along::Xactions(goal)) => done.ended() as f64 / goal as f64,
            Some(Along::Fill(goal)) => done.fill_bytes as f64 / goal as f64,
            Some(Along::Time(_)) | None => return,
        };
        self.timeline.set_progress(current.phase, share.min(1.0));
    }

    /// The limit of the working set, which belongs to the robots.
    fn working_set_limit(&self) -> Option<WorkingSetLimit> {
        let has_robots = self.sides.iter().any(|side| side.side == Side::Client);
        self.schedule.working_set.filter(|_| has_robots)
    }

    /// Freezes the working set when its limit is met, and tells.
    fn follow_working_set(
        &mut self,
        now: Nanos,
        watch: &mut impl FnMut(&Header, &Record),
    ) -> Result<(), EngineError> {
        let counts = self.counts();
        for event in self.working_set.look(self.filled_before + counts.fills, now) {
            let text = match event {
                Event::Started => "working set: fill started".to_owned(),
                Event::Frozen => {
                    self.timeline.freeze();
                    format!(
                        "working set frozen: {} objects, {} bytes filled",
                        self.filled_before + counts.fills,
                        counts.fill_bytes
                    )
                }
            };
            self.record(watch, |ledger| Record::Comment {
                at_ns: ledger.since_start(now),
                level: 5,
                text: text.clone(),
            })?;
        }
        Ok(())
    }

    /// What broke down, if anything did: loops live until the run is `over`, and their tasks do not panic.
    fn breakdown(&mut self, over: bool) -> Option<String> {
        while let Some(at) = self.threads.iter().position(|(_, thread)| thread.is_finished()) {
            let (_, thread) = self.threads.swap_remove(at);
            let name = thread.thread().name().unwrap_or("an event loop").to_owned();
            match worker::join(thread) {
                Err(e) => return Some(e.to_string()),
                Ok(()) if !over => return Some(format!("{name} ended before the run")),
                Ok(()) => {}
            }
        }
        self.panicked.is_set().then(|| "a panic, see the message on standard error".to_owned())
    }

    fn has_failed(&self, current: &Current) -> bool {
        let done = self.counts() - current.before;
        self.schedule.phases[current.phase].goal.has_failed(done.ok, done.failed)
    }

    fn begin_phase(
        &mut self,
        current: &Current,
        watch: &mut impl FnMut(&Header, &Record),
    ) -> Result<(), EngineError> {
        self.decide_end(current, timers::now());
        let phase = current.phase as u32;
        self.record(watch, |ledger| Record::PhaseBegin { at_ns: ledger.since_start(current.begin), phase })
    }

    fn end_phase(
        &mut self,
        current: &Current,
        at: Nanos,
        complete: bool,
        watch: &mut impl FnMut(&Header, &Record),
    ) -> Result<(), EngineError> {
        // The loops deliver the phase's last interval a moment after its end.
        let given_up = at + SECOND / 2;
        while timers::now() < given_up {
            self.collect(watch)?;
            let behind = |ledger: &Ledger| ledger.delivered() < ledger.since_start(at);
            if !self.sides.iter().filter_map(|side| side.ledger.as_ref()).any(behind) {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        let phase = current.phase as u32;
        self.record(watch, |ledger| Record::PhaseEnd { at_ns: ledger.since_start(at), phase, complete })
    }

    /// Writes a record to the logs of all sides.
    fn record(
        &mut self,
        watch: &mut impl FnMut(&Header, &Record),
        make: impl Fn(&Ledger) -> Record,
    ) -> Result<(), EngineError> {
        for at in 0..self.sides.len() {
            let Some(mut ledger) = self.sides[at].ledger.take() else { continue };
            let record = make(&ledger);
            ledger.write(&record).map_err(|source| self.sides[at].log_error(source))?;
            watch(ledger.header(), &record);
            self.sides[at].ledger = Some(ledger);
        }
        Ok(())
    }

    /// Takes what loops have handed over.
    fn collect(&mut self, watch: &mut impl FnMut(&Header, &Record)) -> Result<(), EngineError> {
        while let Ok(delivery) = self.inbox.try_recv() {
            let hand_over = match delivery {
                Delivery::Interval(hand_over) => hand_over,
                Delivery::Share { index, share } => {
                    if let Some(shares) = &mut self.shares {
                        shares.insert(index, *share);
                    }
                    continue;
                }
            };
            let Some(side) = self.sides.iter_mut().find(|side| side.side == hand_over.side) else { continue };
            let Some(mut ledger) = side.ledger.take() else { continue };
            let records = ledger.take(hand_over).map_err(|source| side.log_error(source))?;
            records.iter().for_each(|record| watch(ledger.header(), record));
            side.ledger = Some(ledger);
        }
        Ok(())
    }

    /// Waits for the loops and closes the books.
    fn finish(
        &mut self,
        reason: EndReason,
        watch: &mut impl FnMut(&Header, &Record),
    ) -> Result<Outcome, EngineError> {
        let deadline = timers::now() + PATIENCE;
        let mut failure = None;
        while !self.threads.is_empty() && timers::now() < deadline {
            self.collect(watch)?;
            if self.threads.iter().all(|(side, _)| *side == Side::Server) {
                self.timeline.let_servers_go();
            }
            failure = failure.or(self.breakdown(true));
            std::thread::sleep(Duration::from_millis(5));
        }
        if !self.threads.is_empty() {
            let stuck: Vec<&str> =
                self.threads.iter().filter_map(|(_, thread)| thread.thread().name()).collect();
            failure = failure.or(Some(format!("{} did not end with the run", stuck.join(", "))));
        }
        self.collect(watch)?;
        let totals = self.counts().totals();
        let reason = match (reason, failure) {
            // What broke first explains what broke later.
            (reason @ EndReason::Fatal(_), _) | (reason, None) => reason,
            (_, Some(why)) => EndReason::Fatal(why),
        };
        for at in 0..self.sides.len() {
            let Some(mut ledger) = self.sides[at].ledger.take() else { continue };
            let closed = ledger.close(timers::now(), reason.clone());
            let records = closed.map_err(|source| self.sides[at].log_error(source))?;
            records.iter().for_each(|record| watch(ledger.header(), record));
        }
        let loops =
            self.sides.iter().find(|side| side.side == Side::Client).map_or(0, |side| side.gauges.len());
        let shares = self.shares.take().filter(|shares| shares.len() == loops);
        Ok(Outcome { reason, totals, shares: shares.map(|shares| shares.into_values().collect()) })
    }

    /// The counts by which goals are judged: the client's, where there is one.
    fn counts(&self) -> Counts {
        let client = self.sides.iter().find(|side| side.side == Side::Client);
        client.or(self.sides.first()).map(SideState::counts).unwrap_or_default()
    }

    /// A number that changes when anything happens on any side.
    fn activity(&self) -> u64 {
        let counts = self.sides.iter().map(SideState::counts);
        counts.map(|counts| counts.started + counts.ok + counts.connections).sum()
    }

    /// Waits a moment; true if the user wants to stop. Wanting it twice ends the process.
    async fn tick(&mut self) -> bool {
        tokio::time::timeout(TICK, self.signals.recv()).await.is_ok()
    }
}
