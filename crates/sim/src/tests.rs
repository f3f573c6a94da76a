//! The virtual loop and its connections by example.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;

use polygraph_link::{Conn, ConnectError, IdleState, Link, Nanos, SECOND, send_all, yield_now};

use crate::{VirtualConn, VirtualLink};

const MS: Nanos = Nanos::from_millis(1);

/// Notes what happens, and when (in milliseconds).
#[derive(Clone)]
struct Diary {
    link: VirtualLink,
    lines: Rc<RefCell<Vec<(u64, String)>>>,
}

impl Diary {
    fn new(link: &VirtualLink) -> Diary {
        Diary { link: link.clone(), lines: Rc::default() }
    }

    fn note(&self, text: impl Into<String>) {
        self.lines.borrow_mut().push((self.link.now() / MS, text.into()));
    }

    #[track_caller]
    fn says(&self, expected: &[(u64, &str)]) {
        let lines = self.lines.borrow();
        let lines: Vec<(u64, &str)> = lines.iter().map(|(at, text)| (*at, text.as_str())).collect();
        assert_eq!(lines, expected);
    }
}

fn place(last: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, last], 80))
}

#[test]
fn tasks_run_in_the_order_in_which_they_can() {
    let link = VirtualLink::new(0);
    let diary = Diary::new(&link);
    for (name, at) in [("a", 20), ("b", 10), ("c", 20), ("d", 0)] {
        let (link, diary) = (link.clone(), diary.clone());
        link.clone().spawn(async move {
            link.sleep_until(at * MS).await;
            diary.note(name);
            yield_now().await;
            diary.note(format!("{name} again"));
        });
    }
    assert!(link.run(19 * MS));
    assert_eq!(link.now(), 19 * MS);
    diary.says(&[(0, "d"), (0, "d again"), (10, "b"), (10, "b again")]);
    assert!(link.run(SECOND));
    let later = diary.lines.borrow()[4..].to_vec();
    assert_eq!(
        later.iter().map(|(at, text)| (*at, &**text)).collect::<Vec<_>>(),
        [(20, "a"), (20, "c"), (20, "a again"), (20, "c again")]
    );
    // One that never waits.
    link.spawn(async {
        loop {
            yield_now().await;
        }
    });
    assert!(!link.run(2 * SECOND), "time stands still");
    link.end();
    assert!(link.run(2 * SECOND));
}

#[test]
fn time_of_day_goes_with_the_clock() {
    let link = VirtualLink::new(1_795_219_200);
    link.run(61 * SECOND + 999 * MS);
    assert_eq!(link.unix_seconds(), 1_795_219_261);
    assert_eq!(&link.http_date(), b"Sat, 21 Nov 2026 00:01:01 GMT");
}

/// What comes on a connection until it ends, piece by piece.
async fn read_all(mut conn: VirtualConn, diary: Diary) {
    loop {
        match conn.recv(|bytes| String::from_utf8_lossy(bytes).into_owned()).await {
            Ok(piece) if piece.is_empty() => return diary.note("closed"),
            Ok(piece) => diary.note(piece),
            Err(e) => return diary.note(format!("{:?}", e.kind())),
        }
    }
}

#[test]
fn bytes_and_ends_take_as_long_as_the_network_does() {
    for delay in [0, 40] {
        let link = VirtualLink::new(0);
        link.set_delay(delay * MS);
        let diary = Diary::new(&link);
        let reading = diary.clone();
        link.listen(place(1), {
            let link = link.clone();
            move |conn, _| link.spawn(read_all(conn, reading.clone()))
        });
        let (at, writer) = (link.clone(), diary.clone());
        link.spawn(async move {
            let mut conn = at.connect(None, place(1)).unwrap();
            send_all(&mut conn, b"one").await.unwrap();
            at.sleep_until(10 * MS).await;
            conn.try_send(&[IoSlice::new(b"t"), IoSlice::new(b"wo")]).unwrap();
            drop(conn);
            assert_eq!(
                at.connect(None, place(2)).unwrap_err(),
                ConnectError::Refused(io::ErrorKind::ConnectionRefused)
            );
            at.run_out_of_ports(20 * MS);
            at.sleep_until(20 * MS).await;
            assert_eq!(at.connect(None, place(1)).unwrap_err(), ConnectError::NoPort);
            writer.note("done");
        });
        link.run(SECOND);
        let mut expected = vec![(delay, "one"), (10 + delay, "two"), (10 + delay, "closed"), (20, "done")];
        expected.sort_by_key(|(at, _)| *at);
        diary.says(&expected);
        link.end();
    }
}

#[test]
fn who_sends_more_than_is_read_has_to_wait() {
    let link = VirtualLink::new(0);
    let diary = Diary::new(&link);
    let (mut ours, mut theirs) = link.pair();
    theirs.set_window(1000);
    let (at, writer) = (link.clone(), diary.clone());
    link.spawn(async move {
        send_all(&mut ours, &[b'x'; 2500]).await.unwrap();
        writer.note("sent");
        ours.set_deadline(Some(at.now() + 50 * MS));
        let error = send_all(&mut ours, &[b'y'; 2000]).await.unwrap_err();
        writer.note(format!("{:?}", error.kind()));
    });
    let mut received = 0;
    for step in 1..=3 {
        link.run(step * 10 * MS);
        assert!(theirs.room() == 0 || step == 3);
        received += theirs.take_arrived().len();
    }
    link.run(SECOND);
    received += theirs.take_arrived().len();
    // A thousand at a time: the third piece is the rest and the beginning of what follows.
    diary.says(&[(20, "sent"), (70, "TimedOut")]);
    assert_eq!((received, theirs.is_ended()), (4000, true));
}

#[test]
fn deadlines_strike_when_they_are_over_and_not_before() {
    let link = VirtualLink::new(0);
    let diary = Diary::new(&link);
    let (mut ours, mut theirs) = link.pair();
    let (at, reader) = (link.clone(), diary.clone());
    link.spawn(async move {
        // Moved on by what comes, as with every transaction of a connection.
        for _ in 0..3 {
            theirs.set_deadline(Some(at.now() + 30 * MS));
            match theirs.take().await {
                Ok(piece) => reader.note(String::from_utf8(piece).unwrap()),
                Err(e) => reader.note(format!("{:?}", e.kind())),
            }
        }
    });
    let at = link.clone();
    link.spawn(async move {
        for (when, text) in [(20, "a"), (40, "b")] {
            at.sleep_until(when * MS).await;
            send_all(&mut ours, text.as_bytes()).await.unwrap();
        }
        at.sleep_until(SECOND).await;
    });
    link.run(SECOND / 2);
    diary.says(&[(20, "a"), (40, "b"), (70, "TimedOut")]);
    link.end();
}

#[test]
fn resets_are_no_ends() {
    let link = VirtualLink::new(0);
    let diary = Diary::new(&link);
    let (mut ours, theirs) = link.pair();
    ours.try_send(&[IoSlice::new(b"last words")]).unwrap();
    ours.reset();
    assert_eq!(ours.try_send(&[IoSlice::new(b"more")]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    link.spawn(read_all(theirs, diary.clone()));
    link.run(SECOND);
    diary.says(&[(0, "last words"), (0, "ConnectionReset")]);

    let (mut ours, mut theirs) = link.pair();
    assert_eq!(ours.idle_state(), IdleState::Quiet);
    theirs.try_send(&[IoSlice::new(b"more")]).unwrap();
    assert_eq!(ours.idle_state(), IdleState::Bytes(b"more".to_vec()));
    let (mut ours, mut theirs) = link.pair();
    theirs.reset();
    assert_eq!(ours.idle_state(), IdleState::Closed);
    assert_eq!(ours.try_send(&[IoSlice::new(b"x")]).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    drop(theirs);
    let (mut ours, theirs) = link.pair();
    drop(theirs);
    assert_eq!(ours.try_send(&[IoSlice::new(b"x")]).unwrap_err().kind(), io::ErrorKind::BrokenPipe);
}

#[test]
fn name_servers_answer_or_do_not() {
    let link = VirtualLink::new(0);
    link.set_delay(5 * MS);
    let diary = Diary::new(&link);
    link.answer_at(place(53), |query| (query != b"?").then(|| [query, b"!"].concat()));
    for (server, query) in [(53, "a"), (53, "?"), (54, "a")] {
        let (link, diary) = (link.clone(), diary.clone());
        link.clone().spawn(async move {
            let text = |reply: &[u8]| Some(String::from_utf8_lossy(reply).into_owned());
            let asked =
                link.exchange_datagram(None, place(server), query.as_bytes(), Some(50 * MS), text).await;
            diary.note(asked.unwrap_or_else(|e| format!("{:?}", e.kind())));
        });
    }
    link.run(SECOND);
    diary.says(&[(0, "ConnectionRefused"), (10, "a!"), (50, "TimedOut")]);
}

/// What is on its way to `conn`, as a buffer, and the position of the first byte.
fn taken(link: &VirtualLink, mut conn: VirtualConn) -> (VirtualConn, Vec<u8>, usize) {
    let result = Rc::new(RefCell::new(None));
    let filled = Rc::clone(&result);
    link.spawn(async move {
        let (bytes, start) = poll_fn(|cx| conn.poll_take(cx, || Vec::with_capacity(10))).await.unwrap();
        *filled.borrow_mut() = Some((conn, bytes, start));
    });
    link.run(link.now());
    result.take().unwrap()
}

#[test]
fn buffers_are_passed_on_without_a_copy_if_all_of_them_fits() {
    let link = VirtualLink::new(0);
    let ((mut server, theirs), (mut ours, client)) = (link.pair(), link.pair());
    let body = [b'x'; 5000];
    server.try_send(&[IoSlice::new(&body), IoSlice::new(b"!")]).unwrap();
    let (theirs, mut buffer, start) = taken(&link, theirs);
    assert_eq!(buffer[start..], [&body[..], b"!"].concat());
    let (memory, start) = (buffer.as_ptr(), start - 5);
    buffer[start..start + 5].copy_from_slice(b"head ");
    assert_eq!(ours.try_send_buffer(&mut buffer, start).unwrap(), 5006);
    assert!(buffer.is_empty());
    let (mut client, mut buffer, start) = taken(&link, client);
    assert_eq!((&buffer[start..start + 6], buffer.len() - start), (&b"head x"[..], 5006));
    assert_eq!(buffer.as_ptr(), memory);

    client.set_window(4);
    assert_eq!(ours.try_send_buffer(&mut buffer, start + 1).unwrap(), 4);
    assert_eq!((client.take_arrived(), buffer.len()), (b"ead ".to_vec(), start + 5006));
    drop(client);
    let error = ours.try_send_buffer(&mut buffer, start).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    drop(server);
    let (_, buffer, start) = taken(&link, theirs);
    assert_eq!((buffer.capacity(), start), (0, 0));
}

#[test]
fn what_happens_on_idle_connections_is_reported_when_it_arrives() {
    let link = VirtualLink::new(0);
    link.set_delay(10 * MS);
    let (first, second) = (link.separate(), link.separate());
    let accepted = Rc::new(RefCell::new(Vec::new()));
    let server = Rc::clone(&accepted);
    link.listen(place(1), move |conn, _| server.borrow_mut().push(conn));
    let connect = |link: &VirtualLink| link.connect(None, place(1)).unwrap();
    let mut conns = [connect(&first), connect(&first), connect(&first), connect(&second)];
    // Something that is on its way before counts, too.
    accepted.borrow_mut()[1].try_send(&[IoSlice::new(b"late bytes")]).unwrap();
    for (conn, owner) in conns.iter_mut().zip([7, 5, 6, 7]) {
        conn.note_idle(owner);
    }
    let ends = std::mem::take(&mut *accepted.borrow_mut());
    let mut ends = ends.into_iter();
    drop(ends.next());
    assert_eq!(first.take_disturbed(), Some(vec![]));
    link.run(10 * MS);
    assert_eq!(first.take_disturbed(), Some(vec![5, 7]));
    assert_eq!([first.take_disturbed(), second.take_disturbed()], [Some(vec![]), Some(vec![])]);
    ends.for_each(drop);
    link.run(20 * MS);
    // The second connection was reported before.
    assert_eq!([first.take_disturbed(), second.take_disturbed()], [Some(vec![6]), Some(vec![7])]);
    assert!(conns.iter_mut().all(Conn::is_disturbed));
}
