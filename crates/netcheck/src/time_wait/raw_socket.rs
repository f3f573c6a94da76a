//! A raw socket for one TCP connection, and the socket that keeps the kernel silent.
//!
//! The kernel knows nothing of a connection whose segments a program writes itself, and would answer the device with a
//! reset. A listening socket on the local port prevents this: its filter rejects every packet, and Linux drops rejected
//! packets without an answer. Both sockets end with the process, so there is nothing to undo.

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Instant;

use rustix::net::netdevice::name_to_index;
use socket2::{Domain, Protocol, SockAddr, SockFilter, Socket, Type};

use crate::error::{CheckResult, Error};
use crate::packet::{TcpSegment, ipv4_payload};

/// The largest packet that a host hands over.
const LARGEST: usize = 1 << 16;

/// A raw socket between a port of this host and a port of the device.
pub struct RawSocket {
    raw: Socket,
    /// Owns the local port.
    _deaf: Socket,
    local: SocketAddr,
    device: SocketAddr,
    buffer: Vec<MaybeUninit<u8>>,
    /// What the network said about the last packet.
    obstacle: Option<io::Error>,
}

impl RawSocket {
    /// Opens the socket.
    ///
    /// # Errors
    /// If this process may not use raw sockets, or the address, the interface or a route does not exist.
    pub fn open(
        device: SocketAddr,
        source: Option<IpAddr>,
        interface: Option<&str>,
    ) -> CheckResult<RawSocket> {
        let domain = Domain::for_address(device);
        let raw =
            Socket::new(domain, Type::RAW, Some(Protocol::TCP)).map_err(|error| match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    Error::Privilege { what: "a raw socket, which the test uses,", capability: "CAP_NET_RAW" }
                }
                _ => Error::host("cannot open a raw socket", error),
            })?;
        if let Some(name) = interface {
            raw.bind_device(Some(name.as_bytes()))
                .map_err(|error| Error::host(format!("cannot use the interface {name}"), error))?;
        }
        let device = with_interface(device, interface)?;
        let source = match source {
            Some(source) => source,
            None => source_for(device)?,
        };
        if source.is_ipv4() != device.is_ipv4() {
            return Err(Error::Request(format!("{source} and {} are of different families", device.ip())));
        }
        let deaf = deaf_listener(domain, with_port(device, source, 0))?;
        let local = deaf.local_addr().ok().and_then(|address| address.as_socket());
        let Some(local) = local else {
            return Err(Error::Request(format!("there is no free port at {source}")));
        };
        // Raw sockets have no ports; the filter stands in for them.
        let filter = port_filter(device.is_ipv4(), device.port(), local.port());
        let ready = raw
            .attach_filter(&filter)
            .and_then(|()| raw.bind(&SockAddr::from(with_port(local, local.ip(), 0))))
            .and_then(|()| raw.connect(&SockAddr::from(with_port(device, device.ip(), 0))));
        ready.map_err(|error| {
            Error::host(format!("cannot send packets from {source} to {}", device.ip()), error)
        })?;
        let buffer = vec![MaybeUninit::uninit(); LARGEST];
        Ok(RawSocket { raw, _deaf: deaf, local, device, buffer, obstacle: None })
    }

    /// The address and port of this host.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// What the network said about packets to the device, if it said anything.
    pub fn obstacle(&self) -> Option<&io::Error> {
        self.obstacle.as_ref()
    }

    /// Sends segments.
    ///
    /// # Errors
    /// If the system refuses to.
    pub fn send_all(&mut self, segments: &[TcpSegment]) -> CheckResult<()> {
        for segment in segments {
            let bytes = segment.bytes(self.local.ip(), self.device.ip());
            if let Err(error) = self.raw.send(&bytes) {
                self.excuse(error)?;
            }
        }
        Ok(())
    }

    /// The next segment of the device, unless none comes before the deadline.
    ///
    /// # Errors
    /// If the system refuses to receive.
    pub fn receive(&mut self, deadline: Instant) -> CheckResult<Option<TcpSegment>> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let received =
                self.raw.set_read_timeout(Some(left)).and_then(|()| self.raw.recv(&mut self.buffer));
            match received {
                Ok(length) => {
                    // SAFETY: `recv` has written this many octets.
                    let packet = unsafe { &*(&raw const self.buffer[..length] as *const [u8]) };
                    let tcp = if self.device.is_ipv4() {
                        ipv4_payload(packet).map(|(_, tcp)| tcp)
                    } else {
                        Some(packet)
                    };
                    if let Some(segment) = tcp.and_then(TcpSegment::read) {
                        return Ok(Some(segment));
                    }
                }
                Err(error) => self.excuse(error)?,
            }
        }
    }

    /// Remembers what routers said about a packet, and forgives what passes.
    fn excuse(&mut self, error: io::Error) -> CheckResult<()> {
        use io::ErrorKind::{
            ConnectionRefused, HostUnreachable, Interrupted, NetworkUnreachable, TimedOut, WouldBlock,
        };
        match error.kind() {
            WouldBlock | TimedOut | Interrupted => Ok(()),
            HostUnreachable | NetworkUnreachable | ConnectionRefused => {
                self.obstacle = Some(error);
                Ok(())
            }
            _ => Err(Error::host(format!("cannot exchange packets with {}", self.device.ip()), error)),
        }
    }
}

/// The address of a device with the interface behind which it is, if it is valid on one link only (RFC 4007, section 6).
fn with_interface(device: SocketAddr, interface: Option<&str>) -> CheckResult<SocketAddr> {
    let SocketAddr::V6(mut address) = device else { return Ok(device) };
    if address.ip().is_unicast_link_local() && address.scope_id() == 0 {
        let Some(name) = interface else {
            let text = format!("{} is valid on one link only: write its interface with -i", address.ip());
            return Err(Error::Request(text));
        };
        let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0));
        let index = socket.and_then(|socket| Ok(name_to_index(&socket, name)?));
        address.set_scope_id(
            index.map_err(|error| Error::host(format!("cannot use the interface {name}"), error))?,
        );
    }
    Ok(address.into())
}

/// The address from which this host sends to the device.
fn source_for(device: SocketAddr) -> CheckResult<IpAddr> {
    let any: IpAddr = if device.is_ipv4() { [0; 4].into() } else { [0u16; 8].into() };
    let socket = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(device)?;
        socket.local_addr()
    });
    socket
        .map(|address| address.ip())
        .map_err(|error| Error::host(format!("there is no route to {}", device.ip()), error))
}

/// An address with a port; of IPv6, with the scope of another address.
fn with_port(scope: SocketAddr, ip: IpAddr, port: u16) -> SocketAddr {
    let mut address = SocketAddr::new(ip, port);
    if let (SocketAddr::V6(address), SocketAddr::V6(scope)) = (&mut address, scope) {
        address.set_scope_id(scope.scope_id());
    }
    address
}

/// A socket that owns a free port and drops everything that comes to it.
fn deaf_listener(domain: Domain, address: SocketAddr) -> CheckResult<Socket> {
    // Return 0: keep no octet.
    let nothing = [SockFilter::new(0x06, 0, 0, 0)];
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))
        .map_err(|error| Error::host("cannot open a socket", error))?;
    let ready = socket
        .attach_filter(&nothing)
        .and_then(|()| socket.bind(&SockAddr::from(address)))
        .and_then(|()| socket.listen(1));
    match ready {
        Ok(()) => Ok(socket),
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
            Err(Error::Host { what: format!("{} is not an address of this host", address.ip()), error })
        }
        Err(error) => Err(Error::host(format!("cannot reserve a port at {}", address.ip()), error)),
    }
}

/// A filter for packets from one port to another (bpf(4) of the BSDs describes the instructions). Raw sockets of IPv4
/// receive the IP header too; those of IPv6 do not.
fn port_filter(ipv4: bool, source: u16, destination: u16) -> Vec<SockFilter> {
    let load = if ipv4 { 0x48 } else { 0x28 };
    let mut filter = Vec::new();
    if ipv4 {
        // The length of the IP header becomes the index.
        filter.push(SockFilter::new(0xb1, 0, 0, 0));
    }
    filter.extend([
        SockFilter::new(load, 0, 0, 0),
        SockFilter::new(0x15, 0, 3, source.into()),
        SockFilter::new(load, 0, 0, 2),
        SockFilter::new(0x15, 0, 1, destination.into()),
        SockFilter::new(0x06, 0, 0, u32::MAX),
        SockFilter::new(0x06, 0, 0, 0),
    ]);
    filter
}
