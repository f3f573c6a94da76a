//! The quick check of this host before a test. It refuses tests that cannot work, and warns of conditions that would
//! distort results.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use polygraph_doctor::{Depth, Diagnosis, Impact, PlannedLoad, diagnose_quick, read_descriptors, read_host};
use polygraph_engine::Layout;
use polygraph_plan::Test;
use polygraph_traffic::Distr;

use crate::jobs::ClientSettings;
use crate::{Failure, Notice, Notify, layouts};

/// Reads this host in a few milliseconds and judges it against the load. Results go to `results`.
///
/// # Errors
/// If the test cannot work on this host; the message names the reason and the remedy.
pub fn check(load: &PlannedLoad, results: &Path, notify: Notify) -> Result<(), Failure> {
    let found = diagnose_quick(&read_host(Path::new("/"), results, Depth::Quick), load);
    refuse(&found)?;
    let distorting = found.iter().filter(|diagnosis| diagnosis.finding.impact == Impact::Distorts);
    for diagnosis in distorting {
        notify(Notice::Warning(diagnosis.finding.line()));
    }
    Ok(())
}

/// Checks that this process may open the files without which no event loop starts.
///
/// # Errors
/// If too few files may be opened.
pub fn check_descriptors() -> Result<(), Failure> {
    let mut found = diagnose_quick(&read_descriptors(Path::new("/")), &PlannedLoad::default());
    found.retain(|diagnosis| diagnosis.check.name == "descriptors");
    refuse(&found)
}

fn refuse(found: &[Diagnosis]) -> Result<(), Failure> {
    let blocking = found.iter().filter(|diagnosis| diagnosis.finding.impact == Impact::Blocks);
    let lines: Vec<String> = blocking.map(|diagnosis| diagnosis.finding.line()).collect();
    match lines.is_empty() {
        true => Ok(()),
        false => Err(Failure::setup(anyhow::anyhow!("{}", lines.join("\n")))),
    }
}

/// The load of robots on this host. `origins` are the addresses of the servers, if the test does not name them.
pub fn of_client(
    test: &Test,
    client: &ClientSettings,
    layout: Layout,
    origins: &[SocketAddr],
) -> PlannedLoad {
    let sources: BTreeSet<IpAddr> =
        test.robots.iter().flat_map(|profile| profile.addresses.iter().copied()).collect();
    let targets = targets(test, origins);
    let hosts: BTreeSet<IpAddr> =
        targets.iter().map(SocketAddr::ip).filter(|address| !address.is_loopback()).collect();
    PlannedLoad {
        servers: false,
        connection_limit: client.open_connections.map(|limit| limit as usize),
        sources: sources.len(),
        targets: targets.len(),
        on_loopback: !targets.is_empty() && hosts.is_empty(),
        neighbours: hosts.len(),
        ports: client.ports,
        ..of_test(test, layout)
    }
}

/// The load of servers on this host.
pub fn of_server(test: &Test, layout: Layout) -> PlannedLoad {
    let sites = test.servers.iter().flat_map(|servers| &servers.sites);
    let ports: BTreeSet<u16> = sites.map(|site| site.listen.port()).filter(|&port| port != 0).collect();
    let clients = test.robots.iter().flat_map(|profile| &profile.addresses);
    let clients: BTreeSet<&IpAddr> = clients.filter(|address| !address.is_loopback()).collect();
    PlannedLoad {
        robots: false,
        neighbours: clients.len(),
        listening: ports.into_iter().collect(),
        ..of_test(test, layout)
    }
}

/// The part of the load that both sides share.
fn of_test(test: &Test, layout: Layout) -> PlannedLoad {
    let rate = test.peak_rate();
    PlannedLoad {
        rate,
        connection_rate: rate.map(|rate| rate / requests_per_connection(test)),
        bytes_per_s: rate.zip(reply_size(test)).map(|(rate, size)| rate * size),
        duration_s: test.schedule.duration(),
        connections: layouts::expected_connections(test),
        processes: layout.processes,
        ..PlannedLoad::default()
    }
}

/// Mean number of requests per connection, which each side may close.
fn requests_per_connection(test: &Test) -> f64 {
    let of_robots = test.robots.iter().map(|profile| &profile.requests_per_connection);
    let of_servers = test.servers.iter().map(|servers| &servers.farm.requests_per_connection);
    of_robots.chain(of_servers).map(Distr::mean).fold(f64::MAX, f64::min).max(1.0)
}

/// The mean size of replies to direct requests in bytes; `None` if they depend on files.
fn reply_size(test: &Test) -> Option<f64> {
    let of_server = |kinds: &polygraph_traffic::Selector<polygraph_traffic::ContentKind>| {
        let sizes = kinds.items().iter().enumerate().map(|(index, kind)| {
            let size = test.field.catalog.content(*kind)?.size.as_ref()?;
            Some(kinds.probability(index) * size.mean())
        });
        sizes.sum::<Option<f64>>()
    };
    let sizes: Option<Vec<f64>> = test.field.direct.iter().map(of_server).collect();
    sizes.filter(|sizes| !sizes.is_empty()).map(|sizes| sizes.iter().sum::<f64>() / sizes.len() as f64)
}

/// Addresses that robots connect to.
fn targets(test: &Test, origins: &[SocketAddr]) -> BTreeSet<SocketAddr> {
    let proxies = test.robots.iter().flat_map(|profile| {
        let socks = profile.socks.iter().flat_map(|socks| &socks.proxies);
        profile.proxies.iter().chain(socks).copied()
    });
    let mut found: BTreeSet<SocketAddr> = proxies.collect();
    if found.is_empty() {
        found = test.field.servers.iter().flat_map(|server| server.addresses.iter().copied()).collect();
    }
    if found.is_empty() {
        found = origins.iter().copied().collect();
    }
    found
}
