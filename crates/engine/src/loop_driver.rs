//! What a loop does besides its traffic: it tracks the timeline, publishes its counters, and delivers its statistics
//! at the end of each interval. It works the same on real sockets and in a simulation.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use polygraph_link::{Link, Nanos, SECOND, nanos};
use polygraph_origin::{Origin, Server};
use polygraph_plan::SamplePlan;
use polygraph_robot::{Pace, RobotGroup};
use polygraph_stats::stall::{LATE_TIMER_NS, STALLED_NS, Stall};
use polygraph_stats::{Block, ErrorKind, Recorder, Side};

use crate::channels::{Delivery, IntervalReport, LoopChannels, PeerUpdate};
use crate::live_counters::Counts;
use crate::loop_spec::LoopSpec;
use crate::pacing::pace;
use crate::setup::RunContext;

/// How often a loop publishes its counters and reads the timeline.
const POLL_INTERVAL: Nanos = Nanos::from_millis(50);
/// How often a loop repeats a peer update that has not changed, to show that the peers are alive.
const RESEND_INTERVAL: Nanos = SECOND;
/// How often robots close idle connections that the peer has closed.
const REAP_INTERVAL: Nanos = SECOND;

/// What runs on a loop.
pub enum LoopRole<L: Link> {
    /// Robots that are ready to run.
    Robots {
        /// The robots of the loop.
        group: Rc<RobotGroup<L>>,
        /// Whether the loop delivers its share of the working set at the end.
        stores: bool,
    },
    /// Servers that listen.
    Servers(Rc<Origin<L>>),
}

impl<L: Link> LoopRole<L> {
    /// Starts what `spec` describes on `link`. `listen` makes a server listen on its address.
    ///
    /// # Errors
    /// The first error of `listen`.
    pub fn start(
        spec: LoopSpec,
        link: &L,
        recorder: &Recorder,
        mut listen: impl FnMut(Rc<Server<L>>, SocketAddr) -> io::Result<()>,
    ) -> io::Result<LoopRole<L>> {
        match spec {
            LoopSpec::Robots { settings, ids, legacy, stores, .. } => {
                let group = RobotGroup::new(link.clone(), *settings, recorder.clone(), ids);
                if let Some(legacy) = legacy {
                    group.resume_from(*legacy);
                }
                Ok(LoopRole::Robots { group, stores })
            }
            LoopSpec::Origin { config, servers, index, .. } => {
                let origin = Origin::new(link.clone(), config, index, recorder.clone());
                for (server, address) in servers {
                    listen(Server::new(&origin, server), address)?;
                }
                Ok(LoopRole::Servers(origin))
            }
        }
    }
}

/// Drives one loop along the timeline.
pub struct LoopDriver<L: Link> {
    link: L,
    context: RunContext,
    channels: LoopChannels,
    recorder: Recorder,
    role: LoopRole<L>,
    /// Connections in the intervals before the current one.
    connections: u64,
    /// Times in which the loop did not run, since the last interval report.
    stalls: Vec<Stall>,
    /// The last peer update that was sent, and when.
    sent: (PeerUpdate, Nanos),
}

impl<L: Link> LoopDriver<L> {
    /// The driver of a loop on which `role` records its statistics in `recorder`.
    pub fn new(
        link: L,
        context: RunContext,
        channels: LoopChannels,
        recorder: Recorder,
        role: LoopRole<L>,
    ) -> LoopDriver<L> {
        let side = match &role {
            LoopRole::Robots { .. } => Side::Client,
            LoopRole::Servers(_) => Side::Server,
        };
        let sent =
            (PeerUpdate { side, index: channels.index, statuses: Vec::new(), unvisited: 0 }, Nanos::ZERO);
        LoopDriver { link, context, channels, recorder, role, connections: 0, stalls: Vec::new(), sent }
    }

    /// Runs until the last phase has ended.
    pub async fn run(mut self) {
        // If nobody receives this, the run is already over, and the timeline says so.
        let _ = self.channels.ready.send(Ok(()));
        let start = self.wait_for_start().await;
        if let LoopRole::Robots { group, .. } = &self.role {
            self.link.spawn(Rc::clone(group).run(start));
            self.link.spawn(reap(self.link.clone(), Rc::clone(group)));
        }
        let mut samples: Vec<_> = self.context.schedule.samples().cloned().map(Some).collect();
        let mut phase_begin = start;
        let mut cpu = self.context.host.thread_cpu();
        for phase in 0..self.context.timeline.phases() {
            let mut begin = phase_begin;
            let end_of_phase = loop {
                self.set_pace(phase, phase_begin);
                self.begin_samples(&mut samples, phase, start, phase_begin);
                let end_of_phase = self.context.timeline.end(phase);
                let edge = (begin + self.context.interval).min(end_of_phase.unwrap_or(Nanos::MAX));
                let now = self.link.now();
                if now < edge {
                    self.publish();
                    self.sleep_recording_stalls(edge.min(now + POLL_INTERVAL)).await;
                    continue;
                }
                // A phase that ends at an interval edge must not be followed by an empty interval.
                if edge > begin {
                    let used = self.context.host.thread_cpu();
                    self.deliver_interval(phase, begin, edge, (used - cpu).as_u64());
                    cpu = used;
                }
                begin = edge;
                if end_of_phase.is_some_and(|end| end <= edge) {
                    break edge;
                }
            };
            phase_begin = end_of_phase;
        }
        match &self.role {
            LoopRole::Robots { group, stores } => {
                group.set_pace(Pace::STOPPED);
                group.set_pace_end(Nanos::MAX);
                if *stores {
                    // Transactions in progress do not cause requests for new objects.
                    let share = Box::new(group.working_set());
                    let _ =
                        self.channels.deliveries.send(Delivery::Share { index: self.channels.index, share });
                }
            }
            LoopRole::Servers(_) => {
                // Robots of other processes may still send requests.
                while !self.context.timeline.servers_released() {
                    self.set_pace(self.context.timeline.phases() - 1, phase_begin);
                    self.publish();
                    self.link.sleep_until(self.link.now() + POLL_INTERVAL / 5).await;
                }
            }
        }
    }

    /// Sleeps until `at`, and records a stall if the loop wakes up too late: its process was stopped, swapped out or
    /// starved, or the loop had too much to do. A transaction that waited in this time waited for the bench, not for
    /// the device.
    async fn sleep_recording_stalls(&mut self, at: Nanos) {
        self.link.sleep_until(at).await;
        let now = self.link.now();
        let late = now.saturating_sub(at);
        if late >= Nanos::new(STALLED_NS) {
            self.stalls.push(Stall { begin_ns: at.as_u64(), end_ns: now.as_u64(), loops: 1 });
        }
        if late >= Nanos::new(LATE_TIMER_NS) {
            let detail = || format!("the event loop ran {:.3} s late", late.as_f64() * 1e-9);
            self.recorder.error(ErrorKind::LateTimers, now, detail);
        }
    }

    async fn wait_for_start(&mut self) -> Nanos {
        loop {
            if let Some(start) = self.context.timeline.start() {
                if start > self.link.now() {
                    self.link.sleep_until(start).await;
                }
                return start;
            }
            self.publish();
            self.link.sleep_until(self.link.now() + POLL_INTERVAL / 5).await;
        }
    }

    fn set_pace(&self, phase: usize, begin: Nanos) {
        let timeline = &self.context.timeline;
        let goal = &self.context.schedule.phases[phase].goal;
        let pace = pace(goal, &timeline.factors(phase), begin, timeline.progress(phase));
        match &self.role {
            LoopRole::Robots { group, .. } => {
                group.set_pace(pace);
                group.set_pace_end(timeline.end(phase).unwrap_or(Nanos::MAX));
                group.set_phase_status(timeline.phase_status());
                if let Some(at) = timeline.frozen_from() {
                    group.freeze_working_set(at);
                }
            }
            LoopRole::Servers(origin) => {
                origin.set_special(pace.special.at(self.link.now()));
                origin.set_phase_status(timeline.phase_status());
            }
        }
    }

    /// Starts the transaction samples that are due, of the whole run and of the current phase.
    fn begin_samples(
        &self,
        samples: &mut [Option<SamplePlan>],
        phase: usize,
        start: Nanos,
        phase_begin: Nanos,
    ) {
        let schedule = &self.context.schedule;
        let first: usize = schedule.phases[..phase].iter().map(|phase| phase.samples.len()).sum();
        let of_phase = first..first + schedule.phases[phase].samples.len();
        let now = self.link.now();
        for (number, planned) in samples.iter_mut().enumerate() {
            let begin = |plan: &SamplePlan| match plan.of_run {
                true => Some(start + nanos(plan.start)),
                false => of_phase.contains(&number).then(|| phase_begin + nanos(plan.start)),
            };
            if planned.as_ref().and_then(begin).is_some_and(|begin| now >= begin)
                && let Some(plan) = planned.take()
            {
                self.recorder.begin_sample(number, plan.capacity);
            }
        }
    }

    fn publish(&mut self) {
        let opened = self.recorder.with(|block| block.conns.entered);
        self.channels.live.publish(Counts::new(self.recorder.totals(), self.connections + opened));
        self.send_peer_update();
        if self.context.timeline.deltas_wanted() && matches!(self.role, LoopRole::Robots { .. }) {
            self.channels.live.add_delta(&self.recorder.take_delta(self.link.now()));
        }
    }

    /// Sends the statuses of other processes if they have changed.
    fn send_peer_update(&mut self) {
        let (statuses, unvisited) = match &self.role {
            LoopRole::Robots { group, .. } => (group.server_statuses(), group.unvisited_servers()),
            LoopRole::Servers(origin) => (origin.clients(), 0),
        };
        let update = PeerUpdate { statuses, unvisited, ..self.sent.0 };
        let now = self.link.now();
        let due = !update.statuses.is_empty() && now >= self.sent.1 + RESEND_INTERVAL;
        if due || !update.is_repeated_by(&self.sent.0) {
            self.sent = (update.clone(), now);
            let _ = self.channels.deliveries.send(Delivery::PeerUpdate(update));
        }
    }

    fn deliver_interval(&mut self, phase: usize, begin: Nanos, end: Nanos, cpu_ns: u64) {
        let fresh = self.channels.recycled.try_recv().unwrap_or_else(|_| Box::new(Block::new()));
        let (block, samples) = self.recorder.hand_over(fresh, end);
        self.connections += block.conns.entered;
        self.publish();
        // The coordinator outlives the loops. If it is gone, nobody needs the report.
        let _ = self.channels.deliveries.send(Delivery::Interval(IntervalReport {
            side: self.sent.0.side,
            index: self.channels.index,
            phase,
            begin,
            end,
            block,
            samples,
            taken: self.recorder.taken(),
            shown: self.recorder.shown(),
            cpu_ns,
            process: self.context.host.process(),
            rss_bytes: self.context.host.resident_bytes(),
            stalls: std::mem::take(&mut self.stalls),
        }));
    }
}

/// Closes idle connections that the peer has closed, for ever.
async fn reap<L: Link>(link: L, group: Rc<RobotGroup<L>>) {
    loop {
        link.sleep_until(link.now() + REAP_INTERVAL).await;
        group.reap();
    }
}
