//! Resource usage over time, in bounded memory.

use std::fmt::Write as _;

use crate::Usage;
use crate::usage::io_pressure_seconds;

/// The most samples. When they are reached, every second one is dropped, and the interval doubles.
const SAMPLES_MAX: usize = 1200;
/// The first interval between samples, in seconds.
const STEP_S: f64 = 1.0;

/// Samples of a device's resource usage, at most 1,200 for a run of any length.
#[derive(Clone, Debug)]
pub struct UsageSeries {
    step_s: f64,
    samples: Vec<UsageSample>,
}

#[derive(Clone, Copy, Debug)]
struct UsageSample {
    at_s: f64,
    usage: Usage,
    /// How long threads of the host waited for disks until now.
    io_pressure_s: Option<f64>,
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
        self.samples.last().is_none_or(|last| at_s - last.at_s >= 0.95 * self.step_s)
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
        self.samples.push(UsageSample { at_s, usage, io_pressure_s: io_pressure_seconds() });
    }

    /// The largest memory of a sample, in bytes.
    pub fn resident_max(&self) -> u64 {
        self.samples.iter().map(|sample| sample.usage.resident_bytes).max().unwrap_or(0)
    }

    /// The samples as a table with a heading. Processor time counts from `cpu_before`. `None` without samples.
    pub fn csv(&self, cpu_before: f64) -> Option<String> {
        let mut out = String::from(
            "seconds,cpu_seconds,resident_bytes,processes,waiting_seconds,io_pressure_seconds\n",
        );
        for UsageSample { at_s, usage, io_pressure_s } in &self.samples {
            let Usage { cpu_seconds, resident_bytes, processes, waiting_seconds } = usage;
            let cpu = cpu_seconds - cpu_before;
            let io = io_pressure_s.map_or_else(String::new, |seconds| format!("{seconds:.3}"));
            let _ =
                writeln!(out, "{at_s:.3},{cpu:.3},{resident_bytes},{processes},{waiting_seconds:.3},{io}");
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
                let usage = Usage {
                    cpu_seconds: at_s + 5.0,
                    resident_bytes,
                    processes: 1,
                    waiting_seconds: at_s / 8.0,
                };
                series.add(at_s, usage);
            }
            at_s += 1.0;
        }
        assert!((SAMPLES_MAX / 3..=SAMPLES_MAX).contains(&series.samples.len()), "{}", series.samples.len());
        let steps: Vec<f64> = series.samples.windows(2).map(|pair| pair[1].at_s - pair[0].at_s).collect();
        assert!(steps.iter().all(|step| *step <= series.step_s), "no stretch is left out");
        assert!(at_s - series.samples.last().unwrap().at_s <= series.step_s);
        let csv = series.csv(5.0).unwrap();
        let second = series.samples[1].at_s;
        let row = format!("{second:.3},{second:.3},{second:.0},1,{:.3},", second / 8.0);
        assert!(csv.lines().nth(1).unwrap().starts_with("0.000,0.000,0,1,0.000,"), "{csv}");
        assert!(csv.lines().nth(2).unwrap().starts_with(&row), "{row}");
        assert_eq!(UsageSeries::default().csv(0.0), None);
    }
}
