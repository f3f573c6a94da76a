//! Listening sockets: loops share a port with one socket each, so that the kernel spreads connections over them.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use polygraph_link::{Link, Nanos, SECOND};
use rustix::io::Errno;
use rustix::net::SocketFlags;
use socket2::{Domain, Protocol, Socket as Socket2, Type};
use tokio::io::Interest;

use crate::limits;
use crate::net::Net;
use crate::poller::register;
use crate::socket::Socket;

/// Connections that wait to be accepted, at most (the kernel may allow fewer).
const BACKLOG: i32 = 4096;
/// Connections accepted in a row before others get their turn.
const ACCEPTS_PER_WAKE: usize = 64;

/// After a connection that could not be accepted, so long is waited before the next is tried.
const ACCEPT_PAUSE: Nanos = SECOND / 10;

/// An address that a server will listen at: it is free, and if the system chose its port, nobody else gets it.
#[derive(Debug)]
pub struct ReservedAddress {
    address: SocketAddr,
    /// Bound but not listening, so that it gets no connections.
    _hold: Option<Socket2>,
}

impl ReservedAddress {
    /// Finds out whether a server can listen at `address`; port 0 lets the system choose.
    ///
    /// # Errors
    /// If the address cannot be used.
    pub fn new(address: SocketAddr) -> io::Result<ReservedAddress> {
        if address.port() != 0 {
            // Sockets that share a port would share it with another server of ours, too, and each of the two
            // would silently get a part of the traffic. A socket that does not share finds out.
            bind(address, false)?;
            return Ok(ReservedAddress { address, _hold: None });
        }
        let hold = bind(address, true)?;
        let bound = hold.local_addr()?.as_socket();
        Ok(ReservedAddress { address: bound.unwrap_or(address), _hold: Some(hold) })
    }

    /// An address of a network that is not this machine's: nothing is reserved.
    pub fn elsewhere(address: SocketAddr) -> ReservedAddress {
        ReservedAddress { address, _hold: None }
    }

    /// The address that clients connect to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A listening socket of one loop at `address`, which others may share.
///
/// # Errors
/// If the address cannot be used; the message names it.
pub fn listen(address: SocketAddr) -> io::Result<OwnedFd> {
    let listening = || {
        let socket = bind(address, true)?;
        // Accepted connections inherit this on Linux.
        socket.set_tcp_nodelay(true)?;
        socket.set_nonblocking(true)?;
        defer_accept(&socket);
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    listening().map_err(|e: io::Error| io::Error::new(e.kind(), format!("cannot listen at {address}: {e}")))
}

fn bind(address: SocketAddr, shared: bool) -> io::Result<Socket2> {
    let socket = Socket2::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// `TCP_DEFER_ACCEPT` (tcp(7)): a connection is handed over when its first bytes are there, so that it is read at
/// once and never waited for, as popular web servers do it on Linux. A client that connects and stays silent is
/// handed over after this many seconds. Where the option fails, connections come at once, as ever.
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

/// Accepts connections for ever and hands each to `serve` as a task of its own. Those above the process's share of
/// descriptors are closed at once: so whoever came first is served to the end, and logs and timers have what they need.
/// `refused` is called with the reason for each connection that was closed or could not be accepted.
///
/// # Errors
/// If the socket cannot be watched or is no longer a listening one.
pub async fn accept_all<F: Future<Output = ()> + 'static>(
    net: Net,
    listener: OwnedFd,
    serve: impl Fn(Socket) -> F,
    mut refused: impl FnMut(Errno),
) -> io::Result<()> {
    let most = limits::accept_limit(limits::descriptor_limit());
    let listener = register(listener, Interest::READABLE)?;
    loop {
        let mut guard = listener.readable().await?;
        for _ in 0..ACCEPTS_PER_WAKE {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            match rustix::net::accept_with(guard.get_inner(), flags) {
                // The system gives the least number that is free, so the number tells how many there are.
                Ok(fd) if fd.as_raw_fd() as usize >= most => {
                    drop(fd);
                    refused(Errno::MFILE);
                }
                Ok(fd) => net.spawn(serve(Socket::new(net.state().clone(), fd, true))),
                Err(Errno::AGAIN) => {
                    guard.clear_ready();
                    break;
                }
                Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO) => {}
                Err(e @ (Errno::BADF | Errno::INVAL | Errno::NOTSOCK | Errno::OPNOTSUPP)) => {
                    return Err(e.into());
                }
                // Out of descriptors or memory, or an error of a network that may come back (accept(2)).
                Err(e) => {
                    refused(e);
                    net.sleep_until(net.now() + ACCEPT_PAUSE).await;
                    break;
                }
            }
        }
        // Connections accepted so far get their turn before more are taken in.
        tokio::task::yield_now().await;
    }
}
