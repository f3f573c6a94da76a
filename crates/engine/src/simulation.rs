//! Runs a test in virtual time: the same phase controller, loop drivers and aggregator as on real loops, on one
//! virtual loop.
//!
//! The speed of the machine decides nothing: two runs of the same setup write identical logs.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::mpsc::{Sender, channel};

use polygraph_link::{Link, Nanos, SECOND};
use polygraph_origin::Server;
use polygraph_sim::VirtualLink;
use polygraph_stats::{EndReason, Header, Record, Recorder};

use crate::aggregator::{Aggregator, Observer};
use crate::channels::{Delivery, LoopChannels};
use crate::host::Host;
use crate::layout::Layout;
use crate::loop_driver::{LoopDriver, LoopRole};
use crate::loop_spec::{LoopSpec, client_loops, server_loops};
use crate::outcome::{EngineError, RunOutcome};
use crate::phase_controller::{ControlEvent, NOTICE, PhaseController, TICK, TestPlan};
use crate::setup::{RunContext, RunSetup};
use crate::side::SideState;

/// The reason for the end if virtual time does not advance.
const STANDSTILL: &str = "virtual time does not advance: tasks keep running at the same moment, for example robots that send \
                          their next request immediately while replies take no time; give the network a delay \
                          (--net_delay 1ms), or servers or robots a think time";
/// The reason for the end if the time limit is reached.
const ENDLESS: &str = "the simulation did not end within its time limit";
/// How long transactions may continue after the end of the last phase, in virtual time.
const GRACE: Nanos = SECOND;

/// Runs a test to its end in virtual time, starting at `epoch` (seconds since 1970). `furnish` may add devices to the
/// loop. Servers listen on the addresses of the setup, which need not belong to this machine. Of a layout only the
/// number of client loops counts. A test that is not over after `limit` nanoseconds of virtual time is given up.
///
/// # Errors
/// If a log cannot be written. A failed test is not an error, see [`RunOutcome::reason`].
pub fn simulate(
    mut setup: RunSetup,
    epoch: u64,
    limit: Option<Nanos>,
    furnish: impl FnOnce(&VirtualLink),
    mut observer: impl FnMut(&Header, &Record),
) -> Result<RunOutcome, EngineError> {
    let link = VirtualLink::new(epoch);
    let outcome = run(&link, &mut setup, epoch, limit, furnish, &mut observer);
    // Tasks and their loop refer to each other; this call frees both.
    link.end();
    outcome
}

fn run(
    link: &VirtualLink,
    setup: &mut RunSetup,
    epoch: u64,
    limit: Option<Nanos>,
    furnish: impl FnOnce(&VirtualLink),
    observer: &mut Observer<'_>,
) -> Result<RunOutcome, EngineError> {
    let host = Host::Virtual { epoch_ns: (epoch * SECOND).as_u64() };
    let (plan, context) = setup.prepare(host);
    let (deliveries, inbox) = channel();
    let sides = start_loops(link, setup, &context, &deliveries);
    furnish(link);
    let stores = setup.client.as_ref().is_some_and(|client| client.stores);
    let mut aggregator = Aggregator::new(host, sides, inbox, stores);
    let reason = go_through_phases(link, plan, limit, &mut aggregator, observer)?;
    context.timeline.release_servers();
    let end = link.now();
    if !matches!(reason, EndReason::NoEnd(_)) {
        link.run(end + GRACE);
    }
    aggregator.close(end, reason, observer)
}

/// Starts the loops of all sides on the virtual loop.
fn start_loops(
    link: &VirtualLink,
    setup: &mut RunSetup,
    context: &RunContext,
    deliveries: &Sender<Delivery>,
) -> Vec<SideState> {
    // Virtual loops cannot fail to start, so nobody waits for them.
    let (ready, _) = channel();
    let mut sides = Vec::new();
    let mut start_side = |header: &Header, paths: [&Option<PathBuf>; 2], specs: Vec<LoopSpec>| {
        let start_loop = |(index, spec)| {
            let (channels, end) = LoopChannels::open(index, deliveries, &ready);
            start(link, spec, context, channels);
            end
        };
        let loops = specs.into_iter().enumerate().map(start_loop).collect();
        sides.push(SideState::new(header.clone(), paths, loops, &context.schedule));
    };
    if let Some(server) = &mut setup.server {
        // An address has one listener in a simulation.
        server.layout = Layout::threads(1);
        start_side(&server.header, [&server.log, &server.sample_log], server_loops(server));
    }
    if let Some(client) = &setup.client {
        start_side(&client.header, [&client.log, &client.sample_log], client_loops(client));
    }
    sides
}

/// Opens the logs and lets the phase controller start and end phases until the last one is over or the run is given up.
fn go_through_phases(
    link: &VirtualLink,
    plan: TestPlan,
    limit: Option<Nanos>,
    aggregator: &mut Aggregator,
    observer: &mut Observer<'_>,
) -> Result<EndReason, EngineError> {
    let start = NOTICE;
    aggregator.open(start, observer)?;
    aggregator.record(&plan.opening(start), observer)?;
    plan.timeline.set_start(start);
    let mut controller = PhaseController::new(plan, start);
    loop {
        let goes_on = controller.is_between() || link.run(link.now() + TICK);
        aggregator.collect(observer)?;
        let why = match goes_on {
            false => Some(STANDSTILL),
            true => limit.is_some_and(|limit| link.now() > limit).then_some(ENDLESS),
        };
        let stop = why.map(|why| EndReason::NoEnd(why.into()));
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
            return Ok(reason.clone());
        }
    }
}

/// Puts the robots or servers of a loop and its driver on the virtual loop.
fn start(link: &VirtualLink, spec: LoopSpec, context: &RunContext, channels: LoopChannels) {
    let recorder = Recorder::new();
    let listen = |server: Rc<Server<VirtualLink>>, address| {
        if server.accepts_http3() {
            server.serve_http3(link.bind_datagrams(address)?);
        }
        let of_server = link.clone();
        link.listen(address, move |conn, _| of_server.spawn(Rc::clone(&server).serve(conn)));
        Ok(())
    };
    let role = LoopRole::start(spec, link, &recorder, listen).expect("virtual addresses are always free");
    link.spawn(LoopDriver::new(link.clone(), context.clone(), channels, recorder, role).run());
}
