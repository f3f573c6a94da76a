//! `polygraph proxy`: the built-in caching proxy.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{ArgAction, Parser};
use polygraph_cache::{Fault, ProxyConfig, Snapshot};
use polygraph_device::server_tls;
use polygraph_engine::proxy::ProxyServer;
use polygraph_engine::{Engine, limits};
use polygraph_plan::{plain_tls, values};
use polygraph_report::text;
use polygraph_runner::Failure;
use polygraph_runner::environment::Machine;
use polygraph_runner::jobs::listen_hint;
use polygraph_tls::settings::ServerTls;
use polygraph_traffic::Seed;
use polygraph_wire::auth::access::{Access, Scheme};

use crate::exit::Done;
use crate::options::service::ServiceOptions;
use crate::options::values::{engine, whole, yes_no};
use crate::output;

/// Options of the proxy.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Example:\n  polygraph proxy --port 3128 --cache 256MB\n  \
        polygraph run --proxy 127.0.0.1:3128 --req_rate 100/sec --goal 5min\n  \
        polygraph proxy --tls yes --origin 127.0.0.1:8080"
)]
pub struct Args {
    /// Port to listen on, at the loopback address
    #[arg(long, value_name = "PORT", default_value = "3128", value_parser = whole(0..=u16::MAX))]
    port: u16,
    /// Address and port to listen on, instead of --port
    #[arg(long, value_name = "IP:PORT", conflicts_with = "port")]
    listen: Option<SocketAddr>,
    /// Memory for stored replies. The process needs more: about 10 MB, and up to 40 % of this size for gaps between stored
    /// replies and for replies in transit
    #[arg(long, value_name = "SIZE", default_value = "256MB", value_parser = values::size)]
    cache: u64,
    /// Number of event loops. Default: one per processor
    #[arg(long, value_name = "N", value_parser = whole(1..=1024_u32))]
    loops: Option<u32>,
    /// How event loops wait for the kernel (docs/engines.md): `epoll`, or `uring` (io_uring, Linux 6.1 or later). `auto` is uring where the host allows it
    #[arg(long, value_name = "auto|uring|epoll", default_value = "auto", value_parser = engine)]
    engine: Engine,
    /// Maximum number of client connections; further connections wait to be accepted
    #[arg(long, value_name = "N", value_parser = whole(1..=u32::MAX))]
    max_connections: Option<u32>,
    /// Use TLS with clients, with certificates that the proxy makes for every name, and HTTP/2 by ALPN
    #[arg(long, value_name = "yes|no", default_value = "no", value_parser = yes_no, action = ArgAction::Set, help_heading = "TLS")]
    tls: bool,
    /// Use TLS with clients, with the certificate chain and the private key in this file (PEM)
    #[arg(long, value_name = "FILE", help_heading = "TLS")]
    cert: Option<PathBuf>,
    /// Address of an origin server for which the proxy acts as a surrogate; repeatable, requests go to them in turn. Default: it is
    /// a forward proxy
    #[arg(long, value_name = "IP:PORT")]
    origin: Vec<SocketAddr>,
    #[command(flatten)]
    service: ServiceOptions,
    /// Require authentication with this scheme: basic, digest (MD5), digest-sha256, ntlm or negotiate; several, separated by commas,
    /// are offered in this order
    #[arg(long, value_name = "SCHEME", value_parser = scheme, value_delimiter = ',', help_heading = "Users")]
    auth: Vec<Scheme>,
    /// User with access; repeatable
    #[arg(long, value_name = "NAME:PASSWORD", value_parser = credentials, requires = "auth", help_heading = "Users")]
    user: Vec<(String, String)>,
    /// File with the keys of the service in Kerberos (a keytab): `negotiate` accepts tickets besides NTLM
    #[arg(long, value_name = "FILE", requires = "auth", help_heading = "Users")]
    keytab: Option<PathBuf>,
    /// Authentication realm
    #[arg(long, value_name = "TEXT", default_value = "polygraph", requires = "auth", help_heading = "Users")]
    realm: String,
    /// Inject a fault into this share of the transactions in which it is possible, for example alter=1%; repeatable
    ///
    /// A proxy with faults shows what a test detects. docs/correctness.md lists the faults and how robots report them.
    #[arg(long, value_name = "NAME=SHARE", value_parser = fault, help_heading = "Fault injection", hide_short_help = true)]
    fault: Vec<(Fault, f64)>,
    /// Stop after this time. Default: stop on Ctrl-C
    #[arg(long, value_name = "TIME", value_parser = values::time, help_heading = "Options")]
    duration: Option<f64>,
}

fn scheme(text: &str) -> Result<Scheme, String> {
    let unknown =
        || format!("`{text}` is not a scheme: write basic, digest, digest-sha256, ntlm or negotiate");
    Scheme::named(text).ok_or_else(unknown)
}

fn credentials(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once(':').filter(|(name, _)| !name.is_empty());
    let (name, password) = pair.ok_or_else(|| format!("`{text}` has no password: write name:password"))?;
    Ok((name.to_owned(), password.to_owned()))
}

fn fault(text: &str) -> Result<(Fault, f64), String> {
    let (name, share) = text.split_once('=').unwrap_or((text, "1"));
    Ok((name.parse()?, values::share(share)?))
}

/// The TLS settings of the proxy, if it has TLS.
fn tls(made: bool, certificate: Option<&Path>) -> Result<Option<ServerTls>, Failure> {
    if let Some(path) = certificate {
        let tls = server_tls(path).map_err(|text| Failure::usage(format!("--cert {text}")))?;
        return Ok(Some(tls));
    }
    let made = made.then(|| plain_tls(&Machine::WITH_SERVERS, Seed(std::process::id().into()))).transpose();
    Ok(made.map_err(|e| Failure::usage(format!("--tls: {e}")))?.map(|(_, server)| server))
}

/// Access control, if the user wants any.
fn access(
    schemes: Vec<Scheme>,
    realm: &str,
    users: Vec<(String, String)>,
    keytab: Option<&Path>,
) -> Result<Option<Access>, Failure> {
    if schemes.is_empty() {
        return Ok(None);
    }
    if users.is_empty() && keytab.is_none() {
        return Err(Failure::usage(
            "--auth: nobody would have access: name users with --user, or a --keytab",
        ));
    }
    let mut access = Access::new(schemes, realm, users);
    if let Some(path) = keytab {
        if !access.schemes.contains(&Scheme::Negotiate) {
            return Err(Failure::usage(
                "--keytab: tickets come by the scheme negotiate, which --auth does not name",
            ));
        }
        polygraph_kerberos::available().map_err(|missing| Failure::usage(format!("--keytab: {missing}")))?;
        let problem = |text: String| Failure::usage(format!("--keytab {}: {text}", path.display()));
        let bytes = std::fs::read(path).map_err(|e| problem(e.to_string()))?;
        access.keys = polygraph_kerberos::keytab::read(&bytes).map_err(|e| problem(e.to_string()))?;
    }
    Ok(Some(access))
}

/// Runs the proxy until it is stopped.
pub fn run(args: Args) -> Done {
    let descriptors = limits::raise_descriptor_limit();
    limits::give_back_large_blocks();
    let listen = args.listen.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, args.port)));
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let config = ProxyConfig {
        listen,
        cache_bytes: args.cache,
        loops: args.loops.map_or(processors, |loops| loops as usize),
        // Every client connection may need one to an origin.
        max_connections: args
            .max_connections
            .map_or(limits::connection_limit(descriptors) / 2, |limit| limit as usize),
        tls: tls(args.tls, args.cert.as_deref())?,
        origins: args.origin,
        access: access(args.auth, &args.realm, args.user, args.keytab.as_deref())?,
        service: args.service.into(),
        faults: args.fault,
        ..ProxyConfig::default()
    };
    let (cache, start) = (args.cache, Instant::now());
    let mut proxy = ProxyServer::start(config, args.engine).map_err(|e| {
        Failure::setup(anyhow::anyhow!("cannot start a proxy at {listen}: {e}{}", listen_hint(&e)))
    })?;
    output::note(&format!("proxy at {}; Ctrl-C stops it", proxy.local_addr()));
    polygraph_engine::signals::wait(args.duration.map(Duration::from_secs_f64)).map_err(Failure::setup)?;
    let cpu = proxy.cpu_seconds();
    let seen = proxy.snapshot();
    proxy.stop();
    output::print(&summary(&seen, start.elapsed().as_secs_f64(), cpu, cache));
    Ok(ExitCode::SUCCESS)
}

/// The summary of the proxy's work, without counts of 0.
fn summary(seen: &Snapshot, seconds: f64, cpu: f64, cache: u64) -> String {
    let mut out = String::new();
    let mut row = |name: &str, parts: Vec<String>| {
        if !parts.is_empty() {
            let _ = writeln!(out, "{name:<14} {}", parts.join(", "));
        }
    };
    let some = |pairs: &[(u64, &str)]| {
        let happened = pairs.iter().filter(|(count, _)| *count > 0);
        happened.map(|(count, what)| format!("{count} {what}")).collect::<Vec<_>>()
    };
    let bytes = |count: u64| text::bytes(Some(count as f64));
    row(
        "proxy",
        vec![format!("ran for {}", text::duration(seconds.round())), format!("{cpu:.2} s of processor time")],
    );
    let mut requests = vec![format!("{} in all", seen.requests)];
    if seen.requests > 0 {
        let stored = seen.hits + seen.validated;
        let share = text::number(Some(stored as f64 * 100.0 / seen.requests as f64), 2);
        requests.push(format!("{stored} answered from the store ({share} %)"));
    }
    requests.extend(some(&[
        (seen.misses, "passed on to origin servers"),
        (seen.validations, "validations of stored replies"),
        (seen.rejected, "refused"),
        (seen.challenged, "answered with an authentication challenge"),
    ]));
    row("requests", requests);
    let mut store =
        vec![format!("{} objects with {} of {}", seen.store_objects, bytes(seen.store_bytes), bytes(cache))];
    store.extend(some(&[(seen.stored, "stored"), (seen.evicted, "evicted")]));
    row("store", store);
    row(
        "connections",
        some(&[
            (seen.accepted, "from clients"),
            (seen.handshakes, "of them with TLS"),
            (seen.http2, "of them with HTTP/2"),
            (seen.origin_connects, "to origin servers"),
            (seen.refused, "refused at the limit (--max_connections)"),
            (seen.accept_errors, "not accepted for lack of file descriptors (ulimit -n)"),
            (seen.queue_full, "times the listen queue was full (sysctl net.core.somaxconn, --loops)"),
        ]),
    );
    row(
        "traffic",
        vec![
            format!("{} to clients", bytes(seen.bytes_out)),
            format!("{} from origin servers", bytes(seen.bytes_in)),
        ],
    );
    row(
        "trouble",
        some(&[
            (seen.bad_requests, "malformed requests"),
            (seen.failed_handshakes, "failed TLS handshakes"),
            (seen.origin_errors, "failed requests to origins (502 or 504)"),
            (seen.aborted, "truncated replies"),
            (seen.faults, "injected faults (--fault)"),
        ]),
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_for_people() {
        let seen = Snapshot {
            requests: 10,
            hits: 4,
            misses: 5,
            validations: 1,
            validated: 1,
            stored: 5,
            ..Snapshot::default()
        };
        let text = summary(&seen, 12.0, 0.5, 1 << 20);
        for part in
            ["10 in all", "5 answered from the store (50.00 %)", "5 passed on", "0.50 s of processor time"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("trouble") && !text.contains('{'), "{text}");
    }
}
