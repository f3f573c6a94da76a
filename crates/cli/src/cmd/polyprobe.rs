//! `polyprobe`: the throughput of all links between clients and servers, by the same command line on every machine.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use polygraph_addr::{Addr, AddrRange, expand};
use polygraph_netcheck::throughput::client::measure;
use polygraph_netcheck::throughput::{Direction, ThroughputResult, ThroughputServer, ThroughputTest, rate};
use polygraph_runner::Failure;
use polygraph_text::counted;

use crate::exit::{Done, FAILED};
use crate::options::values::duration;
use crate::output;

/// Maximum number of links of one machine: each needs two threads on both sides.
const MOST_LINKS: usize = 1000;

/// Options of `polyprobe`.
#[derive(clap::Args, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Example, on every machine:\n  \
        polyprobe 10.16.1-2.1 10.16.129-130.1:8080\n\n\
        Each process plays the roles of the addresses that its machine has. Every client keeps a connection to every server; \
        both ends send as fast as TCP takes it. Clients print the rates in Mbit/s = 10^6 bits per second, counted by the \
        receivers. `polygraph net throughput` measures chosen hosts in more detail."
)]
pub struct Args {
    /// Addresses of clients, as ranges
    #[arg(value_name = "CLIENTS", conflicts_with_all = ["clients", "servers"], requires = "server_ranges")]
    client_ranges: Option<String>,
    /// Addresses of servers with ports, as ranges
    #[arg(value_name = "SERVERS:PORT")]
    server_ranges: Option<String>,
    /// Addresses of clients, as ranges
    #[arg(long, value_name = "RANGES", requires = "servers")]
    clients: Option<String>,
    /// Addresses of servers with ports, as ranges
    #[arg(long, value_name = "RANGES", requires = "clients")]
    servers: Option<String>,
    /// How long both sides send
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    duration: Duration,
    /// Pause between two attempts to connect, and before the first one, so that servers can start
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    contact_tout: Duration,
    /// How long a client tries to connect, and how long a server waits for its last client
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    stats_exchange_tout: Duration,
}

/// A connection between a client here and a server.
struct Link {
    client: IpAddr,
    server: SocketAddr,
}

/// The outcome of a link.
struct LinkResult {
    found: Option<ThroughputResult>,
    /// Attempts that failed.
    errors: u32,
    why: Option<String>,
}

/// Plays all roles that this machine has.
pub fn run(args: &Args) -> Done {
    let missing = || {
        Failure::usage(
            "there are no servers: write the ranges of clients and of servers, each server with a port",
        )
    };
    let clients = args.client_ranges.as_deref().or(args.clients.as_deref()).ok_or_else(missing)?;
    let servers = args.server_ranges.as_deref().or(args.servers.as_deref()).ok_or_else(missing)?;
    let clients: Vec<IpAddr> = list(clients)?.iter().map(ip).collect::<Result<_, _>>()?;
    let servers: Vec<SocketAddr> = list(servers)?.iter().map(socket_address).collect::<Result<_, _>>()?;
    let local_servers: Vec<SocketAddr> =
        servers.iter().copied().filter(|server| is_local(server.ip())).collect();
    let local_clients: Vec<IpAddr> = clients.iter().copied().filter(|client| is_local(*client)).collect();
    if local_servers.is_empty() && local_clients.is_empty() {
        return Err(Failure::setup(anyhow::anyhow!(
            "this machine has none of the addresses of clients and servers"
        )));
    }
    let links: Vec<Link> = local_clients
        .iter()
        .flat_map(|client| servers.iter().map(move |server| Link { client: *client, server: *server }))
        .filter(|link| link.client.is_ipv4() == link.server.is_ipv4())
        .collect();
    if links.len() > MOST_LINKS {
        let text =
            format!("this machine would have {} links; at most {MOST_LINKS} are possible", links.len());
        return Err(Failure::usage(text));
    }
    let mut running = Vec::new();
    for address in &local_servers {
        let server =
            ThroughputServer::start(*address).map_err(|error| super::net::listening(*address, error))?;
        let family = |client: &&IpAddr| client.is_ipv4() == address.is_ipv4();
        running.push((server, clients.iter().filter(family).count() as u64));
    }
    let (servers, links_here) =
        (counted(running.len() as u64, "server"), counted(links.len() as u64, "link"));
    output::note(&format!("{servers} and {links_here} of clients on this machine"));
    let results = run_links(args, &links);
    let latest = Instant::now()
        + args.stats_exchange_tout
        + if links.is_empty() { args.duration } else { Duration::ZERO };
    let is_finished = || running.iter().all(|(server, clients)| server.finished() >= *clients);
    while !is_finished() && Instant::now() < latest {
        thread::sleep(Duration::from_millis(50));
    }
    for (server, clients) in &running {
        if server.finished() < *clients {
            let address = server.address();
            output::warn(&format!(
                "{} of {clients} clients finished their test with {address}",
                server.finished()
            ));
        }
    }
    output::print(&if links.is_empty() { String::new() } else { table(&links, &results) });
    for (link, result) in links.iter().zip(&results) {
        if let Some(why) = &result.why {
            output::warn(&format!("{} {}: {why}", link.client, link.server));
        }
    }
    let good = is_finished()
        && results.iter().all(|result| result.found.as_ref().is_some_and(|found| found.broken() == 0));
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// All links at once.
fn run_links(args: &Args, links: &[Link]) -> Vec<LinkResult> {
    thread::scope(|scope| {
        let threads: Vec<_> = links.iter().map(|link| scope.spawn(|| run_link(args, link))).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, LinkResult>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        threads.into_iter().map(join).collect()
    })
}

fn run_link(args: &Args, link: &Link) -> LinkResult {
    let test = ThroughputTest {
        server: link.server,
        sources: vec![link.client],
        streams: 1,
        duration: args.duration,
        direction: Direction::Both,
        patience: args.stats_exchange_tout.min(Duration::from_secs(5)),
    };
    let give_up = Instant::now() + args.stats_exchange_tout;
    let mut errors = 0;
    loop {
        thread::sleep(args.contact_tout);
        match measure(&test) {
            Ok(found) => return LinkResult { found: Some(found), errors, why: None },
            Err(_) if Instant::now() < give_up => errors += 1,
            Err(error) => {
                return LinkResult { found: None, errors: errors + 1, why: Some(error.to_string()) };
            }
        }
    }
}

/// The columns of the original: in and out as the client sees it, row 0 with the totals.
fn table(links: &[Link], results: &[LinkResult]) -> String {
    let mut text = format!(
        "{:>5} {:>15} {:>21} {:>10} {:>10} {:>6} {:>6}\n",
        "link", "client", "server", "inMbps", "outMbps", "conns", "errors"
    );
    let mbit = |bits: Option<f64>| bits.map_or_else(|| "-".to_owned(), |bits| format!("{:.2}", bits / 1e6));
    for (number, (link, result)) in links.iter().zip(results).enumerate() {
        let found = result.found.as_ref();
        let _ = writeln!(
            text,
            "{:>5} {:>15} {:>21} {:>10} {:>10} {:>6} {:>6}",
            number + 1,
            link.client.to_string(),
            link.server.to_string(),
            mbit(found.and_then(ThroughputResult::received_rate)),
            mbit(found.and_then(ThroughputResult::sent_rate)),
            u32::from(found.is_some()),
            result.errors
        );
    }
    let found = || results.iter().filter_map(|result| result.found.as_ref());
    let received: Vec<_> = found().flat_map(|found| found.client.received.clone()).collect();
    let sent: Vec<_> = found().flat_map(|found| found.server.received.clone()).collect();
    let errors: u32 = results.iter().map(|result| result.errors).sum();
    let _ = writeln!(
        text,
        "\n{:>5} {:>15} {:>21} {:>10} {:>10} {:>6} {errors:>6}",
        0,
        "total",
        "",
        mbit(Some(rate(&received))),
        mbit(Some(rate(&sent))),
        received.len()
    );
    text
}

fn list(text: &str) -> Result<Vec<Addr>, Failure> {
    let ranges = AddrRange::parse_list(text).map_err(Failure::usage)?;
    expand(&ranges, MOST_LINKS as u64).map_err(Failure::usage)
}

fn ip(address: &Addr) -> Result<IpAddr, Failure> {
    address.host.ip().ok_or_else(|| Failure::usage(format!("`{address}` is a name: write IP addresses")))
}

fn socket_address(address: &Addr) -> Result<SocketAddr, Failure> {
    let port = address
        .port
        .ok_or_else(|| Failure::usage(format!("the server {address} has no port: write {address}:8080")))?;
    Ok(SocketAddr::new(ip(address)?, port))
}

/// Whether this machine has an address.
fn is_local(ip: IpAddr) -> bool {
    UdpSocket::bind((ip, 0)).is_ok()
}
