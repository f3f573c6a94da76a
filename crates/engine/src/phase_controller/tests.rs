//! Schedules conducted by hand.

use super::*;
use polygraph_plan::{Factor, Factors, Goal, Rptmstat, WorkingSetLimit};

const START: Nanos = Nanos::from_secs(100);

fn controller(schedule: Schedule, idle_timeout: Option<f64>) -> (PhaseController, Arc<Timeline>) {
    let timeline = Arc::new(Timeline::new(&schedule));
    let plan = TestPlan {
        schedule: Arc::new(schedule),
        timeline: Arc::clone(&timeline),
        filled_before: 0,
        has_robots: true,
        idle_timeout,
        fail_timeout: Some(15.0),
        peers: None,
    };
    (PhaseController::new(plan, START), timeline)
}

fn phase(name: &str, goal: Goal) -> Phase {
    Phase { name: name.into(), goal, ..Phase::default() }
}

fn schedule(phases: Vec<Phase>) -> Schedule {
    Schedule { phases, working_set: None }
}

/// What is observed `seconds` after the start, with so many good and failed transactions and fills of 1,000 bytes each.
fn observed(seconds: f64, ok: u64, failed: u64, fills: u64) -> Observations {
    let counts = Counts { ok, failed, fills, fill_bytes: 1000 * fills, ..Counts::default() };
    Observations { now: START + nanos(seconds), counts, activity: ok + failed, ..Observations::default() }
}

fn at(seconds: f64) -> Nanos {
    START + nanos(seconds)
}

/// Does this at every look.
#[derive(Debug)]
struct Hand(fn(&mut ControlHandle<'_>));

impl LoadController for Hand {
    fn begin(&mut self, _: &mut ControlHandle<'_>) {}

    fn look(&mut self, handle: &mut ControlHandle<'_>) {
        (self.0)(handle);
    }
}

#[test]
fn phases_follow_each_other_at_published_times() {
    let timed = phase("timed", Goal { duration: Some(2.0), ..Goal::default() });
    let counted = phase("counted", Goal { xactions: Some(10), errors: Some(5.0), ..Goal::default() });
    let (mut controller, timeline) = controller(schedule(vec![timed, counted]), None);
    assert!(controller.is_between());
    assert_eq!(controller.step(&observed(0.0, 0, 0, 0)), [ControlEvent::PhaseStarts { phase: 0, at: START }]);
    assert_eq!((timeline.end(0), timeline.end(1)), (Some(at(2.0)), None), "durations are known ahead");
    assert_eq!(controller.step(&observed(1.99, 7, 4, 0)), []);
    let end = ControlEvent::PhaseEnds { phase: 0, at: at(2.0), complete: true };
    assert_eq!(controller.step(&observed(2.01, 8, 4, 0)), [end]);
    assert!(controller.is_between() && !controller.is_done(at(2.01)));
    assert_eq!(
        controller.step(&observed(2.02, 8, 4, 0)),
        [ControlEvent::PhaseStarts { phase: 1, at: at(2.0) }],
        "a phase begins where the one before it has ended, however late that is observed"
    );
    // Only what was counted in the phase counts.
    assert_eq!(controller.step(&observed(3.0, 16, 5, 0)), []);
    assert_eq!(timeline.end(1), None);
    assert_eq!(controller.step(&observed(4.0, 17, 5, 0)), []);
    assert_eq!(timeline.end(1), Some(at(4.0) + NOTICE));
    let last = at(4.0) + NOTICE;
    assert!(controller.is_done(last) && !controller.is_done(last - Nanos::new(1)));
    let end = ControlEvent::PhaseEnds { phase: 1, at: last, complete: true };
    assert_eq!(controller.step(&observed(4.2, 18, 5, 0)), [end]);
    assert_eq!(controller.ended(), Some(&EndReason::Finished));
    assert_eq!(controller.step(&observed(9.0, 18, 5, 0)), []);
}

#[test]
fn a_run_is_cut_by_errors_silence_and_from_outside() {
    let endless = || phase("meas", Goal { errors: Some(3.0), ..Goal::default() });
    let timed = || phase("meas", Goal { duration: Some(60.0), errors: Some(3.0), ..Goal::default() });
    let stopped = Observations { stop: Some(EndReason::Interrupted), ..observed(7.0, 5, 2, 0) };
    // The phase, what is observed after 5 s, whether the phase counts as complete, and why the run ends.
    let rows = [
        (timed(), observed(7.0, 5, 3, 0), false, EndReason::ErrorGoal { phase: "meas".into() }),
        (timed(), observed(11.1, 1, 0, 0), false, EndReason::Idle),
        (timed(), stopped.clone(), false, EndReason::Interrupted),
        (endless(), stopped, true, EndReason::Interrupted),
    ];
    for (first, look, complete, reason) in rows {
        let last = phase("cool", Goal { duration: Some(1.0), ..Goal::default() });
        let (mut controller, timeline) = controller(schedule(vec![first, last]), Some(10.0));
        controller.step(&observed(0.0, 0, 0, 0));
        assert_eq!(controller.step(&observed(1.0, 1, 0, 0)), []);
        let end = look.now + NOTICE;
        assert_eq!(controller.step(&look), [ControlEvent::PhaseEnds { phase: 0, at: end, complete }]);
        assert_eq!(controller.ended(), Some(&reason));
        assert_eq!((timeline.end(0), timeline.end(1)), (Some(end), Some(end)));
    }
}

#[test]
fn a_phase_waits_for_the_frozen_working_set() {
    let fill = Phase {
        wait_wss_freeze: true,
        ..phase("fill", Goal { duration: Some(1.0), fill_size: Some(5_000), ..Goal::default() })
    };
    let plan = Schedule { phases: vec![fill], working_set: Some(WorkingSetLimit::Fill(8)) };
    let (mut controller, timeline) = controller(plan, None);
    controller.step(&observed(0.0, 0, 0, 0));
    assert_eq!(timeline.end(0), None, "a lock may stand against it");
    assert_eq!(controller.step(&observed(0.5, 1, 0, 1)).len(), 1, "fill started");
    let held = "phase fill: goal reached, but the working set is not frozen yet";
    assert_eq!(controller.step(&observed(2.0, 6, 0, 6)), [ControlEvent::message(at(2.0), 1, held)]);
    assert_eq!(controller.step(&observed(2.5, 7, 0, 7)), [], "said once");
    assert_eq!((timeline.end(0), timeline.frozen_from()), (None, None));
    let frozen = "working set frozen: 8 objects, 7.81 KB filled";
    assert_eq!(controller.step(&observed(3.0, 8, 0, 8)), [ControlEvent::message(at(3.0), 5, frozen)]);
    let soon = Some(at(3.0) + NOTICE);
    assert_eq!((timeline.end(0), timeline.frozen_from()), (soon, soon));
}

#[test]
fn a_set_that_freezes_by_the_clock_does_so_at_the_same_moment_whenever_anybody_looks() {
    let plan = Schedule {
        phases: vec![phase("p", Goal { duration: Some(9.0), ..Goal::default() })],
        working_set: Some(WorkingSetLimit::After(4.0)),
    };
    let (mut controller, timeline) = controller(plan, None);
    assert_eq!(timeline.frozen_from(), Some(at(4.0)));
    for second in [0.0, 3.0, 5.5] {
        controller.step(&observed(second, 1, 0, 1));
    }
    assert_eq!(timeline.frozen_from(), Some(at(4.0)));
}

#[test]
fn progress_follows_the_goal_and_factors_can_be_adjusted() {
    let factors = Factors { load: Factor { beg: 0.0, end: 1.0 }, ..Factors::ONE };
    let count = Phase { factors, ..phase("count", Goal { xactions: Some(10), ..Goal::default() }) };
    let (mut controller, timeline) = controller(schedule(vec![count]), None);
    let hand = Hand(|handle| match handle.now >= at(1.5) {
        true => handle.satisfy(),
        false => handle.adjust(Adjustment::LoadTo(0.2)),
    });
    controller.add_load_controller(0, Box::new(hand));
    controller.step(&observed(0.0, 0, 0, 0));
    controller.step(&observed(1.0, 4, 1, 0));
    assert_eq!((timeline.progress(0), timeline.factors(0).load.at(0.5)), (0.5, 0.2));
    assert_eq!(timeline.end(0), None);
    controller.step(&observed(1.5, 4, 1, 0));
    assert_eq!(timeline.end(0), Some(at(1.5) + NOTICE));
}

#[test]
fn a_phase_begins_where_the_one_before_it_really_ended() {
    use polygraph_plan::{Inheritance, Inherited};
    let rise = Factors { load: Factor { beg: 0.0, end: 1.0 }, ..Factors::ONE };
    let timed = Goal { duration: Some(10.0), xactions: Some(100), ..Goal::default() };
    let ramp = Phase { factors: rise, ..phase("ramp", timed) };
    let inherited = Inheritance { load: Inherited::Whole, ..Inheritance::default() };
    let flat = Phase { inherited, ..phase("flat", Goal { duration: Some(5.0), ..Goal::default() }) };
    let inherited = Inheritance { load: Inherited::Begin, ..Inheritance::default() };
    let fall = Factors { load: Factor { beg: 1.0, end: 0.1 }, ..Factors::ONE };
    let fall =
        Phase { inherited, factors: fall, ..phase("fall", Goal { duration: Some(5.0), ..Goal::default() }) };
    let (mut controller, timeline) = controller(schedule(vec![ramp, flat, fall]), None);
    let hand = Hand(|handle| {
        if handle.now == at(8.0) {
            handle.adjust(Adjustment::LoadTo(0.25));
        }
    });
    controller.add_load_controller(1, Box::new(hand));
    controller.step(&observed(0.0, 0, 0, 0));
    // The count is met early, at 3.9 s; the phase ends a tenth of a second later.
    controller.step(&observed(3.9, 100, 0, 0));
    let near = |factor: Factor, beg: f64, end: f64| {
        assert!((factor.beg - beg).abs() < 1e-9 && (factor.end - end).abs() < 1e-9, "{factor:?}");
    };
    near(timeline.factors(1).load, 0.4, 0.4);
    controller.step(&observed(4.0, 101, 0, 0));
    controller.step(&observed(4.01, 101, 0, 0));
    near(timeline.factors(1).load, 0.4, 0.4);
    // Adjusted after the end was published, a moment before the next phase.
    controller.step(&observed(8.0, 200, 0, 0));
    controller.step(&observed(9.01, 210, 0, 0));
    controller.step(&observed(9.02, 210, 0, 0));
    near(timeline.factors(2).load, 0.25, 0.1);
}

/// A process of a test with peers: `robots` or servers, in phases of 10 s.
fn one_of_many(robots: bool, phases: usize) -> (PhaseController, Arc<Timeline>) {
    let goal = Goal { duration: Some(10.0), ..Goal::default() };
    let phase = |number: usize| Phase { synchronize: true, ..phase(&format!("p{number}"), goal) };
    let plan = schedule((0..phases).map(phase).collect());
    let timeline = Arc::new(Timeline::new(&plan));
    let plan = TestPlan {
        schedule: Arc::new(plan),
        timeline: Arc::clone(&timeline),
        filled_before: 0,
        has_robots: robots,
        idle_timeout: None,
        fail_timeout: Some(15.0),
        peers: Some(PeerSettings { own: vec![id(1)], patience: Some(30.0) }),
    };
    let mut controller = PhaseController::new(plan, START);
    controller.step(&observed(0.0, 0, 0, 0));
    (controller, timeline)
}

fn id(group: u32) -> polygraph_traffic::UniqId {
    polygraph_traffic::UniqId { time: group, mix: 0, counter: 2 }
}

/// A look after so many seconds at which `side` group 2 has just told its position, and others as well.
fn heard(seconds: f64, side: Side, positions: &[u64]) -> Observations {
    let statuses = positions.iter().enumerate().map(|(number, &position)| {
        let group = id(2 + number as u32);
        (
            side,
            PeerStatus {
                group,
                position,
                waits: false,
                at: at(seconds).as_u64(),
                gone: None,
                replaced: false,
            },
        )
    });
    Observations { statuses: statuses.collect(), activity: seconds as u64, ..observed(seconds, 0, 0, 0) }
}

#[test]
fn clients_wait_for_what_servers_tell() {
    let (mut controller, timeline) = one_of_many(true, 2);
    let standing = |position, waits| {
        let standing = timeline.phase_status();
        assert_eq!((standing.position, standing.waits, standing.gone), (position, waits, None));
    };
    controller.step(&heard(5.0, Side::Server, &[0, 0]));
    assert_eq!(timeline.end(0), None, "others may stand against it");
    standing(0, false);
    let said = controller.step(&heard(10.0, Side::Server, &[0, 0]));
    assert!(said.contains(&ControlEvent::message(
        at(10.0),
        1,
        "phase p0: goal reached, but other processes have not reached its end yet"
    )));
    standing(1, true);
    controller.step(&heard(12.0, Side::Server, &[1, 0]));
    assert_eq!(timeline.end(0), None);
    let said = controller.step(&heard(12.5, Side::Server, &[1, 1]));
    assert_eq!(
        said,
        [ControlEvent::message(at(12.5), 5, "phase p0: all 3 processes have reached its end, after 2.50 s")]
    );
    assert_eq!(timeline.end(0), Some(at(12.5) + NOTICE));
    controller.step(&heard(12.7, Side::Server, &[1, 1]));
    controller.step(&heard(12.7, Side::Server, &[1, 1]));
    standing(1, false);
    // The second phase is as long as it was meant to be, and ends the test.
    controller.step(&heard(22.0, Side::Server, &[1, 1]));
    controller.step(&heard(22.5, Side::Server, &[2, 2]));
    controller.step(&heard(22.8, Side::Server, &[2, 2]));
    assert_eq!(controller.ended(), Some(&EndReason::Finished));
    assert_eq!((timeline.phase_status().position, controller.servers_linger()), (2, None));
}

#[test]
fn servers_go_with_the_last_client() {
    let (mut controller, timeline) = one_of_many(false, 2);
    controller.step(&heard(12.0, Side::Client, &[1, 0]));
    assert_eq!((timeline.end(0), timeline.phase_status().least), (None, 0));
    // A client that went on already is followed, whatever the own goal says; a new one is waited for.
    controller.step(&heard(13.0, Side::Client, &[1, 1]));
    assert_eq!(timeline.end(0), Some(at(13.0) + NOTICE));
    assert_eq!((timeline.phase_status().position, timeline.phase_status().least), (1, 1));
    controller.step(&heard(13.2, Side::Client, &[1, 1]));
    controller.step(&heard(13.2, Side::Client, &[1, 1, 0]));
    assert_eq!((timeline.phase_status().position, timeline.phase_status().least), (1, 0));
    controller.step(&heard(30.0, Side::Client, &[2, 2, 1]));
    assert_eq!(timeline.end(1), None);
    controller.step(&heard(31.0, Side::Client, &[2, 2, 2]));
    // The activity of these observations changes with each second.
    controller.step(&heard(32.0, Side::Client, &[2, 2, 2]));
    controller.step(&heard(32.4, Side::Client, &[2, 2, 2]));
    assert_eq!(timeline.end(1), None, "the clients may still receive replies");
    controller.step(&heard(32.5, Side::Client, &[2, 2, 2]));
    assert_eq!(timeline.end(1), Some(at(32.5) + NOTICE));
    controller.step(&heard(32.7, Side::Client, &[2, 2, 2]));
    assert_eq!(controller.ended(), Some(&EndReason::Finished));
    assert_eq!(controller.servers_linger(), Some(3.0), "robots have yet to hear of it");
}

#[test]
fn servers_stay_in_a_phase_for_as_long_as_clients_wait_for_another_server() {
    let (mut controller, timeline) = one_of_many(false, 2);
    let waiting = |seconds, positions| {
        let mut observed = heard(seconds, Side::Client, positions);
        observed.statuses.iter_mut().for_each(|(_, status)| status.waits = true);
        observed
    };
    controller.step(&waiting(12.0, &[1, 1]));
    let standing = timeline.phase_status();
    assert_eq!((standing.position, standing.least, timeline.end(0)), (1, 1, None));
    controller.step(&heard(14.0, Side::Client, &[1]));
    assert_eq!(timeline.end(0), Some(at(14.0) + NOTICE));
    controller.step(&heard(14.2, Side::Client, &[1]));
    controller.step(&heard(14.2, Side::Client, &[1]));
    // Of the end of the last phase nobody tells. Traffic that does not end delays it, but not for ever.
    for tenth in 250..350 {
        controller.step(&Observations { activity: tenth, ..waiting(tenth as f64 / 10.0, &[2, 2]) });
        assert_eq!(timeline.end(1), None, "{tenth}");
    }
    controller.step(&Observations { activity: 350, ..waiting(35.0, &[2, 2]) });
    assert_eq!(timeline.end(1), Some(at(35.0) + NOTICE));
}

#[test]
fn who_gives_no_sign_ends_the_test() {
    let lost = |controller: &PhaseController, timeline: &Timeline, side: &str| {
        let Some(EndReason::Fatal { why, .. }) = controller.ended() else {
            panic!("{:?}", controller.ended())
        };
        let expected = format!("the {side} process {} has sent no status for 30 s", id(3));
        assert!(why.starts_with(&expected), "{why}");
        assert_eq!(timeline.phase_status().gone, Some(id(3)));
    };
    let silent = |from: u64, until: u64, positions: &[u64], side, controller: &mut PhaseController| {
        // Group 3 was heard once, group 2 all the time.
        controller.step(&heard(from as f64, side, positions));
        for half in 2 * from..2 * until {
            controller.step(&heard(half as f64 / 2.0, side, &positions[..1]));
        }
    };
    let (mut client, timeline) = one_of_many(true, 2);
    silent(9, 38, &[1, 0], Side::Server, &mut client);
    assert_eq!(client.ended(), None);
    silent(38, 45, &[1], Side::Server, &mut client);
    lost(&client, &timeline, "server");

    let (mut server, timeline) = one_of_many(false, 2);
    silent(9, 38, &[1, 0], Side::Client, &mut server);
    assert_eq!(server.ended(), None);
    silent(38, 41, &[1], Side::Client, &mut server);
    lost(&server, &timeline, "client");
    assert_eq!(server.servers_linger(), Some(3.0), "the others learn who is missing");

    // A process that has slept could not hear anybody.
    let (mut server, _) = one_of_many(false, 2);
    silent(9, 20, &[1, 0], Side::Client, &mut server);
    server.step(&heard(60.0, Side::Client, &[1]));
    assert_eq!(server.ended(), None);
}

#[test]
fn who_has_enough_does_not_wait_for_the_time() {
    let timed = phase("timed", Goal { duration: Some(60.0), ..Goal::default() });
    let (mut controller, timeline) = controller(schedule(vec![timed]), None);
    controller.add_load_controller(0, Box::new(Hand(|handle| handle.satisfy())));
    controller.step(&observed(0.0, 0, 0, 0));
    assert_eq!(timeline.end(0), Some(at(60.0)));
    controller.step(&observed(1.0, 1, 0, 0));
    controller.step(&observed(1.05, 1, 0, 0));
    assert_eq!(timeline.end(0), Some(at(1.0) + NOTICE));
}

/// Doubles the load with each sample of ten transactions, and has enough of it at full load.
#[derive(Debug)]
struct Doubler(Sampler);

impl LoadController for Doubler {
    fn begin(&mut self, handle: &mut ControlHandle<'_>) {
        self.0 = Sampler::new(self.0.goal, handle.now);
    }

    fn look(&mut self, handle: &mut ControlHandle<'_>) {
        if self.0.look(handle.now, handle.delta).is_none() {
            return;
        }
        handle.adjust(Adjustment::LoadBy(1.0));
        if handle.load() == 1.0 {
            handle.satisfy();
        }
    }
}

#[test]
fn governors_see_what_is_new_and_steer_their_phase() {
    let delta = |count: u64| {
        let mut delta = Window::default();
        (0..count).for_each(|_| delta.classes[0].record(1000, 10));
        delta
    };
    let factors = Factors { load: Factor::flat(0.3), ..Factors::ONE };
    let free = phase("free", Goal { duration: Some(1.0), ..Goal::default() });
    let steered = Phase { factors, ..phase("steered", Goal::default()) };
    let (mut controller, timeline) = controller(schedule(vec![free, steered]), None);
    assert!(!timeline.deltas_wanted());
    let goal = Goal { xactions: Some(10), ..Goal::default() };
    controller.add_load_controller(1, Box::new(Doubler(Sampler::new(goal, Nanos::ZERO))));
    assert!(timeline.deltas_wanted());
    let step = |controller: &mut PhaseController, seconds, count| {
        controller.step(&Observations { delta: delta(count), ..observed(seconds, 0, 0, 0) })
    };
    step(&mut controller, 0.0, 0);
    assert_eq!(step(&mut controller, 0.5, 50), [], "nobody steers the first phase");
    step(&mut controller, 1.0, 0);
    step(&mut controller, 1.0, 0);
    assert_eq!(step(&mut controller, 2.0, 9), []);
    let said = "fyi: load factor 30 % -> 60 %";
    assert_eq!(step(&mut controller, 3.0, 1), [ControlEvent::message(at(3.0), 6, said)]);
    assert_eq!((timeline.factors(1).load, timeline.end(1)), (Factor::flat(0.6), None));
    step(&mut controller, 4.0, 10);
    assert_eq!(timeline.factors(1).load, Factor::ONE);
    assert_eq!(timeline.end(1), Some(at(4.0) + NOTICE));
}

#[test]
fn a_thermostat_holds_the_response_time_and_tells() {
    let rule = Rptmstat { sample_dur: 10.0, load_delta: 0.1, rptm_min: Some(1.4), rptm_max: Some(1.5) };
    let factors = Factors { load: Factor::flat(0.5), ..Factors::ONE };
    let held = Phase { factors, rptmstat: Some(rule), ..phase("held", Goal::default()) };
    let (mut controller, timeline) = controller(schedule(vec![held]), None);
    assert!(timeline.deltas_wanted());
    // Ten transactions of the same response time.
    let mut step = |seconds, rptm: Option<f64>| {
        let mut delta = Window::lasting(1.0);
        if let Some(rptm) = rptm {
            (0..10).for_each(|_| delta.classes[0].record((rptm * 1e6) as u64, 10));
        }
        let events = controller.step(&Observations { delta, ..observed(seconds, 0, 0, 0) });
        let said = |event: ControlEvent| match event {
            ControlEvent::Message { level, text, .. } => Some((level, text)),
            _ => None,
        };
        events.into_iter().filter_map(said).collect::<Vec<_>>()
    };
    let started = step(0.0, None);
    assert_eq!(
        started[0],
        (6, "fyi: rptmstat: samples of 10 s, load changes by 10 % to keep the mean response time between 1,400 ms and 1,500 ms".into())
    );
    assert_eq!(step(9.9, Some(9.0)), [], "not yet");
    // The sample's mean is of all in it.
    let low = "fyi: load factor 50 % -> 45 %";
    let rptm = "fyi: rptmstat: mean response time 5,100 ms changes load by -10 %";
    assert_eq!(step(10.0, Some(1.2)), [(7, rptm.into()), (6, low.into())]);
    assert_eq!(timeline.factors(0).load, Factor::flat(0.45));
    let fine = "fyi: rptmstat: mean response time 1,450 ms requires no load adjustment";
    assert_eq!(step(20.0, Some(1.45)), [(8, fine.to_owned())]);
    let high = "fyi: load factor 45 % -> 49.5 %";
    let rptm = "fyi: rptmstat: mean response time 10.0 ms changes load by +10 %";
    assert_eq!(step(30.0, Some(0.01)), [(7, rptm.into()), (6, high.into())]);
    let nothing = "fyi: rptmstat: no transactions to judge the response time by";
    assert_eq!(step(40.0, None), [(7, nothing.to_owned())]);
    assert!((timeline.factors(0).load.beg - 0.495).abs() < 1e-9);
}

#[test]
fn a_test_in_which_nothing_succeeds_ends() {
    let endless = || phase("fill", Goal { fill_size: Some(1_000_000), ..Goal::default() });
    let (mut controller, _) = controller(schedule(vec![endless()]), None);
    controller.step(&observed(0.0, 0, 0, 0));
    controller.step(&observed(4.0, 5, 100, 5));
    // Few failures are no reason, nor are many while something succeeds.
    controller.step(&observed(18.9, 6, 2_000, 6));
    controller.step(&observed(60.0, 6, 2_009, 6));
    assert_eq!(controller.ended(), None);
    let said = controller.step(&observed(60.1, 6, 2_010, 6));
    assert_eq!(controller.ended(), Some(&EndReason::ErrorGoal { phase: "fill".into() }));
    let text = "phase fill: nothing has succeeded for 41.2 s, and 10 transactions failed: the test ends";
    assert_eq!(said.first(), Some(&ControlEvent::message(at(60.1), 0, text)));
}

#[test]
fn transactions_that_only_wait_are_waited_for_longer() {
    let plan = schedule(vec![phase("fill", Goal { fill_size: Some(1_000_000), ..Goal::default() })]);
    let (mut controller, _) = controller(plan, None);
    let waiting = |seconds, started| Observations {
        counts: Counts { started, ..Counts::default() },
        ..observed(seconds, 0, 0, 0)
    };
    controller.step(&waiting(0.0, 0));
    controller.step(&waiting(299.9, 10));
    assert_eq!(controller.ended(), None);
    controller.step(&waiting(300.1, 10));
    assert_eq!(controller.ended(), Some(&EndReason::ErrorGoal { phase: "fill".into() }));
}

#[test]
fn a_phase_that_cannot_fill_the_cache_ends() {
    let fill = phase("fill", Goal { fill_size: Some(1_000_000), ..Goal::default() });
    let timed = Goal { duration: Some(500.0), ..Goal::default() };
    let waits = Phase { wait_wss_freeze: true, ..phase("waits", timed) };
    let set = Some(WorkingSetLimit::Fill(100));
    let frozen_in_time = Some(WorkingSetLimit::After(400.0));
    // The phase, when the working set freezes, and whether the phase is given up.
    for (phase, working_set, given_up) in [
        (fill, None, true),
        (waits.clone(), set, true),
        (waits, frozen_in_time, false),
        (self::phase("timed", timed), set, false),
    ] {
        let (mut controller, _) = controller(Schedule { phases: vec![phase.clone()], working_set }, None);
        controller.step(&observed(0.0, 0, 0, 0));
        controller.step(&observed(10.0, 50, 0, 50));
        controller.step(&observed(69.0, 2_000, 0, 50));
        assert_eq!(controller.ended(), None);
        controller.step(&observed(70.0, 2_000, 0, 50));
        let why = match controller.ended() {
            Some(EndReason::NoEnd(why)) => why.as_str(),
            _ => "",
        };
        assert_eq!(
            why.contains("none of 1950 transactions"),
            given_up,
            "{}: {:?}",
            phase.name,
            controller.ended()
        );
    }
}
