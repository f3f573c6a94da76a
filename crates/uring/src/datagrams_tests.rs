//! Datagrams against sockets of the standard library.

use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::task::Poll;
use std::time::Duration;

use crate::buffers::SEND_SIZE;
use crate::stream_tests::{on_a_ring, turn};
use crate::{Received, Ring, RingDatagrams};

/// A datagram without what comes with it.
type Letter = (Option<SocketAddr>, Vec<u8>);

fn patient(socket: &UdpSocket) {
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
}

/// A bound socket of the ring, its address, and a socket elsewhere that is connected to it.
fn pair(ring: &Ring) -> (RingDatagrams, SocketAddr, UdpSocket) {
    let ours = UdpSocket::bind("127.0.0.1:0").unwrap();
    ours.set_nonblocking(true).unwrap();
    let (address, peer) = (ours.local_addr().unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    peer.connect(address).unwrap();
    patient(&peer);
    (ring.datagrams(OwnedFd::from(ours)).unwrap(), address, peer)
}

/// A socket of the ring that is connected to another.
fn unix_pair(ring: &Ring) -> (RingDatagrams, UnixDatagram) {
    let (ours, peer) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    (ring.datagrams(OwnedFd::from(ours)).unwrap(), peer)
}

async fn receive(socket: &RingDatagrams) -> io::Result<Vec<Letter>> {
    let mut all = Vec::new();
    poll_fn(|cx| socket.poll_recv(cx, |received| all.push((received.from, received.bytes.to_vec()))))
        .await
        .map(|()| all)
}

async fn receive_many(socket: &RingDatagrams, count: usize) -> Vec<Letter> {
    let mut all = Vec::new();
    while all.len() < count {
        all.extend(receive(socket).await.unwrap());
    }
    all
}

/// Sets an option to an int.
fn set(socket: &UdpSocket, level: i32, name: i32, value: i32) {
    let (value, size) = ((&raw const value).cast(), size_of::<i32>() as libc::socklen_t);
    // SAFETY: the value is a readable int.
    assert_eq!(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value, size) }, 0);
}

#[test]
fn datagrams_come_with_their_address_and_answers_find_it() {
    on_a_ring(|ring, _| async move {
        let (socket, _, peer) = pair(&ring);
        for round in 0..3u8 {
            peer.send(&[round; 1200]).unwrap();
            let from = peer.local_addr().unwrap();
            assert_eq!(receive(&socket).await.unwrap(), [(Some(from), vec![round; 1200])]);
            for answer in 0..3 {
                assert!(socket.try_queue(Some(from), &[round, answer]).unwrap());
            }
            turn().await;
            turn().await;
            for answer in 0..3 {
                let mut got = [0; 9];
                assert_eq!(peer.recv(&mut got).unwrap(), 2);
                assert_eq!(got[..2], [round, answer]);
            }
        }
    });
}

#[test]
fn more_than_there_are_buffers_arrive_while_nobody_takes_them() {
    on_a_ring(|ring, _| async move {
        let (socket, _, peer) = pair(&ring);
        let (other, _, other_peer) = pair(&ring);
        peer.send(b"first").unwrap();
        assert_eq!(receive_many(&socket, 1).await.len(), 1);
        // The receive goes on, and takes all buffers; the rest waits in the socket.
        for number in 0..150u8 {
            peer.send(&[number; 100]).unwrap();
        }
        other_peer.send(b"of another").unwrap();
        let arm = poll_fn(|cx| Poll::Ready(other.poll_recv(cx, |_| ()).is_pending()));
        assert!(arm.await);
        for _ in 0..5 {
            turn().await;
        }
        let held: usize = ring.0.core.borrow().datagrams.iter().map(|(_, socket)| socket.held.len()).sum();
        assert_eq!(held, 64, "all buffers are in use");
        let all = receive_many(&socket, 150).await;
        let numbers: Vec<u8> = all.iter().map(|(_, bytes)| bytes[0]).collect();
        assert_eq!(numbers, (0..150).collect::<Vec<u8>>());
        assert_eq!(receive(&other).await.unwrap()[0].1, b"of another");
    });
}

#[test]
fn joined_datagrams_come_with_their_size_mark_and_local_address() {
    on_a_ring(|ring, _| async move {
        for (local, is_v4) in [("127.0.0.1:0", true), ("[::1]:0", false)] {
            let Ok(ours) = UdpSocket::bind(local) else { continue };
            ours.set_nonblocking(true).unwrap();
            set(&ours, libc::SOL_UDP, libc::UDP_GRO, 1);
            let peer = UdpSocket::bind(local).unwrap();
            if is_v4 {
                set(&ours, libc::IPPROTO_IP, libc::IP_RECVTOS, 1);
                set(&ours, libc::IPPROTO_IP, libc::IP_PKTINFO, 1);
                set(&peer, libc::IPPROTO_IP, libc::IP_TOS, 0b10);
            } else {
                set(&ours, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1);
                set(&ours, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1);
                set(&peer, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, 0b10);
            }
            // UDP_SEGMENT, for all that is sent from now on.
            set(&peer, libc::SOL_UDP, libc::UDP_SEGMENT, 1000);
            let (to, from) = (ours.local_addr().unwrap(), peer.local_addr().unwrap());
            let socket = ring.datagrams(OwnedFd::from(ours)).unwrap();
            let sent: Vec<u8> = (0..62_500u32).map(|at| (at % 251) as u8).collect();
            peer.send_to(&sent, to).unwrap();
            let mut seen = Vec::new();
            let check = |received: &Received<'_>| {
                assert_eq!((received.from, received.to), (Some(from), Some(to.ip())));
                assert_eq!((received.ecn, received.segment), (0b10, 1000));
                seen.extend_from_slice(received.bytes);
            };
            let mut check = check;
            poll_fn(|cx| socket.poll_recv(cx, &mut check)).await.unwrap();
            assert_eq!(seen, sent, "in one piece");
        }
    });
}

#[test]
fn a_full_socket_keeps_what_it_has_taken_and_takes_no_more() {
    on_a_ring(|ring, _| async move {
        let (socket, peer) = unix_pair(&ring);
        let mut taken = 0u8;
        let full = loop {
            match socket.try_queue(None, &[taken; SEND_SIZE]) {
                Ok(true) => taken += 1,
                Ok(false) => panic!("it is not large"),
                Err(error) => break error,
            }
            assert!(taken < 250, "the socket never fills");
            turn().await;
        };
        assert_eq!(full.kind(), ErrorKind::WouldBlock);
        assert_eq!(socket.flush().unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(poll_fn(|cx| Poll::Ready(socket.poll_writable(cx).is_pending())).await);
        let mut got = [0; 9];
        for number in 0..taken {
            assert_eq!((peer.recv(&mut got).unwrap(), got[0]), (9, number));
            turn().await;
            turn().await;
        }
        poll_fn(|cx| socket.poll_writable(cx)).await.unwrap();
        assert!(socket.try_queue(None, b"after").unwrap());
        turn().await;
        turn().await;
        assert_eq!(peer.recv(&mut got).unwrap(), 5);
    });
}

#[test]
fn a_refused_datagram_is_an_error_of_the_next_receive_and_the_socket_lives() {
    on_a_ring(|ring, _| async move {
        let place = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = place.local_addr().unwrap();
        let ours = UdpSocket::bind("127.0.0.1:0").unwrap();
        ours.connect(address).unwrap();
        ours.set_nonblocking(true).unwrap();
        let back = ours.local_addr().unwrap();
        drop(place);
        let socket = ring.datagrams(OwnedFd::from(ours)).unwrap();
        for is_receiving in [false, true] {
            if is_receiving {
                assert!(poll_fn(|cx| Poll::Ready(socket.poll_recv(cx, |_| ()).is_pending())).await);
                turn().await;
            }
            assert!(socket.try_queue(None, b"?").unwrap());
            assert_eq!(receive(&socket).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        }
        let peer = UdpSocket::bind(address).unwrap();
        patient(&peer);
        assert!(socket.try_queue(None, b"again").unwrap());
        turn().await;
        turn().await;
        let mut got = [0; 9];
        assert_eq!(peer.recv_from(&mut got).unwrap(), (5, back));
        peer.send_to(b"yes", back).unwrap();
        assert_eq!(receive(&socket).await.unwrap(), [(Some(address), b"yes".to_vec())]);
    });
}

#[test]
fn what_does_not_fit_is_reported_and_what_is_large_is_left_to_the_caller() {
    on_a_ring(|ring, _| async move {
        let (socket, peer) = unix_pair(&ring);
        assert!(socket.try_queue(None, b"small").unwrap());
        // What was taken before has gone.
        assert!(!socket.try_queue(None, &[7; SEND_SIZE + 1]).unwrap());
        let mut got = [0; 9];
        assert_eq!(peer.recv(&mut got).unwrap(), 5);

        let (socket, address, _) = pair(&ring);
        // A datagram of IPv4 has no address of IPv6: the kernel refuses it, and the one behind it is sent.
        assert!(socket.try_queue(Some("[::1]:9".parse().unwrap()), b"no").unwrap());
        assert!(socket.try_queue(Some(address), b"to itself").unwrap());
        let (one, other) = (receive(&socket).await, receive(&socket).await);
        let (arrived, error) = if one.is_ok() { (one, other) } else { (other, one) };
        assert_eq!(arrived.unwrap(), [(Some(address), b"to itself".to_vec())]);
        let error = error.unwrap_err();
        assert!(matches!(error.raw_os_error(), Some(libc::EAFNOSUPPORT | libc::EINVAL)), "{error}");
    });
}

#[test]
fn sockets_that_are_dropped_send_what_they_took_free_their_port_and_give_buffers_back() {
    on_a_ring(|ring, _| async move {
        for round in 0..100u8 {
            let (socket, address, peer) = pair(&ring);
            let from = peer.local_addr().unwrap();
            peer.send(b"taken").unwrap();
            assert_eq!(receive_many(&socket, 1).await.len(), 1);
            // Received and not taken, a receive under way, and sends that are queued.
            peer.send(b"left").unwrap();
            turn().await;
            assert!(socket.try_queue(Some(from), &[round]).unwrap());
            assert!(socket.try_queue(Some(from), b"last").unwrap());
            drop(socket);
            for _ in 0..3 {
                turn().await;
            }
            let mut got = [0; 9];
            assert_eq!((peer.recv(&mut got).unwrap(), got[0]), (1, round));
            assert_eq!(peer.recv(&mut got).unwrap(), 4);
            assert_eq!(ring.0.core.borrow().datagrams.len(), 0, "forgotten");
            UdpSocket::bind(address).expect("the port is free");
        }
        // With buffers lost, this would stop.
        let (socket, _, peer) = pair(&ring);
        for round in 0..64u8 {
            peer.send(&[round]).unwrap();
        }
        assert_eq!(receive_many(&socket, 64).await.len(), 64);
    });
}

#[test]
fn a_full_socket_that_is_dropped_sends_what_it_took_before_it_is_closed() {
    on_a_ring(|ring, _| async move {
        let (socket, peer) = unix_pair(&ring);
        let mut taken = 0u8;
        while socket.try_queue(None, &[taken; SEND_SIZE]).is_ok() {
            taken += 1;
            turn().await;
        }
        drop(socket);
        turn().await;
        assert_eq!(ring.0.core.borrow().datagrams.len(), 1);
        let mut got = [0; 9];
        for number in 0..taken {
            assert_eq!((peer.recv(&mut got).unwrap(), got[0]), (9, number));
            turn().await;
            turn().await;
        }
        for _ in 0..3 {
            turn().await;
        }
        assert_eq!(ring.0.core.borrow().datagrams.len(), 0);
        assert_eq!(peer.send(b"?").unwrap_err().kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn a_ring_that_ends_with_sockets_in_use_ends() {
    let (ours, peer) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    on_a_ring(|ring, tasks| async move {
        let socket = ring.datagrams(OwnedFd::from(ours)).unwrap();
        tasks.spawn(async move {
            assert!(socket.try_queue(None, b"bye").unwrap());
            let _ = receive(&socket).await;
        });
        turn().await;
    });
    let mut got = [0; 9];
    assert_eq!(peer.recv(&mut got).unwrap(), 3);
    // SAFETY: the peer is open.
    let peer = unsafe { BorrowedFd::borrow_raw(peer.as_raw_fd()) };
    assert!(
        rustix::net::send(peer, b"?", rustix::net::SendFlags::DONTWAIT).is_err(),
        "the other end is closed"
    );
}
