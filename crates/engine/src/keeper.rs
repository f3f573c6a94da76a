//! What a loop does beside its traffic: it keeps time, publishes its counts, hands statistics over at interval edges and
//! follows the timeline. The same on real sockets and in a simulation.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use polygraph_link::{Link, Nanos, SECOND, nanos};
use polygraph_origin::Origin;
use polygraph_plan::{SamplePlan, Schedule};
use polygraph_robot::{Crew, Pace};
use polygraph_stats::stall::{STALLED_NS, Stall};
use polygraph_stats::{Block, ErrorKind, Recorder, Sample, Side, Taken};
use polygraph_traffic::groups::Word;
use polygraph_traffic::store::Share;
use serde::{Deserialize, Serialize};

use crate::gauge::{Counts, Gauge};
use crate::host::Host;
use crate::pacing::pace;
use crate::timeline::Timeline;

/// How often a loop publishes its counts and looks for decisions about phases.
const GLANCE: Nanos = SECOND / 20;
/// How often a loop tells that it still hears what it has told of already.
const REPEAT: Nanos = SECOND;
/// How often robots look for idle connections that the peer has closed.
const REAP: Nanos = SECOND;

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
    /// Transactions for samples.
    pub taken: Vec<Taken>,
    /// Texts to be shown.
    pub shown: Vec<String>,
    /// Processor time of the loop in the interval.
    pub cpu_ns: u64,
    /// Id of the process that the loop lives in.
    pub process: u32,
    /// Resident memory of that process at the end of the interval, in bytes.
    pub rss_bytes: u64,
    /// When the loop did not run, by the clock of links.
    pub stalls: Vec<Stall>,
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
    /// What it has heard of other processes, whenever there is news.
    Heard(Heard),
}

/// What a loop has heard of other processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// Which side the loop belongs to; it hears of the other one.
    pub side: Side,
    /// Number of the loop among those of its side.
    pub index: usize,
    /// What other processes said last.
    pub words: Vec<Word>,
    /// Servers that must still be visited.
    pub unvisited: usize,
}

impl Heard {
    /// Whether `earlier` says the same but for the times.
    fn is_known(&self, earlier: &Heard) -> bool {
        let facts = |word: &Word| (word.group, word.position, word.waits, word.gone);
        self.unvisited == earlier.unvisited
            && self.words.iter().map(facts).eq(earlier.words.iter().map(facts))
    }
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
    /// The machine.
    pub host: Host,
    /// The phases.
    pub schedule: Arc<Schedule>,
    /// Their times.
    pub timeline: Arc<Timeline>,
    /// Length of statistics intervals.
    pub interval: Nanos,
    /// Timers that are closer than this share a wake-up.
    pub quantum: Nanos,
}

/// Who lives on a loop.
pub enum Party<L: Link> {
    /// Robots that are ready to run.
    Robots {
        /// They.
        crew: Rc<Crew<L>>,
        /// The share of the working set is wanted at the end.
        stores: bool,
    },
    /// Servers that listen.
    Servers(Rc<Origin<L>>),
}

/// Keeps the time of one loop.
pub struct Keeper<L: Link> {
    link: L,
    frame: Frame,
    desk: Desk,
    recorder: Recorder,
    party: Party<L>,
    /// Connections in the intervals before the current one.
    connections: u64,
    /// When the loop did not run, since this was handed over last.
    stalls: Vec<Stall>,
    /// What was told of other processes last, and when.
    told: (Heard, Nanos),
}

impl<L: Link> Keeper<L> {
    /// A keeper of a loop on which `party` counts in `recorder`.
    pub fn new(link: L, frame: Frame, desk: Desk, recorder: Recorder, party: Party<L>) -> Keeper<L> {
        let side = match &party {
            Party::Robots { .. } => Side::Client,
            Party::Servers(_) => Side::Server,
        };
        let told = (Heard { side, index: desk.index, words: Vec::new(), unvisited: 0 }, 0);
        Keeper { link, frame, desk, recorder, party, connections: 0, stalls: Vec::new(), told }
    }

    /// Keeps time until the last phase has ended.
    pub async fn keep(mut self) {
        // If nobody waits any more, the run is over before it began, which the timeline will tell.
        let _ = self.desk.ready.send(Ok(()));
        let start = self.wait_for_start().await;
        if let Party::Robots { crew, .. } = &self.party {
            self.link.spawn(Rc::clone(crew).run(start));
            self.link.spawn(reap(self.link.clone(), Rc::clone(crew)));
        }
        let mut samples: Vec<_> = self.frame.schedule.samples().cloned().map(Some).collect();
        let mut phase_begin = start;
        let mut cpu = self.frame.host.thread_cpu();
        for phase in 0..self.frame.timeline.phases() {
            let mut begin = phase_begin;
            let end_of_phase = loop {
                self.set_pace(phase, phase_begin);
                self.begin_samples(&mut samples, phase, start, phase_begin);
                let end_of_phase = self.frame.timeline.end(phase);
                let edge = (begin + self.frame.interval).min(end_of_phase.unwrap_or(Nanos::MAX));
                let now = self.link.now();
                if now < edge {
                    self.publish();
                    self.doze(edge.min(now + GLANCE)).await;
                    continue;
                }
                // A phase that ends right at an interval edge must not be followed by an empty interval.
                if edge > begin {
                    let used = self.frame.host.thread_cpu();
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
            Party::Robots { crew, stores } => {
                crew.set_pace(Pace::STOPPED);
                if *stores {
                    // Requests that are still running ask for nothing new.
                    let share = Box::new(crew.working_set());
                    let _ = self.desk.filled.send(Delivery::Share { index: self.desk.index, share });
                }
            }
            Party::Servers(_) => {
                // Robots of other processes may still come.
                while !self.frame.timeline.servers_may_go() {
                    self.set_pace(self.frame.timeline.phases() - 1, phase_begin);
                    self.publish();
                    self.link.sleep_until(self.link.now() + GLANCE / 5).await;
                }
            }
        }
    }

    /// Sleeps until `at`, and takes note if the loop does not run then: its process was stopped, swapped out or starved,
    /// or the loop had too much to do. Whoever waited for it waited for the bench.
    async fn doze(&mut self, at: Nanos) {
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
            if let Some(start) = self.frame.timeline.start() {
                if start > self.link.now() {
                    self.link.sleep_until(start).await;
                }
                return start;
            }
            self.publish();
            self.link.sleep_until(self.link.now() + GLANCE / 5).await;
        }
    }

    fn set_pace(&self, phase: usize, begin: Nanos) {
        let timeline = &self.frame.timeline;
        let goal = &self.frame.schedule.phases[phase].goal;
        let pace = pace(goal, &timeline.factors(phase), begin, timeline.progress(phase));
        match &self.party {
            Party::Robots { crew, .. } => {
                crew.set_pace(pace);
                crew.set_standing(timeline.standing());
                if timeline.is_frozen() {
                    crew.freeze_working_set();
                }
            }
            Party::Servers(origin) => {
                origin.set_special(pace.special.at(self.link.now()));
                origin.set_standing(timeline.standing());
            }
        }
    }

    /// Begins the samples that are due: of the whole run, and of the phase that is going on.
    fn begin_samples(
        &self,
        samples: &mut [Option<SamplePlan>],
        phase: usize,
        start: Nanos,
        phase_begin: Nanos,
    ) {
        let schedule = &self.frame.schedule;
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
        self.desk.gauge.publish(Counts::new(self.recorder.totals(), self.connections + opened));
        self.tell_of_others();
        if self.frame.timeline.news_wanted() && matches!(self.party, Party::Robots { .. }) {
            self.desk.gauge.add_news(&self.recorder.news(self.link.now()));
        }
    }

    /// Tells what was heard of other processes, if there is news.
    fn tell_of_others(&mut self) {
        let (words, unvisited) = match &self.party {
            Party::Robots { crew, .. } => (crew.servers_words(), crew.unvisited()),
            Party::Servers(origin) => (origin.clients(), 0),
        };
        let heard = Heard { words, unvisited, ..self.told.0 };
        let now = self.link.now();
        let due = !heard.words.is_empty() && now >= self.told.1 + REPEAT;
        if due || !heard.is_known(&self.told.0) {
            self.told = (heard.clone(), now);
            let _ = self.desk.filled.send(Delivery::Heard(heard));
        }
    }

    fn hand_over(&mut self, phase: usize, begin: Nanos, end: Nanos, cpu_ns: u64) {
        let fresh = self.desk.used.try_recv().unwrap_or_else(|_| Box::new(Block::new()));
        let (block, samples) = self.recorder.hand_over(fresh, end);
        self.connections += block.conns.entered;
        self.publish();
        // The coordinator outlives the loops; if it is gone there is nobody left to tell.
        let _ = self.desk.filled.send(Delivery::Interval(HandOver {
            side: self.told.0.side,
            index: self.desk.index,
            phase,
            begin,
            end,
            block,
            samples,
            taken: self.recorder.taken(),
            shown: self.recorder.shown(),
            cpu_ns,
            process: self.frame.host.process(),
            rss_bytes: self.frame.host.resident_bytes(),
            stalls: std::mem::take(&mut self.stalls),
        }));
    }
}

/// Closes idle connections that the peer has closed.
async fn reap<L: Link>(link: L, crew: Rc<Crew<L>>) {
    loop {
        link.sleep_until(link.now() + REAP).await;
        crew.reap();
    }
}
