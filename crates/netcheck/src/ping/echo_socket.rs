//! A socket for ICMP echoes: a raw one, or a ping socket where the system allows it to everyone.

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::error::{CheckResult, Error};
use crate::packet::{EchoAnswer, echo_request, ipv4_payload};

/// The largest packet that a host hands over.
const LARGEST: usize = 1 << 16;
/// Room for replies that come while requests are sent, in bytes.
const RECEIVE_BUFFER: usize = 1 << 20;

/// A socket for echo requests from one address.
pub struct EchoSocket {
    socket: Socket,
    ipv6: bool,
    /// Raw sockets of IPv4 receive the IP header too.
    header: bool,
    buffer: Vec<MaybeUninit<u8>>,
}

impl AsFd for EchoSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl EchoSocket {
    /// Opens a socket at an address of this host, or at the one that the system chooses.
    ///
    /// # Errors
    /// If this process may not send echo requests, or the address is not one of this host.
    pub fn open(source: Option<IpAddr>, ipv6: bool) -> CheckResult<EchoSocket> {
        let (domain, protocol) =
            if ipv6 { (Domain::IPV6, Protocol::ICMPV6) } else { (Domain::IPV4, Protocol::ICMPV4) };
        let open = |kind: Type| Socket::new(domain, kind, Some(protocol));
        let (socket, is_raw) = match open(Type::RAW) {
            Ok(socket) => (socket, true),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let ping = open(Type::DGRAM).map_err(|_| Error::Privilege {
                    what: "an echo request from a group that `sysctl net.ipv4.ping_group_range` does not name",
                    capability: "CAP_NET_RAW",
                })?;
                (ping, false)
            }
            Err(error) => return Err(Error::host("cannot open a socket for ICMP", error)),
        };
        if let Some(source) = source {
            socket.bind(&SockAddr::from(SocketAddr::new(source, 0))).map_err(|error| match error.kind() {
                io::ErrorKind::AddrNotAvailable => {
                    Error::host(format!("{source} is not an address of this host"), error)
                }
                _ => Error::host(format!("cannot use the address {source}"), error),
            })?;
        }
        // More room is better, but not needed.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        socket.set_nonblocking(true).map_err(|error| Error::host("cannot use a socket for ICMP", error))?;
        Ok(EchoSocket { socket, ipv6, header: is_raw && !ipv6, buffer: vec![MaybeUninit::uninit(); LARGEST] })
    }

    /// Sends a request.
    ///
    /// # Errors
    /// If the system has no way to the target. Errors of earlier requests that come up now are skipped.
    pub fn send(&self, target: IpAddr, sequence: u16, data: &[u8]) -> io::Result<()> {
        let request = echo_request(self.ipv6, std::process::id() as u16, sequence, data);
        let address = SockAddr::from(SocketAddr::new(target, 0));
        self.socket.send_to(&request, &address).map(drop)
    }

    /// Hands over all answers that have come.
    pub fn receive(&mut self, mut take: impl FnMut(EchoAnswer<'_>)) {
        while let Ok((length, _)) = self.socket.recv_from(&mut self.buffer) {
            // SAFETY: `recv_from` has written this many octets.
            let packet = unsafe { &*(&raw const self.buffer[..length] as *const [u8]) };
            let message =
                if self.header { ipv4_payload(packet).map(|(_, message)| message) } else { Some(packet) };
            if let Some(answer) = message.and_then(|message| EchoAnswer::read(self.ipv6, message)) {
                take(answer);
            }
        }
    }
}
