//! Holds packets in user space: the kernel hands over each packet, and we say when it may go on.
//!
//! Packets that come in wait in the queue of the kernel; we only know their numbers. Packets that go out count against
//! the send buffer of their socket as long as the kernel has them, so TCP would send no more than two segments in each
//! delay. We therefore take a copy, let the kernel forget the original, and send the copy when it is due. Packets that
//! cannot be sent again as they are (see [`RawSender::can_send`]), and packets of other hosts, wait in the kernel.

use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::thread;

use polygraph_traffic::Seed;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use crate::delay_line::DelayLine;
use crate::emulation::{Direction, Emulation};
use crate::model::{Fate, Nanos, PipeModel};
use crate::nfqueue::message::{Message, Packet};
use crate::nfqueue::request::{PacketVerdict, QueueMode};
use crate::nfqueue::socket::{FIRST_QUEUE, MESSAGE_BUFFER, QueueSocket};
use crate::pipe::Pipe;
use crate::raw_sender::RawSender;
use crate::status::{ExcessRecorder, PipeStatus, Status, missed_packets};

/// How many packets may wait in a queue of the kernel: 40 ms of 2.5 million packets per second.
const MAX_HELD: u32 = 100_000;
/// How many packets are read before others are released.
const ROUND: usize = 64;
/// The scheduling priority of the process if it cannot have a better one.
const NICENESS: i32 = -20;
/// The whole packet, as far as the kernel copies it.
const WHOLE: u32 = 0xffff;

/// The queues of an emulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Queues {
    /// For packets that come in.
    pub inbound: Option<u16>,
    /// For packets of other hosts that go out.
    pub forwarded_out: Option<u16>,
    /// For packets of this host that go out.
    pub local_out: Option<u16>,
}

impl Queues {
    /// The queues that an emulation needs, with numbers as they often are.
    pub fn example(emulation: &Emulation) -> Queues {
        let first = FIRST_QUEUE;
        let inbound = emulation.pipe(Direction::In).map(|_| first);
        let next = first + inbound.map_or(0, |_| 1);
        let outbound = emulation.pipe(Direction::Out);
        let forwarded_out = outbound.map(|_| next);
        let local_out = outbound.map(|pipe| if pipe.takes_time() { next + 1 } else { next });
        Queues { inbound, forwarded_out, local_out }
    }
}

/// What is done with the packets of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holding {
    /// They wait in the kernel.
    InKernel,
    /// They are copied. Those that cannot be copied wait in the queue with this index.
    AsCopy { fallback: usize },
}

#[derive(Debug)]
struct Reader {
    socket: QueueSocket,
    /// The index of the path of its packets.
    path: usize,
    holding: Holding,
}

/// A packet on its way.
#[derive(Debug)]
enum Held {
    /// It waits in the queue of a reader.
    InKernel { reader: usize, id: u32, verdict: PacketVerdict },
    /// We have a copy.
    Copy { packet: Box<[u8]>, mark: u32 },
}

/// One direction.
#[derive(Debug)]
struct Path {
    direction: Direction,
    model: PipeModel,
    line: DelayLine<Held>,
    /// Whether packets may overtake each other, so that verdicts on several at once are wrong.
    reorder: bool,
    packets: u64,
    delivered: u64,
    lost: u64,
    overflowed: u64,
    excess: ExcessRecorder,
}

/// An emulation in user space.
#[derive(Debug)]
pub struct Emulator {
    readers: Vec<Reader>,
    paths: Vec<Path>,
    sender: RawSender,
    started: Nanos,
    errors: u64,
    /// Times at which packets of a round were due.
    released: Vec<Nanos>,
}

impl Emulator {
    /// Becomes the reader of as many queues as the emulation needs.
    ///
    /// # Errors
    /// If the kernel has no packet queues, or if this process may not read them.
    pub fn open(emulation: &Emulation) -> io::Result<Emulator> {
        let mut readers = Vec::new();
        let mut paths = Vec::new();
        // Any number will do that differs each time.
        let seed = emulation.seed.unwrap_or_else(now);
        for (direction, pipe) in emulation.pipes() {
            let path = paths.len();
            paths.push(Path::new(direction, pipe, seed));
            let fallback = readers.len();
            let socket = QueueSocket::open(held_in_kernel(pipe))?;
            readers.push(Reader { socket, path, holding: Holding::InKernel });
            if direction == Direction::Out && pipe.takes_time() {
                let mode = QueueMode { copied: WHOLE, merged: false, max_length: MAX_HELD };
                let socket = QueueSocket::open(mode)?;
                readers.push(Reader { socket, path, holding: Holding::AsCopy { fallback } });
            }
        }
        Ok(Emulator {
            readers,
            paths,
            sender: RawSender::open()?,
            started: now(),
            errors: 0,
            released: Vec::new(),
        })
    }

    /// The numbers of the queues.
    pub fn queues(&self) -> Queues {
        let find = |direction: Direction, copied: bool| {
            let found = self.readers.iter().find(|reader| {
                self.paths[reader.path].direction == direction
                    && (reader.holding != Holding::InKernel) == copied
            });
            found.map(|reader| reader.socket.queue())
        };
        let forwarded_out = find(Direction::Out, false);
        Queues {
            inbound: find(Direction::In, false),
            forwarded_out,
            local_out: find(Direction::Out, true).or(forwarded_out),
        }
    }

    /// Works until `wait` returns, or until `lifeline` is closed at its other end. Whoever connects to `listener` gets
    /// the status as JSON. Packets on their way are let go at the end.
    ///
    /// # Errors
    /// If the kernel takes the queues away.
    pub fn run(
        mut self,
        listener: &UnixListener,
        lifeline: Option<BorrowedFd<'_>>,
        wait: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC)?;
        let waker = stop.try_clone()?;
        thread::Builder::new().name("wait".to_owned()).spawn(move || {
            wait();
            // The counter cannot be full.
            let _ = rustix::io::write(&waker, &1u64.to_ne_bytes());
        })?;
        listener.set_nonblocking(true)?;
        prefer_this_thread();
        let result = self.work(listener, &stop, lifeline);
        self.let_all_go();
        result
    }

    fn work(
        &mut self,
        listener: &UnixListener,
        stop: &OwnedFd,
        lifeline: Option<BorrowedFd<'_>>,
    ) -> io::Result<()> {
        let mut buffer = vec![0; MESSAGE_BUFFER];
        loop {
            let wait = self.next_due().map(|due| timespec(due.saturating_sub(now())));
            let mut fds: Vec<PollFd<'_>> =
                self.readers.iter().map(|reader| PollFd::new(&reader.socket, PollFlags::IN)).collect();
            fds.push(PollFd::new(listener, PollFlags::IN));
            fds.push(PollFd::new(stop, PollFlags::IN));
            fds.extend(lifeline.as_ref().map(|lifeline| PollFd::new(lifeline, PollFlags::IN)));
            match poll(&mut fds, wait.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
            let (queues, others) = ready.split_at(self.readers.len());
            self.release();
            for (reader, ready) in queues.iter().enumerate() {
                if *ready {
                    self.read(reader, &mut buffer)?;
                }
            }
            self.release();
            if others[0] {
                self.tell_status(listener);
            }
            if others[1..].contains(&true) {
                return Ok(());
            }
        }
    }

    /// When the next packet is due.
    fn next_due(&self) -> Option<Nanos> {
        self.paths.iter().filter_map(|path| path.line.next_due()).min()
    }

    /// Reads packets of a queue.
    fn read(&mut self, reader: usize, buffer: &mut [u8]) -> io::Result<()> {
        // The last packet of which we have a copy, or which is lost, so that the kernel need not keep it.
        let mut done = None;
        for _ in 0..ROUND {
            let messages = match self.readers[reader].socket.receive(buffer) {
                Ok(Some(messages)) => messages,
                Ok(None) => break,
                // The kernel counts what it could not deliver.
                Err(error) if Errno::from_io_error(&error) == Some(Errno::NOBUFS) => continue,
                Err(error) => return Err(error),
            };
            let at = now();
            for message in messages {
                match message {
                    Ok(Message::Packet(packet)) => self.packet(reader, &packet, at, &mut done),
                    Ok(Message::Answer { error: 0, .. } | Message::Other) => {}
                    Ok(Message::Answer { .. }) | Err(_) => self.errors += 1,
                }
            }
        }
        self.forget(reader, done);
        Ok(())
    }

    /// Sends a packet into its pipe.
    fn packet(&mut self, reader: usize, packet: &Packet<'_>, at: Nanos, done: &mut Option<u32>) {
        let Reader { path, holding, .. } = self.readers[reader];
        let id = packet.id;
        if let Holding::AsCopy { fallback } = holding
            && !self.sender.can_send(packet.payload, packet.length, packet.out_device)
        {
            self.forget(reader, done.take());
            let queue = self.readers[fallback].socket.queue();
            self.decide(reader, id, PacketVerdict::Requeue(queue));
            return;
        }
        let path = &mut self.paths[path];
        path.packets += 1;
        let fate = path.model.send(at, packet.length);
        match fate {
            Fate::Arrives(_) => {}
            Fate::Lost(_) => path.lost += 1,
            Fate::Overflows => path.overflowed += 1,
        }
        match (holding, fate) {
            (Holding::InKernel, Fate::Arrives(due)) => {
                path.line.push(due, Held::InKernel { reader, id, verdict: PacketVerdict::Accept });
            }
            // Verdicts in order are cheap: the kernel searches its queue from the front.
            (Holding::InKernel, Fate::Lost(due)) => {
                path.line.push(due, Held::InKernel { reader, id, verdict: PacketVerdict::Drop });
            }
            (Holding::InKernel, Fate::Overflows) => self.decide(reader, id, PacketVerdict::Drop),
            (Holding::AsCopy { .. }, fate) => {
                *done = Some(id);
                if let Fate::Arrives(due) = fate {
                    path.line.push(due, Held::Copy { packet: packet.payload.into(), mark: packet.mark });
                }
            }
        }
    }

    /// Lets the kernel forget the packets of a queue up to one.
    fn forget(&mut self, reader: usize, last: Option<u32>) {
        if let Some(id) = last
            && self.readers[reader].socket.decide_up_to(id, PacketVerdict::Drop).is_err()
        {
            self.errors += 1;
        }
    }

    fn decide(&mut self, reader: usize, id: u32, verdict: PacketVerdict) {
        if self.readers[reader].socket.decide(id, verdict).is_err() {
            self.errors += 1;
        }
    }

    /// Lets the packets go that are due.
    fn release(&mut self) {
        for path in 0..self.paths.len() {
            self.release_from(path, now());
        }
    }

    fn release_from(&mut self, index: usize, until: Nanos) {
        // The last packet of the queue in use that may go on, together with all before it.
        let mut batch: Option<(usize, u32)> = None;
        while let Some((due, held)) = self.paths[index].line.pop_due(until) {
            match held {
                Held::InKernel { reader, id, verdict: PacketVerdict::Accept }
                    if !self.paths[index].reorder =>
                {
                    if batch.is_some_and(|(other, _)| other != reader) {
                        self.accept(batch.take());
                    }
                    batch = Some((reader, id));
                    self.released.push(due);
                }
                Held::InKernel { reader, id, verdict } => {
                    self.accept(batch.take());
                    self.decide(reader, id, verdict);
                    if verdict == PacketVerdict::Accept {
                        self.released.push(due);
                    }
                }
                Held::Copy { packet, mark } => match self.sender.send(&packet, mark) {
                    Ok(()) => self.released.push(due),
                    Err(_) => self.errors += 1,
                },
            }
        }
        self.accept(batch);
        if !self.released.is_empty() {
            let left = now();
            let path = &mut self.paths[index];
            path.delivered += self.released.len() as u64;
            self.released.drain(..).for_each(|due| path.excess.add(left.saturating_sub(due)));
        }
    }

    fn accept(&mut self, batch: Option<(usize, u32)>) {
        if let Some((reader, id)) = batch
            && self.readers[reader].socket.decide_up_to(id, PacketVerdict::Accept).is_err()
        {
            self.errors += 1;
        }
    }

    /// Lets everything go that is on its way.
    fn let_all_go(&mut self) {
        for path in 0..self.paths.len() {
            self.release_from(path, Nanos::MAX);
        }
    }

    fn tell_status(&self, listener: &UnixListener) {
        while let Ok((mut client, _)) = listener.accept() {
            // Short enough for the buffer of the connection. A client that is gone needs no status.
            let _ = serde_json::to_writer(&mut client, &self.status());
            let _ = client.shutdown(Shutdown::Both);
        }
    }

    /// What was done so far.
    pub fn status(&self) -> Status {
        let table =
            std::fs::read_to_string("/proc/thread-self/net/netfilter/nfnetlink_queue").unwrap_or_default();
        let pipes = self.paths.iter().enumerate().map(|(index, path)| {
            let readers = self.readers.iter().filter(|reader| reader.path == index);
            let queues: Vec<u16> = readers.map(|reader| reader.socket.queue()).collect();
            path.status(missed_packets(&table, &queues))
        });
        Status {
            seconds: (now() - self.started) as f64 / 1e9,
            cpu_seconds: nanos_of(ClockId::ProcessCPUTime) as f64 / 1e9,
            errors: self.errors,
            pipes: pipes.collect(),
        }
    }
}

impl Path {
    fn new(direction: Direction, pipe: &Pipe, seed: u64) -> Path {
        let random = Seed(seed).stream("pipe", direction as u64);
        // Packets that all take the same time cannot overtake each other.
        let reorder = pipe.reorder && !pipe.has_constant_delay();
        Path {
            direction,
            model: PipeModel::new(Pipe { reorder, ..pipe.clone() }, random),
            line: DelayLine::new(reorder),
            reorder,
            packets: 0,
            delivered: 0,
            lost: 0,
            overflowed: 0,
            excess: ExcessRecorder::new(),
        }
    }

    fn status(&self, missed: u64) -> PipeStatus {
        PipeStatus {
            direction: self.direction,
            packets: self.packets,
            delivered: self.delivered,
            lost: self.lost,
            overflowed: Some(self.overflowed),
            held: self.line.len() as u64,
            missed,
            excess: self.excess.excess(),
        }
    }
}

/// How packets come that wait in the kernel. Their length matters only for the bandwidth; one byte of the packet makes
/// the kernel tell it. Loss and bandwidth concern packets as they are on the wire, not merged segments.
fn held_in_kernel(pipe: &Pipe) -> QueueMode {
    QueueMode {
        copied: u32::from(pipe.bandwidth.is_some()),
        merged: pipe.loss <= 0.0 && pipe.bandwidth.is_none() && pipe.has_constant_delay(),
        max_length: MAX_HELD,
    }
}

/// Lets this thread run as soon as a packet is due, as the kernel itself would: it needs little of the processor, but at
/// once. Without the rights for that, packets are late on a busy host.
fn prefer_this_thread() {
    let priority = libc::sched_param { sched_priority: 1 };
    // SAFETY: the call only reads the parameter, which lives until it returns.
    let preferred = unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &priority) } == 0;
    if !preferred {
        let _ = rustix::process::setpriority_process(None, NICENESS);
    }
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

fn now() -> Nanos {
    nanos_of(ClockId::Monotonic)
}

fn nanos_of(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn timespec(nanos: Nanos) -> Timespec {
    Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 }
}

impl AsFd for Reader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
