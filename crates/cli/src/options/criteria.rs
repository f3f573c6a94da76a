//! Options that say when a device sustains a rate.

use clap::Args;
use polygraph_plan::values;
use polygraph_report::peak::{PeakCriteria, TimeLimit};

use super::values::Optional;

/// The criteria for a sustained rate.
#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case", next_help_heading = "The device sustains a rate if")]
pub struct CriteriaOptions {
    /// Maximum share of transactions that may fail
    #[arg(long, value_name = "SHARE", default_value = "3p", value_parser = values::share)]
    max_errors: f64,
    /// Maximum share by which the measured rate may be below the offered rate
    #[arg(long, value_name = "SHARE", default_value = "3p", value_parser = values::share)]
    max_rate_gap: f64,
    /// Maximum mean response time: a time, a multiple of the mean at low load, or a multiple plus a time
    #[arg(long, value_name = "LIMIT", default_value = "1.25x+250ms", value_parser = limit)]
    max_rptm: Optional<TimeLimit>,
    /// Maximum 95th percentile of response times
    #[arg(long, value_name = "LIMIT", default_value = "none", value_parser = limit)]
    max_p95: Optional<TimeLimit>,
    /// Maximum number of percentage points by which the document hit ratio may be below the offered hit ratio
    #[arg(long, value_name = "SHARE", default_value = "5p", value_parser = share)]
    max_dhr_gap: Optional<f64>,
}

impl From<CriteriaOptions> for PeakCriteria {
    fn from(options: CriteriaOptions) -> PeakCriteria {
        PeakCriteria {
            errors: options.max_errors,
            rate_gap: options.max_rate_gap,
            mean: options.max_rptm.0,
            p95: options.max_p95.0,
            dhr_gap: options.max_dhr_gap.0,
        }
    }
}

fn share(text: &str) -> Result<Optional<f64>, String> {
    if values::is_none(text) { Ok(Optional(None)) } else { values::share(text).map(|s| Optional(Some(s))) }
}

/// `500ms`, `1.5x`, `1.25x+250ms` or `none`.
fn limit(text: &str) -> Result<Optional<TimeLimit>, String> {
    if values::is_none(text) {
        return Ok(Optional(None));
    }
    let (factor, more) = match text.split_once('x') {
        None => (0.0, Some(text)),
        Some((factor, rest)) => {
            let factor = factor.parse().ok().filter(|factor: &f64| factor.is_finite() && *factor > 0.0);
            let factor = factor.ok_or_else(|| format!("`{text}` has no positive factor before the `x`"))?;
            let more = match rest {
                "" => None,
                _ => Some(rest.strip_prefix('+').ok_or_else(|| format!("`{text}`: write 1.25x+250ms"))?),
            };
            (factor, more)
        }
    };
    let more_ms = more.map_or(Ok(0.0), values::time)? * 1000.0;
    Ok(Optional(Some(TimeLimit { factor, more_ms })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_by_example() {
        for (text, factor, more_ms) in
            [("500ms", 0.0, 500.0), ("2s", 0.0, 2000.0), ("1.5x", 1.5, 0.0), ("1.25x+250ms", 1.25, 250.0)]
        {
            assert_eq!(limit(text), Ok(Optional(Some(TimeLimit { factor, more_ms }))), "{text}");
        }
        assert_eq!(limit("none"), Ok(Optional(None)));
        for text in ["", "x", "-1x", "0x", "1.5x250ms", "1.5x+", "fast"] {
            assert!(limit(text).is_err(), "{text}");
        }
    }
}
