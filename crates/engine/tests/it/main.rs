//! Whole tests on real sockets, robots against origin servers in one process: what the client counts, what
//! the server counts and what the logs say must agree.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use polygraph_engine::{ClientJob, Job, Listeners, Outcome, ServerJob, StartRule, run};
use polygraph_link::SECOND;
use polygraph_plan::{Goal, Phase, PhaseLoad, Schedule};
use polygraph_robot::{Load, Origin};
use polygraph_stats::{Block, Class, EndReason, ErrorKind, Header, ReadLog, Side};
use polygraph_traffic::{Distr, IdSource, Popularity, Properties, Seed};

const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// What differs between tests.
struct Case {
    load: Load,
    robots: usize,
    loops: usize,
    per_connection: f64,
    think: Option<Distr>,
    goal: Goal,
    ports: Option<(u16, u16)>,
    addresses: Vec<IpAddr>,
    open_limit: usize,
    lifetime_s: f64,
    /// Connect to a port where nobody listens.
    nobody_home: bool,
    http_minor: u8,
}

impl Default for Case {
    fn default() -> Case {
        Case {
            load: Load::Closed { think: None },
            robots: 8,
            loops: 1,
            per_connection: 1.0,
            think: None,
            goal: Goal { xactions: Some(2000), ..Goal::default() },
            ports: None,
            addresses: Vec::new(),
            open_limit: 1000,
            lifetime_s: 30.0,
            nobody_home: false,
            http_minor: 1,
        }
    }
}

/// What came out: the outcome, and everything in the two logs as one block each.
struct Result {
    outcome: Outcome,
    client: Block,
    server: Block,
    logs: [ReadLog; 2],
}

fn header(side: Side, schedule: &Schedule) -> Header {
    Header {
        side,
        version: "test".into(),
        label: String::new(),
        start_unix_ns: 0,
        pid: 0,
        environment: vec![],
        command: vec![],
        settings: vec![],
        workload: "test".into(),
        loops: 0,
        phases: schedule.plans(),
        offered_rate: None,
        offered_dhr: None,
        contents: Vec::new(),
    }
}

fn test(case: Case) -> Result {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let schedule = Schedule {
        phases: vec![Phase {
            name: "meas".into(),
            primary: true,
            log_stats: true,
            goal: case.goal,
            load: PhaseLoad::Full,
        }],
    };
    let listeners = Listeners::bind(ANY_PORT, case.loops).unwrap();
    let origin = listeners.address();
    let unused = Listeners::bind(ANY_PORT, 1).unwrap().address();
    let properties = Properties { seed: Seed(1), size: Distr::Exp { mean: 5000.0 } };
    let mut ids: Vec<IdSource> = (0..case.loops as u32).map(|i| IdSource::reproducible(1, i)).collect();
    let group = ids[0].fresh();
    let client = polygraph_robot::Settings {
        first_robot: 0,
        robots: case.robots,
        all_robots: case.robots,
        addresses: case.addresses,
        proxy: None,
        origins: vec![Origin {
            authority: origin.to_string(),
            address: if case.nobody_home { unused } else { origin },
        }],
        http_minor: case.http_minor,
        load: case.load,
        launch_window: 0.0,
        recurrence: 0.5,
        cachable: 0.8,
        popularity: Popularity::Unif,
        settle: 0.0,
        requests_per_connection: Distr::Const(case.per_connection),
        lifetime: Some((case.lifetime_s * 1e9) as u64),
        open_limit: case.open_limit,
        seed: Seed(1),
        properties: properties.clone(),
        verify_size: true,
        group,
    };
    let server = polygraph_origin::Settings {
        index: 0,
        properties,
        think: case.think,
        http_minor: case.http_minor,
        requests_per_connection: Distr::Const(case.per_connection),
        idle_timeout: None,
        seed: Seed(1),
        address: origin.to_string(),
        group: IdSource::reproducible(1, 99).fresh(),
    };
    let job = Job {
        client: Some(ClientJob {
            settings: client,
            ports: case.ports,
            loops: case.loops,
            ids,
            header: header(Side::Client, &schedule),
            log: Some(path("client.log")),
        }),
        server: Some(ServerJob {
            sites: vec![(server, listeners)],
            header: header(Side::Server, &schedule),
            log: Some(path("server.log")),
        }),
        schedule,
        start: StartRule::Now,
        interval: SECOND / 4,
        quantum: 100_000,
        idle_timeout: None,
    };
    let mut seen = [0, 0];
    let outcome = run(job, |header, _| seen[header.side as usize] += 1).unwrap();
    let logs = ["client.log", "server.log"].map(|name| ReadLog::open(&path(name)).unwrap());
    let fold = |log: &ReadLog| {
        log.intervals().fold(Block::new(), |mut all, interval| {
            all.concatenate(&interval.block);
            all
        })
    };
    for (log, seen) in logs.iter().zip(seen) {
        assert!(log.missing.is_empty(), "{:?}", log.missing);
        assert_eq!(log.records.len() + 1, seen, "observers see what is logged");
        let edges: Vec<_> = log.intervals().map(|i| (i.begin_ns, i.end_ns)).collect();
        assert!(edges.windows(2).all(|w| w[0].1 == w[1].0), "intervals follow each other: {edges:?}");
    }
    Result { outcome, client: fold(&logs[0]), server: fold(&logs[1]), logs }
}

/// Both sides saw the same transactions, up to those around the end.
#[track_caller]
fn sides_agree(result: &Result, robots: u64) {
    let (client, server) = (&result.client, &result.server);
    // The two sides close their last interval within a few milliseconds of each other, not at the same instant.
    let apart = client.ok_count().abs_diff(server.ok_count());
    let most = robots + client.ok_count() / 20;
    assert!(apart <= most, "client {}, server {}", client.ok_count(), server.ok_count());
    assert_eq!(client.failed_count() + client.noted_count(), 0);
    assert_eq!(client.class(Class::Hit).size.count(), 0, "nothing is between the sides");
    let share = client.class(Class::Miss).size.count() as f64 / client.ok_count() as f64;
    assert!((share - 0.8).abs() < 0.05, "cachable {share}");
    assert_eq!(client.xacts.left, client.ok_count());
    assert_eq!(client.late_us.count(), client.xacts.entered);
}

#[test]
fn persistent_closed_loop() {
    let result = test(Case { per_connection: 1e9, ..Case::default() });
    assert_eq!(result.outcome.reason, EndReason::Finished);
    assert!(result.outcome.totals.ok >= 2000);
    sides_agree(&result, 8);
    assert_eq!(result.client.conns.entered, 8, "one connection for each robot");
    assert_eq!(result.client.offered_hit_ratio().map(|r| (0.3..0.5).contains(&r)), Some(true));
}

#[test]
fn one_request_connections_on_two_loops_with_explicit_ports() {
    let result = test(Case { loops: 2, ports: Some((20_000, 29_999)), ..Case::default() });
    sides_agree(&result, 8);
    let client = &result.client;
    assert_eq!(client.conn_uses.max(), Some(1));
    assert_eq!(client.conn_uses.count(), client.ok_count());
    assert_eq!(client.conns.entered, client.xacts.entered);
}

#[test]
fn http_1_0_with_and_without_persistent_connections() {
    for per_connection in [1.0, 7.0] {
        let result = test(Case { per_connection, http_minor: 0, ..Case::default() });
        sides_agree(&result, 8);
        assert_eq!(result.client.conn_uses.max(), Some(per_connection as u64));
    }
}

#[test]
fn connections_are_used_as_often_as_drawn() {
    let result = test(Case { per_connection: 5.0, ..Case::default() });
    sides_agree(&result, 8);
    assert_eq!((result.client.conn_uses.min(), result.client.conn_uses.max()), (Some(5), Some(5)));
}

#[test]
fn an_open_loop_is_not_slowed_by_replies() {
    // 400/s for 2 s while every reply takes a second: about 800 starts, five standard deviations.
    let goal = Goal { duration: Some(2.0), ..Goal::default() };
    let result = test(Case {
        load: Load::Open { rate: 50.0 },
        think: Some(Distr::Const(1.0)),
        goal,
        addresses: ["127.0.0.3", "127.0.0.4"].map(|ip| ip.parse().unwrap()).into(),
        ..Case::default()
    });
    let started = result.client.xacts.entered as f64;
    assert!((started - 800.0).abs() < 5.0 * 800f64.sqrt(), "{started} started");
    assert!(result.client.rptm_us().min().unwrap() >= 1_000_000);
    assert_eq!(result.logs[0].end().map(|(reason, _)| reason), Some(&EndReason::Finished));
    assert!(result.logs[0].end().unwrap().1 > 0, "the last ones cannot have been finished");
}

#[test]
fn a_silent_server_means_timeouts_and_the_end() {
    let result = test(Case {
        think: Some(Distr::Const(60.0)),
        lifetime_s: 0.2,
        goal: Goal { duration: Some(20.0), xactions: None, errors: Some(10.0) },
        ..Case::default()
    });
    assert_eq!(result.outcome.reason, EndReason::ErrorGoal { phase: "meas".into() });
    assert!(result.client.errors[ErrorKind::Timeout] >= 10);
    assert_eq!(result.client.ok_count(), 0);
}

#[test]
fn nobody_home() {
    let result = test(Case {
        nobody_home: true,
        goal: Goal { duration: Some(20.0), xactions: None, errors: Some(0.3) },
        ..Case::default()
    });
    assert_eq!(result.outcome.reason, EndReason::ErrorGoal { phase: "meas".into() });
    assert_eq!(result.client.errors[ErrorKind::ConnectFailed], result.client.failed_count());
}

#[test]
fn the_limit_of_open_connections_holds() {
    let result = test(Case {
        load: Load::Open { rate: 100.0 },
        think: Some(Distr::Const(1.0)),
        open_limit: 50,
        goal: Goal { duration: Some(2.0), ..Goal::default() },
        ..Case::default()
    });
    assert_eq!(result.client.conns.peak, 50);
    assert!(result.client.errors[ErrorKind::TooManyOpen] > 500);
}

#[test]
fn a_rate_beyond_the_machine_does_not_stop_the_books() {
    // Two million a second is more than a loop can launch: requests fall behind, but replies are still read
    // and intervals still written.
    let result = test(Case {
        load: Load::Open { rate: 250_000.0 },
        open_limit: 200,
        goal: Goal { duration: Some(1.5), ..Goal::default() },
        ..Case::default()
    });
    assert!(result.logs[0].intervals().count() >= 5, "{}", result.logs[0].intervals().count());
    assert!(result.client.ok_count() > 100, "{}", result.client.ok_count());
    assert!(result.client.late_us.quantile(0.5).unwrap() > 10_000);
}
