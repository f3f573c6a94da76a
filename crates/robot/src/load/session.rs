//! Busy and idle periods of a robot (`docs/reference/models.md`, "Sessions").

use polygraph_link::{Nanos, nanos};
use polygraph_traffic::Stream;

use crate::settings::Session;

/// The kind of period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Busy since this time.
    Busy(Nanos),
    /// Idle until this time.
    Idle(Nanos),
}

/// The session of one robot.
#[derive(Clone, Debug)]
pub struct SessionState {
    state: State,
    /// Number of transactions in the busy period.
    xacts: u64,
    /// Bytes of cachable misses in the busy period.
    fill: u64,
    /// Number of idle periods so far.
    idles: u64,
}

/// How a session has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionChange {
    /// The robot is still busy.
    Busy,
    /// The robot is still idle.
    Idle,
    /// A busy period has started. The idle period before it may have started since the last check, too.
    BecameBusy,
    /// An idle period has started, which lasts until this time.
    BecameIdle(Nanos),
}

impl SessionState {
    /// The session of a robot that becomes busy at `now`.
    pub fn new(now: Nanos) -> SessionState {
        SessionState { state: State::Busy(now), xacts: 0, fill: 0, idles: 0 }
    }

    /// Counts a transaction that filled a cache with `fill` bytes.
    pub fn count(&mut self, fill: u64) {
        self.xacts += 1;
        self.fill += fill;
    }

    /// Brings the session up to `now`, which must not decrease. A period that ends by the clock ends at its time, whenever this
    /// is called.
    pub fn advance(&mut self, session: &Session, now: Nanos, rng: &mut Stream) -> SessionChange {
        let mut change = SessionChange::Busy;
        loop {
            match self.state {
                State::Busy(since) => {
                    let end = session.busy_s.map(|limit| since.saturating_add(nanos(limit)));
                    let counted = session.busy_xacts.is_some_and(|limit| self.xacts >= limit)
                        || session.busy_fill.is_some_and(|limit| self.fill >= limit);
                    let Some(end) = end.filter(|&end| end <= now).or(counted.then_some(now)) else {
                        return change;
                    };
                    let until = end.saturating_add(nanos(session.idle.sample_at(self.idles, rng)));
                    if until == since {
                        // Periods of length 0 would never end.
                        return change;
                    }
                    self.idles += 1;
                    self.state = State::Idle(until);
                    if now < until {
                        return SessionChange::BecameIdle(until);
                    }
                }
                State::Idle(until) if now < until => return SessionChange::Idle,
                State::Idle(until) => {
                    *self = SessionState { idles: self.idles, ..SessionState::new(until) };
                    change = SessionChange::BecameBusy;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polygraph_link::SECOND;
    use polygraph_traffic::{Distr, Seed};

    #[test]
    fn periods_alternate() {
        let session =
            Session { busy_s: Some(10.0), busy_xacts: Some(3), busy_fill: None, idle: Distr::Const(5.0) };
        let mut rng = Seed(1).stream("session", 0);
        let mut period = SessionState::new(Nanos::ZERO);
        assert_eq!(period.advance(&session, 9 * SECOND, &mut rng), SessionChange::Busy);
        assert_eq!(period.advance(&session, 10 * SECOND, &mut rng), SessionChange::BecameIdle(15 * SECOND));
        assert_eq!(period.advance(&session, 14 * SECOND, &mut rng), SessionChange::Idle);
        assert_eq!(period.advance(&session, 16 * SECOND, &mut rng), SessionChange::BecameBusy);
        (0..3).for_each(|_| period.count(100));
        assert_eq!(period.advance(&session, 17 * SECOND, &mut rng), SessionChange::BecameIdle(22 * SECOND));
    }

    #[test]
    fn the_clock_ends_periods_whoever_looks() {
        let session = Session {
            busy_s: Some(10.0),
            busy_xacts: None,
            busy_fill: None,
            idle: Distr::Ascending { first: 5.0 },
        };
        let mut rng = Seed(1).stream("session", 0);
        let mut period = SessionState::new(Nanos::ZERO);
        assert_eq!(period.advance(&session, 12 * SECOND, &mut rng), SessionChange::BecameIdle(15 * SECOND));
        // Busy from 15 to 25, idle for 6, busy from 31 on.
        assert_eq!(period.advance(&session, 32 * SECOND, &mut rng), SessionChange::BecameBusy);
        assert_eq!(period.advance(&session, 41 * SECOND, &mut rng), SessionChange::BecameIdle(48 * SECOND));
        let nothing = Session { busy_s: Some(0.0), idle: Distr::Const(0.0), ..session };
        assert_eq!(SessionState::new(Nanos::ZERO).advance(&nothing, SECOND, &mut rng), SessionChange::Busy);
    }
}
