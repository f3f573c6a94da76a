//! The arithmetic of shares: how many hosts, agents and addresses a rate needs.

/// The smallest integer `n` with `n * b >= a`, robust against rounding: 700/0.7 is 1000, not 1001.
///
/// The quotient is rounded to single precision before it is rounded up; the standard workloads depend on
/// exactly this. A quotient that is not a positive number gives 0; one that exceeds `u64` gives `u64::MAX`.
pub fn xceil(a: f64, b: f64) -> u64 {
    ((a / b) as f32).ceil() as u64
}

/// The smallest multiple of `f` that is at least `n`.
pub fn sdiv(f: u64, n: f64) -> u64 {
    f.saturating_mul(xceil(n, f as f64))
}

/// The smallest multiple of `f` that is at least `n / d`, both divisions by [`xceil`].
pub fn ddiv(f: u64, n: f64, d: f64) -> u64 {
    sdiv(f, xceil(n, d) as f64)
}
