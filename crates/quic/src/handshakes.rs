//! The handshakes that are under way at a server's socket. Each costs a client one datagram, which may have a forged address, and the
//! server some 20 KB. So they are limited in number and in time.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use polygraph_link::Nanos;
use quinn_proto::TimeSource;

/// The most handshakes under way of clients that may have forged their addresses. More clients must first show that they receive what is
/// sent to them (RFC 9000, section 8.1.2).
pub const MOST_NOT_VALIDATED: usize = 1000;

/// The most handshakes under way of all clients.
pub const MOST: usize = 4000;

/// The longest handshake: servers give a client of TCP as much time for its handshake, and for the first head.
pub const LIMIT: Nanos = Nanos::from_secs(30);

/// What becomes of a client's first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The handshake begins.
    Accept,
    /// The client must show that it receives what is sent to its address.
    Retry,
    /// There is no room.
    Refuse,
}

/// The handshakes of a socket.
#[derive(Debug, Default)]
pub struct Handshakes {
    under_way: Rc<Cell<usize>>,
}

/// A handshake that is not complete. It counts as long as the memory of its connection is in use, also when it has failed.
#[derive(Debug)]
pub struct UnderWay {
    count: Rc<Cell<usize>>,
    /// When it is given up.
    pub until: Nanos,
}

impl Handshakes {
    /// What becomes of another client. `is_validated` tells whether it is known to receive what is sent to its address.
    pub fn admission(&self, is_validated: bool) -> Admission {
        match self.under_way.get() {
            MOST.. => Admission::Refuse,
            MOST_NOT_VALIDATED.. if !is_validated => Admission::Retry,
            _ => Admission::Accept,
        }
    }

    /// Begins a handshake.
    pub fn begin(&self, now: Nanos) -> UnderWay {
        self.under_way.set(self.under_way.get() + 1);
        UnderWay { count: Rc::clone(&self.under_way), until: now.saturating_add(LIMIT) }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.count.set(self.count.get() - 1);
    }
}

/// The time of the link for the tokens in Retry packets, whose age the library checks. It would read the clock of the system.
#[derive(Debug, Default)]
pub struct TokenTime(AtomicU64);

impl TokenTime {
    /// Sets the time.
    pub fn set(&self, now: Nanos) {
        self.0.store(now.as_u64(), Ordering::Relaxed);
    }
}

impl TimeSource for TokenTime {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_admitted_by_the_number_of_handshakes_under_way() {
        let handshakes = Handshakes::default();
        let mut under_way = Vec::new();
        let mut begin = |n: usize| under_way.extend((0..n).map(|_| handshakes.begin(Nanos::from_secs(7))));
        let admissions = || [false, true].map(|is_validated| handshakes.admission(is_validated));
        begin(MOST_NOT_VALIDATED - 1);
        assert_eq!(admissions(), [Admission::Accept; 2]);
        begin(1);
        assert_eq!(admissions(), [Admission::Retry, Admission::Accept]);
        begin(MOST - MOST_NOT_VALIDATED - 1);
        assert_eq!(admissions(), [Admission::Retry, Admission::Accept]);
        begin(1);
        assert_eq!(admissions(), [Admission::Refuse; 2]);
        assert_eq!(under_way.pop().map(|handshake| handshake.until), Some(Nanos::from_secs(37)));
        assert_eq!(admissions(), [Admission::Retry, Admission::Accept]);
        under_way.clear();
        assert_eq!(admissions(), [Admission::Accept; 2]);
    }

    #[test]
    fn tokens_have_the_time_of_the_link() {
        let time = TokenTime::default();
        time.set(Nanos::from_secs(15));
        assert_eq!(time.now(), SystemTime::UNIX_EPOCH + Duration::from_secs(15));
    }
}
