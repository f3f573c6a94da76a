//! The client's half of a TCP connection whose segments this program writes itself: it lets the other side close first.

use std::net::SocketAddr;
use std::time::Duration;

use crate::packet::{TcpFlags, TcpSegment};

/// The largest segment that the device may send. It fits through every link that IPv6 may use.
const MAX_SEGMENT: u16 = 1220;
/// How many octets the device may send without an acknowledgement.
const WINDOW: u16 = 0xffff;

/// What a segment of the device brought about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// The device has accepted the connection.
    Connected,
    /// The device does not accept connections.
    Refused,
    /// The device has closed first, then this side, and the device has acknowledged it: it is in TIME_WAIT.
    Closed,
    /// The device has aborted the connection.
    Reset,
}

/// The answer of the device to a repetition of the first SYN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeAnswer {
    /// The device opens a new connection. The segment resets it.
    Accepted(TcpSegment),
    /// The device acknowledges the old connection.
    Acknowledged,
    /// The device says that there is no connection.
    Reset,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    SynSent,
    /// The request is sent.
    Open,
    /// The device has closed, and this side has.
    Closing,
    /// The connection has ended.
    Over,
}

/// The connection. It does no I/O: segments go in, segments come out.
#[derive(Clone, Debug)]
pub struct CraftedConnection {
    /// The local port and that of the device.
    ports: (u16, u16),
    /// The number of the SYN.
    first: u32,
    /// The number of the device's SYN.
    first_of_device: u32,
    request: Vec<u8>,
    state: State,
    /// The octet of this side that the device expects next.
    acknowledged: u32,
    /// The octet of the device that this side expects next.
    expected: u32,
    /// Octets of data from the device.
    received: u64,
}

impl CraftedConnection {
    /// A connection from the first port to the second one, whose SYN has the number `first`.
    pub fn new(ports: (u16, u16), first: u32, request: Vec<u8>) -> CraftedConnection {
        CraftedConnection {
            ports,
            first,
            first_of_device: 0,
            request,
            state: State::SynSent,
            acknowledged: first,
            expected: 0,
            received: 0,
        }
    }

    /// The first segment. It is always the same, and has neither timestamp nor other options that could tell a new
    /// connection from an old one.
    pub fn syn(&self) -> TcpSegment {
        TcpSegment {
            acknowledgement: 0,
            sequence: self.first,
            max_segment: Some(MAX_SEGMENT),
            ..self.segment(TcpFlags::SYN, self.first)
        }
    }

    fn segment(&self, flags: TcpFlags, sequence: u32) -> TcpSegment {
        TcpSegment {
            source_port: self.ports.0,
            destination_port: self.ports.1,
            sequence,
            acknowledgement: self.expected,
            flags,
            window: WINDOW,
            max_segment: None,
            payload: Vec::new(),
        }
    }

    /// The number of the first octet of the request.
    fn data(&self) -> u32 {
        self.first.wrapping_add(1)
    }

    /// The number of the FIN.
    fn fin(&self) -> u32 {
        self.data().wrapping_add(self.request.len() as u32)
    }

    /// Everything that was sent and not acknowledged.
    pub fn unacknowledged(&self) -> Vec<TcpSegment> {
        let mut segments = Vec::new();
        match self.state {
            State::SynSent => segments.push(self.syn()),
            State::Open | State::Closing => {
                if is_before(self.acknowledged, self.fin()) {
                    let request = self.segment(TcpFlags::PSH | TcpFlags::ACK, self.data());
                    segments.push(TcpSegment { payload: self.request.clone(), ..request });
                }
                if self.state == State::Closing {
                    segments.push(self.segment(TcpFlags::FIN | TcpFlags::ACK, self.fin()));
                }
            }
            State::Over => {}
        }
        segments
    }

    /// A segment that ends the connection at once.
    pub fn abort(&self) -> TcpSegment {
        self.segment(TcpFlags::RST | TcpFlags::ACK, self.acknowledged)
    }

    /// Takes a segment of the device. Returns the segments that answer it, and what it brought about.
    pub fn receive(&mut self, segment: &TcpSegment) -> (Vec<TcpSegment>, Option<ConnectionEvent>) {
        let nothing = (Vec::new(), None);
        if (segment.destination_port, segment.source_port) != self.ports {
            return nothing;
        }
        match self.state {
            State::SynSent => self.receive_first(segment),
            State::Open | State::Closing => self.receive_next(segment),
            State::Over => nothing,
        }
    }

    fn receive_first(&mut self, segment: &TcpSegment) -> (Vec<TcpSegment>, Option<ConnectionEvent>) {
        let is_answer = segment.flags.has(TcpFlags::ACK) && segment.acknowledgement == self.data();
        if is_answer && segment.flags.has(TcpFlags::RST) {
            self.state = State::Over;
            return (Vec::new(), Some(ConnectionEvent::Refused));
        }
        if !is_answer || !segment.flags.has(TcpFlags::SYN) {
            return (Vec::new(), None);
        }
        self.state = State::Open;
        self.first_of_device = segment.sequence;
        self.expected = segment.sequence.wrapping_add(1);
        self.acknowledged = self.data();
        (self.unacknowledged(), Some(ConnectionEvent::Connected))
    }

    fn receive_next(&mut self, segment: &TcpSegment) -> (Vec<TcpSegment>, Option<ConnectionEvent>) {
        if segment.flags.has(TcpFlags::RST) {
            // Anyone may send a reset; only one with the expected number is from the device (RFC 5961, section 3).
            if segment.sequence != self.expected {
                return (Vec::new(), None);
            }
            self.state = State::Over;
            return (Vec::new(), Some(ConnectionEvent::Reset));
        }
        let last = if self.state == State::Closing { self.fin().wrapping_add(1) } else { self.fin() };
        if !segment.flags.has(TcpFlags::ACK) || is_before(last, segment.acknowledgement) {
            return (Vec::new(), None);
        }
        if is_before(self.acknowledged, segment.acknowledgement) {
            self.acknowledged = segment.acknowledgement;
        }
        if self.state == State::Closing && self.acknowledged == last {
            self.state = State::Over;
            return (Vec::new(), Some(ConnectionEvent::Closed));
        }
        self.take_data(segment);
        let has_content = segment.end() != segment.sequence;
        match self.state {
            State::Closing if has_content => (self.unacknowledged(), None),
            State::Open if has_content => (vec![self.segment(TcpFlags::ACK, self.fin())], None),
            _ => (Vec::new(), None),
        }
    }

    /// Counts data that comes in order; the device repeats what comes too early. The last octet may be a FIN.
    fn take_data(&mut self, segment: &TcpSegment) {
        if segment.flags.has(TcpFlags::SYN) || is_before(self.expected, segment.sequence) {
            return;
        }
        let known = self.expected.wrapping_sub(segment.sequence) as usize;
        let Some(new) = segment.payload.len().checked_sub(known) else { return };
        self.received += new as u64;
        self.expected = self.expected.wrapping_add(new as u32);
        if segment.flags.has(TcpFlags::FIN) && self.state == State::Open {
            self.expected = self.expected.wrapping_add(1);
            self.state = State::Closing;
        }
    }

    /// The answer to a repetition of the first SYN, after the end of the connection.
    pub fn answer_to_probe(&self, segment: &TcpSegment) -> Option<ProbeAnswer> {
        if (segment.destination_port, segment.source_port) != self.ports {
            return None;
        }
        let flags = segment.flags;
        if flags.has(TcpFlags::RST) {
            return Some(ProbeAnswer::Reset);
        }
        if flags.has(TcpFlags::SYN | TcpFlags::ACK) {
            // A late copy of the answer to the first SYN has the number of that time.
            let is_new = segment.acknowledgement == self.data() && segment.sequence != self.first_of_device;
            return is_new.then(|| ProbeAnswer::Accepted(self.segment(TcpFlags::RST, self.data())));
        }
        (flags.has(TcpFlags::ACK) && !flags.has(TcpFlags::FIN)).then_some(ProbeAnswer::Acknowledged)
    }

    /// What the device did not do in time.
    pub fn complaint(&self, device: SocketAddr, patience: Duration) -> String {
        let seconds = patience.as_secs_f64();
        match self.state {
            State::SynSent => format!("{device} does not answer: no connection within {seconds} s"),
            State::Open => format!(
                "{device} does not close the connection within {seconds} s (it sent {} bytes), so TIME_WAIT is not on its side and \
                 cannot be measured there: choose a port or a request after which the device closes first",
                self.received
            ),
            State::Closing | State::Over => {
                format!(
                    "{device} closed the connection, but did not acknowledge that this side closed it too"
                )
            }
        }
    }
}

/// Whether a number comes before another one, modulo 2^32 (RFC 9293, section 3.4).
fn is_before(number: u32, other: u32) -> bool {
    number != other && other.wrapping_sub(number) < 1 << 31
}
