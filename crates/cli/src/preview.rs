//! What a workload will offer: a short simulation of a sample of its robots and servers, for the whole of its phases.

use std::fmt::{self, Display, Formatter};

use polygraph_link::{Nanos, nanos};
use polygraph_pgl::Workload;
use polygraph_plan::predict::{PhasePrediction, Prediction};
use polygraph_plan::{Test, lower};
use polygraph_report::Scope;
use polygraph_report::figures::find;
use polygraph_sim::device::{Cache, Model};
use polygraph_stats::{EndReason, Interval, Record, Side};
use polygraph_traffic::{Distr, Seed};
use serde::Serialize;

use crate::cmd::simulate::EPOCH;
use crate::environment::Machine;
use crate::options::CommonOptions;
use crate::simulation::{Setup, Simulation};
use crate::working_set::Files;
use crate::{Failure, jobs};

/// Requests that are simulated of a larger test. That takes a second or two, and hit ratios of a phase with a third of them are
/// good for 2 points: a page is repeated with all that is in it, so they are 3,000 decisions.
const REQUESTS: f64 = 50_000.0;
/// Time costs something even where nothing is asked: longer tests are not simulated.
const LONGEST_SECS: f64 = 48.0 * 3600.0;
/// With more robots and servers even setting them up takes too long.
const MOST_AGENTS: usize = 200_000;
/// A simulation that takes so many times as long as expected does not come to its end.
const PATIENCE: f64 = 3.0;
/// A simulation in which a larger share of requests fails says nothing about hits.
const MOST_FAILED: f64 = 0.05;

/// What is offered.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Preview {
    /// It was simulated.
    Made {
        /// Share of the requests that was simulated.
        share: f64,
        /// Requests that were simulated.
        requests: u64,
        /// The phases in order.
        phases: Vec<Phase>,
    },
    /// It was not.
    LeftOut {
        /// Why.
        left_out: String,
    },
}

/// What is offered in a phase.
#[derive(Debug, Serialize)]
pub struct Phase {
    name: String,
    /// Offered hit ratios in percent.
    dhr: Option<f64>,
    bhr: Option<f64>,
    /// Mean size of replies in bytes.
    rep_size: Option<f64>,
    /// Mean number of requests of the connections that were closed.
    conn_use: Option<f64>,
    /// Mean response time in milliseconds, if device and network take no time.
    resp_ms: Option<f64>,
}

impl Preview {
    /// Simulates the workload that was planned so.
    pub fn of(workload: &Workload, plan: &Prediction, seed: u64) -> Preview {
        simulate(workload, plan, seed).unwrap_or_else(|left_out| Preview::LeftOut { left_out })
    }
}

fn simulate(workload: &Workload, plan: &Prediction, seed: u64) -> Result<Preview, String> {
    if plan.robots.agents + plan.servers.agents > MOST_AGENTS {
        return Err("there are too many robots and servers; polygraph simulate does it".into());
    }
    let test = lower(workload, "workload", Seed(seed), &Machine)
        .map_err(|all| all.first().map_or_else(String::new, ToString::to_string))?;
    if test.full_rate().is_none() {
        return Err("how fast best-effort robots are depends on replies".into());
    }
    if workload.phases.iter().any(|phase| phase.script.is_some() || phase.rptmstat.is_some()) {
        return Err("its load follows replies".into());
    }
    let secs = plan.total_secs.ok_or("nobody knows when all phases end")?;
    if secs > LONGEST_SECS {
        return Err("it takes too long; polygraph simulate does it".into());
    }
    let share = match REQUESTS / expected(&plan.phases) {
        share if share < 0.5 => share,
        share if share.is_finite() => 1.0,
        share => share,
    };
    if !share.is_normal() {
        return Err("no requests are made".into());
    }
    let limit = nanos(PATIENCE * secs + 60.0);
    let (requests, phases) =
        run(test.sample(share, plan.processes), seed, limit).map_err(|failure| failure.to_string())??;
    Ok(Preview::Made { share, requests, phases })
}

/// Requests that the phases are expected to make.
fn expected(phases: &[PhasePrediction]) -> f64 {
    let mean = |phase: &PhasePrediction| phase.req_rate.map_or(0.0, |rate| (rate.beg + rate.end) / 2.0);
    phases.iter().map(|phase| mean(phase) * phase.expected_secs.unwrap_or(0.0)).sum()
}

/// Simulates a sample: the number of its requests, and its phases; or why it says nothing.
fn run(test: Test, seed: u64, limit: Nanos) -> Result<Result<(u64, Vec<Phase>), String>, Failure> {
    let names: Vec<String> = test.schedule.phases.iter().map(|phase| phase.name.clone()).collect();
    let common = common(seed);
    let setup = Setup {
        test,
        places: None,
        common: &common,
        device: Some(Model::instant(Cache::Ideal)),
        delay: 0,
        tolerance: polygraph_robot::Tolerance::default(),
        server_tolerance: jobs::Tolerance { any_url: false, foreign_messages: false },
        working_set: &Files::default(),
        identities: None,
        epoch: EPOCH,
    };
    let (mut phases, mut requests, mut failed) = (Vec::new(), 0, 0);
    let (outcome, _) = Simulation::new(setup, None)?.run(Some(limit), |header, record| {
        if let (Side::Client, Record::Interval(interval)) = (header.side, record) {
            requests += interval.block.xacts.entered;
            failed += interval.block.failed_count();
            let name = names.get(interval.phase as usize).cloned().unwrap_or_default();
            phases.push(Phase::of(name, interval));
        }
    })?;
    Ok(match outcome.reason {
        EndReason::Finished if failed as f64 > MOST_FAILED * requests as f64 => {
            Err(format!("{failed} of {requests} requests fail without the device that the workload is for"))
        }
        EndReason::Finished => Ok((requests, phases)),
        EndReason::Fatal(why) => Err(why),
        _ => Err("it did not come to its end".into()),
    })
}

/// The options of a simulation.
fn common(seed: u64) -> CommonOptions {
    CommonOptions {
        goal: None,
        pconn_use_lmt: Distr::Const(1.0),
        http_version: 1,
        idle_tout: crate::options::Optional(None),
        verb_lvl: 0,
        label: String::new(),
        // A phase is one interval.
        stats_cycle: 1e9,
        loops: Some(1),
        workers: 0,
        global_rng_seed: seed,
        unique_world: false,
        local_rng_seed: 1,
        timer_quantum: 0.0,
        dump: Default::default(),
    }
}

impl Phase {
    fn of(name: String, interval: &Interval) -> Phase {
        let scope = Scope::of_intervals([interval]);
        let figure = |name: &str| find(name).and_then(|figure| figure.of(&scope));
        Phase {
            name,
            dhr: figure("req_dhr"),
            bhr: figure("req_bhr"),
            rep_size: figure("rep_sz_mean"),
            conn_use: figure("conn_use_mean"),
            resp_ms: figure("resp_tm_mean"),
        }
    }
}

impl Display for Preview {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (share, requests, phases) = match self {
            Preview::LeftOut { left_out } => return writeln!(f, "offered: not simulated: {left_out}"),
            Preview::Made { share, requests, phases } => (*share, requests, phases),
        };
        let of = match share < 1.0 {
            true => format!(" of a sample, one in {:.0} requests,", 1.0 / share),
            false => String::new(),
        };
        writeln!(f, "offered, by a simulation{of} with a cache that keeps everything ({requests} requests)")?;
        let width = phases.iter().map(|phase| phase.name.len()).max().unwrap_or(4).max(4);
        writeln!(
            f,
            "  {:<width$} {:>8} {:>8} {:>13} {:>14} {:>10}",
            "name", "DHR", "BHR", "reply size", "requests/conn", "response"
        )?;
        for phase in phases {
            let cell = |value: Option<f64>, digits: usize, unit: &str| {
                value.map_or("-".to_owned(), |value| format!("{value:.digits$}{unit}"))
            };
            writeln!(
                f,
                "  {:<width$} {:>8} {:>8} {:>13} {:>14} {:>10}",
                phase.name,
                cell(phase.dhr, 1, "%"),
                cell(phase.bhr, 1, "%"),
                cell(phase.rep_size.map(|bytes| bytes / 1024.0), 2, "KB"),
                cell(phase.conn_use, 1, ""),
                cell(phase.resp_ms, 0, "ms"),
            )?;
        }
        Ok(())
    }
}
