//! Whole tests on real sockets, robots against origin servers in one process: what the client counts, what
//! the server counts and what the logs say must agree.

use std::net::IpAddr;

use polygraph_engine::ReservedAddress;
use polygraph_multiplex::Http2Settings;
use polygraph_plan::{Goal, Phase, Schedule, WorkingSetLimit};
use polygraph_robot::{Load, Profile};
use polygraph_stats::{Class, EndReason, ErrorKind, HttpVersion, ReadLog, Record};
use polygraph_traffic::{Behavior, Catalog, Distr, Seed, Selector};

use super::engine;
use crate::scripts::{comments, scripted};
use crate::support::{ANY_PORT, Bench, Run};

/// What differs between tests.
struct Case {
    load: Load,
    robots: usize,
    loops: usize,
    per_connection: f64,
    think: Option<Distr>,
    goal: Goal,
    /// Instead of one phase with that goal.
    schedule: Option<Schedule>,
    ports: Option<(u16, u16)>,
    addresses: Vec<IpAddr>,
    open_limit: usize,
    lifetime_s: f64,
    /// Connect to a port where nobody listens.
    nobody_home: bool,
    /// Connect there instead of to the server.
    elsewhere: Option<std::net::SocketAddr>,
    http_version: HttpVersion,
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
            schedule: None,
            ports: None,
            addresses: Vec::new(),
            open_limit: 1000,
            lifetime_s: 30.0,
            nobody_home: false,
            elsewhere: None,
            http_version: HttpVersion::Http11,
        }
    }
}

/// Runs a test of generation 1.x: a share of 0.8 is cachable, half of the requests are repeats.
fn test(case: Case) -> Run {
    let behavior = Behavior { recurrence: 0.5, ..Behavior::default() };
    let profile = Profile {
        addresses: case.addresses,
        http_version: Selector::only(case.http_version),
        requests_per_connection: Distr::Const(case.per_connection),
        lifetime: Some(Distr::Const(case.lifetime_s)),
        ..Profile::plain("robots", case.robots, case.load, behavior)
    };
    let mut bench = Bench::new(Catalog::classic(Seed(1), Distr::Exp { mean: 5000.0 }), vec![profile]);
    bench.marks_cachable = Some(0.8);
    bench.farm.think = case.think;
    bench.farm.http_minors = Selector::only(case.http_version.minor());
    bench.farm.http2 = case.http_version.is_multiplexed().then(Http2Settings::default);
    bench.farm.requests_per_connection = Distr::Const(case.per_connection);
    bench.loops = case.loops;
    bench.ports = case.ports;
    bench.open_limit = case.open_limit;
    bench.schedule = case.schedule.unwrap_or_else(|| Bench::only(case.goal));
    let nobody = ReservedAddress::new(ANY_PORT).unwrap();
    bench.elsewhere = case.nobody_home.then(|| nobody.address()).or(case.elsewhere);
    bench.run(engine())
}

/// Both sides saw the same transactions, up to those around the end.
#[track_caller]
fn sides_agree(result: &Run, robots: u64) {
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
        let result = test(Case { per_connection, http_version: HttpVersion::Http10, ..Case::default() });
        sides_agree(&result, 8);
        assert_eq!(result.client.conn_uses.max(), Some(per_connection as u64));
    }
}

#[test]
fn http_2_in_a_closed_loop() {
    let result = test(Case { per_connection: 1e9, http_version: HttpVersion::Http2, ..Case::default() });
    sides_agree(&result, 8);
    let (client, server) = (&result.client, &result.server);
    assert_eq!((client.conns.entered, server.conns.entered), (8, 8), "one connection for each robot");
    let version = &client.versions[HttpVersion::Http2 as usize];
    assert_eq!((version.size.count(), client.streams.count()), (client.ok_count(), client.xacts.entered));
    assert_eq!(client.streams.concurrent.max(), Some(1));
    // Only content is the same on both sides for certain.
    assert!(client.streams.received_content > client.ok_count() * 3000, "{:?}", client.streams);
    assert!(client.streams.overhead() > client.ok_count() * 20, "{:?}", client.streams);
    assert!(server.streams.sent > server.streams.sent_content, "{:?}", server.streams);
}

#[test]
fn http_2_streams_share_connections() {
    // Each robot has 5 requests in flight on average.
    let result = test(Case {
        load: Load::Open { rate: 50.0 },
        think: Some(Distr::Const(0.1)),
        per_connection: 1e9,
        goal: Goal { duration: Some(2.0), ..Goal::default() },
        http_version: HttpVersion::Http2,
        ..Case::default()
    });
    let client = &result.client;
    assert_eq!(client.failed_count() + client.noted_count(), 0, "{:?}", client.errors);
    assert!(client.ok_count() > 400, "{}", client.ok_count());
    assert_eq!(client.conns.entered, 8, "one connection for each robot");
    assert!(client.streams.concurrent.max() >= Some(4), "{:?}", client.streams.concurrent.max());
}

#[test]
fn http_2_connections_end_after_their_last_request() {
    let result = test(Case { per_connection: 7.0, http_version: HttpVersion::Http2, ..Case::default() });
    sides_agree(&result, 8);
    assert_eq!(
        (result.client.conn_uses.max(), result.client.streams.per_connection.max()),
        (Some(7), Some(7))
    );
    assert_eq!(result.client.retried, 0);
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
        goal: Goal { duration: Some(20.0), errors: Some(10.0), ..Goal::default() },
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
        goal: Goal { duration: Some(20.0), errors: Some(0.3), ..Goal::default() },
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

/// When the named phase began and ended in a log, in seconds since the start.
fn phase_times(log: &ReadLog, schedule: &Schedule, name: &str) -> (f64, f64) {
    let index = schedule.phases.iter().position(|phase| phase.name == name).unwrap() as u32;
    let seconds = |wanted: bool| {
        let at = log.records.iter().find_map(|record| match *record {
            Record::PhaseBegin { at_ns, phase } if phase == index && wanted => Some(at_ns),
            Record::PhaseEnd { at_ns, phase, complete: true } if phase == index && !wanted => Some(at_ns),
            _ => None,
        });
        at.unwrap() as f64 * 1e-9
    };
    (seconds(true), seconds(false))
}

#[test]
fn a_phase_waits_for_the_working_set_and_another_for_its_fill() {
    let phase = |name: &str, goal| Phase { name: name.into(), log_stats: true, goal, ..Phase::default() };
    let short = Goal { duration: Some(0.2), ..Goal::default() };
    let fill = Goal { fill_size: Some(500_000), ..Goal::default() };
    let schedule = Schedule {
        phases: vec![
            phase("free", short),
            Phase { wait_wss_freeze: true, ..phase("held", short) },
            phase("fill", fill),
        ],
        working_set: Some(WorkingSetLimit::Fill(800)),
    };
    // 400/s, of which 80 % are cachable: 800 fills take 2.5 s.
    let result =
        test(Case { load: Load::Open { rate: 50.0 }, schedule: Some(schedule.clone()), ..Case::default() });
    assert_eq!(result.outcome.reason, EndReason::Finished);
    let [client, _] = &result.logs;
    let comments: Vec<(f64, &str)> = client
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Comment { at_ns, text, level: 5 } => Some((*at_ns as f64 * 1e-9, text.as_str())),
            _ => None,
        })
        .collect();
    let [(started, "working set: fill started"), (frozen, text)] = comments[..] else {
        panic!("{comments:?}")
    };
    let counted: u64 = text.split(' ').find_map(|word| word.parse().ok()).unwrap();
    assert!(text.starts_with("working set frozen: ") && (800..900).contains(&counted), "{text}");
    assert!(started < 0.5 && (1.5..5.0).contains(&frozen), "{started} {frozen}");
    let ends = ["free", "held", "fill"].map(|name| phase_times(client, &schedule, name).1);
    assert!((ends[0] - 0.2).abs() < 1e-3, "{ends:?}");
    assert!((frozen..frozen + 0.4).contains(&ends[1]), "{ends:?}, frozen {frozen}");
    // The goal counts from the start of the phase: some 100 replies of 5 kB, and what came in the notice.
    let intervals = client.intervals().filter(|interval| interval.phase == 2);
    let filled: f64 = intervals.map(|interval| interval.block.class(Class::Miss).size.sum()).sum();
    assert!((500_000.0..1_200_000.0).contains(&filled), "{filled} bytes");
}

#[test]
fn an_address_in_use_is_found_out_and_named() {
    let taken = std::net::TcpListener::bind(ANY_PORT).unwrap().local_addr().unwrap();
    assert_eq!(ReservedAddress::new(taken).unwrap().address(), taken, "nobody is there any more");
    let _taken = std::net::TcpListener::bind(taken).unwrap();
    assert_eq!(ReservedAddress::new(taken).unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    // A loop that comes too late finds out, too, and says where.
    let error = polygraph_engine::listen::listen(taken).unwrap_err();
    assert!(error.to_string().contains(&taken.to_string()), "{error}");
}

#[test]
fn a_script_sees_what_all_loops_do_and_ends_its_phase() {
    let script = "every some do {
        StatSample s = currentSample();
        StatSample p = currentPhase();
        print(s.ok_xact.count, \" \", s.populus.level.last, \" \", s.rep.size.min >= 1Byte && s.rep.rptm.max < 30sec);
        if (p.ok_xact.count >= 1000) then { reachedPositiveGoal(\"enough\"); setPopulusFactorTo(50%); }
    }";
    let result = test(Case {
        loops: 2,
        schedule: Some(scripted("Goal some = { xactions = 500; };", script, 30.0)),
        ..Case::default()
    });
    assert_eq!(result.outcome.reason, EndReason::Finished);
    let [client, _] = &result.logs;
    let lines = comments(client);
    let samples: Vec<Vec<&str>> = lines
        .iter()
        .filter_map(|line| line.strip_prefix("script output: "))
        .map(|line| line.split(' ').collect())
        .collect();
    assert!(samples.len() >= 2, "{lines:?}");
    assert_eq!(samples[0][1], "8");
    for sample in &samples {
        let count: f64 = sample[0].parse().unwrap();
        assert!(count >= 500.0 && sample[2] == "true", "{sample:?}");
    }
    assert!(lines.contains(&"fyi: the script ends the phase: enough"), "{lines:?}");
    assert!(lines.contains(&"fyi: populus factor 100 % -> 50 %"), "{lines:?}");
    assert!((1..8).contains(&result.client.populus.left), "some robots rest at the end");
    assert!(result.client.ok_count() < 200_000, "the goal of thirty seconds was not waited for");
}

/// What a peer does with each connection when the request is there.
fn peer(behave: impl Fn(std::net::TcpStream) + Send + 'static) -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind(ANY_PORT).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = std::io::Read::read(&mut stream, &mut [0; 4096]);
            behave(stream);
        }
    });
    address
}

#[test]
fn peers_that_reset_or_close_are_told_apart() {
    let reset = |stream: std::net::TcpStream| {
        rustix::net::sockopt::set_socket_linger(&stream, Some(std::time::Duration::ZERO)).unwrap();
    };
    let half = |mut stream: std::net::TcpStream| {
        let _ = std::io::Write::write_all(&mut stream, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
    };
    let half_and_reset = move |stream: std::net::TcpStream| {
        half(stream.try_clone().unwrap());
        // The bytes arrive before the reset.
        std::thread::sleep(std::time::Duration::from_millis(20));
        reset(stream);
    };
    for (address, expected) in [
        (peer(reset), ErrorKind::Reset),
        (peer(drop), ErrorKind::NoReply),
        (peer(half), ErrorKind::BodyShort),
        (peer(half_and_reset), ErrorKind::Reset),
    ] {
        let goal = Goal { errors: Some(0.3), duration: Some(20.0), ..Goal::default() };
        let result = test(Case { elsewhere: Some(address), robots: 2, goal, ..Case::default() });
        let errors: Vec<_> = result.client.errors.iter().collect();
        assert!(result.client.errors[expected] > 0, "{expected:?}: {errors:?}");
        assert_eq!(result.client.errors[expected], result.client.failed_count(), "{errors:?}");
    }
}
