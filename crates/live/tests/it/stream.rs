//! A process that is watched through its socket.

use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use polygraph_live::subscription::{local_sources, of_notification};
use polygraph_live::{
    Endpoint, ForwardedNotification, LiveSource, LiveState, LiveStatistics, Publisher, Subscription,
};
use polygraph_stats::{Header, Record, Side};

use crate::{mutate, records};

fn publish(publisher: &mut Publisher, header: &Header, records: &[Record]) {
    records.iter().for_each(|record| publisher.observe(header, record));
}

fn publisher_in(directory: &Path) -> Publisher {
    let mut publisher = Publisher::new().unwrap();
    publisher.serve(Endpoint::local(directory).unwrap()).unwrap();
    publisher
}

/// The first messages of a source.
fn read(source: &LiveSource, count: usize) -> Vec<LiveStatistics> {
    let mut found = Vec::new();
    let follow = Subscription::attach(source).unwrap().follow(|message| {
        found.push(message);
        if found.len() < count { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    follow.unwrap();
    found
}

#[test]
fn monitors_attach_and_detach_and_see_the_history() {
    let directory = tempfile::tempdir().unwrap();
    let header = records::header(Side::Client);
    let mut publisher = publisher_in(directory.path());
    let [source] = &local_sources(directory.path())[..] else { panic!("one socket") };
    let whole = records::run(Side::Client, 15);
    let (early, late) = whole.split_at(8);
    publish(&mut publisher, &header, early);
    // A header and the start of a phase are no messages; seven seconds are.
    let first = read(source, 6);
    assert_eq!(
        first.iter().map(|message| message.elapsed_s).collect::<Vec<_>>(),
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    );
    publish(&mut publisher, &header, late);
    let all = read(source, 15);
    assert_eq!(all[..6], first, "whoever attaches again sees the same history");
    let last = &all[14];
    assert_eq!(
        (last.host.as_str(), last.pid, last.side, last.label.as_str()),
        ("lab1", 42, Side::Client, "label")
    );
    let phase = last.phase.as_ref().unwrap();
    assert_eq!((phase.name.as_str(), phase.index, phase.planned, phase.primary), ("meas", 1, 2, true));
    assert!((phase.elapsed_s - 5.0).abs() < 1e-6 && phase.duration_s == Some(10.0), "{phase:?}");
    assert_eq!((last.interval.ok, last.interval.failed, last.interval.seconds), (100.0, 1.0, 1.0));
    let mean = last.interval.mean_rptm_ms().unwrap();
    assert!((mean - 18.0).abs() < 0.05, "{mean}");
    assert_eq!(last.interval.hit_percent(), Some(60.0));
    assert_eq!((last.total.ok, last.total.started, last.total.seconds), (1500.0, 1515.0, 15.0));
    assert_eq!((last.open_connections, last.agents, last.rss_bytes), (7, 3, 1 << 20));
    assert_eq!((last.errors.len(), last.errors[0].count, last.errors[0].fails), (1, 15, true));
    assert!(last.verdict.is_some(), "there are enough transactions for a verdict");
    assert_eq!(last.state, LiveState::Running);
    // The end comes to those who are attached, and then the connection ends.
    let watcher = std::thread::spawn({
        let source = source.clone();
        move || read(&source, usize::MAX)
    });
    publish(&mut publisher, &header, &records::end(15));
    let ended = {
        let mut ended = read(source, 16);
        ended.pop().unwrap()
    };
    assert_eq!((ended.state, ended.end.as_deref()), (LiveState::Ended, Some("all phases met their goals")));
    drop(publisher);
    assert_eq!(watcher.join().unwrap().last(), Some(&ended));
    assert_eq!(local_sources(directory.path()), [], "the socket is gone");
}

/// A verdict costs more than the start of a short run.
#[test]
fn a_run_is_judged_when_somebody_reads_it() {
    let directory = tempfile::tempdir().unwrap();
    let mut publisher = publisher_in(directory.path());
    let source = local_sources(directory.path()).remove(0);
    publish(&mut publisher, &records::header(Side::Client), &records::run(Side::Client, 15));
    let all = read(&source, 15);
    let judged: Vec<bool> = all.iter().map(|message| message.verdict.is_some()).collect();
    assert_eq!(judged, [vec![false; 14], vec![true]].concat(), "who attaches has the verdict at once");
    assert_eq!(publisher.hub().latest()[0], all[14]);
}

#[test]
fn both_sides_of_a_process_and_waiting_servers_are_seen() {
    let directory = tempfile::tempdir().unwrap();
    let mut publisher = publisher_in(directory.path());
    let source = local_sources(directory.path()).remove(0);
    publisher.waiting(&records::header(Side::Server));
    let waiting = read(&source, 1).remove(0);
    assert_eq!((waiting.state, waiting.start_unix_us, waiting.phase), (LiveState::Waiting, 0, None));
    for side in [Side::Server, Side::Client] {
        publish(&mut publisher, &records::header(side), &records::run(side, 2));
    }
    let all = read(&source, 5);
    let of = |side: Side| all.iter().filter(|message| message.side == side).collect::<Vec<_>>();
    assert_eq!((of(Side::Client).len(), of(Side::Server).len()), (2, 3));
    assert_eq!(of(Side::Server)[2].interval.hit_percent(), None, "servers do not see hits");
}

#[test]
fn short_intervals_make_one_message_each_second() {
    let directory = tempfile::tempdir().unwrap();
    let mut publisher = publisher_in(directory.path());
    let source = local_sources(directory.path()).remove(0);
    let header = records::header(Side::Client);
    publisher.observe(&header, &Record::Header(Box::new(header.clone())));
    for tenth in 0..25_u64 {
        let Record::Interval(mut interval) = records::interval(0) else { unreachable!() };
        (interval.begin_ns, interval.end_ns) =
            (tenth * records::SECOND / 10, (tenth + 1) * records::SECOND / 10);
        publisher.observe(&header, &Record::Interval(interval));
    }
    let found = read(&source, 2);
    assert_eq!(found[0].interval.ok, 100.0 * (found[0].interval.seconds * 10.0).round());
    assert!(
        (0.9..=1.1).contains(&found[0].interval.seconds) && (0.9..=1.1).contains(&found[1].interval.seconds)
    );
}

#[test]
fn sockets_of_the_dead_are_replaced_and_foreign_directories_avoided() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(format!("{}.live", std::process::id()));
    // A socket on which nobody listens any more.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    // No process has this id.
    let killed = directory.path().join("4294967295.live");
    drop(std::os::unix::net::UnixListener::bind(&killed).unwrap());
    let first = Endpoint::local(directory.path()).unwrap();
    assert!(!killed.exists());
    // One that is in use stays.
    let second = Endpoint::local(directory.path()).unwrap();
    assert_eq!(local_sources(directory.path()).len(), 2);
    first.close();
    second.close();
    assert_eq!(local_sources(directory.path()), []);
    let open = directory.path().join("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
    let refused = Endpoint::local(&open).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied, "{refused}");
}

#[test]
fn tcp_and_dispatchers_bring_the_same_kind_of_message() {
    let mut publisher = Publisher::new().unwrap();
    let endpoint = Endpoint::tcp(([127, 0, 0, 1], 0).into()).unwrap();
    let source = LiveSource::Tcp(endpoint.address().unwrap().to_string());
    publisher.serve(endpoint).unwrap();
    let header = records::header(Side::Client);
    publish(&mut publisher, &header, &records::run(Side::Client, 1));
    assert_eq!(read(&source, 1)[0].interval.ok, 100.0);
    let forwarded = ForwardedNotification::decode(&mutate::corpus()[1]).unwrap();
    let found = of_notification(&forwarded);
    assert_eq!((found.host.as_str(), found.pid, found.label.as_str()), ("10.0.0.1", 4000, "label"));
    assert!(
        (found.interval.ok - 99.0).abs() < 1e-6
            && (found.interval.hit_percent().unwrap() - 55.0).abs() < 1e-6
    );
    assert!((found.interval.mean_rptm_ms().unwrap() - 3012.345).abs() < 1e-3);
    assert_eq!((found.total.ok, found.total.failed, found.open_connections), (1000.0, 2.0, 300));
}

#[test]
fn anything_else_on_a_stream_is_an_error() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let source = LiveSource::Tcp(listener.local_addr().unwrap().to_string());
    for (sent, text) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], "not live statistics"),
        (b"{\"format\":99}\n", "format 99"),
        (&[b' '; 70_000], "bytes"),
    ] {
        let attached = Subscription::attach(&source).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        std::io::Write::write_all(&mut stream, sent).unwrap();
        drop(stream);
        let error = attached.follow(|_| ControlFlow::Continue(())).unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
    }
    // A process that dies leaves half a line, which is no error.
    let attached = Subscription::attach(&source).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    std::io::Write::write_all(&mut stream, b"{\"format\":1,").unwrap();
    drop(stream);
    attached.follow(|_| ControlFlow::Continue(())).unwrap();
}
