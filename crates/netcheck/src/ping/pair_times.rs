//! The echo times of one pair of addresses.

use std::net::IpAddr;
use std::time::Duration;

/// The echo times of one pair of addresses.
#[derive(Clone, Debug)]
pub struct PairTimes {
    /// The address of this host, unless the system chose it.
    pub source: Option<IpAddr>,
    /// The address that was asked.
    pub target: IpAddr,
    /// Requests that were sent.
    pub sent: u32,
    /// Replies that came.
    pub received: u32,
    /// Replies that came a second time.
    pub duplicates: u32,
    /// The shortest time.
    pub min: Duration,
    /// The longest time.
    pub max: Duration,
    total: Duration,
    /// What a router or this host said about a request that was not answered.
    pub obstacle: Option<String>,
}

impl PairTimes {
    /// A pair that was not asked yet.
    pub fn new(source: Option<IpAddr>, target: IpAddr) -> PairTimes {
        let none = Duration::ZERO;
        PairTimes {
            source,
            target,
            sent: 0,
            received: 0,
            duplicates: 0,
            min: none,
            max: none,
            total: none,
            obstacle: None,
        }
    }

    /// Adds a reply.
    pub fn book(&mut self, time: Duration) {
        self.min = if self.received == 0 { time } else { self.min.min(time) };
        self.max = self.max.max(time);
        self.total += time;
        self.received += 1;
    }

    /// The mean time, if there was a reply.
    pub fn mean(&self) -> Option<Duration> {
        (self.received > 0).then(|| self.total / self.received)
    }

    /// The share of requests without a reply.
    pub fn loss(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { 1.0 - f64::from(self.received) / f64::from(self.sent) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_loss() {
        let mut pair = PairTimes::new(None, [10, 0, 0, 1].into());
        assert_eq!((pair.mean(), pair.loss()), (None, 0.0));
        pair.sent = 4;
        for ms in [3, 1, 5] {
            pair.book(Duration::from_millis(ms));
        }
        let ms = |time: Duration| time.as_millis();
        assert_eq!((ms(pair.min), pair.mean().map(ms), ms(pair.max), pair.loss()), (1, Some(3), 5, 0.25));
    }
}
