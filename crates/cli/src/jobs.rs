//! From a test to jobs of the engine.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use polygraph_addr::{AddrRange, expand};
use polygraph_engine::{ClientJob, Layout, Reserved, ServerJob, limits};
use polygraph_link::nanos;
use polygraph_plan::Test;
use polygraph_plan::test::Rate;
use polygraph_robot::{Load, Origin};
use polygraph_stats::{Header, Side};
use polygraph_traffic::{Distr, IdSource, Properties, Seed};

use crate::options::{CommonOptions, resolve};
use crate::{Failure, console};

/// More local addresses than this are a slip in a range.
const MAX_ADDRESSES: u64 = 1 << 20;

/// The limits of this machine's client side.
#[derive(Clone, Copy, Debug)]
pub struct ClientLimits {
    /// Explicit local ports.
    pub ports: Option<(u16, u16)>,
    /// Open connections at most.
    pub open_connections: Option<u32>,
}

/// The client side of a test as a job of the engine.
///
/// # Errors
/// If a limit cannot be kept or an address cannot be resolved.
pub fn client_job(
    test: &Test,
    common: &CommonOptions,
    limit: ClientLimits,
    layout: Layout,
    log: Option<PathBuf>,
) -> Result<ClientJob, Failure> {
    let robots = &test.robots;
    let descriptors = limits::raise_descriptor_limit();
    let most = limits::connection_limit(descriptors).saturating_mul(layout.processes.max(1));
    let open_limit = limit.open_connections.map_or(most, |limit| limit as usize);
    if open_limit > most {
        return Err(Failure::setup(anyhow::anyhow!(
            "--open_conn_lmt {open_limit} needs more file descriptors than the {descriptors} this process may \
             open: at most {most} connections; raise the hard limit (ulimit -Hn) or lower the option"
        )));
    }
    let proxy = robots.proxy.as_deref().map(resolve).transpose()?;
    let origin = |authority: &String| {
        // Through a proxy the origin's name is the proxy's business and need not mean anything here.
        let address = proxy.map_or_else(|| resolve(authority), Ok)?;
        Ok(Origin { authority: authority.clone(), address })
    };
    let mut ids: Vec<IdSource> =
        (0..layout.loops).map(|index| unique_ids(common, "ids", index as u32)).collect();
    let group = ids[0].fresh();
    let settings = polygraph_robot::Settings {
        first_robot: 0,
        robots: robots.count,
        all_robots: robots.count,
        addresses: robots.addresses.clone(),
        proxy,
        origins: robots.origins.iter().map(origin).collect::<Result<_, Failure>>()?,
        http_minor: test.http_minor,
        load: match &robots.rate {
            Rate::Open(rate) => Load::Open { rate: rate / robots.count as f64 },
            Rate::BestEffort(think) => Load::Closed { think: think.clone() },
        },
        launch_window: robots.launch_window,
        recurrence: robots.recurrence,
        cachable: test.content.cachable,
        popularity: robots.popularity,
        settle: robots.settle,
        requests_per_connection: robots.requests_per_connection.clone(),
        lifetime: robots.lifetime.map(nanos),
        open_limit,
        seed: Seed(common.local_rng_seed),
        properties: properties(test, common),
        verify_size: test.content.size.is_some(),
        group,
    };
    let offered_dhr = robots.recurrence * test.content.cachable;
    let rate = match robots.rate {
        Rate::Open(rate) => Some(rate),
        Rate::BestEffort(_) => None,
    };
    let mut facts = vec![
        ("proxy".to_owned(), robots.proxy.clone().unwrap_or_else(|| "none".into())),
        ("origins".to_owned(), robots.origins.join(", ")),
        ("robots".to_owned(), robots.count.to_string()),
        ("request rate".to_owned(), rate.map_or("best effort".into(), |rate| format!("{rate}/sec"))),
        ("cachable".to_owned(), format!("{:.2} %", test.content.cachable * 100.0)),
        ("offered document hit ratio".to_owned(), format!("{:.2} %", offered_dhr * 100.0)),
        ("popularity".to_owned(), format!("{:?}", robots.popularity)),
        ("repeats after".to_owned(), format!("{} s", robots.settle)),
        ("launch window".to_owned(), format!("{} s", robots.launch_window)),
        ("requests per connection".to_owned(), robots.requests_per_connection.to_string()),
        ("open connections at most".to_owned(), open_limit.to_string()),
        ("transaction lifetime".to_owned(), seconds_or_none(robots.lifetime)),
        ("local addresses".to_owned(), local_addresses_text(&robots.addresses)),
    ];
    facts.extend(limit.ports.map(|(low, high)| ("local ports".to_owned(), format!("{low}:{high}"))));
    facts.extend(test.content.size.as_ref().map(|sizes| ("reply size".to_owned(), sizes.to_string())));
    let mut header = header(Side::Client, test, common, facts);
    header.offered_rate = rate;
    header.offered_dhr = Some(offered_dhr);
    Ok(ClientJob { settings, ports: limit.ports, layout, ids, header, log })
}

/// The server side of a test as a job of the engine; all its addresses are reserved already.
pub fn server_job(
    test: &Test,
    common: &CommonOptions,
    places: Vec<Reserved>,
    layout: Layout,
    log: Option<PathBuf>,
) -> ServerJob {
    let servers = &test.servers;
    let addresses: Vec<String> = places.iter().map(|reserved| own_address(reserved.address())).collect();
    let group = unique_ids(common, "server ids", 0).fresh();
    let settings = |address: &String| polygraph_origin::Settings {
        index: 0,
        properties: properties(test, common),
        think: servers.think.clone(),
        http_minor: test.http_minor,
        requests_per_connection: servers.requests_per_connection.clone(),
        idle_timeout: servers.idle_timeout.map(nanos),
        seed: Seed(common.local_rng_seed),
        address: address.clone(),
        group,
    };
    let size = test.content.size.as_ref().map_or("none".into(), Distr::to_string);
    let facts = vec![
        ("addresses".to_owned(), addresses.join(", ")),
        ("reply size".to_owned(), size),
        ("think time".to_owned(), servers.think.as_ref().map_or("none".into(), Distr::to_string)),
        ("requests per connection".to_owned(), servers.requests_per_connection.to_string()),
        ("idle connections close after".to_owned(), seconds_or_none(servers.idle_timeout)),
    ];
    let header = header(Side::Server, test, common, facts);
    ServerJob { sites: addresses.iter().map(settings).zip(places).collect(), layout, header, log }
}

fn properties(test: &Test, common: &CommonOptions) -> Properties {
    let size = test.content.size.clone().unwrap_or(Distr::Const(0.0));
    Properties { seed: Seed(common.global_rng_seed), size }
}

/// Reserves all addresses of the test's servers.
///
/// # Errors
/// If an address cannot be used.
pub fn reserve_all(test: &Test) -> Result<Vec<Reserved>, Failure> {
    test.servers.listen.iter().map(|&address| reserve(address)).collect()
}

fn reserve(address: SocketAddr) -> Result<Reserved, Failure> {
    Reserved::new(address).map_err(|e| {
        let hint = match e.kind() {
            std::io::ErrorKind::PermissionDenied => "; ports below 1024 need root",
            std::io::ErrorKind::AddrInUse => "; another program uses it",
            _ => "",
        };
        Failure::setup(anyhow::anyhow!("cannot listen at {address}: {e}{hint}"))
    })
}

/// Sets a log of the same name aside, and makes sure that a log can be written before anything else happens: a server opens its log only when the
/// first request comes, which is too late to find out.
///
/// # Errors
/// If it cannot be written.
pub fn check_log(path: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    if path.metadata().is_ok_and(|file| file.is_file() && file.len() > 0) {
        let mut kept = path.as_os_str().to_owned();
        kept.push(".old");
        if std::fs::rename(path, &kept).is_ok() {
            console::note(&format!("{} existed and is now {}", path.display(), kept.display()));
        }
    }
    match std::fs::File::options().create(true).append(true).open(path) {
        Ok(_) => Ok(()),
        Err(e) => Err(Failure::setup(anyhow::anyhow!("cannot write the log {}: {e}", path.display()))),
    }
}

/// Expands address ranges like `127.1.0-39.1-250`.
///
/// # Errors
/// If the text is no list of ranges.
pub fn local_addresses(text: &str) -> Result<Vec<IpAddr>, String> {
    let ranges = AddrRange::parse_list(text).map_err(|e| e.to_string())?;
    let all = expand(&ranges, MAX_ADDRESSES).map_err(|e| e.to_string())?;
    all.iter()
        .map(|address| {
            address.host.ip().ok_or_else(|| format!("`{address}` is a name; IP addresses are needed here"))
        })
        .collect()
}

fn header(side: Side, test: &Test, common: &CommonOptions, mut settings: Vec<(String, String)>) -> Header {
    let phases: Vec<String> =
        test.schedule.phases.iter().map(|phase| format!("{} ({})", phase.name, phase.goal)).collect();
    settings.extend([
        ("HTTP version".to_owned(), format!("1.{}", test.http_minor)),
        ("phases".to_owned(), phases.join(", ")),
        ("statistics interval".to_owned(), format!("{} s", common.stats_cycle)),
        ("timer quantum".to_owned(), format!("{} us", (common.timer_quantum * 1e6).round())),
        ("global seed".to_owned(), common.global_rng_seed.to_string()),
        ("local seed".to_owned(), common.local_rng_seed.to_string()),
        ("idle time-out".to_owned(), seconds_or_none(common.idle_tout.0)),
    ]);
    Header {
        side,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        label: common.label.clone(),
        start_unix_ns: 0,
        pid: std::process::id(),
        environment: limits::environment(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        settings,
        workload: test.name.clone(),
        loops: 0,
        phases: test.schedule.plans(),
        offered_rate: None,
        offered_dhr: None,
        contents: Vec::new(),
    }
}

fn seconds_or_none(seconds: Option<f64>) -> String {
    seconds.map_or("none".into(), |seconds| format!("{seconds} s"))
}

fn local_addresses_text(addresses: &[IpAddr]) -> String {
    match addresses {
        [] => "chosen by the system".into(),
        [one] => one.to_string(),
        [first, .., last] => format!("{} from {first} to {last}", addresses.len()),
    }
}

/// The address that replies carry: the host's name stands for "any address".
fn own_address(bound: SocketAddr) -> String {
    if !bound.ip().is_unspecified() {
        return bound.to_string();
    }
    let host = limits::environment().into_iter().find(|(name, _)| name == "host").map(|(_, host)| host);
    format!("{}:{}", host.unwrap_or_default(), bound.port())
}

fn unique_ids(common: &CommonOptions, purpose: &str, index: u32) -> IdSource {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let first = Seed(common.local_rng_seed).derive(purpose, u64::from(index));
    IdSource::unique(now.as_secs(), now.subsec_micros(), index ^ (std::process::id() << 8), first)
}
