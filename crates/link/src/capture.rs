//! The first bytes of the messages that went over a connection, kept for people to read.

/// Bytes kept in addition to the requested size, so that the heads of usual messages never use it up.
const HEAD_ROOM: usize = 16 * 1024;

/// The first bytes in both directions since the last [`Capture::take`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capture {
    /// Sent bytes.
    pub sent: Vec<u8>,
    /// Received bytes.
    pub received: Vec<u8>,
    /// The most bytes kept in each direction.
    limit: usize,
}

impl Capture {
    /// An empty capture that keeps the heads of messages and `size` bytes more, in each direction.
    pub fn new(size: usize) -> Capture {
        Capture { limit: size.saturating_add(HEAD_ROOM), ..Capture::default() }
    }

    /// Appends sent bytes, up to the limit.
    pub fn send(&mut self, bytes: &[u8]) {
        append(&mut self.sent, bytes, self.limit);
    }

    /// Appends received bytes, up to the limit.
    pub fn receive(&mut self, bytes: &[u8]) {
        append(&mut self.received, bytes, self.limit);
    }

    /// Returns what was captured and starts again empty.
    pub fn take(&mut self) -> Capture {
        std::mem::replace(self, Capture { limit: self.limit, ..Capture::default() })
    }
}

fn append(kept: &mut Vec<u8>, bytes: &[u8], limit: usize) {
    let room = limit.saturating_sub(kept.len()).min(bytes.len());
    kept.extend_from_slice(&bytes[..room]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_is_bounded_and_starts_again_empty() {
        let mut capture = Capture::new(4);
        capture.send(b"abc");
        (0..HEAD_ROOM).for_each(|_| capture.receive(b"xyz"));
        let taken = capture.take();
        assert_eq!((&taken.sent[..], taken.received.len()), (&b"abc"[..], HEAD_ROOM + 4));
        capture.send(b"d");
        assert_eq!((&capture.take().sent[..], capture.take().sent.len()), (&b"d"[..], 0));
    }
}
