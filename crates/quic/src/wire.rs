//! A QUIC connection, as its streams and the task of its socket share it.

use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;
use std::task::{Context, Waker};

use bytes::Bytes;
use polygraph_link::Nanos;
use polygraph_tls::handshake::Handshake;
use polygraph_tls::quic::QuicHandshake;
use quinn_proto::{Connection, ConnectionHandle, Dir, Event, StreamEvent, StreamId, VarInt};

use crate::clock::{instant, nanos};
use crate::handshakes::UnderWay;
use crate::http3::codes;
use crate::lost::Lost;

/// The connections of a socket for which its task has something to do.
pub struct Queue {
    handles: RefCell<Vec<ConnectionHandle>>,
    driver: RefCell<Option<Waker>>,
    /// Whether the task is at work, and need not be woken.
    is_at_work: Cell<bool>,
    /// Reads the clock of the link.
    now: Box<dyn Fn() -> Nanos>,
}

impl Queue {
    /// An empty queue.
    pub fn new(now: Box<dyn Fn() -> Nanos>) -> Queue {
        Queue { handles: RefCell::default(), driver: RefCell::default(), is_at_work: Cell::new(false), now }
    }

    /// The time.
    pub fn now(&self) -> Nanos {
        (self.now)()
    }

    /// The task begins to work on what is in the queue, and is not woken meanwhile.
    pub fn begin_work(&self) {
        self.is_at_work.set(true);
    }

    /// The task goes to sleep. Sets whom to wake when something is put in.
    pub fn end_work(&self, waker: &Waker) {
        self.is_at_work.set(false);
        let mut driver = self.driver.borrow_mut();
        if !driver.as_ref().is_some_and(|kept| kept.will_wake(waker)) {
            *driver = Some(waker.clone());
        }
    }

    /// Puts a connection in.
    pub fn push(&self, handle: ConnectionHandle) {
        self.handles.borrow_mut().push(handle);
        if !self.is_at_work.get()
            && let Some(driver) = &*self.driver.borrow()
        {
            driver.wake_by_ref();
        }
    }

    /// Takes all connections out.
    pub fn take(&self) -> Vec<ConnectionHandle> {
        self.handles.take()
    }

    /// Passes all connections to `each`, and leaves them where they are.
    pub fn each(&self, each: impl FnMut(&ConnectionHandle)) {
        self.handles.borrow().iter().for_each(each);
    }

    /// Gives back the memory of an emptied list.
    pub fn recycle(&self, mut list: Vec<ConnectionHandle>) {
        let mut handles = self.handles.borrow_mut();
        if handles.is_empty() && handles.capacity() < list.capacity() {
            list.clear();
            *handles = list;
        }
    }
}

/// Who waits for a stream.
#[derive(Debug, Default)]
struct Waiting {
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// Whether nothing can have arrived since the stream was last read, or opened.
    is_quiet: bool,
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

/// Who waits for what.
#[derive(Debug, Default)]
pub struct Wakers {
    /// Those of the open streams, which are few.
    streams: Vec<(StreamId, Waiting)>,
    /// Tasks that wait until a stream can be opened.
    opening: Vec<Waker>,
    /// The task of HTTP/3.
    session: Option<Waker>,
    /// Whether something has happened on unidirectional streams since this was last reset.
    pub control: bool,
    /// Whether the task of HTTP/3 waits for the ends of streams.
    pub session_awaits_ends: bool,
    /// The task that waits for the handshake.
    handshake: Option<Waker>,
}

impl Wakers {
    /// This side has opened the stream.
    pub fn begin(&mut self, id: StreamId) {
        self.of(id).is_quiet = true;
    }

    /// Whether nothing can have arrived on the stream since it was opened, or since somebody waits to read it.
    pub fn is_quiet(&self, id: StreamId) -> bool {
        self.place(id).is_some_and(|place| self.streams[place].1.is_quiet)
    }

    /// Wakes the task when the stream can be read, on which nothing waits.
    pub fn when_readable(&mut self, id: StreamId, cx: &Context<'_>) {
        let waiting = self.of(id);
        (waiting.reader, waiting.is_quiet) = (Some(cx.waker().clone()), true);
    }

    /// Wakes the task when the stream can be written.
    pub fn when_writable(&mut self, id: StreamId, cx: &Context<'_>) {
        self.of(id).writer = Some(cx.waker().clone());
    }

    fn place(&self, id: StreamId) -> Option<usize> {
        self.streams.iter().position(|(stream, _)| *stream == id)
    }

    fn of(&mut self, id: StreamId) -> &mut Waiting {
        let place = self.place(id).unwrap_or_else(|| {
            self.streams.push((id, Waiting::default()));
            self.streams.len() - 1
        });
        &mut self.streams[place].1
    }

    /// Wakes the task when a stream can be opened.
    pub fn when_available(&mut self, cx: &Context<'_>) {
        if !self.opening.iter().any(|kept| kept.will_wake(cx.waker())) {
            self.opening.push(cx.waker().clone());
        }
    }

    /// Forgets who waits for a stream.
    pub fn forget(&mut self, id: StreamId) {
        if let Some(place) = self.place(id) {
            self.streams.swap_remove(place);
        }
    }

    /// Wakes those who wait for client streams from this id on, or until one can be opened.
    pub fn wake_from(&mut self, id: u64) {
        for (_, waiting) in self.streams.iter_mut().filter(|(stream, _)| u64::from(*stream) >= id) {
            wake(&mut waiting.reader);
            wake(&mut waiting.writer);
        }
        self.opening.drain(..).for_each(Waker::wake);
    }

    /// Wakes everybody.
    pub fn wake_all(&mut self) {
        for (_, waiting) in &mut self.streams {
            wake(&mut waiting.reader);
            wake(&mut waiting.writer);
        }
        self.opening.drain(..).for_each(Waker::wake);
        wake(&mut self.session);
        wake(&mut self.handshake);
    }

    fn wake_for(&mut self, event: &StreamEvent) {
        let dir = match event {
            StreamEvent::Opened { dir } | StreamEvent::Available { dir } => *dir,
            StreamEvent::Readable { id }
            | StreamEvent::Writable { id }
            | StreamEvent::Finished { id }
            | StreamEvent::Stopped { id, .. } => id.dir(),
        };
        self.control |= dir == Dir::Uni;
        // The task of HTTP/3 is not needed for what happens on the streams of requests, which have their own tasks.
        let of_session = match event {
            StreamEvent::Opened { .. } => true,
            StreamEvent::Finished { .. } => self.session_awaits_ends,
            _ => dir == Dir::Uni,
        };
        match event {
            StreamEvent::Readable { id } => {
                if let Some(place) = self.place(*id) {
                    let waiting = &mut self.streams[place].1;
                    waiting.is_quiet = false;
                    wake(&mut waiting.reader);
                }
            }
            StreamEvent::Writable { id } | StreamEvent::Stopped { id, .. } => {
                if let Some(place) = self.place(*id) {
                    wake(&mut self.streams[place].1.writer);
                }
            }
            StreamEvent::Available { .. } => self.opening.drain(..).for_each(Waker::wake),
            StreamEvent::Opened { .. } | StreamEvent::Finished { .. } => {}
        }
        if of_session && let Some(session) = &self.session {
            session.wake_by_ref();
        }
    }
}

/// The state of a connection.
pub struct WireState {
    /// The connection of the library.
    pub quic: Connection,
    /// Who waits for what.
    pub wakers: Wakers,
    /// When the task of the socket looks at the connection next, at the latest.
    pub armed: Nanos,
    /// When the connection had to act next, as its last turn has found. Earlier times come only with what leads to another turn.
    due: Nanos,
    /// Whether the handshake is complete.
    pub connected: bool,
    /// A server's handshake, until it is complete.
    under_way: Option<UnderWay>,
    /// The facts of the complete handshake, until somebody takes them.
    pub handshake: Option<Handshake>,
    /// How often data that a client sent before the handshake was complete were lost, because the server refused them: 0 or 1. Streams
    /// of an earlier count do not exist any more.
    pub epoch: u32,
    /// Why the connection ended, if it did.
    pub lost: Option<Lost>,
}

/// A connection.
pub struct Wire {
    handle: ConnectionHandle,
    queue: Rc<Queue>,
    queued: Cell<bool>,
    state: RefCell<WireState>,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl Wire {
    /// A new connection, for a server with its handshake. The task of its socket looks at it at once.
    pub fn new(
        handle: ConnectionHandle,
        quic: Connection,
        queue: &Rc<Queue>,
        under_way: Option<UnderWay>,
    ) -> Rc<Wire> {
        let state = WireState {
            quic,
            wakers: Wakers::default(),
            armed: Nanos::MAX,
            due: Nanos::ZERO,
            connected: false,
            under_way,
            handshake: None,
            epoch: 0,
            lost: None,
        };
        let wire = Rc::new(Wire {
            handle,
            queue: Rc::clone(queue),
            queued: Cell::new(false),
            state: RefCell::new(state),
        });
        wire.touch();
        wire
    }

    /// Its number among those of its socket.
    pub fn handle(&self) -> ConnectionHandle {
        self.handle
    }

    /// The state, for a moment. Whoever changes something calls [`Wire::touch`] afterwards.
    pub fn state(&self) -> RefMut<'_, WireState> {
        self.state.borrow_mut()
    }

    /// Lets the task of the socket look at the connection.
    pub fn touch(&self) {
        if !self.queued.replace(true) {
            self.queue.push(self.handle);
        }
    }

    /// The task of the socket looks at the connection now.
    pub fn begin_turn(&self) {
        self.queued.set(false);
    }

    /// The time.
    pub fn now(&self) -> Nanos {
        self.queue.now()
    }

    /// Ends the connection with a code of HTTP/3.
    pub fn close(&self, code: u64, reason: &'static str) {
        let now = instant(self.now());
        let state = &mut *self.state();
        if !state.quic.is_closed() {
            let code = VarInt::from_u64(code).unwrap_or(VarInt::MAX);
            state.quic.close(now, code, Bytes::from_static(reason.as_bytes()));
        }
        state.lost.get_or_insert(Lost::Closed);
        state.wakers.wake_all();
        self.touch();
    }

    /// Sets whom to wake when the connection has changed.
    pub fn set_session(&self, cx: &Context<'_>) {
        let session = &mut self.state().wakers.session;
        if !session.as_ref().is_some_and(|kept| kept.will_wake(cx.waker())) {
            *session = Some(cx.waker().clone());
        }
    }

    /// Sets whom to wake when the handshake is complete or has failed.
    pub fn when_connected(&self, cx: &Context<'_>) {
        self.state().wakers.handshake = Some(cx.waker().clone());
    }
}

impl WireState {
    /// Lets the connection act on the time and on what has arrived, and wakes those who waited for that.
    pub fn advance(&mut self, now: Nanos) {
        if self.due <= now {
            if self.quic.poll_timeout().is_some_and(|at| at <= instant(now)) {
                self.quic.handle_timeout(instant(now));
            }
            if self.handshake_ends_at() <= now {
                self.give_up_handshake(now);
            }
        }
        while let Some(event) = self.quic.poll() {
            match event {
                Event::Connected => self.connect(now),
                Event::ConnectionLost { reason } => {
                    let failure = match self.handshake_data() {
                        Some(QuicHandshake::Failed(failure)) => Some(failure),
                        _ => None,
                    };
                    self.lose(Lost::of(reason, failure, self.connected));
                }
                Event::Stream(event) => self.wakers.wake_for(&event),
                Event::HandshakeDataReady | Event::DatagramReceived | Event::DatagramsUnblocked => {}
            }
        }
    }

    fn handshake_data(&self) -> Option<QuicHandshake> {
        let data = self.quic.crypto_session().handshake_data()?;
        data.downcast().ok().map(|data| *data)
    }

    fn connect(&mut self, now: Nanos) {
        (self.connected, self.under_way) = (true, None);
        let refused = self.quic.side().is_client() && self.quic.has_0rtt() && !self.quic.accepted_0rtt();
        if refused {
            self.epoch += 1;
        }
        if let Some(QuicHandshake::Complete(mut facts)) = self.handshake_data() {
            (facts.completed, facts.early_refused) = (now, refused);
            self.handshake = Some(facts);
        }
        self.wakers.wake_all();
    }

    /// The connection has ended.
    pub fn lose(&mut self, why: Lost) {
        self.lost.get_or_insert(why);
        self.wakers.wake_all();
    }

    /// When the connection has to act next.
    pub fn next_timeout(&mut self) -> Nanos {
        let of_quic = self.quic.poll_timeout().map_or(Nanos::MAX, nanos);
        self.due = of_quic.min(self.handshake_ends_at());
        self.due
    }

    /// When the handshake is given up, unless it has ended.
    fn handshake_ends_at(&self) -> Nanos {
        match &self.under_way {
            Some(handshake) if self.lost.is_none() => handshake.until,
            _ => Nanos::MAX,
        }
    }

    /// Gives up a handshake that takes too long, and tells the client so.
    fn give_up_handshake(&mut self, now: Nanos) {
        let code = VarInt::from_u64(codes::H3_NO_ERROR).unwrap_or(VarInt::MAX);
        self.quic.close(instant(now), code, Bytes::from_static(b"the handshake takes too long"));
        self.lose(Lost::NoAnswer);
    }
}
