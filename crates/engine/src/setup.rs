//! The complete description of a run: phases, robots, servers, logs.

use std::path::PathBuf;
use std::sync::Arc;

use polygraph_link::Nanos;
use polygraph_origin::{OriginConfig, ServerSpec};
use polygraph_plan::Schedule;
use polygraph_stats::{DumpPlan, Header};
use polygraph_traffic::IdSource;
use polygraph_traffic::store::WorkingSet;

use crate::host::Host;
use crate::layout::Layout;
use crate::listen::ReservedAddress;
use crate::loop_driver::RunContext;
use crate::phase_controller::{PeerSettings, TestPlan};
use crate::timeline::Timeline;

/// The robots of a test.
#[derive(Debug)]
pub struct ClientSetup {
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
    /// Whether the working set is wanted at the end, see [`RunOutcome::shares`].
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
pub struct ServerSetup {
    /// What all servers have in common.
    pub config: Arc<OriginConfig>,
    /// Each server and its address, at least one.
    pub servers: Vec<(ServerSpec, ReservedAddress)>,
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
pub struct RunSetup {
    /// The phases.
    pub schedule: Schedule,
    /// When they begin.
    pub start: StartRule,
    /// Robots, if this run simulates them.
    pub client: Option<ClientSetup>,
    /// Servers, if this run simulates them.
    pub server: Option<ServerSetup>,
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

impl RunSetup {
    /// What the controller and the loops of the test share on `host`.
    pub fn prepare(&self, host: Host) -> (TestPlan, RunContext) {
        let schedule = Arc::new(self.schedule.clone());
        let timeline = Arc::new(Timeline::new(&schedule));
        // What was frozen when it was stored stays so.
        let earlier = self.client.as_ref().and_then(|client| client.earlier.as_ref());
        if earlier.is_some_and(WorkingSet::is_frozen) {
            timeline.freeze_from(0);
        }
        let plan = TestPlan {
            schedule: Arc::clone(&schedule),
            timeline: Arc::clone(&timeline),
            filled_before: earlier.map_or(0, |set| set.fill().count),
            has_robots: self.client.is_some(),
            idle_timeout: self.idle_timeout,
            fail_timeout: self.fail_timeout,
            peers: self.peers(),
        };
        (plan, RunContext { host, schedule, timeline, interval: self.interval, quantum: self.quantum })
    }
}

impl RunSetup {
    /// Robots and servers of one job are in step anyway.
    fn peers(&self) -> Option<PeerSettings> {
        let own = match (&self.client, &self.server) {
            (Some(client), None) if client.settings.share_phases => client.settings.group,
            (None, Some(server)) if self.schedule.is_agreed() => server.config.group,
            _ => return None,
        };
        Some(PeerSettings { own: vec![own], patience: self.sync_timeout })
    }
}
