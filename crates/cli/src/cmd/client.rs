//! `polygraph client` (polyclt): robots.

use std::path::PathBuf;

use clap::{ArgAction, Parser};
use polygraph_engine::{RunSetup, StartRule};
use polygraph_link::nanos;
use polygraph_plan::Schedule;
use polygraph_stats::{Record, Side};
use polygraph_traffic::Distr;

use crate::console::{Classic, Progress, print};
use crate::ending::Ending;
use crate::jobs::{self, ClientLimits, client_job};
use crate::options::{
    CommonOptions, ConfigOptions, Optional, RobotOptions, RobotToleranceOptions, SyncOptions,
    WorkingSetOptions, host_port, optional_time, sizes, think, yes_no,
};
use crate::preflight::{self, Look, PreflightOptions, Servers};
use crate::source::{self, DEFAULT_SETTLE, Rest, Route};
use crate::working_set::Files;
use crate::{Done, cmd, processes};

/// Options of the client.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    mut_arg("config", |arg| arg.conflicts_with_all([
        "origin", "cool_phase", "xact_think", "rep_sz", "robots", "req_rate", "rep_cachable", "dhr", "pop_model",
        "tmp_loc", "repeat_delay", "launch_win", "local_addrs", "xact_lifetime", "goal", "pconn_use_lmt",
        "http_version",
    ])),
    after_help = "Example, the client of PolyMix-1 at 250 requests per second:\n  \
        polyclt --proxy 10.0.0.1:8080 --origin 10.0.0.2:80 --robots 1 --req_rate 250/sec --rep_cachable 80p \\\n    \
        --dhr 55p --pop_model unif --launch_win 1min --cool_phase 1min --goal -1:1hr:0.30 --verb_lvl 2 --log run.log"
)]
pub struct Args {
    /// The proxy under test; without it requests go to the origin
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port)]
    pub proxy: Option<String>,
    /// The surrogate or balancer under test, which poses as all servers of the workload
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port, conflicts_with = "proxy", requires = "config")]
    pub surrogate: Option<String>,
    /// The origin server
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080", value_parser = host_port)]
    pub origin: String,
    /// Cool-down after measuring, over which the load falls to nothing
    #[arg(long, value_name = "TIME", default_value = "none", value_parser = optional_time)]
    pub cool_phase: Optional<f64>,
    /// Pause of best-effort robots between transactions
    #[arg(long, value_name = "DISTR", default_value = "none", value_parser = think)]
    pub xact_think: Optional<Distr>,
    /// The servers' reply sizes. Default: as the servers tell; if given, servers must have the same
    #[arg(long, value_name = "DISTR", value_parser = sizes)]
    pub rep_sz: Option<Distr>,
    /// Binary log file, for lx, lr and report
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Log file for the samples of transactions that the workload asks for (`StatsSample`), instead of the log
    #[arg(long, value_name = "FILE")]
    sample_log: Option<PathBuf>,
    #[command(flatten)]
    workload: ConfigOptions,
    #[command(flatten)]
    robots: RobotOptions,
    #[command(flatten)]
    tolerance: RobotToleranceOptions,
    /// Replies without any marks of ours are no error
    #[arg(long, value_name = "yes|no", default_value = "no", value_parser = yes_no, action = ArgAction::Set, help_heading = "Odd replies")]
    accept_foreign_msgs: bool,
    #[command(flatten)]
    working_set: WorkingSetOptions,
    #[command(flatten)]
    sync: SyncOptions,
    #[command(flatten)]
    preflight: PreflightOptions,
    #[command(flatten)]
    common: CommonOptions,
}

/// Runs the robots.
pub fn run(mut args: Args) -> Done {
    let working_set = Files::open(&args.working_set, &mut args.common)?;
    let test = match source::workload(&args.workload, &args.common, true)? {
        Some(mut test) => {
            Route { proxy: args.proxy.as_deref(), surrogate: args.surrogate.as_deref() }.apply(&mut test)?;
            test
        }
        None => source::classic(
            &args.robots,
            &args.common,
            Rest {
                name: "command line",
                proxy: args.proxy.as_deref(),
                origin: Some(&args.origin),
                listen: Vec::new(),
                robot_think: args.xact_think.0.clone(),
                server_think: None,
                sizes: args.rep_sz.clone(),
                settle: DEFAULT_SETTLE,
                schedule: Schedule::classic(args.common.goal.unwrap_or_default(), args.cool_phase.0),
            },
        )?,
    };
    let limits = ClientLimits {
        ports: args.robots.ports.0,
        open_connections: args.robots.open_conn_lmt,
        with_servers: false,
    };
    let [layout] = processes::layouts(&test, &args.common, args.robots.open_conn_lmt, [Side::Client]);
    working_set.check(&test)?;
    let tolerance = args.tolerance.tolerance(args.accept_foreign_msgs);
    let log = args.log.clone();
    let mut client = client_job(&test, &args.common, limits, layout, log, &working_set, tolerance)?;
    if args.surrogate.is_some() {
        client.header.settings.push(("device".to_owned(), "surrogate".to_owned()));
    }
    client.sample_log = args.sample_log.clone();
    jobs::can_write_log(args.log.as_deref())?;
    jobs::can_write_log(args.sample_log.as_deref())?;
    let look = Look {
        preflight: args.preflight.preflight,
        servers: Servers::Elsewhere,
        surrogate: args.surrogate.is_some(),
        strangers: args.accept_foreign_msgs,
    };
    preflight::look(&test, look)?;
    // Only now is anything written: a client that cannot begin leaves the log of another in its place.
    jobs::check_log(args.log.as_deref())?;
    jobs::check_log(args.sample_log.as_deref())?;
    client.settings.share_phases = test.schedule.is_agreed();
    let job = RunSetup {
        schedule: test.schedule.clone(),
        start: StartRule::Now,
        client: Some(client),
        server: None,
        interval: nanos(args.common.stats_cycle),
        quantum: nanos(args.common.timer_quantum),
        fail_timeout: args.robots.fail_tout.0,
        idle_timeout: args.common.idle_tout.0,
        sync_timeout: args.sync.sync_tout.0,
    };
    let with_progress = args.common.verb_lvl < 2;
    let mut progress = Progress::new(job.schedule.duration());
    let mut console = Classic::new(args.common.verb_lvl).of_options(test.classic);
    let mut ending = Ending::default();
    let outcome = polygraph_engine::run(job, |header, record| {
        ending.see(record);
        // Comments are the console's.
        if with_progress && !matches!(record, Record::Comment { .. }) {
            progress.show(header, record);
        }
        progress.give_way(record);
        console.show(header, record);
    });
    let mut outcome = outcome.map_err(crate::Failure::setup)?;
    print(&ending.of_client(args.log.as_deref()));
    working_set.store(&test, &args.common, outcome.shares.take())?;
    cmd::run::exit_code(&outcome)
}
