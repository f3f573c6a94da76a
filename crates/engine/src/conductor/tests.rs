//! Schedules conducted by hand.

use super::*;
use polygraph_plan::{Factor, Goal, WorkingSetLimit};

const START: Nanos = 100 * SECOND;

fn conductor(schedule: Schedule, idle_timeout: Option<f64>) -> (Conductor, Arc<Timeline>) {
    let timeline = Arc::new(Timeline::new(&schedule));
    let score = Score {
        schedule: Arc::new(schedule),
        timeline: Arc::clone(&timeline),
        filled_before: 0,
        has_robots: true,
        idle_timeout,
    };
    (Conductor::new(score, START), timeline)
}

fn phase(name: &str, goal: Goal) -> Phase {
    Phase { name: name.into(), goal, ..Phase::default() }
}

fn schedule(phases: Vec<Phase>) -> Schedule {
    Schedule { phases, working_set: None }
}

/// What is seen `seconds` after the start, with so many good and failed transactions and fills of 1,000 bytes each.
fn seen(seconds: f64, ok: u64, failed: u64, fills: u64) -> Seen {
    let counts = Counts { ok, failed, fills, fill_bytes: 1000 * fills, ..Counts::default() };
    Seen { now: START + nanos(seconds), counts, activity: ok + failed, ..Seen::default() }
}

fn at(seconds: f64) -> Nanos {
    START + nanos(seconds)
}

#[test]
fn phases_follow_each_other_at_published_times() {
    let timed = phase("timed", Goal { duration: Some(2.0), ..Goal::default() });
    let counted = phase("counted", Goal { xactions: Some(10), errors: Some(5.0), ..Goal::default() });
    let (mut conductor, timeline) = conductor(schedule(vec![timed, counted]), None);
    assert!(conductor.is_between());
    assert_eq!(conductor.step(&seen(0.0, 0, 0, 0)), [Event::PhaseBegins { phase: 0, at: START }]);
    assert_eq!((timeline.end(0), timeline.end(1)), (Some(at(2.0)), None), "durations are known ahead");
    assert_eq!(conductor.step(&seen(1.99, 7, 4, 0)), []);
    let end = Event::PhaseEnds { phase: 0, at: at(2.0), complete: true };
    assert_eq!(conductor.step(&seen(2.01, 8, 4, 0)), [end]);
    assert!(conductor.is_between() && !conductor.is_done(at(2.01)));
    assert_eq!(
        conductor.step(&seen(2.02, 8, 4, 0)),
        [Event::PhaseBegins { phase: 1, at: at(2.0) }],
        "a phase begins where the one before it has ended, however late that is seen"
    );
    // Only what was counted in the phase counts.
    assert_eq!(conductor.step(&seen(3.0, 16, 5, 0)), []);
    assert_eq!(timeline.end(1), None);
    assert_eq!(conductor.step(&seen(4.0, 17, 5, 0)), []);
    assert_eq!(timeline.end(1), Some(at(4.0) + NOTICE));
    let last = at(4.0) + NOTICE;
    assert!(conductor.is_done(last) && !conductor.is_done(last - 1));
    let end = Event::PhaseEnds { phase: 1, at: last, complete: true };
    assert_eq!(conductor.step(&seen(4.2, 18, 5, 0)), [end]);
    assert_eq!(conductor.ended(), Some(&EndReason::Finished));
    assert_eq!(conductor.step(&seen(9.0, 18, 5, 0)), []);
}

#[test]
fn a_run_is_cut_by_errors_silence_and_from_outside() {
    let endless = || phase("meas", Goal { errors: Some(3.0), ..Goal::default() });
    let timed = || phase("meas", Goal { duration: Some(60.0), errors: Some(3.0), ..Goal::default() });
    let stopped = Seen { stop: Some(EndReason::Interrupted), ..seen(7.0, 5, 2, 0) };
    // The phase, what is seen after 5 s, whether the phase counts as complete, and why the run ends.
    let rows = [
        (timed(), seen(7.0, 5, 3, 0), false, EndReason::ErrorGoal { phase: "meas".into() }),
        (timed(), seen(11.1, 1, 0, 0), false, EndReason::Idle),
        (timed(), stopped.clone(), false, EndReason::Interrupted),
        (endless(), stopped, true, EndReason::Interrupted),
    ];
    for (first, look, complete, reason) in rows {
        let last = phase("cool", Goal { duration: Some(1.0), ..Goal::default() });
        let (mut conductor, timeline) = conductor(schedule(vec![first, last]), Some(10.0));
        conductor.step(&seen(0.0, 0, 0, 0));
        assert_eq!(conductor.step(&seen(1.0, 1, 0, 0)), []);
        let end = look.now + NOTICE;
        assert_eq!(conductor.step(&look), [Event::PhaseEnds { phase: 0, at: end, complete }]);
        assert_eq!(conductor.ended(), Some(&reason));
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
    let (mut conductor, timeline) = conductor(plan, None);
    conductor.step(&seen(0.0, 0, 0, 0));
    assert_eq!(timeline.end(0), None, "a lock may stand against it");
    assert_eq!(conductor.step(&seen(0.5, 1, 0, 1)).len(), 1, "fill started");
    assert_eq!(conductor.step(&seen(2.0, 6, 0, 6)), []);
    assert_eq!((timeline.end(0), timeline.is_frozen()), (None, false));
    let frozen = "working set frozen: 8 objects, 8000 bytes filled";
    assert_eq!(conductor.step(&seen(3.0, 8, 0, 8)), [Event::said(at(3.0), 5, frozen)]);
    assert_eq!((timeline.end(0), timeline.is_frozen()), (Some(at(3.0) + NOTICE), true));
}

#[test]
fn progress_follows_the_goal_and_factors_can_be_adjusted() {
    let factors = Factors { load: Factor { beg: 0.0, end: 1.0 }, ..Factors::ONE };
    let count = Phase { factors, ..phase("count", Goal { xactions: Some(10), ..Goal::default() }) };
    let (mut conductor, timeline) = conductor(schedule(vec![count]), None);
    conductor.step(&seen(0.0, 0, 0, 0));
    let look = seen(1.0, 4, 1, 0);
    conductor.step(&look);
    assert_eq!((conductor.progress(&look), timeline.progress(0)), (0.5, 0.5));
    conductor.adjust(Adjustment::LoadTo(0.2), &look);
    assert_eq!(timeline.factors(0).load.at(0.5), 0.2);
    assert_eq!(conductor.factors(), Some(timeline.factors(0)));
    conductor.satisfy();
    conductor.step(&seen(1.5, 4, 1, 0));
    assert_eq!(timeline.end(0), Some(at(1.5) + NOTICE));
}

#[test]
fn who_has_enough_does_not_wait_for_the_time() {
    let timed = phase("timed", Goal { duration: Some(60.0), ..Goal::default() });
    let (mut conductor, timeline) = conductor(schedule(vec![timed]), None);
    conductor.step(&seen(0.0, 0, 0, 0));
    assert_eq!(timeline.end(0), Some(at(60.0)));
    conductor.satisfy();
    conductor.step(&seen(1.0, 1, 0, 0));
    conductor.step(&seen(1.05, 1, 0, 0));
    assert_eq!(timeline.end(0), Some(at(1.0) + NOTICE));
}

/// Doubles the load with each sample of ten transactions, and has enough of it at full load.
#[derive(Debug)]
struct Doubler(Sampler);

impl Governor for Doubler {
    fn begin(&mut self, helm: &mut Helm<'_>) {
        self.0 = Sampler::new(self.0.goal, helm.now);
    }

    fn look(&mut self, helm: &mut Helm<'_>) {
        if self.0.look(helm.now, helm.news).is_none() {
            return;
        }
        helm.adjust(Adjustment::LoadBy(1.0));
        if helm.load() == 1.0 {
            helm.satisfy();
        }
    }
}

#[test]
fn governors_see_what_is_new_and_steer_their_phase() {
    let news = |count: u64| {
        let mut news = Window::default();
        (0..count).for_each(|_| news.classes[0].record(1000, 10));
        news
    };
    let factors = Factors { load: Factor::flat(0.3), ..Factors::ONE };
    let free = phase("free", Goal { duration: Some(1.0), ..Goal::default() });
    let steered = Phase { factors, ..phase("steered", Goal::default()) };
    let (mut conductor, timeline) = conductor(schedule(vec![free, steered]), None);
    assert!(!timeline.news_wanted());
    let goal = Goal { xactions: Some(10), ..Goal::default() };
    conductor.engage(1, Box::new(Doubler(Sampler::new(goal, 0))));
    assert!(timeline.news_wanted());
    let step = |conductor: &mut Conductor, seconds, count| {
        conductor.step(&Seen { news: news(count), ..seen(seconds, 0, 0, 0) })
    };
    step(&mut conductor, 0.0, 0);
    assert_eq!(step(&mut conductor, 0.5, 50), [], "nobody steers the first phase");
    step(&mut conductor, 1.0, 0);
    step(&mut conductor, 1.0, 0);
    assert_eq!(step(&mut conductor, 2.0, 9), []);
    let said = "fyi: load factor 30.00% -> 60.00%";
    assert_eq!(step(&mut conductor, 3.0, 1), [Event::said(at(3.0), 6, said)]);
    assert_eq!((timeline.factors(1).load, timeline.end(1)), (Factor::flat(0.6), None));
    step(&mut conductor, 4.0, 10);
    assert_eq!(timeline.factors(1).load, Factor::ONE);
    assert_eq!(timeline.end(1), Some(at(4.0) + NOTICE));
}
