//! Resource usage over time, in bounded memory.

use std::fmt::Write as _;

use crate::Usage;

/// The most samples. When they are reached, every second one is dropped, and the interval doubles.
const SAMPLES_MAX: usize = 1200;
/// The first interval between samples, in seconds.
const STEP_S: f64 = 1.0;

/// Samples of a device's resource usage, at most 1,200 for a run of any length.
#[derive(Clone, Debug)]
pub struct UsageSeries {
    step_s: f64,
    samples: Vec<(f64, Usage)>,
}

impl Default for UsageSeries {
    fn default() -> UsageSeries {
        UsageSeries { step_s: STEP_S, samples: Vec::new() }
    }
}

impl UsageSeries {
    /// Whether a sample is due at this time, in seconds since the start of the run.
    pub fn is_due(&self, at_s: f64) -> bool {
        // Statistics intervals may end a little early.
        self.samples.last().is_none_or(|(last, _)| at_s - last >= 0.95 * self.step_s)
    }

    /// Adds a sample.
    pub fn add(&mut self, at_s: f64, usage: Usage) {
        if self.samples.len() >= SAMPLES_MAX {
            let mut keep = false;
            self.samples.retain(|_| {
                keep = !keep;
                keep
            });
            self.step_s *= 2.0;
        }
        self.samples.push((at_s, usage));
    }

    /// The largest memory of a sample, in bytes.
    pub fn resident_max(&self) -> u64 {
        self.samples.iter().map(|(_, usage)| usage.resident_bytes).max().unwrap_or(0)
    }

    /// The samples as a table with a heading. Processor time counts from `cpu_before`. `None` without samples.
    pub fn csv(&self, cpu_before: f64) -> Option<String> {
        let mut out = String::from("seconds,cpu_seconds,resident_bytes,processes\n");
        for (at_s, usage) in &self.samples {
            let cpu = usage.cpu_seconds - cpu_before;
            let _ = writeln!(out, "{at_s:.3},{cpu:.3},{},{}", usage.resident_bytes, usage.processes);
        }
        (!self.samples.is_empty()).then_some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_week_is_as_small_as_an_hour() {
        let mut series = UsageSeries::default();
        let mut at_s = 0.0;
        while at_s < 7.0 * 86_400.0 {
            if series.is_due(at_s) {
                let resident_bytes = at_s as u64;
                series.add(at_s, Usage { cpu_seconds: at_s + 5.0, resident_bytes, processes: 1 });
            }
            at_s += 1.0;
        }
        assert!((SAMPLES_MAX / 3..=SAMPLES_MAX).contains(&series.samples.len()), "{}", series.samples.len());
        let steps: Vec<f64> = series.samples.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        assert!(steps.iter().all(|step| *step <= series.step_s), "no stretch is left out");
        assert!(at_s - series.samples.last().unwrap().0 <= series.step_s);
        let csv = series.csv(5.0).unwrap();
        assert_eq!(csv.lines().nth(1), Some("0.000,0.000,0,1"));
        assert_eq!(UsageSeries::default().csv(0.0), None);
    }
}
