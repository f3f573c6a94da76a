//! When objects change and expire (`docs/reference/models.md`, "Object life cycle").

use crate::distr::Distr;
use crate::rng::{Draw, Random, mix};
use crate::selector::Selector;

/// The lifetime in seconds that servers of generation 1.x give objects, which have no life cycle: a year.
pub const CLASSIC_MAX_AGE: u64 = 31_536_000;

/// The base of an expiration time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum ExpiryBase {
    /// The last modification.
    Lmt,
    /// The moment of the reply.
    Now,
    /// The next modification.
    Nmt,
}

/// An expiration rule: a base and a gap in seconds.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Expiry {
    /// The base of the gap.
    pub base: ExpiryBase,
    /// The gap in seconds.
    pub gap: Distr,
}

/// The life of the objects of a content type: each is modified again and again.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LifeCycle {
    /// Time between modifications in seconds, drawn once for each object.
    pub length: Distr,
    /// The largest deviation of a modification from its regular time, as a share of the cycle (0 to 1).
    pub variance: f64,
    /// Share of objects that show their last modification (0 to 1).
    pub with_lmt: f64,
    /// Expiration rules; if empty, replies have no `Expires`.
    pub expires: Selector<Expiry>,
}

/// The longest cycle, in seconds (31,688 years): sums of times stay far from the ends of their range.
const MAX_CYCLE: f64 = 1e12;

/// The times of an object at a moment, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Last modification, not after that moment.
    pub lmt: i64,
    /// Next modification, after that moment.
    pub nmt: i64,
    /// Replies show the last modification.
    pub shows_lmt: bool,
    /// Expiration time, if replies have one.
    pub expires: Option<i64>,
}

impl LifeCycle {
    /// The times at `now` (seconds since 1970, within 10^12 of it) of the object whose draws start with `seed`.
    ///
    /// Objects exist since 1970: one that has not been modified yet shows that moment.
    pub fn times(&self, seed: u64, now: i64) -> Times {
        let now = now.clamp(-(MAX_CYCLE as i64), MAX_CYCLE as i64);
        let mut rng = Draw::new(seed);
        // The order of draws is fixed: rule, shown, cycle, birth, gap. Every object draws all of them.
        let rule = self.expires.draw_index(&mut rng).map(|index| &self.expires.items()[index]);
        let shows_lmt = rng.event(self.with_lmt);
        let cycle = self.length.sample(&mut rng).clamp(1.0, MAX_CYCLE) as i64;
        let birth = rng.below(cycle as u64) as i64;
        // With more than one, modifications could overtake each other.
        let variance = self.variance.clamp(0.0, 1.0);
        let modified = |n: i64| match n {
            ..0 => now.min(0),
            0 => birth,
            n => {
                let off = Draw::new(seed ^ mix(n as u64)).unit() - 0.5;
                birth + n * cycle + (variance * off * cycle as f64) as i64
            }
        };
        let mut n = (now - birth - cycle / 2).div_euclid(cycle).max(-1);
        let (mut lmt, mut nmt) = (modified(n), modified(n + 1));
        while nmt <= now {
            n += 1;
            (lmt, nmt) = (nmt, modified(n + 1));
        }
        let expires = rule.map(|rule| {
            let base = match rule.base {
                ExpiryBase::Lmt => lmt,
                ExpiryBase::Now => now,
                ExpiryBase::Nmt => nmt,
            };
            base.saturating_add(rule.gap.sample(&mut rng) as i64)
        });
        Times { lmt, nmt, shows_lmt, expires }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn cycle(length: f64, variance: f64, base: ExpiryBase, gap: f64) -> LifeCycle {
        let expires = Selector::only(Expiry { base, gap: Distr::Const(gap) });
        LifeCycle { length: Distr::Const(length), variance, with_lmt: 1.0, expires }
    }

    #[test]
    fn modifications_enclose_the_moment_and_follow_each_other() {
        let life = cycle(1000.0, 0.5, ExpiryBase::Nmt, 0.0);
        for seed in 0..500 {
            let mut now = NOW;
            for _ in 0..5 {
                let times = life.times(seed, now);
                assert!(times.lmt <= now && now < times.nmt, "{times:?} at {now}");
                assert!((500..=1500).contains(&(times.nmt - times.lmt)), "{times:?}");
                assert_eq!(times.expires, Some(times.nmt));
                assert_eq!(life.times(seed, times.nmt - 1), times);
                let next = life.times(seed, times.nmt);
                assert_eq!(next.lmt, times.nmt);
                now = times.nmt;
            }
        }
    }

    #[test]
    fn before_the_first_modification_objects_are_as_old_as_the_epoch() {
        let life = cycle(1e12, 1.0, ExpiryBase::Lmt, f64::INFINITY);
        for seed in 0..100 {
            let times = life.times(seed, NOW);
            assert!(times.lmt <= NOW && NOW < times.nmt, "{times:?}");
            assert_eq!(times.expires, Some(i64::MAX));
        }
        assert_eq!(life.times(7, -5).lmt, -5);
    }

    #[test]
    fn expiry_rules() {
        let at = |base, gap| cycle(1000.0, 0.0, base, gap).times(7, NOW);
        let lmt = at(ExpiryBase::Lmt, 10.0);
        assert_eq!(lmt.expires, Some(lmt.lmt + 10));
        assert_eq!(at(ExpiryBase::Now, 30.0).expires, Some(NOW + 30));
        let never = LifeCycle { expires: Selector::default(), ..cycle(1000.0, 0.0, ExpiryBase::Now, 0.0) };
        assert_eq!(never.times(7, NOW).expires, None);
    }
}
