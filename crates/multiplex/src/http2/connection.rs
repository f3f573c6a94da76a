//! The state of a connection: what arrives changes it, and what it has to send is in a buffer.
//!
//! `receiving` takes what arrives, `sending` makes frames of what streams send.

mod receiving;
mod sending;
#[cfg(test)]
mod tests;

pub use sending::OpenData;

use std::collections::VecDeque;
use std::io;
use std::task::Waker;

use polygraph_link::Nanos;

use super::frames::{MAX_31, put_goaway, put_ping, put_reset, put_settings, put_window_update};
use super::hpack::{Decoder, Encoder};
use super::reader::FrameReader;
use super::settings::{FIRST_WINDOW, PeerSettings, id};
use super::streams::{Closed, Streams};
use super::window::{ReceiveWindow, SendWindow};
use super::{Http2Error, codes};
use crate::fault::{BelowFailure, Fault, FaultKind};
use crate::message::ReplyTo;
use crate::message::incoming::TargetForm;
use crate::rapid_reset::RapidResets;
use crate::settings::{Http2Settings, MAX_FIELD_SECTION};
use crate::traffic::WireBytes;

/// The first bytes of every client (RFC 9113, section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Once so many bytes wait to be sent, no more are taken, and nothing is read.
pub const SEND_BUFFER: usize = 64 * 1024;

/// The largest buffer that stays while nothing is to be sent, in bytes.
const LARGEST_KEPT: usize = 32 * 1024;

/// The data of the PING by which a server learns that its client has seen the end coming.
const LAST_PING: [u8; 8] = *b"last one";

/// Which side of a connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The client.
    Client,
    /// The server, which gives the targets of requests this form.
    Server(TargetForm),
}

/// Why a connection has ended.
#[derive(Clone, Debug)]
pub enum End {
    /// In order, by either side.
    Closed,
    /// Because one side broke the protocol, or says that the other did.
    Fault(Fault),
    /// The connection below failed.
    Io(BelowFailure),
}

impl End {
    /// The error of a stream that the end of the connection cuts.
    pub fn error(&self) -> io::Error {
        match self {
            End::Closed => io::Error::new(io::ErrorKind::ConnectionReset, "the peer closed the connection"),
            End::Fault(fault) => fault.clone().into(),
            End::Io(failure) => failure.clone().into(),
        }
    }
}

/// How far a server has announced the end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Farewell {
    /// Not at all.
    None,
    /// The client knows, or will know soon: it may have sent requests before.
    Announced,
    /// The last stream that is served was named.
    Final,
}

/// A header block that is not complete.
#[derive(Debug)]
struct OpenBlock {
    stream: u32,
    ends_stream: bool,
    depends_on_itself: bool,
    bytes: Vec<u8>,
    continuations: u32,
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    side: Side,
    settings: Http2Settings,
    reader: FrameReader,
    /// How much of the preface has arrived.
    preface: usize,
    block: Option<OpenBlock>,
    decoder: Decoder,
    /// Memory for parts of a request: pseudo-header fields, values.
    text: Vec<u8>,
    encoder: Encoder,
    peer: PeerSettings,
    has_settings: bool,
    /// The streams.
    pub streams: Streams,
    send_window: SendWindow,
    receive_window: ReceiveWindow,
    /// The id of the client's next stream.
    next_id: u32,
    /// The server's last stream.
    last_id: u32,
    farewell: Farewell,
    /// The last stream that the peer processes, and its error code, if it has announced the end.
    goaway: Option<(u32, u32)>,
    /// Streams with new requests, and what their replies depend on.
    accepted: VecDeque<(usize, ReplyTo)>,
    /// Number of requests so far, and of those that are no HTTP message.
    pub requests: u64,
    /// Requests without an HTTP/1 form.
    pub malformed: u64,
    /// The time, as the task of the connection knows it.
    pub now: Nanos,
    rapid_resets: RapidResets,
    /// Bytes to send.
    out: Vec<u8>,
    /// How many of them were sent.
    sent: usize,
    /// Number of times that all bytes were sent.
    turn: u64,
    /// Whether several streams waited when the turn began.
    is_contended: bool,
    /// Streams that wait for room: those without content in this turn, and those with.
    blocked: [Vec<usize>; 2],
    /// Who waits until another stream can be opened.
    openers: Vec<Waker>,
    bytes: WireBytes,
    reported: WireBytes,
    end: Option<End>,
}

impl Connection {
    /// A connection before its first byte.
    pub fn new(side: Side, settings: &Http2Settings) -> Connection {
        let mut out = Vec::new();
        let window = (id::INITIAL_WINDOW_SIZE, settings.window);
        let section = (id::MAX_HEADER_LIST_SIZE, MAX_FIELD_SECTION);
        match side {
            Side::Client => {
                out.extend_from_slice(PREFACE);
                put_settings(&[(id::ENABLE_PUSH, 0), window, section], &mut out);
            }
            Side::Server(_) => {
                put_settings(&[(id::MAX_CONCURRENT_STREAMS, settings.streams), window, section], &mut out);
            }
        }
        if settings.window > FIRST_WINDOW {
            put_window_update(0, settings.window - FIRST_WINDOW, &mut out);
        }
        Connection {
            side,
            settings: *settings,
            reader: FrameReader::default(),
            preface: 0,
            block: None,
            decoder: Decoder::default(),
            text: Vec::new(),
            encoder: Encoder::default(),
            peer: PeerSettings::default(),
            has_settings: false,
            streams: Streams::default(),
            send_window: SendWindow::new(FIRST_WINDOW),
            receive_window: ReceiveWindow::new(settings.window),
            next_id: 1,
            last_id: 0,
            farewell: Farewell::None,
            goaway: None,
            accepted: VecDeque::new(),
            requests: 0,
            malformed: 0,
            now: Nanos::ZERO,
            rapid_resets: RapidResets::default(),
            out,
            sent: 0,
            turn: 0,
            is_contended: false,
            blocked: [Vec::new(), Vec::new()],
            openers: Vec::new(),
            bytes: WireBytes::default(),
            reported: WireBytes::default(),
            end: None,
        }
    }

    fn is_client(&self) -> bool {
        self.side == Side::Client
    }

    /// The next stream with a new request, and what the reply depends on.
    pub fn accept(&mut self) -> Option<(usize, ReplyTo)> {
        self.accepted.pop_front()
    }

    /// All bytes so far.
    pub fn all_bytes(&self) -> WireBytes {
        self.bytes
    }

    /// The bytes since the last call.
    pub fn take_bytes(&mut self) -> WireBytes {
        self.bytes.since(std::mem::replace(&mut self.reported, self.bytes))
    }

    /// The most streams that the peer allows.
    pub fn peer_streams(&self) -> u32 {
        self.peer.streams
    }

    /// Whether the peer has begun.
    pub fn has_begun(&self) -> bool {
        self.has_settings
    }

    /// Whether the peer has announced the end.
    pub fn has_goaway(&self) -> bool {
        self.goaway.is_some()
    }

    /// Whether a client can still send requests, now or later.
    pub fn is_usable(&self) -> bool {
        self.end.is_none() && self.goaway.is_none() && self.next_id <= MAX_31
    }

    /// How the connection ended, if it did.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// The bytes to send.
    pub fn unsent(&self) -> &[u8] {
        &self.out[self.sent..]
    }

    /// Whether the connection can take more to send, and more input that may need an answer.
    pub fn has_buffer(&self) -> bool {
        self.out.len() - self.sent < SEND_BUFFER
    }

    /// So many bytes were sent.
    pub fn note_sent(&mut self, size: usize) {
        self.bytes.sent += size as u64;
        self.sent += size;
        if self.sent == self.out.len() {
            self.out.clear();
            // Connections that wait should keep little.
            self.out.shrink_to(LARGEST_KEPT);
            self.sent = 0;
            self.start_turn();
        } else if self.sent >= SEND_BUFFER {
            self.out.drain(..self.sent);
            self.sent = 0;
            self.start_turn();
        }
    }

    /// There is room again: wakes the streams that wait for it, those first that had none in the last turn.
    fn start_turn(&mut self) {
        self.turn += 1;
        let waiting = self.blocked[0].len() + self.blocked[1].len();
        self.is_contended = waiting > 1;
        if waiting > 0 {
            for list in 0..2 {
                for place in std::mem::take(&mut self.blocked[list]) {
                    if let Some(stream) = self.streams.get_mut(place) {
                        stream.is_blocked = false;
                        stream.writer.iter().for_each(Waker::wake_by_ref);
                    }
                }
            }
        }
        self.wake_openers();
    }

    fn wake_openers(&mut self) {
        // Every exchange comes here several times, nearly always for nothing.
        if !self.openers.is_empty() {
            self.openers.drain(..).for_each(Waker::wake);
        }
    }

    /// Wakes everybody.
    fn wake_all(&mut self) {
        self.streams.iter_mut().for_each(|stream| stream.wake());
        self.wake_openers();
    }

    /// Resets a stream, for a reason that its user learns.
    fn reset(&mut self, place: usize, code: u32, failure: Option<Fault>) {
        let stream = &mut self.streams[place];
        put_reset(stream.id, code, &mut self.out);
        if stream.failure.is_none() {
            stream.failure = failure;
        }
        stream.wake();
        self.close(place, Closed::ByUs);
    }

    fn close(&mut self, place: usize, how: Closed) {
        self.streams.close(place, how);
        self.wake_openers();
    }

    /// Closes a stream that both sides have ended.
    fn close_if_done(&mut self, place: usize) {
        let stream = &self.streams[place];
        if stream.sent_end && stream.received_end {
            self.close(place, Closed::InOrder);
        }
    }

    /// Content of the connection was read, or is not wanted.
    fn release(&mut self, size: usize) {
        if let Some(increment) = self.receive_window.release(size) {
            put_window_update(0, increment, &mut self.out);
        }
    }

    /// Content of a stream was read.
    fn release_of(&mut self, place: usize, size: usize) {
        let stream = &mut self.streams[place];
        if !stream.received_end
            && !stream.is_closed
            && let Some(increment) = stream.receive_window.release(size)
        {
            put_window_update(stream.id, increment, &mut self.out);
        }
        self.release(size);
    }

    /// The peer breaks the protocol.
    pub fn fail(&mut self, error: Http2Error) {
        put_goaway(self.last_id, error.code, &mut self.out);
        self.finish(End::Fault(Fault::new(error.kind(), format!("GOAWAY {error}"))));
    }

    /// The connection below has failed.
    pub fn fail_below(&mut self, error: io::Error) {
        self.finish(End::Io(BelowFailure::new(error)));
    }

    /// The peer sends nothing more.
    pub fn receive_end(&mut self) {
        self.finish(self.peers_end());
    }

    /// The end of a connection that the peer may have announced.
    fn peers_end(&self) -> End {
        match self.goaway {
            Some((_, code)) if code != codes::NO_ERROR => {
                let text = format!("GOAWAY {}: the peer has ended the connection", codes::name(code));
                End::Fault(Fault::new(FaultKind::GoAway, text))
            }
            _ => End::Closed,
        }
    }

    /// Ends the connection in order.
    pub fn close_in_order(&mut self) {
        if self.end.is_none() {
            put_goaway(self.last_id, codes::NO_ERROR, &mut self.out);
            self.finish(self.peers_end());
        }
    }

    fn finish(&mut self, end: End) {
        if self.end.is_none() {
            self.end = Some(end);
            self.wake_all();
        }
    }

    /// A server announces the end. Requests that are on their way are still served.
    pub fn announce_end(&mut self) {
        if self.farewell == Farewell::None {
            put_goaway(MAX_31, codes::NO_ERROR, &mut self.out);
            put_ping(LAST_PING, false, &mut self.out);
            self.farewell = Farewell::Announced;
        }
    }

    /// Ends the connection if its end was announced and it has no streams.
    pub fn close_if_over(&mut self) {
        let is_announced = self.goaway.is_some() || self.farewell == Farewell::Final;
        if is_announced && self.streams.open_count() == 0 && self.accepted.is_empty() {
            self.close_in_order();
        }
    }
}
