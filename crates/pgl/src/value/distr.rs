//! Distributions as a program describes them; the traffic model draws from them.

use std::sync::Arc;

/// The type of drawn values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Domain {
    /// Whole numbers.
    Int,
    /// Fractional numbers.
    Float,
    /// Times, in seconds.
    Time,
    /// Sizes, in bytes.
    Size,
}

impl Domain {
    /// The type name of the drawn values.
    pub fn name(self) -> &'static str {
        match self {
            Domain::Int => "int",
            Domain::Float => "float",
            Domain::Time => "time",
            Domain::Size => "size",
        }
    }
}

/// The base of an expiration time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Qualifier {
    /// The last modification time.
    Lmt,
    /// The time of the reply.
    Now,
    /// The next modification time.
    Nmt,
}

impl Qualifier {
    /// The keyword.
    pub fn word(self) -> &'static str {
        match self {
            Qualifier::Lmt => "lmt",
            Qualifier::Now => "now",
            Qualifier::Nmt => "nmt",
        }
    }
}

/// A bin of a user-defined distribution: values from `min` to below `max` (or just `min`), with a relative weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TableBin {
    /// Smallest value.
    pub min: f64,
    /// Upper bound, not included; `None` for a single value.
    pub max: Option<f64>,
    /// Relative weight.
    pub weight: f64,
}

/// The form of a distribution. Parameters are plain numbers: seconds for times, bytes for sizes.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// No distribution: the int 0 where a distribution is expected.
    None,
    /// A constant value.
    Const(f64),
    /// Uniform in `[lo, hi)`.
    Unif {
        /// Lower bound.
        lo: f64,
        /// Upper bound.
        hi: f64,
    },
    /// The exponential distribution.
    Exp {
        /// Mean value.
        mean: f64,
    },
    /// The normal distribution.
    Norm {
        /// Mean value.
        mean: f64,
        /// Standard deviation.
        sd: f64,
    },
    /// Log-normal with this actual mean and deviation.
    Logn {
        /// Mean value.
        mean: f64,
        /// Standard deviation.
        sd: f64,
    },
    /// `floor((n+1)^U)`: values 1..n.
    Zipf {
        /// Greatest value.
        n: f64,
    },
    /// first, first+1, ...
    Seq {
        /// First value.
        first: f64,
    },
    /// A table given by the user.
    Table(Arc<[TableBin]>),
}

/// A distribution of numbers, times or sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct Distr {
    /// The type of drawn values.
    pub domain: Domain,
    /// The form of the distribution.
    pub shape: Shape,
    /// The base of a drawn expiration time.
    pub qualifier: Option<Qualifier>,
}

impl Distr {
    /// The mean of the drawn values, if it is defined; `seq` has none.
    pub fn mean(&self) -> Option<f64> {
        Some(match &self.shape {
            Shape::None => return None,
            Shape::Const(value) => *value,
            Shape::Unif { lo, hi } => (lo + hi) / 2.0,
            Shape::Exp { mean } | Shape::Norm { mean, .. } | Shape::Logn { mean, .. } => *mean,
            Shape::Zipf { n } => zipf_mean(*n),
            Shape::Seq { .. } => return None,
            Shape::Table(bins) => {
                let total: f64 = bins.iter().map(|bin| bin.weight).sum();
                let middle = |bin: &TableBin| bin.max.map_or(bin.min, |max| (bin.min + max) / 2.0);
                bins.iter().map(|bin| middle(bin) * bin.weight).sum::<f64>() / total
            }
        })
    }
}

/// Mean of floor((n+1)^U): the sum over k = 1..n of P(value >= k) = 1 - ln k / ln(n+1).
fn zipf_mean(n: f64) -> f64 {
    let n = n.floor().max(1.0);
    let scale = (n + 1.0).ln();
    if n > 1e6 {
        // Stirling: the sum of ln k up to n is n ln n - n + ln(2 pi n) / 2.
        return n - (n * n.ln() - n + (std::f64::consts::TAU * n).ln() / 2.0) / scale;
    }
    (1..=n as u64).map(|k| 1.0 - (k as f64).ln() / scale).sum()
}

/// The choice of the known object that a request repeats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PopDistr {
    /// All objects have the same probability.
    Unif,
    /// Recent objects are popular.
    Zipf {
        /// 1 is the classic skew.
        skew: f64,
    },
}
