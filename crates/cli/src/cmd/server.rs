//! `polygraph server` (polysrv): origin servers.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Parser;
use polygraph_engine::{ReservedAddress, RunSetup, StartRule, limits};
use polygraph_link::nanos;
use polygraph_plan::{Schedule, Test};
use polygraph_report::side_summary::SideSummary;
use polygraph_runner::addresses::AddedAddresses;
use polygraph_runner::environment::Machine;
use polygraph_runner::{Failure, described_settings, host_check, jobs, layouts, log_file};
use polygraph_stats::Side;
use polygraph_traffic::Distr;

use crate::exit::{self, Done};
use crate::options::make_test;
use crate::options::values::{think, whole};
use crate::options::{
    AddressOptions, CommonOptions, ConfigOptions, LiveOptions, Optional, ReplyOptions, ShareOptions,
    SyncOptions, ToleranceOptions,
};
use crate::output::{self, ClassicConsole, notify};

/// Options of the server.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    mut_arg("idle_tout", |arg| arg.default_value("5min")),
    after_help = "Example, the server of PolyMix-1:\n  \
        polysrv --port 80 --rep_sz exp:13KB --xact_think norm:3s,1.5s \\\n    \
        --idle_tout 135sec --goal 1.1hr --verb_lvl 1"
)]
pub struct Args {
    /// Port to listen on, at all addresses of this host
    #[arg(long, value_name = "PORT", default_value = "8080", value_parser = whole(0..=u16::MAX), conflicts_with = "config")]
    pub port: u16,
    /// Address and port to listen on, instead of --port
    #[arg(long, value_name = "IP:PORT", conflicts_with_all = ["port", "config"])]
    pub listen: Option<SocketAddr>,
    /// Think time: the delay before the first byte of a reply
    #[arg(long, value_name = "DISTR", default_value = "none", value_parser = think, conflicts_with = "config")]
    pub xact_think: Optional<Distr>,
    /// Write statistics to this binary log, which lx, lr and report read
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Write the transaction samples that the workload defines (`StatsSample`) to this file instead of the log
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
    share: ShareOptions,
    #[command(flatten)]
    addresses: AddressOptions,
    #[command(flatten)]
    common: CommonOptions,
    #[command(flatten)]
    live: LiveOptions,
}

/// Runs the server.
pub fn run(args: Args) -> Done {
    limits::raise_descriptor_limit();
    let settings = args.common.run_settings();
    let mut test = match args.workload.test(settings.global_seed, true, Machine::WITH_SERVERS)? {
        Some(test) => test,
        None => args.test()?,
    };
    // The addresses go with this value.
    let _added =
        AddedAddresses::of_test(&test, &[Side::Server], args.addresses.addresses, args.share.only(), notify)?;
    args.share.keep(&mut test, Side::Server)?;
    let reserved = jobs::reserve_all(&test)?;
    let [layout] = layouts::layouts(&test, &settings, None, [Side::Server]);
    let load = host_check::of_server(&test, layout);
    host_check::check(&load, log_file::directory(args.log.as_deref()), notify)?;
    let mut live = args.live.start()?;
    let addresses: Vec<SocketAddr> = reserved.iter().map(ReservedAddress::address).collect();
    let mut server = jobs::server_job(&test, &settings, args.tolerance.into(), reserved, layout);
    log_file::prepare(args.log.as_deref(), &server.header, notify)?;
    log_file::prepare(args.sample_log.as_deref(), &server.header, notify)?;
    settings.announce_engine(notify);
    server.log.clone_from(&args.log);
    server.sample_log.clone_from(&args.sample_log);
    let job = RunSetup {
        schedule: test.schedule,
        start: args.share.start(StartRule::FirstTraffic),
        client: None,
        server: Some(server),
        interval: nanos(settings.interval_s),
        quantum: nanos(settings.timer_quantum_s),
        engine: settings.engine(),
        fail_timeout: None,
        idle_timeout: settings.idle_timeout_s,
        sync_timeout: args.sync.sync_tout.0,
    };
    job.server.iter().for_each(|server| live.waiting(&server.header));
    let mut console = ClassicConsole::new(args.common.verb_lvl).of_options(test.classic);
    let running = polygraph_engine::start(job).map_err(Failure::setup)?;
    output::note(&described_settings::listening(&addresses));
    let mut summary = SideSummary::default();
    let outcome = running.follow(|header, record| {
        summary.add(record);
        live.observe(header, record);
        console.show(header, record);
    });
    let outcome = outcome.map_err(Failure::setup)?;
    output::print(&summary.of_server(args.log.as_deref()));
    Ok(exit::of_side(&outcome))
}

impl Args {
    /// The test that options describe.
    ///
    /// # Errors
    /// If servers cannot use TLS.
    fn test(&self) -> Result<Test, Failure> {
        let listen = self.listen.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::UNSPECIFIED, self.port)));
        let schedule = Schedule::classic(self.common.goal.unwrap_or_default(), None);
        let (think, sizes) = (self.xact_think.0.clone(), self.replies.rep_sz.clone());
        make_test::servers_of_options(&self.common, vec![listen], think, sizes, schedule)
    }
}
