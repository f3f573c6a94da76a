//! One side of a running test: its loops, in this process or in others, and its books.

use std::io;
use std::ops::Add;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use polygraph_plan::SamplePlan;
use polygraph_stats::{Block, Header, Side};

use crate::gauge::{Counts, Gauge};
use crate::keeper::{Delivery, Desk, Frame, Ready};
use crate::layout::Layout;
use crate::ledger::Ledger;
use crate::protocol::Assignment;
use crate::relay::{self, Ends};
use crate::roles::Role;
use crate::run::EngineError;
use crate::worker;

/// One side of the running test.
#[derive(Debug)]
pub struct SideState {
    /// Which one.
    pub side: Side,
    /// Counts of its loops.
    pub gauges: Vec<Arc<Gauge>>,
    /// What its log will say about the run, until that is opened.
    pub header: Option<Header>,
    /// Where its log goes.
    pub path: Option<PathBuf>,
    /// Where samples of single transactions go, if not into the log.
    pub sample_path: Option<PathBuf>,
    /// Samples of single transactions, until the books are opened.
    pub samples: Vec<SamplePlan>,
    /// Where used blocks go back to, by loop, until the books are opened.
    pub back: Vec<Sender<Box<Block>>>,
    /// Its books.
    pub ledger: Option<Ledger>,
}

impl SideState {
    /// What all loops have counted.
    pub fn counts(&self) -> Counts {
        self.gauges.iter().map(|gauge| gauge.counts()).fold(Counts::default(), Add::add)
    }

    /// The error of a log that cannot be written.
    pub fn log_error(&self, source: io::Error) -> EngineError {
        let path = self.path.as_ref().map_or_else(String::new, |path| path.display().to_string());
        EngineError::Log { path, source }
    }
}

/// Starts loops wherever they are to live.
#[derive(Debug)]
pub struct Starter {
    frame: Frame,
    filled: Sender<Delivery>,
    ready: Sender<Ready>,
    threads: Vec<(Side, JoinHandle<io::Result<()>>)>,
}

impl Starter {
    /// A starter of loops that hand over to `filled` and say at `ready` when they are there.
    pub fn new(frame: Frame, filled: Sender<Delivery>, ready: Sender<Ready>) -> Starter {
        Starter { frame, filled, ready, threads: Vec::new() }
    }

    /// All loops that were started, and relays of processes with loops.
    pub fn threads(self) -> Vec<(Side, JoinHandle<io::Result<()>>)> {
        self.threads
    }

    /// Starts the loops of a side.
    ///
    /// # Errors
    /// If there can be no further thread or process.
    pub fn side(
        &mut self,
        header: &Header,
        [path, sample_path]: [&Option<PathBuf>; 2],
        layout: Layout,
        roles: Vec<Role>,
    ) -> Result<SideState, EngineError> {
        let mut header = header.clone();
        if layout.processes > 0 {
            header.settings.push(("worker processes".to_owned(), layout.processes.to_string()));
        }
        let side = header.side;
        let gauges: Vec<Arc<Gauge>> = roles.iter().map(|_| Arc::default()).collect();
        let (back, used): (Vec<_>, Vec<_>) = roles.iter().map(|_| channel()).unzip();
        let roles: Vec<(usize, Role)> = roles.into_iter().enumerate().collect();
        if layout.processes == 0 {
            for (((index, role), gauge), used) in roles.into_iter().zip(&gauges).zip(used) {
                let gauge = Arc::clone(gauge);
                let (filled, ready) = (self.filled.clone(), self.ready.clone());
                let desk = Desk { index, gauge, filled, used, ready };
                let thread = worker::start(role, self.frame.clone(), desk).map_err(EngineError::Loop)?;
                self.threads.push((side, thread));
            }
        } else {
            for roles in layout.divide(roles) {
                let thread = self.process(side, roles, &gauges).map_err(EngineError::Loop)?;
                self.threads.push((side, thread));
            }
        }
        Ok(SideState {
            side,
            gauges,
            header: Some(header),
            path: path.clone(),
            sample_path: sample_path.clone(),
            samples: self.frame.schedule.samples().cloned().collect(),
            back,
            ledger: None,
        })
    }

    /// Starts a worker process with some of the loops of a side.
    fn process(
        &self,
        side: Side,
        roles: Vec<(usize, Role)>,
        gauges: &[Arc<Gauge>],
    ) -> io::Result<JoinHandle<io::Result<()>>> {
        let ends = Ends {
            side,
            timeline: Arc::clone(&self.frame.timeline),
            gauges: roles.iter().map(|(index, _)| Arc::clone(&gauges[*index])).collect(),
            filled: self.filled.clone(),
            ready: self.ready.clone(),
        };
        let assignment = Assignment {
            schedule: (*self.frame.schedule).clone(),
            interval: self.frame.interval,
            quantum: self.frame.quantum,
            roles,
        };
        relay::start(assignment, ends)
    }
}
