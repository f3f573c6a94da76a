//! The states of operations. They outlive the handles of their users until the kernel has completed the operations.

use std::collections::VecDeque;
use std::os::fd::{OwnedFd, RawFd};
use std::task::Waker;

use rustix::io::Errno;

use crate::buffers::ReceiveBuffers;
use crate::message::QueuedDatagram;

/// A connection that has this many unread bytes stops receiving.
pub(crate) const MOST_UNREAD: usize = 64 * 1024;
/// Receive buffers that a connection may hold until its task has run.
const MOST_HELD: usize = 4;

/// How a stream receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receiving {
    Not,
    Once,
    Always,
    /// As `Always`, but it was cancelled.
    Stopping,
}

/// Whether a stream waits for room in the buffer of the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Unknown,
    Awaited,
    Found,
}

/// The state of a stream. It outlives the stream until the kernel has completed all its operations.
#[derive(Debug)]
pub(crate) struct StreamState {
    pub(crate) fd: RawFd,
    pub(crate) receiving: Receiving,
    /// The connection has received before, so it is likely to receive again.
    pub(crate) lasting: bool,
    /// A task was woken to read and has not done it yet.
    pub(crate) read_soon: bool,
    /// Received and not read: buffers and their lengths, and bytes that follow.
    pub(crate) held: [(u16, u16); MOST_HELD],
    pub(crate) held_count: u8,
    pub(crate) unread: Vec<u8>,
    /// How it ended: 0 at the end of the stream, otherwise the error number.
    pub(crate) end: Option<i32>,
    pub(crate) reader: Option<Waker>,
    /// A send waits for the next submission: its index in the batch.
    pub(crate) queued: Option<usize>,
    /// What the socket did not take.
    pub(crate) unsent: Vec<u8>,
    /// A send failed with this error number.
    pub(crate) send_error: Option<i32>,
    pub(crate) writer: Option<Waker>,
    pub(crate) room: Room,
    /// The stream is dropped right after the next send.
    pub(crate) ends_soon: bool,
    /// Shut down when everything is sent.
    pub(crate) finishing: bool,
    /// The stream is gone.
    pub(crate) closed: bool,
    /// The first send on a connection that is not established must not be queued: what it reports matters.
    pub(crate) established: bool,
}

impl StreamState {
    /// Copies what is held elsewhere and gives the buffers back.
    pub(crate) fn free_buffers(&mut self, buffers: &ReceiveBuffers) {
        let held = usize::from(std::mem::take(&mut self.held_count));
        if held == 0 {
            return;
        }
        let mut bytes = Vec::new();
        for (number, length) in self.held[..held].iter().copied() {
            buffers.with(number, length.into(), |received| bytes.extend_from_slice(received));
            buffers.give_back(number);
        }
        bytes.append(&mut self.unread);
        self.unread = bytes;
    }

    pub(crate) fn keep(&mut self, buffers: &ReceiveBuffers, number: u16, length: usize) {
        let held = usize::from(self.held_count);
        if self.unread.is_empty() && held < MOST_HELD && (self.reader.is_some() || self.read_soon) {
            self.held[held] = (number, length as u16);
            self.held_count += 1;
        } else {
            buffers.with(number, length, |received| self.unread.extend_from_slice(received));
            buffers.give_back(number);
        }
    }

    pub(crate) fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            self.read_soon = true;
            reader.wake();
        }
    }

    pub(crate) fn wake_writer(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.closed
            && self.receiving == Receiving::Not
            && self.queued.is_none()
            && self.unsent.is_empty()
            && self.room != Room::Awaited
    }
}

/// The state of a socket for datagrams. It outlives the socket until the kernel has completed all its operations.
#[derive(Debug)]
pub(crate) struct DatagramState {
    pub(crate) fd: RawFd,
    /// Whether it receives.
    pub(crate) armed: bool,
    /// Received and not taken: buffers, and how many bytes are in them.
    pub(crate) held: VecDeque<(u16, u32)>,
    /// What the system has reported about a receive or an earlier send.
    pub(crate) error: Option<i32>,
    pub(crate) reader: Option<Waker>,
    /// How many datagrams wait for the next submission.
    pub(crate) queued: usize,
    /// What the socket did not take.
    pub(crate) unsent: VecDeque<QueuedDatagram>,
    pub(crate) writer: Option<Waker>,
    pub(crate) room: Room,
    /// The socket is gone.
    pub(crate) closed: bool,
    /// The descriptor is closed with the next submission, or was with an earlier one.
    pub(crate) ended: bool,
}

/// The state of an acceptor. It outlives the acceptor until the kernel has completed its operation.
#[derive(Debug)]
pub(crate) struct AcceptState {
    pub(crate) fd: RawFd,
    pub(crate) armed: bool,
    pub(crate) accepted: VecDeque<Result<OwnedFd, Errno>>,
    pub(crate) waker: Option<Waker>,
    pub(crate) closed: bool,
}

/// The state of a wait. It outlives the wait until the kernel has completed it.
#[derive(Debug)]
pub(crate) struct ReadinessState {
    pub(crate) result: Option<i32>,
    pub(crate) waker: Option<Waker>,
    pub(crate) dropped: bool,
}
