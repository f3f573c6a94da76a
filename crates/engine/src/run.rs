//! A test from start to end, seen from outside.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use polygraph_link::Nanos;
use polygraph_origin::{House, Server};
use polygraph_plan::Schedule;
use polygraph_stats::{DumpPlan, EndReason, Header, Record, Totals};
use polygraph_traffic::IdSource;
use polygraph_traffic::store::{Share, WorkingSet};

use crate::conductor::{Others, Score};
use crate::coordinator::Coordinator;
use crate::host::Host;
use crate::keeper::Frame;
use crate::layout::Layout;
use crate::listen::Reserved;
use crate::timeline::Timeline;

/// The robots of a test.
#[derive(Debug)]
pub struct ClientJob {
    /// Settings of all robots; the engine divides them among loops.
    pub settings: polygraph_robot::Settings,
    /// Explicit local ports.
    pub ports: Option<(u16, u16)>,
    /// Its loops; there are no more than robots.
    pub layout: Layout,
    /// Source of ids, one for each loop.
    pub ids: Vec<IdSource>,
    /// The working set of an earlier test, to go on with. Its seeds and content types are those of this test.
    pub earlier: Option<WorkingSet>,
    /// Whether the working set is wanted at the end, see [`Outcome::shares`].
    pub stores: bool,
    /// What the log says about the run.
    pub header: Header,
    /// Where the log goes.
    pub log: Option<PathBuf>,
    /// Where samples of single transactions go; `None`: into the log.
    pub sample_log: Option<PathBuf>,
    /// What is shown of transactions.
    pub dump: DumpPlan,
}

/// The origin servers of a test.
#[derive(Debug)]
pub struct ServerJob {
    /// What all servers have in common.
    pub house: Arc<House>,
    /// Each server and its address, at least one.
    pub sites: Vec<(Server, Reserved)>,
    /// Its loops.
    pub layout: Layout,
    /// What the log says about the run.
    pub header: Header,
    /// Where the log goes.
    pub log: Option<PathBuf>,
    /// Where samples of single transactions go; `None`: into the log.
    pub sample_log: Option<PathBuf>,
    /// What is shown of transactions.
    pub dump: DumpPlan,
}

/// When the first phase begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartRule {
    /// At once.
    Now,
    /// With the first connection.
    FirstTraffic,
}

/// A test.
#[derive(Debug)]
pub struct Job {
    /// The phases.
    pub schedule: Schedule,
    /// When they begin.
    pub start: StartRule,
    /// Robots, if this run simulates them.
    pub client: Option<ClientJob>,
    /// Servers, if this run simulates them.
    pub server: Option<ServerJob>,
    /// Length of statistics intervals in nanoseconds.
    pub interval: Nanos,
    /// Timers that are closer than this share a wake-up.
    pub quantum: Nanos,
    /// The run ends after so many seconds without any traffic.
    pub idle_timeout: Option<f64>,
    /// The run has failed if nothing succeeds for so many seconds while transactions fail; `None`: it goes on.
    pub fail_timeout: Option<f64>,
    /// A process of the test that others wait for at the end of a phase is given up after so many seconds without a
    /// sign of it; `None`: never. Of no use if both sides are in this job.
    pub sync_timeout: Option<f64>,
}

impl Job {
    /// What the conductor and the loops of the test share on `host`.
    pub fn prepare(&self, host: Host) -> (Score, Frame) {
        let schedule = Arc::new(self.schedule.clone());
        let timeline = Arc::new(Timeline::new(&schedule));
        // What was frozen when it was stored stays so.
        let earlier = self.client.as_ref().and_then(|client| client.earlier.as_ref());
        if earlier.is_some_and(WorkingSet::is_frozen) {
            timeline.freeze();
        }
        let score = Score {
            schedule: Arc::clone(&schedule),
            timeline: Arc::clone(&timeline),
            filled_before: earlier.map_or(0, |set| set.fill().count),
            has_robots: self.client.is_some(),
            idle_timeout: self.idle_timeout,
            fail_timeout: self.fail_timeout,
            others: self.others(),
        };
        (score, Frame { host, schedule, timeline, interval: self.interval, quantum: self.quantum })
    }
}

impl Job {
    /// Robots and servers of one job are in step anyway.
    fn others(&self) -> Option<Others> {
        let own = match (&self.client, &self.server) {
            (Some(client), None) if client.settings.share_phases => client.settings.group,
            (None, Some(server)) if self.schedule.is_agreed() => server.house.group,
            _ => return None,
        };
        Some(Others { own: vec![own], patience: self.sync_timeout })
    }
}

/// How a test ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Why.
    pub reason: EndReason,
    /// Transactions of the client side, or of the server side where there is no client.
    pub totals: Totals,
    /// The working set by loop, if it was wanted and all loops were there to the end to deliver their share.
    pub shares: Option<Vec<Share>>,
}

/// Why a test could not be run.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The log cannot be written.
    #[error("cannot write the log {path}: {source}")]
    Log {
        /// Its path.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// A loop cannot be started.
    #[error("an event loop cannot be started: {0}")]
    Loop(io::Error),
}

/// A test whose loops wait for its first phase: servers listen already.
#[derive(Debug)]
pub struct Running {
    runtime: tokio::runtime::LocalRuntime,
    coordinator: Coordinator,
}

/// Starts the loops of a test.
///
/// If a side has worker processes, they are this program, started again with [`WORKER`](crate::relay::WORKER) as
/// its first argument; it must be called on a thread that outlives the run.
///
/// # Errors
/// If a loop cannot be started, for example because an address cannot be used.
pub fn start(job: Job) -> Result<Running, EngineError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(Default::default())
        .map_err(EngineError::Loop)?;
    let coordinator = runtime.block_on(async { Coordinator::start(job) })?;
    Ok(Running { runtime, coordinator })
}

impl Running {
    /// Follows the test to its end. `watch` sees every record of both logs as it is written.
    ///
    /// # Errors
    /// If a log cannot be written. A test that fails is no error, see [`Outcome::reason`].
    pub fn follow(self, mut watch: impl FnMut(&Header, &Record)) -> Result<Outcome, EngineError> {
        let Running { runtime, mut coordinator } = self;
        runtime.block_on(coordinator.follow(&mut watch))
    }
}

/// Runs a test to its end: [`start`] and [`Running::follow`].
///
/// # Errors
/// If the test cannot be run. A test that fails is no error, see [`Outcome::reason`].
pub fn run(job: Job, watch: impl FnMut(&Header, &Record)) -> Result<Outcome, EngineError> {
    start(job)?.follow(watch)
}
