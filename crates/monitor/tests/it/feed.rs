//! Sources that come, go and come back.

use std::time::{Duration, Instant};

use polygraph_live::{Endpoint, LiveSource, Publisher};
use polygraph_monitor::feed::FeedSources;
use polygraph_monitor::{Feed, FeedEvent};
use polygraph_stats::Side;

use crate::messages::message;

/// Whatever takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

fn wait(feed: &Feed, mut wanted: impl FnMut(&FeedEvent) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if wanted(&feed.events.recv_timeout(left).expect("an event in time")) {
            return;
        }
    }
}

#[test]
fn processes_that_appear_are_found_and_those_that_end_are_lost() {
    let directory = tempfile::tempdir().unwrap();
    let sources = FeedSources { directories: vec![directory.path().join("later")], ..FeedSources::default() };
    let feed = Feed::start(sources).unwrap();
    for round in 0..2 {
        let mut publisher = Publisher::new().unwrap();
        publisher.serve(Endpoint::local(&directory.path().join("later")).unwrap()).unwrap();
        publisher.hub().publish(&message("clt1", Side::Client, 1, 100.0));
        wait(&feed, |event| matches!(event, FeedEvent::Statistics(found) if found.host == "clt1"));
        drop(publisher);
        wait(
            &feed,
            |event| matches!(event, FeedEvent::Lost(keys) if keys.len() == 1 && keys[0].host == "clt1"),
        );
        assert!(round < 2);
    }
}

#[test]
fn a_source_that_is_not_there_is_a_problem_until_it_comes() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let sources =
        FeedSources { sources: vec![LiveSource::Tcp(address.to_string())], ..FeedSources::default() };
    let feed = Feed::start(sources).unwrap();
    wait(&feed, |event| matches!(event, FeedEvent::Problem(text) if text.contains("refused")));
    let mut publisher = Publisher::new().unwrap();
    publisher.serve(Endpoint::tcp(address).unwrap()).unwrap();
    publisher.hub().publish(&message("clt1", Side::Client, 1, 100.0));
    wait(&feed, |event| matches!(event, FeedEvent::Statistics(_)));
}
