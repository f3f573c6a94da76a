use super::*;
use crate::journal::JournalEvent;
use std::path::Path;

fn plan(text: &str) -> BakeoffPlan {
    BakeoffPlan::parse(&format!("title = \"t\"\n{text}"), "plan.toml", Path::new("")).unwrap()
}

/// Carries a plan out: `run` says what becomes of each run. Returns the runs as `device rate/attempt`.
fn carry_out(
    plan: &BakeoffPlan,
    progress: &mut BakeoffProgress,
    mut run: impl FnMut(&str, f64, u32) -> AttemptStatus,
) -> Vec<String> {
    let mut log = Vec::new();
    while let Some(step) = next(plan, progress) {
        assert!(log.len() < 200, "no end: {log:?}");
        match step {
            BakeoffStep::Network => {
                log.push("network".to_owned());
                progress.apply(&JournalEvent::Network { mbit_s: 1.0, seconds: 1.0 });
            }
            BakeoffStep::NoProxy => {
                log.push("no proxy".to_owned());
                let (rate, status) = (plan.top_rate(), AttemptStatus::Passed);
                progress.apply(&JournalEvent::NoProxy {
                    rate,
                    run: String::new(),
                    status,
                    reason: String::new(),
                });
            }
            BakeoffStep::Run { device, rate, attempt } => {
                let name = plan.devices[device].name.clone();
                log.push(format!("{name} {rate}/{attempt}"));
                progress.apply(&JournalEvent::End {
                    status: run(&name, rate, attempt),
                    device: name,
                    rate,
                    attempt,
                    run: String::new(),
                    reason: String::new(),
                    cpu_s: None,
                    figures: None,
                });
            }
        }
    }
    log
}

#[track_caller]
fn check(text: &str, run: impl FnMut(&str, f64, u32) -> AttemptStatus, expected: &str) {
    let plan = plan(text);
    assert_eq!(carry_out(&plan, &mut BakeoffProgress::default(), run).join(", "), expected, "{text}");
}

const NO_CHECKS: &str = "[checks]\nno_proxy='none'\nnetwork='none'\n";

fn pass(_: &str, _: f64, _: u32) -> AttemptStatus {
    AttemptStatus::Passed
}

#[test]
fn the_given_order_is_kept() {
    check(
        "rates=[10, 50, 20]\n[[device]]\nname='a'\nproxy='h:1'\nsize='1MB'\n[[device]]\nname='b'\nproxy='h:2'\nsize='1MB'\nrates=[7]\n",
        pass,
        "network, no proxy, a 10/1, a 50/1, a 20/1, b 7/1",
    );
}

#[test]
fn repeats_come_after_the_first_runs() {
    let text = format!(
        "rates=[10, 50, 20]\n{NO_CHECKS}[rules]\nrepeats=2\nattempts=3\n[[device]]\nname='a'\nproxy='h:1'\nsize='1MB'\n"
    );
    check(&text, pass, "a 10/1, a 50/1, a 20/1, a 10/2, a 50/2, a 20/2");
    // A run that did not go well is done again, as long as there are attempts.
    let status = |_: &str, rate: f64, attempt| match (rate as u32, attempt) {
        (50, _) => AttemptStatus::Failed,
        (20, 1) => AttemptStatus::Invalid,
        _ => AttemptStatus::Passed,
    };
    check(&text, status, "a 10/1, a 50/1, a 20/1, a 10/2, a 50/2, a 20/2, a 50/3, a 20/3");
}

#[test]
fn one_raise_and_only_of_a_claim_that_was_met() {
    let text = format!(
        "rates=[10, 50]\n{NO_CHECKS}[rules]\nattempts=1\n[[device]]\nname='a'\nproxy='h:1'\nsize='1MB'\nraise_to=80\nraise_rates=[60, 80]\n"
    );
    check(&text, pass, "a 10/1, a 50/1, a 60/1, a 80/1");
    let fails_from = |limit: f64| {
        move |_: &str, rate: f64, _: u32| {
            if rate >= limit { AttemptStatus::Failed } else { AttemptStatus::Passed }
        }
    };
    check(&text, fails_from(70.0), "a 10/1, a 50/1, a 60/1, a 80/1");
    check(&text, fails_from(50.0), "a 10/1, a 50/1");
    let plan = plan(&text);
    for (limit, claimed, achieved) in [(99.0, 80.0, 80.0), (70.0, 80.0, 60.0), (40.0, 50.0, 10.0)] {
        let mut progress = BakeoffProgress::default();
        carry_out(&plan, &mut progress, fails_from(limit));
        let standing = &progress.devices["a"];
        let best = standing
            .ended
            .iter()
            .filter(|e| e.status == AttemptStatus::Passed)
            .map(|e| e.rate)
            .fold(0.0, f64::max);
        assert_eq!((claim(&plan.devices[0], standing), best), (claimed, achieved), "fails from {limit}");
    }
}

#[test]
fn a_bench_that_does_not_stand_gets_no_third_chance() {
    let plan = plan("rates=[10]\n[[device]]\nname='a'\nproxy='h:1'\nsize='1MB'\n");
    let mut progress = BakeoffProgress { network: Some((1.0, 1.0)), ..BakeoffProgress::default() };
    for (rate, status, expected) in [
        (5.0, AttemptStatus::Passed, BenchCapacity::Unknown),
        (10.0, AttemptStatus::Invalid, BenchCapacity::Unknown),
        (10.0, AttemptStatus::Failed, BenchCapacity::Fails),
    ] {
        progress.apply(&JournalEvent::NoProxy { rate, run: String::new(), status, reason: String::new() });
        assert_eq!(bench(&plan, &progress), expected, "after {rate} {status:?}");
    }
    progress.apply(&JournalEvent::NoProxy {
        rate: 20.0,
        run: String::new(),
        status: AttemptStatus::Passed,
        reason: String::new(),
    });
    assert_eq!(bench(&plan, &progress), BenchCapacity::Stands);
}

/// Killed after any number of steps, a series goes on with the step that it was at, and ends with the same runs.
#[test]
fn any_interruption_is_survived() {
    let text = format!(
        "rates=[10, 50, 20]\n{NO_CHECKS}[rules]\nrepeats=2\nattempts=3\n[[device]]\nname='a'\nproxy='h:1'\nsize='1MB'\nraise_to=60\n[[device]]\nname='b'\nproxy='h:2'\nsize='1MB'\n"
    );
    let plan = plan(&text);
    let status = |name: &str, rate: f64, attempt: u32| match (name, rate as u32, attempt) {
        ("a", 50, 1) | ("b", 20, _) => AttemptStatus::Failed,
        _ => AttemptStatus::Passed,
    };
    let mut events = Vec::new();
    let mut progress = BakeoffProgress::default();
    let whole = carry_out(&plan, &mut progress, |name, rate, attempt| {
        events.push((name.to_owned(), rate, attempt));
        status(name, rate, attempt)
    });
    for cut in 0..events.len() {
        let mut again = BakeoffProgress::default();
        for (device, rate, attempt) in &events[..cut] {
            // What was begun counts for nothing, what was ended counts.
            let (device, rate, attempt) = (device.clone(), *rate, *attempt);
            again.apply(&JournalEvent::Begin { device: device.clone(), rate, attempt });
            let status = status(&device, rate, attempt);
            again.apply(&JournalEvent::End {
                device,
                rate,
                attempt,
                run: String::new(),
                status,
                reason: String::new(),
                cpu_s: None,
                figures: None,
            });
        }
        let (device, rate, attempt) = events[cut].clone();
        again.apply(&JournalEvent::Begin { device, rate, attempt });
        assert_eq!(carry_out(&plan, &mut again, status), whole[cut..], "cut at {cut}");
        assert_eq!(again, progress, "cut at {cut}");
    }
}

#[test]
fn what_is_left_and_how_long_it_takes() {
    let plan = plan(
        "rates=[10, 50]\n[workload]\nduration='60s'\ncool='5s'\n[rules]\nlaunch_window='5s'\nidle_gap='10s'\n[checks]\nno_proxy='30s'\nnetwork='3s'\n[[device]]\nname='a'\nproxy='h:1'\nsize='1MB'\n",
    );
    let progress = BakeoffProgress::default();
    let steps = remaining(&plan, &progress);
    assert_eq!(steps.len(), 4);
    let run = 10.0 + 65.0 + OVERHEAD_S;
    let all = 3.0 + 35.0 + OVERHEAD_S + FILL_GUESS_S + 2.0 * run;
    assert_eq!(duration_s(&plan, &progress, &steps, None), all);
    assert_eq!(duration_s(&plan, &progress, &steps[2..], Some(0)), 2.0 * run);
}

/// What is left at once is what comes step by step, wherever a series stands.
#[test]
fn what_is_left_is_what_comes_next_again_and_again() {
    let text = "rates=[10, 30, 20]\n[rules]\nrepeats=2\nattempts=3\n[[device]]\nname='a'\nproxy='h:1'\nsize='1GB'\n\
        raise_to=50\nraise_rates=[40, 50]\n[[device]]\nname='b'\nproxy='h:2'\nsize='1GB'\n";
    let plan = plan(text);
    for fail in 0..20 {
        let mut progress = BakeoffProgress::default();
        for count in 0..30 {
            let mut ahead = progress.clone();
            let left: Vec<String> = remaining(&plan, &progress)
                .iter()
                .map(|step| match step {
                    BakeoffStep::Network => "network".to_owned(),
                    BakeoffStep::NoProxy => "no proxy".to_owned(),
                    BakeoffStep::Run { device, rate, attempt } => {
                        format!("{} {rate}/{attempt}", plan.devices[*device].name)
                    }
                })
                .collect();
            assert_eq!(left, carry_out(&plan, &mut ahead, pass), "after {count} steps");
            // Goes on by one step.
            let Some(step) = next(&plan, &progress) else { break };
            match step {
                BakeoffStep::Network => progress.apply(&JournalEvent::Network { mbit_s: 1.0, seconds: 1.0 }),
                BakeoffStep::NoProxy => {
                    let (rate, status, reason) = (plan.top_rate(), AttemptStatus::Passed, String::new());
                    progress.apply(&JournalEvent::NoProxy { rate, run: String::new(), status, reason });
                }
                BakeoffStep::Run { device, rate, attempt } => progress.apply(&JournalEvent::End {
                    status: if (count + fail) % 4 == 0 {
                        AttemptStatus::Failed
                    } else {
                        AttemptStatus::Passed
                    },
                    device: plan.devices[device].name.clone(),
                    rate,
                    attempt,
                    run: String::new(),
                    reason: String::new(),
                    cpu_s: None,
                    figures: None,
                }),
            }
        }
    }
}

#[test]
fn many_rates_are_no_trouble() {
    let rates: Vec<String> = (1..=20_000).map(|rate| rate.to_string()).collect();
    let device = "[[device]]\nname='a'\nproxy='h:1'\nsize='1GB'\n";
    let plan = plan(&format!("rates=[{}]\n{NO_CHECKS}{device}", rates.join(",")));
    let steps = remaining(&plan, &BakeoffProgress::default());
    assert_eq!(steps.len(), 20_000);
    assert_eq!(steps[19_999], BakeoffStep::Run { device: 0, rate: 20_000.0, attempt: 1 });
}
