//! One side of a running test: its loops, in this process or in others, and the state of its log.

use std::io;
use std::ops::Add;
use std::path::PathBuf;

use polygraph_plan::{SamplePlan, Schedule};
use polygraph_stats::{Header, Side};

use crate::channels::LoopEnd;
use crate::live_counters::Counts;
use crate::outcome::EngineError;
use crate::side_aggregator::SideAggregator;

/// One side of the running test.
#[derive(Debug)]
pub struct SideState {
    /// Client or server.
    pub side: Side,
    /// Its loops.
    pub loops: Vec<LoopEnd>,
    /// The header of the log, until the log is opened.
    pub header: Option<Header>,
    /// The path of the log.
    pub path: Option<PathBuf>,
    /// The path of the log for transaction samples, if they have one.
    pub sample_path: Option<PathBuf>,
    /// The planned transaction samples, until the log is opened.
    pub samples: Vec<SamplePlan>,
    /// The statistics of the side, once its log is open.
    pub aggregator: Option<SideAggregator>,
}

impl SideState {
    /// A side whose log, at the first of `paths`, is not open; the second path is that for transaction samples.
    pub fn new(
        header: Header,
        [path, sample_path]: [&Option<PathBuf>; 2],
        loops: Vec<LoopEnd>,
        schedule: &Schedule,
    ) -> SideState {
        SideState {
            side: header.side,
            loops,
            header: Some(header),
            path: path.clone(),
            sample_path: sample_path.clone(),
            samples: schedule.samples().cloned().collect(),
            aggregator: None,
        }
    }

    /// The counts of all its loops.
    pub fn counts(&self) -> Counts {
        self.loops.iter().map(|end| end.live.counts()).fold(Counts::default(), Add::add)
    }

    /// The error for a log that cannot be written.
    pub fn log_error(&self, source: io::Error) -> EngineError {
        let path = self.path.as_ref().map_or_else(String::new, |path| path.display().to_string());
        EngineError::Log { path, source }
    }
}
