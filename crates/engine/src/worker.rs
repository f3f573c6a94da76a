//! The life of one loop: a thread with its own runtime, robots or servers, and statistics.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use polygraph_link::{Link, Nanos, SECOND};
use polygraph_origin::{Origin, Site};
use polygraph_plan::Schedule;
use polygraph_robot::{Crew, Pace};
use polygraph_stats::{Block, ErrorKind, Recorder, Sample, Side};
use polygraph_traffic::store::Share;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::gauge::{Counts, Gauge};
use crate::limits;
use crate::listen::{accept_all, listen};
use crate::net::Net;
use crate::pacing::pace;
use crate::ports::Ports;
use crate::roles::Role;
use crate::timeline::Timeline;
use crate::watch;

/// How often a loop publishes its counts and looks for decisions about phases.
const GLANCE: Nanos = SECOND / 20;
/// How often somebody who waits for loops to start makes sure that they are still there.
const READY_CHECK: Duration = Duration::from_millis(100);

/// What a loop hands over at an interval edge.
#[derive(Debug, Serialize, Deserialize)]
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
    /// Id of the process that the loop lives in.
    pub process: u32,
    /// Resident memory of that process at the end of the interval, in bytes.
    pub rss_bytes: u64,
}

/// What a loop delivers.
#[derive(Debug, Serialize, Deserialize)]
pub enum Delivery {
    /// The statistics of an interval.
    Interval(HandOver),
    /// Its share of the working set, once, at the end.
    Share {
        /// Number of the loop among those of the client side.
        index: usize,
        /// The share.
        share: Box<Share>,
    },
}

/// Where a loop meets the coordinator.
#[derive(Debug)]
pub struct Desk {
    /// Number of the loop among those of its side.
    pub index: usize,
    /// Counts that may be looked at at any time.
    pub gauge: Arc<Gauge>,
    /// Full blocks go out here.
    pub filled: Sender<Delivery>,
    /// Used ones come back here to be filled again.
    pub used: Receiver<Box<Block>>,
    /// Told once, when the loop can start, or why it cannot.
    pub ready: Sender<Ready>,
}

/// Whether loops can start: nothing to be said, or why not.
pub type Ready = io::Result<()>;

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
pub fn start(role: Role, frame: Frame, desk: Desk) -> io::Result<JoinHandle<io::Result<()>>> {
    let name = format!("{}-{}", role.side().name(), desk.index);
    std::thread::Builder::new().name(name).spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_io().build_local(Default::default())?;
        runtime.block_on(live(role, frame, desk))
    })
}

/// Waits until each of the loops behind `threads`, or of the processes that they stand for, can start.
///
/// # Errors
/// The first that cannot, or has ended without a word.
pub fn await_ready(ready: &Receiver<Ready>, threads: &[JoinHandle<io::Result<()>>]) -> io::Result<()> {
    let mut missing = threads.len();
    while missing > 0 {
        match ready.recv_timeout(READY_CHECK) {
            Ok(Ok(())) => missing -= 1,
            Ok(Err(e)) => return Err(e),
            Err(_) if threads.iter().any(JoinHandle::is_finished) => {
                // It may have said why just before it ended.
                let why = ready.try_iter().find_map(Result::err);
                return Err(why.unwrap_or_else(|| io::Error::other("an event loop ended before the run")));
            }
            Err(_) => {}
        }
    }
    Ok(())
}

/// How a thread of a loop, or of a process with loops, has ended; waits for that.
///
/// # Errors
/// What it failed with, or that it panicked.
pub fn join(thread: JoinHandle<io::Result<()>>) -> io::Result<()> {
    let name = thread.thread().name().unwrap_or("an event loop").to_owned();
    thread.join().unwrap_or_else(|_| Err(io::Error::other(format!("panic in {name}"))))
}

/// The loop's main task: starts the parties, then keeps time until the last phase has ended.
async fn live(role: Role, frame: Frame, desk: Desk) -> io::Result<()> {
    let side = role.side();
    let stores = matches!(role, Role::Robots { stores: true, .. });
    let recorder = Recorder::new();
    let parties = start_parties(role, &frame, &recorder);
    let (net, party) = match parties {
        Ok(parties) => parties,
        Err(e) => {
            // Both the one who waits for the start and the one who joins the thread want to know.
            let _ = desk.ready.send(Err(io::Error::new(e.kind(), e.to_string())));
            return Err(e);
        }
    };
    let crew = match &party {
        Party::Robots(crew) => Some(Rc::clone(crew)),
        Party::Servers(_) => None,
    };
    net.spawn(sweep(net.clone(), crew));
    // If nobody waits any more, the run is over before it began, which the timeline will tell.
    let _ = desk.ready.send(Ok(()));
    let keeper = Keeper { side, net, frame, desk, recorder, party, stores, connections: 0 };
    keeper.keep().await;
    Ok(())
}

/// Who lives on a loop.
enum Party {
    /// Robots that are ready to run.
    Robots(Rc<Crew<Net>>),
    /// Servers that listen.
    Servers(Rc<Origin<Net>>),
}

fn start_parties(role: Role, frame: &Frame, recorder: &Recorder) -> io::Result<(Net, Party)> {
    match role {
        Role::Robots { settings, ports, ids, legacy, .. } => {
            let net = Net::new(frame.quantum, ports.map(|(low, high)| Ports::new(low, high)))?;
            let crew = Crew::new(net.clone(), *settings, recorder.clone(), ids);
            if let Some(legacy) = legacy {
                crew.go_on_with(*legacy);
            }
            Ok((net, Party::Robots(crew)))
        }
        Role::Origin { house, sites, index } => {
            let net = Net::new(frame.quantum, None)?;
            let origin = Origin::new(net.clone(), house, index, recorder.clone());
            for (server, address) in sites {
                serve_all(&net, origin.site(server), listen(address)?, recorder);
            }
            Ok((net, Party::Servers(origin)))
        }
    }
}

/// Serves every connection that comes in.
fn serve_all(net: &Net, site: Rc<Site<Net>>, listener: OwnedFd, recorder: &Recorder) {
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
    party: Party,
    /// The share of the working set is wanted at the end.
    stores: bool,
    /// Connections in the intervals before the current one.
    connections: u64,
}

impl Keeper {
    async fn keep(mut self) {
        let start = self.wait_for_start().await;
        if let Party::Robots(crew) = &self.party {
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
        match &self.party {
            Party::Robots(crew) => {
                crew.set_pace(Pace::STOPPED);
                if self.stores {
                    // Requests that are still running ask for nothing new.
                    let share = Box::new(crew.working_set());
                    let _ = self.desk.filled.send(Delivery::Share { index: self.desk.index, share });
                }
            }
            Party::Servers(_) => {
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
        let progress = self.frame.timeline.progress(phase);
        let pace = pace(&self.frame.schedule.phases[phase], begin, progress);
        match &self.party {
            Party::Robots(crew) => {
                crew.set_pace(pace);
                if self.frame.timeline.is_frozen() {
                    crew.freeze_working_set();
                }
            }
            Party::Servers(origin) => origin.set_special(pace.special.at(self.net.now())),
        }
    }

    fn publish(&mut self) {
        let opened = self.recorder.with(|block| block.conns.entered);
        self.desk.gauge.publish(Counts::new(self.recorder.totals(), self.connections + opened));
    }

    fn hand_over(&mut self, phase: usize, begin: Nanos, end: Nanos, cpu_ns: u64) {
        let fresh = self.desk.used.try_recv().unwrap_or_else(|_| Box::new(Block::new()));
        let (block, samples) = self.recorder.hand_over(fresh, end);
        self.connections += block.conns.entered;
        self.publish();
        // The coordinator outlives the loops; if it is gone there is nobody left to tell.
        let _ = self.desk.filled.send(Delivery::Interval(HandOver {
            side: self.side,
            index: self.desk.index,
            phase,
            begin,
            end,
            block,
            samples,
            cpu_ns,
            process: std::process::id(),
            rss_bytes: limits::resident_bytes(),
        }));
    }
}

fn thread_cpu() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}
