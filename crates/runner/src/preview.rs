//! The offered load of a workload, by a simulation of a sample of its robots and servers through all of its phases.

use std::fmt::{self, Display, Formatter};

use polygraph_link::{Nanos, nanos};
use polygraph_pgl::Workload;
use polygraph_plan::predict::{PhasePrediction, Prediction};
use polygraph_plan::{Test, lower};
use polygraph_report::Scope;
use polygraph_report::figures::find;
use polygraph_sim::device::{Cache, Model};
use polygraph_stats::{EndReason, Interval, Record, Side};
use polygraph_traffic::Seed;
use serde::Serialize;

use crate::environment::Machine;
use crate::simulation::{Simulation, SimulationSetup};
use crate::working_set::WorkingSetFiles;
use crate::{Failure, RunSettings};

/// Requests of the sample of a larger test. They take a second or two. Hit ratios of a phase with a third of them are exact to
/// 2 percentage points: a page is repeated with all its embedded objects, so these are about 3,000 independent decisions.
const REQUESTS: f64 = 50_000.0;
/// Maximum length of simulated tests: virtual time takes real time even without requests.
const MAX_SECS: f64 = 48.0 * 3600.0;
/// Tests with more robots and servers are not simulated, because setting these up takes too long.
const MAX_AGENTS: usize = 200_000;
/// A simulation is stopped after this many times the expected length, in virtual time.
const TIME_LIMIT_FACTOR: f64 = 3.0;
/// If a larger share of requests fails, the hit ratios of the simulation are meaningless.
const MAX_FAILED: f64 = 0.05;

/// The offered load of a workload.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum OfferedPreview {
    /// The result of a simulation.
    Simulated {
        /// Share of the test's requests that was simulated.
        share: f64,
        /// Number of simulated requests.
        requests: u64,
        /// The phases in order.
        phases: Vec<OfferedPhase>,
    },
    /// No simulation was made.
    LeftOut {
        /// The reason.
        left_out: String,
    },
}

/// The offered load of a workload in a phase.
#[derive(Debug, Serialize)]
pub struct OfferedPhase {
    name: String,
    /// Offered hit ratios in percent.
    dhr: Option<f64>,
    bhr: Option<f64>,
    /// Hit ratio of documents in percent that a cache achieves which keeps everything that it may store.
    ideal_dhr: Option<f64>,
    /// Mean reply size in bytes.
    rep_size: Option<f64>,
    /// Mean number of requests per closed connection.
    conn_use: Option<f64>,
    /// Mean response time in milliseconds without device and network delay.
    resp_ms: Option<f64>,
}

impl OfferedPreview {
    /// Simulates a workload whose prediction is `plan`.
    pub fn of(workload: &Workload, plan: &Prediction, seed: u64) -> OfferedPreview {
        simulate(workload, plan, seed).unwrap_or_else(|left_out| OfferedPreview::LeftOut { left_out })
    }
}

fn simulate(workload: &Workload, plan: &Prediction, seed: u64) -> Result<OfferedPreview, String> {
    if plan.robots.agents + plan.servers.agents > MAX_AGENTS {
        return Err("there are too many robots and servers; `polygraph simulate` has no limit".into());
    }
    let test = lower(workload, "workload", Seed(seed), &Machine::WITH_SERVERS)
        .map_err(|all| all.first().map_or_else(String::new, ToString::to_string))?;
    if test.full_rate().is_none() {
        return Err("the rate of best-effort robots depends on replies".into());
    }
    if workload.phases.iter().any(|phase| phase.script.is_some() || phase.rptmstat.is_some()) {
        return Err("its load depends on replies".into());
    }
    let secs = plan.total_secs.ok_or("the end of a phase cannot be predicted")?;
    if secs > MAX_SECS {
        return Err("the test is too long; `polygraph simulate` has no limit".into());
    }
    let share = match REQUESTS / expected(&plan.phases) {
        share if share < 0.5 => share,
        share if share.is_finite() => 1.0,
        share => share,
    };
    if !share.is_normal() {
        return Err("it makes no requests".into());
    }
    let limit = nanos(TIME_LIMIT_FACTOR * secs + 60.0);
    let (requests, phases) =
        run(test.sample(share, plan.processes), seed, limit).map_err(|failure| failure.to_string())??;
    Ok(OfferedPreview::Simulated { share, requests, phases })
}

/// The expected number of requests of all phases.
fn expected(phases: &[PhasePrediction]) -> f64 {
    let mean = |phase: &PhasePrediction| phase.req_rate.map_or(0.0, |rate| (rate.beg + rate.end) / 2.0);
    phases.iter().map(|phase| mean(phase) * phase.expected_secs.unwrap_or(0.0)).sum()
}

/// Simulates a sample. Returns the number of its requests and its phases, or why the simulation is meaningless.
fn run(test: Test, seed: u64, limit: Nanos) -> Result<Result<(u64, Vec<OfferedPhase>), String>, Failure> {
    let names: Vec<String> = test.schedule.phases.iter().map(|phase| phase.name.clone()).collect();
    // One interval per phase.
    let settings = RunSettings::of_simulation(seed, 1, 1e9);
    let working_set = WorkingSetFiles::default();
    let setup = SimulationSetup::new(test, &settings, Some(Model::instant(Cache::Ideal)), &working_set);
    let (mut phases, mut requests, mut failed) = (Vec::new(), 0, 0);
    let (outcome, _) = Simulation::new(setup, None)?.run(Some(limit), |header, record| {
        if let (Side::Client, Record::Interval(interval)) = (header.side, record) {
            requests += interval.block.xacts.entered;
            failed += interval.block.failed_count();
            let name = names.get(interval.phase as usize).cloned().unwrap_or_default();
            phases.push(OfferedPhase::of(name, interval));
        }
    })?;
    Ok(match outcome.reason {
        EndReason::Finished if failed as f64 > MAX_FAILED * requests as f64 => {
            Err(format!("{failed} of {requests} requests fail without the device that the workload is for"))
        }
        EndReason::Finished => Ok((requests, phases)),
        EndReason::Fatal { why, .. } | EndReason::NoEnd(why) => Err(why),
        _ => Err("the simulation did not end in time".into()),
    })
}

impl OfferedPhase {
    fn of(name: String, interval: &Interval) -> OfferedPhase {
        let scope = Scope::of_intervals([interval]);
        let figure = |name: &str| find(name).and_then(|figure| figure.of(&scope));
        OfferedPhase {
            name,
            dhr: figure("req_dhr"),
            bhr: figure("req_bhr"),
            ideal_dhr: figure("rep_dhr"),
            rep_size: figure("rep_sz_mean"),
            conn_use: figure("conn_use_mean"),
            resp_ms: figure("resp_tm_mean"),
        }
    }
}

impl Display for OfferedPreview {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (share, requests, phases) = match self {
            OfferedPreview::LeftOut { left_out } => {
                return writeln!(f, "offered: not simulated, because {left_out}");
            }
            OfferedPreview::Simulated { share, requests, phases } => (*share, requests, phases),
        };
        let of = match share < 1.0 {
            true => format!(" of one in {:.0} requests", 1.0 / share),
            false => String::new(),
        };
        writeln!(
            f,
            "offered, by simulation{of} with a cache that keeps everything, and its hits ({requests} requests)"
        )?;
        let width = phases.iter().map(|phase| phase.name.len()).max().unwrap_or(4).max(4);
        writeln!(
            f,
            "  {:<width$} {:>8} {:>8} {:>8} {:>13} {:>14} {:>10}",
            "name", "DHR", "BHR", "hits", "reply size", "requests/conn", "response"
        )?;
        for phase in phases {
            let cell = |value: Option<f64>, digits: usize, unit: &str| {
                value.map_or("-".to_owned(), |value| format!("{value:.digits$}{unit}"))
            };
            writeln!(
                f,
                "  {:<width$} {:>8} {:>8} {:>8} {:>13} {:>14} {:>10}",
                phase.name,
                cell(phase.dhr, 1, "%"),
                cell(phase.bhr, 1, "%"),
                cell(phase.ideal_dhr, 1, "%"),
                cell(phase.rep_size.map(|bytes| bytes / 1024.0), 2, "KB"),
                cell(phase.conn_use, 1, ""),
                cell(phase.resp_ms, 0, "ms"),
            )?;
        }
        Ok(())
    }
}
