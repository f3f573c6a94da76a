//! Logs that are incomplete, or do not come from one run.

use polygraph_stats::record::environment::HOST;

use super::*;

#[test]
fn one_side_only() {
    check_logs(&[Run::default().client()], VerdictOutcome::Valid, &["(one side)"]);
    check_logs(&[Run::default().server()], VerdictOutcome::Invalid, &["one side"]);
}

#[test]
fn interrupted_client() {
    let run = Run { end: Some(EndReason::Interrupted), stop_at: Some(20.0), ..Run::default() };
    check(&run, VerdictOutcome::Invalid, &["interrupted", "phase"]);
    let run =
        Run { end: Some(EndReason::fatal(Side::Client, "no memory")), stop_at: Some(35.0), ..Run::default() };
    check_logs(&[run.client()], VerdictOutcome::Invalid, &["interrupted", "(one side)"]);
}

/// Processes of one side see that the other cannot continue, and their logs may be the only ones.
#[test]
fn whoever_could_not_continue_is_named() {
    for (log, broken, expected) in [
        (Side::Client, Some(Side::Client), LimitingParty::Client),
        (Side::Client, Some(Side::Server), LimitingParty::Server),
        (Side::Server, Some(Side::Client), LimitingParty::Client),
        (Side::Server, Some(Side::Server), LimitingParty::Server),
        (Side::Client, None, LimitingParty::Test),
        (Side::Server, None, LimitingParty::Test),
    ] {
        let end = Some(EndReason::Fatal { side: broken, why: "lost".into() });
        let [client, server] = [Side::Client, Side::Server].map(|side| match side == log {
            true => Run { end: end.clone(), ..Run::default() },
            false => Run::default(),
        });
        let verdict = fold(&[client.client(), server.server()]).unwrap().verdict;
        assert_eq!(verdict.outcome, VerdictOutcome::Invalid, "{verdict:#?}");
        let parties: Vec<_> = verdict.findings.iter().map(|finding| (finding.rule, finding.party)).collect();
        assert_eq!(parties, [("interrupted", Some(expected))], "the log of the {}", log.name());
    }
}

#[test]
fn killed_client() {
    let run = Run { end: None, stop_at: Some(20.0), ..Run::default() };
    check_logs(&[run.client(), Run::default().server()], VerdictOutcome::Invalid, &["interrupted", "phase"]);
}

#[test]
fn log_cut_inside_a_record() {
    let mut bytes = Run::default().bytes(Side::Client);
    bytes.truncate(bytes.len() * 2 / 3);
    let logs = [read("client.log", &bytes), Run::default().server()];
    check_logs(&logs, VerdictOutcome::Invalid, &["interrupted", "interrupted", "phase"]);
}

#[test]
fn a_server_must_live_as_long_as_the_primary_phase() {
    let killed = |at| Run { end: None, stop_at: Some(at), ..Run::default() }.server();
    let failing = Run { error: Some((5, ErrorKind::BadStatus)), error_from: 20.0, ..Run::default() };
    assert_eq!(verdict(&[failing.client(), killed(20.0)]).0, "INVALID (server)");
    // Other servers did its work.
    check_logs(&[Run::default().client(), killed(20.0)], VerdictOutcome::Valid, &["(interrupted)"]);
    check_logs(&[Run::default().client(), killed(35.0)], VerdictOutcome::Valid, &["(interrupted)"]);
}

#[test]
fn primary_phase_never_reached() {
    let run = Run { end: Some(EndReason::Interrupted), stop_at: Some(3.0), ..Run::default() };
    check(&run, VerdictOutcome::Invalid, &["interrupted", "phase", "(samples)"]);
}

/// A phase whose end somebody missed has lasted for too long, not too short.
#[test]
fn primary_phase_without_an_end() {
    let mut logs = Run { end: Some(EndReason::Interrupted), ..Run::default() }.logs();
    for log in &mut logs {
        for phase in log.log.header.phases.iter_mut().filter(|phase| phase.primary) {
            phase.duration_s = phase.duration_s.map(|seconds| seconds / 2.0);
        }
        log.log.records.retain(|record| !matches!(record, Record::PhaseEnd { .. }));
    }
    let verdict = fold(&logs).unwrap().verdict;
    let of_phase = verdict.findings.iter().find(|finding| finding.rule == "phase").unwrap();
    assert!(
        of_phase.text.contains("did not end when it should have: 30.0 s measured instead of 15.0 s"),
        "{of_phase:?}"
    );
}

#[test]
fn logs_of_different_runs() {
    let logs = |change: &dyn Fn(&mut polygraph_stats::Header)| {
        let mut server = Run::default().server();
        change(&mut server.log.header);
        [Run::default().client(), server]
    };
    check_logs(&logs(&|header| header.version = "0.2.0".into()), VerdictOutcome::Valid, &["(mixed)"]);
    check_logs(&logs(&|header| header.workload = "PolyMix-4".into()), VerdictOutcome::Valid, &["(mixed)"]);
    check_logs(
        &logs(&|header| header.workload_text = "use(R, S);".into()),
        VerdictOutcome::Valid,
        &["(mixed)"],
    );
    check_logs(&logs(&|header| header.workload = "command line".into()), VerdictOutcome::Valid, &[]);
    let later = |ns| move |header: &mut polygraph_stats::Header| header.start_unix_ns -= ns;
    check_logs(&logs(&later(600_000_000_000)), VerdictOutcome::Valid, &["(mixed)"]);
}

#[test]
fn what_was_said_after_the_origin_was_gone_is_no_evidence() {
    // Errors from 20 s on; the primary phase ends at 34 s.
    let run = Run { error: Some((5, ErrorKind::BadStatus)), error_from: 20.0, ..Run::default() };
    let died = |at| Run { end: None, stop_at: Some(at), ..Run::default() }.server();
    let judged = |at| verdict(&[run.client(), died(at)]);
    assert_eq!(judged(20.5).0, "INVALID (server)");
    // It lived for long enough to be no excuse.
    let (word, rule, meaning) = judged(30.0);
    assert_eq!(
        (&*word, rule, &*meaning),
        ("FAILED (device)", "errors", "the device answered with errors"),
        "3 % of what was counted until then failed"
    );
    assert_eq!(verdict(&[run.client(), Run::default().server()]).0, "FAILED (device)");
    // What came before is evidence, and wrong content always is.
    let early = Run { error: Some((5, ErrorKind::BadStatus)), ..Run::default() };
    assert_eq!(verdict(&[early.client(), died(20.5)]).0, "FAILED (device)");
    let wrong = Run { error: Some((300, ErrorKind::WrongObject)), error_from: 25.0, ..Run::default() };
    let (word, rule, _) = verdict(&[wrong.client(), died(20.5)]);
    assert_eq!((&*word, rule), ("FAILED (device)", "content"));
    // The log of a server that is killed in the last second looks like that of one that lives.
    let late = Run { error: Some((5, ErrorKind::BadStatus)), error_from: 32.0, ..Run::default() };
    let at_the_end = Run { error: Some((1, ErrorKind::BadStatus)), ..late };
    assert_eq!(verdict(&[at_the_end.client(), died(33.0)]).1, "origin");
}

/// A server has no traffic if its device is gone.
#[test]
fn a_server_that_ends_because_its_device_failed_is_no_excuse() {
    let run = |error_from| Run { error: Some((5, ErrorKind::Timeout)), error_from, ..Run::default() };
    let idle = || Run { end: Some(EndReason::Idle), stop_at: Some(20.0), ..Run::default() }.server();
    assert_eq!(verdict(&[run(14.0).client(), idle()]).0, "FAILED (device)");
    assert_eq!(verdict(&[run(20.5).client(), idle()]).0, "INVALID (server)");
}

#[test]
fn a_server_that_was_stopped_too_early_is_the_limit() {
    let stopped =
        || Run { end: Some(EndReason::Interrupted), stop_at: Some(20.0), ..Run::default() }.server();
    let failing = Run { error: Some((5, ErrorKind::BadStatus)), error_from: 20.0, ..Run::default() };
    let (word, rule, _) = verdict(&[failing.client(), stopped()]);
    assert_eq!((&*word, rule), ("INVALID (server)", "interrupted"));
    // Nobody asked it any more, or the clocks of the hosts differ.
    check_logs(&[Run::default().client(), stopped()], VerdictOutcome::Valid, &["(interrupted)"]);
    let idle = Run { end: Some(EndReason::Idle), stop_at: Some(20.0), ..Run::default() }.server();
    check_logs(&[Run::default().client(), idle], VerdictOutcome::Valid, &["(interrupted)"]);
}

#[test]
fn servers_at_another_port_than_robots_were_told_are_no_fault_of_the_device() {
    let logs = |asked: &str| {
        let mut client = Run { error: Some((1, ErrorKind::BadStatus)), ..Run::default() }.client();
        client.log.header.settings.push(("origins".into(), asked.into()));
        let mut server = Run { rate: 1e-9, ..Run::default() }.server();
        server.log.header.settings.push(("addresses".into(), "0.0.0.0:9001, 0.0.0.0:9002".into()));
        [client, server]
    };
    let (word, rule, _) = verdict(&logs("10.0.0.1:9000"));
    assert_eq!((&*word, rule), ("INVALID (test)", "elsewhere"));
    for asked in ["10.0.0.1:9002", "origin.bench.tst"] {
        assert_eq!(verdict(&logs(asked)).0, "FAILED (device)", "{asked}");
    }
    // One of several clients has the right port.
    let ([wrong, server], [right, _]) = (logs("10.0.0.1:9000"), logs("10.0.0.1:9002"));
    assert_eq!(verdict(&[wrong, right, server]).0, "FAILED (device)");
    // It has success, so the other one asked elsewhere.
    let ([wrong, _], mut right) = (logs("10.0.0.1:9000"), Run::default().client());
    right.log.header.settings.push(("origins".into(), "10.0.0.1:9002".into()));
    let mut server = Run::default().server();
    server.log.header.settings.push(("addresses".into(), "0.0.0.0:9001, 0.0.0.0:9002".into()));
    let (word, rule, _) = verdict(&[wrong, right, server]);
    assert_eq!((&*word, rule), ("INVALID (test)", "elsewhere"));
}

/// Who knows how many servers there are, misses the logs of some.
#[test]
fn servers_without_logs_may_be_why_a_device_has_no_replies() {
    let logs = |planned: &str, error: Option<(usize, ErrorKind)>| {
        let mut client = Run { error, ..Run::default() }.client();
        let mut server = Run::default().server();
        client
            .log
            .header
            .settings
            .extend([("proxy".into(), "none".into()), ("servers".into(), planned.into())]);
        server.log.header.settings.push(("servers".into(), "2".into()));
        [client, server]
    };
    let failing = Some((3, ErrorKind::ConnectFailed));
    let (word, rule, _) = verdict(&logs("3", failing));
    assert_eq!((&*word, rule), ("INVALID (test)", "one side"));
    assert_eq!(verdict(&logs("2", failing)).0, "FAILED (device)");
    check_logs(&logs("3", None), VerdictOutcome::Valid, &["(one side)"]);
}

/// Nobody can tell what a device did to requests of which half did not pass it.
#[test]
fn clients_with_and_without_a_proxy_do_not_belong_together() {
    let client = |proxy: &str| {
        let mut client = Run::default().client();
        client.log.header.settings.push(("proxy".into(), proxy.into()));
        client
    };
    let of = |[first, second]: [&str; 2]| {
        let server = || Run::default().server();
        verdict(&[client(first), client(second), server(), server()]).0
    };
    assert_eq!(of(["10.0.0.1:3128", "none"]), "INVALID (test)");
    assert_eq!(of(["10.0.0.1:3128", "10.0.0.2:3128"]), "VALID");
}

#[test]
fn logs_of_runs_one_after_the_other_are_not_folded() {
    let mut later = Run::default().client();
    later.log.header.start_unix_ns += 100_000_000_000;
    let (word, rule, _) = verdict(&[Run::default().client(), Run::default().server(), later]);
    assert_eq!((&*word, rule), ("INVALID (test)", "mixed"));
}

/// Without the server's log nothing tells a dead server from a device that failed, unless a device refuses the robots.
#[test]
fn a_client_alone_does_not_blame_a_device_for_a_dead_server() {
    let logs = |every: usize, kind: ErrorKind, proxy: &str| {
        let mut client = Run { error: Some((every, kind)), ..Run::default() }.client();
        client.log.header.settings.push(("proxy".into(), proxy.into()));
        [client]
    };
    let unknown = |logs: &[crate::Log]| {
        check_logs(logs, VerdictOutcome::Invalid, &["(errors)", "one side"]);
        assert_eq!(fold(logs).unwrap().verdict.limit, Some(LimitingParty::Test));
    };
    unknown(&logs(1, ErrorKind::ConnectFailed, "none"));
    unknown(&logs(3, ErrorKind::ConnectFailed, "none"));
    unknown(&logs(1, ErrorKind::BadStatus, "127.0.0.1:3128"));
    check_logs(
        &logs(1, ErrorKind::ConnectFailed, "127.0.0.1:3128"),
        VerdictOutcome::Failed,
        &["(one side)", "errors"],
    );
    for (status, blamed) in [(500, true), (502, false), (503, false), (504, false)] {
        let mut client = Run { error: Some((3, ErrorKind::BadStatus)), status, ..Run::default() }.client();
        client.log.header.settings.push(("proxy".into(), "127.0.0.1:3128".into()));
        match blamed {
            true => check_logs(&[client], VerdictOutcome::Failed, &["(one side)", "errors"]),
            // A gateway says that it cannot reach the server.
            false => unknown(&[client]),
        }
    }
    check_logs(
        &logs(3, ErrorKind::WrongObject, "none"),
        VerdictOutcome::Failed,
        &["(errors)", "content", "one side"],
    );
}

#[test]
fn a_client_that_asks_the_server_itself_has_no_device() {
    let device = |origin: &str, listening: &str, other_host: bool| {
        let (mut client, mut server) = (Run::default().client(), Run::default().server());
        for (log, name) in [(&mut client, "here"), (&mut server, if other_host { "there" } else { "here" })] {
            log.log.header.environment.retain(|(name, _)| name != HOST);
            log.log.header.environment.push((HOST.to_owned(), name.to_owned()));
        }
        client
            .log
            .header
            .settings
            .extend([("proxy".into(), "none".into()), ("origins".into(), origin.into())]);
        server.log.header.settings.push(("addresses".into(), listening.into()));
        fold(&[client, server]).unwrap().tested.is_device()
    };
    assert!(!device("10.0.0.1:80", "10.0.0.1:80", true));
    assert!(!device("127.0.0.1:80", "here:80", false));
    assert!(device("127.0.0.1:80", "there:80", true));
    assert!(device("127.0.0.1:81", "here:80", false) && device("10.0.0.1:80", "here:80", false));
}

#[test]
fn a_client_alone_that_names_no_device_tests_what_answers_at_its_address() {
    let asked = |run: &Run, settings: &[(&str, &str)]| {
        let mut client = run.client();
        let settings = settings.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        client.log.header.settings.extend(settings);
        fold(&[client]).unwrap().verdict
    };
    let direct = [("proxy", "none"), ("origins", "10.0.0.1:80")];
    let good = Run::default();
    let verdict = asked(&good, &direct);
    assert_eq!(
        verdict.headline(),
        "VALID: the server at 10.0.0.1:80 sustained the load and the bench kept up"
    );
    for kind in [ErrorKind::BadStatus, ErrorKind::Timeout, ErrorKind::WrongObject] {
        let verdict = asked(&Run { error: Some((3, kind)), ..Run::default() }, &direct);
        assert_eq!(verdict.word(), "INVALID (server)", "{kind:?}");
        assert!(verdict.meaning().starts_with("the server at 10.0.0.1:80 "), "{}", verdict.meaning());
        assert!(!verdict.text().contains("device"), "{}", verdict.text());
    }
    let proxied = [("proxy", "10.0.0.2:3128"), ("origins", "10.0.0.1:80")];
    assert_eq!(asked(&good, &proxied).tested, Tested::Device);
    assert_eq!(asked(&good, &[("device", "none")]).tested, Tested::Bench);
}

#[test]
fn sides_that_disagree_about_contents_say_nothing_about_the_device() {
    let run = Run { error: Some((7, ErrorKind::OtherContents)), ..Run::default() };
    check(&run, VerdictOutcome::Invalid, &["contents"]);
    assert_eq!(fold(&run.logs()).unwrap().verdict.limit, Some(LimitingParty::Test));
    let wrong = Run { second_error: Some((50, ErrorKind::Stale)), ..run };
    check(&wrong, VerdictOutcome::Invalid, &["contents", "(correctness)"]);
    let few = Run { error: Some((301, ErrorKind::OtherContents)), ..Run::default() };
    check(&few, VerdictOutcome::Valid, &["(contents)"]);
    // Where both sides have the same contents nobody but the device can have made the mark.
    let mut agreed = few.logs();
    for log in &mut agreed {
        log.log.header.settings.push((super::CONTENTS_MARK.to_owned(), "deb1f63b4389".to_owned()));
    }
    check_logs(&agreed, VerdictOutcome::Failed, &["content"]);
}

/// Logs of two hosts, of which that of the servers has a clock that is so many seconds ahead.
fn on_two_hosts(mut client: crate::Log, mut server: crate::Log, ahead_s: i64) -> [crate::Log; 2] {
    let host = |name: &str| (HOST.to_owned(), name.to_owned());
    client.log.header.environment.push(host("c"));
    server.log.header.environment.push(host("s"));
    for record in &mut client.log.records {
        if let Record::Interval(interval) = record {
            interval.block.clock.note(ahead_s - 1);
            interval.block.clock.note(ahead_s);
        }
    }
    let start = &mut server.log.header.start_unix_ns;
    *start = start.saturating_add_signed(ahead_s * 1_000_000_000);
    [client, server]
}

#[test]
fn clocks_of_hosts_may_differ() {
    // Errors from 20 s on; the primary phase ends at 34 s.
    let run = Run { error: Some((5, ErrorKind::BadStatus)), error_from: 20.0, ..Run::default() };
    let died = |at| Run { end: None, stop_at: Some(at), ..Run::default() }.server();
    let stalled = Run { stalls: [None, Some((20.0, 22.0))], ..Run::default() };
    let slow = Run { error: Some((5, ErrorKind::Timeout)), ..run.clone() };
    for ahead_s in [-100, -7, 0, 7, 100] {
        let judged = |client, server| verdict(&on_two_hosts(client, server, ahead_s));
        assert_eq!(judged(run.client(), died(20.5)).0, "INVALID (server)", "{ahead_s} s ahead");
        assert_eq!(judged(run.client(), died(30.0)).0, "FAILED (device)", "{ahead_s} s ahead");
        assert_eq!(judged(run.client(), Run::default().server()).0, "FAILED (device)", "{ahead_s} s ahead");
        let (word, rule, _) = judged(slow.client(), stalled.server());
        assert_eq!((&*word, rule), ("INVALID (server)", "stalls"), "{ahead_s} s ahead");
    }
    let healthy = on_two_hosts(Run::default().client(), Run::default().server(), 7);
    check_logs(&healthy, VerdictOutcome::Valid, &["(clock)"]);
    // A device that changes Date does not change the clock of its host.
    let mut one_host = on_two_hosts(Run::default().client(), Run::default().server(), 7);
    one_host.iter_mut().for_each(|log| log.log.header.environment.retain(|(name, _)| name != HOST));
    one_host.iter_mut().for_each(|log| log.log.header.environment.push((HOST.to_owned(), "h".to_owned())));
    check_logs(&one_host, VerdictOutcome::Valid, &[]);
}

/// What a device answers by itself does not depend on servers that it never asks, whatever their clock says of their end.
#[test]
fn servers_that_nobody_asked_are_no_excuse() {
    let run = |kind| Run { error: Some((1, kind)), ..Run::default() };
    let unasked = || {
        let mut server = Run { end: Some(EndReason::Interrupted), ..Run::default() }.server();
        server.log.records.retain(|record| matches!(record, Record::End { .. }));
        server
    };
    assert_eq!(verdict(&[run(ErrorKind::BadHead).client(), unasked()]).0, "FAILED (device)");
    // In the logs of these tests, bad statuses are 503: a gateway without servers says so, too.
    for kind in [ErrorKind::Timeout, ErrorKind::BadStatus] {
        assert_eq!(verdict(&[run(kind).client(), unasked()]).0, "INVALID (server)", "{kind:?}");
    }
}

#[test]
fn clients_measure_for_the_same_time() {
    let shorter = Run { phases: [4.0, 20.0, 2.0], seed: 2, ..Run::default() };
    let logs = [Run::default().client(), shorter.client(), Run::default().server()];
    let (word, rule, _) = verdict(&logs);
    assert_eq!((&*word, rule), ("INVALID (test)", "mixed"));
}

/// The log of a process that was killed before it counted anything has a header.
#[test]
fn processes_killed_at_the_start_are_named() {
    let only_header = |mut log: crate::Log| {
        log.log.records.clear();
        log.log.header.start_unix_ns -= 3_600_000_000_000;
        log.log.missing.push("the log was not closed".to_owned());
        log
    };
    let dead = Run { error: Some((1, ErrorKind::BadStatus)), ..Run::default() };
    let logs = [dead.client(), only_header(Run::default().server())];
    assert_eq!(verdict(&logs).0, "INVALID (server)");
    let facts = fold(&logs).unwrap();
    assert_eq!(facts.headline.unwrap().begin_s, 4.0, "the run began with the robots");
    let logs = [only_header(Run::default().client()), Run::default().server()];
    assert_eq!(verdict(&logs).0, "INVALID (client)");
}
