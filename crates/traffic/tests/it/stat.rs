//! What the tests measure with.

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

pub fn deviation(values: &[f64]) -> f64 {
    let mean = mean(values);
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
}

/// The share of `found` in `n` independent trials is `p`, within five standard errors.
pub fn assert_share(found: usize, n: usize, p: f64, what: &str) {
    let share = found as f64 / n as f64;
    let error = (p * (1.0 - p) / n as f64).sqrt();
    assert!((share - p).abs() <= 5.0 * error, "{what}: {share} of {n}, expected {p} +- {}", 5.0 * error);
}

/// The mean of `values` is `expected`, within five standard errors.
pub fn assert_mean(values: &[f64], expected: f64, what: &str) {
    let (found, error) = (mean(values), deviation(values) / (values.len() as f64).sqrt());
    assert!((found - expected).abs() <= 5.0 * error, "{what}: mean {found}, expected {expected} +- {error}");
}

/// Kolmogorov-Smirnov: `values` follow `cdf`, at the 1 % critical value 1.63 / sqrt(n). Values may be whole
/// numbers if `cdf` is right at whole numbers; the test is only stricter on those.
pub fn assert_follows(values: &mut [f64], cdf: impl Fn(f64) -> f64, what: &str) {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let last_of_its_kind = |i: &usize| values.get(i + 1) != Some(&values[*i]);
    let off = |i: usize| ((i + 1) as f64 / n - cdf(values[i])).abs();
    let distance = (0..values.len()).filter(last_of_its_kind).map(off).fold(0.0, f64::max);
    assert!(distance < 1.63 / n.sqrt(), "{what}: distance {distance} of {n} values");
}

/// Chi-square of counts with these probabilities stays below mean plus five deviations of its distribution.
pub fn assert_counts(counts: &[usize], probabilities: &[f64], what: &str) {
    let n = counts.iter().sum::<usize>() as f64;
    let cell = |(&count, p): (&usize, &f64)| (count as f64 - n * p).powi(2) / (n * p);
    let chi: f64 = counts.iter().zip(probabilities).map(cell).sum();
    let freedom = (counts.len() - 1) as f64;
    assert!(chi < freedom + 5.0 * (2.0 * freedom).sqrt(), "{what}: chi-square {chi}, {freedom} degrees");
}

/// Slope of the least-squares line through the points.
pub fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), p| (x + p.0 / n, y + p.1 / n));
    let over: f64 = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum();
    over / points.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>()
}

/// The standard normal cumulative distribution by Simpson's rule over 60 steps; error below 1e-6.
pub fn normal_cdf(z: f64) -> f64 {
    let z = z.clamp(-8.0, 8.0);
    let density = |x: f64| (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let (steps, width) = (60, z / 60.0);
    let weight = |i: i32| match i {
        0 => 1.0,
        i if i == steps => 1.0,
        i => 2.0 + 2.0 * f64::from(i % 2),
    };
    0.5 + (0..=steps).map(|i| weight(i) * density(width * f64::from(i))).sum::<f64>() * width / 3.0
}
