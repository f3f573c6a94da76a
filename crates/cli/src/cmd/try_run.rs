//! `polygraph try`: everything on this machine, the built-in proxy as the device, a report at the end.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser};
use polygraph_cache::{Proxy, ProxyConfig};
use polygraph_engine::limits;
use polygraph_plan::test::repeat_delay;
use polygraph_plan::{Goal, Schedule};
use polygraph_traffic::Distr;

use crate::bench::Bench;
use crate::cmd::run::LOOPBACK;
use crate::expect::Expectations;
use crate::options::{CommonOptions, RobotOptions};
use crate::source::{self, Rest};
use crate::{Done, Failure, console};

/// Options of `try`: none are needed.
#[derive(Parser, Debug)]
#[command(rename_all = "snake_case")]
pub struct Args {
    /// Where result directories are made
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    #[command(flatten)]
    expectations: Expectations,
}

/// Requests per second: enough for a hit ratio within half a point in half a minute, and next to nothing for
/// any machine.
const RATE: &str = "500/sec";
/// Seconds of warm-up and measurement, and of cool-down.
const DURATION: f64 = 38.0;
const COOL: f64 = 2.0;
/// PolyMix-1's think time is 3 s; a tenth of it leaves time to measure in so short a run.
const THINK: Distr = Distr::Norm { mean: 0.3, sd: 0.15 };
/// Memory of the proxy: enough for all cachable objects of the run.
const CACHE: u64 = 256 << 20;

/// The options that `client` would be given.
#[derive(Parser)]
#[command(rename_all = "snake_case")]
struct Defaults {
    #[command(flatten)]
    robots: RobotOptions,
    #[command(flatten)]
    common: CommonOptions,
}

/// Runs PolyMix-1 through the built-in proxy.
pub fn run(args: Args) -> Done {
    let words = ["try", "--req_rate", RATE, "--dhr", "55p", "--pop_model", "unif", "--loops", "1"];
    let matches = Defaults::command().get_matches_from(words);
    let Defaults { robots, common } = Defaults::from_arg_matches(&matches).map_err(Failure::usage)?;
    limits::raise_descriptor_limit();
    let config = ProxyConfig { cache_bytes: CACHE, ..ProxyConfig::default() };
    let mut proxy = Proxy::start(config).map_err(Failure::setup)?;
    console::note(&format!(
        "PolyMix-1, think time scaled to a tenth: robots at {RATE} -> built-in caching proxy at {} -> origins, \
         for {:.0} s",
        proxy.local_addr(),
        DURATION + COOL
    ));
    let goal = Goal { duration: Some(DURATION), errors: Some(0.3), ..Goal::default() };
    let address = proxy.local_addr().to_string();
    let test = source::classic(
        &robots,
        &common,
        Rest {
            name: "PolyMix-1, think time scaled to a tenth",
            proxy: Some(&address),
            origin: None,
            listen: vec![SocketAddr::new(LOOPBACK, 0)],
            robot_think: None,
            server_think: Some(THINK),
            sizes: Some(Distr::Exp { mean: 13.0 * 1024.0 }),
            settle: repeat_delay(Some(&THINK), false),
            schedule: Schedule::classic(goal, Some(COOL)),
        },
    )?;
    let result = Bench::new(test, &common, &args.runs)
        .and_then(|bench| Bench { label: "try", expectations: args.expectations, ..bench }.run());
    proxy.stop();
    let result = result?;
    console::print(&result.summary);
    console::print(&format!(
        "\nOpen {} in a browser.\nNext, a real proxy, with PolyMix-1's own think time of 3 s:\n  \
         polygraph run --proxy 127.0.0.1:3128 --req_rate 50/sec --goal 5min\n  \
         polygraph run --device squid --req_rate 50/sec --goal 5min\n",
        result.report.display()
    ));
    Ok(result.code)
}
