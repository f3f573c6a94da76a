//! Scripts in made-up tests: what is new, step by step, and what the scripts say and do.

use std::sync::Arc;

use polygraph_link::{Nanos, SECOND, nanos};
use polygraph_pgl::types::stat_completions;
use polygraph_pgl::{MemoryLoader, Options, compile};
use polygraph_plan::{Factor, Factors, Goal, Phase, Schedule, Script};
use polygraph_stats::{Class, ErrorKind, Window};

use crate::phase_controller::{ControlEvent, NOTICE, Observations, PhaseController, TestPlan};
use crate::timeline::Timeline;

/// A test in which each step takes a second.
struct Test {
    controller: PhaseController,
    timeline: Arc<Timeline>,
    now: Nanos,
}

impl Test {
    /// Phases with this load, goal and script.
    fn new(globals: &str, phases: &[(Factor, Goal, &str)]) -> Test {
        let mut text = format!(
            "{globals} Robot R; R.addresses = ['127.0.0.1']; R.origins = ['127.0.0.1:80']; \
             Content c = {{ size = const(1KB); }}; Server S; S.addresses = ['127.0.0.1:80']; \
             S.contents = [c]; S.direct_access = [c]; use(S, R);\n"
        );
        for (number, (.., script)) in phases.iter().enumerate() {
            text += &format!("Phase p{number} = {{ script = {{\n{script}\n}}; }}; schedule(p{number});\n");
        }
        let compilation = compile("s.pg", &MemoryLoader::default().with("s.pg", text), &Options::default());
        let workload = compilation.workload.unwrap_or_else(|| panic!("{:?}", compilation.diagnostics));
        let phase =
            |(phase, &(load, goal, _)): (&polygraph_pgl::types::Phase, &(Factor, Goal, &str))| Phase {
                goal,
                factors: Factors { load, ..Factors::ONE },
                script: phase.script.map(|id| Script::new(&workload.scripts, id)),
                ..Phase::default()
            };
        let phases = workload.phases.iter().zip(phases).map(phase).collect();
        let schedule = Arc::new(Schedule { phases, working_set: None });
        let timeline = Arc::new(Timeline::new(&schedule));
        let plan = TestPlan {
            schedule,
            timeline: Arc::clone(&timeline),
            filled_before: 0,
            has_robots: true,
            idle_timeout: None,
            fail_timeout: None,
            peers: None,
        };
        Test { controller: PhaseController::new(plan, Nanos::ZERO), timeline, now: Nanos::ZERO }
    }

    /// What is said at the next second, if `delta` happened until then. Lines have their level in front.
    fn step(&mut self, delta: Window) -> Vec<String> {
        let observed = Observations { now: self.now, delta, ..Observations::default() };
        self.now += SECOND;
        let lines = self.controller.step(&observed).into_iter().filter_map(|event| match event {
            ControlEvent::Message { level, text, .. } => Some(format!("{level} {text}")),
            ControlEvent::WorkloadError { kind, detail, .. } => {
                assert_eq!(kind, ErrorKind::Script);
                Some(detail)
            }
            ControlEvent::PhaseStarts { .. } | ControlEvent::PhaseEnds { .. } => None,
        });
        lines.collect()
    }

    fn load(&self, phase: usize) -> Factor {
        self.timeline.factors(phase).load
    }
}

/// A second with so many transactions of so many milliseconds.
fn second(count: u64, ms: u64) -> Window {
    let mut delta = Window::lasting(1.0);
    (0..count).for_each(|_| delta.classes[Class::Miss as usize].record(1000 * ms, 1000));
    delta.xacts.entered = count;
    delta.xacts.left = count;
    delta
}

#[test]
fn a_thermostat_of_two_watchdogs_finds_the_load_and_ends_the_phase() {
    let globals =
        "Goal down = { xactions = 30; }; Goal up = { duration = 2sec; }; Goal end = { duration = 9sec; };";
    let script = "
        every down do {
            StatSample s = currentSample();
            if (s.rep.rptm.mean > 1.5sec) then { changeLoadFactorBy(-20%); print(\"down: \", s.rep.rptm.mean); }
        }
        every up do {
            StatSample s = currentSample();
            if (s.rep.rptm.mean < 1.4sec) then { changeLoadFactorBy(10%); printV(2, \"up: \", currentLoadFactor()); }
        }
        every end do {
            StatSample s = currentPhase();
            reachedPositiveGoal(\"enough\");
            print(s.duration, \" \", s.ok_xact.count);
        }";
    let mut test = Test::new(globals, &[(Factor::flat(0.5), Goal::default(), script)]);
    assert!(test.timeline.deltas_wanted());
    assert_eq!(
        test.step(Window::default()),
        [
            "6 fyi: watchdog at s.pg:4:9: every 30 transactions",
            "6 fyi: watchdog at s.pg:8:9: every 2 s",
            "6 fyi: watchdog at s.pg:12:9: every 9 s",
        ]
    );
    assert_eq!(test.step(second(10, 1000)), [""; 0]);
    assert_eq!(test.step(second(10, 1200)), ["6 fyi: load factor 50 % -> 55 %", "2 script output: up: 0.55"]);
    assert_eq!(test.load(0), Factor::flat(0.55));
    // The mean of thirty is (10 + 12 + 25) / 3 = 15.7 tenths; the second sample of two seconds begins.
    let down = ["6 fyi: load factor 55 % -> 44 %", "5 script output: down: 1.56667sec"];
    assert_eq!(test.step(second(10, 2500)), down);
    // Within the window nothing happens.
    for _ in 4..9 {
        assert_eq!(test.step(second(10, 1450)), [""; 0]);
    }
    let end = ["1 fyi: the script ends the phase: enough", "5 script output: 9sec 90"];
    assert_eq!(test.step(second(10, 1450)), end);
    assert!(test.load(0).is_flat() && (test.load(0).beg - 0.44).abs() < 1e-9);
    assert_eq!(test.timeline.end(0), Some(9 * SECOND + NOTICE));
}

#[test]
fn ramps_change_their_slope_and_later_phases_know_what_earlier_scripts_have_set() {
    let timed = Goal { duration: Some(10.0), ..Goal::default() };
    let globals = "Goal often = { duration = 5sec; }; float target = 1;";
    let first = "every often do { changeLoadFactorBy(-50%); target = currentLoadFactor(); }";
    let second_phase = "setPopulusFactorTo(target); print(currentPopulusFactor());";
    let ramp = Factor { beg: 0.0, end: 0.8 };
    let phases = [(ramp, timed, first), (Factor::ONE, Goal::default(), second_phase)];
    let mut test = Test::new(globals, &phases);
    let mut said = Vec::new();
    while test.now < 12 * SECOND {
        said = test.step(second(1, 1));
        if test.now == 6 * SECOND {
            assert_eq!(said, ["6 fyi: load factor 40 % -> 40 %, 60 % at the end"]);
        }
    }
    // The slope was halved a second time at the very end.
    let Factor { beg, end } = test.load(0);
    assert!((beg - 0.4).abs() < 1e-9 && (end - 0.6).abs() < 1e-9, "{beg} {end}");
    assert_eq!(said, ["6 fyi: populus factor 100 % -> 60 %", "5 script output: 0.6"]);
    assert_eq!(test.load(1), Factor::ONE);
}

#[test]
fn sampling_goals_of_all_kinds_and_new_ones() {
    let globals =
        "Goal fill = { fill_size = 25KB; }; Goal errors = { errors = 3; }; Goal few = { xactions = 10; };";
    let script = "
        every fill do { StatSample s = currentSample(); print(\"fill \", s.fill.size.sum); }
        every errors do { StatSample s = currentSample(); print(\"errors \", s.err_xact.count); }
        every few do { setSamplingGoalTo(fill); print(\"few\"); }";
    let mut test = Test::new(globals, &[(Factor::ONE, Goal::default(), script)]);
    test.step(Window::default());
    let mut failing = second(13, 1);
    failing.failed = 2;
    let line = "6 fyi: watchdog at s.pg:6:9: every 25.0 KB filled from now on";
    assert_eq!(test.step(failing.clone()), ["5 script output: few", line]);
    assert_eq!(test.step(failing.clone()), ["5 script output: fill 25.3906KB", "5 script output: errors 4"]);
    assert_eq!(test.step(failing), ["5 script output: few"]);
}

#[test]
fn errors_are_told_with_their_place_and_the_test_goes_on() {
    let script = "Goal g = { duration = 1sec; }; int zero = 0; every g do { int n = 0; print(1 / n); } print(2 / zero); print(3);";
    let mut test = Test::new("", &[(Factor::ONE, Goal::default(), script)]);
    let begun = test.step(Window::default());
    assert_eq!(begun[0], "script, s.pg:3:96: division by zero");
    assert_eq!(begun.len(), 2, "{begun:?}");
    for _ in 0..2 {
        assert_eq!(
            test.step(second(1, 1)),
            ["5 script output: x"; 0]
                .map(str::to_owned)
                .to_vec()
                .into_iter()
                .chain(["script, s.pg:3:80: division by zero".to_owned()])
                .collect::<Vec<_>>()
        );
    }
    // A watchdog that starts another whenever it runs is stopped some time.
    let script = "Goal g = { duration = 1sec; }; every g do { Goal h = { duration = 1sec; }; every h do { } every h do { } }";
    let mut test = Test::new("", &[(Factor::ONE, Goal::default(), script)]);
    let told = (0..600)
        .flat_map(|_| test.step(Window::default()))
        .filter(|line| line.contains("more than 1000"))
        .count();
    assert!(told > 0 && told < 600);
}

#[test]
fn every_member_that_the_language_knows_is_there() {
    for path in stat_completions() {
        assert!(second(3, 5).member(path).is_ok(), "{path}");
    }
}

#[test]
fn servers_run_no_scripts() {
    let schedule = {
        let test = Test::new("", &[(Factor::ONE, Goal::default(), "print(1);")]);
        test.controller.plan.schedule.clone()
    };
    let timeline = Arc::new(Timeline::new(&schedule));
    let timeline_of = Arc::clone(&timeline);
    let plan = TestPlan {
        schedule,
        timeline,
        filled_before: 0,
        has_robots: false,
        idle_timeout: None,
        fail_timeout: None,
        peers: None,
    };
    let events = PhaseController::new(plan, Nanos::ZERO)
        .step(&Observations { now: nanos(1.0), ..Observations::default() });
    assert_eq!((events.len(), timeline_of.deltas_wanted()), (1, false));
}
