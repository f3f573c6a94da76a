//! The response-time controller of a phase: its load follows the response time.

use std::fmt;

use polygraph_text as text;
use serde::{Deserialize, Serialize};

/// A rule that keeps the mean response time within a window by changing the load (`docs/reference/models.md`,
/// "Response-time controller").
///
/// At the end of each sample the mean is compared with the window. Below it the load grows by a share of
/// itself; above it the load shrinks by the same share. At least one bound is given; a missing bound is
/// infinite.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rptmstat {
    /// Length of a sample in seconds, positive.
    pub sample_dur: f64,
    /// Change of the load factor as a share of itself. A negative value reverses the rule, for a device that
    /// responds faster the more load it has.
    pub load_delta: f64,
    /// Lower bound of the mean response time in seconds.
    pub rptm_min: Option<f64>,
    /// Upper bound of the mean response time in seconds, not below the lower one.
    pub rptm_max: Option<f64>,
}

impl Rptmstat {
    /// The change of the load, as a share of itself, after a sample with this mean response time in seconds; 0
    /// within the window.
    pub fn change(&self, mean: f64) -> f64 {
        if self.rptm_min.is_some_and(|min| mean < min) {
            self.load_delta
        } else if self.rptm_max.is_some_and(|max| mean > max) {
            -self.load_delta
        } else {
            0.0
        }
    }

    /// The message about a sample with this mean. `None` means that the sample had no transactions.
    pub fn report(&self, mean: Option<f64>) -> String {
        let Some(mean) = mean else { return "no transactions to judge the response time by".to_owned() };
        let change = self.change(mean);
        let mean = text::ms(Some(mean * 1000.0));
        match change {
            0.0 => format!("mean response time {mean} requires no load adjustment"),
            change => {
                let sign = if change > 0.0 { "+" } else { "" };
                format!("mean response time {mean} changes load by {sign}{}", text::percent(change, 2))
            }
        }
    }
}

impl fmt::Display for Rptmstat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = |seconds: f64| text::ms(Some(seconds * 1000.0));
        let window = match (self.rptm_min, self.rptm_max) {
            (Some(min), Some(max)) => format!("between {} and {}", bound(min), bound(max)),
            (Some(min), None) => format!("at {} or more", bound(min)),
            (None, Some(max)) => format!("at {} or less", bound(max)),
            (None, None) => "at any value".to_owned(),
        };
        let (length, change) = (text::duration(self.sample_dur), text::percent(self.load_delta, 2));
        write!(f, "samples of {length}, load changes by {change} to keep the mean response time {window}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_follows_the_window() {
        let rule =
            |load_delta, rptm_min, rptm_max| Rptmstat { sample_dur: 10.0, load_delta, rptm_min, rptm_max };
        let window = rule(0.01, Some(1.4), Some(1.5));
        for (rule, mean, change) in [
            (window, 1.26, 0.01),
            (window, 1.4, 0.0),
            (window, 1.47, 0.0),
            (window, 1.5, 0.0),
            (window, 1.67, -0.01),
            (rule(0.05, None, Some(1.5)), 0.1, 0.0),
            (rule(0.05, None, Some(1.5)), 1.6, -0.05),
            (rule(0.05, Some(1.4), None), 0.1, 0.05),
            (rule(0.05, Some(1.4), None), 9.0, 0.0),
            (rule(-0.01, Some(1.4), Some(1.5)), 1.26, -0.01),
            (rule(-0.01, Some(1.4), Some(1.5)), 1.67, 0.01),
        ] {
            assert_eq!(rule.change(mean), change, "{rule:?} at {mean}");
        }
    }

    #[test]
    fn samples_have_messages() {
        let rule = Rptmstat { sample_dur: 10.0, load_delta: 0.01, rptm_min: Some(1.4), rptm_max: Some(1.5) };
        let text = "samples of 10 s, load changes by 1 % to keep the mean response time between 1,400 ms and 1,500 ms";
        assert_eq!(rule.to_string(), text);
        let quick = Rptmstat { load_delta: 0.065, rptm_min: None, rptm_max: Some(0.005), ..rule };
        assert!(
            quick.to_string().ends_with("by 6.5 % to keep the mean response time at 5.00 ms or less"),
            "{quick}"
        );
        for (mean, text) in [
            (Some(1.4712), "mean response time 1,471 ms requires no load adjustment"),
            (Some(1.6666), "mean response time 1,667 ms changes load by -1 %"),
            (Some(0.0051), "mean response time 5.10 ms changes load by +1 %"),
            (None, "no transactions to judge the response time by"),
        ] {
            assert_eq!(rule.report(mean), text);
        }
    }
}
