//! Sends packets that have spent their time in a pipe, with the headers that they had.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::net::netdevice::index_to_name;
use socket2::{Domain, Protocol, Socket, Type};

/// The bit of the mark that says that a packet has been in its pipe. Rules let such packets pass.
pub const PASSED: u32 = 0x2000_0000;
/// The protocol number of sockets that take whole packets (`IPPROTO_RAW`).
const WHOLE_PACKETS: i32 = 255;
/// Room for packets that wait for the network card.
const SEND_BUFFER: usize = 16 << 20;
/// The largest packet of an interface that we know nothing of: that of Ethernet.
const USUAL_MTU: u32 = 1500;

/// Sends whole packets.
#[derive(Debug)]
pub struct RawSender {
    v4: Sender,
    v6: Option<Sender>,
    /// The largest packets of interfaces.
    mtus: HashMap<u32, u32>,
}

#[derive(Debug)]
struct Sender {
    socket: Socket,
    mark: u32,
}

impl Sender {
    fn open(domain: Domain) -> io::Result<Sender> {
        let socket = Socket::new(domain, Type::RAW, Some(Protocol::from(WHOLE_PACKETS)))?;
        // Raw sockets receive copies of packets. This one shall keep none.
        socket.set_recv_buffer_size(0)?;
        rustix::net::sockopt::set_socket_send_buffer_size_force(&socket, SEND_BUFFER)
            .or_else(|_| rustix::net::sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER))?;
        socket.set_nonblocking(true)?;
        socket.set_mark(PASSED)?;
        Ok(Sender { socket, mark: PASSED })
    }
}

/// The destination of a packet. `None` if it is not one of IP.
fn destination(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(Ipv4Addr::from(*packet.get(16..)?.first_chunk::<4>()?).into()),
        6 => Some(Ipv6Addr::from(*packet.get(24..)?.first_chunk::<16>()?).into()),
        _ => None,
    }
}

impl RawSender {
    /// Opens the sockets. A host without IPv6 needs none for it.
    ///
    /// # Errors
    /// If this process may not send whole packets.
    pub fn open() -> io::Result<RawSender> {
        Ok(RawSender {
            v4: Sender::open(Domain::IPV4)?,
            v6: Sender::open(Domain::IPV6).ok(),
            mtus: HashMap::new(),
        })
    }

    /// Whether a packet arrives the same if it is sent again: it is there as a whole, goes to one host, and fits
    /// through its interface.
    pub fn can_send(&mut self, packet: &[u8], length: u32, out_device: u32) -> bool {
        let reaches_one = match destination(packet) {
            Some(IpAddr::V4(v4)) => !v4.is_multicast() && !v4.is_broadcast(),
            // The interface of a link-local address is not in the packet.
            Some(IpAddr::V6(v6)) => self.v6.is_some() && !v6.is_multicast() && !v6.is_unicast_link_local(),
            None => false,
        };
        reaches_one && packet.len() == length as usize && length <= self.mtu(out_device)
    }

    fn mtu(&mut self, device: u32) -> u32 {
        *self.mtus.entry(device).or_insert_with(|| mtu_of(device).unwrap_or(USUAL_MTU))
    }

    /// Sends a packet. `mark` is the one that it had.
    ///
    /// # Errors
    /// If the system does not take it, for example because its route is gone or the network card is busy.
    pub fn send(&mut self, packet: &[u8], mark: u32) -> io::Result<()> {
        let to = destination(packet).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
        let sender = match to {
            IpAddr::V4(_) => &mut self.v4,
            IpAddr::V6(_) => self.v6.as_mut().ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?,
        };
        let mark = mark | PASSED;
        if sender.mark != mark {
            sender.socket.set_mark(mark)?;
            sender.mark = mark;
        }
        sender.socket.send_to(packet, &SocketAddr::new(to, 0).into()).map(drop)
    }
}

/// The largest packet that an interface takes.
fn mtu_of(device: u32) -> Option<u32> {
    let name = {
        let any = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None);
        index_to_name(any.ok()?, device).ok()?
    };
    std::fs::read_to_string(format!("/sys/class/net/{name}/mtu")).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn destinations_of_packets() {
        let mut v4 = vec![0x45; 20];
        v4[16..].copy_from_slice(&[10, 16, 1, 2]);
        assert_eq!(destination(&v4), Some("10.16.1.2".parse().unwrap()));
        let mut v6 = vec![0x60; 40];
        v6[24..].copy_from_slice(&"2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
        assert_eq!(destination(&v6), Some("2001:db8::1".parse().unwrap()));
        for other in [&v4[..19], &v6[..39], &[], &[0x50; 40]] {
            assert_eq!(destination(other), None);
        }
    }
}
