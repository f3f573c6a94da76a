//! Bytes that are on their way in one direction of a connection.

use std::collections::VecDeque;

use polygraph_link::Nanos;

/// The bytes before those of a message in a buffer. Whoever passes a reply on writes its longer head there instead of moving the body.
pub(crate) const HEADROOM: [u8; 64] = [0; 64];

/// Bytes that were sent together.
#[derive(Default)]
pub(crate) struct Piece {
    /// When they arrive.
    pub at: Nanos,
    /// They begin at `start`.
    pub bytes: Vec<u8>,
    pub start: usize,
}

impl Piece {
    /// The bytes that were sent.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Their number.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.start
    }
}

/// Pieces in the order in which they were sent. There is seldom more than one, which takes no memory of its own.
#[derive(Default)]
pub(crate) struct Pieces {
    first: Option<Piece>,
    more: VecDeque<Piece>,
}

impl Pieces {
    /// The next piece.
    pub fn first(&self) -> Option<&Piece> {
        self.first.as_ref()
    }

    /// The piece that was sent last.
    pub fn last(&self) -> Option<&Piece> {
        self.more.back().or(self.first.as_ref())
    }

    /// Adds the piece that was sent last.
    pub fn push(&mut self, piece: Piece) {
        match self.first {
            None => self.first = Some(piece),
            Some(_) => self.more.push_back(piece),
        }
    }

    /// Takes the next piece.
    pub fn pop(&mut self) -> Option<Piece> {
        std::mem::replace(&mut self.first, self.more.pop_front())
    }
}
