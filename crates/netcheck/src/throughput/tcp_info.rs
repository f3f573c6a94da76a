//! What the kernel knows about a TCP connection (tcp(7), `TCP_INFO`).

use std::mem::{MaybeUninit, size_of};
use std::net::TcpStream;
use std::os::fd::AsRawFd;

use super::Sent;

/// Retransmissions, round-trip time and segment size of a connection, or zeros if the kernel does not say.
pub fn sent(stream: &TcpStream, bytes: u64) -> Sent {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` octets, and every field is a number for which any bits are valid.
    let info = unsafe {
        let place = info.as_mut_ptr().cast();
        libc::getsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, place, &raw mut length);
        info.assume_init()
    };
    Sent {
        bytes,
        retransmissions: info.tcpi_total_retrans,
        round_trip_s: f64::from(info.tcpi_rtt) / 1e6,
        segment: info.tcpi_snd_mss,
    }
}
