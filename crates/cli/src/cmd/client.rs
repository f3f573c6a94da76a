//! `polygraph client` (polyclt): robots.

use clap::Parser;
use polygraph_engine::{Job, StartRule};
use polygraph_link::nanos;
use polygraph_plan::Schedule;
use polygraph_traffic::Distr;

use crate::console::Classic;
use crate::jobs::{ClientPlan, DEFAULT_SETTLE, client_job};
use crate::options::{CommonOptions, Optional, RobotOptions, host_port, optional_time, sizes, think};
use crate::{Done, cmd};

/// Options of the client.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Example, the client of PolyMix-1 at 250 requests per second:\n  \
        polyclt --proxy 10.0.0.1:8080 --origin 10.0.0.2:80 --robots 1 --req_rate 250/sec --rep_cachable 80p \\\n    \
        --dhr 55p --pop_model unif --launch_win 1min --cool_phase 1min --goal -1:1hr:0.30 --verb_lvl 2 --log run.log"
)]
pub struct Args {
    /// The proxy under test; without it requests go to the origin
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port)]
    pub proxy: Option<String>,
    /// The origin server
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080", value_parser = host_port)]
    pub origin: String,
    /// Cool-down after measuring, over which the load falls to nothing
    #[arg(long, value_name = "TIME", default_value = "none", value_parser = optional_time)]
    pub cool_phase: Optional<f64>,
    /// Pause of best-effort robots between transactions
    #[arg(long, value_name = "DISTR", default_value = "none", value_parser = think)]
    pub xact_think: Optional<Distr>,
    /// The servers' reply sizes: if given, the size of every reply is checked
    #[arg(long, value_name = "DISTR", value_parser = sizes)]
    pub rep_sz: Option<Distr>,
    #[command(flatten)]
    robots: RobotOptions,
    #[command(flatten)]
    common: CommonOptions,
}

/// Runs the robots.
pub fn run(args: Args) -> Done {
    let schedule = Schedule::classic(args.common.goal.unwrap_or_default(), args.cool_phase.0);
    let plan = ClientPlan {
        robots: &args.robots,
        common: &args.common,
        proxy: args.proxy.as_deref(),
        origin: &args.origin,
        robot_think: args.xact_think.0.clone(),
        sizes: args.rep_sz.clone(),
        settle: DEFAULT_SETTLE,
        schedule: &schedule,
        workload: "command line",
        log: args.common.log.clone(),
    };
    let client = client_job(&plan)?;
    let job = Job {
        schedule,
        start: StartRule::Now,
        client: Some(client),
        server: None,
        interval: nanos(args.common.stats_cycle),
        quantum: nanos(args.common.timer_quantum),
        idle_timeout: args.common.idle_tout.0,
    };
    let mut console = Classic::new(args.common.verb_lvl);
    let outcome = polygraph_engine::run(job, |header, record| console.show(header, record));
    cmd::run::exit_code(&outcome.map_err(crate::Failure::setup)?)
}
