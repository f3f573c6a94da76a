//! A UDP socket that exchanges many datagrams in one system call, where the kernel can (udp(7), `UDP_SEGMENT` and `UDP_GRO`).

use std::cell::{Cell, RefCell};
use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::task::{Context, Poll, ready};

use polygraph_link::{Capture, Datagrams, IncomingDatagrams, OutgoingDatagrams};
use polygraph_uring::{Received, Ring, RingDatagrams};
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rustix::io::Errno;
use rustix::net::{SendFlags, send, sendto};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::loop_state::LoopState;
use crate::poller::register;

mod options;

/// The wanted size in bytes of the socket's receive buffer, in which datagrams wait while the loop is busy. The kernel may allow
/// less (`net.core.rmem_max`).
const RECEIVE_BUFFER: usize = 4 << 20;

/// The largest datagram in bytes on a loopback interface: a reply of 16 KB fits with its head.
const LARGEST_ON_LOOPBACK: u16 = 17_400;
/// The largest datagram elsewhere.
const LARGEST: u16 = 1452;

/// The most that is received in one system call: so many times what the kernel joins to one (UDP_GRO).
const BATCH: usize = 8;
/// The size in bytes of what the kernel joins.
const MOST_JOINED: usize = 64 * 1024;

/// A UDP socket on an event loop.
#[derive(Debug)]
pub struct UdpSocket {
    state: LoopState,
    udp: UdpSocketState,
    largest: u16,
    /// The peer of a connected socket.
    peer: Option<SocketAddr>,
    /// Whether the poller has reported an error, which it does for good.
    has_failed: Cell<bool>,
    /// The bits of Explicit Congestion Notification that datagrams carry unless a send says otherwise.
    ecn: u8,
    io: Io,
}

/// How the loop exchanges datagrams.
#[derive(Debug)]
enum Io {
    Polled(RefCell<Registration>),
    Ring(RingDatagrams),
}

/// How the loop on epoll watches the socket.
#[derive(Debug)]
enum Registration {
    Reading(AsyncFd<OwnedFd>),
    /// A send found the socket full once.
    Both(AsyncFd<OwnedFd>),
    /// Temporary state while the registration changes.
    Changing,
}

impl Registration {
    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Registration::Reading(fd) | Registration::Both(fd) => fd.get_ref().as_fd(),
            Registration::Changing => unreachable!("never left in between"),
        }
    }
}

impl UdpSocket {
    /// A socket that is bound already, on `ring` or, without one, on the current loop on epoll.
    ///
    /// # Errors
    /// If the system does not accept the settings.
    pub fn new(state: LoopState, ring: Option<&Ring>, socket: Socket) -> io::Result<UdpSocket> {
        let udp = UdpSocketState::new(UdpSockRef::from(&socket))?;
        let local = socket.local_addr().ok().and_then(|local| local.as_socket());
        let peer = socket.peer_addr().ok().and_then(|peer| peer.as_socket());
        let ecn = options::set_up(&socket, local);
        let is_loopback = local.is_some_and(|local| local.ip().is_loopback());
        let largest = if is_loopback { LARGEST_ON_LOOPBACK } else { LARGEST };
        let io = match ring {
            Some(ring) => Io::Ring(ring.datagrams(socket.into())?),
            None => {
                let registration = Registration::Reading(register(socket.into(), Interest::READABLE)?);
                Io::Polled(RefCell::new(registration))
            }
        };
        Ok(UdpSocket { state, udp, largest, peer, has_failed: Cell::default(), ecn, io })
    }

    /// Whether datagrams need nothing but what the socket has been told.
    fn is_plain(&self, datagrams: &OutgoingDatagrams<'_>) -> bool {
        let is_marked = datagrams.ecn == self.ecn;
        let is_for_peer = self.peer.is_none_or(|peer| peer == datagrams.to);
        datagrams.segment.is_none() && datagrams.from.is_none() && is_marked && is_for_peer
    }

    /// Where a plain datagram goes, unless the socket knows that.
    fn to(&self, datagrams: &OutgoingDatagrams<'_>) -> Option<SocketAddr> {
        self.peer.is_none().then_some(datagrams.to)
    }

    /// Sends with a system call. A connected socket that sends a plain datagram keeps its route: with an address or a control message,
    /// the kernel looks it up for each datagram.
    fn send(&self, fd: BorrowedFd<'_>, datagrams: &OutgoingDatagrams<'_>) -> io::Result<()> {
        if !self.is_plain(datagrams) {
            let transmit = Transmit {
                destination: datagrams.to,
                ecn: EcnCodepoint::from_bits(datagrams.ecn),
                contents: datagrams.bytes,
                segment_size: datagrams.segment,
                src_ip: datagrams.from,
            };
            return self.udp.try_send(UdpSockRef::from(&fd), &transmit);
        }
        loop {
            let sent = match self.to(datagrams) {
                None => send(fd, datagrams.bytes, SendFlags::NOSIGNAL),
                Some(to) => sendto(fd, datagrams.bytes, SendFlags::NOSIGNAL, &to),
            };
            if sent != Err(Errno::INTR) {
                return Ok(sent.map(drop)?);
            }
        }
    }
}

/// A socket at which a server receives datagrams at `address`, which sockets of other loops may share: the kernel passes all
/// datagrams of a client's socket to the same one.
///
/// # Errors
/// If the address cannot be used; the message contains it.
pub fn bind(address: SocketAddr) -> io::Result<Socket> {
    let binding = || {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_reuse_port(true)?;
        socket.bind(&address.into())?;
        // A smaller buffer loses datagrams under load; that is counted as lost packets.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        Ok(socket)
    };
    binding().map_err(|e: io::Error| {
        io::Error::new(e.kind(), format!("cannot receive datagrams at {address} over UDP: {e}"))
    })
}

/// Passes what has arrived to `take`. Returns whether that was everything.
fn receive(
    udp: &UdpSocketState,
    state: &LoopState,
    fd: BorrowedFd<'_>,
    take: &mut impl FnMut(&IncomingDatagrams<'_>),
) -> io::Result<bool> {
    state.with_batch(BATCH * MOST_JOINED, |buffer| {
        let mut parts = buffer.chunks_exact_mut(MOST_JOINED);
        let mut parts: [_; BATCH] =
            std::array::from_fn(|_| IoSliceMut::new(parts.next().unwrap_or_default()));
        let mut metas = [RecvMeta::default(); BATCH];
        let count = udp.recv(UdpSockRef::from(&fd), &mut parts, &mut metas)?;
        for (meta, part) in metas.iter().zip(&parts).take(count) {
            take(&IncomingDatagrams {
                from: meta.addr,
                to: meta.dst_ip,
                ecn: meta.ecn.map_or(0, |ecn| ecn as u8),
                segment: meta.stride.max(1),
                bytes: &part[..meta.len],
            });
        }
        Ok(count < BATCH)
    })
}

impl Datagrams for UdpSocket {
    fn most_segments(&self) -> usize {
        self.udp.max_gso_segments()
    }

    fn keeps_whole(&self) -> bool {
        !self.udp.may_fragment()
    }

    fn largest(&self) -> u16 {
        self.largest
    }

    fn new_capture(&self) -> Option<Capture> {
        self.state.new_capture().map(|capture| *capture)
    }

    fn try_send(&self, datagrams: &OutgoingDatagrams<'_>) -> io::Result<()> {
        match &self.io {
            Io::Polled(registration) => self.send(registration.borrow().fd(), datagrams),
            Io::Ring(socket) if !self.is_plain(datagrams) => {
                socket.flush()?;
                self.send(socket.as_fd(), datagrams)
            }
            Io::Ring(socket) => match socket.try_queue(self.to(datagrams), datagrams.bytes)? {
                true => Ok(()),
                false => self.send(socket.as_fd(), datagrams),
            },
        }
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let registration = match &self.io {
            Io::Polled(registration) => registration,
            Io::Ring(socket) => return socket.poll_writable(cx),
        };
        let mut registration = registration.borrow_mut();
        *registration = match std::mem::replace(&mut *registration, Registration::Changing) {
            Registration::Reading(fd) => {
                let interest = Interest::READABLE | Interest::WRITABLE;
                Registration::Both(register(fd.into_inner(), interest)?)
            }
            // The readiness that made the send fail is stale.
            Registration::Both(fd) => {
                if let Poll::Ready(guard) = fd.poll_write_ready(cx) {
                    guard?.clear_ready();
                }
                Registration::Both(fd)
            }
            other => other,
        };
        let Registration::Both(fd) = &*registration else { return Poll::Ready(Ok(())) };
        fd.poll_write_ready(cx).map_ok(|_| ())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        mut take: impl FnMut(&IncomingDatagrams<'_>),
    ) -> Poll<io::Result<()>> {
        let registration = match &self.io {
            Io::Polled(registration) => registration.borrow(),
            Io::Ring(socket) => return socket.poll_recv(cx, |received| take(&incoming(received, self.peer))),
        };
        let (Registration::Reading(fd) | Registration::Both(fd)) = &*registration else {
            unreachable!("never left in between")
        };
        loop {
            let mut guard = match (fd.poll_read_ready(cx), &*registration) {
                (Poll::Ready(guard), _) => guard?,
                // An error without a datagram, that nobody is there for example, is to the poller the end of writing.
                (Poll::Pending, Registration::Reading(_)) if !self.has_failed.get() => {
                    let guard = ready!(fd.poll_write_ready(cx))?;
                    self.has_failed.set(true);
                    guard
                }
                (Poll::Pending, _) => return Poll::Pending,
            };
            let received = receive(&self.udp, &self.state, guard.get_inner().as_fd(), &mut take);
            let is_empty = match &received {
                Ok(emptied) => *emptied,
                Err(error) => error.kind() == io::ErrorKind::WouldBlock,
            };
            if is_empty {
                guard.clear_ready();
            }
            match received {
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                received => return Poll::Ready(received.map(|_| ())),
            }
        }
    }
}

/// What a ring has received, as the link says it. Every datagram has an address, so the one of the peer never has to stand in.
fn incoming<'a>(received: &Received<'a>, peer: Option<SocketAddr>) -> IncomingDatagrams<'a> {
    let unspecified = || SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
    IncomingDatagrams {
        from: received.from.or(peer).unwrap_or_else(unspecified),
        to: received.to,
        ecn: received.ecn,
        segment: received.segment,
        bytes: received.bytes,
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::net::{IpAddr, Ipv6Addr};
    use std::pin::pin;

    use polygraph_link::{Link, Nanos};

    use super::*;
    use crate::event_loop::{Engine, EventLoop};
    use crate::timers::DEFAULT_QUANTUM;

    #[test]
    fn datagrams_cross_in_batches_and_nobody_at_home_is_an_error() {
        for engine in Engine::available() {
            let event_loop = EventLoop::new(engine, DEFAULT_QUANTUM, None).unwrap();
            let net = event_loop.net().clone();
            let (sizes, absent) = event_loop
                .run(async move {
                    let socket = bind("127.0.0.1:0".parse().unwrap()).unwrap();
                    let address = socket.local_addr().unwrap().as_socket().unwrap();
                    let server = UdpSocket::new(net.state().clone(), net.ring(), socket).unwrap();
                    let client = net.connect_datagrams(Some(address.ip()), address).unwrap();
                    let bytes = vec![7; 2500];
                    let batch = client.most_segments() > 1;
                    let segment = batch.then_some(1000);
                    let bytes = if batch { &bytes[..] } else { &bytes[..1000] };
                    let out = OutgoingDatagrams { to: address, from: None, ecn: 0, segment, bytes };
                    client.try_send(&out).unwrap();
                    let (mut got, mut sizes) = (0, Vec::new());
                    while got < bytes.len() {
                        poll_fn(|cx| {
                            server.poll_recv(cx, |datagrams| {
                                got += datagrams.bytes.len();
                                sizes.extend(datagrams.bytes.chunks(datagrams.segment).map(<[u8]>::len));
                            })
                        })
                        .await
                        .unwrap();
                    }
                    drop(server);
                    let out =
                        OutgoingDatagrams { to: address, from: None, ecn: 0, segment: None, bytes: b"?" };
                    // On a ring, the server's socket is closed at the next turn, and the answer that nobody is there arrives later.
                    let absent = loop {
                        if let Err(error) = client.try_send(&out) {
                            break error;
                        }
                        polygraph_link::yield_now().await;
                        let received = poll_fn(|cx| Poll::Ready(client.poll_recv(cx, |_| ()))).await;
                        if let Poll::Ready(Err(error)) = received {
                            break error;
                        }
                    };
                    (sizes, absent.kind())
                })
                .unwrap();
            assert!(sizes == [1000, 1000, 500] || sizes == [1000], "{sizes:?}");
            assert_eq!(absent, io::ErrorKind::ConnectionRefused, "{engine:?}");
        }
    }

    /// Nothing else may be sent for a second, so whoever waits for an answer has to be woken.
    #[test]
    fn one_datagram_finds_out_that_nobody_is_at_home() {
        for engine in Engine::available() {
            let event_loop = EventLoop::new(engine, DEFAULT_QUANTUM, None).unwrap();
            let net = event_loop.net().clone();
            let absent = event_loop
                .run(async move {
                    let closed = bind("127.0.0.1:0".parse().unwrap()).unwrap().local_addr().unwrap();
                    let to = closed.as_socket().unwrap();
                    let client = net.connect_datagrams(Some(to.ip()), to).unwrap();
                    let out = OutgoingDatagrams { to, from: None, ecn: 0, segment: None, bytes: b"?" };
                    client.try_send(&out).unwrap();
                    let mut patience = pin!(net.sleep_until(net.now() + Nanos::from_secs(20)));
                    let answer = poll_fn(|cx| match client.poll_recv(cx, |_| ()) {
                        Poll::Pending => patience.as_mut().poll(cx).map(|_| Ok(())),
                        ready => ready,
                    });
                    answer.await.map_err(|error| error.kind())
                })
                .unwrap();
            assert_eq!(absent, Err(io::ErrorKind::ConnectionRefused), "{engine:?}");
        }
    }

    /// What came with a datagram.
    async fn receive_facts(socket: &UdpSocket) -> (Option<IpAddr>, u8, SocketAddr) {
        let mut facts = None;
        while facts.is_none() {
            let take = |datagrams: &IncomingDatagrams<'_>| {
                facts = Some((datagrams.to, datagrams.ecn, datagrams.from))
            };
            let mut take = take;
            poll_fn(|cx| socket.poll_recv(cx, &mut take)).await.unwrap();
        }
        facts.unwrap()
    }

    #[test]
    fn datagrams_have_their_mark_and_only_a_socket_with_several_addresses_tells_which() {
        for engine in Engine::available() {
            for (at, tells) in [("127.0.0.1", false), ("0.0.0.0", true), ("[::1]", false), ("[::]", true)] {
                let Ok(socket) = bind(format!("{at}:0").parse().unwrap()) else { continue };
                let event_loop = EventLoop::new(engine, DEFAULT_QUANTUM, None).unwrap();
                let net = event_loop.net().clone();
                let test = async move {
                    let mut address = socket.local_addr().unwrap().as_socket().unwrap();
                    let home: IpAddr = if address.is_ipv4() {
                        Ipv4Addr::LOCALHOST.into()
                    } else {
                        Ipv6Addr::LOCALHOST.into()
                    };
                    address.set_ip(home);
                    let server = UdpSocket::new(net.state().clone(), net.ring(), socket).unwrap();
                    let client = net.connect_datagrams(Some(home), address).unwrap();
                    for ecn in [0b10, 0, 0b01] {
                        let out =
                            OutgoingDatagrams { to: address, from: None, ecn, segment: None, bytes: b"?" };
                        client.try_send(&out).unwrap();
                        let (to, mark, back) = receive_facts(&server).await;
                        assert_eq!((to, mark), (tells.then_some(home), ecn), "{engine:?}, {at}");
                        // The answer of a socket with several addresses says which one.
                        let out = OutgoingDatagrams { to: back, from: to, ecn, segment: None, bytes: b"!" };
                        server.try_send(&out).unwrap();
                        assert_eq!(receive_facts(&client).await, (None, ecn, address), "{engine:?}, {at}");
                    }
                };
                event_loop.run(test).unwrap();
            }
        }
    }

    #[test]
    fn small_large_and_split_datagrams_arrive_in_the_order_in_which_they_were_sent() {
        for engine in Engine::available() {
            let event_loop = EventLoop::new(engine, DEFAULT_QUANTUM, None).unwrap();
            let net = event_loop.net().clone();
            let test = async move {
                let socket = bind("127.0.0.1:0".parse().unwrap()).unwrap();
                let address = socket.local_addr().unwrap().as_socket().unwrap();
                let server = UdpSocket::new(net.state().clone(), net.ring(), socket).unwrap();
                let client = net.connect_datagrams(Some(address.ip()), address).unwrap();
                let splits = client.most_segments() > 1;
                let (mut sent, mut got) = (Vec::new(), Vec::new());
                for (first, ecn) in [(0, 0b10), (100, 0)] {
                    for (size, segment) in
                        [(900, None), (9000, None), (50, None), (2500, Some(1000)), (70, None)]
                    {
                        let Some(segment) = segment.map_or(Some(size), |segment| splits.then_some(segment))
                        else {
                            continue;
                        };
                        let number = first + sent.len() as u8;
                        let bytes = vec![number; size];
                        sent.extend(bytes.chunks(segment).map(<[u8]>::to_vec));
                        let segment = (segment < size).then_some(segment);
                        let out = OutgoingDatagrams { to: address, from: None, ecn, segment, bytes: &bytes };
                        client.try_send(&out).unwrap();
                    }
                }
                while got.len() < sent.len() {
                    let mut take = |datagrams: &IncomingDatagrams<'_>| {
                        got.extend(datagrams.bytes.chunks(datagrams.segment).map(<[u8]>::to_vec));
                    };
                    poll_fn(|cx| server.poll_recv(cx, &mut take)).await.unwrap();
                }
                assert!(got == sent, "{engine:?}: {:?}", got.iter().map(Vec::len).collect::<Vec<_>>());
            };
            event_loop.run(test).unwrap();
        }
    }
}
