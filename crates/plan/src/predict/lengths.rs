//! The expected lengths of phases that end by a count: they follow on average from the mix, the rates and the
//! factors.

use polygraph_pgl::types::{Goal, Phase, Robot};
use polygraph_pgl::{Compat, Workload};

use super::traffic::mean_over;
use super::{ContentMix, OfferedLoad, PhasePrediction};

/// The number of steps in which changing factors are followed.
const STEPS: usize = 100;
/// Seconds after which a goal counts as never met: a year.
const NEVER_SECS: f64 = 365.0 * 86_400.0;
/// The least progress at which factors are evaluated that rise from zero along a count, as in a run.
const LEAST_PROGRESS: f64 = 0.01;

/// What one client process does.
struct Counting {
    /// Requests per second with all factors at 1.
    rate: f64,
    recurrence: f64,
    /// Share of requests that are not basic GET requests, with all factors at 1.
    special: f64,
    /// Bytes of cachable objects, and cachable objects, per request.
    bytes: f64,
    objects: f64,
}

/// Counts per second.
#[derive(Clone, Copy)]
struct CountRates {
    xactions: f64,
    bytes: f64,
    objects: f64,
}

impl Counting {
    fn new(workload: &Workload, mix: &ContentMix, load: &OfferedLoad, processes: f64) -> Option<Counting> {
        Some(Counting {
            rate: load.req_rate? / processes,
            recurrence: mean_over(workload, |robot| robot.recurrence),
            special: mean_over(workload, special),
            bytes: mix.mean_bytes? * mix.cachable_bytes,
            objects: mix.cachable,
        })
    }

    /// The counts per second at `progress` of a phase.
    fn at(&self, plan: &PhasePrediction, progress: f64) -> CountRates {
        let xactions = self.rate * plan.populus.at(progress) * plan.load.at(progress);
        // Only basic requests for new objects fill the cache.
        let new = 1.0 - (self.recurrence * plan.recur.at(progress)).min(1.0);
        let fills = xactions * new * (1.0 - self.special * plan.special_msg.at(progress));
        CountRates { xactions, bytes: fills * self.bytes, objects: fills * self.objects }
    }

    /// The mean over a phase.
    fn mean(&self, plan: &PhasePrediction, of: impl Fn(CountRates) -> f64) -> f64 {
        let middle = |step: usize| (step as f64 + 0.5) / STEPS as f64;
        (0..STEPS).map(|step| of(self.at(plan, middle(step)))).sum::<f64>() / STEPS as f64
    }

    /// Seconds until `goal` is counted, while the factors follow the count.
    fn until(&self, plan: &PhasePrediction, goal: f64, of: impl Fn(CountRates) -> f64) -> f64 {
        let slice = goal / STEPS as f64;
        let middle = |step: usize| ((step as f64 + 0.5) / STEPS as f64).max(LEAST_PROGRESS);
        (0..STEPS).map(|step| slice / of(self.at(plan, middle(step)))).sum()
    }
}

/// Share of a robot's requests that are not basic GET requests.
fn special(robot: &Robot) -> f64 {
    let plain = |items: &[(String, f64)], word: &str| {
        let share: f64 = items.iter().filter(|(item, _)| item == word).map(|(_, share)| share).sum();
        if items.is_empty() { 1.0 } else { share }
    };
    1.0 - plain(&robot.req_types.items, "Basic") * plain(&robot.req_methods.items, "GET")
}

/// Fills in the expected lengths and starts of the phases. `processes` is the number of processes that share
/// the robots.
pub(super) fn fill_in(
    workload: &Workload,
    mix: &ContentMix,
    load: &OfferedLoad,
    processes: usize,
    plans: &mut [PhasePrediction],
) {
    let counting = Counting::new(workload, mix, load, processes.max(1) as f64);
    let mut set = WorkingSetGrowth::of(workload);
    let mut start = Some(0.0);
    for (phase, plan) in workload.phases.iter().zip(plans) {
        if workload.compat == Some(Compat::V4_9) {
            // The cap counts the objects of the current phase.
            set.objects = 0.0;
        }
        plan.start_secs = start;
        plan.expected_secs =
            plan.duration_secs.or_else(|| expected(phase, plan, counting.as_ref()?, &set, start?));
        let Some((begin, length)) = start.zip(plan.expected_secs) else {
            start = None;
            continue;
        };
        start = Some(begin + length);
        if let Some(counting) = &counting {
            set.objects += counting.mean(plan, |pace| pace.objects) * length;
        }
    }
}

/// The growth of the working set.
struct WorkingSetGrowth {
    /// Objects so far.
    objects: f64,
    cap: Option<f64>,
    /// Seconds after the start at which the set freezes.
    length: Option<f64>,
}

impl WorkingSetGrowth {
    fn of(workload: &Workload) -> WorkingSetGrowth {
        let length = workload.working_set_length.map(|time| time.secs());
        let cap = workload.working_set_cap.map(f64::from).filter(|_| length.is_none());
        WorkingSetGrowth { objects: 0.0, cap, length }
    }
}

/// Expected length, in seconds, of a phase that starts at `start`.
fn expected(
    phase: &Phase,
    plan: &PhasePrediction,
    counting: &Counting,
    set: &WorkingSetGrowth,
    start: f64,
) -> Option<f64> {
    // The effect of scripts and response-time controllers depends on replies.
    if phase.script.is_some() || phase.rptmstat.is_some() {
        return None;
    }
    let own = by_goal(phase.goal.as_deref()?, plan, counting)?;
    let frozen = match (phase.wait_wss_freeze, set.cap, set.length) {
        (true, Some(cap), _) => (cap - set.objects).max(0.0) / counting.mean(plan, |pace| pace.objects),
        (true, None, Some(length)) => length - start,
        _ => 0.0,
    };
    Some(own.max(frozen)).filter(|secs| *secs < NEVER_SECS)
}

/// Seconds until the first positive goal is met.
fn by_goal(goal: &Goal, plan: &PhasePrediction, counting: &Counting) -> Option<f64> {
    let time = goal.duration.map(|time| time.secs());
    let xactions = goal.xactions.map(|count| counting.until(plan, f64::from(count), |pace| pace.xactions));
    let fill = goal.fill_size.map(|size| counting.until(plan, size.0 as f64, |pace| pace.bytes));
    [time, xactions, fill].into_iter().flatten().reduce(f64::min)
}
