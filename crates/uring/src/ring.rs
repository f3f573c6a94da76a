//! The ring of one loop: what is submitted, and what completes.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::rc::Rc;
use std::time::Duration;

use io_uring::squeue::{Entry, Flags};
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, Probe, Submitter, cqueue, opcode};
use slab::Slab;

use crate::buffers::{ReceiveBuffers, SendBuffer, SendBuffers};
use crate::message::{self, QueuedDatagram};
use crate::states::{AcceptState, DatagramState, ReadinessState, StreamState};

/// Requests that fit into one submission. More of them are submitted early.
const ENTRIES: u32 = 1024;
/// Completions that fit into the shared queue. The kernel keeps more of them until there is room.
const COMPLETIONS: u32 = 8192;

/// How a wait gathers completions: it lasts until `count` of them are there, or for `linger` if at least one is there then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gather {
    /// Completions that end the wait, at least 1.
    pub count: usize,
    /// The longest time that a completion waits for others.
    pub linger: Duration,
}

impl Gather {
    /// The first completion ends the wait.
    pub const NOTHING: Gather = Gather { count: 1, linger: Duration::ZERO };
}

/// Whether [`Ring::turn`] waits for completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It only takes those that are there.
    No,
    /// It waits for them, for so long at most; `None`: for ever.
    For(Option<Duration>, Gather),
}

/// The ring of one loop. Clones are handles to the same ring.
#[derive(Clone)]
pub struct Ring(pub(crate) Rc<Shared>);

/// What the handles share. The kernel's ring is dropped before the memory that it uses.
pub(crate) struct Shared {
    pub(crate) core: RefCell<Core>,
    pub(crate) buffers: ReceiveBuffers,
    /// Whether this kernel can gather completions (Linux 6.12).
    gathers: Cell<bool>,
}

impl fmt::Debug for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let core = self.0.core.borrow();
        f.debug_struct("Ring").field("streams", &core.streams.len()).finish_non_exhaustive()
    }
}

/// Which operation a completion belongs to, in the low bits of its user data. The other bits are the key of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Operation {
    /// Nobody wants to know.
    Ignored = 0,
    Receive = 1,
    Send = 2,
    Room = 3,
    Accept = 4,
    Ready = 5,
    Bell = 6,
    ReceiveDatagram = 7,
    SendDatagram = 8,
    DatagramRoom = 9,
}

impl Operation {
    const BITS: u32 = 4;

    /// The user data of this operation on the state `key`.
    pub(crate) fn on(self, key: usize) -> u64 {
        (key as u64) << Self::BITS | self as u64
    }

    fn of(data: u64) -> (Option<Operation>, usize) {
        use Operation as O;
        const ALL: [Operation; 9] = [
            O::Receive,
            O::Send,
            O::Room,
            O::Accept,
            O::Ready,
            O::Bell,
            O::ReceiveDatagram,
            O::SendDatagram,
            O::DatagramRoom,
        ];
        let number = data & ((1 << Self::BITS) - 1);
        let operation = ALL.into_iter().find(|operation| *operation as u64 == number);
        (operation, (data >> Self::BITS) as usize)
    }
}

/// A completion of the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Completion {
    /// What the system call would have returned; an error number is negative.
    pub(crate) result: i32,
    /// The receive buffer that comes with it.
    pub(crate) buffer: Option<u16>,
    /// Whether the operation goes on.
    pub(crate) more: bool,
}

/// A small message that is sent with the next submission.
#[derive(Debug)]
pub(crate) struct QueuedSend {
    /// The key of the stream.
    pub(crate) key: usize,
    pub(crate) fd: RawFd,
    pub(crate) buffer: SendBuffer,
    /// Number of bytes in the buffer.
    pub(crate) length: usize,
    /// Whether the socket may hold the bytes back until it is closed.
    pub(crate) more: bool,
    /// Whether the socket is closed when everything is sent.
    pub(crate) closes: bool,
}

impl QueuedSend {
    /// Adds `parts`, which fit.
    pub(crate) fn append(&mut self, parts: &[IoSlice<'_>]) {
        for part in parts {
            self.buffer[self.length..self.length + part.len()].copy_from_slice(part);
            self.length += part.len();
        }
    }
}

/// The kernel's ring and the states of all operations.
pub(crate) struct Core {
    /// Borrows from `ring`, so it is dropped first.
    submitter: Submitter<'static>,
    ring: Box<IoUring>,
    pub(crate) streams: Slab<StreamState>,
    pub(crate) acceptors: Slab<AcceptState>,
    pub(crate) waits: Slab<ReadinessState>,
    pub(crate) datagrams: Slab<DatagramState>,
    pub(crate) send_buffers: SendBuffers,
    /// The sends of the next submission, or of the one that is being carried out.
    pub(crate) batch: Vec<QueuedSend>,
    /// The same for datagrams.
    pub(crate) datagram_batch: Vec<QueuedDatagram>,
    /// What datagrams are received into, on loops that receive some.
    pub(crate) datagram_buffers: Option<Rc<ReceiveBuffers>>,
    /// How much room they have for what; the kernel reads it when it is asked to receive.
    pub(crate) template: Box<libc::msghdr>,
    /// Completions that were taken and are not handled yet.
    taken: Vec<(u64, Completion)>,
    /// The descriptor of the bell, and whether another thread has rung it.
    bell: Option<RawFd>,
    rung: bool,
    /// Receives that found no buffer: how many buffers had been given back then.
    starved_at: Option<u64>,
}

impl Ring {
    /// A ring without operations.
    ///
    /// # Errors
    /// If this kernel or the policy of this host does not allow it; [`crate::refusal`] explains.
    pub fn new() -> io::Result<Ring> {
        let mut builder = IoUring::builder();
        builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag().setup_submit_all();
        builder.setup_cqsize(COMPLETIONS).setup_clamp().dontfork();
        let ring = Box::new(builder.build(ENTRIES)?);
        // SAFETY: the ring is boxed and never moves, only its shared methods are called from now on, and the submitter is dropped
        // first.
        let mut submitter =
            unsafe { std::mem::transmute::<Submitter<'_>, Submitter<'static>>(ring.submitter()) };
        // Saves the kernel a look-up in each call; without it everything works.
        let _ = submitter.register_ring_fd();
        let gathers = ring.params().is_feature_min_timeout();
        let core = Core {
            submitter,
            ring,
            streams: Slab::new(),
            acceptors: Slab::new(),
            waits: Slab::new(),
            datagrams: Slab::new(),
            send_buffers: SendBuffers::default(),
            batch: Vec::new(),
            datagram_batch: Vec::new(),
            datagram_buffers: None,
            template: Box::new(message::template()),
            taken: Vec::new(),
            bell: None,
            rung: false,
            starved_at: None,
        };
        let shared = Shared {
            core: RefCell::new(core),
            buffers: ReceiveBuffers::for_streams(),
            gathers: Cell::new(gathers),
        };
        // The memory of the ring of buffers is on the heap.
        // SAFETY: the buffers are dropped after the ring, and their memory does not move.
        unsafe { shared.buffers.register(&shared.core.borrow().submitter)? };
        Ok(Ring(Rc::new(shared)))
    }

    /// Makes turns end whenever `bell` is written to, without reading it. The descriptor must stay open for as long as the ring.
    ///
    /// # Errors
    /// If the ring cannot take the request.
    pub fn watch_bell(&self, bell: BorrowedFd<'_>) -> io::Result<()> {
        let mut core = self.0.core.borrow_mut();
        core.bell = Some(bell.as_raw_fd());
        core.push_bell()
    }

    /// Whether the bell was rung since the last call.
    pub fn was_rung(&self) -> bool {
        std::mem::take(&mut self.0.core.borrow_mut().rung)
    }

    /// Submits what has been requested, waits as `wait` says, and wakes the tasks whose operations have completed. Returns the
    /// number of completions.
    ///
    /// # Errors
    /// What the system reports; a signal and the end of the wait are no errors.
    pub fn turn(&self, wait: Wait) -> io::Result<usize> {
        let wait = match wait {
            Wait::For(limit, _) if !self.0.gathers.get() => Wait::For(limit, Gather::NOTHING),
            wait => wait,
        };
        self.0.core.borrow_mut().turn(wait, &self.0.buffers)
    }
}

impl Core {
    /// Adds a request to the next submission.
    pub(crate) fn push(&mut self, entry: &Entry) -> io::Result<()> {
        // SAFETY: nobody else uses the submission queue now. The memory that entries refer to lives as long as the operation: receive
        // buffers belong to the ring, and send buffers to the batch, whose sends are over when the submission is.
        while unsafe { self.ring.submission_shared().push(entry) }.is_err() {
            self.submitter.submit()?;
        }
        Ok(())
    }

    /// Adds a request whose completion does not matter.
    pub(crate) fn push_ignored(&mut self, entry: Entry) {
        let entry = entry.flags(Flags::SKIP_SUCCESS).user_data(Operation::Ignored.on(0));
        // If the ring fails, the next turn of the loop reports it.
        let _ = self.push(&entry);
    }

    /// Cancels an operation.
    pub(crate) fn cancel(&mut self, operation: u64) {
        self.push_ignored(opcode::AsyncCancel::new(operation).build());
    }

    /// Closes a descriptor with the next submission.
    pub(crate) fn close(&mut self, fd: RawFd) {
        self.push_ignored(opcode::Close::new(Fd(fd)).build());
    }

    /// Adds the queued sends to the submission. The kernel carries them out at once and in order. They do not block, and complete
    /// only if the socket does not take everything.
    fn push_sends(&mut self) -> io::Result<()> {
        const FLAGS: i32 = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT | libc::MSG_WAITALL;
        for at in 0..self.batch.len() {
            let QueuedSend { fd, ref buffer, length, more, closes, .. } = self.batch[at];
            let flags = if more && closes { FLAGS | libc::MSG_MORE } else { FLAGS };
            let send = opcode::Send::new(Fd(fd), buffer.as_ptr(), length as u32).flags(flags).build();
            let send = send.flags(Flags::SKIP_SUCCESS).user_data(Operation::Send.on(at));
            if closes {
                // If the send fails, the kernel cancels the close.
                // Links must not cross submissions.
                // SAFETY: nobody else uses the submission queue now.
                if unsafe { self.ring.submission_shared() }.len() + 2
                    > self.ring.params().sq_entries() as usize
                {
                    self.submitter.submit()?;
                }
                self.push(&send.flags(Flags::IO_LINK))?;
                self.close(fd);
            } else {
                self.push(&send)?;
            }
        }
        Ok(())
    }

    fn push_bell(&mut self) -> io::Result<()> {
        let Some(bell) = self.bell else { return Ok(()) };
        let poll = opcode::PollAdd::new(Fd(bell), libc::POLLIN as u32).multi(true).build();
        self.push(&poll.user_data(Operation::Bell.on(0)))
    }

    /// Passes buffers to the kernel.
    ///
    /// # Errors
    /// What the system reports.
    ///
    /// # Safety
    /// As [`ReceiveBuffers::register`] says.
    pub(crate) unsafe fn register_buffers(&self, buffers: &ReceiveBuffers) -> io::Result<()> {
        // SAFETY: the caller promises it.
        unsafe { buffers.register(&self.submitter) }
    }

    /// Asks the kernel which operations it knows.
    pub(crate) fn register_probe(&self, probe: &mut Probe) -> io::Result<()> {
        self.submitter.register_probe(probe)
    }

    /// See [`Ring::turn`].
    pub(crate) fn turn(&mut self, wait: Wait, buffers: &ReceiveBuffers) -> io::Result<usize> {
        self.push_sends()?;
        self.push_datagrams()?;
        self.enter(wait)?;
        let mut count = self.take();
        // The kernel keeps completions that do not fit into the queue.
        // SAFETY: nobody else uses the submission queue now.
        while unsafe { self.ring.submission_shared() }.cq_overflow() {
            self.enter(Wait::For(Some(Duration::ZERO), Gather::NOTHING))?;
            count += self.take();
        }
        self.handle(buffers);
        // All sends have been carried out, and those that failed have been handled.
        let mut batch = std::mem::take(&mut self.batch);
        for QueuedSend { key, buffer, .. } in batch.drain(..) {
            self.send_buffers.give_back(buffer);
            self.sent(key);
        }
        self.batch = batch;
        self.end_datagrams();
        Ok(count)
    }

    fn enter(&mut self, wait: Wait) -> io::Result<()> {
        // SAFETY: nobody else uses the queues now.
        let (pending, taskrun, ready) = unsafe {
            let submission = self.ring.submission_shared();
            (submission.len(), submission.taskrun(), self.ring.completion_shared().len())
        };
        let entered = match wait {
            Wait::No if pending == 0 && !taskrun => Ok(0),
            Wait::No => self.submitter.submit(),
            // Completions that are there already must not wait.
            Wait::For(..) if ready > 0 => self.submitter.submit(),
            Wait::For(limit, gather) => {
                let time = limit.map(Timespec::from);
                let mut args = SubmitArgs::new();
                if let Some(time) = &time {
                    args = args.timespec(time);
                }
                if gather.count > 1 {
                    args = args.min_wait_usec(gather.linger.as_micros() as u32);
                }
                self.submitter.submit_with_args(gather.count, &args)
            }
        };
        match entered {
            Ok(_) => Ok(()),
            Err(error) => match error.raw_os_error() {
                // The time is over, a signal, or there is no room for completions, which are taken next.
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Takes the completions out of the queue.
    fn take(&mut self) -> usize {
        let before = self.taken.len();
        // SAFETY: nobody else uses the completion queue now.
        let completions = unsafe { self.ring.completion_shared() };
        self.taken.extend(completions.map(|entry| {
            let (data, flags) = (entry.user_data(), entry.flags());
            let (buffer, more) = (cqueue::buffer_select(flags), cqueue::more(flags));
            (data, Completion { result: entry.result(), buffer, more })
        }));
        self.taken.len() - before
    }

    fn handle(&mut self, buffers: &ReceiveBuffers) {
        let mut taken = std::mem::take(&mut self.taken);
        for (data, completion) in taken.drain(..) {
            match Operation::of(data) {
                (Some(Operation::Receive), key) => {
                    if completion.result == -libc::ENOBUFS {
                        self.starve(buffers);
                    }
                    self.received(buffers, key, completion);
                }
                (Some(Operation::Send), key) => {
                    // The result is negative or less than the length.
                    let sent = usize::try_from(completion.result).unwrap_or(0);
                    if let Some(QueuedSend { key, buffer, length, .. }) = self.batch.get(key) {
                        let (key, rest) = (*key, buffer[sent.min(*length)..*length].to_vec());
                        self.not_sent(key, completion.result, rest);
                    }
                }
                (Some(Operation::Room), key) => self.has_room(key),
                (Some(Operation::Accept), key) => self.accepted(key, completion),
                (Some(Operation::Ready), key) => self.is_ready(key, completion.result),
                (Some(Operation::ReceiveDatagram), key) => self.received_datagram(key, completion),
                (Some(Operation::SendDatagram), at) => self.datagram_not_sent(at, completion.result),
                (Some(Operation::DatagramRoom), key) => self.has_datagram_room(key),
                (Some(Operation::Bell), _) => {
                    self.rung = true;
                    if !completion.more {
                        // If the ring fails, the next turn reports it.
                        let _ = self.push_bell();
                    }
                }
                (None | Some(Operation::Ignored), _) => {}
            }
        }
        self.taken = taken;
    }

    /// A receive has found no buffer. Usually the tasks that run next give buffers back. If none was given back since the last
    /// time, tasks leave theirs unread, and the bytes move elsewhere.
    fn starve(&mut self, buffers: &ReceiveBuffers) {
        let given_back = buffers.given_back();
        if self.starved_at.replace(given_back) == Some(given_back) {
            self.streams.iter_mut().for_each(|(_, stream)| stream.free_buffers(buffers));
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Closes and cancels that were requested last, and what they complete; the rest ends with the ring.
        for _ in 0..3 {
            let wait = Wait::For(Some(Duration::ZERO), Gather::NOTHING);
            let _ = self.core.get_mut().turn(wait, &self.buffers);
        }
        // Otherwise the thread would keep the ring until it ends.
        let _ = self.core.get_mut().submitter.unregister_ring_fd();
    }
}
