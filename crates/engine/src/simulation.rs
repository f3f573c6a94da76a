//! The driver of a test in virtual time: the same conductor, keepers and books as on real loops, on one virtual loop.
//!
//! Nothing is decided by the speed of the machine: two runs of the same job write the same logs, byte for byte.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::channel;

use polygraph_link::{Link, Nanos, SECOND};
use polygraph_origin::Origin;
use polygraph_robot::Crew;
use polygraph_sim::VirtualLink;
use polygraph_stats::{EndReason, Header, Record, Recorder};

use crate::books::{Books, Observer};
use crate::conductor::{Conductor, Event, NOTICE, TICK};
use crate::gauge::Gauge;
use crate::host::Host;
use crate::keeper::{Desk, Frame, Keeper, Party};
use crate::layout::Layout;
use crate::roles::{Role, client_roles, server_roles};
use crate::run::{EngineError, Job, Outcome};
use crate::side::SideState;

/// Why a test cannot go on.
const STANDSTILL: &str = "time stands still: tasks go on and on in the same moment, as robots do that send their \
    next request at once when replies take no time";
/// Why a test is given up.
const ENDLESS: &str = "the simulation had not come to its end when its time was over";
/// After the end of the last phase everybody has so much time to end.
const CODA: Nanos = SECOND;

/// Runs a test to its end in virtual time, beginning at `epoch` (seconds since 1970). `furnish` may put further
/// parties on the loop, like a device between the sides; servers listen at the addresses of the job, which need not
/// be of this machine. Layouts of the job count only as far as they say how many loops share the robots. A test that is not
/// over after `limit` nanoseconds is given up.
///
/// # Errors
/// If a log cannot be written. A test that fails is no error, see [`Outcome::reason`].
pub fn simulate(
    mut job: Job,
    epoch: u64,
    limit: Option<Nanos>,
    furnish: impl FnOnce(&VirtualLink),
    mut observer: impl FnMut(&Header, &Record),
) -> Result<Outcome, EngineError> {
    let link = VirtualLink::new(epoch);
    let outcome = run(&link, &mut job, epoch, limit, furnish, &mut observer);
    // Tasks and their loop know each other; this lets both go.
    link.end();
    outcome
}

fn run(
    link: &VirtualLink,
    job: &mut Job,
    epoch: u64,
    limit: Option<Nanos>,
    furnish: impl FnOnce(&VirtualLink),
    observer: &mut Observer<'_>,
) -> Result<Outcome, EngineError> {
    let host = Host::Virtual { epoch_ns: epoch * SECOND };
    let (score, frame) = job.prepare(host);
    let (filled, inbox) = channel();
    // Loops of this kind cannot fail to start.
    let (ready, _) = channel();
    let mut sides = Vec::new();
    if let Some(server) = &mut job.server {
        // An address has one listener here.
        server.layout = Layout::threads(1);
        let paths = [server.log.clone(), server.sample_log.clone()];
        sides.push((server.header.clone(), paths, server_roles(server)));
    }
    if let Some(client) = &job.client {
        let paths = [client.log.clone(), client.sample_log.clone()];
        sides.push((client.header.clone(), paths, client_roles(client)));
    }
    let mut states = Vec::new();
    for (header, [path, sample_path], roles) in sides {
        let gauges: Vec<_> = roles.iter().map(|_| Arc::<Gauge>::default()).collect();
        let mut back = Vec::new();
        for ((index, role), gauge) in roles.into_iter().enumerate().zip(&gauges) {
            let (again, used) = channel();
            back.push(again);
            let (gauge, filled, ready) = (Arc::clone(gauge), filled.clone(), ready.clone());
            start(link, role, &frame, Desk { index, gauge, filled, used, ready });
        }
        let side = header.side;
        states.push(SideState {
            side,
            gauges,
            header: Some(header),
            path,
            sample_path,
            samples: frame.schedule.samples().cloned().collect(),
            back,
            ledger: None,
        });
    }
    furnish(link);
    let stores = job.client.as_ref().is_some_and(|client| client.stores);
    let mut books = Books::new(host, states, inbox, stores);

    let start = NOTICE;
    books.open(start, observer)?;
    books.tell(&score.opening(start), observer)?;
    score.timeline.set_start(start);
    let timeline = Arc::clone(&score.timeline);
    let mut conductor = Conductor::new(score, start);
    let reason = loop {
        let goes_on = conductor.is_between() || link.run(link.now() + TICK);
        books.collect(observer)?;
        let why = match goes_on {
            false => Some(STANDSTILL),
            true => limit.is_some_and(|limit| link.now() > limit).then_some(ENDLESS),
        };
        let stop = why.map(|why| EndReason::Fatal(why.into()));
        for event in conductor.step(&books.seen(link.now(), stop)) {
            if let Event::PhaseEnds { at, .. } = event
                && goes_on
            {
                link.run(at);
                books.collect(observer)?;
            }
            books.tell(&event, observer)?;
        }
        if let Some(reason) = conductor.ended() {
            break reason.clone();
        }
    };
    timeline.let_servers_go();
    let end = link.now();
    if !matches!(reason, EndReason::Fatal(_)) {
        link.run(end + CODA);
    }
    books.close(end, reason, observer)
}

/// Puts a loop's parties and its keeper on the virtual loop.
fn start(link: &VirtualLink, role: Role, frame: &Frame, desk: Desk) {
    let recorder = Recorder::new();
    let party = match role {
        Role::Robots { settings, ids, legacy, stores, .. } => {
            let crew = Crew::new(link.clone(), *settings, recorder.clone(), ids);
            if let Some(legacy) = legacy {
                crew.go_on_with(*legacy);
            }
            Party::Robots { crew, stores }
        }
        Role::Origin { house, sites, index, .. } => {
            let origin = Origin::new(link.clone(), house, index, recorder.clone());
            for (server, address) in sites {
                let (site, of_site) = (origin.site(server), link.clone());
                link.listen(address, move |conn, _| of_site.spawn(Rc::clone(&site).serve(conn)));
            }
            Party::Servers(origin)
        }
    };
    link.spawn(Keeper::new(link.clone(), frame.clone(), desk, recorder, party).keep());
}
