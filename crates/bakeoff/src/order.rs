//! What comes next in a bake-off: a function of the plan and of what has happened.
//!
//! First the bench is checked. Then the devices take their turns, each with all of its runs, so that a cache is
//! filled once: its rates in the order of the plan; then rates that need another run (a repeat that is wanted, a
//! run that was failed or invalid) in the same order, as long as they have attempts left; then, if the claimed
//! rate was passed and the claim is to be raised, the higher rates in the same manner.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::entry::AttemptStatus;
use crate::journal::{BakeoffProgress, DeviceProgress};
use crate::plan::{BakeoffPlan, BakeoffRules, Contestant};

/// Seconds that a run takes beyond its phases: to start, to finish transactions, to write the report.
const OVERHEAD_S: f64 = 6.0;
/// What filling a cache is taken to need before any was filled, in seconds.
const FILL_GUESS_S: f64 = 30.0;

/// Something to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BakeoffStep {
    /// Measure the throughput of the bench's network.
    Network,
    /// Run without a proxy at the top rate.
    NoProxy,
    /// Run a device, which must be up and full.
    Run {
        /// Its place in the plan.
        device: usize,
        /// Requests per second.
        rate: f64,
        /// Counted from 1 for each rate.
        attempt: u32,
    },
}

/// What comes next; `None` if all is done, or nothing can be done because the bench itself fails.
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

/// Whether the bench stands the top rate without a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BenchCapacity {
    /// It does.
    Stands,
    /// It was not found out yet.
    Unknown,
    /// It does not, and has no attempts left.
    Fails,
}

/// Whether the bench stands the top rate of a plan; what is not to be checked is taken for granted.
pub fn bench(plan: &BakeoffPlan, progress: &BakeoffProgress) -> BenchCapacity {
    let top = plan.top_rate();
    // A run at a higher rate answers the question too.
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
        // Of those with the fewest runs the first: nobody gets a second one before all had a first.
        let rate = open.min_by_key(|rate| standing.at(**rate).count())?;
        Some((*rate, standing.at(*rate).count() as u32 + 1))
    };
    wanted(&device.rates).or_else(|| {
        let raise = device.raise.as_ref().filter(|_| standing.passed(device.claimed) > 0)?;
        wanted(&raise.rates)
    })
}

/// The claim that counts: the raised one if the first was met.
pub fn claim(device: &Contestant, standing: &DeviceProgress) -> f64 {
    match &device.raise {
        Some(raise) if standing.passed(device.claimed) > 0 => raise.claimed,
        _ => device.claimed,
    }
}

/// All steps that are left if everything goes well: what [`next`] says again and again, without asking it for each.
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

/// The runs at each rate, and how many of them were passed. Rates are compared bit by bit: they come from one plan.
fn counted(standing: &DeviceProgress) -> HashMap<u64, (u32, u32)> {
    let mut runs = HashMap::new();
    for ended in &standing.ended {
        let (count, passed) = runs.entry(ended.rate.to_bits()).or_insert((0, 0));
        *count += 1;
        *passed += u32::from(ended.status == AttemptStatus::Passed);
    }
    runs
}

/// The runs of a device that are left if all are passed.
struct Left<'a> {
    rules: &'a BakeoffRules,
    /// By the bits of the rate: runs, and passed ones.
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

/// Seconds that steps take, with rests and fillings; `up` is the device that is up and full already.
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
