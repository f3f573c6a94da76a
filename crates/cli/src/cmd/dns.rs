//! `polygraph dns`: a name server for the names of a workload.

use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use polygraph_addr::Addr;
use polygraph_dns::{NameServer, NameServerConfig, NameServerCounts, Zone};
use polygraph_plan::values;
use polygraph_runner::Failure;
use polygraph_runner::jobs::listen_hint;
use polygraph_text::counted;

use crate::exit::Done;
use crate::options::values::whole;
use crate::options::workload::AddressWorkloadOptions;
use crate::output;

/// Longest time to live in seconds (RFC 2181, section 8).
const MAX_TTL: f64 = 2_147_483_647.0;

/// Options of the name server.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Examples:\n  \
        polygraph dns --config polymix-4 --set TheBench.peak_req_rate=100/sec ...\n  \
        polygraph dns --listen 172.16.101.100:53 --config my.pg\n  \
        polygraph dns --extra www.example.com=10.0.0.5,10.0.0.6 --extra '*.dyn.example.com=10.0.0.7'\n\n\
        Name i of an address map has address i. A single name has all addresses in turn. Dynamic names become \
        wildcards. Queries for names in other zones are refused; a device that needs these must ask another name server."
)]
pub struct Args {
    #[command(flatten)]
    workload: AddressWorkloadOptions,
    /// Address and port to listen on, for UDP and TCP; repeatable
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:5353")]
    listen: Vec<SocketAddr>,
    /// Time to live of answers
    #[arg(long, value_name = "TIME", default_value = "1hour", value_parser = ttl)]
    ttl: u32,
    /// Additional name with its addresses; `*.suffix` stands for all names below suffix; repeatable
    #[arg(long, value_name = "NAME=IP,IP", value_parser = extra)]
    extra: Vec<Extra>,
    /// Additional zone for which this server is responsible, besides those of the workload; repeatable
    #[arg(long, value_name = "NAME")]
    zone: Vec<String>,
    /// Stop after this time. Default: stop on Ctrl-C
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    duration: Option<f64>,
    /// Console detail: 0 shows the counts at the end, 1 also shows addresses at the start, 2 also shows counts every second
    #[arg(long, value_name = "LEVEL", default_value = "1", value_parser = whole(0..=u8::MAX))]
    verb_lvl: u8,
}

/// A name and its addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Extra {
    name: String,
    addresses: Vec<IpAddr>,
}

fn extra(text: &str) -> Result<Extra, String> {
    let wrong = || "write a name and its addresses, for example www.example.com=10.0.0.5,10.0.0.6".to_owned();
    let (name, list) = text.split_once('=').ok_or_else(wrong)?;
    let addresses =
        list.split(',').map(|ip| ip.trim().parse()).collect::<Result<_, _>>().map_err(|_| wrong())?;
    Ok(Extra { name: name.trim().to_owned(), addresses })
}

fn ttl(text: &str) -> Result<u32, String> {
    match values::time(text)?.round() {
        seconds @ 0.0..=MAX_TTL => Ok(seconds as u32),
        _ => Err(format!("`{text}` is too long for a time to live: at most 68 years")),
    }
}

/// Runs the server until it is stopped.
pub fn run(args: Args) -> Done {
    let zone = zone(&args)?;
    let names = zone.len();
    if names == 0 {
        return Err(Failure::usage("there are no names to serve: add --config FILE or --extra NAME=IP"));
    }
    let listen = args.listen.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(", ");
    let config = NameServerConfig { listen: args.listen, ttl: args.ttl, zone };
    let mut server = NameServer::start(config).map_err(|e| {
        Failure::setup(anyhow::anyhow!("cannot start a name server at {listen}: {e}{}", listen_hint(&e)))
    })?;
    if args.verb_lvl >= 1 {
        for address in server.local_addrs() {
            output::note(&format!("{} at {address}; Ctrl-C stops the server", counted(names as u64, "name")));
        }
    }
    let period = if args.verb_lvl >= 2 { Duration::from_secs(1) } else { Duration::MAX };
    let mut last = NameServerCounts::default();
    let tick = || {
        let now = server.snapshot();
        if now != last {
            output::note(&format!(
                "{} queries, {} in this second",
                now.queries(),
                now.queries() - last.queries()
            ));
            last = now;
        }
    };
    let limit = args.duration.map(Duration::from_secs_f64);
    polygraph_engine::signals::wait_ticking(limit, period, tick).map_err(Failure::setup)?;
    server.stop();
    output::print(&counts(&server.snapshot()));
    Ok(ExitCode::SUCCESS)
}

fn zone(args: &Args) -> Result<Zone, Failure> {
    let mut zone = Zone::default();
    if args.workload.config.is_some() {
        let workload = args.workload.load()?;
        if workload.addr_maps.is_empty() {
            output::warn("the workload uses no address map, so it has no names");
        }
        for map in &workload.addr_maps {
            let names: Vec<Addr> = map.names.iter().map(|name| name.addr.clone()).collect();
            zone.add_map(map.zone.as_deref(), &names, &map.addresses).map_err(Failure::data)?;
        }
    }
    for name in &args.zone {
        zone.add_zone(name).map_err(Failure::usage)?;
    }
    for extra in &args.extra {
        zone.add(&extra.name, &extra.addresses).map_err(Failure::usage)?;
    }
    Ok(zone)
}

/// The counts, one per line, without those that are 0; the number of queries is always shown.
fn counts(seen: &NameServerCounts) -> String {
    let lines = [
        ("queries", seen.queries()),
        ("  over TCP", seen.tcp_queries),
        ("  answered", seen.answered),
        ("    truncated", seen.truncated),
        ("  no such type", seen.no_data),
        ("  no such name", seen.no_name),
        ("  refused", seen.refused),
        ("  not understood", seen.bad_format),
        ("  not implemented", seen.not_implemented),
        ("ignored messages", seen.ignored),
        ("replies not sent", seen.send_errors),
        ("refused connections", seen.connections_refused),
    ];
    let shown = lines.iter().enumerate().filter(|(i, (_, count))| *i == 0 || *count > 0);
    shown.map(|(_, (what, count))| format!("{what:<20} {count:>10}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extra_names() {
        let read = |text: &str| extra(text).map(|extra| (extra.name, extra.addresses.len())).ok();
        assert_eq!(read("a.b=10.0.0.1"), Some(("a.b".to_owned(), 1)));
        assert_eq!(read("*.b=10.0.0.1,::1"), Some(("*.b".to_owned(), 2)));
        for wrong in ["a.b", "a.b=", "a.b=c.d", "a.b=10.0.0.1,", "a.b=10.0.0.1:53"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_to_live() {
        assert_eq!((ttl("0"), ttl("5min"), ttl("1500msec")), (Ok(0), Ok(300), Ok(2)));
        assert!(ttl("30000day").is_err() && ttl("5").is_err() && ttl("-5s").is_err());
    }

    #[test]
    fn counts_above_zero_are_shown() {
        let seen =
            NameServerCounts { udp_queries: 5, answered: 4, no_name: 1, ..NameServerCounts::default() };
        let expected = "queries                       5\n  answered                    4\n  no such name                1\n";
        assert_eq!(counts(&seen), expected);
        assert_eq!(counts(&NameServerCounts::default()), "queries                       0\n");
    }
}
