//! `polygraph server` (polysrv): origin servers.

use std::net::{Ipv4Addr, SocketAddr};

use clap::Parser;
use polygraph_engine::{Job, StartRule, limits};
use polygraph_link::nanos;
use polygraph_plan::Schedule;
use polygraph_traffic::Distr;

use crate::console::{self, Classic};
use crate::jobs::{self, ServerPlan, server_job};
use crate::options::{CommonOptions, Optional, ReplyOptions, think};
use crate::{Done, cmd};

/// Options of the server.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Example, the server of PolyMix-1:\n  \
        polysrv --port 80 --rep_sz exp:13KB --xact_think norm:3s,1.5s --idle_tout 135sec --goal 1.1hr --verb_lvl 1"
)]
pub struct Args {
    /// Port to listen on, on all addresses
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    pub port: u16,
    /// Address to listen on instead of all addresses
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "port")]
    pub listen: Option<SocketAddr>,
    /// Delay before the first byte of a reply
    #[arg(long, value_name = "DISTR", default_value = "none", value_parser = think)]
    pub xact_think: Optional<Distr>,
    #[command(flatten)]
    replies: ReplyOptions,
    #[command(flatten)]
    common: CommonOptions,
}

/// Runs the server.
pub fn run(args: Args) -> Done {
    limits::raise_descriptor_limit();
    let schedule = Schedule::classic(args.common.goal.unwrap_or_default(), None);
    let address = args.listen.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::UNSPECIFIED, args.port)));
    let listeners = jobs::listen(address, jobs::loops(&args.common))?;
    console::note(&format!("listening at {}", listeners.address()));
    let plan = ServerPlan {
        common: &args.common,
        sizes: &args.replies.rep_sz,
        think: args.xact_think.0.clone(),
        schedule: &schedule,
        workload: "command line",
        log: args.common.log.clone(),
    };
    let server = server_job(&plan, listeners);
    let job = Job {
        schedule,
        start: StartRule::FirstTraffic,
        client: None,
        server: Some(server),
        interval: nanos(args.common.stats_cycle),
        quantum: nanos(args.common.timer_quantum),
        idle_timeout: args.common.idle_tout.0,
    };
    let mut console = Classic::new(args.common.verb_lvl);
    let outcome = polygraph_engine::run(job, |header, record| console.show(header, record));
    cmd::run::exit_code(&outcome.map_err(crate::Failure::setup)?)
}
