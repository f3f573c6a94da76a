//! Sockets for datagrams on the ring.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::rc::Rc;
use std::task::{Context, Poll};

use io_uring::squeue::Flags;
use io_uring::{opcode, types::Fd};
use rustix::io::Errno;
use rustix::net::{SendFlags, send, sendto};

use crate::buffers::{DATAGRAM_GROUP, ReceiveBuffers, SEND_SIZE};
use crate::message::{Name, QueuedDatagram, Received};
use crate::ring::{Completion, Core, Operation, Ring, Wait};
use crate::states::{DatagramState, Room};

/// A non-blocking socket for datagrams on a ring. Dropping it closes the socket, after what was queued is sent.
#[derive(Debug)]
pub struct RingDatagrams {
    ring: Ring,
    key: usize,
    fd: RawFd,
    buffers: Rc<ReceiveBuffers>,
}

impl Core {
    /// Adds the queued datagrams to the submission. As other small sends, they are carried out at once and in order, do not block,
    /// and complete only if they fail.
    pub(crate) fn push_datagrams(&mut self) -> io::Result<()> {
        for at in 0..self.datagram_batch.len() {
            let QueuedDatagram { fd, buffer: Some(ref buffer), length, ref name, .. } =
                self.datagram_batch[at]
            else {
                continue;
            };
            let mut send = opcode::Send::new(Fd(fd), buffer.as_ptr(), length as u32)
                .flags(libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT);
            if let Some((name, length)) = name {
                send = send.dest_addr(std::ptr::from_ref(name).cast()).dest_addr_len(*length);
            }
            let send = send.build().flags(Flags::SKIP_SUCCESS);
            self.push(&send.user_data(Operation::SendDatagram.on(at)))?;
        }
        Ok(())
    }

    /// The queued datagrams have been carried out, and those that failed have been handled.
    pub(crate) fn end_datagrams(&mut self) {
        let mut batch = std::mem::take(&mut self.datagram_batch);
        for QueuedDatagram { key, buffer, .. } in batch.drain(..) {
            buffer.into_iter().for_each(|buffer| self.send_buffers.give_back(buffer));
            if let Some(socket) = self.datagrams.get_mut(key) {
                socket.queued -= 1;
            }
            self.end_if_over(key);
        }
        self.datagram_batch = batch;
    }

    /// A datagram of the batch was not sent.
    pub(crate) fn datagram_not_sent(&mut self, at: usize, result: i32) {
        let Some(queued) = self.datagram_batch.get_mut(at) else { return };
        let key = queued.key;
        let Some(socket) = self.datagrams.get_mut(key) else { return };
        if result != -libc::EAGAIN {
            socket.fail(-result);
            return;
        }
        let QueuedDatagram { fd, length, to, .. } = *queued;
        let buffer = queued.buffer.take();
        socket.unsent.push_back(QueuedDatagram { key, fd, buffer, length, to, name: None });
        if socket.room != Room::Awaited {
            // If the ring fails, the next turn of the loop reports it.
            let _ = self.await_datagram_room(key);
        }
    }

    fn await_datagram_room(&mut self, key: usize) -> io::Result<()> {
        let socket = &mut self.datagrams[key];
        socket.room = Room::Awaited;
        let poll = opcode::PollAdd::new(Fd(socket.fd), libc::POLLOUT as u32).build();
        self.push(&poll.user_data(Operation::DatagramRoom.on(key)))
    }

    /// The socket has room, or has failed.
    pub(crate) fn has_datagram_room(&mut self, key: usize) {
        let Some(socket) = self.datagrams.get_mut(key) else { return };
        socket.room = Room::Found;
        while let Some(datagram) = socket.unsent.front() {
            // SAFETY: the descriptor stays open until everything is sent.
            let fd = unsafe { BorrowedFd::borrow_raw(socket.fd) };
            let bytes = datagram.buffer.as_ref().map_or(&[][..], |buffer| &buffer[..datagram.length]);
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            let sent = match &datagram.to {
                Some(to) => sendto(fd, bytes, flags, to),
                None => send(fd, bytes, flags),
            };
            match sent {
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {
                    let _ = self.await_datagram_room(key);
                    return;
                }
                Err(error) => socket.fail(error.raw_os_error()),
                Ok(_) => {}
            }
            let gone = socket.unsent.pop_front().and_then(|datagram| datagram.buffer);
            gone.into_iter().for_each(|buffer| self.send_buffers.give_back(buffer));
        }
        if let Some(writer) = socket.writer.take() {
            writer.wake();
        }
        self.end_if_over(key);
    }

    fn arm_datagrams(&mut self, key: usize) -> io::Result<()> {
        let socket = &mut self.datagrams[key];
        socket.armed = true;
        let receive =
            opcode::RecvMsgMulti::new(Fd(socket.fd), &raw const *self.template, DATAGRAM_GROUP).build();
        self.push(&receive.user_data(Operation::ReceiveDatagram.on(key)))
    }

    /// A receive has completed.
    pub(crate) fn received_datagram(&mut self, key: usize, completion: Completion) {
        let Completion { result, buffer, more } = completion;
        let Some(socket) = self.datagrams.get_mut(key) else { return };
        socket.armed = more;
        match (buffer, u32::try_from(result)) {
            (Some(number), Ok(length)) if !socket.closed => socket.held.push_back((number, length)),
            (Some(number), _) => {
                if let Some(buffers) = &self.datagram_buffers {
                    buffers.give_back(number);
                }
            }
            (None, _) => {}
        }
        match -result {
            // No buffer, or interrupted: whoever reads next starts a new receive.
            ..=0 | libc::ENOBUFS | libc::ECANCELED | libc::EINTR | libc::EAGAIN => {}
            error => socket.error = Some(error),
        }
        socket.wake_reader();
        self.end_if_over(key);
    }

    /// Closes a socket that is gone when everything is sent, and forgets it when the kernel has completed its operations.
    fn end_if_over(&mut self, key: usize) {
        let Some(socket) = self.datagrams.get_mut(key) else { return };
        if !socket.closed || socket.queued > 0 || !socket.unsent.is_empty() {
            return;
        }
        let (fd, armed, room) = (socket.fd, socket.armed, socket.room);
        if !std::mem::replace(&mut socket.ended, true) {
            if armed {
                self.cancel(Operation::ReceiveDatagram.on(key));
            }
            if room == Room::Awaited {
                self.cancel(Operation::DatagramRoom.on(key));
            }
            self.close(fd);
        }
        if !armed && room != Room::Awaited {
            self.datagrams.remove(key);
        }
    }
}

impl DatagramState {
    fn fail(&mut self, error: i32) {
        self.error = Some(error);
        self.wake_reader();
    }

    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

impl Ring {
    /// Puts a non-blocking socket for datagrams on the ring. The first one of a loop brings its buffers.
    ///
    /// # Errors
    /// If the kernel does not take the buffers.
    pub fn datagrams(&self, fd: OwnedFd) -> io::Result<RingDatagrams> {
        let mut core = self.0.core.borrow_mut();
        let buffers = match &core.datagram_buffers {
            Some(buffers) => Rc::clone(buffers),
            None => {
                let buffers = Rc::new(ReceiveBuffers::for_datagrams());
                // SAFETY: their memory is on the heap, and the core keeps them for longer than the ring.
                unsafe { core.register_buffers(&buffers)? };
                Rc::clone(core.datagram_buffers.insert(buffers))
            }
        };
        let fd = fd.into_raw_fd();
        let key = core.datagrams.insert(DatagramState {
            fd,
            armed: false,
            held: Default::default(),
            error: None,
            reader: None,
            queued: 0,
            unsent: Default::default(),
            writer: None,
            room: Room::Unknown,
            closed: false,
            ended: false,
        });
        drop(core);
        Ok(RingDatagrams { ring: self.clone(), key, fd, buffers })
    }
}

impl AsFd for RingDatagrams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is closed when the socket is dropped, not before.
        unsafe { BorrowedFd::borrow_raw(self.fd) }
    }
}

impl RingDatagrams {
    /// Takes a datagram to send it at the next turn of the ring, to `to` or, if the socket is connected, to its peer. Returns
    /// whether it was taken: large ones are not, nor any while too many wait. The caller may then send it, as all that were taken
    /// before have gone. What the system reports about those that were taken, the next [`RingDatagrams::poll_recv`] returns.
    ///
    /// # Errors
    /// `WouldBlock` if the socket takes nothing now, otherwise if the ring fails.
    pub fn try_queue(&self, to: Option<SocketAddr>, bytes: &[u8]) -> io::Result<bool> {
        self.ready_to_send()?;
        let mut core = self.ring.0.core.borrow_mut();
        if bytes.len() <= SEND_SIZE
            && let Some(mut buffer) = core.send_buffers.take()
        {
            buffer[..bytes.len()].copy_from_slice(bytes);
            let (key, fd, length) = (self.key, self.fd, bytes.len());
            let (buffer, name) = (Some(buffer), to.map(Name::of));
            core.datagram_batch.push(QueuedDatagram { key, fd, buffer, length, to, name });
            core.datagrams[key].queued += 1;
            return Ok(true);
        }
        drop(core);
        self.flush().map(|()| false)
    }

    /// Sends what is queued. The caller may then send something, too.
    ///
    /// # Errors
    /// `WouldBlock` if the socket takes nothing now, otherwise if the ring fails.
    pub fn flush(&self) -> io::Result<()> {
        let shared = &*self.ring.0;
        let mut core = shared.core.borrow_mut();
        if core.datagrams[self.key].queued > 0 {
            core.turn(Wait::No, &shared.buffers)?;
        }
        drop(core);
        self.ready_to_send()
    }

    /// `WouldBlock` if what was taken before waits for room.
    fn ready_to_send(&self) -> io::Result<()> {
        match self.ring.0.core.borrow().datagrams[self.key].unsent.is_empty() {
            true => Ok(()),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Ready when another try to send is worth it. To be called only after a `WouldBlock`.
    ///
    /// # Errors
    /// If the ring fails.
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut core = self.ring.0.core.borrow_mut();
        let socket = &mut core.datagrams[self.key];
        if socket.unsent.is_empty() && socket.room == Room::Found {
            socket.room = Room::Unknown;
            return Poll::Ready(Ok(()));
        }
        socket.writer = Some(cx.waker().clone());
        if socket.room != Room::Awaited {
            core.await_datagram_room(self.key)?;
        }
        Poll::Pending
    }

    /// Whether a request to the kernel receives what arrives.
    pub(crate) fn is_receiving(&self) -> bool {
        self.ring.0.core.borrow().datagrams[self.key].armed
    }

    /// Passes all that has arrived to `take`.
    ///
    /// # Errors
    /// What the system reports about this socket, and about datagrams that were taken for sending.
    pub fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        mut take: impl FnMut(&Received<'_>),
    ) -> Poll<io::Result<()>> {
        let mut core = self.ring.0.core.borrow_mut();
        let socket = &mut core.datagrams[self.key];
        let count = socket.held.len();
        if count > 0 {
            drop(core);
            for _ in 0..count {
                let held = self.ring.0.core.borrow_mut().datagrams[self.key].held.pop_front();
                let Some((number, length)) = held else { break };
                self.buffers.with(number, length as usize, |buffer| {
                    if let Some(received) = Received::read(buffer) {
                        take(&received);
                    }
                });
                self.buffers.give_back(number);
            }
            return Poll::Ready(Ok(()));
        }
        if let Some(error) = socket.error.take() {
            return Poll::Ready(Err(io::Error::from_raw_os_error(error)));
        }
        match &mut socket.reader {
            Some(reader) => reader.clone_from(cx.waker()),
            reader => *reader = Some(cx.waker().clone()),
        }
        if !socket.armed {
            core.arm_datagrams(self.key)?;
        }
        Poll::Pending
    }
}

impl Drop for RingDatagrams {
    fn drop(&mut self) {
        let mut core = self.ring.0.core.borrow_mut();
        let socket = &mut core.datagrams[self.key];
        socket.closed = true;
        (socket.reader, socket.writer) = (None, None);
        socket.held.drain(..).for_each(|(number, _)| self.buffers.give_back(number));
        core.end_if_over(self.key);
    }
}
