//! Starts the loops of a side, in this process or in worker processes.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;

use polygraph_stats::{Header, Side};

use crate::channels::{Delivery, LoopChannels, LoopEnd, Ready};
use crate::layout::Layout;
use crate::loop_spec::LoopSpec;
use crate::outcome::EngineError;
use crate::protocol::Assignment;
use crate::relay::{self, RelayChannels};
use crate::setup::RunContext;
use crate::side::SideState;
use crate::worker;

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
        paths: [&Option<PathBuf>; 2],
        layout: Layout,
        specs: Vec<LoopSpec>,
    ) -> Result<SideState, EngineError> {
        let mut header = header.clone();
        if layout.processes > 0 {
            header.settings.push(("worker processes".to_owned(), layout.processes.to_string()));
        }
        let (channels, ends): (Vec<_>, Vec<_>) =
            (0..specs.len()).map(|index| LoopChannels::open(index, &self.deliveries, &self.ready)).unzip();
        if layout.processes == 0 {
            for (spec, channels) in specs.into_iter().zip(channels) {
                let thread = worker::start(spec, self.context.clone(), channels);
                self.threads.push((header.side, thread.map_err(EngineError::Loop)?));
            }
        } else {
            for specs in layout.divide(specs.into_iter().enumerate().collect()) {
                let thread = self.start_process(header.side, specs, &ends);
                self.threads.push((header.side, thread.map_err(EngineError::Loop)?));
            }
        }
        Ok(SideState::new(header, paths, ends, &self.context.schedule))
    }

    /// Starts a worker process that runs `specs`, which are numbered as `ends` are.
    fn start_process(
        &self,
        side: Side,
        specs: Vec<(usize, LoopSpec)>,
        ends: &[LoopEnd],
    ) -> io::Result<JoinHandle<io::Result<()>>> {
        let channels = RelayChannels {
            side,
            timeline: Arc::clone(&self.context.timeline),
            live_counters: specs.iter().map(|(index, _)| Arc::clone(&ends[*index].live)).collect(),
            deliveries: self.deliveries.clone(),
            ready: self.ready.clone(),
        };
        let assignment = Assignment {
            schedule: (*self.context.schedule).clone(),
            interval: self.context.interval,
            quantum: self.context.quantum,
            engine: self.context.engine,
            loops: specs,
        };
        relay::start(assignment, channels)
    }
}
