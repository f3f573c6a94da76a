//! Packets that the kernel hands over: the netlink protocol of its packet queues (NFQUEUE), as
//! `linux/netfilter/nfnetlink_queue.h` defines it. `message` reads, `request` writes, `socket` does the I/O.

pub mod message;
pub mod request;
pub mod socket;

/// The part of the message type that says that a packet queue is meant (`NFNL_SUBSYS_QUEUE`).
const SUBSYSTEM: u16 = 3;
/// The length of a netlink header.
const HEADER: usize = 16;
/// The length of the header behind it: address family, version, number of the queue (`struct nfgenmsg`).
const QUEUE_HEADER: usize = 4;
/// The length of the header of an attribute.
const ATTRIBUTE_HEADER: usize = 4;

/// Types of messages, without the part of the subsystem.
mod kind {
    pub const PACKET: u16 = 0;
    pub const VERDICT: u16 = 1;
    pub const CONFIG: u16 = 2;
    pub const VERDICT_BATCH: u16 = 3;
}

/// Rounds up to the alignment of netlink.
fn aligned(length: usize) -> usize {
    length.div_ceil(4) * 4
}
