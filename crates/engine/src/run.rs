//! A test from start to end: loops are started, their counts followed, phases ended, logs written.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use polygraph_link::{Nanos, SECOND, nanos};
use polygraph_plan::Schedule;
use polygraph_stats::{EndReason, Header, Record, Side, Totals};
use polygraph_traffic::IdSource;

use crate::ledger::Ledger;
use crate::listen::Listeners;
use crate::ports::Ports;
use crate::signals::StopSignals;
use crate::timeline::Timeline;
use crate::timers;
use crate::worker::{self, Desk, Frame, Gauge, HandOver, Role};

/// How often goals are looked at.
const TICK: Duration = Duration::from_millis(20);
/// Decisions are made this much ahead of their time, so that all loops see them before.
const NOTICE: Nanos = SECOND / 10;
/// Loops that do not deliver within so long after the end are given up.
const PATIENCE: Nanos = 5 * SECOND;

/// The robots of a test.
#[derive(Debug)]
pub struct ClientJob {
    /// Settings of all robots; the engine divides them among loops.
    pub settings: polygraph_robot::Settings,
    /// Explicit local ports.
    pub ports: Option<(u16, u16)>,
    /// Number of loops.
    pub loops: usize,
    /// Source of ids, one for each loop.
    pub ids: Vec<IdSource>,
    /// What the log says about the run.
    pub header: Header,
    /// Where the log goes.
    pub log: Option<PathBuf>,
}

/// The origin servers of a test.
#[derive(Debug)]
pub struct ServerJob {
    /// Settings and listening sockets of each server; all have a socket for each loop.
    pub sites: Vec<(polygraph_origin::Settings, Listeners)>,
    /// What the log says about the run.
    pub header: Header,
    /// Where the log goes.
    pub log: Option<PathBuf>,
}

/// When the first phase begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartRule {
    /// At once.
    Now,
    /// With the first connection.
    FirstTraffic,
}

/// A test.
#[derive(Debug)]
pub struct Job {
    /// The phases.
    pub schedule: Schedule,
    /// When they begin.
    pub start: StartRule,
    /// Robots, if this process simulates them.
    pub client: Option<ClientJob>,
    /// Servers, if this process simulates them.
    pub server: Option<ServerJob>,
    /// Length of statistics intervals in nanoseconds.
    pub interval: Nanos,
    /// Timers that are closer than this share a wake-up.
    pub quantum: Nanos,
    /// The run ends after so many seconds without any traffic.
    pub idle_timeout: Option<f64>,
}

/// How a test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Why.
    pub reason: EndReason,
    /// Transactions of the client side, or of the server side where there is no client.
    pub totals: Totals,
}

/// Why a test could not be run.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The log cannot be written.
    #[error("cannot write the log {path}: {source}")]
    Log {
        /// Its path.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// A loop cannot be started or broke off.
    #[error("an event loop failed: {0}")]
    Loop(io::Error),
}

/// Runs a test to its end. `watch` sees every record of both logs as it is written.
///
/// # Errors
/// If the test cannot be run. A test that fails is no error, see [`Outcome::reason`].
pub fn run(job: Job, mut watch: impl FnMut(&Header, &Record)) -> Result<Outcome, EngineError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(Default::default())
        .map_err(EngineError::Loop)?;
    runtime.block_on(async {
        let mut coordinator = Coordinator::start(job)?;
        coordinator.follow(&mut watch).await
    })
}

/// One side of the running test.
struct SideState {
    side: Side,
    gauges: Vec<Arc<Gauge>>,
    header: Option<Header>,
    path: Option<PathBuf>,
    back: Vec<std::sync::mpsc::Sender<Box<polygraph_stats::Block>>>,
    ledger: Option<Ledger>,
}

impl SideState {
    fn totals(&self) -> Totals {
        self.gauges.iter().map(|gauge| gauge.totals()).sum()
    }

    fn connections(&self) -> u64 {
        self.gauges.iter().map(|gauge| gauge.connections()).sum()
    }

    fn log_error(&self, source: io::Error) -> EngineError {
        let path = self.path.as_ref().map_or_else(String::new, |path| path.display().to_string());
        EngineError::Log { path, source }
    }
}

/// The phase that is going on.
#[derive(Clone, Copy)]
struct Current {
    phase: usize,
    begin: Nanos,
    /// Transactions before it began.
    before: Totals,
}

struct Coordinator {
    schedule: Arc<Schedule>,
    timeline: Arc<Timeline>,
    start: StartRule,
    idle_timeout: Option<f64>,
    sides: Vec<SideState>,
    inbox: Receiver<HandOver>,
    threads: Vec<(Side, JoinHandle<io::Result<()>>)>,
    signals: StopSignals,
    /// Set by the first panic of any thread: the runtime keeps those of tasks to itself.
    panicked: Arc<AtomicBool>,
}

impl Coordinator {
    fn start(job: Job) -> Result<Coordinator, EngineError> {
        let signals = StopSignals::new().map_err(EngineError::Loop)?;
        let schedule = Arc::new(job.schedule);
        let timeline = Arc::new(Timeline::new(schedule.phases.len()));
        let frame = Frame {
            schedule: Arc::clone(&schedule),
            timeline: Arc::clone(&timeline),
            interval: job.interval,
            quantum: job.quantum,
        };
        let (filled, inbox) = channel();
        let mut threads = Vec::new();
        let mut sides = Vec::new();
        // Servers first, so that they are there when the robots start.
        let server = job.server.map(|job| (job.header.clone(), job.log.clone(), server_roles(job)));
        let client = job.client.map(|job| (job.header.clone(), job.log.clone(), client_roles(job)));
        for (header, path, roles) in server.into_iter().chain(client) {
            let side = header.side;
            let mut state =
                SideState { side, gauges: vec![], header: Some(header), path, back: vec![], ledger: None };
            for (index, role) in roles.into_iter().enumerate() {
                let (back, used) = channel();
                let gauge = Arc::new(Gauge::default());
                state.gauges.push(Arc::clone(&gauge));
                state.back.push(back);
                let desk = Desk { index, gauge, filled: filled.clone(), used };
                let name = format!("{}-{index}", side.name());
                let thread = worker::start(name, role, frame.clone(), desk).map_err(EngineError::Loop)?;
                threads.push((side, thread));
            }
            sides.push(state);
        }
        Ok(Coordinator {
            schedule,
            timeline,
            start: job.start,
            idle_timeout: job.idle_timeout,
            sides,
            inbox,
            threads,
            signals,
            panicked: watch_panics(),
        })
    }

    /// From the first traffic to the last record.
    async fn follow(&mut self, watch: &mut impl FnMut(&Header, &Record)) -> Result<Outcome, EngineError> {
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
            if self.sides.iter().any(|side| side.connections() > 0) {
                return None;
            }
            if self.tick().await {
                return Some(EndReason::Interrupted);
            }
            if self.has_panicked() || self.threads.iter().any(|(_, thread)| thread.is_finished()) {
                return Some(EndReason::Fatal("an event loop broke down".into()));
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
        let mut current = Current { phase: 0, begin: start, before: Totals::default() };
        let mut last_traffic = (self.activity(), start);
        self.begin_phase(&current, watch)?;
        loop {
            let interrupted = self.tick().await;
            self.collect(watch)?;
            let now = timers::now();
            if last_traffic.0 != self.activity() {
                last_traffic = (self.activity(), now);
            }
            let idle = self.idle_timeout.is_some_and(|timeout| now > last_traffic.1 + nanos(timeout));
            let cut = if interrupted {
                Some(EndReason::Interrupted)
            } else if self.loop_is_broken(current.phase, now) {
                Some(EndReason::Fatal("an event loop broke down".into()))
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
            self.decide_end(&current, now);
            match self.timeline.end(current.phase) {
                Some(end) if end <= now => {
                    self.end_phase(&current, end, true, watch)?;
                    if current.phase + 1 == self.schedule.phases.len() {
                        return Ok(EndReason::Finished);
                    }
                    current = Current { phase: current.phase + 1, begin: end, before: self.totals() };
                    self.begin_phase(&current, watch)?;
                }
                _ => {}
            }
        }
    }

    /// Sets the end of the current phase when it is known: ahead of time for durations, or when the goal of
    /// transactions is met.
    fn decide_end(&self, current: &Current, now: Nanos) {
        if self.timeline.end(current.phase).is_some() {
            return;
        }
        let goal = &self.schedule.phases[current.phase].goal;
        let planned = goal.duration.map(|duration| current.begin + nanos(duration));
        let met = goal.xactions.is_some_and(|goal| {
            let totals = self.totals();
            let ended = totals.ok + totals.failed - current.before.ok - current.before.failed;
            ended >= goal
        });
        if met {
            // Never in the past, even if this comes late: loops may be beyond `planned` already.
            let latest = planned.unwrap_or(Nanos::MAX).max(now + NOTICE);
            self.timeline.set_end(current.phase, (now + NOTICE).min(latest));
        } else if let Some(planned) = planned
            && (goal.xactions.is_none() || planned <= now + 2 * NOTICE)
        {
            self.timeline.set_end(current.phase, planned);
        }
    }

    /// Loops live until the last phase has ended, and their tasks do not panic.
    fn loop_is_broken(&self, phase: usize, now: Nanos) -> bool {
        let last = phase + 1 == self.schedule.phases.len();
        let over = last && self.timeline.end(phase).is_some_and(|end| now >= end);
        self.has_panicked() || !over && self.threads.iter().any(|(_, thread)| thread.is_finished())
    }

    fn has_panicked(&self) -> bool {
        self.panicked.load(Ordering::Relaxed)
    }

    fn has_failed(&self, current: &Current) -> bool {
        let totals = self.totals();
        let ok = totals.ok - current.before.ok;
        let failed = totals.failed - current.before.failed;
        self.schedule.phases[current.phase].goal.has_failed(ok, failed)
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
        while let Ok(hand_over) = self.inbox.try_recv() {
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
        while self.threads.iter().any(|(_, thread)| !thread.is_finished()) && timers::now() < deadline {
            self.collect(watch)?;
            if self.threads.iter().all(|(side, thread)| *side == Side::Server || thread.is_finished()) {
                self.timeline.let_servers_go();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let stuck = self.threads.iter().filter(|(_, thread)| !thread.is_finished()).count();
        let mut failure = (stuck > 0).then(|| io::Error::other(format!("{stuck} did not end with the run")));
        if self.has_panicked() {
            failure = Some(io::Error::other("a panic, see the message on standard error"));
        }
        for thread in self.threads.drain(..).map(|(_, thread)| thread).filter(JoinHandle::is_finished) {
            match thread.join() {
                Ok(Ok(())) => {}
                Ok(Err(e)) => failure = Some(e),
                Err(_) => failure = Some(io::Error::other("panic in an event loop")),
            }
        }
        self.collect(watch)?;
        let totals = self.totals();
        let reason = failure.as_ref().map_or(reason, |e| EndReason::Fatal(e.to_string()));
        for at in 0..self.sides.len() {
            let Some(mut ledger) = self.sides[at].ledger.take() else { continue };
            let closed = ledger.close(timers::now(), reason.clone());
            let records = closed.map_err(|source| self.sides[at].log_error(source))?;
            records.iter().for_each(|record| watch(ledger.header(), record));
        }
        match failure {
            Some(e) => Err(EngineError::Loop(e)),
            None => Ok(Outcome { reason, totals }),
        }
    }

    /// Transactions by which goals are judged: the client's, where there is one.
    fn totals(&self) -> Totals {
        let client = self.sides.iter().find(|side| side.side == Side::Client);
        client.or(self.sides.first()).map(SideState::totals).unwrap_or_default()
    }

    /// A number that changes when anything happens on any side.
    fn activity(&self) -> u64 {
        self.sides.iter().map(|side| side.totals().started + side.totals().ok + side.connections()).sum()
    }

    /// Waits a moment; true if the user wants to stop. Wanting it twice ends the process.
    async fn tick(&mut self) -> bool {
        tokio::time::timeout(TICK, self.signals.recv()).await.is_ok()
    }
}

/// A flag that is set when anything panics from now on.
fn watch_panics() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&flag);
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        seen.store(true, Ordering::Relaxed);
        report(info);
    }));
    flag
}

/// Divides the robots among loops.
fn client_roles(job: ClientJob) -> Vec<Role> {
    let loops = job.loops.clamp(1, job.settings.robots);
    let edge = |index: usize| job.settings.robots * index / loops;
    (0..loops)
        .map(|index| {
            let mut settings = job.settings.clone();
            settings.first_robot = edge(index);
            settings.robots = edge(index + 1) - edge(index);
            settings.open_limit = (job.settings.open_limit / loops).max(1);
            Role::Robots {
                settings: Box::new(settings),
                ports: job.ports.map(|(low, high)| Ports::share(low, high, index, loops)),
                ids: job.ids[index].clone(),
            }
        })
        .collect()
}

/// Gives each loop a socket of every server.
fn server_roles(job: ServerJob) -> Vec<Role> {
    let mut loops: Vec<Vec<(polygraph_origin::Settings, OwnedFd)>> = Vec::new();
    let mut index = 0;
    for (settings, listeners) in job.sites {
        for (at, listener) in listeners.into_sockets().into_iter().enumerate() {
            if loops.len() <= at {
                loops.push(Vec::new());
            }
            loops[at].push((polygraph_origin::Settings { index, ..settings.clone() }, listener));
            index += 1;
        }
    }
    loops.into_iter().map(|sites| Role::Origin { sites }).collect()
}
