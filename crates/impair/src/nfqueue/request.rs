//! Writes requests to the kernel: which queue we read and how, and verdicts on packets.

use super::{HEADER, QUEUE_HEADER, SUBSYSTEM, aligned, kind};

/// A request (`NLM_F_REQUEST`).
const REQUEST: u16 = 1;
/// The kernel shall answer also if all is well (`NLM_F_ACK`).
const WITH_ANSWER: u16 = 4;
/// The address family of no particular protocol.
const ANY_FAMILY: u8 = 0;

/// Attributes of requests about queues (`NFQA_CFG_`).
mod setting {
    pub const COMMAND: u16 = 1;
    pub const COPY: u16 = 2;
    pub const MAX_LENGTH: u16 = 3;
    pub const MASK: u16 = 4;
    pub const FLAGS: u16 = 5;
}

/// The command that makes us the reader of a queue (`NFQNL_CFG_CMD_BIND`).
const BIND: u8 = 1;
/// Packets come without content (`NFQNL_COPY_META`).
const COPY_NOTHING: u8 = 1;
/// Packets come with content (`NFQNL_COPY_PACKET`).
const COPY_CONTENT: u8 = 2;
/// Large packets, which the network card or the kernel cuts later, come as a whole (`NFQA_CFG_F_GSO`).
const WHOLE_SEGMENTS: u32 = 4;
/// The attribute with a verdict (`NFQA_VERDICT_HDR`).
const VERDICT: u16 = 2;

/// What shall happen to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketVerdict {
    /// The kernel forgets it.
    Drop,
    /// It goes on its way.
    Accept,
    /// It waits in another queue.
    Requeue(u16),
}

impl PacketVerdict {
    /// The number that the kernel knows.
    fn number(self) -> u32 {
        match self {
            PacketVerdict::Drop => 0,
            PacketVerdict::Accept => 1,
            PacketVerdict::Requeue(queue) => 3 | u32::from(queue) << 16,
        }
    }
}

/// How the packets of a queue come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueMode {
    /// How many bytes of each packet are copied.
    pub copied: u32,
    /// Whether segments that the kernel has merged come as one packet.
    pub merged: bool,
    /// How many packets may wait for a verdict.
    pub max_length: u32,
}

/// Makes us the reader of a queue.
pub fn bind(queue: u16, sequence: u32) -> Vec<u8> {
    let mut request = Request::new(kind::CONFIG, WITH_ANSWER, queue, sequence);
    request.attribute(setting::COMMAND, &[BIND, 0, 0, 0]);
    request.finish()
}

/// Says how the packets of a queue come.
pub fn configure(queue: u16, mode: QueueMode, sequence: u32) -> Vec<u8> {
    let mut request = Request::new(kind::CONFIG, WITH_ANSWER, queue, sequence);
    let copy = if mode.copied > 0 { COPY_CONTENT } else { COPY_NOTHING };
    request.attribute(setting::COPY, &[&mode.copied.to_be_bytes()[..], &[copy]].concat());
    request.attribute(setting::MAX_LENGTH, &mode.max_length.to_be_bytes());
    let flags = if mode.merged { WHOLE_SEGMENTS } else { 0 };
    request.attribute(setting::FLAGS, &flags.to_be_bytes());
    request.attribute(setting::MASK, &WHOLE_SEGMENTS.to_be_bytes());
    request.finish()
}

/// A verdict on one packet.
pub fn verdict(queue: u16, id: u32, verdict: PacketVerdict) -> Vec<u8> {
    about_packets(kind::VERDICT, queue, id, verdict)
}

/// A verdict on all packets up to and including one.
pub fn verdict_up_to(queue: u16, id: u32, verdict: PacketVerdict) -> Vec<u8> {
    about_packets(kind::VERDICT_BATCH, queue, id, verdict)
}

fn about_packets(kind: u16, queue: u16, id: u32, verdict: PacketVerdict) -> Vec<u8> {
    let mut request = Request::new(kind, 0, queue, 0);
    request.attribute(VERDICT, &[verdict.number().to_be_bytes(), id.to_be_bytes()].concat());
    request.finish()
}

/// A request under construction.
struct Request(Vec<u8>);

impl Request {
    fn new(kind: u16, flags: u16, queue: u16, sequence: u32) -> Request {
        let mut bytes = Vec::with_capacity(64);
        // The length follows at the end.
        bytes.extend([0; 4]);
        bytes.extend((SUBSYSTEM << 8 | kind).to_ne_bytes());
        bytes.extend((REQUEST | flags).to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend([ANY_FAMILY, 0]);
        bytes.extend(queue.to_be_bytes());
        debug_assert_eq!(bytes.len(), HEADER + QUEUE_HEADER);
        Request(bytes)
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) {
        let length = (4 + value.len()) as u16;
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(aligned(self.0.len()), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn requests_as_the_kernel_reads_them() {
        assert_eq!(
            bind(7400, 3),
            [28, 0, 0, 0, 2, 3, 5, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 28, 232, 8, 0, 1, 0, 1, 0, 0, 0]
        );
        let batch = verdict_up_to(1, 258, PacketVerdict::Requeue(9));
        assert_eq!(
            batch,
            [
                32, 0, 0, 0, 3, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 12, 0, 2, 0, 0, 9, 0, 3, 0, 0,
                1, 2
            ]
        );
        assert_eq!(verdict(1, 1, PacketVerdict::Accept)[4], 1);
        let mode = QueueMode { copied: 1, merged: true, max_length: 1000 };
        let bytes = configure(0, mode, 1);
        assert_eq!(bytes.len(), usize::from(bytes[0]));
        assert_eq!(bytes[20..29], [9, 0, 2, 0, 0, 0, 0, 1, 2]);
    }
}
