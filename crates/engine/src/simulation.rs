//! Runs a test in virtual time: the same phase controller, loop drivers and aggregator as on real loops, on one
//! virtual loop.
//!
//! The speed of the machine decides nothing: two runs of the same setup write identical logs.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;

use polygraph_link::{Link, Nanos, SECOND};
use polygraph_origin::{Origin, Server};
use polygraph_robot::RobotGroup;
use polygraph_sim::VirtualLink;
use polygraph_stats::{EndReason, Header, Record, Recorder};

use crate::aggregator::{Aggregator, Observer};
use crate::host::Host;
use crate::layout::Layout;
use crate::live_counters::LiveCounters;
use crate::loop_driver::{LoopChannels, LoopDriver, LoopRole, RunContext};
use crate::loop_spec::{LoopSpec, client_loops, server_loops};
use crate::outcome::{EngineError, RunOutcome};
use crate::phase_controller::{ControlEvent, NOTICE, PhaseController, TICK};
use crate::setup::RunSetup;
use crate::side::SideState;

/// The reason for the end if virtual time does not advance.
const STANDSTILL: &str = "time stands still: tasks go on and on in the same moment, as robots do that send their \
    next request at once when replies take no time";
/// The reason for the end if the time limit is reached.
const ENDLESS: &str = "the simulation had not come to its end when its time was over";
/// How long transactions may continue after the end of the last phase, in virtual time.
const GRACE: Nanos = SECOND;

/// Runs a test to its end in virtual time, starting at `epoch` (seconds since 1970). `furnish` may add devices to the
/// loop. Servers listen on the addresses of the setup, which need not belong to this machine. Of a layout only the
/// number of client loops counts. A test that is not over after `limit` nanoseconds of virtual time is given up.
///
/// # Errors
/// If a log cannot be written. A failed test is not an error, see [`RunOutcome::reason`].
pub fn simulate(
    mut job: RunSetup,
    epoch: u64,
    limit: Option<Nanos>,
    furnish: impl FnOnce(&VirtualLink),
    mut observer: impl FnMut(&Header, &Record),
) -> Result<RunOutcome, EngineError> {
    let link = VirtualLink::new(epoch);
    let outcome = run(&link, &mut job, epoch, limit, furnish, &mut observer);
    // Tasks and their loop refer to each other; this call frees both.
    link.end();
    outcome
}

fn run(
    link: &VirtualLink,
    job: &mut RunSetup,
    epoch: u64,
    limit: Option<Nanos>,
    furnish: impl FnOnce(&VirtualLink),
    observer: &mut Observer<'_>,
) -> Result<RunOutcome, EngineError> {
    let host = Host::Virtual { epoch_ns: epoch * SECOND };
    let (plan, context) = job.prepare(host);
    let (deliveries, inbox) = channel();
    // Virtual loops cannot fail to start.
    let (ready, _) = channel();
    let mut sides = Vec::new();
    if let Some(server) = &mut job.server {
        // An address has one listener in a simulation.
        server.layout = Layout::threads(1);
        let paths = [server.log.clone(), server.sample_log.clone()];
        sides.push((server.header.clone(), paths, server_loops(server)));
    }
    if let Some(client) = &job.client {
        let paths = [client.log.clone(), client.sample_log.clone()];
        sides.push((client.header.clone(), paths, client_loops(client)));
    }
    let mut states = Vec::new();
    for (header, [path, sample_path], specs) in sides {
        let live_counters: Vec<_> = specs.iter().map(|_| Arc::<LiveCounters>::default()).collect();
        let mut recycled = Vec::new();
        for ((index, spec), live) in specs.into_iter().enumerate().zip(&live_counters) {
            let (recycle, used) = channel();
            recycled.push(recycle);
            let (live, deliveries, ready) = (Arc::clone(live), deliveries.clone(), ready.clone());
            start(link, spec, &context, LoopChannels { index, live, deliveries, recycled: used, ready });
        }
        let side = header.side;
        states.push(SideState {
            side,
            live_counters,
            header: Some(header),
            path,
            sample_path,
            samples: context.schedule.samples().cloned().collect(),
            recycled,
            aggregator: None,
        });
    }
    furnish(link);
    let stores = job.client.as_ref().is_some_and(|client| client.stores);
    let mut aggregator = Aggregator::new(host, states, inbox, stores);

    let start = NOTICE;
    aggregator.open(start, observer)?;
    aggregator.record(&plan.opening(start), observer)?;
    plan.timeline.set_start(start);
    let timeline = Arc::clone(&plan.timeline);
    let mut controller = PhaseController::new(plan, start);
    let reason = loop {
        let goes_on = controller.is_between() || link.run(link.now() + TICK);
        aggregator.collect(observer)?;
        let why = match goes_on {
            false => Some(STANDSTILL),
            true => limit.is_some_and(|limit| link.now() > limit).then_some(ENDLESS),
        };
        let stop = why.map(|why| EndReason::Fatal(why.into()));
        for event in controller.step(&aggregator.observe(link.now(), stop)) {
            if let ControlEvent::PhaseEnds { at, .. } = event
                && goes_on
            {
                link.run(at);
                aggregator.collect(observer)?;
            }
            aggregator.record(&event, observer)?;
        }
        if let Some(reason) = controller.ended() {
            break reason.clone();
        }
    };
    timeline.release_servers();
    let end = link.now();
    if !matches!(reason, EndReason::Fatal(_)) {
        link.run(end + GRACE);
    }
    aggregator.close(end, reason, observer)
}

/// Puts the robots or servers of a loop and its driver on the virtual loop.
fn start(link: &VirtualLink, spec: LoopSpec, context: &RunContext, channels: LoopChannels) {
    let recorder = Recorder::new();
    let role = match spec {
        LoopSpec::Robots { settings, ids, legacy, stores, .. } => {
            let group = RobotGroup::new(link.clone(), *settings, recorder.clone(), ids);
            if let Some(legacy) = legacy {
                group.resume_from(*legacy);
            }
            LoopRole::Robots { group, stores }
        }
        LoopSpec::Origin { config, servers, index, .. } => {
            let origin = Origin::new(link.clone(), config, index, recorder.clone());
            for (server, address) in servers {
                let (server, of_server) = (Server::new(&origin, server), link.clone());
                link.listen(address, move |conn, _| of_server.spawn(Rc::clone(&server).serve(conn)));
            }
            LoopRole::Servers(origin)
        }
    };
    link.spawn(LoopDriver::new(link.clone(), context.clone(), channels, recorder, role).run());
}
