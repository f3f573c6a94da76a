//! `polygraph net routes`: routes to the agents behind the hosts of a workload's bench.

use std::net::IpAddr;

use clap::Args;
use polygraph_netsetup::{Ledger, Namespace, Route, State};
use polygraph_plan::BenchNeeds;
use polygraph_runner::addresses::is_local;
use polygraph_runner::{Failure, bench_routes};
use polygraph_text as text;

use super::{done, failure};
use crate::exit::Done;
use crate::options::workload::AddressWorkloadOptions;
use crate::output;

/// What the changes were made for, in the ledger.
const PURPOSE: &str = "net routes";

/// Options of `net routes`.
#[derive(Args, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Servers, the monitoring station and the device need these routes; so do clients that should reach one another.\nExamples:\n  \
        polygraph net routes --config webaxe-4.pg                            a script for this host\n  \
        polygraph net routes --config webaxe-4.pg --host 172.16.101.32       a script for the device\n  \
        polygraph net routes --config webaxe-4.pg --add"
)]
pub struct RoutesArgs {
    #[command(flatten)]
    workload: AddressWorkloadOptions,
    /// Print the routes of the host with this address. Default: this host
    #[arg(long, value_name = "IP", conflicts_with_all = ["add", "remove"])]
    host: Option<IpAddr>,
    /// Print a shell script that adds the routes; the default
    #[arg(long, conflicts_with_all = ["add", "remove"])]
    script: bool,
    /// Add the routes to this host. They stay until they are removed
    #[arg(long, conflicts_with = "remove")]
    add: bool,
    /// Remove the routes that --add added
    #[arg(long)]
    remove: bool,
}

/// Prints, adds or removes routes.
pub fn run(args: &RoutesArgs) -> Done {
    let workload = args.workload.load()?;
    let needs = BenchNeeds::of(&workload).map_err(Failure::usage)?;
    let is_this = |ip: IpAddr| args.host.map_or_else(|| is_local(ip), |host| host == ip);
    let routes = bench_routes::of_host(&needs, is_this).map_err(Failure::usage)?;
    match (args.add, args.remove) {
        (true, _) => output::print(&add(&routes)?),
        (_, true) => output::print(&remove(&routes)?),
        _ => output::print(&bench_routes::script(&routes)),
    }
    done()
}

fn add(routes: &[Route]) -> Result<String, Failure> {
    let ledger = Ledger::of_system().map_err(failure)?;
    // What a killed process left behind may be in the way.
    ledger.undo_abandoned().map_err(failure)?;
    let mut changes = ledger.begin(PURPOSE).map_err(failure)?;
    let added = changes.add_routes(routes).map_err(failure)?;
    if added > 0 {
        changes.keep().map_err(failure)?;
    }
    let there = match routes.len() - added {
        0 => String::new(),
        there => format!(", {} there already", counted(there)),
    };
    Ok(format!("{} added{there}\n", counted(added)))
}

fn remove(routes: &[Route]) -> Result<String, Failure> {
    let here = Namespace::current().map_err(failure)?;
    let mut removed = 0;
    for mut record in Ledger::of_system().and_then(|ledger| ledger.records()).map_err(failure)? {
        if record.purpose == PURPOSE && record.state == State::Kept && record.namespace == here {
            removed += record.remove_routes(|route| routes.contains(route)).map_err(failure)?;
        }
    }
    Ok(format!("{} removed\n", counted(removed)))
}

fn counted(number: usize) -> String {
    text::counted(number as u64, "route")
}
