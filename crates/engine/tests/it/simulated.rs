//! Whole tests in virtual time: minutes of schedules in a moment, and every figure as it has to be.

use polygraph_link::SECOND;
use polygraph_plan::{Factor, Factors, Goal, Phase, Schedule, WorkingSetLimit};
use polygraph_robot::{Load, Profile};
use polygraph_stats::{EndReason, Interval, Record};
use polygraph_traffic::{Behavior, Catalog, Content, Distr, Seed};

use crate::support::{Bench, Run};

/// Ten robots with 2 requests per second each, half of them for known objects; servers think for 100 ms.
fn bench(schedule: Schedule) -> Bench {
    let catalog = Catalog { seed: Seed(3), contents: vec![Content::plain("x", Distr::Const(1000.0), 1.0)] };
    let behavior = Behavior { recurrence: 0.5, ..Behavior::default() };
    let mut bench =
        Bench::new(catalog, vec![Profile::plain("robots", 10, Load::Open { rate: 2.0 }, behavior)]);
    bench.farm.think = Some(Distr::Const(0.1));
    bench.settle = 0.2;
    bench.schedule = schedule;
    bench
}

fn phase(name: &str, goal: Goal, load: (f64, f64)) -> Phase {
    let factors = Factors { load: Factor { beg: load.0, end: load.1 }, ..Factors::ONE };
    Phase { name: name.into(), log_stats: true, goal, factors, ..Phase::default() }
}

fn lasting(seconds: f64) -> Goal {
    Goal { duration: Some(seconds), ..Goal::default() }
}

/// Transactions begun in a phase, and its length in seconds.
fn begun(run: &Run, phase: u32) -> (f64, f64) {
    let of_phase: Vec<&Interval> = run.logs[0].intervals().filter(|it| it.phase == phase).collect();
    let entered: u64 = of_phase.iter().map(|it| it.block.xacts.entered).sum();
    (entered as f64, of_phase.iter().map(|it| it.seconds()).sum())
}

#[test]
fn a_schedule_goes_by_as_planned() {
    let filling = Phase {
        wait_wss_freeze: true,
        ..phase("fill", Goal { fill_size: Some(500_000), ..Goal::default() }, (1.0, 1.0))
    };
    let phases = vec![
        phase("ramp", lasting(600.0), (0.0, 1.0)),
        filling,
        phase("count", Goal { xactions: Some(5_000), ..Goal::default() }, (1.0, 0.5)),
        phase("top", lasting(1800.0), (1.0, 1.0)),
    ];
    let schedule = Schedule { phases, working_set: Some(WorkingSetLimit::Fill(8_000)) };
    let run = bench(schedule).simulate();
    assert_eq!(run.outcome.reason, EndReason::Finished);
    assert_eq!(run.client.failed_count() + run.server.failed_count(), 0);
    // 20 requests per second at full load; five standard deviations of a Poisson count.
    for (number, wanted, seconds) in [(0, 6_000.0, Some(600.0)), (3, 36_000.0, Some(1800.0))] {
        let (count, lasted) = begun(&run, number);
        assert_eq!(Some(lasted), seconds);
        assert!((count - wanted).abs() < 5.0 * f64::sqrt(wanted), "phase {number}: {count}");
    }
    // Half of the requests fill, and the ramp has filled already: the phase waits for the working set.
    let frozen = run.logs[0].records.iter().find_map(|record| match record {
        Record::Comment { at_ns, text, .. } if text.starts_with("working set frozen: 8,00") => Some(*at_ns),
        _ => None,
    });
    let (_, lasted) = begun(&run, 1);
    let until_frozen = frozen.expect("a frozen working set") as f64 * 1e-9 - 600.0;
    assert!((lasted - until_frozen).abs() < 0.2, "{lasted} s, frozen after {until_frozen} s");
    // The load falls along the count: between full and half of it.
    let (count, lasted) = begun(&run, 2);
    assert!((count - 5_000.0).abs() < 20.0 && lasted > 5_000.0 / 20.0 && lasted < 5_000.0 / 10.0);
    // What robots and servers count is the same but for what is on its way at the end.
    assert!(run.client.ok_count().abs_diff(run.server.ok_count()) < 10);
    assert_eq!(run.client.mean_rptm_us(), Some(100_000.0), "nothing but thinking takes time");
}

#[test]
fn a_ramp_along_transactions_follows_their_count() {
    let phases = vec![
        phase("rise", Goal { xactions: Some(300), ..Goal::default() }, (0.0, 1.0)),
        phase("fall", lasting(60.0), (1.0, 0.0)),
    ];
    let run = bench(Schedule { phases, working_set: None }).simulate();
    // At 20/s, the count n grows by 20 max(n/300, 1/100) a second: 15 s to 3, then 300/20 ln(100) = 69 s. Chance decides when the first
    // few come. A ramp over time would end after 30 s.
    let (count, lasted) = begun(&run, 0);
    assert!((count - 300.0).abs() < 20.0 && (45.0..140.0).contains(&lasted), "{count} in {lasted} s");
    // Down from 20/s in a minute; five standard deviations.
    let (count, _) = begun(&run, 1);
    assert!((count - 600.0).abs() < 5.0 * f64::sqrt(600.0), "{count} started while falling");
}

#[test]
fn errors_and_silence_end_a_run_in_virtual_time_too() {
    let mut failing = bench(Schedule {
        phases: vec![phase("meas", Goal { errors: Some(20.0), ..lasting(600.0) }, (1.0, 1.0))],
        working_set: None,
    });
    failing.elsewhere = Some("10.0.0.2:80".parse().unwrap());
    let run = failing.simulate();
    assert_eq!(run.outcome.reason, EndReason::ErrorGoal { phase: "meas".into() });
    assert!((20..30).contains(&run.client.failed_count()), "{}", run.client.failed_count());
    // Robots that ask as soon as they have their reply, and servers that do not think.
    let mut hasty =
        bench(Schedule { phases: vec![phase("meas", lasting(1.0), (1.0, 1.0))], working_set: None });
    hasty.profiles[0].load = Load::Closed { think: None };
    hasty.farm.think = None;
    let run = hasty.simulate();
    let EndReason::NoEnd(why) = &run.outcome.reason else { panic!("{:?}", run.outcome) };
    assert!(why.starts_with("virtual time does not advance"), "{why}");
}

#[test]
fn a_phase_that_nothing_fills_ends() {
    let goal = Goal { fill_size: Some(1), ..Goal::default() };
    let mut endless = bench(Schedule { phases: vec![phase("fill", goal, (1.0, 1.0))], working_set: None });
    // Every request fails, so nothing is ever filled.
    endless.elsewhere = Some("10.0.0.2:80".parse().unwrap());
    let run = endless.simulate_for(Some(600 * SECOND));
    let EndReason::NoEnd(why) = &run.outcome.reason else { panic!("{:?}", run.outcome) };
    assert!(why.starts_with("phase fill cannot reach its end"), "{why}");
}

#[test]
fn a_test_that_comes_to_no_end_is_given_up_if_there_is_a_limit() {
    let goal = Goal { duration: Some(3600.0), ..Goal::default() };
    let endless = bench(Schedule { phases: vec![phase("meas", goal, (1.0, 1.0))], working_set: None });
    let run = endless.simulate_for(Some(600 * SECOND));
    let EndReason::NoEnd(why) = &run.outcome.reason else { panic!("{:?}", run.outcome) };
    assert!(why.contains("did not end within"), "{why}");
    let (_, lasted) = begun(&run, 0);
    assert!((600.0..602.0).contains(&lasted), "{lasted}");
}

#[test]
fn two_simulations_write_the_same_logs() {
    let logs = || {
        let mut bench =
            bench(Schedule { phases: vec![phase("meas", lasting(60.0), (1.0, 1.0))], working_set: None });
        bench.loops = 2;
        bench.simulate().logs.map(|log| format!("{:?}{:?}", log.header, log.records))
    };
    let (first, second) = (logs(), logs());
    assert!(first[0].len() > 10_000 && first == second);
}
