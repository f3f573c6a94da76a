//! `polygraph run`: both sides on this machine against a device you name.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use polygraph_engine::RunOutcome;
use polygraph_plan::{Goal, Schedule};
use polygraph_report::text;
use polygraph_stats::EndReason;
use polygraph_traffic::{Distr, Popularity};

use crate::bench::BenchOptions;
use crate::console;
use crate::device::{self, DeviceOptions};
use crate::expect::Expectations;
use crate::forecast::{Forecast, forecast};
use crate::names::{NameService, Names, name_service};
use crate::options::{Optional, WorkingSetOptions, host_port, optional_time};
use crate::outcome_json;
use crate::preflight::Preflight;
use crate::result::RunResult;
use crate::source::Route;
use crate::working_set::Files;
use crate::{Done, Failure, exit};

/// Options of `run`.
#[derive(Parser, Clone, Debug)]
#[command(
    rename_all = "snake_case",
    mut_arg("xact_think", |arg| arg.default_value("norm:3s,1.5s")),
    mut_arg("device", |arg| arg.conflicts_with_all(["proxy", "surrogate", "no_proxy"])),
    mut_arg("config", |arg| arg.conflicts_with_all([
        "origin_address", "origin_port", "cool_phase", "xact_think", "rep_sz", "robots", "req_rate", "rep_cachable",
        "dhr", "pop_model", "tmp_loc", "repeat_delay", "launch_win", "local_addrs", "xact_lifetime", "goal",
        "pconn_use_lmt", "http_version",
    ])),
    after_help = "The defaults are PolyMix-1: 80 % of the replies cachable, 55 % hits offered, 13 KB mean size,\n\
        servers that think for 3 s. Example:\n  \
        polygraph run --proxy 127.0.0.1:3128 --req_rate 100/sec --goal 5min\n  \
         polygraph run --device squid --device_opt mem=1GB --config workloads/polymix-1.pg --set ReqRate=100/sec",
    group = clap::ArgGroup::new("target").args(["proxy", "surrogate", "no_proxy", "device", "config"]).multiple(true).required(true)
)]
pub struct Args {
    /// The proxy under test
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port)]
    proxy: Option<String>,
    /// The surrogate or balancer under test: robots connect there and name the servers in `Host`
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port, conflicts_with = "proxy")]
    surrogate: Option<String>,
    /// No proxy: robots ask the servers themselves, which shows what the bench can do
    #[arg(long, conflicts_with_all = ["proxy", "surrogate"])]
    no_proxy: bool,
    /// Cool-down after measuring, over which the load falls to nothing
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = optional_time)]
    cool_phase: Optional<f64>,
    /// The name server that robots ask: `auto` is one that knows the names of the workload, for this run
    #[arg(long, value_name = "HOST:PORT|auto", value_parser = name_service, requires = "config",
        conflicts_with_all = ["proxy", "surrogate", "device"])]
    dns: Option<NameService>,
    /// The model of the device that figures are predicted with, shown beside those measured at the end, as for
    /// `simulate --device`; `auto`: LRU with the sizes that the device is told, if it is told any, else ideal; `no`:
    /// nothing is predicted
    #[arg(long, value_name = "MODEL|auto|no", default_value = "auto", value_parser = forecast)]
    predict: Forecast,
    /// Print the result as JSON: verdict, reasons, figures, expectations, where report and logs are; undefined figures are
    /// null
    #[arg(long, conflicts_with = "verb_lvl", help_heading = "Expectations")]
    json: bool,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    bench: BenchOptions,
    #[command(flatten)]
    working_set: WorkingSetOptions,
    #[command(flatten)]
    expectations: Expectations,
    /// Why a search for a peak made the run longer than it was told to.
    #[arg(skip)]
    lengthened: Option<String>,
}

/// Runs both sides.
pub fn run(args: Args) -> Done {
    let (json, expectations) = (args.json, args.expectations.clone());
    match measure(args) {
        Ok(result) => {
            let text = if json { outcome_json::of_result(&result) } else { result.summary };
            console::print(&text);
            Ok(result.code)
        }
        Err(failure) => {
            expectations.publish_failure(&failure)?;
            if !json {
                return Err(failure);
            }
            console::print(&outcome_json::of_failure(&failure));
            Ok(failure.exit_code())
        }
    }
}

/// Runs both sides without saying what came out.
///
/// # Errors
/// If the test cannot be run. A test that fails is no error.
pub fn measure(mut args: Args) -> Result<RunResult, Failure> {
    let working_set = Files::open(&args.working_set, &mut args.bench.common)?;
    let device = device::under_test(&args.device)?;
    let test = args.bench.test(workload_name(&args), || schedule(&args))?;
    let mut bench = args.bench.bench(test, "run")?;
    Route { proxy: args.proxy.as_deref(), surrogate: args.surrogate.as_deref() }.apply(&mut bench.test)?;
    bench.names = args.dns.as_ref().map(|service| Names::start(service, &mut bench.test)).transpose()?;
    bench.predict = match args.predict {
        Forecast::Auto if args.no_proxy => Forecast::With(None),
        predict => predict,
    };
    bench.device = device;
    bench.surrogate = args.surrogate.is_some();
    bench.working_set = working_set;
    bench.expectations = args.expectations.clone();
    bench.run()
}

/// What a search for a peak must know of its runs, and tell them.
impl Args {
    /// The test comes from a workload file.
    pub fn is_workload(&self) -> bool {
        self.bench.workload.config.is_some()
    }

    /// The values of `--set`.
    pub fn settings(&self) -> impl Iterator<Item = &str> {
        self.bench.workload.settings.iter().map(|(_, value)| value.as_str())
    }

    /// The rate of all robots, if they have one.
    pub fn rate(&self) -> Option<f64> {
        self.bench.robots.req_rate.and_then(|rate| rate.0)
    }

    /// A name for the run.
    pub fn label(&self) -> &str {
        &self.bench.common.label
    }

    /// Where result directories are made.
    pub fn runs(&self) -> &Path {
        &self.bench.runs
    }

    /// Why the run is longer than the user said, if it is.
    pub fn lengthened(&self) -> Option<String> {
        self.lengthened.clone()
    }

    /// The device is started for the run and stopped after it.
    pub fn starts_device(&self) -> bool {
        self.device.is_given()
    }

    /// Makes it run number `number` of a search, with this rate, whose result directory goes into `runs`. In a workload,
    /// the rate replaces `mark` in the values of `--set`. Runs differ in what is random, or repeating one would tell
    /// nothing new.
    pub fn aim(&mut self, runs: &Path, number: usize, rate: f64, mark: &str) {
        self.bench.runs = runs.to_owned();
        self.bench.common.label = format!("step-{number:02}");
        self.predict = Forecast::No;
        if number > 1 {
            // The device has answered before. That it may still be busy with what it was asked then is for the next run to show.
            self.bench.preflight.preflight = Preflight(None);
        }
        self.bench.common.local_rng_seed = self.bench.common.local_rng_seed.wrapping_add(number as u64 - 1);
        if self.is_workload() {
            let text = super::peak::rate_text(rate);
            self.bench
                .workload
                .settings
                .iter_mut()
                .for_each(|(_, value)| *value = value.replace(mark, &text));
        } else {
            self.bench.robots.req_rate = Some(Optional(Some(rate)));
            let goal = self.bench.common.goal.unwrap_or_else(super::peak::goal);
            let enough = super::peak::long_enough(goal, rate);
            self.lengthened = (enough != goal).then(|| too_short(&goal, &enough, rate));
            self.bench.common.goal = Some(enough);
        }
    }
}

/// Says that a goal is too short for a run to be judged, and what is taken instead.
fn too_short(goal: &Goal, enough: &Goal, rate: f64) -> String {
    let least = polygraph_report::judge::LEAST_TRANSACTIONS;
    let (was, is) = match (goal.duration, enough.duration) {
        (Some(was), Some(is)) if was < is => (text::duration(was), text::duration(is)),
        _ => {
            let count = |goal: &Goal| format!("{} transactions", goal.xactions.unwrap_or(0));
            (count(goal), count(enough))
        }
    };
    format!(
        "--goal is too short: a run needs {least} measured transactions to be judged, {was} at {}/s give fewer; this one \
         goes on for {is}",
        text::short(Some(rate))
    )
}

/// One phase that ends by itself or by errors, then less and less load.
fn schedule(args: &Args) -> Schedule {
    // A test that cannot end is no test, and errors must end it.
    let goal = args.bench.common.goal.unwrap_or(Goal { duration: Some(300.0), ..Goal::default() });
    let goal = Goal { errors: goal.errors.or(Some(0.3)), ..goal };
    Schedule::classic(goal, args.cool_phase.0)
}

/// Only what is PolyMix-1 may be called so: everything but rate, durations and connections has a fixed value.
fn workload_name(args: &Args) -> &'static str {
    let BenchOptions { robots, replies, common, xact_think, .. } = &args.bench;
    let standard = robots.req_rate.is_some_and(|rate| rate.0.is_some())
        && robots.dhr == 0.55
        && robots.rep_cachable == 0.8
        && robots.pop_model == Popularity::Unif
        && replies.rep_sz == Distr::Exp { mean: 13.0 * 1024.0 }
        && xact_think.0 == Some(Distr::Norm { mean: 3.0, sd: 1.5 })
        && robots.repeat_delay.is_none()
        && common.http_version == 1
        && common.pconn_use_lmt == Distr::Const(1.0);
    if standard { "PolyMix-1" } else { "modified PolyMix-1" }
}

/// The exit code of one side alone, which can tell only whether it came to its end.
///
/// # Errors
/// Never; the type is that of commands.
pub fn exit_code(outcome: &RunOutcome) -> Done {
    Ok(ExitCode::from(match outcome.reason {
        EndReason::Finished | EndReason::Idle => exit::OK,
        EndReason::ErrorGoal { .. } | EndReason::Fatal(_) => exit::FAILED,
        EndReason::Interrupted => exit::INTERRUPTED,
    }))
}

/// The address that everything of a loopback run binds to.
pub const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
