//! How often connections found the queue of a listening socket full (listen(2)). The system then drops the packet that would have
//! completed the connection, and the client tries again, after 0.2 s or a second at first. A client that does so several times is
//! counted as often.
//!
//! The system counts the packets that it drops at a socket, but not why. With `TCP_DEFER_ACCEPT` (tcp(7)) it also drops the end of each
//! handshake that comes without data, which harms nobody and is what most devices send. Two counts of the host tell them apart: all
//! ends that were dropped so are subtracted, and a socket has not found its queue full more often than the host has. Both counts include
//! other sockets, so with several of them on a host, the result may be too small, but never too large.

use std::os::fd::RawFd;

use crate::kernel_counters;

/// A listening socket whose queue may be full.
pub struct ListenQueue {
    listener: RawFd,
    /// Counts of the host at the start.
    host: HostCounts,
    /// Packets that had been dropped at the socket at the start.
    before: u32,
    /// Packets that were dropped there until the last look.
    dropped: u32,
    /// What was reported.
    told: u64,
}

impl ListenQueue {
    /// The queue of a socket, from now on.
    pub fn of(listener: RawFd) -> ListenQueue {
        let host = HostCounts::read();
        let before = drops(listener);
        ListenQueue { listener, host, before, dropped: before, told: 0 }
    }

    /// How often the queue was full since the last call, at least.
    pub fn times_full(&mut self) -> u32 {
        // In this order, no deferred packet is counted as dropped and not yet as deferred.
        let dropped = drops(self.listener);
        if dropped == self.dropped {
            return 0;
        }
        self.dropped = dropped;
        let now = HostCounts::read();
        let deferred = now.deferred.saturating_sub(self.host.deferred);
        let overflows = now.overflows.saturating_sub(self.host.overflows);
        let full = full(u64::from(dropped.wrapping_sub(self.before)), deferred, overflows);
        let news = full.saturating_sub(self.told);
        self.told += news;
        u32::try_from(news).unwrap_or(u32::MAX)
    }
}

/// How often the queue of a socket was full at which `dropped` packets were dropped, on a host that dropped `deferred` packets at
/// sockets that wait for data and found queues full `overflows` times.
fn full(dropped: u64, deferred: u64, overflows: u64) -> u64 {
    dropped.saturating_sub(deferred).min(overflows)
}

/// Counts of the system for the whole host, or its network namespace; 0 if it does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HostCounts {
    /// Ends of handshakes without data that were dropped: `TCPDeferAcceptDrop`.
    deferred: u64,
    /// Connections that found a queue full: `ListenOverflows`.
    overflows: u64,
}

impl HostCounts {
    fn read() -> HostCounts {
        HostCounts::parse(&std::fs::read_to_string("/proc/thread-self/net/netstat").unwrap_or_default())
    }

    fn parse(text: &str) -> HostCounts {
        let count = |name| kernel_counters::counter(text, "TcpExt", name).unwrap_or(0);
        HostCounts { deferred: count("TCPDeferAcceptDrop"), overflows: count("ListenOverflows") }
    }
}

/// How many packets the system has dropped at this socket: `SO_MEMINFO` (Linux 4.12). 0 if it does not say.
fn drops(listener: RawFd) -> u32 {
    // `SK_MEMINFO_DROPS` in linux/sock_diag.h.
    const DROPS: usize = 8;
    let mut facts = [0u32; DROPS + 1];
    let mut size = size_of_val(&facts) as libc::socklen_t;
    // SAFETY: the descriptor is open, and the system writes at most `size` bytes.
    unsafe {
        libc::getsockopt(
            listener,
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            (&raw mut facts).cast(),
            &raw mut size,
        );
    }
    facts[DROPS]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_the_host_are_read_by_name() {
        let text = "IpExt: ListenOverflows\nIpExt: 9\nTcpExt: SyncookiesSent ListenOverflows TCPDeferAcceptDrop\nTcpExt: 1 22 333\n";
        assert_eq!(HostCounts::parse(text), HostCounts { deferred: 333, overflows: 22 });
        assert_eq!(HostCounts::parse(""), HostCounts::default());
        assert_eq!(HostCounts::parse("TcpExt: ListenOverflows\nTcpExt: x\n"), HostCounts::default());
    }

    #[test]
    fn packets_that_were_deferred_do_not_count() {
        for (dropped, deferred, overflows, times) in
            [(380, 380, 0, 0), (380, 380, 50, 0), (400, 380, 50, 20), (400, 0, 50, 50), (10, 380, 50, 0)]
        {
            assert_eq!(full(dropped, deferred, overflows), times, "{dropped} {deferred} {overflows}");
        }
    }
}
