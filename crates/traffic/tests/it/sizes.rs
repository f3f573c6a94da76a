//! Sizes of the standard content types.

use polygraph_traffic::{ContentKind, Distr, DistributionTable, table::Bin};

use crate::standard::{DOWNLOAD, IMAGE, KB, OTHER, PAGE, REQUEST, catalog, oid};
use crate::stat::{assert_follows, assert_mean, assert_share, deviation, normal_cdf};

/// Objects of each type.
const N: usize = 40_000;

fn sizes(kind: ContentKind) -> Vec<f64> {
    let catalog = catalog();
    (1..=N as u64).map(|name| catalog.size(&oid(kind, name)) as f64).collect()
}

/// Sizes are rounded up, which adds half a byte to the mean. The relative error of a deviation is
/// `sqrt((kurtosis - 1) / 4n)`; five of them are the tolerance.
fn check(kind: ContentKind, mean: f64, sd: f64, kurtosis: f64, cdf: impl Fn(f64) -> f64) {
    let mut sizes = sizes(kind);
    let what = format!("{kind:?}");
    assert_mean(&sizes, mean + 0.5, &what);
    let tolerance = 5.0 * ((kurtosis - 1.0) / (4.0 * N as f64)).sqrt();
    let found = deviation(&sizes);
    assert!((found / sd - 1.0).abs() < tolerance, "{what}: deviation {found}, expected {sd}");
    assert_follows(&mut sizes, cdf, &what);
}

#[test]
fn exponential_sizes() {
    for (kind, mean) in [(IMAGE, 4.5 * KB), (PAGE, 8.5 * KB)] {
        check(kind, mean, mean, 9.0, |x| 1.0 - (-x / mean).exp());
    }
}

#[test]
fn lognormal_sizes() {
    for (kind, mean, sd) in [(DOWNLOAD, 300.0 * KB, 300.0 * KB), (OTHER, 25.0 * KB, 10.0 * KB)] {
        let w: f64 = 1.0 + (sd / mean) * (sd / mean);
        let kurtosis = w.powi(4) + 2.0 * w.powi(3) + 3.0 * w.powi(2) - 3.0;
        let location = mean.ln() - w.ln() / 2.0;
        check(kind, mean, sd, kurtosis, |x| normal_cdf((x.ln() - location) / w.ln().sqrt()));
        // Half of the objects are smaller than exp(location): mean / sqrt(w).
        let below = sizes(kind).iter().filter(|&&size| size <= mean / w.sqrt()).count();
        assert_share(below, N, 0.5, "median");
    }
}

#[test]
fn uniform_sizes() {
    check(REQUEST, 4.0 * KB, 8.0 * KB / 12f64.sqrt(), 1.8, |x| x / (8.0 * KB));
}

#[test]
fn sizes_from_a_table() {
    let bin = |min, max, weight| Bin { min, max, weight };
    let table = DistributionTable::new([
        bin(0.0, Some(1000.0), 50.0),
        bin(5000.0, None, 20.0),
        bin(10_000.0, Some(20_000.0), 30.0),
    ]);
    let mut catalog = catalog();
    catalog.contents[0].size = table.map(Distr::Table);
    let sizes: Vec<f64> = (1..=N as u64).map(|name| catalog.size(&oid(IMAGE, name)) as f64).collect();
    assert_mean(&sizes, 0.5 * 500.5 + 0.2 * 5000.0 + 0.3 * 15_000.5, "table");
    for (min, max, p) in
        [(0.0, 500.0, 0.25), (0.0, 1000.0, 0.5), (5000.0, 5000.0, 0.2), (17_501.0, 20_000.0, 0.075)]
    {
        assert_share(sizes.iter().filter(|&&size| size >= min && size <= max).count(), N, p, "bin");
    }
}

#[test]
fn sizes_of_a_sequence_follow_the_names() {
    let mut catalog = catalog();
    catalog.contents[0].size = Some(Distr::Ascending { first: 100.0 });
    let sizes = |unique| {
        let mut catalog = catalog.clone();
        catalog.contents[0].unique = unique;
        [1, 2, 1000].map(|name| catalog.size(&oid(IMAGE, name)))
    };
    assert_eq!(sizes(None), [100, 101, 1099]);
    assert_eq!(sizes(Some(1.0)), [100, 101, 1099]);
    assert_eq!(sizes(Some(0.0)), [100; 3]);
}
