//! Busy and idle periods of a robot (reference: models.md, section 14.4).

use polygraph_link::{Nanos, nanos};
use polygraph_traffic::Stream;

use crate::settings::Session;

/// What a robot is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Busy since then.
    Busy(Nanos),
    /// Idle until then.
    Idle(Nanos),
}

/// The session of one robot.
#[derive(Clone, Debug)]
pub struct SessionState {
    state: State,
    /// Transactions and fill bytes of the busy period.
    xacts: u64,
    fill: u64,
    /// Idle periods so far.
    idles: u64,
}

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing: the robot is busy.
    Busy,
    /// Nothing: the robot is idle until then.
    Idle(Nanos),
    /// A busy period has begun. The idle one before it may have passed without anybody looking.
    BecameBusy,
    /// An idle period has begun, until then.
    BecameIdle(Nanos),
}

impl SessionState {
    /// A robot that becomes busy at `now`.
    pub fn new(now: Nanos) -> SessionState {
        SessionState { state: State::Busy(now), xacts: 0, fill: 0, idles: 0 }
    }

    /// The robot is idle at `now`.
    pub fn is_idle(&self, now: Nanos) -> bool {
        matches!(self.state, State::Idle(until) if now < until)
    }

    /// A transaction has ended, and filled a cache with so many bytes.
    pub fn count(&mut self, fill: u64) {
        self.xacts += 1;
        self.fill += fill;
    }

    /// Brings the session up to `now`. Times must not decrease. Periods that end by the clock end at their time, not
    /// only when somebody looks.
    pub fn advance(&mut self, session: &Session, now: Nanos, rng: &mut Stream) -> Change {
        let mut change = Change::Busy;
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
                        // Periods without any length never come to an end.
                        return change;
                    }
                    self.idles += 1;
                    self.state = State::Idle(until);
                    if now < until {
                        return Change::BecameIdle(until);
                    }
                }
                State::Idle(until) if now < until => return Change::Idle(until),
                State::Idle(until) => {
                    *self = SessionState { idles: self.idles, ..SessionState::new(until) };
                    change = Change::BecameBusy;
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
        let mut period = SessionState::new(0);
        assert_eq!(period.advance(&session, 9 * SECOND, &mut rng), Change::Busy);
        assert_eq!(period.advance(&session, 10 * SECOND, &mut rng), Change::BecameIdle(15 * SECOND));
        assert_eq!(period.advance(&session, 14 * SECOND, &mut rng), Change::Idle(15 * SECOND));
        assert_eq!(period.advance(&session, 16 * SECOND, &mut rng), Change::BecameBusy);
        (0..3).for_each(|_| period.count(100));
        assert_eq!(period.advance(&session, 17 * SECOND, &mut rng), Change::BecameIdle(22 * SECOND));
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
        let mut period = SessionState::new(0);
        assert_eq!(period.advance(&session, 12 * SECOND, &mut rng), Change::BecameIdle(15 * SECOND));
        // Busy from 15 to 25, idle for 6, busy from 31 on.
        assert_eq!(period.advance(&session, 32 * SECOND, &mut rng), Change::BecameBusy);
        assert_eq!(period.advance(&session, 41 * SECOND, &mut rng), Change::BecameIdle(48 * SECOND));
        let nothing = Session { busy_s: Some(0.0), idle: Distr::Const(0.0), ..session };
        assert_eq!(SessionState::new(0).advance(&nothing, SECOND, &mut rng), Change::Busy);
    }
}
