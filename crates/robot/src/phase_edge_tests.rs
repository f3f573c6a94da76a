//! Edges of phases and of the working set are at moments in which requests are due, whenever loops hear of them.

use std::rc::Rc;

use polygraph_link::{Link, Nanos, SECOND, yield_now};
use polygraph_stats::Recorder;
use polygraph_traffic::IdSource;

use crate::RobotGroup;
use crate::group_tests::{pages, settings};
use crate::load::pace::{Pace, Ramp};
use crate::testing::{Answer, TestLink, object};

/// A link whose server answers at once.
fn link() -> TestLink {
    let catalog = pages();
    TestLink::new(move |ask| Answer::Reply(object(&catalog, ask, "Content-Type: text/html\r\n"), Nanos::ZERO))
}

#[test]
fn the_working_set_has_what_was_due_before_it_froze_whenever_that_is_told() {
    let window = |told: Nanos| {
        let link = link();
        let settings = settings(pages(), |robot| robot.embed_recur = 0.0);
        let group = RobotGroup::new((*link).clone(), settings, Recorder::new(), IdSource::reproducible(1, 1));
        link.spawn(Rc::clone(&group).run(Nanos::ZERO));
        link.run(told);
        group.freeze_working_set(5 * SECOND);
        link.run(10 * SECOND);
        let before = link.asked().iter().filter(|ask| ask.at < 5 * SECOND).count() as u64;
        let galaxies = group.working_set().galaxies;
        let windows =
            galaxies.iter().flat_map(|(_, galaxy)| &galaxy.worlds).map(|world| world.facts().window);
        (windows.sum::<Option<u64>>(), before)
    };
    // Nothing is asked for twice.
    let (early, before) = window(SECOND);
    assert!(early == Some(before) && before > 30, "{early:?} of {before}");
    assert_eq!(window(5 * SECOND - Nanos::new(1)), (early, before));
}

#[test]
fn launches_that_are_late_belong_to_the_phase_in_which_they_were_due() {
    let link = link();
    let settings = settings(pages(), |robot| robot.embed_recur = 0.0);
    let group = RobotGroup::new((*link).clone(), settings, Recorder::new(), IdSource::reproducible(1, 1));
    // The loop is ten seconds late, and its keeper comes to tell of the next phase after many launches.
    link.run(10 * SECOND);
    group.set_pace_end(5 * SECOND);
    link.spawn(Rc::clone(&group).run(Nanos::ZERO));
    let keeper = Rc::clone(&group);
    link.spawn(async move {
        for _ in 0..20 {
            yield_now().await;
        }
        keeper.set_pace(Pace { load: Ramp::flat(0.0), ..Pace::FULL });
        keeper.set_pace_end(Nanos::MAX);
    });
    link.run(20 * SECOND);
    // Ten a second for five seconds: 50, with a standard deviation of 7.
    let asked = link.asked().len();
    assert!((15..85).contains(&asked), "{asked}");
}
