use polygraph_stats::stall::Stall;
use polygraph_stats::{EndReason, ErrorKind, PlannedLoad, Record, RobotLimits, Side};

use super::*;
use crate::fold::fold;
use crate::testlog::{Run, read, with_bins};

/// Judges the logs of `run`; wants that outcome, and that the rules say so (warnings in brackets).
fn check(run: &Run, outcome: VerdictOutcome, rules: &[&str]) {
    check_logs(&run.logs(), outcome, rules);
}

fn check_logs(logs: &[crate::Log], outcome: VerdictOutcome, rules: &[&str]) {
    let verdict = fold(logs).unwrap().verdict;
    let mut got: Vec<String> =
        verdict
            .findings
            .iter()
            .map(|f| {
                if f.weight == FindingSeverity::Warning { format!("({})", f.rule) } else { f.rule.to_owned() }
            })
            .collect();
    got.sort();
    let mut want: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
    want.sort();
    assert_eq!((verdict.outcome, got), (outcome, want), "{verdict:#?}");
    let reduced: Vec<_> = logs.iter().map(|log| with_bins(log, BINS)).collect();
    assert_eq!(fold(&reduced).unwrap().verdict, verdict, "rules need more bins than they say");
}

#[test]
fn a_healthy_run_is_valid() {
    check(&Run::default(), VerdictOutcome::Valid, &[]);
    check(&Run { rate: 50.0, seed: 2, ..Run::default() }, VerdictOutcome::Valid, &[]);
}

#[test]
fn healthy_runs_of_many_seeds_and_rates_are_valid() {
    for seed in 10..30 {
        let rate = 40.0 + 10.0 * (seed % 7) as f64;
        check(&Run { rate, seed, ..Run::default() }, VerdictOutcome::Valid, &[]);
    }
}

#[test]
fn pages_make_healthy_runs_uneven() {
    for seed in 10..40 {
        let rate = 60.0 + 10.0 * (seed % 5) as f64;
        check(&Run { rate, seed, page: 14, ..Run::default() }, VerdictOutcome::Valid, &[]);
    }
}

/// A few hundred transactions in large pages: what a burst at the end makes of them is chance.
#[test]
fn short_phases_of_few_pages_are_no_overload() {
    for seed in 100..300 {
        let phases = [5.0, 6.0, 1.0];
        let run = Run { rate: 60.0, seed, page: 14, phases, means: [0.05, 0.05], ..Run::default() };
        let verdict = fold(&run.logs()).unwrap().verdict;
        let wrong = |f: &&VerdictFinding| ["following", "growing", "offered"].contains(&f.rule);
        assert!(verdict.findings.iter().find(wrong).is_none(), "seed {seed}: {verdict:#?}");
    }
}

#[test]
fn pages_do_not_hide_what_is_wrong() {
    let pages = Run { page: 14, ..Run::default() };
    check(&Run { started_share: 0.6, ..pages.clone() }, VerdictOutcome::Invalid, &["offered"]);
    let verdict = fold(&Run { capacity: 75.0, ..pages }.logs()).unwrap().verdict;
    assert_eq!(verdict.outcome, VerdictOutcome::Failed, "{verdict:#?}");
}

/// Parts that cannot be asked for yet are no fault of the bench, launches that were left out are, whatever the device.
#[test]
fn pages_that_are_waited_for() {
    let pages = Run { page: 14, parts_wait: true, rate: 400.0, ..Run::default() };
    check(&Run { phases: [20.0, 40.0, 2.0], ..pages.clone() }, VerdictOutcome::Valid, &[]);
    // Without a warm-up, the parts of the pages of the first five seconds come late.
    let cold = Run { phases: [0.0, 40.0, 0.0], means: [5.0, 5.0], ..pages.clone() };
    check(&cold, VerdictOutcome::Valid, &["(offered)", "(trend)"]);
    let slow = Run { means: [20.0, 20.0], ..pages.clone() };
    check(&slow, VerdictOutcome::Failed, &["(offered)", "following", "growing"]);
    let dead = Run { means: [60.0, 60.0], spread: 0.0, ..pages };
    check(&dead, VerdictOutcome::Failed, &["(offered)", "following", "growing", "samples"]);
    for run in [cold, slow] {
        let verdict = fold(&Run { started_share: 0.6, ..run }.logs()).unwrap().verdict;
        assert!(
            verdict.findings.iter().any(|f| (f.rule, f.weight) == ("offered", FindingSeverity::Invalid)),
            "{verdict:#?}"
        );
    }
}

#[test]
fn a_phase_without_warm_up_does_not_look_like_overload() {
    check(&Run { phases: [0.0, 30.0, 0.0], ..Run::default() }, VerdictOutcome::Valid, &[]);
}

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
    check_logs(&[Run::default().client(), killed(20.0)], VerdictOutcome::Invalid, &["interrupted"]);
    check_logs(&[Run::default().client(), killed(35.0)], VerdictOutcome::Valid, &["(interrupted)"]);
}

#[test]
fn primary_phase_never_reached() {
    let run = Run { end: Some(EndReason::Interrupted), stop_at: Some(3.0), ..Run::default() };
    check(&run, VerdictOutcome::Invalid, &["interrupted", "phase", "(samples)"]);
}

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
    let wrong = Run { error: Some((20, ErrorKind::BadStatus)), ..stopped };
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
    check(&Run { late_us: 100_000, ..Run::default() }, VerdictOutcome::Invalid, &["late"]);
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
fn error_share() {
    check(
        &Run { error: Some((20, ErrorKind::BadStatus)), ..Run::default() },
        VerdictOutcome::Failed,
        &["errors"],
    );
    check(
        &Run { error: Some((20, ErrorKind::Timeout)), ..Run::default() },
        VerdictOutcome::Failed,
        &["errors"],
    );
    check(&Run { error: Some((50, ErrorKind::Timeout)), ..Run::default() }, VerdictOutcome::Valid, &[]);
}

#[test]
fn error_goal() {
    let run = Run {
        error: Some((3, ErrorKind::NoReply)),
        end: Some(EndReason::ErrorGoal { phase: "meas".into() }),
        stop_at: Some(12.0),
        ..Run::default()
    };
    check(&run, VerdictOutcome::Failed, &["error goal", "errors", "phase", "(samples)"]);
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
fn a_device_that_cannot_follow() {
    check(&Run { capacity: 80.0, ..Run::default() }, VerdictOutcome::Failed, &["following", "growing"]);
    let limited = Run { capacity: 40.0, open_limit: 500, ..Run::default() };
    check(&limited, VerdictOutcome::Failed, &["errors"]);
}

#[test]
fn wrong_replies() {
    check(
        &Run { error: Some((500, ErrorKind::Stale)), ..Run::default() },
        VerdictOutcome::Failed,
        &["correctness"],
    );
    check(
        &Run { error: Some((1700, ErrorKind::UncachableHit)), ..Run::default() },
        VerdictOutcome::Valid,
        &["(correctness)"],
    );
}

#[test]
fn wrong_content_is_not_allowed_at_all() {
    use ErrorKind as K;
    for kind in [K::WrongObject, K::AlteredBody, K::PrivateLeak, K::WrongSize, K::UnacceptableCoding] {
        // A single transaction of the whole run.
        let run = Run { error: Some((2500, kind)), ..Run::default() };
        check_logs(&[run.client(), Run::default().server()], VerdictOutcome::Failed, &["content"]);
    }
}

#[test]
fn hits_that_were_not_offered_are_only_a_warning() {
    let run = Run { error: Some((100, ErrorKind::FalseHit)), ..Run::default() };
    check(&run, VerdictOutcome::Valid, &["(correctness)"]);
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
    let wrong = Run { busy: 0.95, error: Some((20, ErrorKind::BadStatus)), ..Run::default() };
    check(&wrong, VerdictOutcome::Failed, &["saturated", "saturated", "errors"]);
}

#[test]
fn late_or_interrupted_runs_do_not_excuse_the_device() {
    let run = Run { late_us: 400_000, error: Some((10, ErrorKind::Timeout)), ..Run::default() };
    check(&run, VerdictOutcome::Failed, &["errors", "late"]);
}

#[test]
fn a_device_that_was_still_cold() {
    // 36 % of the hits are missed at the start of the primary phase, and one percent at its end.
    let cold = Run { cold: Some(8.0), phases: [4.0, 60.0, 2.0], rate: 200.0, ..Run::default() };
    check_logs(&[cold.client(), Run::default().server()], VerdictOutcome::Valid, &["(trend)", "(trend)"]);
    let warm = Run { cold: Some(1.0), ..cold };
    check_logs(&[warm.client(), Run::default().server()], VerdictOutcome::Valid, &[]);
}

#[test]
fn ordinary_runs_have_no_trend() {
    // Response times that wander by a tenth for seconds, in phases of a minute and of an hour.
    for (seed, seconds, rate) in (0..30).map(|i| (i, 60.0, 40.0)).chain((30..33).map(|i| (i, 3600.0, 8.0))) {
        let run = Run { seed, rate, phases: [4.0, seconds, 2.0], wander: Some((0.1, 3.0)), ..Run::default() };
        check_logs(&[run.client(), Run::default().server()], VerdictOutcome::Valid, &[]);
    }
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

/// The verdict on these logs, with the rule that decides.
fn verdict(logs: &[crate::Log]) -> (String, &'static str, String) {
    let verdict = fold(logs).unwrap().verdict;
    let rule = verdict.findings.first().map_or("", |finding| finding.rule);
    (verdict.word(), rule, verdict.meaning())
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
fn nobody_fails_where_there_is_no_device() {
    let direct = |run: &Run| {
        let mut client = run.client();
        client.log.header.settings.push(("device".into(), "none".into()));
        verdict(&[client, run.server()])
    };
    let (word, _, meaning) = direct(&Run::default());
    assert_eq!((&*word, &*meaning), ("VALID", "the bench sustained the load; there was no device"));
    for kind in [ErrorKind::BadStatus, ErrorKind::Timeout, ErrorKind::WrongObject, ErrorKind::Stale] {
        let (word, _, meaning) = direct(&Run { error: Some((10, kind)), ..Run::default() });
        assert_eq!(word, "INVALID (server)", "{kind:?}");
        assert!(!meaning.contains("device"), "{meaning}");
    }
    let own_limit = Run { error: Some((10, ErrorKind::TooManyOpen)), ..Run::default() };
    assert_eq!(direct(&own_limit).0, "INVALID (test)");
}

#[test]
fn the_limit_of_the_tests_own_connections_is_no_servers_fault() {
    let run = Run { started_share: 0.9, error: Some((10, ErrorKind::TooManyOpen)), ..Run::default() };
    check(&run, VerdictOutcome::Failed, &["errors", "following"]);
    let mut client = run.client();
    client.log.header.settings.push(("device".into(), "none".into()));
    check_logs(&[client, run.server()], VerdictOutcome::Invalid, &["errors", "offered"]);
}

/// No device can shorten think times.
#[test]
fn limits_that_think_times_exceed_are_those_of_the_test() {
    let lifetime = |lifetime_s: f64| Run {
        error: Some((10, ErrorKind::Timeout)),
        think_s: 2.0,
        limits: RobotLimits { lifetime_s: Some(lifetime_s), open_connections: None },
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
        limits: RobotLimits { lifetime_s: None, open_connections: Some(open_connections) },
        ..Run::default()
    };
    assert_eq!(verdict(&connections(80).logs()).0, "INVALID (test)");
    assert_eq!(verdict(&connections(200).logs()).0, "FAILED (device)");
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
    let of =
        |proxies: [&str; 2]| verdict(&[client(proxies[0]), client(proxies[1]), Run::default().server()]).0;
    assert_eq!(of(["10.0.0.1:3128", "none"]), "INVALID (test)");
    assert_eq!(of(["10.0.0.1:3128", "10.0.0.2:3128"]), "VALID");
}

/// Robots wait so long that few requests have failed when the phase ends.
#[test]
fn a_device_that_falls_silent_did_not_answer() {
    let dead = |from: f64| Run { silent_from: Some(from), think_s: 3.0, ..Run::default() };
    let (word, rule, _) = verdict(&dead(30.5).logs());
    assert_eq!((&*word, rule), ("FAILED (device)", "unanswered"));
    assert_eq!(verdict(&dead(33.8).logs()).0, "VALID");
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
    check_logs(
        &logs(3, ErrorKind::BadStatus, "127.0.0.1:3128"),
        VerdictOutcome::Failed,
        &["(one side)", "errors"],
    );
    // A gateway says that it cannot reach the server.
    let mut gateway = logs(3, ErrorKind::BadStatus, "127.0.0.1:3128");
    for record in &mut gateway[0].log.records {
        if let Record::Interval(interval) = record {
            (0..interval.block.failed_count()).for_each(|_| interval.block.fail(502, 1, 1, false));
        }
    }
    unknown(&gateway);
    check_logs(
        &logs(3, ErrorKind::WrongObject, "none"),
        VerdictOutcome::Failed,
        &["(errors)", "content", "one side"],
    );
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
fn replies_that_nobody_verified_are_not_valid() {
    let none = Run { verify: false, ..Run::default() };
    let (word, rule, meaning) = verdict(&none.logs());
    assert_eq!(
        (&*word, rule, &*meaning),
        ("FAILED (device)", "unverified", "the device delivered replies that robots cannot verify")
    );
    let mut tolerant = none.client();
    tolerant.log.header.settings.push(("accepts foreign messages".into(), "yes".into()));
    assert_eq!(verdict(&[tolerant, none.server()]).0, "INVALID (test)");
    for (every, outcome) in [(20, "FAILED (device)"), (50, "VALID")] {
        let some = Run { unverified: Some(every), ..Run::default() };
        assert_eq!(verdict(&some.logs()).0, outcome, "one of {every}");
    }
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

#[test]
fn the_headline_tells_what_the_device_did() {
    for (kind, deed) in [
        (ErrorKind::BadStatus, "the device answered with errors"),
        (ErrorKind::UnmarkedRedirect, "the device redirected robots elsewhere"),
        (ErrorKind::Reset, "the device dropped connections"),
        (ErrorKind::BadHead, "the device sent broken messages"),
        (ErrorKind::Timeout, "the device did not sustain the load"),
        (ErrorKind::ConnectFailed, "the device refused connections"),
        (ErrorKind::WrongObject, "the device delivered wrong content"),
        (ErrorKind::Stale, "the device broke the rules of caching"),
    ] {
        let run = Run { error: Some((10, kind)), ..Run::default() };
        assert_eq!(verdict(&run.logs()).2, deed, "{kind:?}");
    }
    let dead = Run { error: Some((1, ErrorKind::ConnectFailed)), ..Run::default() };
    assert_eq!(verdict(&dead.logs()).2, "the device was unreachable");
}

/// The rules as the table of the documentation.
fn table() -> String {
    let row = |rule: &Rule| {
        let says = match rule.says {
            FindingSeverity::Warning => "warning".to_owned(),
            weight => weight.word().to_uppercase(),
        };
        format!("| `{}` | {} | {says} |\n", rule.name, rule.looks_at)
    };
    let rows: String = rules().iter().map(row).collect();
    format!("| rule | condition | result |\n|---|---|---|\n{rows}")
}

#[test]
fn every_rule_is_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/verdict.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (begin, end) = (page.find("| rule |").unwrap(), page.find("\n\n## Examples").unwrap());
    let now = format!("{}{}{}", &page[..begin], table().trim_end(), &page[end..]);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &now).unwrap();
    } else {
        assert!(
            page == now,
            "docs/verdict.md is stale: run `UPDATE_DOCS=1 cargo test -p polygraph-report --lib every_rule_is_documented`"
        );
    }
}

/// Robots that know less than the servers can find nothing wrong; that must not look like proof.
#[test]
fn bytes_that_were_not_compared_are_told() {
    check(&Run { compare: false, ..Run::default() }, VerdictOutcome::Valid, &["(compared)"]);
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

/// A device whose origins turn it away answers with errors of its own.
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

#[test]
fn a_load_that_changes_as_planned_is_no_overload() {
    let ramp = |beg, end| PlannedLoad { beg, end, mean: (beg + end) / 2.0 };
    let half = PlannedLoad { beg: 0.5, end: 0.5, mean: 0.5 };
    let slow = Run { rate: 150.0, means: [1.0, 1.0], phases: [2.0, 20.0, 2.0], ..Run::default() };
    for seed in 50..60 {
        let run = Run { seed, ..slow.clone() };
        for meas in [ramp(0.1, 1.0), ramp(1.0, 0.1)] {
            let loads =
                [PlannedLoad { beg: meas.beg, end: meas.beg, mean: meas.beg }, meas, PlannedLoad::FULL];
            check(&Run { loads, ..run.clone() }, VerdictOutcome::Valid, &[]);
        }
        check(&Run { loads: [half, half, half], ..run.clone() }, VerdictOutcome::Valid, &[]);
        // The plan is not offered, or the device has a limit.
        let loads = [ramp(0.1, 0.1), ramp(0.1, 1.0), PlannedLoad::FULL];
        let fewer = Run { loads, started_share: 0.6, ..run.clone() };
        check(&fewer, VerdictOutcome::Invalid, &["(samples)", "offered"]);
        let verdict = fold(&Run { loads, capacity: 70.0, ..run }.logs()).unwrap().verdict;
        assert_eq!(verdict.outcome, VerdictOutcome::Failed, "{verdict:#?}");
    }
}

/// A hundred requests a second for half a minute, with response times below two seconds.
#[test]
fn requests_that_are_never_answered_are_failures_to_be() {
    let with = |unanswered| Run { unanswered, ..Run::default() };
    check(&with((80, 200)), VerdictOutcome::Valid, &[]);
    check(&with((300, 1)), VerdictOutcome::Valid, &[]);
    check(&with((300, 200)), VerdictOutcome::Failed, &["unanswered"]);
    // Some that failed are not too many by themselves.
    let some = Run { error: Some((50, ErrorKind::Timeout)), ..with((200, 200)) };
    check(&some, VerdictOutcome::Failed, &["unanswered"]);
    let stopped = Run { stalls: [Some((10.0, 13.0)), None], ..with((300, 200)) };
    check(&stopped, VerdictOutcome::Invalid, &["(unanswered)", "stalls"]);
}

#[test]
fn requests_that_met_closed_connections_are_told() {
    let with = |sent_again| Run { sent_again, ..Run::default() };
    check(&with((2, 0)), VerdictOutcome::Valid, &["(sent again)"]);
    check(&with((2, 2)), VerdictOutcome::Valid, &[]);
    check(&Run { rate: 300.0, ..with((2, 0)) }, VerdictOutcome::Valid, &[]);
}

#[test]
fn connections_that_had_to_be_asked_for_twice_are_told() {
    let with = |setups: &[f64]| Run { setups: setups.to_vec(), ..Run::default() };
    check(&with(&[0.001, 0.9]), VerdictOutcome::Valid, &[]);
    check(&with(&[0.001, 1.03]), VerdictOutcome::Valid, &["(connecting)"]);
    // A network with this delay is no queue.
    check(&with(&[0.6, 1.03]), VerdictOutcome::Valid, &[]);
}
