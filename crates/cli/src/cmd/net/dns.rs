//! `polygraph net dns`: whether a name server knows the names of a workload.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use polygraph_addr::Host;
use polygraph_dns::zone::ZoneAnswer;
use polygraph_dns::{DomainName, QueryType, Zone};
use polygraph_netcheck::names::{MOST_WINDOW, NameCheck, NameResult, NamesPlan, measure};
use polygraph_runner::Failure;
use serde_json::{Value, json};

use super::{check_failure, counted, with_port};
use crate::exit::{Done, FAILED};
use crate::options::values::{duration, resolve, whole};
use crate::options::workload::AddressWorkloadOptions;
use crate::output;

/// Names that are listed; the others are counted.
const LISTED: usize = 50;
/// Where the system says which name server it uses.
const SYSTEM: &str = "/etc/resolv.conf";

/// Options of `net dns`.
#[derive(clap::Args, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Examples:\n  \
        polygraph net dns --server 172.16.101.100 --config polymix-4\n  \
        polygraph net dns --server 172.16.101.100 w1.bench.tst=10.16.129.1 w2.bench.tst\n  \
        polygraph net dns www.example.com              the name server of this host\n\n\
        A name fails if the server does not reply, has no such name, or gives other addresses than expected; then the exit \
        code is 1. Names of a workload must have the addresses of its address map."
)]
pub struct Args {
    /// Names to look up; addresses behind a name are those that it must have
    #[arg(value_name = "NAME[=IP,IP]", value_parser = given)]
    names: Vec<Given>,
    /// Name server; the default port is 53. Default: the one of this host
    #[arg(long, value_name = "HOST:PORT")]
    server: Option<String>,
    #[command(flatten)]
    workload: AddressWorkloadOptions,
    /// Look up IPv6 addresses of names without expected addresses
    #[arg(long)]
    ipv6: bool,
    /// How long the server may take to reply; each query is sent twice at most
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    timeout: Duration,
    /// How many queries are on the way at a time
    #[arg(long, value_name = "N", default_value = "16", value_parser = whole(1..=MOST_WINDOW))]
    window: usize,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A name of the command line, and the addresses that it must have.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Given {
    name: DomainName,
    expected: Vec<IpAddr>,
}

fn given(text: &str) -> Result<Given, String> {
    let (name, list) = text.split_once('=').map_or((text, None), |(name, list)| (name, Some(list)));
    let name = DomainName::parse(name).map_err(|e| e.to_string())?;
    let wrong =
        |_| "write a name and its addresses, for example w1.bench.tst=10.16.129.1,10.16.129.2".to_owned();
    let expected = list.map(|list| list.split(',').map(|ip| ip.trim().parse()).collect());
    Ok(Given { name, expected: expected.unwrap_or(Ok(Vec::new())).map_err(wrong)? })
}

/// Looks up all names and prints what is wrong.
pub fn run(args: &Args) -> Done {
    let names = names(args)?;
    if names.is_empty() {
        return Err(Failure::usage("there are no names to look up: add names or --config FILE"));
    }
    let server = match &args.server {
        Some(server) => resolve(&with_port(server, polygraph_dns::PORT))?,
        None => system_server()?,
    };
    let plan = NamesPlan { server, names, timeout: args.timeout, window: args.window };
    let results = measure(&plan).map_err(check_failure)?;
    output::print_either(args.json, || json_of(&plan, &results), || text_of(&plan, &results));
    let good = results.iter().all(NameResult::is_right);
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

fn names(args: &Args) -> Result<Vec<NameCheck>, Failure> {
    let mut checks = Vec::new();
    for given in &args.names {
        for (kind, expected) in by_family(&given.expected, args.ipv6) {
            checks.push(NameCheck { name: given.name.clone(), kind, expected });
        }
    }
    if args.workload.config.is_none() {
        return Ok(checks);
    }
    let workload = args.workload.load()?;
    // Our own name server's answer is the expected one.
    let mut zone = Zone::default();
    let mut own = Vec::new();
    for map in &workload.addr_maps {
        let names: Vec<_> = map.names.iter().map(|name| name.addr.clone()).collect();
        zone.add_map(map.zone.as_deref(), &names, &map.addresses).map_err(Failure::data)?;
        own.extend(names.into_iter().filter_map(|name| match name.host {
            Host::Name(name) => Some(name),
            Host::V4(_) | Host::V6(_) => None,
        }));
    }
    if own.is_empty() {
        return Err(Failure::usage("the workload uses no address map, so it has no names"));
    }
    own.sort();
    own.dedup();
    for name in own {
        // A wildcard stands for all names below; one of them is asked for.
        let plain = match name.strip_prefix("*.").or_else(|| name.strip_prefix('.')) {
            Some(suffix) => format!("check.{suffix}"),
            None => name.to_string(),
        };
        let name = DomainName::parse(&plain).map_err(Failure::data)?;
        for kind in [QueryType::A, QueryType::Aaaa] {
            if let ZoneAnswer::Addresses(expected) = zone.lookup(&name, Some(kind)) {
                checks.push(NameCheck { name: name.clone(), kind, expected });
            }
        }
    }
    Ok(checks)
}

/// The types to look up, each with its addresses.
fn by_family(expected: &[IpAddr], ipv6: bool) -> Vec<(QueryType, Vec<IpAddr>)> {
    let (v4, v6): (Vec<IpAddr>, Vec<IpAddr>) = expected.iter().partition(|ip| ip.is_ipv4());
    match (v4.is_empty(), v6.is_empty()) {
        (true, true) => vec![(if ipv6 { QueryType::Aaaa } else { QueryType::A }, Vec::new())],
        _ => [(QueryType::A, v4), (QueryType::Aaaa, v6)]
            .into_iter()
            .filter(|(_, ips)| !ips.is_empty())
            .collect(),
    }
}

/// The first name server of this host.
fn system_server() -> Result<SocketAddr, Failure> {
    let text = std::fs::read_to_string(SYSTEM).unwrap_or_default();
    let mut servers =
        text.lines().filter_map(|line| line.trim().strip_prefix("nameserver")?.trim().parse().ok());
    let missing =
        || Failure::setup(anyhow::anyhow!("{SYSTEM} names no name server: write one with --server"));
    servers.next().map(|ip: IpAddr| SocketAddr::new(ip, polygraph_dns::PORT)).ok_or_else(missing)
}

fn list(addresses: &[IpAddr]) -> String {
    addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn fault(check: &NameCheck, result: &NameResult) -> Option<String> {
    match result {
        NameResult::Answered { right: true, .. } => None,
        NameResult::Answered { addresses, .. } => {
            Some(format!("has {} instead of {}", list(addresses), list(&check.expected)))
        }
        NameResult::Failed(error) => Some(error.to_string()),
        NameResult::Refused => Some("nothing listens at the name server's port".to_owned()),
    }
}

/// The times of replies in seconds, the shortest first.
fn times(results: &[NameResult]) -> Vec<f64> {
    let mut times: Vec<f64> = results
        .iter()
        .filter_map(|result| match result {
            NameResult::Answered { time, .. } => Some(time.as_secs_f64()),
            NameResult::Failed(_) | NameResult::Refused => None,
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len().max(1) as f64
}

fn text_of(plan: &NamesPlan, results: &[NameResult]) -> String {
    let mut text = String::new();
    let all: Vec<_> = plan.names.iter().zip(results).collect();
    let few = all.len() <= LISTED;
    let mut bad = 0;
    for (check, result) in &all {
        match fault(check, result) {
            Some(why) => {
                bad += 1;
                if bad <= LISTED {
                    let _ = writeln!(text, "{}: FAILS: {why}", check.name);
                }
            }
            None if few => {
                let NameResult::Answered { addresses, time, .. } = result else { continue };
                let _ = writeln!(
                    text,
                    "{}: {} ({:.3} ms)",
                    check.name,
                    list(addresses),
                    time.as_secs_f64() * 1e3
                );
            }
            None => {}
        }
    }
    if bad > LISTED {
        let _ = writeln!(text, "and {} more that fail", bad - LISTED);
    }
    let times = times(results);
    let _ = write!(text, "{}: {}, {bad} fail", plan.server, counted(all.len() as u64, "name"));
    if let (Some(first), Some(last)) = (times.first(), times.last()) {
        let _ = write!(
            text,
            "; replies after {:.3} to {:.3} ms, {:.3} ms on average",
            first * 1e3,
            last * 1e3,
            mean(&times) * 1e3
        );
    }
    text.push('\n');
    text
}

fn json_of(plan: &NamesPlan, results: &[NameResult]) -> Value {
    let of_name = |(check, result): (&NameCheck, &NameResult)| {
        let (addresses, time) = match result {
            NameResult::Answered { addresses, time, .. } => (addresses.clone(), Some(time.as_secs_f64())),
            NameResult::Failed(_) | NameResult::Refused => (Vec::new(), None),
        };
        json!({
            "name": check.name.to_string(),
            "addresses": addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "time_s": time,
            "fault": fault(check, result),
        })
    };
    let names: Vec<Value> = plan.names.iter().zip(results).map(of_name).collect();
    let failed = results.iter().filter(|result| !result.is_right()).count();
    json!({ "server": plan.server.to_string(), "names": names, "failed": failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_and_without_addresses() {
        let read = |text: &str| given(text).map(|given| given.expected.len()).ok();
        assert_eq!(
            (read("a.b"), read("a.b=10.0.0.1"), read("a.b=10.0.0.1, ::1")),
            (Some(0), Some(1), Some(2))
        );
        assert_eq!((read("a..b"), read("a.b="), read("a.b=c")), (None, None, None));
        let families = |ips: &[&str], ipv6| {
            let ips: Vec<IpAddr> = ips.iter().map(|ip| ip.parse().unwrap()).collect();
            by_family(&ips, ipv6).into_iter().map(|(kind, ips)| (kind, ips.len())).collect::<Vec<_>>()
        };
        assert_eq!(families(&[], false), [(QueryType::A, 0)]);
        assert_eq!(families(&[], true), [(QueryType::Aaaa, 0)]);
        assert_eq!(families(&["10.0.0.1", "::1"], false), [(QueryType::A, 1), (QueryType::Aaaa, 1)]);
        assert_eq!(families(&["::1"], false), [(QueryType::Aaaa, 1)]);
    }
}
