//! The complete description of a run: phases, robots, servers, logs.

use std::path::PathBuf;
use std::sync::Arc;

use polygraph_link::Nanos;
use polygraph_origin::{OriginConfig, ServerSpec};
use polygraph_plan::Schedule;
use polygraph_stats::{DumpPlan, Header};
use polygraph_traffic::IdSource;
use polygraph_traffic::store::WorkingSet;

use crate::event_loop::Engine;
use crate::host::Host;
use crate::layout::Layout;
use crate::listen::ReservedAddress;
use crate::phase_controller::{PeerSettings, TestPlan};
use crate::timeline::Timeline;

/// The robots of a run.
#[derive(Debug)]
pub struct ClientSetup {
    /// The settings of all robots. The engine divides the robots among loops.
    pub settings: polygraph_robot::Settings,
    /// The first and last explicit local port; `None`: the system chooses ports.
    pub ports: Option<(u16, u16)>,
    /// The loops of the side; there are no more loops than robots.
    pub layout: Layout,
    /// The sources of ids, one for each loop.
    pub ids: Vec<IdSource>,
    /// The working set of an earlier test, if this test continues one. It has the seeds and content types of this
    /// test.
    pub earlier: Option<WorkingSet>,
    /// Whether the working set is delivered at the end, see `RunOutcome::shares`.
    pub stores: bool,
    /// The header of the log.
    pub header: Header,
    /// The path of the log; `None`: no log.
    pub log: Option<PathBuf>,
    /// The path of the log for transaction samples; `None`: they go to the main log.
    pub sample_log: Option<PathBuf>,
    /// Which transactions are dumped.
    pub dump: DumpPlan,
}

/// The origin servers of a run.
#[derive(Debug)]
pub struct ServerSetup {
    /// The configuration that all servers share.
    pub config: Arc<OriginConfig>,
    /// Each server and its address; at least one.
    pub servers: Vec<(ServerSpec, ReservedAddress)>,
    /// The loops of the side.
    pub layout: Layout,
    /// The header of the log.
    pub header: Header,
    /// The path of the log; `None`: no log.
    pub log: Option<PathBuf>,
    /// The path of the log for transaction samples; `None`: they go to the main log.
    pub sample_log: Option<PathBuf>,
    /// Which transactions are dumped.
    pub dump: DumpPlan,
}

/// When the first phase starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartRule {
    /// At once.
    Now,
    /// With the first connection.
    FirstTraffic,
    /// At this time of day, in nanoseconds since 1970. If it has passed when the process is ready, the run fails.
    At(u64),
}

/// The complete description of a run.
#[derive(Debug)]
pub struct RunSetup {
    /// The phases.
    pub schedule: Schedule,
    /// When they start.
    pub start: StartRule,
    /// The robots, if this process runs robots.
    pub client: Option<ClientSetup>,
    /// The servers, if this process runs servers.
    pub server: Option<ServerSetup>,
    /// Length of a statistics interval in nanoseconds.
    pub interval: Nanos,
    /// Timers that are less than this apart, in nanoseconds, share a wake-up.
    pub quantum: Nanos,
    /// What event loops wait with.
    pub engine: Engine,
    /// The run ends after this many seconds without traffic; `None`: never.
    pub idle_timeout: Option<f64>,
    /// The run fails after this many seconds in which transactions fail and none succeeds; `None`: never.
    pub fail_timeout: Option<f64>,
    /// After this many seconds without a status, a process that others wait for at the end of a phase is given up;
    /// `None`: never. Without effect if this process runs both sides.
    pub sync_timeout: Option<f64>,
}

impl RunSetup {
    /// What the phase controller and the loops of the run share on `host`.
    pub fn prepare(&self, host: Host) -> (TestPlan, RunContext) {
        let schedule = Arc::new(self.schedule.clone());
        let timeline = Arc::new(Timeline::new(&schedule));
        // A working set that was frozen when it was stored stays frozen.
        let earlier = self.client.as_ref().and_then(|client| client.earlier.as_ref());
        if earlier.is_some_and(WorkingSet::is_frozen) {
            timeline.freeze_from(Nanos::ZERO);
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
        let context = RunContext {
            host,
            schedule,
            timeline,
            interval: self.interval,
            quantum: self.quantum,
            engine: self.engine,
        };
        (plan, context)
    }
}

impl RunSetup {
    /// The settings for agreement with other processes. Robots and servers of one process need none.
    fn peers(&self) -> Option<PeerSettings> {
        let own = match (&self.client, &self.server) {
            (Some(client), None) if client.settings.share_phases => client.settings.group,
            (None, Some(server)) if self.schedule.is_agreed() => server.config.group,
            _ => return None,
        };
        Some(PeerSettings { own: vec![own], patience: self.sync_timeout })
    }
}

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
    /// What event loops wait with.
    pub engine: Engine,
}
