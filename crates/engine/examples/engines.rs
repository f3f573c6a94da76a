//! Compares the engines on this host: processor time of robots and of servers for each transaction, over loopback.
//!
//! ```text
//! cargo run --release -p polygraph-engine --example engines [SECONDS] [ROUNDS]
//! ```
//!
//! Robots and servers have an event loop each. Rounds alternate between the engines, so that what else the host does hits both.

#![allow(clippy::print_stdout, reason = "an example for the command line")]

use std::net::SocketAddr;
use std::sync::Arc;

use polygraph_engine::{
    ClientSetup, Engine, Layout, ReservedAddress, RunSetup, ServerSetup, StartRule, limits, run,
};
use polygraph_link::{Nanos, SECOND};
use polygraph_origin::{OriginConfig, ServerProfile, ServerSpec};
use polygraph_plan::{Goal, Phase, Schedule};
use polygraph_robot::{Field, Load, Profile, Rules, ToldFreshness, Verify};
use polygraph_stats::{DumpPlan, Header, Record, Side};
use polygraph_traffic::{Behavior, Catalog, ContentKind, Distr, IdSource, Seed, Selector};

/// A kind of traffic.
struct Case {
    name: &'static str,
    robots: usize,
    load: Load,
    body: f64,
    per_connection: f64,
}

/// What a run showed.
struct Measured {
    transactions: u64,
    /// Processor time in nanoseconds, by side.
    cpu_ns: [u64; 2],
    /// The 99th percentile of how late requests started, and of response times, in microseconds.
    late_us: u64,
    response_us: [u64; 2],
    failed: u64,
}

fn main() {
    limits::raise_descriptor_limit();
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<f64>().expect("a number"));
    let seconds = numbers.next().unwrap_or(2.0);
    let rounds = numbers.next().unwrap_or(5.0) as usize;
    let closed = |name, body, per_connection| Case {
        name,
        robots: 64,
        load: Load::Closed { think: None },
        body,
        per_connection,
    };
    let cases = [
        closed("persistent 1 KB", 1024.0, 1e9),
        closed("persistent 13 KB", 13.0 * 1024.0, 1e9),
        closed("one-request 13 KB", 13.0 * 1024.0, 1.0),
        Case {
            name: "4,000/s, 10,000 robots",
            robots: 10_000,
            load: Load::Open { rate: 0.4 },
            body: 1024.0,
            per_connection: 1.0,
        },
    ];
    println!(
        "case                     engine   tps  client us  server us  median us  99% us  late 99% us  errors"
    );
    for case in &cases {
        for _ in 0..rounds {
            for engine in Engine::available() {
                let Measured { transactions, cpu_ns, late_us, response_us, failed } =
                    measure(case, engine, seconds);
                let each = |side: usize| cpu_ns[side] as f64 / 1000.0 / transactions.max(1) as f64;
                println!(
                    "{:<24} {:<6} {:>5.0} {:>10.2} {:>10.2} {:>10} {:>7} {:>12} {failed:>7}",
                    case.name,
                    engine.name(),
                    transactions as f64 / seconds,
                    each(Side::Client as usize),
                    each(Side::Server as usize),
                    response_us[0],
                    response_us[1],
                    late_us,
                );
            }
        }
    }
}

/// Runs the case for so many seconds after a second of warm-up.
fn measure(case: &Case, engine: Engine, seconds: f64) -> Measured {
    let reserved = ReservedAddress::new(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
    let mut measured =
        Measured { transactions: 0, cpu_ns: [0; 2], late_us: 0, response_us: [0; 2], failed: 0 };
    let mut late = polygraph_stats::Block::new();
    let outcome = run(setup(case, engine, seconds, reserved), |header, record| {
        if let Record::Interval(interval) = record
            && interval.phase == 1
        {
            measured.cpu_ns[header.side as usize] += interval.cpu_ns;
            if header.side == Side::Client {
                measured.transactions += interval.block.ok_count();
                measured.failed += interval.block.failed_count();
                late.concatenate(&interval.block);
            }
        }
    });
    outcome.expect("a run");
    measured.late_us = late.late_us.quantile(0.99).unwrap_or(0);
    let response = late.rptm_us();
    measured.response_us = [0.5, 0.99].map(|share| response.quantile(share).unwrap_or(0));
    measured
}

fn setup(case: &Case, engine: Engine, seconds: f64, reserved: ReservedAddress) -> RunSetup {
    let origin = reserved.address();
    let catalog = Catalog::classic(Seed(1), Distr::Const(case.body));
    let kinds: Vec<ContentKind> = (0..catalog.contents.len()).map(ContentKind::of_index).collect();
    let profile = Profile {
        requests_per_connection: Distr::Const(case.per_connection),
        lifetime: Some(Distr::Const(20.0)),
        ..Profile::plain("robots", case.robots, case.load.clone(), Behavior::default())
    };
    let farm = ServerProfile {
        requests_per_connection: Distr::Const(case.per_connection),
        ..ServerProfile::plain("servers", kinds)
    };
    let phase = |name: &str, seconds| Phase {
        name: name.into(),
        log_stats: true,
        goal: Goal { duration: Some(seconds), ..Goal::default() },
        ..Phase::default()
    };
    let schedule = Schedule { phases: vec![phase("warm", 1.0), phase("meas", seconds)], working_set: None };
    let mut ids = vec![IdSource::reproducible(1, 0)];
    let group = ids[0].fresh();
    let field = Field {
        servers: vec![polygraph_robot::Server {
            authority: origin.to_string(),
            addresses: vec![origin],
            behind: Vec::new(),
            bad_certificate: None,
            direct: 0,
            tls: false,
        }],
        direct: vec![Selector::only(ContentKind::FIRST)],
        catalog: catalog.clone(),
        marks_cachable: Some(1.0),
        rules: Rules::default(),
        page_delay: 0.0,
        settle: 0.0,
        verify: Verify::Bytes,
        share_worlds: false,
        redirects: false,
        freshness: ToldFreshness::Classic,
        substitutes: Vec::new(),
    };
    let config = OriginConfig {
        catalog: Arc::new(catalog),
        profiles: vec![farm],
        seed: Seed(1),
        group: IdSource::reproducible(1, 99).fresh(),
        classic: true,
        ignore_urls: false,
        accept_foreign_msgs: false,
        share_worlds: false,
        all_names: Vec::new(),
    };
    let settings = polygraph_robot::Settings {
        first_robot: 0,
        robots: case.robots,
        profiles: vec![Arc::new(profile)],
        share: None,
        field: Arc::new(field),
        launch_window: 0.0,
        open_limit: 9000,
        limited_by_host: false,
        seed: Seed(1),
        group,
        tolerance: Default::default(),
        share_phases: false,
        others_fill: false,
    };
    let server = ServerSpec { profile: 0, number: 0, address: origin.to_string(), names: Vec::new() };
    RunSetup {
        client: Some(ClientSetup {
            settings,
            ports: None,
            layout: Layout::threads(1),
            ids,
            earlier: None,
            stores: false,
            header: header(Side::Client, &schedule),
            log: None,
            sample_log: None,
            dump: DumpPlan::default(),
        }),
        server: Some(ServerSetup {
            config: Arc::new(config),
            servers: vec![(server, reserved)],
            layout: Layout::threads(1),
            header: header(Side::Server, &schedule),
            log: None,
            sample_log: None,
            dump: DumpPlan::default(),
        }),
        schedule,
        start: StartRule::Now,
        interval: SECOND,
        quantum: Nanos::new(100_000),
        engine,
        idle_timeout: None,
        fail_timeout: None,
        sync_timeout: None,
    }
}

fn header(side: Side, schedule: &Schedule) -> Header {
    Header {
        side,
        version: "example".into(),
        label: String::new(),
        start_unix_ns: 0,
        pid: std::process::id(),
        environment: Vec::new(),
        command: Vec::new(),
        settings: Vec::new(),
        workload: "engines".into(),
        loops: 1,
        phases: schedule.plans(),
        offered_rate: None,
        offered_dhr: None,
        limits: Default::default(),
        contents: Vec::new(),
        workload_text: String::new(),
    }
}
