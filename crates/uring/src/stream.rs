//! Streams: TCP connections on the ring.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::task::{Context, Poll};

use io_uring::squeue::Flags;
use io_uring::{opcode, types::Fd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, recv, send, sendmsg, shutdown};

use crate::buffers::{GROUP, ReceiveBuffers, SEND_SIZE};
use crate::ring::{Completion, Core, Operation, QueuedSend, Ring, Wait};
use crate::states::{MOST_UNREAD, Receiving, Room, StreamState};

/// What a stream of the ring has received and nobody has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// Nothing has arrived.
    Nothing,
    /// The first bytes.
    Bytes(Vec<u8>),
    /// The peer has closed or reset the connection.
    End,
}

/// A connected or connecting TCP socket on a ring. Dropping it closes the socket.
#[derive(Debug)]
pub struct RingStream {
    ring: Ring,
    key: usize,
    fd: RawFd,
}

impl Core {
    fn add_stream(&mut self, fd: RawFd, established: bool) -> usize {
        self.streams.insert(StreamState {
            fd,
            receiving: Receiving::Not,
            lasting: false,
            read_soon: false,
            held: Default::default(),
            held_count: 0,
            unread: Vec::new(),
            end: None,
            reader: None,
            queued: None,
            unsent: Vec::new(),
            send_error: None,
            writer: None,
            room: Room::Unknown,
            ends_soon: false,
            finishing: false,
            closed: false,
            established,
        })
    }

    fn forget_if_over(&mut self, key: usize) {
        if self.streams.get(key).is_some_and(StreamState::is_over) {
            self.streams.remove(key);
        }
    }

    fn arm_receive(&mut self, key: usize) -> io::Result<()> {
        let stream = &mut self.streams[key];
        let fd = Fd(stream.fd);
        let entry = match std::mem::replace(&mut stream.lasting, true) {
            true => {
                stream.receiving = Receiving::Always;
                opcode::RecvMulti::new(fd, GROUP).build()
            }
            false => {
                stream.receiving = Receiving::Once;
                let once = opcode::Recv::new(fd, std::ptr::null_mut(), 0).buf_group(GROUP);
                once.build().flags(Flags::BUFFER_SELECT)
            }
        };
        self.push(&entry.user_data(Operation::Receive.on(key)))
    }

    fn await_room(&mut self, key: usize) -> io::Result<()> {
        let stream = &mut self.streams[key];
        stream.room = Room::Awaited;
        let poll = opcode::PollAdd::new(Fd(stream.fd), libc::POLLOUT as u32).build();
        self.push(&poll.user_data(Operation::Room.on(key)))
    }

    /// A receive has completed.
    pub(crate) fn received(&mut self, buffers: &ReceiveBuffers, key: usize, completion: Completion) {
        let Completion { result, buffer, more } = completion;
        let Some(stream) = self.streams.get_mut(key) else { return };
        if !more {
            stream.receiving = Receiving::Not;
        }
        match (buffer, usize::try_from(result)) {
            (Some(number), Ok(length)) if length > 0 && !stream.closed => {
                stream.keep(buffers, number, length)
            }
            (Some(number), _) => buffers.give_back(number),
            (None, _) => {}
        }
        match result {
            0 => stream.end = Some(0),
            1.. => {}
            // No buffer, or cancelled because nobody read: whoever reads next starts a new receive.
            result if matches!(-result, libc::ENOBUFS | libc::ECANCELED | libc::EINTR | libc::EAGAIN) => {}
            result => stream.end = Some(-result),
        }
        stream.wake_reader();
        if stream.receiving == Receiving::Always && stream.unread.len() >= MOST_UNREAD {
            stream.receiving = Receiving::Stopping;
            self.cancel(Operation::Receive.on(key));
        }
        self.forget_if_over(key);
    }

    /// A send of the batch was carried out.
    pub(crate) fn sent(&mut self, key: usize) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        stream.queued = None;
        self.forget_if_over(key);
    }

    /// The socket did not take `rest`, which follows what it took; `result` is what the send returned.
    pub(crate) fn not_sent(&mut self, key: usize, result: i32, rest: Vec<u8>) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        let again = result >= 0 || result == -libc::EAGAIN;
        if again {
            stream.unsent = rest;
        } else {
            stream.send_error = Some(-result);
            stream.wake_writer();
        }
        let (fd, closed) = (stream.fd, stream.closed);
        if again && stream.room != Room::Awaited {
            // If the ring fails, the next turn of the loop reports it.
            let _ = self.await_room(key);
        } else if !again && closed {
            self.close(fd);
        }
    }

    /// The socket has room, or has failed.
    pub(crate) fn has_room(&mut self, key: usize) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        stream.room = Room::Found;
        let sends = !stream.unsent.is_empty();
        if sends {
            // SAFETY: the descriptor stays open until everything is sent.
            let fd = unsafe { BorrowedFd::borrow_raw(stream.fd) };
            match send(fd, &stream.unsent, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(n) => drop(stream.unsent.drain(..n)),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => {
                    stream.unsent = Vec::new();
                    stream.send_error = Some(error.raw_os_error());
                }
            }
            if !stream.unsent.is_empty() {
                let _ = self.await_room(key);
                return;
            }
            stream.unsent = Vec::new();
            if std::mem::take(&mut stream.finishing) {
                // Where this fails, the peer has closed or reset the connection already.
                let _ = shutdown(fd, Shutdown::Write);
            }
        }
        stream.wake_writer();
        // Without bytes to send, dropping the stream has closed the socket.
        if sends && stream.closed {
            let fd = stream.fd;
            self.close(fd);
        }
        self.forget_if_over(key);
    }

    /// The stream is gone.
    fn drop_stream(&mut self, buffers: &ReceiveBuffers, key: usize) {
        let stream = &mut self.streams[key];
        stream.closed = true;
        (stream.reader, stream.writer) = (None, None);
        let held = usize::from(std::mem::take(&mut stream.held_count));
        stream.held[..held].iter().for_each(|(number, _)| buffers.give_back(*number));
        stream.unread = Vec::new();
        let (fd, receiving, room, queued) = (stream.fd, stream.receiving, stream.room, stream.queued);
        // Bytes that the stream has taken are sent before the socket is closed.
        let sends = !stream.unsent.is_empty();
        if matches!(receiving, Receiving::Once | Receiving::Always) {
            self.cancel(Operation::Receive.on(key));
        }
        if room == Room::Awaited && !sends {
            self.cancel(Operation::Room.on(key));
        }
        match queued {
            Some(at) => self.batch[at].closes = true,
            None if !sends => self.close(fd),
            None => {}
        }
        self.forget_if_over(key);
    }
}

impl Ring {
    /// Puts a socket on the ring. `established` tells that the connection is.
    pub fn stream(&self, fd: OwnedFd, established: bool) -> RingStream {
        let fd = fd.into_raw_fd();
        let key = self.0.core.borrow_mut().add_stream(fd, established);
        RingStream { ring: self.clone(), key, fd }
    }
}

impl AsFd for RingStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is closed when the stream is dropped, not before.
        unsafe { BorrowedFd::borrow_raw(self.fd) }
    }
}

impl RingStream {
    /// Sends as much of `parts` as the connection takes now and returns the number of bytes. Small messages are taken as a whole, and
    /// sent at the next turn of the ring.
    ///
    /// # Errors
    /// `WouldBlock` if it takes nothing now, otherwise what the system reports, also about what was taken before.
    pub fn try_send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let shared = &*self.ring.0;
        let mut core = shared.core.borrow_mut();
        let stream = &core.streams[self.key];
        if let Some(error) = stream.send_error {
            return Err(io::Error::from_raw_os_error(error));
        }
        if !stream.unsent.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let (established, queued, more) = (stream.established, stream.queued, stream.ends_soon);
        let size: usize = parts.iter().map(|part| part.len()).sum();
        if let Some(at) = queued {
            let send = &mut core.batch[at];
            if send.length + size <= SEND_SIZE {
                send.append(parts);
                send.more = more;
                return Ok(size);
            }
            // What is queued goes first.
            core.turn(Wait::No, &shared.buffers)?;
            drop(core);
            return self.try_send(parts);
        }
        if established
            && size <= SEND_SIZE
            && let Some(buffer) = core.send_buffers.take()
        {
            let mut send = QueuedSend { key: self.key, fd: self.fd, buffer, length: 0, more, closes: false };
            send.append(parts);
            core.streams[self.key].queued = Some(core.batch.len());
            core.batch.push(send);
            return Ok(size);
        }
        drop(core);
        // send(2) is a little cheaper than sendmsg(2).
        let mut flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        flags.set(SendFlags::MORE, more);
        let sent = loop {
            let sent = match parts {
                [one] => send(&*self, one, flags),
                several => sendmsg(&*self, several, &mut SendAncillaryBuffer::default(), flags),
            };
            if sent != Err(Errno::INTR) {
                break sent;
            }
        };
        let mut core = shared.core.borrow_mut();
        let stream = &mut core.streams[self.key];
        match sent {
            Ok(sent) => {
                stream.established = true;
                Ok(sent)
            }
            Err(Errno::AGAIN) => {
                // What was found before is stale.
                if stream.room == Room::Found {
                    stream.room = Room::Unknown;
                }
                Err(io::ErrorKind::WouldBlock.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Ready when another try to send is worth it. To be called only after a `WouldBlock`.
    ///
    /// # Errors
    /// If the ring fails.
    pub fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shared = &*self.ring.0;
        let mut core = shared.core.borrow_mut();
        let stream = &mut core.streams[self.key];
        if stream.send_error.is_some() || stream.unsent.is_empty() && stream.room == Room::Found {
            stream.room = Room::Unknown;
            return Poll::Ready(Ok(()));
        }
        stream.writer = Some(cx.waker().clone());
        if stream.room != Room::Awaited {
            core.await_room(self.key)?;
        }
        Poll::Pending
    }

    /// Passes bytes that have arrived to `take`; an empty slice is the end of the stream.
    ///
    /// # Errors
    /// What the system reports about this connection.
    pub fn poll_recv<R>(
        &mut self,
        cx: &mut Context<'_>,
        take: impl FnOnce(&[u8]) -> R,
    ) -> Poll<io::Result<R>> {
        let shared = &*self.ring.0;
        let mut core = shared.core.borrow_mut();
        let stream = &mut core.streams[self.key];
        stream.read_soon = false;
        if stream.held_count > 0 {
            let (number, length) = stream.held[0];
            stream.held.copy_within(1.., 0);
            stream.held_count -= 1;
            stream.read_soon = stream.held_count > 0;
            drop(core);
            let taken = shared.buffers.with(number, length.into(), take);
            shared.buffers.give_back(number);
            return Poll::Ready(Ok(taken));
        }
        if !stream.unread.is_empty() {
            let bytes = std::mem::take(&mut stream.unread);
            drop(core);
            return Poll::Ready(Ok(take(&bytes)));
        }
        match (stream.end, stream.send_error) {
            (Some(0), None) => {
                drop(core);
                return Poll::Ready(Ok(take(&[])));
            }
            // That a send failed is the reason for the end, and a broken pipe is a reset as whoever only receives sees it.
            (Some(0), Some(error)) | (Some(error), _) => {
                let error = if error == libc::EPIPE { libc::ECONNRESET } else { error };
                return Poll::Ready(Err(io::Error::from_raw_os_error(error)));
            }
            (None, _) => {}
        }
        match &mut stream.reader {
            Some(reader) => reader.clone_from(cx.waker()),
            reader => *reader = Some(cx.waker().clone()),
        }
        if stream.receiving == Receiving::Not {
            core.arm_receive(self.key)?;
        }
        Poll::Pending
    }

    /// What was received and not read, at most `most` bytes of it, as of the last turn of the ring. A system call at the first
    /// look at most: from then on the stream receives.
    pub fn unread(&mut self, most: usize) -> Unread {
        let shared = &*self.ring.0;
        let mut core = shared.core.borrow_mut();
        let stream = &mut core.streams[self.key];
        stream.free_buffers(&shared.buffers);
        if !stream.unread.is_empty() {
            return Unread::Bytes(stream.unread[..stream.unread.len().min(most)].to_vec());
        }
        if stream.end.is_some() || stream.send_error.is_some() {
            return Unread::End;
        }
        if stream.receiving != Receiving::Not || !stream.established {
            return Unread::Nothing;
        }
        let mut first = vec![0; most];
        match recv(&*self, &mut first[..], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((_, 0)) => Unread::End,
            Ok((_, n)) => {
                first.truncate(n);
                Unread::Bytes(first)
            }
            Err(Errno::AGAIN | Errno::INTR) => {
                stream.lasting = true;
                // If the ring fails, the next turn reports it.
                let _ = core.arm_receive(self.key);
                Unread::Nothing
            }
            Err(_) => Unread::End,
        }
    }

    /// Announces that the stream is dropped right after the next send, so that the socket may hold that back until it is closed.
    pub fn expect_end(&mut self) {
        self.ring.0.core.borrow_mut().streams[self.key].ends_soon = true;
    }

    /// Ends what this side sends.
    pub fn finish(&mut self) {
        let shared = &*self.ring.0;
        let mut core = shared.core.borrow_mut();
        if core.streams[self.key].queued.is_some() {
            let _ = core.turn(Wait::No, &shared.buffers);
        }
        let stream = &mut core.streams[self.key];
        if stream.unsent.is_empty() {
            // Where this fails, the peer has closed or reset the connection already.
            let _ = shutdown(&*self, Shutdown::Write);
        } else {
            stream.finishing = true;
        }
    }

    /// Gives up what was taken and is not sent, so that dropping the stream closes the socket at once.
    pub fn forget_unsent(&mut self) {
        let shared = &*self.ring.0;
        let mut core = shared.core.borrow_mut();
        if core.streams[self.key].queued.is_some() {
            // If the ring fails, the next turn of the loop reports it.
            let _ = core.turn(Wait::No, &shared.buffers);
        }
        core.streams[self.key].unsent = Vec::new();
    }
}

impl Drop for RingStream {
    fn drop(&mut self) {
        let shared = &*self.ring.0;
        shared.core.borrow_mut().drop_stream(&shared.buffers, self.key);
    }
}
