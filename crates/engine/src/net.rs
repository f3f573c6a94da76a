//! The link over real sockets: what one event loop offers to the robots and servers that run on it.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use polygraph_link::{ConnectError, Link, Nanos};
use polygraph_uring::{Ring, Tasks, Wait};
use polygraph_wire::date;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::time::{ClockId, clock_gettime};

use crate::datagram;
use crate::loop_state::LoopState;
use crate::polled_socket::PolledSocket;
use crate::ports::Ports;
use crate::socket::{Socket, SocketIo};
use crate::timers::{self, Timers};
use crate::udp::UdpSocket;

/// How many other ports are tried if a bound explicit port is useless, because a connection between the same two
/// addresses uses it or is in TIME_WAIT.
const PORT_TRIES: usize = 200;

/// The link of one event loop. Clones are handles to the same loop.
#[derive(Clone, Debug)]
pub struct Net(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The ring and the tasks of a loop on io_uring; `None` on epoll.
    ring: Option<(Ring, Tasks)>,
    timers: Timers,
    state: LoopState,
    /// The second for which the date is formatted, and the date.
    date: Cell<(u64, [u8; 29])>,
    /// Explicit local ports, if configured.
    ports: Option<Ports>,
}

impl Net {
    /// The link of the current loop on epoll. The function must be called inside the loop's runtime.
    ///
    /// # Errors
    /// If the system does not provide a timer.
    pub fn on_epoll(quantum: Nanos, ports: Option<Ports>) -> io::Result<Net> {
        let timers = Timers::on_timerfd(quantum)?;
        tokio::task::spawn_local(timers.clone().drive());
        Ok(Net::with(None, timers, ports))
    }

    /// The link of a loop on io_uring.
    pub fn on_ring(quantum: Nanos, ports: Option<Ports>, ring: Ring, tasks: Tasks) -> Net {
        Net::with(Some((ring, tasks)), Timers::new(quantum), ports)
    }

    fn with(ring: Option<(Ring, Tasks)>, timers: Timers, ports: Option<Ports>) -> Net {
        let (state, date) = (LoopState::new(), Cell::new((0, [b' '; 29])));
        Net(Rc::new(Inner { ring, timers, state, date, ports }))
    }

    /// The ring of a loop on io_uring; `None` on epoll.
    pub fn ring(&self) -> Option<&Ring> {
        self.0.ring.as_ref().map(|(ring, _)| ring)
    }

    /// The timers of this loop.
    pub fn timers(&self) -> &Timers {
        &self.0.timers
    }

    /// A connection over an accepted socket of [`crate::listen::listen`].
    pub fn accepted(&self, fd: OwnedFd) -> Socket {
        let io = match self.ring() {
            Some(ring) => SocketIo::Ring(ring.stream(fd, true)),
            None => SocketIo::Polled(PolledSocket::new(fd, true)),
        };
        Socket::new(self.state().clone(), io, true)
    }

    /// What the connections of this loop share.
    pub fn state(&self) -> &LoopState {
        &self.0.state
    }

    /// Binds a UDP socket to its local address and, if ports are explicit, to a port of the range. Unlike those of TCP, ports of UDP
    /// must never be shared: replies of the same peer could not be told apart.
    fn bind_datagrams(&self, fd: &OwnedFd, from: Option<IpAddr>, to: SocketAddr) -> Result<(), ConnectError> {
        match (&self.0.ports, from) {
            (Some(ports), from) => bind_in_turn(ports, fd, from.unwrap_or(unspecified(to))),
            (None, Some(from)) => match rustix::net::bind(fd, &SocketAddr::new(from, 0)) {
                Err(Errno::ADDRINUSE) => Err(ConnectError::NoPort),
                bound => bound.map_err(binding),
            },
            (None, None) => Ok(()),
        }
    }

    /// Binds the socket to its local address and, if ports are explicit, to a port of the range.
    fn bind(&self, fd: &OwnedFd, from: Option<IpAddr>, to: SocketAddr) -> Result<(), ConnectError> {
        let Some(ports) = &self.0.ports else {
            let Some(from) = from else { return Ok(()) };
            // The system chooses the port at connect, when the peer is known, so one local address allows for more
            // than 65,536 connections.
            bind_address_no_port(fd);
            return rustix::net::bind(fd, &SocketAddr::new(from, 0)).map_err(binding);
        };
        // Without this option a port could not be used while an earlier connection of it is in TIME_WAIT.
        sockopt::set_socket_reuseaddr(fd, true).map_err(binding)?;
        bind_in_turn(ports, fd, from.unwrap_or(unspecified(to)))
    }
}

fn unspecified(to: SocketAddr) -> IpAddr {
    if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() }
}

/// Binds the socket to the next free port of the address.
fn bind_in_turn(ports: &Ports, fd: &OwnedFd, from: IpAddr) -> Result<(), ConnectError> {
    let bound = ports.bind(from, |address| match rustix::net::bind(fd, &address) {
        Ok(()) => Ok(true),
        Err(Errno::ADDRINUSE) => Ok(false),
        Err(e) => Err(binding(e)),
    })?;
    bound.ok_or(ConnectError::NoPort)
}

impl Link for Net {
    type Conn = Socket;
    type Datagrams = UdpSocket;

    fn now(&self) -> Nanos {
        timers::now()
    }

    fn http_date(&self) -> [u8; 29] {
        let second = clock_gettime(ClockId::RealtimeCoarse).tv_sec as u64;
        let (written, date) = self.0.date.get();
        if written == second {
            return date;
        }
        let mut date = [b' '; 29];
        date.copy_from_slice(date::format(second).as_bytes());
        self.0.date.set((second, date));
        date
    }

    fn unix_seconds(&self) -> i64 {
        clock_gettime(ClockId::RealtimeCoarse).tv_sec
    }

    fn unix_millis(&self) -> u64 {
        let time = clock_gettime(ClockId::Realtime);
        time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
    }

    fn sleep_until(&self, at: Nanos) -> impl Future<Output = ()> {
        self.0.timers.sleep_until(at)
    }

    fn connect(&self, from: Option<IpAddr>, to: SocketAddr) -> Result<Socket, ConnectError> {
        let tries = if self.0.ports.is_some() { PORT_TRIES } else { 1 };
        let mut result = Err(ConnectError::NoPort);
        for _ in 0..tries {
            result = self.connect_once(from, to);
            if !matches!(result, Err(ConnectError::NoPort)) {
                break;
            }
        }
        result
    }

    async fn exchange_datagram<R>(
        &self,
        from: Option<IpAddr>,
        server: SocketAddr,
        datagram: &[u8],
        until: Option<Nanos>,
        accept: impl FnMut(&[u8]) -> Option<R>,
    ) -> io::Result<R> {
        let exchange = datagram::exchange(self.state(), self.ring(), from, server, datagram, accept);
        let Some(until) = until else { return exchange.await };
        let (mut exchange, mut limit) = (pin!(exchange), pin!(self.sleep_until(until)));
        poll_fn(|cx| match exchange.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(done),
            Poll::Pending => limit.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into())),
        })
        .await
    }

    fn connect_datagrams(&self, from: Option<IpAddr>, to: SocketAddr) -> Result<UdpSocket, ConnectError> {
        let fd = self.open_socket(to, SocketType::DGRAM)?;
        self.bind_datagrams(&fd, from, to)?;
        rustix::net::connect(&fd, &to).map_err(|e| match e {
            Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => ConnectError::NoPort,
            Errno::NOBUFS | Errno::NOMEM => ConnectError::NoMemory,
            e => ConnectError::Refused(e.kind()),
        })?;
        let socket = UdpSocket::new(self.state().clone(), self.ring(), fd.into());
        socket.map_err(|e| ConnectError::Refused(e.kind()))
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        match &self.0.ring {
            Some((_, tasks)) => tasks.spawn(task),
            None => drop(tokio::task::spawn_local(task)),
        }
    }
}

impl Net {
    fn connect_once(&self, from: Option<IpAddr>, to: SocketAddr) -> Result<Socket, ConnectError> {
        let fd = self.open_socket(to, SocketType::STREAM)?;
        self.bind(&fd, from, to)?;
        // The first bytes follow at once, so the end of the handshake travels with them instead of in its own segment. If they do
        // not follow, the system sends it after 0.2 s. Without the option everything works.
        let _ = sockopt::set_tcp_quickack(&fd, false);
        let established = match rustix::net::connect(&fd, &to) {
            Ok(()) => true,
            Err(Errno::INPROGRESS) => false,
            Err(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE) => return Err(ConnectError::NoPort),
            Err(Errno::NOBUFS | Errno::NOMEM) => return Err(ConnectError::NoMemory),
            Err(e) => return Err(ConnectError::Refused(e.kind())),
        };
        let io = match self.ring() {
            Some(ring) => SocketIo::Ring(ring.stream(fd, established)),
            None => SocketIo::Polled(PolledSocket::new(fd, false)),
        };
        Ok(Socket::new(self.state().clone(), io, false))
    }

    fn open_socket(&self, to: SocketAddr, kind: SocketType) -> Result<OwnedFd, ConnectError> {
        let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let open = || rustix::net::socket_with(family, kind, flags, None);
        let opened = match (open(), self.ring()) {
            // Connections that were dropped are closed at the next turn of the ring.
            (Err(Errno::MFILE | Errno::NFILE), Some(ring)) if ring.turn(Wait::No).is_ok() => open(),
            (opened, _) => opened,
        };
        opened.map_err(|e| match e {
            Errno::MFILE | Errno::NFILE => ConnectError::NoDescriptor,
            Errno::NOBUFS | Errno::NOMEM => ConnectError::NoMemory,
            e => ConnectError::Refused(e.kind()),
        })
    }
}

fn binding(error: Errno) -> ConnectError {
    ConnectError::Bind(error.kind())
}

/// Sets `IP_BIND_ADDRESS_NO_PORT` (Linux 4.2, ip(7)). If that fails, the system chooses the port at bind.
fn bind_address_no_port(fd: &OwnedFd) {
    let on: libc::c_int = 1;
    let size = size_of_val(&on) as libc::socklen_t;
    // SAFETY: the descriptor is open, and the value is a readable int of the given size.
    unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            size,
        );
    }
}
