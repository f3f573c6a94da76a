//! What comes next in a bake-off: a function of the plan and of what has happened.
//!
//! First the bench is checked. Then the devices take their turns, each with all of its runs, so that a cache is
//! filled once: its rates in the order of the plan; then rates that need another run (a repeat that is wanted, a
//! run that was failed or invalid) in the same order, as long as they have attempts left; then, if the claimed
//! rate was passed and the claim is to be raised, the higher rates in the same manner.

use crate::entry::Status;
use crate::journal::{Ended, Progress, Standing};
use crate::plan::{Contestant, Plan};

/// Seconds that a run takes beyond its phases: to start, to finish transactions, to write the report.
const OVERHEAD_S: f64 = 6.0;
/// What filling a cache is taken to need before any was filled, in seconds.
const FILL_GUESS_S: f64 = 30.0;

/// Something to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
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
pub fn next(plan: &Plan, progress: &Progress) -> Option<Step> {
    if plan.checks.network_s.is_some() && progress.network.is_none() {
        return Some(Step::Network);
    }
    match bench(plan, progress) {
        Bench::Unknown => return Some(Step::NoProxy),
        Bench::Fails => return None,
        Bench::Stands => {}
    }
    let nobody = Standing::default();
    plan.devices.iter().enumerate().find_map(|(index, device)| {
        let standing = progress.devices.get(&device.name).unwrap_or(&nobody);
        let (rate, attempt) = next_rate(plan, device, standing)?;
        Some(Step::Run { device: index, rate, attempt })
    })
}

/// Whether the bench stands the top rate without a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bench {
    /// It does.
    Stands,
    /// It was not found out yet.
    Unknown,
    /// It does not, and has no attempts left.
    Fails,
}

/// Whether the bench stands the top rate of a plan; what is not to be checked is taken for granted.
pub fn bench(plan: &Plan, progress: &Progress) -> Bench {
    let top = plan.top_rate();
    // A run at a higher rate answers the question too.
    let runs: Vec<Status> =
        progress.no_proxy.iter().filter(|(rate, ..)| *rate >= top).map(|(_, _, status, _)| *status).collect();
    if plan.checks.no_proxy_s.is_none() || runs.contains(&Status::Passed) {
        Bench::Stands
    } else if runs.len() < plan.rules.attempts as usize {
        Bench::Unknown
    } else {
        Bench::Fails
    }
}

fn next_rate(plan: &Plan, device: &Contestant, standing: &Standing) -> Option<(f64, u32)> {
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
pub fn claim(device: &Contestant, standing: &Standing) -> f64 {
    match &device.raise {
        Some(raise) if standing.passed(device.claimed) > 0 => raise.claimed,
        _ => device.claimed,
    }
}

/// All steps that are left if everything goes well.
pub fn remaining(plan: &Plan, progress: &Progress) -> Vec<Step> {
    let mut progress = progress.clone();
    let mut steps = Vec::new();
    while let Some(step) = next(plan, &progress) {
        match step {
            Step::Network => progress.network = Some((0.0, 0.0)),
            Step::NoProxy => {
                let run = (plan.top_rate(), String::new(), Status::Passed, String::new());
                progress.no_proxy.push(run);
            }
            Step::Run { device, rate, attempt } => {
                let name = plan.devices[device].name.clone();
                progress.devices.entry(name).or_default().ended.push(Ended {
                    rate,
                    attempt,
                    run: String::new(),
                    status: Status::Passed,
                    reason: String::new(),
                    cpu_s: None,
                    figures: None,
                });
            }
        }
        steps.push(step);
    }
    steps
}

/// Seconds that steps take, with rests and fillings; `up` is the device that is up and full already.
pub fn duration_s(plan: &Plan, progress: &Progress, steps: &[Step], up: Option<usize>) -> f64 {
    let fills: Vec<f64> =
        progress.devices.values().flat_map(|standing| &standing.fills).map(|fill| fill.seconds).collect();
    let typical =
        if fills.is_empty() { FILL_GUESS_S } else { fills.iter().sum::<f64>() / fills.len() as f64 };
    let (mut up, mut total) = (up, 0.0);
    for step in steps {
        total += match step {
            Step::Network => plan.checks.network_s.unwrap_or(0.0),
            Step::NoProxy => plan.checks.no_proxy_s.unwrap_or(0.0) + plan.workload.cool_s + OVERHEAD_S,
            Step::Run { device, .. } => {
                let fill = if up == Some(*device) { 0.0 } else { typical };
                up = Some(*device);
                fill + plan.rules.idle_gap_s + plan.run_s() + OVERHEAD_S
            }
        };
    }
    total
}

/// A mixed low/high order of rates, as at the bake-off: the lowest, the highest, the second lowest and so on.
pub fn mixed(rates: &[f64]) -> Vec<f64> {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (mut low, mut high) = (0, sorted.len());
    let mut order = Vec::with_capacity(sorted.len());
    while low < high {
        order.push(sorted[low]);
        low += 1;
        if low < high {
            high -= 1;
            order.push(sorted[high]);
        }
    }
    order
}

#[cfg(test)]
mod tests;
