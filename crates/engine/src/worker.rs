//! The life of one loop: a thread with its own runtime, robots or servers, and statistics.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::thread::JoinHandle;

use polygraph_link::{Link, Nanos, SECOND};
use polygraph_plan::{PhaseLoad, Schedule};
use polygraph_robot::{Crew, Pace, Ramp};
use polygraph_stats::{Block, ErrorKind, Recorder, Sample, Side, Totals};
use polygraph_traffic::IdSource;
use rustix::time::{ClockId, clock_gettime};

use crate::listen::accept_all;
use crate::net::Net;
use crate::ports::Ports;
use crate::timeline::Timeline;
use crate::watch;

/// How often a loop publishes its counts and looks for decisions about phases.
const GLANCE: Nanos = SECOND / 20;

/// Counts that the coordinator may look at while the loop runs.
#[derive(Debug, Default)]
pub struct Gauge {
    started: AtomicU64,
    ok: AtomicU64,
    failed: AtomicU64,
    connections: AtomicU64,
}

impl Gauge {
    /// Transactions so far.
    pub fn totals(&self) -> Totals {
        let load = |cell: &AtomicU64| cell.load(Ordering::Relaxed);
        Totals { started: load(&self.started), ok: load(&self.ok), failed: load(&self.failed) }
    }

    /// Connections opened or accepted so far.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    fn publish(&self, totals: Totals, connections: u64) {
        let store = |cell: &AtomicU64, value| cell.store(value, Ordering::Relaxed);
        store(&self.started, totals.started);
        store(&self.ok, totals.ok);
        store(&self.failed, totals.failed);
        store(&self.connections, connections);
    }
}

/// What a loop hands over at an interval edge.
#[derive(Debug)]
pub struct HandOver {
    /// Which side the loop belongs to.
    pub side: Side,
    /// Number of the loop among those of its side.
    pub index: usize,
    /// Phase of the interval.
    pub phase: usize,
    /// Begin of the interval.
    pub begin: Nanos,
    /// End of the interval.
    pub end: Nanos,
    /// What was counted.
    pub block: Box<Block>,
    /// Examples of errors.
    pub samples: Vec<Sample>,
    /// Processor time of the loop in the interval.
    pub cpu_ns: u64,
}

/// Where a loop meets the coordinator.
#[derive(Debug)]
pub struct Desk {
    /// Number of the loop among those of its side.
    pub index: usize,
    /// Counts that may be looked at at any time.
    pub gauge: Arc<Gauge>,
    /// Full blocks go out here.
    pub filled: Sender<HandOver>,
    /// Used ones come back here to be filled again.
    pub used: Receiver<Box<Block>>,
}

/// What a loop does.
#[derive(Debug)]
pub enum Role {
    /// Robots.
    Robots {
        /// Their settings.
        settings: Box<polygraph_robot::Settings>,
        /// The loop's share of the explicit local ports.
        ports: Option<Ports>,
        /// Source of world and transaction ids.
        ids: IdSource,
    },
    /// Origin servers.
    Origin {
        /// Settings and this loop's listening socket of each server.
        sites: Vec<(polygraph_origin::Settings, OwnedFd)>,
    },
}

impl Role {
    fn side(&self) -> Side {
        match self {
            Role::Robots { .. } => Side::Client,
            Role::Origin { .. } => Side::Server,
        }
    }
}

/// What all loops of a run share.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The phases.
    pub schedule: Arc<Schedule>,
    /// Their times.
    pub timeline: Arc<Timeline>,
    /// Length of statistics intervals.
    pub interval: Nanos,
    /// Timers that are closer than this share a wake-up.
    pub quantum: Nanos,
}

/// Starts a loop.
///
/// # Errors
/// If the thread cannot be started.
pub fn start(name: String, role: Role, frame: Frame, desk: Desk) -> io::Result<JoinHandle<io::Result<()>>> {
    std::thread::Builder::new().name(name).spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().build_local(Default::default())?;
        runtime.block_on(live(role, frame, desk))
    })
}

/// The loop's main task: starts the parties, then keeps time until the last phase has ended.
async fn live(role: Role, frame: Frame, desk: Desk) -> io::Result<()> {
    let side = role.side();
    let recorder = Recorder::new();
    let (net, crew) = match role {
        Role::Robots { settings, ports, ids } => {
            let net = Net::new(frame.quantum, ports)?;
            let crew = Crew::new(net.clone(), *settings, recorder.clone(), ids);
            (net, Some(crew))
        }
        Role::Origin { sites } => {
            let net = Net::new(frame.quantum, None)?;
            for (settings, listener) in sites {
                serve_all(&net, settings, listener, &recorder);
            }
            (net, None)
        }
    };
    net.spawn(sweep(net.clone(), crew.clone()));
    let keeper = Keeper { side, net, frame, desk, recorder, crew, connections: 0 };
    keeper.keep().await;
    Ok(())
}

/// Serves every connection that comes in.
fn serve_all(net: &Net, settings: polygraph_origin::Settings, listener: OwnedFd, recorder: &Recorder) {
    let site = polygraph_origin::Site::new(net.clone(), settings, recorder.clone());
    let (clock, errors) = (net.clone(), recorder.clone());
    let serving = accept_all(
        net.clone(),
        listener,
        move |socket| Rc::clone(&site).serve(socket),
        move || errors.error(ErrorKind::NoDescriptor, clock.now(), || "while accepting".into()),
    );
    let (clock, errors) = (net.clone(), recorder.clone());
    net.spawn(async move {
        if let Err(e) = serving.await {
            errors.error(ErrorKind::System, clock.now(), || format!("the server stopped listening: {e}"));
        }
    });
}

/// Strikes deadlines, and closes idle connections that the peer has closed.
async fn sweep(net: Net, crew: Option<Rc<Crew<Net>>>) {
    let mut round = 0u32;
    loop {
        net.sleep_until(net.now() + watch::SWEEP).await;
        net.watch().sweep(net.now());
        round += 1;
        if round.is_multiple_of(10)
            && let Some(crew) = &crew
        {
            crew.reap();
        }
    }
}

/// Keeps time: publishes counts, hands blocks over at interval edges, follows the timeline.
struct Keeper {
    side: Side,
    net: Net,
    frame: Frame,
    desk: Desk,
    recorder: Recorder,
    crew: Option<Rc<Crew<Net>>>,
    connections: u64,
}

impl Keeper {
    async fn keep(mut self) {
        let start = self.wait_for_start().await;
        if let Some(crew) = &self.crew {
            self.net.spawn(Rc::clone(crew).run(start));
        }
        let mut phase_begin = start;
        let mut cpu = thread_cpu();
        for phase in 0..self.frame.timeline.phases() {
            let mut begin = phase_begin;
            let end_of_phase = loop {
                self.set_pace(phase, phase_begin);
                let end_of_phase = self.frame.timeline.end(phase);
                let edge = (begin + self.frame.interval).min(end_of_phase.unwrap_or(Nanos::MAX));
                let now = self.net.now();
                if now < edge {
                    self.publish();
                    self.net.sleep_until(edge.min(now + GLANCE)).await;
                    continue;
                }
                // A phase that ends right at an interval edge must not be followed by an empty interval.
                if edge > begin {
                    let used = thread_cpu();
                    self.hand_over(phase, begin, edge, used - cpu);
                    cpu = used;
                }
                begin = edge;
                if end_of_phase.is_some_and(|end| end <= edge) {
                    break edge;
                }
            };
            phase_begin = end_of_phase;
        }
        match &self.crew {
            Some(crew) => crew.set_pace(Pace::STOPPED),
            None => {
                while !self.frame.timeline.servers_may_go() {
                    self.net.sleep_until(self.net.now() + GLANCE / 5).await;
                }
            }
        }
    }

    async fn wait_for_start(&mut self) -> Nanos {
        loop {
            if let Some(start) = self.frame.timeline.start() {
                if start > self.net.now() {
                    self.net.sleep_until(start).await;
                }
                return start;
            }
            self.publish();
            self.net.sleep_until(self.net.now() + GLANCE / 5).await;
        }
    }

    fn set_pace(&self, phase: usize, begin: Nanos) {
        let Some(crew) = &self.crew else { return };
        crew.set_pace(match (self.frame.schedule.phases[phase].load, self.frame.timeline.end(phase)) {
            (PhaseLoad::Falling, Some(end)) => {
                Pace { load: Ramp { begin, end, from: 1.0, to: 0.0 }, ..Pace::FULL }
            }
            _ => Pace::FULL,
        });
    }

    fn publish(&mut self) {
        let opened = self.recorder.with(|block| block.conns.entered);
        self.desk.gauge.publish(self.recorder.totals(), self.connections + opened);
    }

    fn hand_over(&mut self, phase: usize, begin: Nanos, end: Nanos, cpu_ns: u64) {
        let fresh = self.desk.used.try_recv().unwrap_or_else(|_| Box::new(Block::new()));
        let (block, samples) = self.recorder.hand_over(fresh, end);
        self.connections += block.conns.entered;
        self.publish();
        // The coordinator outlives the loops; if it is gone there is nobody left to tell.
        let _ = self.desk.filled.send(HandOver {
            side: self.side,
            index: self.desk.index,
            phase,
            begin,
            end,
            block,
            samples,
            cpu_ns,
        });
    }
}

fn thread_cpu() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}
