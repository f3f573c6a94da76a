//! The factors of a phase at a given time.

use polygraph_link::Nanos;

/// A factor that changes linearly from `from` at `begin` to `to` at `end` and is constant before and after.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    /// Start of the change.
    pub begin: Nanos,
    /// End of the change; not before `begin`.
    pub end: Nanos,
    /// Value until `begin`; the factor itself stays between 0 and 1.
    pub from: f64,
    /// Value from `end` on.
    pub to: f64,
}

impl Ramp {
    /// A factor that does not change.
    pub const fn flat(value: f64) -> Ramp {
        Ramp { begin: Nanos::ZERO, end: Nanos::ZERO, from: value, to: value }
    }

    /// The value at `now`.
    pub fn at(&self, now: Nanos) -> f64 {
        let value = if now >= self.end {
            self.to
        } else if now <= self.begin {
            self.from
        } else {
            let gone = (now - self.begin).as_f64() / (self.end - self.begin).as_f64();
            self.from + (self.to - self.from) * gone
        };
        value.clamp(0.0, 1.0)
    }
}

/// The factors in force (`docs/reference/models.md`, "Phases").
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Share of robots that are active.
    pub populus: Ramp,
    /// Share of its request rate that each robot launches.
    pub load: Ramp,
    /// Multiplier of recurrence.
    pub recur: Ramp,
    /// Probability that a request's kind and method are drawn from `req_types` and `req_methods`; otherwise it
    /// is a basic GET.
    pub special: Ramp,
    /// Whether robots have stopped sending requests.
    pub stopped: bool,
}

impl Pace {
    /// All factors are 1.
    pub const FULL: Pace = Pace {
        populus: Ramp::flat(1.0),
        load: Ramp::flat(1.0),
        recur: Ramp::flat(1.0),
        special: Ramp::flat(1.0),
        stopped: false,
    };
    /// Robots have stopped sending.
    pub const STOPPED: Pace = Pace { stopped: true, ..Pace::FULL };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ramps_are_linear_and_bounded() {
        let ramp = Ramp { begin: Nanos::new(100), end: Nanos::new(300), from: 1.0, to: 0.5 };
        let values = [0, 100, 200, 300, 900].map(|now| ramp.at(Nanos::new(now)));
        assert_eq!(values, [1.0, 1.0, 0.75, 0.5, 0.5]);
        assert_eq!(Ramp::flat(0.3).at(Nanos::new(7)), 0.3);
        let steep = Ramp { begin: Nanos::ZERO, end: Nanos::new(400), from: -1.0, to: 3.0 };
        assert_eq!([0, 100, 150, 300].map(|now| steep.at(Nanos::new(now))), [0.0, 0.0, 0.5, 1.0]);
    }
}
