//! What a UDP socket asks the kernel for: every control message costs processor time with every datagram.

use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};

use libc::c_int;

/// ECT(0), the mark of datagrams whose sender reacts to Explicit Congestion Notification (RFC 3168, section 5). QUIC sends with
/// it unless the path turns out to remove it (RFC 9000, section 13.4.2).
const ECT_0: u8 = 0b10;

/// Turns off what nobody reads after `quinn-udp` has turned it on: the times at which datagrams arrived, and the local address to
/// which they were sent, unless the socket has several. Makes the socket send datagrams with ECT(0). Returns the mark with which it sends.
pub fn set_up(socket: &impl AsFd, local: Option<SocketAddr>) -> u8 {
    // If an option cannot be turned off, datagrams come with more than is needed.
    set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 0);
    let Some(local) = local else { return 0 };
    if !local.ip().is_unspecified() {
        match local {
            SocketAddr::V4(_) => set(socket, libc::IPPROTO_IP, libc::IP_PKTINFO, 0),
            SocketAddr::V6(_) => set(socket, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 0),
        };
    }
    let mark = c_int::from(ECT_0);
    let mark_v6 = |mark| set(socket, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, mark);
    // A socket of IPv6 may send to mapped addresses of IPv4.
    if (local.is_ipv4() || mark_v6(mark)) && set(socket, libc::IPPROTO_IP, libc::IP_TOS, mark) {
        return ECT_0;
    }
    mark_v6(0);
    0
}

/// Sets an option, and returns whether that was possible.
fn set(socket: &impl AsFd, level: c_int, name: c_int, value: c_int) -> bool {
    let size = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the descriptor is open, and the value is a readable int of the given size.
    let result = unsafe {
        let fd = socket.as_fd().as_raw_fd();
        libc::setsockopt(fd, level, name, (&raw const value).cast(), size)
    };
    result == 0
}
