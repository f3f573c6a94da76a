//! The streams of a connection, and what is known about those that are closed.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};
use std::task::Waker;

use polygraph_wire::head::HeadIndex;
use slab::Slab;

use super::window::{ReceiveWindow, SendWindow};
use crate::buffers;
use crate::fault::Fault;
use crate::message::ReplyTo;
use crate::message::incoming::IncomingMessage;

/// What arrives next on a stream.
#[derive(Debug)]
pub enum Arrival {
    /// The head of the reply to such a request.
    Head(ReplyTo),
    /// Content of a message.
    Content(IncomingMessage),
    /// Nothing more.
    End,
}

/// A stream.
#[derive(Debug)]
pub struct StreamState {
    /// Its id.
    pub id: u32,
    /// How much content may be sent.
    pub send_window: SendWindow,
    /// How much content may arrive.
    pub receive_window: ReceiveWindow,
    /// Whether this side has ended the stream.
    pub sent_end: bool,
    /// Whether the peer has ended the stream.
    pub received_end: bool,
    /// Whether both have, or one has reset it.
    pub is_closed: bool,
    /// What arrives next.
    pub arrival: Arrival,
    /// Bytes of the HTTP/1 message that were not read yet.
    pub inbox: Vec<u8>,
    /// Where the fields of the head are with which they begin, if it is known.
    pub index: HeadIndex,
    /// The bytes of content among them, which the windows count.
    pub unread: usize,
    /// Why it was reset.
    pub failure: Option<Fault>,
    /// Whether somebody uses the stream.
    pub is_held: bool,
    /// Whether somebody has tried to read.
    pub was_polled: bool,
    /// Whether it waits for room in the connection.
    pub is_blocked: bool,
    /// When it sent content last: see [`super::connection::Connection::room`].
    pub turn: u64,
    /// Who waits for something to read.
    pub reader: Option<Waker>,
    /// Who waits for room for content.
    pub writer: Option<Waker>,
}

impl StreamState {
    /// Wakes who waits.
    pub fn wake(&self) {
        self.reader.iter().chain(&self.writer).for_each(Waker::wake_by_ref);
    }

    /// Wakes who waits for something to read.
    pub fn wake_reader(&self) {
        self.reader.iter().for_each(Waker::wake_by_ref);
    }
}

/// Keeps `waker` in `place`.
pub fn keep_waker(place: &mut Option<Waker>, waker: &Waker) {
    if !place.as_ref().is_some_and(|kept| kept.will_wake(waker)) {
        *place = Some(waker.clone());
    }
}

/// How a stream was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// By its end in both directions.
    InOrder,
    /// By a reset of the peer, or because the peer does not process it.
    ByPeer,
    /// By a reset of this side: frames may still come that the peer sent before it knew.
    ByUs,
}

/// How many streams that were closed in order, or by the peer, are remembered.
const REMEMBERED: usize = 32;

/// How many streams that this side has reset are remembered.
const REMEMBERED_RESETS: usize = 1024;

/// The streams of a connection. Each has a place, which stays the same while somebody uses it.
#[derive(Debug, Default)]
pub struct Streams {
    slots: Slab<StreamState>,
    /// The ids and places of streams that are not closed, in order of ids: there are few of them, and the latest are the most busy.
    open: Vec<(u32, usize)>,
    closed: VecDeque<(u32, Closed)>,
    reset: VecDeque<u32>,
}

impl Index<usize> for Streams {
    type Output = StreamState;

    fn index(&self, place: usize) -> &StreamState {
        &self.slots[place]
    }
}

impl IndexMut<usize> for Streams {
    fn index_mut(&mut self, place: usize) -> &mut StreamState {
        &mut self.slots[place]
    }
}

impl Streams {
    /// Opens a stream with these windows, which somebody uses.
    pub fn open(&mut self, id: u32, send_window: u32, receive_window: u32, arrival: Arrival) -> usize {
        let place = self.slots.insert(StreamState {
            id,
            send_window: SendWindow::new(send_window),
            receive_window: ReceiveWindow::new(receive_window),
            sent_end: false,
            received_end: false,
            is_closed: false,
            arrival,
            inbox: buffers::take(),
            index: HeadIndex::default(),
            unread: 0,
            failure: None,
            is_held: true,
            was_polled: false,
            is_blocked: false,
            turn: u64::MAX,
            reader: None,
            writer: None,
        });
        // Ids grow.
        self.open.push((id, place));
        place
    }

    /// The place of a stream that is not closed.
    pub fn find(&self, id: u32) -> Option<usize> {
        match self.open.last() {
            Some((last, place)) if *last == id => Some(*place),
            _ => self.open.binary_search_by_key(&id, |(id, _)| *id).ok().map(|at| self.open[at].1),
        }
    }

    /// Number of streams that are not closed.
    pub fn open_count(&self) -> usize {
        self.open.len()
    }

    /// Number of streams that somebody uses, or that are not closed.
    pub fn kept_count(&self) -> usize {
        self.slots.len()
    }

    /// The places of all streams that are not closed.
    pub fn open_places(&self) -> Vec<usize> {
        self.open.iter().map(|(_, place)| *place).collect()
    }

    /// All streams that somebody uses, or that are not closed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut StreamState> {
        self.slots.iter_mut().map(|(_, stream)| stream)
    }

    /// The stream at a place, if there is one.
    pub fn get_mut(&mut self, place: usize) -> Option<&mut StreamState> {
        self.slots.get_mut(place)
    }

    /// Closes a stream.
    pub fn close(&mut self, place: usize, how: Closed) {
        let stream = &mut self.slots[place];
        if std::mem::replace(&mut stream.is_closed, true) {
            return;
        }
        let (id, is_held) = (stream.id, stream.is_held);
        if let Ok(at) = self.open.binary_search_by_key(&id, |(id, _)| *id) {
            self.open.remove(at);
        }
        self.remember(id, how);
        if !is_held {
            self.remove(place);
        }
    }

    /// Remembers a stream that never had a place, or has none any more.
    pub fn remember(&mut self, id: u32, how: Closed) {
        if how == Closed::ByUs {
            if self.reset.len() == REMEMBERED_RESETS {
                self.reset.pop_front();
            }
            return self.reset.push_back(id);
        }
        if self.closed.len() == REMEMBERED {
            self.closed.pop_front();
        }
        self.closed.push_back((id, how));
    }

    /// The peer has reset a stream that is closed. If this side had reset it, nothing more is on its way.
    pub fn remember_reset_by_peer(&mut self, id: u32) {
        if let Some(at) = self.reset.iter().rposition(|known| *known == id) {
            self.reset.remove(at);
            self.remember(id, Closed::ByPeer);
        }
    }

    /// How a stream was closed, as far as that is known.
    pub fn recall(&self, id: u32) -> Option<Closed> {
        let closed = self.closed.iter().rev().find(|(known, _)| *known == id).map(|(_, how)| *how);
        if self.reset.iter().rev().any(|known| *known == id) { Some(Closed::ByUs) } else { closed }
    }

    /// Nobody uses the stream any more. If it is closed, it is removed.
    pub fn leave(&mut self, place: usize) {
        let stream = &mut self.slots[place];
        (stream.is_held, stream.reader, stream.writer) = (false, None, None);
        if stream.is_closed {
            self.remove(place);
        }
    }

    fn remove(&mut self, place: usize) {
        buffers::give(self.slots.remove(place).inbox);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stay_while_somebody_uses_them() {
        let mut streams = Streams::default();
        let first = streams.open(1, 10, 10, Arrival::End);
        let second = streams.open(3, 10, 10, Arrival::End);
        assert_eq!((streams.find(1), streams.find(5), streams.open_count()), (Some(first), None, 2));
        streams.close(first, Closed::InOrder);
        assert_eq!((streams.find(1), streams.open_count(), streams[first].id), (None, 1, 1));
        streams.leave(first);
        assert!(streams.get_mut(first).is_none());
        streams.leave(second);
        assert_eq!(streams.find(3), Some(second), "the peer may still use it");
        streams.close(second, Closed::ByUs);
        assert!(streams.get_mut(second).is_none());
        assert_eq!([1, 3, 5].map(|id| streams.recall(id)), [Some(Closed::InOrder), Some(Closed::ByUs), None]);
        [1, 3, 5].iter().for_each(|id| streams.remember_reset_by_peer(*id));
        assert_eq!(
            [1, 3, 5].map(|id| streams.recall(id)),
            [Some(Closed::InOrder), Some(Closed::ByPeer), None]
        );
    }

    #[test]
    fn only_the_latest_closed_streams_are_remembered() {
        let mut streams = Streams::default();
        for id in 0..2000 {
            streams.remember(2 * id, Closed::ByPeer);
            streams.remember(2 * id + 1, Closed::ByUs);
        }
        assert_eq!((streams.closed.len(), streams.reset.len()), (REMEMBERED, REMEMBERED_RESETS));
        assert_eq!(
            [1, 3998, 3999].map(|id| streams.recall(id)),
            [None, Some(Closed::ByPeer), Some(Closed::ByUs)]
        );
    }
}
