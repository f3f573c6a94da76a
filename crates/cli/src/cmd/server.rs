//! `polygraph server` (polysrv): origin servers.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Parser;
use polygraph_engine::{ReservedAddress, RunSetup, StartRule, limits};
use polygraph_link::nanos;
use polygraph_plan::{Schedule, Test};
use polygraph_stats::Side;
use polygraph_traffic::Distr;

use crate::console::{self, Classic};
use crate::ending::Ending;
use crate::jobs::{self, server_job};
use crate::options::{
    CommonOptions, ConfigOptions, Optional, ReplyOptions, SyncOptions, ToleranceOptions, think, whole,
};
use crate::source;
use crate::{Done, Failure, cmd, facts, processes};

/// Options of the server.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    mut_arg("idle_tout", |arg| arg.default_value("5min")),
    mut_arg("config", |arg| arg.conflicts_with_all([
        "port", "listen", "xact_think", "rep_sz", "goal", "pconn_use_lmt", "http_version",
    ])),
    after_help = "Example, the server of PolyMix-1:\n  \
        polysrv --port 80 --rep_sz exp:13KB --xact_think norm:3s,1.5s --idle_tout 135sec --goal 1.1hr --verb_lvl 1"
)]
pub struct Args {
    /// Port to listen on, on all addresses
    #[arg(long, value_name = "PORT", default_value = "8080", value_parser = whole(0..=u16::MAX))]
    pub port: u16,
    /// Address to listen on instead of all addresses
    #[arg(long, value_name = "IP:PORT", conflicts_with = "port")]
    pub listen: Option<SocketAddr>,
    /// Delay before the first byte of a reply
    #[arg(long, value_name = "DISTR", default_value = "none", value_parser = think)]
    pub xact_think: Optional<Distr>,
    /// Binary log file, for lx, lr and report
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Log file for the samples of transactions that the workload asks for (`StatsSample`), instead of the log
    #[arg(long, value_name = "FILE")]
    sample_log: Option<PathBuf>,
    #[command(flatten)]
    workload: ConfigOptions,
    #[command(flatten)]
    replies: ReplyOptions,
    #[command(flatten)]
    tolerance: ToleranceOptions,
    #[command(flatten)]
    sync: SyncOptions,
    #[command(flatten)]
    common: CommonOptions,
}

/// Runs the server.
pub fn run(args: Args) -> Done {
    limits::raise_descriptor_limit();
    let test = match source::workload(&args.workload, &args.common, true)? {
        Some(test) => test,
        None => classic(&args),
    };
    let places = jobs::reserve_all(&test)?;
    jobs::check_log(args.log.as_deref())?;
    jobs::check_log(args.sample_log.as_deref())?;
    let addresses: Vec<SocketAddr> = places.iter().map(ReservedAddress::address).collect();
    let [layout] = processes::layouts(&test, &args.common, None, [Side::Server]);
    let mut server = server_job(&test, &args.common, args.tolerance.into(), places, layout, args.log.clone());
    server.sample_log = args.sample_log.clone();
    let job = RunSetup {
        schedule: test.schedule,
        start: StartRule::FirstTraffic,
        client: None,
        server: Some(server),
        interval: nanos(args.common.stats_cycle),
        quantum: nanos(args.common.timer_quantum),
        fail_timeout: None,
        idle_timeout: args.common.idle_tout.0,
        sync_timeout: args.sync.sync_tout.0,
    };
    let mut console = Classic::new(args.common.verb_lvl).of_options(test.classic);
    let running = polygraph_engine::start(job).map_err(Failure::setup)?;
    console::note(&facts::listening(&addresses));
    let mut ending = Ending::default();
    let outcome = running.follow(|header, record| {
        ending.see(record);
        console.show(header, record);
    });
    let outcome = outcome.map_err(Failure::setup)?;
    console::print(&ending.of_server(args.log.as_deref()));
    cmd::run::exit_code(&outcome)
}

/// The test that options describe.
fn classic(args: &Args) -> Test {
    let listen = args.listen.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::UNSPECIFIED, args.port)));
    let schedule = Schedule::classic(args.common.goal.unwrap_or_default(), None);
    source::classic_servers(
        &args.common,
        vec![listen],
        args.xact_think.0.clone(),
        args.replies.rep_sz.clone(),
        schedule,
    )
}
