//! A UDP socket that exchanges many datagrams in one system call, where the kernel can (udp(7), `UDP_SEGMENT` and `UDP_GRO`).

use std::cell::{Cell, RefCell};
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use polygraph_link::{Capture, Datagrams, IncomingDatagrams, OutgoingDatagrams};
use polygraph_uring::{Readiness, Ring};
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
    /// The bits of Explicit Congestion Notification that datagrams carry unless a send says otherwise.
    ecn: u8,
    /// Whether the last receive took everything there was, so that another one is worth while only when a ring says so.
    emptied: Cell<bool>,
    fd: RefCell<Registration>,
}

/// How the loop watches the socket.
#[derive(Debug)]
enum Registration {
    Reading(AsyncFd<OwnedFd>),
    /// A send found the socket full once.
    Both(AsyncFd<OwnedFd>),
    /// The waits come first, because they must end before the descriptor is closed.
    Ring {
        reading: Option<Readiness>,
        writing: Option<Readiness>,
        ring: Ring,
        fd: OwnedFd,
    },
    /// Temporary state while the registration changes.
    Changing,
}

impl Registration {
    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Registration::Reading(fd) | Registration::Both(fd) => fd.get_ref().as_fd(),
            Registration::Ring { fd, .. } => fd.as_fd(),
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
        let fd = match ring {
            Some(ring) => {
                Registration::Ring { reading: None, writing: None, ring: ring.clone(), fd: socket.into() }
            }
            None => Registration::Reading(register(socket.into(), Interest::READABLE)?),
        };
        let emptied = Cell::new(false);
        Ok(UdpSocket { state, udp, largest, peer, ecn, emptied, fd: RefCell::new(fd) })
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
        self.send(self.fd.borrow().fd(), datagrams)
    }

    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut registration = self.fd.borrow_mut();
        if let Registration::Ring { writing, ring, fd, .. } = &mut *registration {
            return poll_ready(ring, writing, fd.as_fd(), libc::POLLOUT, cx);
        }
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
        let mut registration = self.fd.borrow_mut();
        loop {
            let received = match &mut *registration {
                Registration::Reading(fd) | Registration::Both(fd) => {
                    let mut guard = ready!(fd.poll_read_ready(cx))?;
                    let received = receive(&self.udp, &self.state, guard.get_inner().as_fd(), &mut take);
                    let is_empty = match &received {
                        Ok(emptied) => *emptied,
                        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
                    };
                    if is_empty {
                        guard.clear_ready();
                    }
                    received
                }
                Registration::Ring { reading, ring, fd, .. } => {
                    if reading.is_some() || self.emptied.get() {
                        ready!(poll_ready(ring, reading, fd.as_fd(), libc::POLLIN, cx))?;
                    }
                    let received = receive(&self.udp, &self.state, fd.as_fd(), &mut take);
                    if matches!(&received, Err(e) if e.kind() == io::ErrorKind::WouldBlock) {
                        ready!(poll_ready(ring, reading, fd.as_fd(), libc::POLLIN, cx))?;
                    }
                    received
                }
                Registration::Changing => unreachable!("never left in between"),
            };
            match received {
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                received => {
                    self.emptied.set(matches!(received, Ok(true)));
                    return Poll::Ready(received.map(|_| ()));
                }
            }
        }
    }
}

/// Waits on a ring, in the wait `kept` if one is under way.
fn poll_ready(
    ring: &Ring,
    kept: &mut Option<Readiness>,
    fd: BorrowedFd<'_>,
    events: libc::c_short,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    let wait = match kept {
        Some(wait) => wait,
        None => kept.insert(ring.ready(fd, events)?),
    };
    let result = ready!(Pin::new(wait).poll(cx));
    *kept = None;
    Poll::Ready(result)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use polygraph_link::Link;

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
                    client.try_send(&out).unwrap();
                    // The answer that nobody is there has arrived.
                    (sizes, client.try_send(&out).unwrap_err().kind())
                })
                .unwrap();
            assert!(sizes == [1000, 1000, 500] || sizes == [1000], "{sizes:?}");
            assert_eq!(absent, io::ErrorKind::ConnectionRefused, "{engine:?}");
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
}
