//! What a loop does besides its traffic: it tracks the timeline, publishes its counters, and delivers its statistics
//! at the end of each interval. It works the same on real sockets and in a simulation.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use polygraph_link::{Link, Nanos, SECOND, nanos};
use polygraph_origin::Origin;
use polygraph_plan::{SamplePlan, Schedule};
use polygraph_robot::{Pace, RobotGroup};
use polygraph_stats::stall::{STALLED_NS, Stall};
use polygraph_stats::{Block, ErrorKind, ErrorSample, Recorder, Side, TransactionSample};
use polygraph_traffic::groups::PeerStatus;
use polygraph_traffic::store::SavedShare;
use serde::{Deserialize, Serialize};

use crate::host::Host;
use crate::live_counters::{Counts, LiveCounters};
use crate::pacing::pace;
use crate::timeline::Timeline;

/// How often a loop publishes its counters and reads the timeline.
const POLL_INTERVAL: Nanos = SECOND / 20;
/// How often a loop repeats a peer update that has not changed, to show that the peers are alive.
const RESEND_INTERVAL: Nanos = SECOND;
/// How often robots close idle connections that the peer has closed.
const REAP_INTERVAL: Nanos = SECOND;

/// The statistics of one loop in one interval.
#[derive(Debug, Serialize, Deserialize)]
pub struct IntervalReport {
    /// The side of the loop.
    pub side: Side,
    /// The number of the loop on its side.
    pub index: usize,
    /// The number of the phase.
    pub phase: usize,
    /// Start of the interval.
    pub begin: Nanos,
    /// End of the interval.
    pub end: Nanos,
    /// The statistics.
    pub block: Box<Block>,
    /// Examples of errors.
    pub samples: Vec<ErrorSample>,
    /// Transactions for transaction samples.
    pub taken: Vec<TransactionSample>,
    /// Message dumps for the console.
    pub shown: Vec<String>,
    /// Processor time of the loop in the interval, in nanoseconds.
    pub cpu_ns: u64,
    /// The id of the process that runs the loop.
    pub process: u32,
    /// Resident memory of that process at the end of the interval, in bytes.
    pub rss_bytes: u64,
    /// Times in which the loop did not run, by the clock of links.
    pub stalls: Vec<Stall>,
}

/// A message from a loop to the aggregator.
#[derive(Debug, Serialize, Deserialize)]
pub enum Delivery {
    /// The statistics of an interval.
    Interval(IntervalReport),
    /// The loop's share of the working set, once, at the end.
    Share {
        /// The number of the loop on the client side.
        index: usize,
        /// The share.
        share: Box<SavedShare>,
    },
    /// Statuses of other processes, whenever they change.
    PeerUpdate(PeerUpdate),
}

/// Statuses of other processes that a loop has received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerUpdate {
    /// The side of the loop; the statuses are those of the other side.
    pub side: Side,
    /// The number of the loop on its side.
    pub index: usize,
    /// The last status of each process.
    pub statuses: Vec<PeerStatus>,
    /// Servers that the robots of the loop have not visited yet.
    pub unvisited: usize,
}

impl PeerUpdate {
    /// Whether `earlier` is the same, apart from the times.
    fn is_repeated_by(&self, earlier: &PeerUpdate) -> bool {
        let facts = |status: &PeerStatus| (status.group, status.position, status.waits, status.gone);
        self.unvisited == earlier.unvisited
            && self.statuses.iter().map(facts).eq(earlier.statuses.iter().map(facts))
    }
}

/// The channels between a loop and the coordinator.
#[derive(Debug)]
pub struct LoopChannels {
    /// The number of the loop on its side.
    pub index: usize,
    /// Counters that the coordinator may read at any time.
    pub live: Arc<LiveCounters>,
    /// The channel for statistics and other deliveries.
    pub deliveries: Sender<Delivery>,
    /// The channel on which used statistics blocks come back, to be filled again.
    pub recycled: Receiver<Box<Block>>,
    /// The channel for the one message that the loop is ready, or why it is not.
    pub ready: Sender<Ready>,
}

/// Whether a loop is ready, or why it cannot start.
pub type Ready = io::Result<()>;

/// What all loops of a run share.
#[derive(Clone, Debug)]
pub struct RunContext {
    /// The machine.
    pub host: Host,
    /// The phases.
    pub schedule: Arc<Schedule>,
    /// The times of the phases.
    pub timeline: Arc<Timeline>,
    /// Length of a statistics interval in nanoseconds.
    pub interval: Nanos,
    /// Timers that are less than this apart, in nanoseconds, share a wake-up.
    pub quantum: Nanos,
}

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
        let sent = (PeerUpdate { side, index: channels.index, statuses: Vec::new(), unvisited: 0 }, 0);
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
                    self.deliver_interval(phase, begin, edge, used - cpu);
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
                    // Requests that are still running do not ask for new objects.
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
        if late >= STALLED_NS {
            self.stalls.push(Stall { begin_ns: at, end_ns: now, loops: 1 });
            let detail =
                || format!("the event loop ran {:.3} s later than it should have", late as f64 * 1e-9);
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
            self.channels.live.add_delta(&self.recorder.news(self.link.now()));
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
