//! The task of a UDP socket: it passes datagrams between the socket and its connections, and watches their timers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use polygraph_link::{Datagrams, IncomingDatagrams, Link, Nanos, OutgoingDatagrams};
use polygraph_multiplex::alarm::Alarm;
use quinn_proto::{DatagramEvent, EcnCodepoint, Endpoint, Incoming, Transmit};

use crate::clock::instant;
use crate::handshakes::{Admission, Handshakes, TokenTime};
use crate::lost::Lost;
use crate::wire::{Queue, Wire};

/// The most receives before other tasks get their turn. Each of them may take several batches.
const MOST_RECEIVES: usize = 4;
/// How often other tasks get their turn before a client sends: the robot reads the reply, and sends the next request.
const ROUNDS_OF_CLIENT: u32 = 1;
/// The same for a server: the task of the connection accepts the stream, and then that of the stream answers.
const ROUNDS_OF_SERVER: u32 = 2;
/// The most datagrams of a connection that are sent in one step. More would make bursts that receivers lose.
const MOST_SEGMENTS: usize = 10;
/// The most bytes that a socket takes in one step.
const MOST_BYTES: usize = 65_000;

/// What a server does with a new connection, or with one that failed at once.
pub type Accept = Box<dyn FnMut(Result<Rc<Wire>, Lost>)>;

/// What a server's socket needs for connections that clients open.
pub struct Listener {
    /// What is called before a connection begins.
    pub prepare: Box<dyn Fn()>,
    /// What is called for each connection.
    pub accept: Accept,
    /// The handshakes that are under way.
    pub handshakes: Handshakes,
    /// The time for the tokens of Retry packets.
    pub token_time: Arc<TokenTime>,
}

/// Passes datagrams between a socket and its connections.
pub struct Driver<D: Datagrams> {
    socket: D,
    endpoint: Endpoint,
    queue: Rc<Queue>,
    wires: Vec<Option<Rc<Wire>>>,
    /// When connections have to act. Entries that are not the connection's own time any more have no effect.
    agenda: BinaryHeap<Reverse<(Nanos, usize)>>,
    /// A datagram that the socket did not take yet; its bytes are in `out`.
    unsent: Option<Transmit>,
    out: Vec<u8>,
    /// How often other tasks still get their turn before connections send, if something has arrived.
    rounds: Option<u32>,
    /// `None` for a client, whose socket has one connection.
    listener: Option<Listener>,
}

impl<D: Datagrams> Driver<D> {
    /// A driver without connections.
    pub fn new(socket: D, endpoint: Endpoint, queue: Rc<Queue>, listener: Option<Listener>) -> Driver<D> {
        Driver {
            socket,
            endpoint,
            queue,
            wires: Vec::new(),
            agenda: BinaryHeap::new(),
            unsent: None,
            out: Vec::new(),
            rounds: None,
            listener,
        }
    }

    /// Adds a connection of the endpoint.
    pub fn add(&mut self, wire: Rc<Wire>) {
        let place = wire.handle().0;
        if self.wires.len() <= place {
            self.wires.resize(place + 1, None);
        }
        self.wires[place] = Some(wire);
    }

    /// Runs for ever, or for a client until its connection has ended.
    pub async fn run<L: Link>(mut self, link: L) {
        let mut sleep = pin!(None);
        let mut alarm = Alarm::default();
        poll_fn(|cx| {
            loop {
                self.queue.begin_work();
                let now = self.queue.now();
                let (has_some, is_idle) = self.receive(now, cx);
                // Whoever waited for what has arrived acts first: what it sends then leaves together with the acknowledgements.
                if self.lets_others(has_some) {
                    self.pass_on(now);
                    self.queue.end_work(cx.waker());
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                self.work(now, cx);
                if self.listener.is_none() && self.is_over() {
                    return Poll::Ready(());
                }
                let next = self.next_timeout();
                if alarm.poll(sleep.as_mut(), next, |at| link.sleep_until(at), cx).is_pending() {
                    self.queue.end_work(cx.waker());
                    if !is_idle {
                        cx.waker().wake_by_ref();
                    }
                    return Poll::Pending;
                }
            }
        })
        .await;
    }

    /// Whether the connection of a client has ended, and everything is sent.
    fn is_over(&self) -> bool {
        let over = |wire: &Rc<Wire>| wire.state().lost.is_some();
        self.unsent.is_none() && self.wires.iter().flatten().all(over)
    }

    fn next_timeout(&mut self) -> Nanos {
        while let Some(&Reverse((at, place))) = self.agenda.peek() {
            let wire = self.wires.get(place).and_then(Option::as_ref);
            if wire.is_some_and(|wire| wire.state().armed == at) {
                return at;
            }
            self.agenda.pop();
        }
        Nanos::MAX
    }

    /// Takes what has arrived. Returns whether there was something, and whether there is nothing more.
    fn receive(&mut self, now: Nanos, cx: &mut Context<'_>) -> (bool, bool) {
        for count in 0..MOST_RECEIVES {
            let Driver { socket, endpoint, queue, wires, listener, .. } = self;
            let (mut responses, mut accepted) = (Vec::new(), Vec::new());
            let is_client = listener.is_none();
            // Datagrams of another connection may wait in `out`.
            let mut response = Vec::new();
            let received = socket.poll_recv(cx, |datagrams| {
                if let Some(listener) = listener {
                    listener.token_time.set(now);
                }
                let now = instant(now);
                each(datagrams, |data| {
                    let local = datagrams.to.filter(|_| !is_client);
                    let ecn = EcnCodepoint::from_bits(datagrams.ecn);
                    match endpoint.handle(now, datagrams.from, local, ecn, data, &mut response) {
                        None => {}
                        Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                            if let Some(wire) = wires.get(handle.0).and_then(Option::as_ref) {
                                wire.state().quic.handle_event(event);
                                wire.touch();
                            }
                        }
                        Some(DatagramEvent::Response(transmit)) => {
                            responses.push((transmit, std::mem::take(&mut response)));
                        }
                        Some(DatagramEvent::NewConnection(incoming)) => {
                            let Some(listener) = listener else { return endpoint.ignore(incoming) };
                            match admit(endpoint, queue, listener, incoming) {
                                Ok(wire) => {
                                    let place = wire.handle().0;
                                    if wires.len() <= place {
                                        wires.resize(place + 1, None);
                                    }
                                    wires[place] = Some(Rc::clone(&wire));
                                    accepted.push(Ok(wire));
                                }
                                Err(failed) => {
                                    responses.extend(failed.last);
                                    accepted.extend(failed.why.map(Err));
                                }
                            }
                        }
                    }
                });
            });
            for (transmit, bytes) in responses {
                // If the socket is full, the peer asks again.
                let _ = send(socket, &transmit, &bytes);
            }
            if let Some(listener) = listener {
                accepted.into_iter().for_each(&mut listener.accept);
            }
            match received {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => self.note_error(&error),
                Poll::Pending => return (count > 0, true),
            }
        }
        (true, false)
    }

    /// Whether other tasks get their turn now. They never get more than their rounds, however much arrives meanwhile.
    fn lets_others(&mut self, has_some: bool) -> bool {
        let of_arrival = if self.listener.is_some() { ROUNDS_OF_SERVER } else { ROUNDS_OF_CLIENT };
        let rounds = self.rounds.or(has_some.then_some(of_arrival));
        self.rounds = rounds.and_then(|rounds| rounds.checked_sub(1));
        rounds.is_some_and(|rounds| rounds > 0)
    }

    /// Wakes those who waited for what has arrived.
    fn pass_on(&self, now: Nanos) {
        self.queue.each(|handle| {
            if let Some(wire) = self.wires.get(handle.0).and_then(Option::as_ref) {
                wire.state().advance(now);
            }
        });
    }

    /// An error that the system reports about a datagram which a client sent.
    fn note_error(&mut self, error: &io::Error) {
        use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};
        if self.listener.is_some() {
            return;
        }
        for wire in self.wires.iter().flatten() {
            let mut state = wire.state();
            match (error.kind(), state.connected) {
                (ConnectionRefused, false) => state.lose(Lost::Absent),
                (ConnectionRefused, true) => state.lose(Lost::Reset),
                (HostUnreachable | NetworkUnreachable, false) => state.lose(Lost::Unreachable(error.kind())),
                _ => {}
            }
        }
    }

    /// Lets connections act for which there is something to do, as long as the socket takes what they send.
    fn work(&mut self, now: Nanos, cx: &mut Context<'_>) {
        while let Some(&Reverse((at, place))) = self.agenda.peek()
            && at <= now
        {
            self.agenda.pop();
            if let Some(wire) = self.wires.get(place).and_then(Option::as_ref) {
                let mut state = wire.state();
                if state.armed == at {
                    state.armed = Nanos::MAX;
                    drop(state);
                    wire.touch();
                }
            }
        }
        if let Some(transmit) = self.unsent.take()
            && !self.try_send(transmit, cx)
        {
            return;
        }
        let mut list = self.queue.take();
        let mut at = 0;
        while at < list.len() {
            let Some(wire) = self.wires.get(list[at].0).and_then(Option::as_ref).map(Rc::clone) else {
                at += 1;
                continue;
            };
            wire.begin_turn();
            let goes_on = self.turn(&wire, now, cx);
            if !goes_on {
                // The rest follows when the socket has room.
                wire.touch();
                list[at + 1..].iter().for_each(|handle| self.queue.push(*handle));
                break;
            }
            at += 1;
        }
        list.clear();
        self.queue.recycle(list);
    }

    /// Lets a connection act. Returns whether the socket takes more.
    fn turn(&mut self, wire: &Rc<Wire>, now: Nanos, cx: &mut Context<'_>) -> bool {
        let handle = wire.handle();
        let mut state = wire.state();
        let fits = MOST_BYTES / usize::from(state.quic.current_mtu());
        let most = self.socket.most_segments().min(MOST_SEGMENTS).min(fits).max(1);
        state.advance(now);
        drop(state);
        if !self.pass_events(wire) {
            self.wires[handle.0] = None;
            return true;
        }
        loop {
            self.out.clear();
            let transmit = wire.state().quic.poll_transmit(instant(now), most, &mut self.out);
            let Some(transmit) = transmit else { break };
            if !self.try_send(transmit, cx) {
                return false;
            }
        }
        if !self.pass_events(wire) {
            self.wires[handle.0] = None;
            return true;
        }
        let mut state = wire.state();
        let next = state.next_timeout();
        // A later time is looked at when the earlier one comes.
        if next < state.armed {
            state.armed = next;
            self.agenda.push(Reverse((next, handle.0)));
        }
        true
    }

    /// Passes events between the connection and the endpoint. Returns whether the connection still exists.
    fn pass_events(&mut self, wire: &Rc<Wire>) -> bool {
        loop {
            let mut state = wire.state();
            let Some(event) = state.quic.poll_endpoint_events() else { return true };
            let is_drained = event.is_drained();
            if let Some(answer) = self.endpoint.handle_event(wire.handle(), event) {
                state.quic.handle_event(answer);
            }
            if is_drained {
                state.lose(Lost::Closed);
                return false;
            }
        }
    }

    /// Sends what is in `out`. Returns whether the socket has taken it; otherwise it is kept.
    fn try_send(&mut self, transmit: Transmit, cx: &mut Context<'_>) -> bool {
        loop {
            match send(&self.socket, &transmit, &self.out) {
                Ok(()) => return true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.socket.poll_writable(cx).is_pending() {
                        self.unsent = Some(transmit);
                        return false;
                    }
                }
                Err(error) => {
                    // What cannot be sent is lost, as on the way: the connection sends it again.
                    self.note_error(&error);
                    return true;
                }
            }
        }
    }
}

/// Passes each datagram to `take`.
fn each(datagrams: &IncomingDatagrams<'_>, mut take: impl FnMut(BytesMut)) {
    let mut all = BytesMut::from(datagrams.bytes);
    while all.len() > datagrams.segment {
        take(all.split_to(datagrams.segment));
    }
    if !all.is_empty() {
        take(all);
    }
}

fn send(socket: &impl Datagrams, transmit: &Transmit, bytes: &[u8]) -> io::Result<()> {
    socket.try_send(&OutgoingDatagrams {
        to: transmit.destination,
        from: transmit.src_ip,
        ecn: transmit.ecn.map_or(0, |ecn| ecn as u8),
        segment: transmit.segment_size,
        bytes: &bytes[..transmit.size],
    })
}

/// A connection that could not begin.
struct NotBegun {
    /// Why; `None` if the client may try again.
    why: Option<Lost>,
    /// A last datagram for the client, if there is one.
    last: Option<(Transmit, Vec<u8>)>,
}

/// Begins a connection that a client opens, unless too many others have begun.
fn admit(
    endpoint: &mut Endpoint,
    queue: &Rc<Queue>,
    listener: &Listener,
    incoming: Incoming,
) -> Result<Rc<Wire>, Box<NotBegun>> {
    match listener.handshakes.admission(incoming.remote_address_validated()) {
        Admission::Accept => {
            (listener.prepare)();
            accept(endpoint, queue, &listener.handshakes, incoming)
        }
        Admission::Retry => Err(Box::new(retry(endpoint, incoming))),
        Admission::Refuse => Err(Box::new(refuse(endpoint, incoming))),
    }
}

/// Lets a client show that it receives what is sent to its address. Nothing is kept meanwhile.
fn retry(endpoint: &mut Endpoint, incoming: Incoming) -> NotBegun {
    let mut response = Vec::new();
    match endpoint.retry(incoming, &mut response) {
        Ok(transmit) => NotBegun { why: None, last: Some((transmit, response)) },
        Err(error) => refuse(endpoint, error.into_incoming()),
    }
}

fn refuse(endpoint: &mut Endpoint, incoming: Incoming) -> NotBegun {
    let mut response = Vec::new();
    let transmit = endpoint.refuse(incoming, &mut response);
    NotBegun { why: Some(Lost::Refused), last: Some((transmit, response)) }
}

fn accept(
    endpoint: &mut Endpoint,
    queue: &Rc<Queue>,
    handshakes: &Handshakes,
    incoming: Incoming,
) -> Result<Rc<Wire>, Box<NotBegun>> {
    let (mut response, now) = (Vec::new(), queue.now());
    match endpoint.accept(incoming, instant(now), &mut response, None) {
        Ok((handle, quic)) => Ok(Wire::new(handle, quic, queue, Some(handshakes.begin(now)))),
        Err(error) => {
            let last = error.response.map(|transmit| (transmit, response));
            Err(Box::new(NotBegun { why: Some(Lost::of(error.cause, None, false)), last }))
        }
    }
}
