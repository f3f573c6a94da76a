//! Listening sockets. Each loop has its own socket for a port, so that the kernel spreads connections over the
//! loops.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use polygraph_link::{Link, Nanos, yield_now};
use rustix::io::Errno;
use rustix::net::SocketFlags;
use socket2::{Domain, Protocol, Socket as Socket2, Type};
use tokio::io::Interest;

use crate::limits;
use crate::listen_queue::ListenQueue;
use crate::net::Net;
use crate::poller::Watched;
use crate::socket::Socket;

/// The most connections that wait to be accepted (the kernel may allow fewer).
pub const BACKLOG: i32 = 4096;
/// The most connections that are accepted before other tasks get their turn.
const ACCEPTS_PER_WAKE: usize = 64;

/// How long the listener waits at least before it looks again whether its queue was full.
const QUEUE_LOOK: Nanos = Nanos::from_secs(1);

/// How long the listener waits after a failed accept.
const ACCEPT_PAUSE: Nanos = Nanos::from_millis(100);

/// An address that a server will listen on: it is free, and if the system chose its port, no other process gets it.
#[derive(Debug)]
pub struct ReservedAddress {
    address: SocketAddr,
    /// A socket that is bound but does not listen, so it receives no connections.
    _hold: Option<Socket2>,
}

impl ReservedAddress {
    /// Checks that a server can listen on `address`; with port 0 the system chooses the port.
    ///
    /// # Errors
    /// If the address cannot be used.
    pub fn new(address: SocketAddr) -> io::Result<ReservedAddress> {
        if address.port() != 0 {
            // A shared socket would also share the port with another server of this program, and each would silently
            // receive a part of the traffic. A socket that does not share detects this.
            bind(address, false)?;
            return Ok(ReservedAddress { address, _hold: None });
        }
        let hold = bind(address, true)?;
        let bound = hold.local_addr()?.as_socket();
        Ok(ReservedAddress { address: bound.unwrap_or(address), _hold: Some(hold) })
    }

    /// An address in a network that is not this machine's, such as a simulated one: nothing is reserved.
    pub fn elsewhere(address: SocketAddr) -> ReservedAddress {
        ReservedAddress { address, _hold: None }
    }

    /// The address that clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A listening socket of one loop at `address`, which sockets of other loops may share.
///
/// # Errors
/// If the address cannot be used; the message contains it.
pub fn listen(address: SocketAddr) -> io::Result<OwnedFd> {
    let listening = || {
        let socket = bind(address, true)?;
        // On Linux, accepted connections inherit this option.
        socket.set_tcp_nodelay(true)?;
        socket.set_nonblocking(true)?;
        defer_accept(&socket);
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    listening().map_err(|e: io::Error| io::Error::new(e.kind(), format!("cannot listen at {address}: {e}")))
}

/// One listening socket for each of `loops` event loops, all at the same address; returns it with the actual port.
/// Connections are handed over at once, also those of clients that stay silent.
///
/// # Errors
/// If the address cannot be used.
pub fn listen_on_all(address: SocketAddr, loops: usize) -> io::Result<(SocketAddr, Vec<OwnedFd>)> {
    if loops > 1 && address.port() != 0 {
        // Sockets that share a port would share it with another process of the same user, too, and each would
        // get a part of the connections. A socket that does not share finds out.
        bind(address, false)?;
    }
    let first = bind(address, loops > 1)?;
    let bound = first.local_addr()?.as_socket();
    let address = bound.ok_or_else(|| io::Error::other("a socket without an internet address"))?;
    let mut sockets = vec![first];
    while sockets.len() < loops {
        sockets.push(bind(address, true)?);
    }
    let ready = |socket: Socket2| {
        // Accepted connections inherit this on Linux.
        socket.set_tcp_nodelay(true)?;
        socket.set_nonblocking(true)?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    let sockets: io::Result<Vec<OwnedFd>> = sockets.into_iter().map(ready).collect();
    Ok((address, sockets?))
}

fn bind(address: SocketAddr, shared: bool) -> io::Result<Socket2> {
    let socket = Socket2::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// Sets `TCP_DEFER_ACCEPT` (tcp(7)): the kernel hands a connection over when its first bytes have arrived, so the
/// server reads it at once and never waits, as popular web servers do on Linux. The kernel hands over a client that
/// connects and sends nothing after this many seconds. If the option fails, connections come at once.
fn defer_accept(socket: &Socket2) {
    let seconds: libc::c_int = 1;
    let size = size_of_val(&seconds) as libc::socklen_t;
    // SAFETY: the descriptor is open, and the value is a readable int of the given size.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_DEFER_ACCEPT,
            (&raw const seconds).cast(),
            size,
        );
    }
}

/// What keeps a connection from being served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptFault {
    /// It was closed at once, or could not be accepted, for this reason.
    Refused(Errno),
    /// So many times since the last look, a connection found no room in the queue of the listening socket, at least (`listen_queue.rs`).
    QueueFull(u32),
}

/// Accepts connections for ever and runs `serve` for each in its own task. Connections above the process's share
/// of descriptors are closed at once, so earlier connections are served to the end, and logs and timers have the
/// descriptors that they need. `failed` receives what kept connections from being served.
///
/// # Errors
/// If the socket cannot be polled or is no longer a listening socket.
pub async fn accept_all<F: Future<Output = ()> + 'static>(
    net: Net,
    listener: OwnedFd,
    serve: impl Fn(Socket) -> F,
    mut failed: impl FnMut(AcceptFault),
) -> io::Result<()> {
    let most = limits::accept_limit(limits::descriptor_limit());
    let mut acceptor = match net.ring() {
        Some(ring) => Acceptor::Ring(ring.acceptor(listener)),
        None => Acceptor::Polled(Watched::new(None, listener, Interest::READABLE)?),
    };
    let mut in_a_row = 0;
    let (mut queue, mut look_at) = (ListenQueue::of(acceptor.fd()), net.now() + QUEUE_LOOK);
    loop {
        match acceptor.accept().await {
            // The system assigns the least free descriptor number, so the number says how many are in use.
            Ok(fd) if fd.as_raw_fd() as usize >= most => {
                drop(fd);
                failed(AcceptFault::Refused(Errno::MFILE));
            }
            Ok(fd) => net.spawn(serve(net.accepted(fd))),
            Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO) => {}
            Err(e @ (Errno::BADF | Errno::INVAL | Errno::NOTSOCK | Errno::OPNOTSUPP)) => {
                return Err(e.into());
            }
            // Out of descriptors or memory, or a network error that may be temporary (accept(2)).
            Err(e) => {
                failed(AcceptFault::Refused(e));
                net.sleep_until(net.now() + ACCEPT_PAUSE).await;
            }
        }
        in_a_row += 1;
        if in_a_row == ACCEPTS_PER_WAKE {
            // Connections accepted so far get their turn before more are accepted.
            in_a_row = 0;
            yield_now().await;
            // A queue that was full is not empty, so connections are accepted after every drop.
            if net.now() >= look_at {
                look_at = net.now() + QUEUE_LOOK;
                match queue.times_full() {
                    0 => {}
                    times => failed(AcceptFault::QueueFull(times)),
                }
            }
        }
    }
}

/// How connections are accepted on the loop's engine.
enum Acceptor {
    Polled(Watched),
    Ring(polygraph_uring::Acceptor),
}

impl Acceptor {
    fn fd(&self) -> RawFd {
        match self {
            Acceptor::Polled(listener) => listener.fd().as_raw_fd(),
            Acceptor::Ring(acceptor) => acceptor.fd(),
        }
    }

    async fn accept(&mut self) -> Result<OwnedFd, Errno> {
        match self {
            Acceptor::Polled(listener) => {
                let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
                let accepted = listener.when_ready(|fd| rustix::net::accept_with(fd, flags)).await;
                accepted.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::BADF))
            }
            Acceptor::Ring(acceptor) => poll_fn(|cx| acceptor.poll_accept(cx)).await,
        }
    }
}
