//! Streams against sockets of the standard library.

use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use crate::{Clock, Ring, RingStream, Tasks, Unread, run};

/// Runs a test on a loop without timers, which wakes up often enough for tests that look again.
pub(crate) fn on_a_ring<F: Future<Output = ()> + 'static>(test: impl FnOnce(Ring, Tasks) -> F) {
    let (ring, tasks) = (Ring::new().unwrap(), Tasks::new().unwrap());
    let begin = Instant::now();
    let fire = || {
        assert!(begin.elapsed() < Duration::from_secs(60), "the test hangs");
        let now_ns = begin.elapsed().as_nanos() as u64;
        Clock { now_ns, next_ns: Some(now_ns + 5_000_000) }
    };
    run(&ring, &tasks, Duration::ZERO, fire, test(ring.clone(), tasks.clone())).unwrap();
    tasks.end();
}

/// A stream and its peer.
fn pair(ring: &Ring) -> (RingStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let peer = listener.accept().unwrap().0;
    peer.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    (ring.stream(OwnedFd::from(ours), true), peer)
}

async fn receive(stream: &mut RingStream) -> io::Result<Vec<u8>> {
    poll_fn(|cx| stream.poll_recv(cx, <[u8]>::to_vec)).await
}

async fn receive_exactly(stream: &mut RingStream, length: usize) -> Vec<u8> {
    let mut all = Vec::new();
    while all.len() < length {
        let part = receive(stream).await.unwrap();
        assert!(!part.is_empty(), "{} of {length} bytes", all.len());
        all.extend(part);
    }
    all
}

/// Lets the loop turn.
pub(crate) async fn turn() {
    let mut turned = false;
    poll_fn(|cx| {
        cx.waker().wake_by_ref();
        if std::mem::replace(&mut turned, true) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
}

fn pattern(length: usize, salt: u8) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8 ^ salt).collect()
}

#[test]
fn small_sends_of_a_turn_arrive_in_order_and_replies_too() {
    on_a_ring(|ring, _| async move {
        let (mut stream, mut peer) = pair(&ring);
        for round in 0..3u8 {
            assert_eq!(stream.try_send(&[IoSlice::new(b"he"), IoSlice::new(b"llo")]).unwrap(), 5);
            assert_eq!(stream.try_send(&[IoSlice::new(&[round; 4000])]).unwrap(), 4000);
            // Does not fit behind it, so what is queued goes first.
            assert_eq!(stream.try_send(&[IoSlice::new(&[9; 3000])]).unwrap(), 3000);
            turn().await;
            turn().await;
            let mut got = vec![0; 7005];
            peer.read_exact(&mut got).unwrap();
            assert_eq!(&got[..5], b"hello");
            assert!(got[5..4005].iter().all(|b| *b == round) && got[4005..].iter().all(|b| *b == 9));
            peer.write_all(&[round; 3]).unwrap();
            assert_eq!(receive_exactly(&mut stream, 3).await, [round; 3]);
        }
    });
}

#[test]
fn what_nobody_reads_slows_the_peer_down_and_is_not_lost() {
    on_a_ring(|ring, _| async move {
        let (mut stream, mut peer) = pair(&ring);
        peer.write_all(b"a").unwrap();
        receive_exactly(&mut stream, 1).await;
        // The second receive is a lasting one.
        peer.write_all(b"b").unwrap();
        receive_exactly(&mut stream, 1).await;
        assert_eq!(stream.unread(9), Unread::Nothing);
        const SIZE: usize = 16 << 20;
        let sender = std::thread::spawn(move || {
            peer.write_all(&pattern(SIZE, 7)).unwrap();
            peer
        });
        for _ in 0..50 {
            std::thread::sleep(Duration::from_millis(2));
            turn().await;
        }
        assert!(
            !sender.is_finished(),
            "16 MB must not fit into the buffers of a connection that nobody reads"
        );
        let Unread::Bytes(first) = stream.unread(4) else { panic!("nothing arrived") };
        assert_eq!(first, pattern(4, 7));
        assert_eq!(receive_exactly(&mut stream, SIZE).await, pattern(SIZE, 7));
        drop(sender.join().unwrap());
        assert_eq!(receive(&mut stream).await.unwrap(), b"");
        assert_eq!(stream.unread(4), Unread::End);
    });
}

#[test]
fn more_connections_than_receive_buffers_lose_nothing() {
    on_a_ring(|ring, _| async move {
        let (mut streams, mut peers): (Vec<_>, Vec<_>) = (0..300).map(|_| pair(&ring)).unzip();
        for round in 0..4u8 {
            for (at, peer) in peers.iter_mut().enumerate() {
                peer.write_all(&pattern(20_000, at as u8 ^ round)).unwrap();
            }
            for (at, stream) in streams.iter_mut().enumerate() {
                assert_eq!(receive_exactly(stream, 20_000).await, pattern(20_000, at as u8 ^ round));
            }
        }
    });
}

#[test]
fn a_full_socket_blocks_and_a_small_message_behind_it_is_completed_later() {
    on_a_ring(|ring, _| async move {
        let (mut stream, mut peer) = pair(&ring);
        let mut sent = 0;
        let full = |stream: &mut RingStream, length: usize| match stream
            .try_send(&[IoSlice::new(&pattern(length, 0))])
        {
            Ok(n) => n,
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => panic!("{error}"),
        };
        loop {
            let n = full(&mut stream, 251 * 100);
            sent += n;
            if n < 251 * 100 {
                break;
            }
        }
        // Until the kernel moves bytes to the peer, small messages find no room, and are kept.
        let mut small = 0;
        for _ in 0..200 {
            small += full(&mut stream, 251 * 16);
            turn().await;
        }
        assert!(
            matches!(stream.try_send(&[IoSlice::new(b"x")]), Err(e) if e.kind() == ErrorKind::WouldBlock)
        );
        let all = sent + small;
        let reader = std::thread::spawn(move || {
            let mut got = vec![0; all];
            peer.read_exact(&mut got).unwrap();
            (got, peer)
        });
        poll_fn(|cx| stream.poll_writable(cx)).await.unwrap();
        assert_eq!(stream.try_send(&[IoSlice::new(b"end")]).unwrap(), 3);
        stream.finish();
        while !reader.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
            turn().await;
        }
        let (got, mut peer) = reader.join().unwrap();
        // The large part ends anywhere, each small one begins at the start of the pattern.
        assert_eq!(got[..sent], pattern(sent, 0));
        assert!(got[sent..].chunks(251 * 16).all(|chunk| chunk == pattern(251 * 16, 0)));
        let mut rest = Vec::new();
        peer.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"end");
    });
}

#[test]
fn what_was_taken_is_sent_even_if_the_stream_is_dropped_at_once() {
    on_a_ring(|ring, _| async move {
        for size in [3, 4096, 60_000] {
            let (mut stream, mut peer) = pair(&ring);
            assert_eq!(stream.try_send(&[IoSlice::new(&pattern(size, 1))]).unwrap(), size);
            drop(stream);
            turn().await;
            turn().await;
            let mut got = Vec::new();
            peer.read_to_end(&mut got).unwrap();
            assert_eq!(got, pattern(size, 1));
        }
        // Also with a receive under way, whichever kind.
        for replies in 0..3 {
            let (mut stream, mut peer) = pair(&ring);
            for _ in 0..replies {
                peer.write_all(b"r").unwrap();
                receive_exactly(&mut stream, 1).await;
            }
            poll_fn(|cx| {
                assert!(stream.poll_recv(cx, |_| ()).is_pending());
                std::task::Poll::Ready(())
            })
            .await;
            turn().await;
            stream.try_send(&[IoSlice::new(b"bye")]).unwrap();
            drop(stream);
            turn().await;
            turn().await;
            let mut got = String::new();
            peer.read_to_string(&mut got).unwrap();
            assert_eq!(got, "bye");
        }
    });
}

#[test]
fn resets_go_both_ways() {
    on_a_ring(|ring, _| async move {
        let (mut stream, mut peer) = pair(&ring);
        stream.try_send(&[IoSlice::new(b"x")]).unwrap();
        stream.forget_unsent();
        rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
        drop(stream);
        turn().await;
        turn().await;
        let error = peer.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        let (mut stream, peer) = pair(&ring);
        rustix::net::sockopt::set_socket_linger(&peer, Some(Duration::ZERO)).unwrap();
        drop(peer);
        assert_eq!(receive(&mut stream).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert_eq!(stream.unread(9), Unread::End);
        // A send that fails after it was taken tells at the next call.
        let (mut stream, peer) = pair(&ring);
        rustix::net::sockopt::set_socket_linger(&peer, Some(Duration::ZERO)).unwrap();
        drop(peer);
        std::thread::sleep(Duration::from_millis(20));
        stream.try_send(&[IoSlice::new(b"x")]).unwrap();
        turn().await;
        turn().await;
        assert!(stream.try_send(&[IoSlice::new(b"x")]).is_err());
        assert_eq!(receive(&mut stream).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    });
}

#[test]
fn closed_streams_leave_no_descriptor_and_no_state() {
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    on_a_ring(move |ring, _| async move {
        let (stream, peer) = pair(&ring);
        drop((stream, peer));
        turn().await;
        turn().await;
        let before = open();
        for replies in [0, 1, 2] {
            let (mut stream, mut peer) = pair(&ring);
            for _ in 0..replies {
                peer.write_all(b"r").unwrap();
                receive_exactly(&mut stream, 1).await;
            }
            let _ = stream.unread(1);
            drop(stream);
            // The peer notices, so nothing holds the socket.
            turn().await;
            turn().await;
            peer.read_to_end(&mut Vec::new()).unwrap();
        }
        for _ in 0..3 {
            turn().await;
        }
        // Other tests open and close descriptors at the same time; leaks would be three.
        assert!(ring.0.core.borrow().streams.is_empty());
        assert!(open() < before + 200);
    });
}

#[test]
fn a_connection_is_accepted_after_the_other_and_errors_do_not_end_that() {
    on_a_ring(|ring, _| async move {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let mut acceptor = ring.acceptor(OwnedFd::from(listener));
        let peers: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
        for mut peer in peers {
            let fd = poll_fn(|cx| acceptor.poll_accept(cx)).await.unwrap();
            let mut stream = ring.stream(fd, true);
            peer.write_all(b"?").unwrap();
            assert_eq!(receive_exactly(&mut stream, 1).await, b"?");
        }
        drop(acceptor);
        turn().await;
        turn().await;
        assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
        let not_listening =
            TcpStream::connect(TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
        drop(not_listening);
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(socket.local_addr().unwrap()).unwrap();
        let mut acceptor = ring.acceptor(OwnedFd::from(stream));
        assert_eq!(poll_fn(|cx| acceptor.poll_accept(cx)).await.unwrap_err(), rustix::io::Errno::INVAL);
    });
}

#[test]
fn a_stream_that_waits_for_room_closes_its_socket_once() {
    on_a_ring(|ring, _| async move {
        let (mut stream, _peer) = pair(&ring);
        while stream.try_send(&[IoSlice::new(&[0; 100_000])]).is_ok() {}
        poll_fn(|cx| {
            assert!(stream.poll_writable(cx).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        turn().await;
        drop(stream);
        turn().await;
        // The least free numbers are those of the stream. What is behind them now must stay open.
        let later: Vec<_> = (0..50).map(|_| pair(&ring)).collect();
        for _ in 0..3 {
            turn().await;
        }
        for (mut stream, mut peer) in later {
            peer.write_all(b"?").unwrap();
            assert_eq!(receive_exactly(&mut stream, 1).await, b"?");
        }
    });
}
