//! What is kept of messages, and how rows sum it up.

use std::time::{Duration, Instant};

use polygraph_live::{LiveState, LiveStatistics};
use polygraph_monitor::watched::{ProcessKey, SeriesFigure, TimeSpan};
use polygraph_monitor::{Grouping, RowFilter, Watched, table};
use polygraph_stats::Side;

use crate::messages::{START_S, bench, message};

fn watch(seconds: u64, now: Instant) -> Watched {
    let mut watched = Watched::default();
    (1..=seconds).flat_map(bench).for_each(|message| watched.take(message, now));
    watched
}

#[test]
fn rows_of_sides_have_exact_sums_and_means() {
    let now = Instant::now();
    let mut watched = watch(10, now);
    // Response times that differ: the mean is that of all transactions, not of the processes.
    let slow = LiveStatistics { elapsed_s: 11.0, ..message("clt1", Side::Client, 11, 100.0) };
    let mut slow = slow;
    slow.interval.rptm_us = 100.0 * 100_000.0;
    watched.take(slow, now);
    let rows = table::rows(&watched, Grouping::Sides, &RowFilter::default(), now);
    let [client, server] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((client.rate, client.processes, client.open_connections), (400.0, [2, 2], 10));
    assert_eq!(client.interval.mean_rptm_ms(), Some((100.0 * 100.0 + 300.0 * 20.0) / 400.0));
    assert_eq!((client.interval.hit_percent(), server.interval.hit_percent()), (Some(25.0), None));
    assert_eq!((client.planned_rate, client.phase.as_str()), (Some(400.0), "meas"));
    assert_eq!(client.verdict.as_ref().unwrap()[0], "VALID");
    let text = table::text(&rows);
    for part in ["side", "verdict so far", "all 2", "meas 10 %", "400", "25.0", "running"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let json = client.json();
    assert_eq!(
        (json["rate"].as_f64(), json["pid"].is_null(), json["total"]["errors"].as_f64()),
        (Some(400.0), true, Some(21.0))
    );
    assert_eq!(table::rows(&watched, Grouping::Hosts, &RowFilter::default(), now).len(), 3);
}

#[test]
fn filters_select_by_side_and_words() {
    let now = Instant::now();
    let watched = watch(2, now);
    for (side, words, count) in [
        (None, "", 3),
        (Some(Side::Client), "", 2),
        (None, "clt2", 1),
        (None, "CLT meas", 2),
        (None, "valid running", 2),
        (None, "trial polymix srv1", 1),
        (Some(Side::Server), "clt1", 0),
    ] {
        let filter = RowFilter { side, words: words.into() };
        assert_eq!(table::rows(&watched, Grouping::Processes, &filter, now).len(), count, "{words}");
    }
}

#[test]
fn curves_sum_processes_step_by_step() {
    let now = Instant::now();
    let mut watched = watch(10, now);
    let span = TimeSpan { until_s: START_S as f64 + 10.0, step_s: 1.0, steps: 12 };
    let clients = |key: &ProcessKey, _: &_| key.side == "client";
    let rates = watched.series(span, SeriesFigure::Rate, clients);
    assert_eq!(rates, [vec![None; 2], vec![Some(400.0); 10]].concat());
    let longer = TimeSpan { step_s: 5.0, steps: 2, ..span };
    assert_eq!(watched.series(longer, SeriesFigure::OpenConnections, clients), [Some(10.0); 2]);
    assert_eq!(watched.series(longer, SeriesFigure::ResponseTime, clients), [Some(20.0); 2]);
    assert_eq!(watched.series(longer, SeriesFigure::HitRatio, |key, _| key.side == "server"), [None; 2]);
    // Whoever attaches again gets the history again, which changes nothing.
    (1..=10).flat_map(bench).for_each(|message| watched.take(message, now));
    assert_eq!(watched.series(span, SeriesFigure::Rate, clients), rates);
    // The history of a fleet's process may come after the first new messages.
    let mut late = Watched::default();
    (8..=10).chain(1..=9).flat_map(bench).for_each(|message| late.take(message, now));
    assert_eq!(late.series(span, SeriesFigure::Rate, clients), rates);
    assert!(late.processes().all(|(_, process)| process.latest.elapsed_s == 10.0));
    // Another run of a process with the same id starts anew.
    let again =
        LiveStatistics { start_unix_us: (START_S + 9) * 1_000_000, ..message("clt1", Side::Client, 1, 7.0) };
    watched.take(again, now);
    let found = watched.series(span, SeriesFigure::Rate, |key, _| key.host == "clt1");
    assert_eq!(found, [vec![None; 11], vec![Some(7.0)]].concat());
}

#[test]
fn silence_loss_and_ends_are_different() {
    let start = Instant::now();
    let mut watched = watch(3, start);
    let later = start + Duration::from_secs(20);
    watched.take(message("clt1", Side::Client, 4, 100.0), later);
    let mut ended = message("clt2", Side::Client, 4, 0.0);
    ended.state = LiveState::Ended;
    watched.take(ended, later);
    let conditions = |watched: &Watched| {
        watched.processes().map(|(_, process)| process.condition(later)).collect::<Vec<_>>()
    };
    assert_eq!(conditions(&watched), ["running", "ended", "silent"]);
    let keys: Vec<ProcessKey> = watched.processes().map(|(key, _)| key.clone()).collect();
    watched.lose(&keys);
    assert_eq!(conditions(&watched), ["lost", "ended", "lost"]);
    let rows = table::rows(&watched, Grouping::Processes, &RowFilter::default(), later);
    assert!(rows.iter().all(|row| row.rate == 0.0), "figures of the past are not those of now: {rows:?}");
    watched.take(message("clt1", Side::Client, 5, 100.0), later);
    assert_eq!(conditions(&watched)[0], "running", "it is back");
    watched.forget_ended(later);
    assert_eq!(watched.processes().count(), 1);
}

#[test]
fn notifications_do_not_count_a_process_twice() {
    let now = Instant::now();
    let notification = || LiveStatistics {
        host: "10.0.0.1".into(),
        pid: 4000,
        version: String::new(),
        ..message("", Side::Client, 2, 100.0)
    };
    let own = || message("clt1", Side::Client, 2, 100.0);
    for both in [[own(), notification()], [notification(), own()]] {
        let mut watched = Watched::default();
        both.into_iter().for_each(|message| watched.take(message, now));
        let hosts: Vec<&str> = watched.processes().map(|(key, _)| key.host.as_str()).collect();
        assert_eq!(hosts, ["clt1"]);
    }
    // The other side, and other runs, are something else.
    let mut watched = Watched::default();
    watched.take(own(), now);
    watched.take(LiveStatistics { side: Side::Server, ..notification() }, now);
    watched.take(LiveStatistics { start_unix_us: 1, ..notification() }, now);
    assert_eq!(watched.processes().count(), 3);
}
