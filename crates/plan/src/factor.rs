//! The factors of a phase: how much of the configured behaviour applies, from its start to its end.

use polygraph_stats::PlannedLoad;
use serde::{Deserialize, Serialize};

/// A factor at both ends of a phase; in between it changes linearly along the phase's goal.
///
/// The original lifts rising ramps and lowers falling ones by a square root term, so that robots with a rate of
/// zero become active again (`docs/reference/models.md`, "Factors"). Ramps here are plain lines: robots thin
/// out a stream that flows at the full rate, so they cannot get stuck at zero while time passes. Only a ramp
/// along a count has to start a little above zero, or nothing would ever be counted; the engine takes care of
/// that.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// Value at the start, 0 to 1. A larger value occurs only in a ramp that reaches its limit before its end.
    pub beg: f64,
    /// Value at the end, with the same range.
    pub end: f64,
}

impl Factor {
    /// The factor 1 from start to end.
    pub const ONE: Factor = Factor { beg: 1.0, end: 1.0 };

    /// A factor that does not change.
    pub const fn flat(value: f64) -> Factor {
        Factor { beg: value, end: value }
    }

    /// The factor of the next phase. A start that is not given is the end of this factor; an end that is not
    /// given is the start.
    #[must_use]
    pub fn next(self, beg: Option<f64>, end: Option<f64>) -> Factor {
        let beg = beg.unwrap_or(self.end);
        Factor { beg, end: end.unwrap_or(beg) }
    }

    /// True if the factor does not change.
    pub fn is_flat(&self) -> bool {
        self.beg == self.end
    }

    /// The value (0 to 1) when the share `progress` (0 to 1, beyond is cut off) of the phase's goal is reached.
    pub fn at(&self, progress: f64) -> f64 {
        (self.beg + (self.end - self.beg) * progress.clamp(0.0, 1.0)).clamp(0.0, 1.0)
    }
}

/// The four factors of a phase (`docs/reference/models.md`, "Factors").
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Factors {
    /// Share of robots that are active.
    pub populus: Factor,
    /// Share of its request rate that each robot launches.
    pub load: Factor,
    /// Multiplier of recurrence.
    pub recur: Factor,
    /// Probability that a request's kind and method are drawn from `req_types` and `req_methods`.
    pub special_msg: Factor,
}

impl Factors {
    /// All factors at 1.
    pub const ONE: Factors =
        Factors { populus: Factor::ONE, load: Factor::ONE, recur: Factor::ONE, special_msg: Factor::ONE };

    /// The load of the phase for its log.
    pub fn planned_load(&self) -> PlannedLoad {
        let (a, b) = (self.populus, self.load);
        PlannedLoad { beg: a.beg * b.beg, end: a.end * b.end, mean: self.mean_load() }
    }

    /// The share of the full request rate that the phase launches on average: the mean of the product of two
    /// lines.
    pub fn mean_load(&self) -> f64 {
        let (a, b) = (self.populus, self.load);
        (a.beg * b.beg + a.end * b.end) / 3.0 + (a.beg * b.end + a.end * b.beg) / 6.0
    }
}

/// What a factor inherits from the end of the phase before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Inherited {
    /// Nothing: start and end are given.
    #[default]
    Nothing,
    /// The start; the end is given.
    Begin,
    /// Start and end: the factor stays as it was.
    Whole,
}

impl Inherited {
    /// What a factor inherits if these ends are given.
    pub fn of(beg: Option<f64>, end: Option<f64>) -> Inherited {
        match (beg, end) {
            (Some(_), _) => Inherited::Nothing,
            (None, Some(_)) => Inherited::Begin,
            (None, None) => Inherited::Whole,
        }
    }

    fn apply(self, planned: Factor, level: f64) -> Factor {
        match self {
            Inherited::Nothing => planned,
            Inherited::Begin => Factor { beg: level, ..planned },
            Inherited::Whole => Factor::flat(level),
        }
    }
}

/// What the factors of a phase inherit from the phase before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inheritance {
    /// See [`Factors::populus`].
    pub populus: Inherited,
    /// See [`Factors::load`].
    pub load: Inherited,
    /// See [`Factors::recur`].
    pub recur: Inherited,
    /// See [`Factors::special_msg`].
    pub special_msg: Inherited,
}

/// The values of all factors at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Levels {
    /// See [`Factors::populus`].
    pub populus: f64,
    /// See [`Factors::load`].
    pub load: f64,
    /// See [`Factors::recur`].
    pub recur: f64,
    /// See [`Factors::special_msg`].
    pub special_msg: f64,
}

impl Factors {
    /// The values when the share `progress` of the phase's goal is reached.
    pub fn at(&self, progress: f64) -> Levels {
        Levels {
            populus: self.populus.at(progress),
            load: self.load.at(progress),
            recur: self.recur.at(progress),
            special_msg: self.special_msg.at(progress),
        }
    }

    /// These factors after a phase that ended at `levels`. They were planned as if that phase had ended as
    /// planned; but goals may be met early, and levels may change while a test runs.
    #[must_use]
    pub fn after(&self, levels: &Levels, inherited: &Inheritance) -> Factors {
        Factors {
            populus: inherited.populus.apply(self.populus, levels.populus),
            load: inherited.load.apply(self.load, levels.load),
            recur: inherited.recur.apply(self.recur, levels.recur),
            special_msg: inherited.special_msg.apply(self.special_msg, levels.special_msg),
        }
    }
}

impl Default for Factors {
    fn default() -> Factors {
        Factors::ONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_given_is_inherited() {
        // (start, end) as given in consecutive phases, and the resulting factors.
        let rows = [
            ((None, None), (1.0, 1.0)),
            ((Some(0.0), Some(0.5)), (0.0, 0.5)),
            ((None, None), (0.5, 0.5)),
            ((None, Some(1.0)), (0.5, 1.0)),
            ((Some(0.2), None), (0.2, 0.2)),
            ((None, Some(0.0)), (0.2, 0.0)),
            ((None, None), (0.0, 0.0)),
        ];
        let mut factor = Factor::ONE;
        for ((beg, end), (resolved_beg, resolved_end)) in rows {
            factor = factor.next(beg, end);
            assert_eq!(factor, Factor { beg: resolved_beg, end: resolved_end }, "{beg:?} {end:?}");
        }
    }

    #[test]
    fn a_phase_begins_where_the_one_before_it_really_ended() {
        let planned = Factor { beg: 1.0, end: 0.5 };
        let factors =
            Factors { populus: planned, load: planned, recur: planned, special_msg: Factor::flat(1.0) };
        let inherited = Inheritance {
            populus: Inherited::of(Some(1.0), None),
            load: Inherited::of(None, Some(0.5)),
            recur: Inherited::of(Some(1.0), Some(0.5)),
            special_msg: Inherited::of(None, None),
        };
        let ramp = Factor { beg: 0.2, end: 1.0 };
        let levels = Factors { populus: ramp, load: ramp, recur: ramp, special_msg: ramp }.at(0.25);
        let expected =
            Factors { load: Factor { beg: 0.4, end: 0.5 }, special_msg: Factor::flat(0.4), ..factors };
        assert_eq!(factors.after(&levels, &inherited), expected);
        assert_eq!(factors.after(&levels, &Inheritance::default()), factors);
    }

    #[test]
    fn ramps_are_lines_within_their_ends() {
        let rising = Factor { beg: 0.0, end: 0.5 };
        let falling = Factor { beg: 1.0, end: 0.2 };
        for (factor, progress, value) in [
            (rising, -1.0, 0.0),
            (rising, 0.0, 0.0),
            (rising, 0.5, 0.25),
            (rising, 1.0, 0.5),
            (rising, 7.0, 0.5),
            (falling, 0.25, 0.8),
            (falling, 1.0, 0.2),
            (Factor::flat(0.3), 0.7, 0.3),
        ] {
            assert!((factor.at(progress) - value).abs() < 1e-12, "{factor:?} at {progress}");
        }
    }

    #[test]
    fn the_mean_load_is_that_of_both_factors_together() {
        let factors = |populus: Factor, load: Factor| Factors { populus, load, ..Factors::ONE };
        let (ramp, half) = (Factor { beg: 0.0, end: 1.0 }, Factor::flat(0.5));
        for (factors, mean) in [
            (factors(Factor::ONE, Factor::ONE), 1.0),
            (factors(half, half), 0.25),
            (factors(ramp, half), 0.25),
            (factors(ramp, ramp), 1.0 / 3.0),
            (factors(ramp, Factor { beg: 1.0, end: 0.0 }), 1.0 / 6.0),
        ] {
            assert!((factors.mean_load() - mean).abs() < 1e-12, "{factors:?}: {}", factors.mean_load());
        }
    }
}
