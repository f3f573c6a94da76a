//! Time in nanoseconds, as its own type.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Rem, Sub, SubAssign};

use serde::{Deserialize, Serialize};

/// A duration, or the time since an arbitrary fixed moment before the start of the run, in nanoseconds. The clock of links
/// never jumps. It is stored and serialised as a plain number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(u64);

/// A second.
pub const SECOND: Nanos = Nanos(1_000_000_000);

/// Converts seconds to nanoseconds; negative values and NaN become 0, huge ones saturate.
pub fn nanos(seconds: f64) -> Nanos {
    Nanos((seconds * 1e9) as u64)
}

impl Nanos {
    /// No time, or the moment from which a clock counts.
    pub const ZERO: Nanos = Nanos(0);
    /// The longest time, which stands for "never" or "unlimited".
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// So many nanoseconds.
    pub const fn new(nanoseconds: u64) -> Nanos {
        Nanos(nanoseconds)
    }

    /// So many whole seconds.
    pub const fn from_secs(seconds: u64) -> Nanos {
        Nanos(seconds * SECOND.0)
    }

    /// So many milliseconds.
    pub const fn from_millis(milliseconds: u64) -> Nanos {
        Nanos(milliseconds * 1_000_000)
    }

    /// The number of nanoseconds.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The number of nanoseconds as a floating-point number.
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// Whole microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1000
    }

    /// Whole milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The sum, at most [`Nanos::MAX`].
    pub const fn saturating_add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }

    /// The difference; zero if `other` is larger.
    pub const fn saturating_sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }

    /// The product, at most [`Nanos::MAX`].
    pub const fn saturating_mul(self, factor: u64) -> Nanos {
        Nanos(self.0.saturating_mul(factor))
    }

    /// The quotient, rounded up.
    pub const fn div_ceil(self, step: Nanos) -> u64 {
        self.0.div_ceil(step.0)
    }
}

impl From<Nanos> for u64 {
    fn from(time: Nanos) -> u64 {
        time.0
    }
}

impl Add for Nanos {
    type Output = Nanos;

    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0 + other.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        self.0 += other.0;
    }
}

impl Sub for Nanos {
    type Output = Nanos;

    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0 - other.0)
    }
}

impl SubAssign for Nanos {
    fn sub_assign(&mut self, other: Nanos) {
        self.0 -= other.0;
    }
}

impl Mul<u64> for Nanos {
    type Output = Nanos;

    fn mul(self, factor: u64) -> Nanos {
        Nanos(self.0 * factor)
    }
}

impl Mul<Nanos> for u64 {
    type Output = Nanos;

    fn mul(self, time: Nanos) -> Nanos {
        time * self
    }
}

impl Div<u64> for Nanos {
    type Output = Nanos;

    fn div(self, parts: u64) -> Nanos {
        Nanos(self.0 / parts)
    }
}

/// How many whole times one duration fits in another.
impl Div for Nanos {
    type Output = u64;

    fn div(self, step: Nanos) -> u64 {
        self.0 / step.0
    }
}

impl Rem for Nanos {
    type Output = Nanos;

    fn rem(self, step: Nanos) -> Nanos {
        Nanos(self.0 % step.0)
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Nanos>>(times: I) -> Nanos {
        times.fold(Nanos::ZERO, Add::add)
    }
}
