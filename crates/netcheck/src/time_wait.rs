//! How long a device keeps a closed connection in the state TIME_WAIT (RFC 9293, section 3.6.1), measured from outside.
//!
//! The test opens a TCP connection with its own segments, sends a request, and lets the device close first, so that
//! the device is the side that waits. Then it repeats the first SYN, bit by bit. As long as the device waits, that SYN is an
//! old duplicate, which must not open a connection; as soon as the device has forgotten the connection, it answers
//! SYN+ACK. The SYN has no timestamp option and no higher sequence number, because many systems take either as the sign of
//! a new connection and then leave TIME_WAIT early.
//!
//! Nothing on this host is changed: a socket that nobody reads owns the local port, and drops what the device sends
//! there before the kernel answers it with a reset.

mod crafted_connection;
mod raw_socket;
mod schedule;

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use crate::error::{CheckResult, Error};

pub use self::crafted_connection::{ConnectionEvent, CraftedConnection, ProbeAnswer};
use self::raw_socket::RawSocket;
use self::schedule::{ProbeSchedule, TOLERANCE};

/// How long the test waits before it repeats a segment that was not answered. Doubled each time.
const FIRST_RETRANSMISSION: Duration = Duration::from_secs(1);

/// What is tested, and how.
#[derive(Clone, Debug)]
pub struct TimeWaitTest {
    /// The address and port on which the device accepts requests.
    pub device: SocketAddr,
    /// The address of this host from which the device is asked. `None`: the one from which routes lead to the device.
    pub source: Option<IpAddr>,
    /// The network interface that packets take. `None`: the one to which routes lead.
    pub interface: Option<String>,
    /// The request after which the device closes the connection.
    pub request: Vec<u8>,
    /// How long the device may take to answer and to close the connection.
    pub patience: Duration,
    /// The time between two repetitions of the SYN.
    pub every: Duration,
    /// The shortest time that the rule allows.
    pub rule: Duration,
    /// When the test gives up.
    pub most: Duration,
}

impl TimeWaitTest {
    /// The rule of the bake-offs.
    pub const RULE: Duration = Duration::from_secs(60);
    /// A request of HTTP/1.0, after which servers close the connection.
    pub const REQUEST: &'static [u8] = b"GET / HTTP/1.0\r\n\r\n";

    /// The test of the bake-offs.
    pub fn of(device: SocketAddr) -> TimeWaitTest {
        TimeWaitTest {
            device,
            source: None,
            interface: None,
            request: TimeWaitTest::REQUEST.to_vec(),
            patience: Duration::from_secs(15),
            every: Duration::from_secs(1),
            rule: TimeWaitTest::RULE,
            most: Duration::from_secs(300),
        }
    }
}

/// What a test is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeWaitStep {
    /// The connection is open, from this local address.
    Connected(SocketAddr),
    /// The device has closed the connection, or has reset it.
    Closed {
        /// Whether the device sent a reset.
        reset: bool,
    },
    /// The SYN was repeated.
    Probed(Duration),
}

/// How the device answered repetitions of the SYN that opened no connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeAnswers {
    /// Repetitions of the SYN.
    pub probes: u32,
    /// Answers that were acknowledgements, as the state TIME_WAIT demands.
    pub acknowledgements: u32,
    /// Answers that were resets.
    pub resets: u32,
}

/// The time that a device stayed in TIME_WAIT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeWait {
    /// The device was still waiting after this time.
    pub at_least: Duration,
    /// The device was no longer waiting after this time. `None`: it waited until the test gave up.
    pub at_most: Option<Duration>,
    /// The device reset the connection instead of closing it.
    pub reset: bool,
    /// The source of the packets.
    pub source: SocketAddr,
    /// The answers while the device waited.
    pub answers: ProbeAnswers,
    /// The shortest time that the rule allows.
    pub rule: Duration,
}

impl TimeWait {
    /// Whether the time is as long as the rule demands, up to the precision of clocks. A device that still waited when
    /// the test gave up meets the rule only if that was late enough to know.
    pub fn meets_rule(&self) -> bool {
        self.at_most.unwrap_or(self.at_least) + TOLERANCE >= self.rule
    }
}

/// Measures. `observe` learns what the test is doing.
///
/// # Errors
/// If this process may not use raw sockets, if this host cannot reach the device, or if the device does not accept the
/// connection, does not close it, or falls silent.
/// A test that would give up before the rule is a wrong request.
pub fn measure(test: &TimeWaitTest, mut observe: impl FnMut(TimeWaitStep)) -> CheckResult<TimeWait> {
    if test.most < test.rule {
        return Err(Error::Request(format!(
            "the test would give up after {} s, before the {} s of the rule: raise --most, or lower --rule",
            test.most.as_secs_f64(),
            test.rule.as_secs_f64()
        )));
    }
    let mut socket = RawSocket::open(test.device, test.source, test.interface.as_deref())?;
    let source = socket.local();
    let (ports, request) = ((source.port(), test.device.port()), test.request.clone());
    let mut connection = CraftedConnection::new(ports, first_number(), request);
    let closed = converse(test, &mut socket, &mut connection, &mut observe)?;
    observe(TimeWaitStep::Closed { reset: closed.reset });
    let (at_least, at_most, answers) = probe(test, &mut socket, &connection, &closed, &mut observe)?;
    Ok(TimeWait { at_least, at_most, reset: closed.reset, source, answers, rule: test.rule })
}

/// A sequence number that nobody can guess (RFC 9293, section 3.4.1).
fn first_number() -> u32 {
    // Each state of the standard library's hasher has a random key.
    RandomState::new().hash_one("sequence number") as u32
}

/// The end of the connection.
struct Closed {
    /// When the last segment was sent. The device cannot have started to wait before.
    sent: Instant,
    /// When its acknowledgement came. The device cannot have started to wait later.
    confirmed: Instant,
    reset: bool,
    /// How long the device took to answer the first SYN.
    round_trip: Duration,
}

/// Opens the connection, sends the request, and waits until both sides have closed.
fn converse(
    test: &TimeWaitTest,
    socket: &mut RawSocket,
    connection: &mut CraftedConnection,
    observe: &mut impl FnMut(TimeWaitStep),
) -> CheckResult<Closed> {
    let begin = Instant::now();
    let give_up = begin + test.patience;
    let mut round_trip = Duration::ZERO;
    let mut timeout = FIRST_RETRANSMISSION;
    socket.send_all(&connection.unacknowledged())?;
    let mut sent = Instant::now();
    let mut deadline = sent + timeout;
    loop {
        let segment = socket.receive(deadline.min(give_up))?;
        let now = Instant::now();
        let Some(segment) = segment else {
            if now >= give_up {
                socket.send_all(&[connection.abort()])?;
                let obstacle = socket.obstacle().map(|why| format!(" ({why})")).unwrap_or_default();
                return Err(Error::Peer(connection.complaint(test.device, test.patience) + &obstacle));
            }
            if now >= deadline {
                let missing = connection.unacknowledged();
                socket.send_all(&missing)?;
                sent = if missing.is_empty() { sent } else { now };
                timeout *= 2;
                deadline = now + timeout;
            }
            continue;
        };
        let (answers, progress) = connection.receive(&segment);
        match progress {
            Some(ConnectionEvent::Connected) => {
                round_trip = now - sent;
                observe(TimeWaitStep::Connected(socket.local()));
            }
            Some(ConnectionEvent::Closed) => {
                return Ok(Closed { sent, confirmed: now, reset: false, round_trip });
            }
            Some(ConnectionEvent::Reset) => {
                return Ok(Closed { sent: now, confirmed: now, reset: true, round_trip });
            }
            Some(ConnectionEvent::Refused) => {
                let device = test.device;
                return Err(Error::Peer(format!("{device} refuses connections: nothing listens there")));
            }
            None => {}
        }
        if !answers.is_empty() {
            socket.send_all(&answers)?;
            sent = Instant::now();
            timeout = FIRST_RETRANSMISSION;
            deadline = sent + timeout;
        }
    }
}

/// Repeats the SYN until the device takes it for a new connection, which is then reset. Returns how long the device
/// waited at least and at most.
fn probe(
    test: &TimeWaitTest,
    socket: &mut RawSocket,
    connection: &CraftedConnection,
    closed: &Closed,
    observe: &mut impl FnMut(TimeWaitStep),
) -> CheckResult<(Duration, Option<Duration>, ProbeAnswers)> {
    let mut answers = ProbeAnswers::default();
    let mut at_least = Duration::ZERO;
    let mut last_probe = None;
    for offset in ProbeSchedule::new(test.every, test.rule, closed.round_trip) {
        // What comes until then answers the repetition before.
        while let Some(segment) = socket.receive(closed.confirmed + offset)? {
            let Some(answer) = connection.answer_to_probe(&segment).filter(|_| last_probe.is_some()) else {
                continue;
            };
            match answer {
                ProbeAnswer::Accepted(reset) => {
                    let at_most = closed.sent.elapsed();
                    socket.send_all(&[reset])?;
                    return Ok((at_least, Some(at_most), answers));
                }
                ProbeAnswer::Acknowledged => answers.acknowledgements += 1,
                ProbeAnswer::Reset => answers.resets += 1,
            }
        }
        at_least = last_probe.unwrap_or(at_least);
        if offset > test.most {
            break;
        }
        last_probe = Some(closed.confirmed.elapsed());
        socket.send_all(&[connection.syn()])?;
        answers.probes += 1;
        observe(TimeWaitStep::Probed(offset));
    }
    if answers.acknowledgements + answers.resets == 0 {
        return Err(Error::Peer(format!(
            "{} closed the connection and then answered none of {} repetitions of the first SYN, so the end of TIME_WAIT \
             cannot be seen: a firewall may drop them, here or on the way",
            test.device, answers.probes
        )));
    }
    Ok((at_least, None, answers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_time_that_is_known_to_be_long_enough_meets_the_rule() {
        let seconds = Duration::from_secs_f64;
        let found = |at_least: f64, at_most: Option<f64>| TimeWait {
            at_least: seconds(at_least),
            at_most: at_most.map(seconds),
            reset: false,
            source: ([127, 0, 0, 1], 1).into(),
            answers: ProbeAnswers::default(),
            rule: seconds(60.0),
        };
        assert!(found(59.8, Some(59.95)).meets_rule() && found(60.0, None).meets_rule());
        assert!(!found(10.0, Some(30.0)).meets_rule());
        assert!(!found(10.0, None).meets_rule(), "the test gave up too early to know");
    }

    #[test]
    fn a_test_that_ends_before_the_rule_is_refused() {
        let test =
            TimeWaitTest { most: Duration::from_secs(10), ..TimeWaitTest::of(([127, 0, 0, 1], 9).into()) };
        let error = measure(&test, |_| ()).unwrap_err();
        assert!(
            matches!(&error, Error::Request(text) if text.contains("before the 60 s of the rule")),
            "{error}"
        );
    }
}
