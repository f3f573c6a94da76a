//! Count, sum and extremes of values: what is kept where nobody asks for a distribution.

use serde::{Deserialize, Serialize};

use crate::fold::Fold;

/// The *aggregate* of the reference (stats.md 2): count, sum, sum of squares, smallest and largest value, all exact.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    count: u64,
    sum: f64,
    sum_of_squares: f64,
    min: u64,
    max: u64,
}

impl Moments {
    /// Counts one value.
    pub fn add(&mut self, value: u64) {
        self.add_n(value, 1);
    }

    /// Counts `n` equal values.
    pub fn add_n(&mut self, value: u64, n: u64) {
        if n == 0 {
            return;
        }
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += n;
        self.sum += value as f64 * n as f64;
        self.sum_of_squares += (value as f64).powi(2) * n as f64;
    }

    /// Adds everything that `other` has counted.
    pub fn merge(&mut self, other: &Moments) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
    }

    /// What is left without `part`; what remains lies within `bounds`.
    pub(crate) fn without(&self, part: &Moments, bounds: Option<(u64, u64)>) -> Moments {
        let (count, Some((first, last))) = (self.count.saturating_sub(part.count), bounds) else {
            return Moments::default();
        };
        Moments {
            count,
            sum: (self.sum - part.sum).max(0.0),
            sum_of_squares: (self.sum_of_squares - part.sum_of_squares).max(0.0),
            min: first.max(self.min),
            max: last.min(self.max),
        }
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// Their mean, `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    /// Standard deviation of the sample, `None` with fewer than two values.
    pub fn std_dev(&self) -> Option<f64> {
        let n = self.count as f64;
        (n >= 2.0).then(|| ((self.sum_of_squares - self.sum * self.sum / n) / (n - 1.0)).max(0.0).sqrt())
    }

    /// The smallest value, `None` without values.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }

    /// The largest value, `None` without values.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }
}

impl Fold for Moments {
    fn fold(&mut self, other: &Moments) {
        self.merge(other);
    }

    fn clear(&mut self) {
        *self = Moments::default();
    }
}

/// The form in the log; nothing takes one byte.
#[derive(Serialize, Deserialize)]
struct Logged {
    count: u64,
    sum: f64,
    sum_of_squares: f64,
    min: u64,
    max: u64,
}

impl Serialize for Moments {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Moments { count, sum, sum_of_squares, min, max } = *self;
        (count > 0).then_some(Logged { count, sum, sum_of_squares, min, max }).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Moments {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Moments, D::Error> {
        let Some(logged) = Option::<Logged>::deserialize(deserializer)? else {
            return Ok(Moments::default());
        };
        let Logged { count, sum, sum_of_squares, min, max } = logged;
        if count == 0 || min > max {
            return Err(serde::de::Error::custom("smallest value above the largest"));
        }
        Ok(Moments { count, sum, sum_of_squares, min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_equals_adding() {
        let (mut one, mut two, mut both) = (Moments::default(), Moments::default(), Moments::default());
        [5, 0, 17].into_iter().for_each(|v| one.add(v));
        two.add_n(4, 3);
        [5, 0, 17, 4, 4, 4].into_iter().for_each(|v| both.add(v));
        one.merge(&Moments::default());
        one.merge(&two);
        assert_eq!(one, both);
        assert_eq!(
            (both.count(), both.min(), both.max(), both.mean()),
            (6, Some(0), Some(17), Some(34.0 / 6.0))
        );
        assert_eq!(Moments::default().mean(), None);
    }

    #[test]
    fn the_log_brings_them_back() {
        for n in 0..3 {
            let mut moments = Moments::default();
            moments.add_n(300, n);
            let bytes = postcard::to_stdvec(&moments).unwrap();
            assert_eq!(postcard::from_bytes::<Moments>(&bytes).unwrap(), moments);
            assert!(n > 0 || bytes.len() == 1);
        }
    }
}
