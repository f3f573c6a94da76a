//! One side of a running test: its loops, in this process or in others, and the state of its log.

use std::io;
use std::ops::Add;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use polygraph_plan::SamplePlan;
use polygraph_stats::{Block, Header, Side};

use crate::layout::Layout;
use crate::live_counters::{Counts, LiveCounters};
use crate::loop_driver::{Delivery, LoopChannels, Ready, RunContext};
use crate::loop_spec::LoopSpec;
use crate::outcome::EngineError;
use crate::protocol::Assignment;
use crate::relay::{self, RelayChannels};
use crate::side_aggregator::SideAggregator;
use crate::worker;

/// One side of the running test.
#[derive(Debug)]
pub struct SideState {
    /// Client or server.
    pub side: Side,
    /// The counters of its loops.
    pub live_counters: Vec<Arc<LiveCounters>>,
    /// The header of the log, until the log is opened.
    pub header: Option<Header>,
    /// The path of the log.
    pub path: Option<PathBuf>,
    /// The path of the log for transaction samples, if they have one.
    pub sample_path: Option<PathBuf>,
    /// The planned transaction samples, until the log is opened.
    pub samples: Vec<SamplePlan>,
    /// The channels that return used statistics blocks, by loop, until the log is opened.
    pub recycled: Vec<Sender<Box<Block>>>,
    /// The statistics of the side, once its log is open.
    pub aggregator: Option<SideAggregator>,
}

impl SideState {
    /// The counts of all its loops.
    pub fn counts(&self) -> Counts {
        self.live_counters.iter().map(|live| live.counts()).fold(Counts::default(), Add::add)
    }

    /// The error for a log that cannot be written.
    pub fn log_error(&self, source: io::Error) -> EngineError {
        let path = self.path.as_ref().map_or_else(String::new, |path| path.display().to_string());
        EngineError::Log { path, source }
    }
}

/// Starts loops in this process or in worker processes.
#[derive(Debug)]
pub struct LoopStarter {
    context: RunContext,
    deliveries: Sender<Delivery>,
    ready: Sender<Ready>,
    threads: Vec<(Side, JoinHandle<io::Result<()>>)>,
}

impl LoopStarter {
    /// A starter of loops that deliver to `deliveries` and report to `ready`.
    pub fn new(context: RunContext, deliveries: Sender<Delivery>, ready: Sender<Ready>) -> LoopStarter {
        LoopStarter { context, deliveries, ready, threads: Vec::new() }
    }

    /// The threads of all started loops and relays.
    pub fn threads(self) -> Vec<(Side, JoinHandle<io::Result<()>>)> {
        self.threads
    }

    /// Starts the loops of a side.
    ///
    /// # Errors
    /// If the system cannot start another thread or process.
    pub fn side(
        &mut self,
        header: &Header,
        [path, sample_path]: [&Option<PathBuf>; 2],
        layout: Layout,
        specs: Vec<LoopSpec>,
    ) -> Result<SideState, EngineError> {
        let mut header = header.clone();
        if layout.processes > 0 {
            header.settings.push(("worker processes".to_owned(), layout.processes.to_string()));
        }
        let side = header.side;
        let live_counters: Vec<Arc<LiveCounters>> = specs.iter().map(|_| Arc::default()).collect();
        let (recycled, used): (Vec<_>, Vec<_>) = specs.iter().map(|_| channel()).unzip();
        let specs: Vec<(usize, LoopSpec)> = specs.into_iter().enumerate().collect();
        if layout.processes == 0 {
            for (((index, spec), live), used) in specs.into_iter().zip(&live_counters).zip(used) {
                let live = Arc::clone(live);
                let (deliveries, ready) = (self.deliveries.clone(), self.ready.clone());
                let channels = LoopChannels { index, live, deliveries, recycled: used, ready };
                let thread =
                    worker::start(spec, self.context.clone(), channels).map_err(EngineError::Loop)?;
                self.threads.push((side, thread));
            }
        } else {
            for specs in layout.divide(specs) {
                let thread = self.process(side, specs, &live_counters).map_err(EngineError::Loop)?;
                self.threads.push((side, thread));
            }
        }
        Ok(SideState {
            side,
            live_counters,
            header: Some(header),
            path: path.clone(),
            sample_path: sample_path.clone(),
            samples: self.context.schedule.samples().cloned().collect(),
            recycled,
            aggregator: None,
        })
    }

    /// Starts a worker process that runs `specs`.
    fn process(
        &self,
        side: Side,
        specs: Vec<(usize, LoopSpec)>,
        live_counters: &[Arc<LiveCounters>],
    ) -> io::Result<JoinHandle<io::Result<()>>> {
        let ends = RelayChannels {
            side,
            timeline: Arc::clone(&self.context.timeline),
            live_counters: specs.iter().map(|(index, _)| Arc::clone(&live_counters[*index])).collect(),
            deliveries: self.deliveries.clone(),
            ready: self.ready.clone(),
        };
        let assignment = Assignment {
            schedule: (*self.context.schedule).clone(),
            interval: self.context.interval,
            quantum: self.context.quantum,
            loops: specs,
        };
        relay::start(assignment, ends)
    }
}
