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
pub struct Period {
    state: State,
    /// Transactions and fill bytes of the busy period.
    xacts: u64,
    fill: u64,
}

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing: the robot is busy.
    Busy,
    /// Nothing: the robot is idle until then.
    Idle(Nanos),
    /// A busy period has begun.
    BecameBusy,
    /// An idle period has begun, until then.
    BecameIdle(Nanos),
}

impl Period {
    /// A robot that becomes busy at `now`.
    pub fn new(now: Nanos) -> Period {
        Period { state: State::Busy(now), xacts: 0, fill: 0 }
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

    /// Brings the session up to `now`. Times must not decrease.
    pub fn advance(&mut self, session: &Session, now: Nanos, rng: &mut Stream) -> Change {
        match self.state {
            State::Busy(since) => {
                let over = session.busy_s.is_some_and(|limit| now >= since + nanos(limit))
                    || session.busy_xacts.is_some_and(|limit| self.xacts >= limit)
                    || session.busy_fill.is_some_and(|limit| self.fill >= limit);
                if !over {
                    return Change::Busy;
                }
                let until = now + nanos(session.idle.sample(rng));
                self.state = State::Idle(until);
                Change::BecameIdle(until)
            }
            State::Idle(until) if now < until => Change::Idle(until),
            State::Idle(_) => {
                *self = Period::new(now);
                Change::BecameBusy
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
        let mut period = Period::new(0);
        assert_eq!(period.advance(&session, 9 * SECOND, &mut rng), Change::Busy);
        assert_eq!(period.advance(&session, 10 * SECOND, &mut rng), Change::BecameIdle(15 * SECOND));
        assert_eq!(period.advance(&session, 14 * SECOND, &mut rng), Change::Idle(15 * SECOND));
        assert_eq!(period.advance(&session, 16 * SECOND, &mut rng), Change::BecameBusy);
        (0..3).for_each(|_| period.count(100));
        assert_eq!(period.advance(&session, 17 * SECOND, &mut rng), Change::BecameIdle(22 * SECOND));
    }
}
