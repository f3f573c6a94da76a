//! The next step of a bake-off, as a function of the plan and the events so far.
//!
//! First the bench is checked. Then each device makes all of its runs before the next device starts, so that its cache
//! is filled only once: the rates in the order of the plan; then rates that need another run (a planned repeat, or a
//! run that failed or was invalid) in the same order, as long as attempts remain; then, if the claimed rate was passed
//! and the claim is to be raised, the higher rates in the same way.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::entry::AttemptStatus;
use crate::journal::{BakeoffProgress, DeviceProgress};
use crate::plan::{BakeoffPlan, BakeoffRules, Contestant};

/// Seconds that a run takes in addition to its phases: to start, to finish transactions and to write the report.
const OVERHEAD_S: f64 = 6.0;
/// Assumed time to fill a cache before any cache was filled, in seconds.
const FILL_GUESS_S: f64 = 30.0;

/// A step of a bake-off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BakeoffStep {
    /// Measure the throughput of the bench's network.
    Network,
    /// Run without a proxy at the top rate.
    NoProxy,
    /// Run a device, which must be started and filled before.
    Run {
        /// Index of the device in the plan.
        device: usize,
        /// Requests per second.
        rate: f64,
        /// Counted from 1 for each rate.
        attempt: u32,
    },
}

/// The next step; `None` if all steps are done, or if the bench itself fails.
pub fn next(plan: &BakeoffPlan, progress: &BakeoffProgress) -> Option<BakeoffStep> {
    if plan.checks.network_s.is_some() && progress.network.is_none() {
        return Some(BakeoffStep::Network);
    }
    match bench(plan, progress) {
        BenchCapacity::Unknown => return Some(BakeoffStep::NoProxy),
        BenchCapacity::Fails => return None,
        BenchCapacity::Stands => {}
    }
    let nobody = DeviceProgress::default();
    plan.devices.iter().enumerate().find_map(|(index, device)| {
        let standing = progress.devices.get(&device.name).unwrap_or(&nobody);
        let (rate, attempt) = next_rate(plan, device, standing)?;
        Some(BakeoffStep::Run { device: index, rate, attempt })
    })
}

/// Whether the bench sustains the top rate without a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BenchCapacity {
    /// The bench sustains the rate.
    Stands,
    /// Not measured yet.
    Unknown,
    /// The bench does not sustain the rate, and no attempts remain.
    Fails,
}

/// Whether the bench sustains the top rate of a plan. Without this check in the plan, it counts as sustained.
pub fn bench(plan: &BakeoffPlan, progress: &BakeoffProgress) -> BenchCapacity {
    let top = plan.top_rate();
    // A run at a higher rate counts as well.
    let runs: Vec<AttemptStatus> =
        progress.no_proxy.iter().filter(|(rate, ..)| *rate >= top).map(|(_, _, status, _)| *status).collect();
    if plan.checks.no_proxy_s.is_none() || runs.contains(&AttemptStatus::Passed) {
        BenchCapacity::Stands
    } else if runs.len() < plan.rules.attempts as usize {
        BenchCapacity::Unknown
    } else {
        BenchCapacity::Fails
    }
}

fn next_rate(plan: &BakeoffPlan, device: &Contestant, standing: &DeviceProgress) -> Option<(f64, u32)> {
    let wanted = |rates: &[f64]| {
        let open = rates.iter().filter(|rate| {
            standing.passed(**rate) < plan.rules.repeats as usize
                && standing.at(**rate).count() < plan.rules.attempts as usize
        });
        // The first of the rates with the fewest runs, so no rate gets a second run before all rates had one.
        let rate = open.min_by_key(|rate| standing.at(**rate).count())?;
        Some((*rate, standing.at(*rate).count() as u32 + 1))
    };
    wanted(&device.rates).or_else(|| {
        let raise = device.raise.as_ref().filter(|_| standing.passed(device.claimed) > 0)?;
        wanted(&raise.rates)
    })
}

/// The claim in effect: the raised claim if the first claim was met.
pub fn claim(device: &Contestant, standing: &DeviceProgress) -> f64 {
    match &device.raise {
        Some(raise) if standing.passed(device.claimed) > 0 => raise.claimed,
        _ => device.claimed,
    }
}

/// All remaining steps if every run is passed: the same as repeated calls of [`next`], but faster.
pub fn remaining(plan: &BakeoffPlan, progress: &BakeoffProgress) -> Vec<BakeoffStep> {
    let mut steps = Vec::new();
    if plan.checks.network_s.is_some() && progress.network.is_none() {
        steps.push(BakeoffStep::Network);
    }
    match bench(plan, progress) {
        BenchCapacity::Unknown => steps.push(BakeoffStep::NoProxy),
        BenchCapacity::Fails => return steps,
        BenchCapacity::Stands => {}
    }
    let nobody = DeviceProgress::default();
    for (index, device) in plan.devices.iter().enumerate() {
        let standing = progress.devices.get(&device.name).unwrap_or(&nobody);
        let mut left = Left { rules: &plan.rules, runs: counted(standing), steps: Vec::new() };
        left.all_of(&device.rates);
        if let Some(raise) = device.raise.as_ref().filter(|_| left.of(device.claimed).1 > 0) {
            left.all_of(&raise.rates);
        }
        let step = |(rate, attempt)| BakeoffStep::Run { device: index, rate, attempt };
        steps.extend(left.steps.into_iter().map(step));
    }
    steps
}

/// The number of runs and of passed runs at each rate. Rates are compared bit by bit, because they come from one plan.
fn counted(standing: &DeviceProgress) -> HashMap<u64, (u32, u32)> {
    let mut runs = HashMap::new();
    for ended in &standing.ended {
        let (count, passed) = runs.entry(ended.rate.to_bits()).or_insert((0, 0));
        *count += 1;
        *passed += u32::from(ended.status == AttemptStatus::Passed);
    }
    runs
}

/// The remaining runs of a device if all of them are passed.
struct Left<'a> {
    rules: &'a BakeoffRules,
    /// Runs and passed runs by the bits of the rate.
    runs: HashMap<u64, (u32, u32)>,
    /// Rates with the numbers of the attempts.
    steps: Vec<(f64, u32)>,
}

impl Left<'_> {
    fn of(&self, rate: f64) -> (u32, u32) {
        self.runs.get(&rate.to_bits()).copied().unwrap_or_default()
    }

    fn is_open(&self, rate: f64) -> bool {
        let (count, passed) = self.of(rate);
        passed < self.rules.repeats && count < self.rules.attempts
    }

    /// Adds all runs at these rates: those with the fewest runs first, then in the order of the plan.
    fn all_of(&mut self, rates: &[f64]) {
        let open = rates.iter().enumerate().filter(|(_, rate)| self.is_open(**rate));
        let mut heap: BinaryHeap<_> = open.map(|(at, rate)| Reverse((self.of(*rate).0, at))).collect();
        while let Some(Reverse((count, at))) = heap.pop() {
            let (rate, passed) = (rates[at], self.of(rates[at]).1);
            self.steps.push((rate, count + 1));
            self.runs.insert(rate.to_bits(), (count + 1, passed + 1));
            if self.is_open(rate) {
                heap.push(Reverse((count + 1, at)));
            }
        }
    }
}

/// Estimated seconds of steps, including pauses and fills; `up` is the device that is already started and filled.
pub fn duration_s(
    plan: &BakeoffPlan,
    progress: &BakeoffProgress,
    steps: &[BakeoffStep],
    up: Option<usize>,
) -> f64 {
    let fills: Vec<f64> =
        progress.devices.values().flat_map(|standing| &standing.fills).map(|fill| fill.seconds).collect();
    let typical =
        if fills.is_empty() { FILL_GUESS_S } else { fills.iter().sum::<f64>() / fills.len() as f64 };
    let (mut up, mut total) = (up, 0.0);
    for step in steps {
        total += match step {
            BakeoffStep::Network => plan.checks.network_s.unwrap_or(0.0),
            BakeoffStep::NoProxy => plan.checks.no_proxy_s.unwrap_or(0.0) + plan.workload.cool_s + OVERHEAD_S,
            BakeoffStep::Run { device, .. } => {
                let fill = if up == Some(*device) { 0.0 } else { typical };
                up = Some(*device);
                fill + plan.rules.idle_gap_s + plan.run_s() + OVERHEAD_S
            }
        };
    }
    total
}

#[cfg(test)]
mod tests;
