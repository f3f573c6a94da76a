//! The ceiling of this host: the rate of robots without pauses and servers without think time, over loopback.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use polygraph_doctor::facts::CeilingMeasurement;
use polygraph_doctor::{Depth, read_host};
use polygraph_engine::{Engine, ReservedAddress, RunSetup, StartRule, limits};
use polygraph_link::nanos;
use polygraph_origin::ServerProfile;
use polygraph_plan::accounts::Accounts;
use polygraph_plan::{BenchNeeds, Endpoint, Goal, Schedule, ServerGroup, Test, TestShare};
use polygraph_report::Scope;
use polygraph_robot::{Field, Load, Profile, Rules, ToldFreshness, Verify};
use polygraph_stats::{DumpPlan, Interval, Record, Side};
use polygraph_traffic::{Behavior, Catalog, ContentKind, Distr, Seed, Selector};

use crate::jobs::{self, ClientSettings, ServerTolerance};
use crate::simulation_table::figure;
use crate::working_set::WorkingSetFiles;
use crate::{Failure, RunSettings, layouts};

/// The mean reply size of PolyMix-1.
const REPLY_BYTES: u64 = 13 * 1024;
/// Robots for each processor: enough to keep it busy.
const ROBOTS: usize = 8;
/// Requests per connection in the second half.
const REQUESTS: f64 = 64.0;
/// The measured phase; the phase before it is a warm-up.
const MEASURED: u32 = 1;

/// The result of one half of the measurement.
struct Half {
    rate: f64,
    processors_used: f64,
    failed: u64,
}

impl Half {
    fn rate_per_processor(&self) -> f64 {
        self.rate / self.processors_used.max(0.01)
    }
}

/// Measures for about `seconds`: one half with a new connection for each request, one half over persistent connections.
///
/// # Errors
/// If robots or servers cannot start on loopback.
pub fn measure(seconds: f64) -> Result<CeilingMeasurement, Failure> {
    limits::raise_descriptor_limit();
    let drops = || read_host(Path::new("/"), Path::new("."), Depth::Quick).queues.packet_drops.unwrap_or(0);
    let before = drops();
    let engine = Engine::best();
    let new = half(seconds / 2.0, engine, Distr::Const(1.0))?;
    let persistent = half(seconds / 2.0, engine, Distr::Const(REQUESTS))?;
    Ok(CeilingMeasurement {
        new_connections: new.rate,
        persistent: persistent.rate,
        new_per_processor: new.rate_per_processor(),
        persistent_per_processor: persistent.rate_per_processor(),
        reply_bytes: REPLY_BYTES,
        engine: engine.name(),
        failed: new.failed + persistent.failed,
        packet_drops: drops().saturating_sub(before),
        is_debug_build: cfg!(debug_assertions),
    })
}

fn half(seconds: f64, engine: Engine, requests: Distr) -> Result<Half, Failure> {
    let settings = RunSettings {
        loops: None,
        timer_quantum_s: 100e-6,
        engine: Some(engine),
        idle_timeout_s: Some(5.0),
        dump: DumpPlan::default(),
        ..RunSettings::of_simulation(1, 1, 0.5)
    };
    let mut test = test(seconds, requests);
    let reserved = jobs::reserve_all(&test)?;
    test.serve_at(&reserved.iter().map(ReservedAddress::address).collect::<Vec<_>>());
    let sides = [Side::Client, Side::Server];
    let [on_client, on_server] = layouts::layouts(&test, &settings, None, sides);
    let working_set = WorkingSetFiles::default();
    let client = ClientSettings::default();
    let client = jobs::client_job(&test, &settings, &client, true, on_client, &working_set)?;
    let server = jobs::server_job(&test, &settings, ServerTolerance::default(), reserved, on_server);
    let job = RunSetup {
        schedule: test.schedule.clone(),
        start: StartRule::Now,
        client: Some(client),
        server: Some(server),
        interval: nanos(settings.interval_s),
        quantum: nanos(settings.timer_quantum_s),
        engine: settings.engine(),
        fail_timeout: Some(seconds),
        idle_timeout: settings.idle_timeout_s,
        sync_timeout: None,
    };
    let (mut measured, mut cpu_s): (Vec<Interval>, f64) = (Vec::new(), 0.0);
    let outcome = polygraph_engine::run(job, |header, record| {
        if let Record::Interval(interval) = record
            && interval.phase == MEASURED
        {
            cpu_s += interval.cpu_ns as f64 * 1e-9;
            if header.side == Side::Client {
                measured.push((**interval).clone());
            }
        }
    });
    let outcome = outcome.map_err(Failure::setup)?;
    let length: f64 = measured.iter().map(Interval::seconds).sum();
    Ok(Half {
        rate: figure("ok_xact.rate", &Scope::of_intervals(&measured)).unwrap_or(0.0),
        processors_used: cpu_s / length.max(1e-9),
        failed: outcome.totals.failed,
    })
}

/// Best-effort robots and servers without think time.
fn test(seconds: f64, requests: Distr) -> Test {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let catalog = Catalog::classic(Seed(1), Distr::Const(REPLY_BYTES as f64));
    let kinds: Vec<ContentKind> = (0..catalog.contents.len()).map(ContentKind::of_index).collect();
    let load = Load::Closed { think: None };
    let robots = Profile {
        requests_per_connection: requests.clone(),
        lifetime: Some(Distr::Const(10.0)),
        ..Profile::plain("robots", ROBOTS * processors, load, Behavior::default())
    };
    let farm =
        ServerProfile { requests_per_connection: requests, ..ServerProfile::plain("servers", kinds.clone()) };
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Test {
        name: "ceiling of this host".to_owned(),
        robots: vec![Arc::new(robots)],
        field: Arc::new(Field {
            servers: Vec::new(),
            direct: vec![Selector::even(kinds)],
            catalog,
            marks_cachable: Some(1.0),
            rules: Rules::default(),
            page_delay: 0.0,
            settle: 0.0,
            verify: Verify::Bytes,
            share_worlds: false,
            redirects: false,
            freshness: ToldFreshness::Classic,
            substitutes: Vec::new(),
        }),
        servers: vec![ServerGroup { farm, sites: vec![Endpoint { listen, names: Vec::new() }] }],
        classic: true,
        accounts: Accounts::default(),
        schedule: Schedule::classic(Goal { duration: Some(seconds), ..Goal::default() }, None),
        launch_window: 0.0,
        names: Vec::new(),
        needs: Ok(BenchNeeds::default()),
        text: String::new(),
        notes: Vec::new(),
        device_tls: None,
        share: TestShare::default(),
    }
}
