//! Whether the primary phase began before the device reached a steady state.
//!
//! The phase is cut into [`PARTS`] of equal length. A figure has a trend if its last third differs from its first by
//! more than a tolerance *and* by more than noise explains. Noise is estimated from differences of neighbouring parts
//! (von Neumann 1941), which a trend hardly changes. In long runs, the second condition alone would find trends that do not
//! matter; in short runs, the first alone would mistake noise for a trend. The rule uses parts instead of intervals because
//! neighbouring intervals resemble each other.

use super::chance::{allowance, batches};
use super::{FindingSeverity, Findings};
use crate::facts::RunFacts;
use crate::series::SeriesPoint;
use crate::text;

/// Largest change of the mean response time between the first and the last third, as a share of the mean.
pub(super) const RPTM_MAX: f64 = 0.10;
/// The same for the document hit ratio, in points (percent of transactions).
pub(super) const HITS_MAX: f64 = 2.0;
/// Largest change of the offered rate in a steady load, as a share of its mean.
const STEADY: f64 = 0.05;
/// Parts of the phase.
const PARTS: usize = 12;
/// Number of standard deviations by which the thirds must differ. Noise is estimated from only [`PARTS`] values; with this limit,
/// fewer than one in 1000 series without a trend looks like a series with one.
const SURE: f64 = 5.0;

/// A load that changes as planned also changes response times, and a run that is not valid needs no further reasons.
pub(super) fn trend(facts: &RunFacts, found: &mut Findings) {
    let Some(headline) = facts.headline.as_ref().filter(|headline| headline.primary) else { return };
    if facts.client.is_none() || found.all.iter().any(|finding| finding.weight != FindingSeverity::Warning) {
        return;
    }
    let side = facts.main_side();
    let within = |point: &&SeriesPoint| point.at_s >= headline.begin_s && point.at_s <= headline.end_s;
    let points: Vec<&SeriesPoint> = side.series.iter().filter(within).collect();
    let parts = |figure: &str, weight: &str| {
        let edge = |i| points.len() * i / PARTS;
        (0..PARTS).map(|i| mean(&points[edge(i)..edge(i + 1)], figure, weight)).collect::<Option<Vec<f64>>>()
    };
    if points.len() < PARTS {
        return;
    }
    let Some(rates) = parts("baseline.req.rate", "") else { return };
    let rate = rates.iter().sum::<f64>() / PARTS as f64;
    // Starts come at random, so their number in a third varies by this much.
    let starts = rate * headline.scope.seconds / PARTS as f64;
    let batch = batches(facts, headline);
    let random = allowance(2.0 * starts * batch, batch) / starts.max(1.0);
    if rate <= 0.0 || drift(&rates).abs() > rate * STEADY.max(random) {
        return;
    }
    if let Some(parts) = parts("baseline.rptm.mean", "ok_xact.rate") {
        let mean = parts.iter().sum::<f64>() / PARTS as f64;
        if let Some((first, last)) = moved(&parts, RPTM_MAX * mean) {
            let text = format!(
                "the mean response time still {} in phase {}, from {} to {}: a longer warm-up would help",
                if last > first { "rose" } else { "fell" },
                headline.phase,
                text::ms(Some(first)),
                text::ms(Some(last))
            );
            found.warn("trend", text);
        }
    }
    if let Some(parts) = parts("hit.ratio.obj", "ok_xact.rate")
        && let Some((first, last)) = moved(&parts, HITS_MAX)
    {
        let text = format!(
            "the document hit ratio still {} in phase {}, from {first:.1} % to {last:.1} %: a longer warm-up would help",
            if last > first { "rose" } else { "fell" },
            headline.phase,
        );
        found.warn("trend", text);
    }
}

/// Mean of a figure over points, weighted by another one and by time.
fn mean(points: &[&SeriesPoint], figure: &str, weight: &str) -> Option<f64> {
    let weigh = |point: &SeriesPoint| if weight.is_empty() { Some(1.0) } else { point.get(weight) };
    let pairs: Vec<(f64, f64)> =
        points.iter().filter_map(|point| Some((point.get(figure)?, weigh(point)? * point.seconds))).collect();
    let total: f64 = pairs.iter().map(|(_, weight)| weight).sum();
    (total > 0.0).then(|| pairs.iter().map(|(value, weight)| value * weight).sum::<f64>() / total)
}

/// The means of the first and of the last third.
fn ends(parts: &[f64]) -> (f64, f64) {
    let third = parts.len() / 3;
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    (mean(&parts[..third]), mean(&parts[parts.len() - third..]))
}

fn drift(parts: &[f64]) -> f64 {
    let (first, last) = ends(parts);
    last - first
}

/// The means of the first and the last third, if there is a trend.
fn moved(parts: &[f64], tolerance: f64) -> Option<(f64, f64)> {
    let (first, last) = ends(parts);
    let steps = parts.windows(2).map(|pair| (pair[1] - pair[0]).powi(2));
    let variance = steps.sum::<f64>() / (2.0 * (parts.len() - 1) as f64);
    let random = SURE * (2.0 * variance / (parts.len() / 3) as f64).sqrt();
    let moved = (last - first).abs();
    (moved > tolerance && moved > random).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_rise_beyond_the_tolerance_is_a_trend() {
        let slope: Vec<f64> = (0..12).map(|i| 10.0 + 0.2 * f64::from(i)).collect();
        assert_eq!(moved(&slope, 1.0).map(|(first, last)| last > first), Some(true));
        assert_eq!(moved(&slope, 2.0), None);
    }

    #[test]
    fn a_step_at_the_end_and_a_zigzag_are_none() {
        let mut parts = vec![10.0; 12];
        parts[11] = 20.0;
        assert_eq!(moved(&parts, 1.0), None);
        let zigzag: Vec<f64> = (0..12).map(|i| f64::from(i) * 0.1 + f64::from(i % 2)).collect();
        assert_eq!(moved(&zigzag, 0.5), None);
    }
}
