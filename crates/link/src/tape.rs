//! What went over a connection, for those who want to see it.

/// Heads of messages are kept up to so many bytes in front of what is wanted.
const HEADS: usize = 16 * 1024;

/// The first bytes in both directions since the tape was taken last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tape {
    /// Bytes that were sent.
    pub sent: Vec<u8>,
    /// Bytes that came.
    pub received: Vec<u8>,
    size: usize,
}

impl Tape {
    /// A tape that takes `size` bytes behind a head, in each direction.
    pub fn new(size: usize) -> Tape {
        Tape { size: size.saturating_add(HEADS), ..Tape::default() }
    }

    /// Takes note of sent bytes.
    pub fn send(&mut self, bytes: &[u8]) {
        let room = self.size.saturating_sub(self.sent.len()).min(bytes.len());
        self.sent.extend_from_slice(&bytes[..room]);
    }

    /// Takes note of received bytes.
    pub fn receive(&mut self, bytes: &[u8]) {
        let room = self.size.saturating_sub(self.received.len()).min(bytes.len());
        self.received.extend_from_slice(&bytes[..room]);
    }

    /// What is on the tape; it goes on empty.
    pub fn take(&mut self) -> Tape {
        std::mem::replace(self, Tape { size: self.size, ..Tape::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tape_is_bounded_and_goes_on_empty() {
        let mut tape = Tape::new(4);
        tape.send(b"abc");
        (0..HEADS).for_each(|_| tape.receive(b"xyz"));
        let taken = tape.take();
        assert_eq!((&taken.sent[..], taken.received.len()), (&b"abc"[..], HEADS + 4));
        tape.send(b"d");
        assert_eq!((&tape.take().sent[..], tape.take().sent.len()), (&b"d"[..], 0));
    }
}
