//! Runs a test on real loops: starts them, reads their counters at every tick, and lets the phase controller decide.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use polygraph_link::{Nanos, SECOND, nanos};
use polygraph_stats::{EndReason, Side};

use crate::aggregator::{Aggregator, Observer};
use crate::host::Host;
use crate::loop_spec::{client_loops, server_loops};
use crate::loop_starter::LoopStarter;
use crate::outcome::{EngineError, RunOutcome};
use crate::phase_controller::{ControlEvent, NOTICE, PhaseController, TICK, TestPlan};
use crate::setup::{RunSetup, StartRule};
use crate::signals::{PanicFlag, StopSignals, watch_panics};
use crate::timers;
use crate::worker::{self, await_ready};

/// How long loops may take to deliver their last statistics after the end of the run.
const PATIENCE: Nanos = Nanos::from_secs(5);

/// Runs a test on real loops.
#[derive(Debug)]
pub struct Coordinator {
    plan: TestPlan,
    start: StartRule,
    aggregator: Aggregator,
    /// Event loops and relays of worker processes. Each thread ends when its loops end.
    threads: Vec<(Side, JoinHandle<io::Result<()>>)>,
    signals: StopSignals,
    panicked: PanicFlag,
}

impl Coordinator {
    /// Starts the loops and waits until all of them are ready.
    ///
    /// # Errors
    /// If a loop cannot be started.
    pub fn start(job: RunSetup) -> Result<Coordinator, EngineError> {
        let signals = StopSignals::new().map_err(EngineError::Loop)?;
        let panicked = watch_panics();
        let (plan, context) = job.prepare(Host::Real);
        let (deliveries, inbox) = channel();
        let (ready, all_ready) = channel();
        let mut starter = LoopStarter::new(context, deliveries, ready);
        let mut sides = Vec::new();
        if let Some(server) = &job.server {
            sides.push(starter.side(
                &server.header,
                [&server.log, &server.sample_log],
                server.layout,
                server_loops(server),
            )?);
        }
        if let Some(client) = &job.client {
            sides.push(starter.side(
                &client.header,
                [&client.log, &client.sample_log],
                client.layout,
                client_loops(client),
            )?);
        }
        let (of_sides, threads): (Vec<_>, Vec<_>) = starter.threads().into_iter().unzip();
        // Addresses stay reserved until the servers listen.
        await_ready(&all_ready, &threads).map_err(EngineError::Loop)?;
        let stores = job.client.as_ref().is_some_and(|client| client.stores);
        Ok(Coordinator {
            plan,
            start: job.start,
            aggregator: Aggregator::new(Host::Real, sides, inbox, stores),
            threads: of_sides.into_iter().zip(threads).collect(),
            signals,
            panicked,
        })
    }

    /// Runs the test from the first traffic to the last record.
    ///
    /// # Errors
    /// If a log cannot be written.
    pub async fn follow(&mut self, observer: &mut Observer<'_>) -> Result<RunOutcome, EngineError> {
        let timeline = Arc::clone(&self.plan.timeline);
        let reason = match self.wait_for_start().await {
            Err(reason) => {
                let now = timers::now();
                self.aggregator.open(now, observer)?;
                timeline.cut(0, now);
                timeline.set_start(now);
                reason
            }
            Ok(start) => {
                self.aggregator.open(start, observer)?;
                self.aggregator.record(&self.plan.opening(start), observer)?;
                timeline.set_start(start);
                let mut controller = PhaseController::new(self.plan.clone(), start);
                let reason = self.go_through_phases(&mut controller, observer).await?;
                let trouble = match controller.servers_linger() {
                    Some(seconds) => self.linger(nanos(seconds), observer).await?,
                    None => None,
                };
                trouble.unwrap_or(reason)
            }
        };
        self.finish(reason, observer)
    }

    /// Waits until the first phase can be announced, and returns its start.
    ///
    /// # Errors
    /// If something ends the run before that.
    async fn wait_for_start(&mut self) -> Result<Nanos, EndReason> {
        match self.start {
            StartRule::Now => {}
            StartRule::FirstTraffic => {
                if let Some(reason) = self.wait_for_traffic().await {
                    return Err(reason);
                }
            }
            StartRule::At(time) => return self.wait_until(time).await,
        }
        Ok(timers::now() + NOTICE)
    }

    /// Waits until shortly before a time of day in nanoseconds since 1970, and returns it as a time of the monotonic clock.
    /// The clock is compared at each tick, so that corrections of the time of day during the wait count.
    async fn wait_until(&mut self, time: u64) -> Result<Nanos, EndReason> {
        let begin = timers::now();
        loop {
            let offset = Host::Real.clock_offset();
            let start = Nanos::new(u64::try_from(i128::from(time) - offset).unwrap_or(0));
            let now = timers::now();
            if start < begin + NOTICE || start < now {
                let ready = i128::from(begin.max(now).as_u64()) + offset - i128::from(time);
                let why = match ready {
                    late @ 0.. => format!("{:.3} s after it", late as f64 * 1e-9),
                    early => format!("only {:.3} s before it, and needs 0.1 s", -early as f64 * 1e-9),
                };
                let remedy = match start < begin + NOTICE {
                    true => "set a later start",
                    false => "free the host of other work, which kept the process from running",
                };
                let why = format!("the common start was missed: this process was ready {why}; {remedy}");
                return Err(EndReason::Fatal { side: None, why });
            }
            if start <= now + 2 * NOTICE {
                return Ok(start);
            }
            if self.tick().await {
                return Err(EndReason::Interrupted);
            }
            if let Some(reason) = self.breakdown(false) {
                return Err(reason);
            }
        }
    }

    /// Waits for the first connection. Returns a reason to end the run if one occurs before that.
    async fn wait_for_traffic(&mut self) -> Option<EndReason> {
        let begin = timers::now();
        loop {
            if self.aggregator.connections() > 0 {
                return None;
            }
            if self.tick().await {
                return Some(EndReason::Interrupted);
            }
            if let Some(reason) = self.breakdown(false) {
                return Some(reason);
            }
            if self.plan.idle_timeout.is_some_and(|timeout| timers::now() > begin + nanos(timeout)) {
                return Some(EndReason::Idle);
            }
        }
    }

    /// Lets the phase controller start and end phases until the last phase is over or something else ends the run.
    async fn go_through_phases(
        &mut self,
        controller: &mut PhaseController,
        observer: &mut Observer<'_>,
    ) -> Result<EndReason, EngineError> {
        loop {
            let interrupted = !controller.is_between() && self.tick().await;
            self.aggregator.collect(observer)?;
            let now = timers::now();
            let stop = match interrupted {
                true => Some(EndReason::Interrupted),
                false => self.breakdown(controller.is_done(now)),
            };
            for event in controller.step(&self.aggregator.observe(now, stop)) {
                if let ControlEvent::PhaseEnds { at, .. } = event {
                    self.await_deliveries(at, observer)?;
                }
                self.aggregator.record(&event, observer)?;
            }
            if let Some(reason) = controller.ended() {
                return Ok(reason.clone());
            }
        }
    }

    /// After the last phase: serves late clients until nobody has connected for `quiet` or the user stops the
    /// process. Nothing that happens now is logged (docs/reference/models.md, "Virtual phases"). Returns the reason
    /// if a loop breaks down meanwhile.
    async fn linger(
        &mut self,
        quiet: Nanos,
        observer: &mut Observer<'_>,
    ) -> Result<Option<EndReason>, EngineError> {
        let mut last = (self.aggregator.activity(), timers::now());
        while timers::now() < last.1 + quiet && !self.tick().await {
            self.aggregator.collect(observer)?;
            if let Some(reason) = self.breakdown(false) {
                return Ok(Some(reason));
            }
            if self.aggregator.activity() != last.0 {
                last = (self.aggregator.activity(), timers::now());
            }
        }
        Ok(None)
    }

    /// Waits for the last interval of a phase, which loops deliver a moment after its end.
    fn await_deliveries(&mut self, at: Nanos, observer: &mut Observer<'_>) -> Result<(), EngineError> {
        let given_up = at + SECOND / 2;
        while timers::now() < given_up {
            self.aggregator.collect(observer)?;
            if self.aggregator.have_all_until(at) {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// The reason if a loop or a task has broken down. Loops must live until the run is `over`, and tasks must not
    /// panic.
    fn breakdown(&mut self, over: bool) -> Option<EndReason> {
        while let Some(at) = self.threads.iter().position(|(_, thread)| thread.is_finished()) {
            let (side, thread) = self.threads.swap_remove(at);
            let name = thread.thread().name().unwrap_or("an event loop").to_owned();
            match worker::join(thread) {
                Err(e) => return Some(EndReason::fatal(side, e.to_string())),
                Ok(()) if !over => {
                    return Some(EndReason::fatal(side, format!("{name} ended before the run")));
                }
                Ok(()) => {}
            }
        }
        // In a process of both sides this may be wrong, but the program is at fault either way.
        let panicked =
            || EndReason::fatal(self.plan.main_side(), "a panic, see the message on standard error");
        self.panicked.is_set().then(panicked)
    }

    /// Waits for the loops to end and closes the logs.
    fn finish(&mut self, reason: EndReason, observer: &mut Observer<'_>) -> Result<RunOutcome, EngineError> {
        let deadline = timers::now() + PATIENCE;
        let mut failure = None;
        while !self.threads.is_empty() && timers::now() < deadline {
            self.aggregator.collect(observer)?;
            if self.threads.iter().all(|(side, _)| *side == Side::Server) {
                self.plan.timeline.release_servers();
            }
            failure = failure.or(self.breakdown(true));
            std::thread::sleep(Duration::from_millis(5));
        }
        if !self.threads.is_empty() {
            let stuck: Vec<&str> =
                self.threads.iter().filter_map(|(_, thread)| thread.thread().name()).collect();
            let why = format!("{} did not end with the run", stuck.join(", "));
            failure = failure.or(self.threads.first().map(|(side, _)| EndReason::fatal(*side, why)));
        }
        let reason = match (reason, failure) {
            // The first failure explains the later ones.
            (reason @ EndReason::Fatal { .. }, _) | (reason, None) => reason,
            (_, Some(failure)) => failure,
        };
        self.aggregator.close(timers::now(), reason, observer)
    }

    /// Waits for one tick; true if the user asks the process to stop. A second signal kills the process.
    async fn tick(&mut self) -> bool {
        tokio::time::timeout(Duration::from_nanos(TICK.as_u64()), self.signals.recv()).await.is_ok()
    }
}
