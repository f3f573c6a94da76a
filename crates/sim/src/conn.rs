//! A connection in memory: two bounded streams of bytes, one in each direction.

use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use polygraph_link::{Conn, IdleState, Nanos};

use crate::network::Network;
use crate::pieces::{HEADROOM, Piece, Pieces};
use crate::timers::Alarm;

/// Number of bytes that may be in transit or unread in one direction, like the buffers of two sockets together.
const WINDOW: usize = 256 * 1024;

/// Fewer bytes are copied instead of giving the buffer away. So the few large buffers remain with the network, and in the caches.
const LEAST_EXCHANGED: usize = 2048;

/// One end of a connection. Dropping it closes it.
pub struct VirtualConn {
    network: Rc<Network>,
    wire: Rc<RefCell<Wire>>,
    /// The index of the end, which reads `streams[end]` and writes the other stream.
    end: usize,
    /// The handle of the loop that has opened the connection.
    handle: u32,
    deadline: Option<Nanos>,
    alarm: Option<Alarm>,
}

#[derive(Default)]
struct Wire {
    streams: [Stream; 2],
}

/// One direction.
struct Stream {
    pieces: Pieces,
    bytes: usize,
    window: usize,
    /// How and when the writer ended the stream.
    ended: Option<(End, Nanos)>,
    /// Whether the reader has closed its end.
    unread: bool,
    reader: Reader,
    writer: Option<Waker>,
}

/// Who learns that something arrives.
enum Reader {
    Nobody,
    Task(Waker),
    /// The connection is idle and belongs to this owner.
    Owner(u32),
}

impl Default for Stream {
    fn default() -> Stream {
        Stream {
            pieces: Pieces::default(),
            bytes: 0,
            window: WINDOW,
            ended: None,
            unread: false,
            reader: Reader::Nobody,
            writer: None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Closed,
    Reset,
}

impl Stream {
    /// When the next bytes or the end arrive; `None` if nothing is on its way.
    fn next_arrival(&self) -> Option<Nanos> {
        self.pieces.first().map(|piece| piece.at).or(self.ended.map(|(_, at)| at))
    }

    fn wake_writer(&mut self) {
        if let Some(waker) = self.writer.take() {
            waker.wake();
        }
    }
}

impl fmt::Debug for VirtualConn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualConn").field("end", &self.end).finish_non_exhaustive()
    }
}

impl VirtualConn {
    /// Both ends of a connection.
    pub(crate) fn pair(network: &Rc<Network>, handle: u32) -> (VirtualConn, VirtualConn) {
        let wire = Rc::new(RefCell::new(Wire::default()));
        let conn = |end| VirtualConn {
            network: Rc::clone(network),
            wire: Rc::clone(&wire),
            end,
            handle,
            deadline: None,
            alarm: None,
        };
        (conn(0), conn(1))
    }

    /// Sends any number of `bytes`, so that they arrive at `at`, but not before all earlier bytes.
    pub fn send_at(&mut self, at: Nanos, bytes: Vec<u8>) {
        let mut wire = self.wire.borrow_mut();
        let stream = &mut wire.streams[1 - self.end];
        if stream.unread {
            return;
        }
        self.append(stream, Piece { at, bytes, start: 0 });
    }

    /// Adds bytes, which do not arrive before all others, to what this end writes.
    fn append(&self, stream: &mut Stream, mut piece: Piece) {
        stream.bytes += piece.len();
        if let Some(last) = stream.pieces.last() {
            piece.at = piece.at.max(last.at);
        }
        stream.pieces.push(piece);
        self.tell_reader(stream);
    }

    /// Tells the reader of a stream that something has been sent.
    fn tell_reader(&self, stream: &mut Stream) {
        match std::mem::replace(&mut stream.reader, Reader::Nobody) {
            Reader::Nobody => {}
            Reader::Task(waker) => waker.wake(),
            Reader::Owner(owner) => {
                if let Some(at) = stream.next_arrival() {
                    self.network.disturbed.add(self.handle, at, owner);
                }
            }
        }
    }

    /// Takes the first bytes from what this end reads.
    fn take_first(&self, stream: &mut Stream) -> Piece {
        let piece = stream.pieces.pop().unwrap_or_default();
        stream.bytes -= piece.len();
        stream.wake_writer();
        piece
    }

    /// What this end writes, if it can write.
    fn writable_stream<'w>(&self, wire: &'w mut Wire) -> io::Result<&'w mut Stream> {
        let now = self.network.now.get();
        if wire.streams[self.end].ended.is_some_and(|(end, at)| end == End::Reset && at <= now) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let stream = &mut wire.streams[1 - self.end];
        match stream.unread || stream.ended.is_some() {
            true => Err(io::ErrorKind::BrokenPipe.into()),
            false => Ok(stream),
        }
    }

    fn end_stream(&mut self, end: End) {
        let at = self.network.arrival();
        let mut wire = self.wire.borrow_mut();
        let stream = &mut wire.streams[1 - self.end];
        if stream.ended.is_none() {
            stream.ended = Some((end, at));
            self.tell_reader(stream);
        }
        // A peer that waits for room must also learn about a reset.
        wire.streams[self.end].wake_writer();
    }

    /// All bytes that have arrived and were not read yet.
    pub fn take_arrived(&mut self) -> Vec<u8> {
        let now = self.network.now.get();
        let mut wire = self.wire.borrow_mut();
        let stream = &mut wire.streams[self.end];
        let mut all = Vec::new();
        while stream.pieces.first().is_some_and(|piece| piece.at <= now) {
            all.extend_from_slice(self.take_first(stream).bytes());
        }
        all
    }

    /// Limits the unread bytes here to `bytes`; then the peer has to wait.
    pub fn set_window(&mut self, bytes: usize) {
        let mut wire = self.wire.borrow_mut();
        let stream = &mut wire.streams[self.end];
        stream.window = bytes;
        if stream.bytes < bytes {
            stream.wake_writer();
        }
    }

    /// Number of bytes that the peer may send now without waiting.
    pub fn room(&self) -> usize {
        let wire = self.wire.borrow();
        let stream = &wire.streams[self.end];
        stream.window.saturating_sub(stream.bytes)
    }

    /// Whether the peer has closed or reset the connection.
    pub fn is_ended(&self) -> bool {
        let wire = self.wire.borrow();
        wire.streams[self.end].ended.is_some_and(|(_, at)| at <= self.network.now.get())
    }

    /// Waits for an action of the peer, for `until`, or for the deadline; a deadline that has passed is an error.
    fn wait(&mut self, cx: &Context<'_>, until: Option<Nanos>) -> Poll<io::Error> {
        let now = self.network.now.get();
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            return Poll::Ready(io::ErrorKind::TimedOut.into());
        }
        let next = [until, self.deadline].into_iter().flatten().min();
        if let Some(next) = next {
            let timers = &self.network.timers;
            // An alarm that fires too early only causes another poll. So deadlines that change with every transaction cost
            // nothing.
            let early = self.alarm.filter(|alarm| alarm.at <= next);
            if !early.is_some_and(|alarm| timers.redirect(alarm, cx.waker())) {
                if let Some(late) = self.alarm {
                    timers.cancel(late);
                }
                self.alarm = Some(timers.set(next, cx.waker()));
            }
        }
        Poll::Pending
    }

    fn poll_piece(&mut self, cx: &Context<'_>) -> Poll<io::Result<Piece>> {
        let now = self.network.now.get();
        let until = {
            let mut wire = self.wire.borrow_mut();
            let stream = &mut wire.streams[self.end];
            let ended = stream.ended.filter(|(_, at)| *at <= now);
            // Bytes that arrived before a reset can still be read, as on Linux.
            match stream.pieces.first().map(|piece| piece.at) {
                Some(at) if at <= now => return Poll::Ready(Ok(self.take_first(stream))),
                None if ended.is_some_and(|(end, _)| end == End::Reset) => {
                    return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
                }
                None if ended.is_some() => return Poll::Ready(Ok(Piece::default())),
                coming => {
                    stream.reader = Reader::Task(cx.waker().clone());
                    coming.or(stream.ended.map(|(_, at)| at))
                }
            }
        };
        self.wait(cx, until).map(Err)
    }

    /// Waits for bytes and takes them; the result is empty if the peer has closed.
    ///
    /// # Errors
    /// The same as those of [`Conn::recv`].
    pub async fn take(&mut self) -> io::Result<Vec<u8>> {
        let mut piece = poll_fn(|cx| self.poll_piece(cx)).await?;
        piece.bytes.drain(..piece.start);
        Ok(piece.bytes)
    }
}

impl Conn for VirtualConn {
    fn try_send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut wire = self.wire.borrow_mut();
        let stream = self.writable_stream(&mut wire)?;
        let all: usize = parts.iter().map(|part| part.len()).sum();
        let room = stream.window.saturating_sub(stream.bytes);
        if room == 0 && all > 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut bytes = self.network.buffer(HEADROOM.len() + all.min(room));
        bytes.extend_from_slice(&HEADROOM);
        let mut left = room;
        for part in parts {
            let fits = part.len().min(left);
            bytes.extend_from_slice(&part[..fits]);
            left -= fits;
        }
        let sent = room - left;
        if sent > 0 {
            self.append(stream, Piece { at: self.network.arrival(), bytes, start: HEADROOM.len() });
        }
        Ok(sent)
    }

    fn try_send_buffer(&mut self, buffer: &mut Vec<u8>, start: usize) -> io::Result<usize> {
        let mut wire = self.wire.borrow_mut();
        let stream = self.writable_stream(&mut wire)?;
        let sent = buffer.len() - start;
        if sent == 0 || sent > stream.window.saturating_sub(stream.bytes) {
            drop(wire);
            return self.try_send(&[IoSlice::new(&buffer[start..])]);
        }
        let bytes = std::mem::replace(buffer, self.network.buffer(0));
        self.append(stream, Piece { at: self.network.arrival(), bytes, start });
        Ok(sent)
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        {
            let mut wire = self.wire.borrow_mut();
            let reset = wire.streams[self.end].ended.is_some_and(|(end, _)| end == End::Reset);
            let stream = &mut wire.streams[1 - self.end];
            if reset || stream.unread || stream.bytes < stream.window {
                return Poll::Ready(Ok(()));
            }
            stream.writer = Some(cx.waker().clone());
        }
        self.wait(cx, None).map(Err)
    }

    fn poll_recv<R>(&mut self, cx: &mut Context<'_>, take: impl FnOnce(&[u8]) -> R) -> Poll<io::Result<R>> {
        let piece = ready!(self.poll_piece(cx))?;
        let taken = take(piece.bytes());
        self.network.recycle(piece.bytes);
        Poll::Ready(Ok(taken))
    }

    fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        spare: impl FnOnce() -> Vec<u8>,
    ) -> Poll<io::Result<(Vec<u8>, usize)>> {
        let Piece { bytes, start, .. } = ready!(self.poll_piece(cx))?;
        if bytes.is_empty() {
            return Poll::Ready(Ok((bytes, start)));
        }
        let (mut kept, mut other) = (bytes, spare());
        if kept.len() < LEAST_EXCHANGED {
            other.extend_from_slice(&kept);
            std::mem::swap(&mut kept, &mut other);
        }
        self.network.recycle(other);
        Poll::Ready(Ok((kept, start)))
    }

    fn note_idle(&mut self, owner: u32) {
        let mut wire = self.wire.borrow_mut();
        let stream = &mut wire.streams[self.end];
        stream.reader = Reader::Owner(owner);
        if stream.next_arrival().is_some() {
            self.tell_reader(stream);
        }
    }

    fn idle_state(&mut self) -> IdleState {
        let now = self.network.now.get();
        let wire = self.wire.borrow();
        let stream = &wire.streams[self.end];
        match stream.pieces.first() {
            Some(piece) if piece.at <= now => {
                IdleState::Bytes(piece.bytes()[..piece.len().min(IdleState::MAX_SHOWN)].to_vec())
            }
            _ if stream.ended.is_some_and(|(_, at)| at <= now) => IdleState::Closed,
            _ => IdleState::Quiet,
        }
    }

    fn set_deadline(&mut self, at: Option<Nanos>) {
        self.deadline = at;
    }

    fn finish(&mut self) {
        self.end_stream(End::Closed);
    }

    fn reset(&mut self) {
        self.end_stream(End::Reset);
    }
}

impl Drop for VirtualConn {
    fn drop(&mut self) {
        if let Some(alarm) = self.alarm {
            self.network.timers.cancel(alarm);
        }
        self.end_stream(End::Closed);
        let mut wire = self.wire.borrow_mut();
        let stream = &mut wire.streams[self.end];
        stream.unread = true;
        while let Some(piece) = stream.pieces.pop() {
            self.network.recycle(piece.bytes);
        }
        stream.wake_writer();
    }
}
