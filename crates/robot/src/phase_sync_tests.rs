//! Robots in a test of several processes.

use polygraph_link::Nanos;
use std::cell::Cell;
use std::rc::Rc;

use polygraph_link::{Link, SECOND};
use polygraph_sim::VirtualLink;
use polygraph_stats::Recorder;
use polygraph_traffic::groups::PhaseStatus;
use polygraph_traffic::{Catalog, IdSource};

use crate::RobotGroup;
use crate::group_tests::{pages, settings};
use crate::load::pace::{Pace, Ramp};
use crate::settings::Settings;
use crate::testing::{Answer, TestLink, object};

/// The same robot in a test of several processes, whose group can be looked at.
fn in_step(link: &TestLink, catalog: Catalog) -> (Rc<RobotGroup<VirtualLink>>, Recorder) {
    let settings = Settings { share_phases: true, ..settings(catalog, |robot| robot.embed_recur = 0.0) };
    let recorder = Recorder::new();
    let group = RobotGroup::new((**link).clone(), settings, recorder.clone(), IdSource::reproducible(1, 1));
    link.spawn(Rc::clone(&group).run(Nanos::ZERO));
    (group, recorder)
}

#[test]
fn only_servers_themselves_tell_of_phases() {
    let catalog = pages();
    let stale = Rc::new(Cell::new(false));
    let link = TestLink::new({
        let (catalog, stale) = (catalog.clone(), Rc::clone(&stale));
        move |ask| {
            let (position, gone) = if stale.get() { (9, "X-Phase-Sync-Gone: nobody\r\n") } else { (3, "") };
            let fields = format!("Content-Type: text/html\r\nX-Phase-Sync-Pos: {position}\r\n{gone}");
            let mut reply = String::from_utf8(object(&catalog, ask, &fields)).unwrap();
            if stale.get() {
                reply = reply.replace(
                    "X-Xact: ",
                    "X-Xact: 00000001.00000000:00000004 00000001.00000000:00000006 0\r\nOld: ",
                );
            }
            Answer::Reply(reply.into_bytes(), SECOND / 100)
        }
    });
    let (group, _) = in_step(&link, catalog);
    assert_eq!(group.unvisited_servers(), 2);
    group.set_phase_status(PhaseStatus { position: 2, ..PhaseStatus::default() });
    link.run(5 * SECOND);
    assert_eq!(group.unvisited_servers(), 0);
    let words = group.server_statuses();
    assert_eq!(words.iter().map(|word| word.position).collect::<Vec<_>>(), [3]);
    assert!(link.asked().iter().all(|ask| ask.field("X-Phase-Sync-Pos") == Some("2")));
    stale.set(true);
    link.run(15 * SECOND);
    assert_eq!(group.server_statuses(), words, "stored replies are of yesterday");
    group.set_pace(Pace::STOPPED);
}

#[test]
fn servers_that_do_not_answer_are_visited_twice() {
    let link = TestLink::new(|ask| match ask.hop.ip().to_string().as_str() {
        "10.0.0.1" => Answer::Close,
        _ => Answer::Reply(object(&pages(), ask, "Content-Type: text/html\r\n"), Nanos::ZERO),
    });
    let (group, recorder) = in_step(&link, pages());
    let mut left = vec![group.unvisited_servers()];
    for tenth in 1..100 {
        link.run(tenth * SECOND / 10);
        left.push(group.unvisited_servers());
    }
    left.dedup();
    assert_eq!((left.first(), left.last()), (Some(&2), Some(&0)), "{left:?}");
    assert!(recorder.totals().failed >= 2);
    group.set_pace(Pace::STOPPED);
}

#[test]
fn without_load_servers_are_asked_for_a_sign() {
    let catalog = pages();
    let link = TestLink::new({
        let catalog = catalog.clone();
        move |ask| Answer::Reply(object(&catalog, ask, "X-Phase-Sync-Pos: 1\r\n"), Nanos::ZERO)
    });
    let (group, _) = in_step(&link, catalog);
    link.run(5 * SECOND);
    group.set_pace(Pace { load: Ramp::flat(0.0), ..Pace::FULL });
    link.run(6 * SECOND);
    // In so many seconds, waiting or not, so many requests, of which all are questions.
    let mut until = 6;
    for (seconds, waits, questions) in [(60, false, 5..=6), (60, true, 200..=242)] {
        group.set_phase_status(PhaseStatus { waits, ..PhaseStatus::default() });
        link.run((until + 1) * SECOND);
        until += 1;
        let before = link.asked().len();
        until += seconds;
        link.run(until * SECOND);
        let asked = &link.asked()[before..];
        assert!(questions.contains(&asked.len()), "{} instead of {questions:?}", asked.len());
        assert!(asked.iter().all(|ask| ask.head.starts_with("HEAD ")));
    }
    group.set_pace(Pace::STOPPED);
    let before = link.asked().len();
    link.run((until + 60) * SECOND);
    assert_eq!(link.asked().len(), before);
}
