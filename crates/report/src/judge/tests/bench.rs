//! Runs whose limit was the bench: its processes, its hosts, or the test itself.

use super::*;

#[test]
fn a_stuck_bench() {
    let run = Run { lost: Some((20.0, 26.0)), ..Run::default() };
    check_logs(&[run.client(), Run::default().server()], VerdictOutcome::Invalid, &["gaps"]);
    let blip = Run { lost: Some((20.0, 21.0)), ..Run::default() };
    check_logs(&[blip.client(), Run::default().server()], VerdictOutcome::Valid, &[]);
    let slow = Run { capacity: 80.0, lost: Some((20.0, 22.0)), ..Run::default() };
    check_logs(
        &[slow.client(), Run::default().server()],
        VerdictOutcome::Invalid,
        &["gaps", "(following)", "(growing)"],
    );
}

#[test]
fn a_process_that_stands_still() {
    let run = |stalls| Run { stalls, ..Run::default() };
    let party = |run: &Run| fold(&run.logs()).unwrap().verdict.limit;
    // A second and a half of the 30 s of the primary phase, or 0.7 s in a row of theirs; before and after it nobody cares.
    for (from, to, outcome, rules) in [
        (20.0, 21.5, VerdictOutcome::Invalid, &["stalls"][..]),
        (20.0, 20.7, VerdictOutcome::Invalid, &["stalls"]),
        (20.0, 20.4, VerdictOutcome::Valid, &["(stalls)"]),
        (20.0, 20.2, VerdictOutcome::Valid, &[]),
        (1.0, 3.0, VerdictOutcome::Valid, &[]),
        (1.0, 4.2, VerdictOutcome::Valid, &[]),
        (33.6, 35.9, VerdictOutcome::Valid, &["(stalls)"]),
        (35.0, 40.0, VerdictOutcome::Valid, &[]),
    ] {
        for side in 0..2 {
            let mut stalls = [None; 2];
            stalls[side] = Some((from, to));
            check(&run(stalls), outcome, rules);
            let whom = [LimitingParty::Client, LimitingParty::Server][side];
            assert_eq!(
                party(&run(stalls)),
                (outcome == VerdictOutcome::Invalid).then_some(whom),
                "{from} s to {to} s"
            );
        }
    }
}

#[test]
fn what_was_slow_while_the_bench_stood_still_is_no_evidence() {
    let late = Run { error: Some((20, ErrorKind::Timeout)), ..Run::default() };
    check(&late, VerdictOutcome::Failed, &["errors"]);
    let stopped = Run { stalls: [None, Some((10.0, 15.0))], ..late.clone() };
    check(&stopped, VerdictOutcome::Invalid, &["stalls", "(errors)"]);
    // A gateway says that its server does not answer. Other errors are its own.
    let gateway = Run { error: Some((20, ErrorKind::BadStatus)), status: 504, ..stopped };
    check(&gateway, VerdictOutcome::Invalid, &["stalls", "(errors)"]);
    let client_stopped = Run { stalls: [Some((10.0, 15.0)), None], ..gateway.clone() };
    check(&client_stopped, VerdictOutcome::Failed, &["stalls", "errors"]);
    let wrong = Run { status: 500, ..gateway };
    check(&wrong, VerdictOutcome::Failed, &["stalls", "errors"]);
    // A phase that is not judged is one in which a run is given up.
    let given_up = Run {
        end: Some(EndReason::ErrorGoal { phase: "warm".into() }),
        stop_at: Some(3.0),
        stalls: [None, Some((1.0, 3.0))],
        ..late
    };
    let verdict = fold(&given_up.logs()).unwrap().verdict;
    assert_eq!(
        (verdict.outcome, verdict.limit),
        (VerdictOutcome::Invalid, Some(LimitingParty::Server)),
        "{verdict:#?}"
    );
}

#[test]
fn quotas_of_processor_time() {
    let run = |throttled| Run { throttled, ..Run::default() };
    for (shares, outcome, rules) in [
        ([0.0005, 0.0], VerdictOutcome::Valid, &[][..]),
        ([0.005, 0.0], VerdictOutcome::Valid, &["(throttled)"]),
        ([0.02, 0.0], VerdictOutcome::Invalid, &["throttled"]),
        ([0.005, 0.02], VerdictOutcome::Invalid, &["throttled", "(throttled)"]),
        ([0.02, 0.02], VerdictOutcome::Invalid, &["throttled", "throttled"]),
    ] {
        check(&run(shares), outcome, rules);
    }
    // What was slow meanwhile is no evidence.
    let slow = Run { error: Some((20, ErrorKind::Timeout)), ..run([0.0, 0.02]) };
    check(&slow, VerdictOutcome::Invalid, &["throttled", "(errors)"]);
}

#[test]
fn a_quota_is_that_of_a_side_or_of_the_host() {
    let at = |mut log: crate::Log, group: &str| {
        let facts = [("host", "lab1"), ("processor quota", "0.50 processors"), ("control group", group)];
        log.log.header.environment.extend(facts.map(|(name, value)| (name.to_owned(), value.to_owned())));
        log
    };
    let of = |throttled, groups: [&str; 2]| {
        let run = Run { throttled, ..Run::default() };
        verdict(&[at(run.client(), groups[0]), at(run.server(), groups[1])]).0
    };
    assert_eq!(of([0.02, 0.0], ["/a", "/b"]), "INVALID (client)");
    assert_eq!(of([0.0, 0.02], ["/a", "/b"]), "INVALID (server)");
    assert_eq!(of([0.02, 0.02], ["/a", "/a"]), "INVALID (host)");
}

#[test]
fn servers_that_answer_late() {
    let late_server = Run { think_late_us: 400_000, ..Run::default() }.server();
    let logs = [Run::default().client(), late_server];
    check_logs(&logs, VerdictOutcome::Invalid, &["late"]);
    assert_eq!(fold(&logs).unwrap().verdict.limit, Some(LimitingParty::Server));
    // Then time-outs are no evidence against the device.
    let [_, late_server] = logs;
    let run = Run { error: Some((10, ErrorKind::Timeout)), ..Run::default() };
    check_logs(&[run.client(), late_server], VerdictOutcome::Invalid, &["(errors)", "late"]);
    // But they are if transactions are open for 4 s on average, of which so short a delay is no part that matters.
    let slightly = Run { think_late_us: 200_000, ..Run::default() }.server();
    let slow = Run { means: [4.0; 2], ..run };
    check_logs(&[slow.client(), slightly], VerdictOutcome::Failed, &["errors", "late"]);
    // Nor is a device that says that servers do not answer, but not if it says so more often than they were late.
    let run = Run { error: Some((10, ErrorKind::BadStatus)), status: 503, ..Run::default() };
    let excused = ["(errors)", "late"];
    for (think_late_us, late_every, rules) in
        [(400_000, 1, &excused), (400_000, 30, &["errors", "late"]), (600_000, 30, &excused)]
    {
        let server = Run { think_late_us, late_every, ..Run::default() }.server();
        let outcome = if rules == &excused { VerdictOutcome::Invalid } else { VerdictOutcome::Failed };
        check_logs(&[run.client(), server], outcome, rules);
    }
}

/// Caches may use old copies while they do not reach a server, and only these.
#[test]
fn old_copies_of_servers_that_stand_still_are_no_evidence() {
    use ErrorKind::{Expired, FalseNotModified, Stale, UncachableHit};
    let run = |kind, error_from, end_s| Run {
        error: Some((20, kind)),
        error_from,
        stalls: [None, Some((22.0, end_s))],
        ..Run::default()
    };
    for kind in [Stale, Expired, FalseNotModified] {
        let (excused, failed) = (["stalls", "(correctness)"], ["stalls", "correctness"]);
        check(&run(kind, 22.0, 25.0), VerdictOutcome::Invalid, &excused);
        check(&run(kind, 0.0, 25.0), VerdictOutcome::Failed, &failed);
        // The device could go on as before.
        check(&run(kind, 0.0, 22.2), VerdictOutcome::Failed, &["correctness"]);
        // A short stall spoils no figures, but a device may give up.
        check(&run(kind, 25.0, 22.55), VerdictOutcome::Valid, &["(stalls)", "(correctness)"]);
        // It recovers.
        let later = Run { phases: [4.0, 60.0, 2.0], ..run(kind, 45.0, 25.0) };
        check(&later, VerdictOutcome::Failed, &failed);
    }
    check(&run(UncachableHit, 22.0, 25.0), VerdictOutcome::Failed, &["stalls", "correctness"]);
    // Robots that stand still keep no device from its servers.
    let robots = Run { stalls: [Some((22.0, 25.0)), None], ..run(Stale, 22.0, 25.0) };
    check(&robots, VerdictOutcome::Failed, &["stalls", "correctness"]);
}

#[test]
fn saturated_client_and_saturated_server() {
    check(&Run { busy: 0.93, ..Run::default() }, VerdictOutcome::Invalid, &["saturated", "saturated"]);
    let busy_server = Run { busy: 0.93, ..Run::default() }.server();
    check_logs(&[Run::default().client(), busy_server], VerdictOutcome::Invalid, &["saturated"]);
    check(&Run { busy: 0.89, ..Run::default() }, VerdictOutcome::Valid, &[]);
}

#[test]
fn late_starts() {
    // The mean response time is about 1.4 s, so 70 ms are allowed.
    let late = Run { late_us: 100_000, ..Run::default() };
    check(&late, VerdictOutcome::Invalid, &["late"]);
    let told = |run: &Run| fold(&run.logs()).unwrap().verdict.text();
    assert!(told(&late).contains("\n  - what to do: repeat the run "), "{}", told(&late));
    // Nothing of that helps a test with too few transactions.
    assert!(!told(&Run { rate: 2.0, ..Run::default() }).contains("what to do"));
    check(&Run { late_us: 40_000, ..Run::default() }, VerdictOutcome::Valid, &[]);
}

#[test]
fn clock_step() {
    check(
        &Run { clock_step_ns: -150_000_000, ..Run::default() },
        VerdictOutcome::Invalid,
        &["clock", "clock"],
    );
    check(&Run { clock_step_ns: 50_000_000, ..Run::default() }, VerdictOutcome::Valid, &[]);
}

#[test]
fn few_samples() {
    check(&Run { rate: 10.0, ..Run::default() }, VerdictOutcome::Valid, &["(samples)"]);
    check(&Run { rate: 2.0, ..Run::default() }, VerdictOutcome::Invalid, &["samples"]);
}

/// Transactions that take as long as the servers think, in phases that are hardly longer.
#[test]
fn a_phase_that_is_not_longer_than_its_transactions() {
    let with = |meas_s: f64| Run {
        phases: [20.0, meas_s, 2.0],
        think_s: 2.0,
        rate: 400.0,
        means: [2.0, 2.0],
        ..Run::default()
    };
    check(&with(3.0), VerdictOutcome::Invalid, &["short"]);
    check(&with(6.0), VerdictOutcome::Valid, &["(short)"]);
    check(&with(15.0), VerdictOutcome::Valid, &[]);
    let verdict = fold(&with(3.0).logs()).unwrap().verdict;
    assert_eq!(verdict.limit, Some(LimitingParty::Test));
    // What a device did wrong in so short a phase, it did.
    let wrong = Run { error: Some((10, ErrorKind::BadStatus)), ..with(3.0) };
    assert_eq!(fold(&wrong.logs()).unwrap().verdict.outcome, VerdictOutcome::Failed);
}

#[test]
fn a_bench_that_does_not_offer_the_load() {
    let few = Run { started_share: 0.8, ..Run::default() };
    check(&few, VerdictOutcome::Invalid, &["offered"]);
    // Robots owe 10 of 100 launches per second, or all 20 that are missing, to pages before the phase.
    check(&Run { skipped_rate: 10.0, ..few.clone() }, VerdictOutcome::Invalid, &["offered"]);
    check(&Run { skipped_rate: 20.0, ..few }, VerdictOutcome::Valid, &[]);
}

#[test]
fn out_of_local_resources() {
    let run = Run { error: Some((200, ErrorKind::NoPort)), ..Run::default() };
    check(&run, VerdictOutcome::Invalid, &["resources"]);
}

#[test]
fn an_error_goal_that_the_bench_itself_has_reached() {
    let run = Run {
        error: Some((2, ErrorKind::NoDescriptor)),
        end: Some(EndReason::ErrorGoal { phase: "meas".into() }),
        stop_at: Some(12.0),
        ..Run::default()
    };
    let verdict = fold(&[run.client()]).unwrap().verdict;
    assert_eq!(
        (verdict.outcome, verdict.limit),
        (VerdictOutcome::Invalid, Some(LimitingParty::Host)),
        "{verdict:#?}"
    );
}

#[test]
fn a_saturated_bench_may_be_why_replies_were_cut() {
    let run = Run { error: Some((200, ErrorKind::BodyShort)), ..Run::default() };
    check_logs(&[run.client(), Run::default().server()], VerdictOutcome::Failed, &["correctness"]);
    let busy = Run { busy: 0.95, ..run };
    check_logs(
        &[busy.client(), Run::default().server()],
        VerdictOutcome::Invalid,
        &["saturated", "(correctness)"],
    );
}

#[test]
fn a_saturated_bench_excuses_a_slow_device_but_not_wrong_answers() {
    let slow = Run { busy: 0.95, capacity: 80.0, ..Run::default() };
    check(&slow, VerdictOutcome::Invalid, &["saturated", "saturated", "(following)", "(growing)"]);
    let wrong = Run { busy: 0.95, error: Some((20, ErrorKind::BadStatus)), status: 500, ..Run::default() };
    check(&wrong, VerdictOutcome::Failed, &["saturated", "saturated", "errors"]);
}

#[test]
fn late_or_interrupted_runs_do_not_excuse_the_device() {
    let run = Run { late_us: 400_000, error: Some((10, ErrorKind::Timeout)), ..Run::default() };
    check(&run, VerdictOutcome::Failed, &["errors", "late"]);
}

#[test]
fn errors_of_names_and_networks_are_not_the_devices() {
    for (kind, party) in [
        (ErrorKind::DnsTimeout, "INVALID (name server)"),
        (ErrorKind::DnsNoName, "INVALID (name server)"),
        (ErrorKind::KdcTimeout, "INVALID (KDC)"),
        (ErrorKind::KerberosPassword, "INVALID (KDC)"),
        (ErrorKind::KerberosClock, "INVALID (KDC)"),
        (ErrorKind::Unreachable, "INVALID (network)"),
    ] {
        let run = Run { error: Some((10, kind)), ..Run::default() };
        assert_eq!(verdict(&run.logs()).0, party, "{kind:?}");
        let few = Run { error: Some((2500, kind)), ..Run::default() };
        assert_eq!(fold(&few.logs()).unwrap().verdict.outcome, VerdictOutcome::Valid, "{kind:?}");
    }
    for (kind, party) in
        [(ErrorKind::DnsTimeout, "INVALID (name server)"), (ErrorKind::KdcAllFailed, "INVALID (KDC)")]
    {
        let given_up = Run {
            error: Some((1, kind)),
            end: Some(EndReason::ErrorGoal { phase: "meas".into() }),
            stop_at: Some(12.0),
            ..Run::default()
        };
        assert_eq!(verdict(&given_up.logs()).0, party);
    }
}

#[test]
fn the_limit_of_the_tests_own_connections_is_no_servers_fault() {
    let run = Run { started_share: 0.9, error: Some((10, ErrorKind::TooManyOpen)), ..Run::default() };
    check(&run, VerdictOutcome::Failed, &["errors", "following"]);
    let mut client = run.client();
    client.log.header.settings.push(("device".into(), "none".into()));
    check_logs(&[client, run.server()], VerdictOutcome::Invalid, &["errors", "offered"]);
}

/// Robots without limits, which make half of the requests of [`Run::default`].
const KIND: KindLimits =
    KindLimits { robots: 50, rate: Some(50.0), lifetime_s: None, open_connections: None };

fn of_kinds(kinds: impl IntoIterator<Item = KindLimits>) -> RobotLimits {
    RobotLimits { open_connections: None, kinds: kinds.into_iter().collect() }
}

/// No device can shorten think times.
#[test]
fn limits_that_think_times_exceed_are_those_of_the_test() {
    let lifetime = |lifetime_s: f64| Run {
        error: Some((10, ErrorKind::Timeout)),
        think_s: 2.0,
        limits: of_kinds([KindLimits { lifetime_s: Some(lifetime_s), ..KIND }]),
        ..Run::default()
    };
    assert_eq!(verdict(&lifetime(1.0).logs()).0, "INVALID (test)");
    assert_eq!(verdict(&lifetime(3.0).logs()).0, "FAILED (device)");
    let broken = Run { second_error: Some((15, ErrorKind::BadStatus)), ..lifetime(1.0) };
    assert_eq!(verdict(&broken.logs()).0, "FAILED (device)");
    // Servers have 45 % of 100 requests per second.
    let connections = |open_connections: u64| Run {
        error: Some((10, ErrorKind::TooManyOpen)),
        think_s: 2.0,
        limits: of_kinds([KindLimits { open_connections: Some(open_connections), ..KIND }]),
        ..Run::default()
    };
    assert_eq!(verdict(&connections(80).logs()).0, "INVALID (test)");
    assert_eq!(verdict(&connections(200).logs()).0, "FAILED (device)");
}

/// Robots of another kind may have no limit: those of the first one still cannot do what is planned for them.
#[test]
fn limits_of_some_robots_are_limits() {
    let lifetime = |lifetime_s: f64| Run {
        error: Some((10, ErrorKind::Timeout)),
        think_s: 2.0,
        limits: of_kinds([KindLimits { lifetime_s: Some(lifetime_s), ..KIND }, KIND]),
        ..Run::default()
    };
    assert_eq!(verdict(&lifetime(1.0).logs()).0, "INVALID (test)");
    assert_eq!(verdict(&lifetime(3.0).logs()).0, "FAILED (device)");
    // Half of 45 requests per second of servers that think for two seconds.
    let connections = |open_connections: u64| Run {
        error: Some((10, ErrorKind::TooManyOpen)),
        think_s: 2.0,
        limits: of_kinds([KindLimits { open_connections: Some(open_connections), ..KIND }, KIND]),
        ..Run::default()
    };
    assert_eq!(verdict(&connections(40).logs()).0, "INVALID (test)");
    assert_eq!(verdict(&connections(100).logs()).0, "FAILED (device)");
}

#[test]
fn parts_of_a_stall_are_added_once() {
    let mut client = Run::default().client();
    let stall = |begin_ms: u64, end_ms: u64| {
        Record::Stall(Stall { begin_ns: begin_ms * 1_000_000, end_ns: end_ms * 1_000_000, loops: 1 })
    };
    client.log.records.extend([stall(5_000, 5_900), stall(5_400, 6_300), stall(8_000, 8_200)]);
    let facts = fold(&[client]).unwrap();
    let stalls = &facts.client.unwrap().processes[0].stalls;
    let in_ms = stalls.iter().map(|(begin, end)| [begin, end].map(|s| (s * 1000.0).round()));
    assert_eq!(in_ms.collect::<Vec<_>>(), [[5_000.0, 6_300.0], [8_000.0, 8_200.0]]);
}

#[test]
fn dates_of_one_host_are_the_devices_doing() {
    let run = Run { error: Some((10, ErrorKind::ClockSkew)), ..Run::default() };
    let at = |log: crate::Log, host: &str| {
        let mut log = log;
        log.log.header.environment.push(("host".into(), host.into()));
        log
    };
    let of = |one, other| verdict(&[at(run.client(), one), at(run.server(), other)]).0;
    assert_eq!(of("a", "a"), "FAILED (device)");
    assert_eq!(of("a", "b"), "INVALID (host)");
}

/// A device whose origins turn it away answers with its own errors.
#[test]
fn servers_without_descriptors_are_the_limit_not_the_device() {
    let run = Run { error: Some((3, ErrorKind::BadStatus)), ..Run::default() };
    check(&run, VerdictOutcome::Failed, &["errors"]);
    let refusing = Run { server_error: Some((3, ErrorKind::NoDescriptor)), ..run.clone() };
    check(&refusing, VerdictOutcome::Invalid, &["(errors)", "refused"]);
    assert_eq!(fold(&refusing.logs()).unwrap().verdict.limit, Some(LimitingParty::Host));
    let slow = Run { error: Some((3, ErrorKind::Timeout)), ..refusing.clone() };
    check(&slow, VerdictOutcome::Invalid, &["(errors)", "refused"]);
    let before = Run { server_error_until: 3.0, ..refusing.clone() };
    check(&before, VerdictOutcome::Failed, &["errors"]);
    // Without a device, the errors are not the server program's fault either: its host lacks descriptors.
    let mut client = refusing.client();
    client.log.header.settings.push(("device".into(), "none".into()));
    let findings = fold(&[client, refusing.server()]).unwrap().verdict.findings;
    assert!(
        findings.len() >= 2 && findings.iter().all(|finding| finding.party != Some(LimitingParty::Server))
    );
    let wrong = Run { second_error: Some((50, ErrorKind::WrongObject)), ..refusing };
    check(&wrong, VerdictOutcome::Failed, &["(errors)", "refused", "content"]);
}

/// A device that waits for its servers looks slow.
#[test]
fn servers_with_full_listen_queues_are_the_limit_not_the_device() {
    let run = Run { error: Some((3, ErrorKind::Timeout)), ..Run::default() };
    check(&run, VerdictOutcome::Failed, &["errors"]);
    let full = Run { server_error: Some((1, ErrorKind::QueueFull)), ..run };
    check(&full, VerdictOutcome::Invalid, &["(errors)", "listen queue"]);
    assert_eq!(fold(&full.logs()).unwrap().verdict.limit, Some(LimitingParty::Server));
    let rare = Run { rate: 3000.0, server_error: full.server_error, ..Run::default() };
    check(&rare, VerdictOutcome::Valid, &["(listen queue)"]);
    let before = Run { server_error_until: 3.0, ..full };
    check(&before, VerdictOutcome::Failed, &["errors"]);
}
