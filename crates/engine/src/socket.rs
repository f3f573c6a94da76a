//! One TCP connection on a loop of either engine.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::task::{Context, Poll, ready};

use polygraph_link::{Capture, Conn, IdleState, Nanos};
use polygraph_uring::{RingStream, Unread};
use rustix::net::sockopt;

use crate::loop_state::LoopState;
use crate::polled_socket::PolledSocket;

/// A TCP connection.
#[derive(Debug)]
pub struct Socket {
    io: SocketIo,
    nagle: Nagle,
    state: LoopState,
    place: usize,
    capture: Option<Box<Capture>>,
}

/// The socket as the engine of its loop handles it.
#[derive(Debug)]
pub enum SocketIo {
    /// On epoll.
    Polled(PolledSocket),
    /// On io_uring.
    Ring(RingStream),
}

/// Nagle's algorithm (RFC 9293, section 3.7.4) delays small segments until the peer has acknowledged all earlier
/// ones, which takes 40 ms if the peer waits for more data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nagle {
    /// The algorithm is off.
    Off,
    /// The algorithm is on, but does not delay the next send: the peer has answered everything.
    Harmless,
    /// The algorithm would delay the next send.
    Harmful,
}

impl Socket {
    /// A connection over `io`. `accepted` means that the peer opened the connection and that Nagle's
    /// algorithm is off, as on all sockets of [`crate::listen::listen`].
    pub fn new(state: LoopState, io: SocketIo, accepted: bool) -> Socket {
        let place = state.deadlines().enter();
        let capture = state.new_capture();
        // Most requests need one send, so an outgoing connection sets the option only if it needs it.
        let nagle = if accepted { Nagle::Off } else { Nagle::Harmless };
        Socket { io, nagle, state, place, capture }
    }

    /// Whether the deadline has expired; otherwise the task is woken when it does.
    fn is_expired(&self, cx: &mut Context<'_>) -> bool {
        self.state.deadlines().check(self.place, cx.waker())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.io {
            SocketIo::Polled(socket) => socket.as_fd(),
            SocketIo::Ring(stream) => stream.as_fd(),
        }
    }
}

impl Conn for Socket {
    fn try_send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.nagle == Nagle::Harmful {
            // If the option cannot be set, sends are late, but work.
            let _ = sockopt::set_tcp_nodelay(&*self, true);
            self.nagle = Nagle::Off;
        }
        let sent = match &mut self.io {
            SocketIo::Polled(socket) => socket.try_send(parts),
            SocketIo::Ring(stream) => stream.try_send(parts),
        }?;
        if self.nagle == Nagle::Harmless {
            self.nagle = Nagle::Harmful;
        }
        if let Some(capture) = &mut self.capture {
            keep(capture, parts, sent);
        }
        Ok(sent)
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_expired(cx) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        match &mut self.io {
            SocketIo::Polled(socket) => socket.poll_writable(cx),
            SocketIo::Ring(stream) => stream.poll_writable(cx),
        }
    }

    fn poll_recv<R>(&mut self, cx: &mut Context<'_>, take: impl FnOnce(&[u8]) -> R) -> Poll<io::Result<R>> {
        if self.is_expired(cx) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        let capture = &mut self.capture;
        let take = |bytes: &[u8]| {
            if let Some(capture) = capture {
                capture.receive(bytes);
            }
            take(bytes)
        };
        let taken = match &mut self.io {
            SocketIo::Polled(socket) => {
                let n = ready!(socket.poll_read(&self.state, cx))?;
                // No other task has run since the read, so the buffer of the loop still contains these bytes.
                self.state.with_buffer(|buffer| take(&buffer[..n]))
            }
            SocketIo::Ring(stream) => ready!(stream.poll_recv(cx, take))?,
        };
        if self.nagle == Nagle::Harmful {
            self.nagle = Nagle::Harmless;
        }
        Poll::Ready(Ok(taken))
    }

    fn idle_state(&mut self) -> IdleState {
        match &mut self.io {
            SocketIo::Polled(socket) => socket.idle_state(),
            SocketIo::Ring(stream) => match stream.unread(IdleState::MAX_SHOWN) {
                Unread::Nothing => IdleState::Quiet,
                Unread::Bytes(first) => IdleState::Bytes(first),
                Unread::End => IdleState::Closed,
            },
        }
    }

    fn set_deadline(&mut self, at: Option<Nanos>) {
        self.state.deadlines().set(self.place, at);
    }

    fn expect_end(&mut self) {
        match &mut self.io {
            SocketIo::Polled(socket) => socket.expect_end(),
            SocketIo::Ring(stream) => stream.expect_end(),
        }
    }

    fn finish(&mut self) {
        match &mut self.io {
            // Where this fails the peer has closed or reset the connection already.
            SocketIo::Polled(socket) => drop(rustix::net::shutdown(socket, rustix::net::Shutdown::Write)),
            SocketIo::Ring(stream) => stream.finish(),
        }
    }

    fn reset(&mut self) {
        if let SocketIo::Ring(stream) = &mut self.io {
            stream.forget_unsent();
        }
        // Closing sends the reset. Where the option cannot be set the connection is gone already.
        let _ = sockopt::set_socket_linger(&*self, Some(std::time::Duration::ZERO));
    }

    fn take_capture(&mut self) -> Option<Capture> {
        self.capture.as_mut().map(|capture| capture.take())
    }
}

/// Captures the first `sent` bytes of `parts`.
fn keep(capture: &mut Capture, parts: &[IoSlice<'_>], mut sent: usize) {
    for part in parts {
        let of_part = sent.min(part.len());
        capture.send(&part[..of_part]);
        sent -= of_part;
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.state.deadlines().leave(self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_loop::{Engine, EventLoop};
    use crate::net::Net;
    use crate::timers::DEFAULT_QUANTUM;
    use polygraph_link::Link;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;

    fn on_every_loop<F: Future<Output = ()> + 'static>(test: impl Fn(Net) -> F) {
        for engine in Engine::available() {
            let event_loop = EventLoop::new(engine, DEFAULT_QUANTUM, None).unwrap();
            let net = event_loop.net().clone();
            event_loop.run(test(net)).unwrap();
        }
    }

    #[test]
    fn only_a_second_send_before_the_answer_turns_nagles_algorithm_off() {
        on_every_loop(|net| async move {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut socket = net.connect(None, listener.local_addr().unwrap()).unwrap();
            let (mut peer, _) = listener.accept().unwrap();
            for _ in 0..2 {
                assert_eq!(socket.try_send(&[IoSlice::new(b"?")]).unwrap(), 1);
                assert!(!sockopt::tcp_nodelay(&socket).unwrap(), "nothing is held back");
                peer.write_all(b"!").unwrap();
                socket.recv(|data| assert_eq!(data, b"!")).await.unwrap();
            }
            for _ in 0..2 {
                assert_eq!(socket.try_send(&[IoSlice::new(b"?")]).unwrap(), 1);
            }
            assert!(sockopt::tcp_nodelay(&socket).unwrap());
        });
    }

    /// Number of segments that a socket has received (`tcpi_segs_in` of tcp(7)).
    fn segments(socket: &std::net::TcpStream) -> u32 {
        const SEGS_IN: usize = 140;
        let mut info = [0u8; 256];
        let mut size = info.len() as libc::socklen_t;
        // SAFETY: the descriptor is open, and the buffer has room for as many bytes as `size` says.
        let result = unsafe {
            let to = info.as_mut_ptr().cast();
            libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, to, &raw mut size)
        };
        assert!(result == 0 && size as usize >= SEGS_IN + 4);
        u32::from_ne_bytes(*info[SEGS_IN..].first_chunk().unwrap())
    }

    #[test]
    fn an_expected_end_travels_with_the_last_bytes_and_nothing_is_lost() {
        on_every_loop(|net| async move {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let end_of = async |size: usize, expected: bool| {
                let mut socket = net.connect(None, listener.local_addr().unwrap()).unwrap();
                socket.try_send(&[IoSlice::new(b"?")]).unwrap();
                let (mut peer, _) = listener.accept().unwrap();
                peer.read_exact(&mut [0]).unwrap();
                peer.write_all(b"!").unwrap();
                socket.recv(|data| assert_eq!(data, b"!")).await.unwrap();
                let reader = std::thread::spawn(move || {
                    let mut all = Vec::new();
                    peer.read_to_end(&mut all).unwrap();
                    (all, segments(&peer))
                });
                if expected {
                    socket.expect_end();
                }
                let sent: Vec<u8> = (0..size).map(|at| at as u8).collect();
                polygraph_link::send_all(&mut socket, &sent).await.unwrap();
                drop(socket);
                while !reader.is_finished() {
                    net.sleep_until(net.now() + Nanos::new(100_000)).await;
                }
                let (received, segments) = reader.join().unwrap();
                assert!(received == sent, "{} of {size} bytes", received.len());
                segments
            };
            for size in [10, 10_000] {
                assert_eq!(end_of(size, true).await + 1, end_of(size, false).await, "{size} bytes");
            }
            end_of(5_000_000, true).await;
        });
    }

    #[test]
    fn of_many_idle_connections_all_that_the_peer_closed_are_noticed() {
        const MANY: usize = 500;
        on_every_loop(|net| async move {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let (mut sockets, mut peers) = (Vec::new(), Vec::new());
            for _ in 0..MANY {
                let mut socket = net.connect(None, address).unwrap();
                assert_eq!(socket.try_send(&[IoSlice::new(b"?")]).unwrap(), 1);
                let (mut peer, _) = listener.accept().unwrap();
                peer.read_exact(&mut [0]).unwrap();
                peer.write_all(b"!").unwrap();
                socket.recv(|data| assert_eq!(data, b"!")).await.unwrap();
                sockets.push(socket);
                peers.push(peer);
            }
            assert!(!sockets.iter_mut().any(Conn::is_disturbed), "nothing has happened yet");
            // Every other one is closed; the first of the rest says something that nobody asked for.
            peers[1].write_all(b"boo").unwrap();
            let kept: Vec<_> = peers.into_iter().enumerate().filter(|(at, _)| at % 2 == 1).collect();
            let deadline = net.now() + 10 * polygraph_link::SECOND;
            loop {
                net.sleep_until(net.now() + Nanos::new(1_000_000)).await;
                // All in a row, as an event loop does it that looks through its pool.
                let disturbed: Vec<bool> = sockets.iter_mut().map(Conn::is_disturbed).collect();
                if disturbed.iter().enumerate().all(|(at, &is)| is == (at % 2 == 0 || at == 1)) {
                    break;
                }
                assert!(net.now() < deadline, "{} noticed", disturbed.iter().filter(|&&is| is).count());
            }
            drop(kept);
        });
    }
}
