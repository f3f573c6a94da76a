//! `polygraph client` (polyclt): robots.

use std::path::PathBuf;

use clap::{ArgAction, Parser};
use polygraph_engine::{RunSetup, StartRule};
use polygraph_link::nanos;
use polygraph_plan::{Schedule, Test};
use polygraph_report::side_summary::SideSummary;
use polygraph_runner::addresses::AddedAddresses;
use polygraph_runner::environment::Machine;
use polygraph_runner::preflight::{self, OriginPlaces, PreflightCheck};
use polygraph_runner::{Failure, RunSettings, device_place, host_check, jobs, layouts, log_file};
use polygraph_stats::{Record, Side};
use polygraph_traffic::Distr;

use crate::exit::{self, Done};
use crate::options::make_test::{self, DEFAULT_SETTLE, TestParts, apply_socks};
use crate::options::values::{host_port, optional_time, sizes, think, yes_no};
use crate::options::{
    AddressOptions, CommonOptions, ConfigOptions, LiveOptions, Optional, PathOptions, PreflightOptions,
    RobotOptions, RobotToleranceOptions, ShareOptions, SyncOptions, WorkingSetOptions,
};
use crate::output::{ClassicConsole, Progress, notify, print};

/// Options of the client.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    mut_arg("proxy", |arg| {
        arg.help("Address of the proxy under test. Without it and other devices, robots connect to the origin servers")
    }),
    after_help = "Example, the client of PolyMix-1 at 250 requests per second:\n  \
        polyclt --proxy 10.0.0.1:8080 --origin 10.0.0.2:80 --robots 1 \\\n    \
        --req_rate 250/sec --rep_cachable 80p --dhr 55p --pop_model unif \\\n    \
        --launch_win 1min --cool_phase 1min --goal -1:1hr:0.30 --verb_lvl 2 \\\n    \
        --log run.log"
)]
pub struct Args {
    #[command(flatten)]
    path: PathOptions,
    /// Address of a SOCKS proxy, version 5, through which all robots connect: to the proxy (--proxy), or to the servers
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port, conflicts_with_all = ["surrogate", "balancer"])]
    pub socks_proxy: Option<String>,
    /// Whether the SOCKS proxy gets the names of servers and resolves them; otherwise robots resolve names, and it gets addresses
    #[arg(long, value_name = "yes|no", value_parser = yes_no, requires = "socks_proxy")]
    pub socks_names: Option<bool>,
    /// Address of the origin server
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080", value_parser = host_port, conflicts_with = "config")]
    pub origin: String,
    /// Length of the cool-down after the measurement, over which the load falls to zero
    #[arg(long, value_name = "TIME", default_value = "none", value_parser = optional_time, conflicts_with = "config")]
    pub cool_phase: Optional<f64>,
    /// Think time of robots without --req_rate: the pause between transactions
    #[arg(long, value_name = "DISTR", default_value = "none", value_parser = think, conflicts_with = "config")]
    pub xact_think: Optional<Distr>,
    /// Reply sizes of the servers, which must have the same option. Default: robots learn sizes from replies
    #[arg(long, value_name = "DISTR", value_parser = sizes, conflicts_with = "config")]
    pub rep_sz: Option<Distr>,
    /// Write statistics to this binary log, which lx, lr and report read
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Write the transaction samples that the workload defines (`StatsSample`) to this file instead of the log
    #[arg(long, value_name = "FILE")]
    sample_log: Option<PathBuf>,
    #[command(flatten)]
    workload: ConfigOptions,
    #[command(flatten)]
    robots: RobotOptions,
    #[command(flatten)]
    tolerance: RobotToleranceOptions,
    /// Do not count replies without the marks of this program as errors
    #[arg(long, value_name = "yes|no", default_value = "no", value_parser = yes_no, action = ArgAction::Set, help_heading = "Unexpected replies")]
    accept_foreign_msgs: bool,
    #[command(flatten)]
    working_set: WorkingSetOptions,
    #[command(flatten)]
    sync: SyncOptions,
    #[command(flatten)]
    share: ShareOptions,
    #[command(flatten)]
    preflight: PreflightOptions,
    #[command(flatten)]
    addresses: AddressOptions,
    #[command(flatten)]
    common: CommonOptions,
    #[command(flatten)]
    live: LiveOptions,
}

/// Runs the robots.
pub fn run(args: Args) -> Done {
    let mut settings = args.common.run_settings();
    let working_set = args.working_set.open(&mut settings)?;
    let mut test = args.test(&settings)?;
    // The addresses go with this value.
    let _added =
        AddedAddresses::of_test(&test, &[Side::Client], args.addresses.addresses, args.share.only(), notify)?;
    if args.workload.config.is_some() {
        args.share.keep(&mut test, Side::Client)?;
    }
    let device = args.path.device().map(|device| device.role);
    device_place::check(&test, device, &device_place::named_places(&test))?;
    let client = args.robots.client_settings(args.tolerance.tolerance(args.accept_foreign_msgs));
    let [layout] = layouts::layouts(&test, &settings, client.open_connections, [Side::Client]);
    working_set.check(&test, notify)?;
    let load = host_check::of_client(&test, &client, layout, &[]);
    host_check::check(&load, log_file::directory(args.log.as_deref()), notify)?;
    let mut client = jobs::client_job(&test, &settings, &client, false, layout, &working_set)?;
    let reverse_proxy = device.filter(|role| role.acts_as_servers());
    if let Some(role) = reverse_proxy {
        client.header.settings.push(("device".to_owned(), role.word().to_owned()));
    }
    client.log.clone_from(&args.log);
    client.sample_log.clone_from(&args.sample_log);
    client.settings.share_phases = test.schedule.is_agreed();
    log_file::check_writable(args.log.as_deref())?;
    log_file::check_writable(args.sample_log.as_deref())?;
    let check = PreflightCheck {
        timeout: args.preflight.preflight.0,
        origins: OriginPlaces::Elsewhere,
        surrogate: reverse_proxy.is_some(),
        accepts_foreign_replies: args.accept_foreign_msgs,
    };
    let mut live = args.live.start()?;
    preflight::check(&test, check, notify)?;
    // A client that cannot start leaves existing logs alone.
    log_file::prepare(args.log.as_deref(), &client.header, notify)?;
    log_file::prepare(args.sample_log.as_deref(), &client.header, notify)?;
    settings.announce_engine(notify);
    let job = RunSetup {
        schedule: test.schedule.clone(),
        start: args.share.start(StartRule::Now),
        client: Some(client),
        server: None,
        interval: nanos(settings.interval_s),
        quantum: nanos(settings.timer_quantum_s),
        engine: settings.engine(),
        fail_timeout: args.robots.fail_tout.0,
        idle_timeout: settings.idle_timeout_s,
        sync_timeout: args.sync.sync_tout.0,
    };
    let with_progress = args.common.verb_lvl < 2;
    let mut progress = Progress::new(job.schedule.duration());
    let mut console = ClassicConsole::new(args.common.verb_lvl).of_options(test.classic);
    let mut summary = SideSummary::default();
    let outcome = polygraph_engine::run(job, |header, record| {
        summary.add(record);
        live.observe(header, record);
        // The console shows comments.
        if with_progress && !matches!(record, Record::Comment { .. }) {
            progress.show(header, record);
        }
        progress.clear_for(record);
        console.show(header, record);
    });
    let mut outcome = outcome.map_err(Failure::setup)?;
    print(&summary.of_client(args.log.as_deref()));
    working_set.store(&test, &settings, outcome.shares.take())?;
    Ok(exit::of_side(&outcome))
}

impl Args {
    /// The test of the workload file, or the one that options describe.
    fn test(&self, settings: &RunSettings) -> Result<Test, Failure> {
        let device = self.path.device();
        if let Some(mut test) = self.workload.test(settings.global_seed, true, Machine::WITHOUT_SERVERS)? {
            self.robots.device_tls.apply(&mut test)?;
            device.map_or(Ok(()), |device| device.apply(&mut test))?;
            apply_socks(self.socks_proxy.as_deref(), self.socks_names, &mut test)?;
            return Ok(test);
        }
        let parts = TestParts {
            name: "command line",
            path: device,
            origin: Some(&self.origin),
            listen: Vec::new(),
            robot_think: self.xact_think.0.clone(),
            server_think: None,
            sizes: self.rep_sz.clone(),
            settle: DEFAULT_SETTLE,
            schedule: Schedule::classic(self.common.goal.unwrap_or_default(), self.cool_phase.0),
        };
        let mut test = make_test::of_options(&self.robots, &self.common, settings.global_seed, parts)?;
        apply_socks(self.socks_proxy.as_deref(), self.socks_names, &mut test)?;
        Ok(test)
    }
}
