//! Datagrams as the kernel sees them: those that arrive with their address and control messages in one buffer
//! (io_uring_prep_recvmsg_multishot(3), cmsg(3)), and those that wait to be sent.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::RawFd;

use io_uring::types::RecvMsgOut;

use crate::buffers::SendBuffer;

/// Room for an address in bytes; what follows is aligned.
const NAME: u32 = 32;
/// Room for control messages in bytes: the marks and local addresses of both versions of IP, and the size of joined datagrams.
const CONTROL: usize = 128;

/// Datagrams of the same size, of which the last may be shorter, that arrived from the same peer and that the kernel has joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received<'a> {
    /// Where they come from; `None` if sockets of this kind have no internet address.
    pub from: Option<SocketAddr>,
    /// The local address to which they were sent, if the socket asks for it.
    pub to: Option<IpAddr>,
    /// The two bits of Explicit Congestion Notification, 0 unless the socket asks for them.
    pub ecn: u8,
    /// The size of each in bytes, at least 1.
    pub segment: usize,
    /// Their contents, one behind the other.
    pub bytes: &'a [u8],
}

/// The head of a message for receiving: how much room a buffer has for what.
pub(crate) fn template() -> libc::msghdr {
    // SAFETY: a head without any part is valid.
    let mut head: libc::msghdr = unsafe { std::mem::zeroed() };
    head.msg_namelen = NAME;
    head.msg_controllen = CONTROL as _;
    head
}

impl<'a> Received<'a> {
    /// Reads what the kernel has written; `None` for what does not fit into a buffer, which is as good as lost.
    pub(crate) fn read(buffer: &'a [u8]) -> Option<Received<'a>> {
        let message = RecvMsgOut::parse(buffer, &template()).ok()?;
        if message.is_payload_truncated() {
            return None;
        }
        let (name, control) = (message.name_data().len(), message.control_data().len());
        let head = buffer.len() - message.payload_data().len();
        // The message has the lifetime of the buffer, and so do these parts of it.
        let (before, bytes) = buffer.split_at(head);
        let controls = &before[head - CONTROL..][..control];
        let name = &before[head - CONTROL - NAME as usize..][..name];
        let mut received =
            Received { from: address(name), to: None, ecn: 0, segment: bytes.len().max(1), bytes };
        each_control(controls, |level, kind, data| received.note(level, kind, data));
        Some(received)
    }

    fn note(&mut self, level: i32, kind: i32, data: &[u8]) {
        match (level, kind) {
            (libc::IPPROTO_IP, libc::IP_TOS) | (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                // One byte, or an int in the order of this machine.
                let mark = take(data)
                    .map_or_else(|| data.first().copied(), |int| Some(i32::from_ne_bytes(int) as u8));
                self.ecn = mark.unwrap_or(0) & 0b11;
            }
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                self.to = data.get(8..).and_then(take::<4>).map(|to| Ipv4Addr::from(to).into());
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                self.to = take::<16>(data).map(|to| Ipv6Addr::from(to).into());
            }
            (libc::SOL_UDP, libc::UDP_GRO) => {
                let size = take(data).map_or(0, i32::from_ne_bytes);
                self.segment = usize::try_from(size).unwrap_or(0).max(1);
            }
            _ => {}
        }
    }
}

/// The first bytes.
fn take<const N: usize>(data: &[u8]) -> Option<[u8; N]> {
    data.first_chunk().copied()
}

/// Passes level, type and data of each control message to `note`.
fn each_control(mut controls: &[u8], mut note: impl FnMut(i32, i32, &[u8])) {
    const WORD: usize = size_of::<usize>();
    const HEAD: usize = WORD + 8;
    while let Some(length) = take(controls).map(usize::from_ne_bytes)
        && let Some(message) = controls.get(..length)
        && let (Some(level), Some(kind)) =
            (message.get(WORD..).and_then(take), message.get(WORD + 4..).and_then(take))
    {
        note(i32::from_ne_bytes(level), i32::from_ne_bytes(kind), &message[HEAD..]);
        controls = controls.get(length.next_multiple_of(WORD)..).unwrap_or(&[]);
    }
}

/// The address in a `sockaddr`; `None` if it is none of the internet.
fn address(name: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(take(name)?));
    let port = u16::from_be_bytes(name.get(2..).and_then(take)?);
    match family {
        libc::AF_INET => {
            let ip = name.get(4..).and_then(take::<4>)?;
            Some(SocketAddrV4::new(ip.into(), port).into())
        }
        libc::AF_INET6 => {
            let flow = u32::from_ne_bytes(name.get(4..).and_then(take)?);
            let ip = name.get(8..).and_then(take::<16>)?;
            let scope = u32::from_ne_bytes(name.get(24..).and_then(take)?);
            Some(SocketAddrV6::new(ip.into(), port, flow, scope).into())
        }
        _ => None,
    }
}

/// An address as the kernel reads it.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) union Name {
    v4: libc::sockaddr_in,
    v6: libc::sockaddr_in6,
}

impl std::fmt::Debug for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Name")
    }
}

impl Name {
    /// The address and its length in bytes.
    pub(crate) fn of(address: SocketAddr) -> (Name, libc::socklen_t) {
        match address {
            SocketAddr::V4(address) => {
                let name = libc::sockaddr_in {
                    sin_family: libc::AF_INET as _,
                    sin_port: address.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
                    sin_zero: [0; 8],
                };
                (Name { v4: name }, size_of::<libc::sockaddr_in>() as _)
            }
            SocketAddr::V6(address) => {
                let name = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as _,
                    sin6_port: address.port().to_be(),
                    sin6_flowinfo: address.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                    sin6_scope_id: address.scope_id(),
                };
                (Name { v6: name }, size_of::<libc::sockaddr_in6>() as _)
            }
        }
    }
}

/// A datagram that is sent with the next submission.
#[derive(Debug)]
pub(crate) struct QueuedDatagram {
    /// The key of the socket.
    pub(crate) key: usize,
    pub(crate) fd: RawFd,
    /// `None` if the socket did not take the datagram, which is kept elsewhere.
    pub(crate) buffer: Option<SendBuffer>,
    /// Number of bytes in the buffer.
    pub(crate) length: usize,
    /// Where it goes; `None` for a connected socket.
    pub(crate) to: Option<SocketAddr>,
    /// The same for the kernel, and its length.
    pub(crate) name: Option<(Name, libc::socklen_t)>,
}
