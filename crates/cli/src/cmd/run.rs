//! `polygraph run`: both sides on this machine with a device in between.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use polygraph_plan::{Goal, Schedule};
use polygraph_runner::bench::ReverseProxy;
use polygraph_runner::name_server::{NameServerChoice, RunNameServer};
use polygraph_runner::prediction::PredictionModel;
use polygraph_runner::{Expectations, Failure, FailureKind, RunResult};
use polygraph_stats::HttpVersion;
use polygraph_traffic::{Distr, Popularity};
use serde_json::{Value, json};

use super::fleet::run::{FleetResult, FleetTest};
use crate::exit::{self, Done};
use crate::options::make_test::apply_socks;
use crate::options::values::{host_port, optional_time, prediction_model, resolve, yes_no};
use crate::options::{
    BenchOptions, DeviceOptions, ExpectOptions, FleetOptions, LiveOptions, Optional, PathOptions,
    WorkingSetOptions,
};
use crate::output::{self, RunConsole, notify};

/// Options of `run`.
#[derive(Parser, Clone, Debug)]
#[command(
    rename_all = "snake_case",
    override_usage = "polygraph run [FILE.pg|WORKLOAD] [OPTIONS]",
    after_help = "The defaults are those of PolyMix-1: 80 % of the replies are cachable, 55 % hits are offered, the mean reply size is 13 KB, \
        and the mean think time of servers is 3 s.\nExamples:\n  \
        polygraph run --proxy 127.0.0.1:3128 --req_rate 100/sec --goal 5min\n  \
        polygraph run --device squid --device_opt mem=1GB --config polymix-1 --set ReqRate=100/sec\n  \
        polygraph run polymix-4 --fleet nats://10.0.0.9:4222 --proxy 10.0.0.1:3128",
    mut_arg("fleet", |arg| arg.conflicts_with_all(WITHOUT_FLEET))
)]
pub struct Args {
    #[command(flatten)]
    pub run: RunOptions,
    #[command(flatten)]
    expectations: ExpectOptions,
    #[command(flatten)]
    fleet: FleetOptions,
    /// Result directory, which must be new or empty. Default: a new directory in --runs
    #[arg(long, value_name = "DIR", help_heading = "Bench")]
    out: Option<PathBuf>,
}

/// Options of a run, which `peak` has, too.
#[derive(clap::Args, Clone, Debug)]
#[command(
    rename_all = "snake_case",
    mut_arg("xact_think", |arg| arg.default_value("norm:3s,1.5s")),
    mut_arg("device", |arg| arg.conflicts_with_all(["proxy", "surrogate", "balancer", "no_proxy"])),
    mut_arg("socks_proxy", |arg| arg.conflicts_with_all(["surrogate", "balancer", "device"])),
    group = clap::ArgGroup::new("target")
        .args(["proxy", "surrogate", "balancer", "no_proxy", "device", "config", "socks_proxy"])
        .multiple(true)
        .required(true)
)]
pub struct RunOptions {
    #[command(flatten)]
    path: PathOptions,
    /// Test without a device: robots connect to the servers, which shows the limits of the bench
    #[arg(long, conflicts_with_all = ["proxy", "surrogate", "balancer"])]
    no_proxy: bool,
    /// Address of a SOCKS proxy, version 5, through which all robots connect: to the proxy (--proxy), or to the servers
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port)]
    socks_proxy: Option<String>,
    /// Whether the SOCKS proxy gets the names of servers and resolves them; otherwise robots resolve names, and it gets addresses
    #[arg(long, value_name = "yes|no", value_parser = yes_no, requires = "socks_proxy")]
    socks_names: Option<bool>,
    /// Length of the cool-down after the measurement, over which the load falls to zero
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = optional_time, conflicts_with = "config")]
    cool_phase: Optional<f64>,
    /// Name server for the robots. `auto`: start one with the names of the workload for this run
    #[arg(long, value_name = "HOST:PORT|auto", value_parser = name_server, requires = "config",
        conflicts_with_all = ["proxy", "surrogate", "balancer", "device"])]
    dns: Option<NameServer>,
    /// Predict the figures of the run with a model of the device, and show them beside the measured figures. MODEL is
    /// described under `simulate --device`. `auto`: LRU with the cache size in --device_opt, or a cache that keeps everything;
    /// `no`: no prediction
    #[arg(long, value_name = "MODEL|auto|no", default_value = "auto", value_parser = prediction_model)]
    pub predict: PredictionModel,
    /// Print the result as JSON: verdict, reasons, figures, expectations, and paths of report and logs. Undefined figures are
    /// null
    #[arg(long, conflicts_with = "verb_lvl", help_heading = "Expectations")]
    pub json: bool,
    #[command(flatten)]
    pub device: DeviceOptions,
    #[command(flatten)]
    pub bench: BenchOptions,
    #[command(flatten)]
    working_set: WorkingSetOptions,
    #[command(flatten)]
    live: LiveOptions,
}

/// The name server for the robots.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NameServer {
    BuiltIn,
    At(String),
}

fn name_server(text: &str) -> Result<NameServer, String> {
    match text {
        "auto" => Ok(NameServer::BuiltIn),
        _ => host_port(text).map(NameServer::At).map_err(|_| {
            format!("`{text}` is not a name server: write auto, or host:port, for example 127.0.0.1:5353")
        }),
    }
}

/// Options that a run with a fleet does not have: they are about a device or processes that this process starts. Those of clients and
/// servers are passed on with --client_opt and --server_opt.
const WITHOUT_FLEET: [&str; 55] = [
    "accept_foreign_msgs",
    "addresses",
    "cool_phase",
    "credentials",
    "device",
    "device_opt",
    "device_tls",
    "dhr",
    "dns",
    "dump",
    "dump_size",
    "engine",
    "fail_tout",
    "goal",
    "h2_streams",
    "h2_window",
    "http_version",
    "idle_tout",
    "ign_bad_cont_tags",
    "ign_false_hits",
    "ign_urls",
    "launch_win",
    "live",
    "load_working_set",
    "local_addrs",
    "local_rng_seed",
    "loops",
    "metrics",
    "notify",
    "open_conn_lmt",
    "origin_address",
    "origin_port",
    "pconn_use_lmt",
    "pop_model",
    "ports",
    "predict",
    "preflight",
    "rep_cachable",
    "rep_sz",
    "req_rate",
    "robots",
    "settle_time",
    "socks_names",
    "socks_proxy",
    "stats_cycle",
    "store_working_set",
    "timer_quantum",
    "tls",
    "tmp_loc",
    "trust_ca",
    "unique_world",
    "verb_lvl",
    "workers",
    "xact_lifetime",
    "xact_think",
];

/// Runs the test, and prints its result.
pub fn run(args: Args) -> Done {
    let json = args.run.json;
    let expectations = Expectations::from(args.expectations);
    let measured = match &args.fleet.fleet {
        None => args.run.measure(args.out, expectations.clone()).map(|result| Some((result, false))),
        Some(url) => args
            .run
            .fleet_test(url, &args.fleet, args.out.clone(), expectations.clone())
            .measure()
            .map(|done| done.map(|FleetResult { result, has_failed }| (result, has_failed))),
    };
    match measured {
        Ok(None) => Ok(ExitCode::SUCCESS),
        Ok(Some((result, has_failed))) => {
            output::print_either(json, || result.json(), || result.summary.clone());
            Ok(if has_failed && !result.interrupted {
                ExitCode::from(exit::FAILED)
            } else {
                exit::of_run(&result)
            })
        }
        Err(failure) => {
            expectations.publish_failure(&failure)?;
            if !json {
                return Err(failure);
            }
            output::print_json(&failure_json(&failure));
            Ok(exit::of_failure(&failure))
        }
    }
}

/// Why a run did not start, for programs. A device that did not answer has a verdict; other failures have none.
pub fn failure_json(failure: &Failure) -> Value {
    let verdict = (failure.kind == FailureKind::Verdict).then_some("FAILED");
    json!({ "verdict": verdict, "headline": failure.to_string(), "report": null, "directory": null })
}

impl RunOptions {
    /// Runs the test without printing its result, which goes to the directory `out` or a new one.
    ///
    /// # Errors
    /// If the test cannot be run. A test that fails is not an error.
    pub fn measure(&self, out: Option<PathBuf>, expectations: Expectations) -> Result<RunResult, Failure> {
        let mut settings = self.bench.common.run_settings();
        let working_set = self.working_set.open(&mut settings)?;
        let device = self.device.device()?;
        let mut live = self.live.start()?;
        let test = self.bench.test(self.workload_name(), &settings, || self.schedule())?;
        let mut bench = self.bench.bench(test, &settings, "run")?;
        if let Some(device) = self.path.device() {
            let reverse_proxy = || ReverseProxy { role: device.role, without: bench.test.clone() };
            bench.reverse_proxy = device.role.acts_as_servers().then(reverse_proxy);
            device.apply(&mut bench.test)?;
        }
        apply_socks(self.socks_proxy.as_deref(), self.socks_names, &mut bench.test)?;
        let choice = match &self.dns {
            None => None,
            Some(NameServer::BuiltIn) => Some(NameServerChoice::BuiltIn),
            Some(NameServer::At(place)) => Some(NameServerChoice::At(resolve(place)?)),
        };
        bench.name_server =
            choice.map(|choice| RunNameServer::start(choice, &mut bench.test, notify)).transpose()?;
        bench.prediction = match self.predict {
            PredictionModel::Auto if self.no_proxy => PredictionModel::Of(None),
            model => model,
        };
        bench.device = device;
        bench.working_set = working_set;
        bench.expectations = expectations;
        bench.out = out;
        let mut console = RunConsole::new(self.bench.common.verb_lvl, &bench.test);
        bench.run(|header, record| {
            live.observe(header, record);
            console.show(header, record);
        })
    }

    /// The same test with the robots and servers of a fleet.
    fn fleet_test<'a>(
        &'a self,
        url: &'a str,
        options: &'a FleetOptions,
        out: Option<PathBuf>,
        expectations: Expectations,
    ) -> FleetTest<'a> {
        FleetTest {
            url,
            options,
            workload: &self.bench.workload,
            path: self.path.device(),
            global_seed: self.bench.common.global_rng_seed,
            label: &self.bench.common.label,
            runs: &self.bench.runs,
            out,
            expectations,
        }
    }

    /// One phase that ends after a time or by errors, then the cool-down.
    fn schedule(&self) -> Schedule {
        // A test must end, and errors must end it.
        let goal = self.bench.common.goal.unwrap_or(Goal { duration: Some(300.0), ..Goal::default() });
        let goal = Goal { errors: goal.errors.or(Some(0.3)), ..goal };
        Schedule::classic(goal, self.cool_phase.0)
    }

    /// `PolyMix-1` only if everything except rate, times and connections has the value that PolyMix-1 prescribes.
    fn workload_name(&self) -> &'static str {
        let BenchOptions { robots, replies, common, xact_think, .. } = &self.bench;
        let standard = robots.req_rate.is_some_and(|rate| rate.0.is_some())
            && robots.dhr == 0.55
            && robots.rep_cachable == 0.8
            && robots.pop_model == Popularity::Unif
            && replies.rep_sz == Distr::Exp { mean: 13.0 * 1024.0 }
            && xact_think.0 == Some(Distr::Norm { mean: 3.0, sd: 1.5 })
            && robots.settle_time.is_none()
            && common.http_version == HttpVersion::Http11
            && common.pconn_use_lmt == Distr::Const(1.0);
        if standard { "PolyMix-1" } else { "modified PolyMix-1" }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{Args as _, CommandFactory as _};

    use super::*;

    /// Options that have a meaning for a run with a fleet.
    const WITH_FLEET: [&str; 18] = [
        "allow_exec",
        "cfg_dirs",
        "compat",
        "config",
        "expect",
        "global_rng_seed",
        "json",
        "junit",
        "label",
        "no_proxy",
        "out",
        "proxy",
        "runs",
        "scale",
        "settings",
        "share_worlds",
        "surrogate",
        "balancer",
    ];

    #[test]
    fn every_option_acts_in_a_run_with_a_fleet_or_is_refused() {
        let all: BTreeSet<String> =
            Args::command().get_arguments().map(|arg| arg.get_id().to_string()).collect();
        let of_fleet = FleetOptions::augment_args(clap::Command::new("fleet"));
        let of_fleet: BTreeSet<String> =
            of_fleet.get_arguments().map(|arg| arg.get_id().to_string()).collect();
        let known: BTreeSet<String> =
            WITHOUT_FLEET.iter().chain(&WITH_FLEET).map(|id| (*id).to_owned()).chain(of_fleet).collect();
        let unknown: Vec<_> = all.difference(&known).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
