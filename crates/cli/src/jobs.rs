//! From options to jobs of the engine.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use polygraph_addr::{AddrRange, expand};
use polygraph_engine::{ClientJob, Listeners, ServerJob, limits};
use polygraph_link::nanos;
use polygraph_plan::Schedule;
use polygraph_robot::{Load, Origin};
use polygraph_stats::{Header, Side};
use polygraph_traffic::{Distr, IdSource, Properties, Seed};

use crate::Failure;
use crate::options::{CommonOptions, RobotOptions, resolve};

/// Repeats are held back so long if the servers' think time is not known.
pub const DEFAULT_SETTLE: f64 = 10.0;
/// More local addresses than this are a slip in a range.
const MAX_ADDRESSES: u64 = 1 << 20;
/// A device gets so much longer than the servers think before it must have an object.
const SETTLE_MARGIN: f64 = 0.25;

/// Everything about the client side.
#[derive(Debug)]
pub struct ClientPlan<'a> {
    /// Options of the robots.
    pub robots: &'a RobotOptions,
    /// Options of both sides.
    pub common: &'a CommonOptions,
    /// The proxy under test, `host:port`.
    pub proxy: Option<&'a str>,
    /// The origin server, `host:port` as it stands in URLs.
    pub origin: &'a str,
    /// Pause of best-effort robots between transactions.
    pub robot_think: Option<Distr>,
    /// Reply sizes, if the client knows them.
    pub sizes: Option<Distr>,
    /// Repeats are held back so long unless an option says otherwise.
    pub settle: f64,
    /// The phases.
    pub schedule: &'a Schedule,
    /// Name of the workload.
    pub workload: &'a str,
    /// Where the log goes.
    pub log: Option<PathBuf>,
}

/// The client side as a job of the engine.
///
/// # Errors
/// If options contradict each other or an address cannot be resolved.
pub fn client_job(plan: &ClientPlan<'_>) -> Result<ClientJob, Failure> {
    let ClientPlan { robots, common, .. } = plan;
    if robots.dhr > robots.rep_cachable {
        return Err(Failure::usage(format!(
            "--dhr {:.0}p needs --rep_cachable of at least as much: uncachable replies cannot be hits",
            robots.dhr * 100.0
        )));
    }
    let rate = robots.req_rate.and_then(|rate| rate.0);
    if rate.is_some() && plan.robot_think.is_some() {
        return Err(Failure::usage("--xact_think of robots has no meaning with --req_rate: leave one out"));
    }
    let loops = loops(common).min(robots.robots as usize);
    let descriptors = limits::raise_descriptor_limit();
    let most = limits::connection_limit(descriptors);
    let open_limit = robots.open_conn_lmt.map_or(most, |limit| limit as usize);
    if open_limit > most {
        return Err(Failure::setup(anyhow::anyhow!(
            "--open_conn_lmt {open_limit} needs more file descriptors than the {descriptors} this process may \
             open: at most {most} connections; raise the hard limit (ulimit -Hn) or lower the option"
        )));
    }
    let proxy = plan.proxy.map(resolve).transpose()?;
    // Through a proxy the origin's name is the proxy's business and need not mean anything here.
    let address = proxy.map_or_else(|| resolve(plan.origin), Ok)?;
    let mut ids: Vec<IdSource> = (0..loops).map(|index| unique_ids(index as u32)).collect();
    let group = ids[0].fresh();
    let settle = robots.settle_time.unwrap_or(plan.settle);
    let settings = polygraph_robot::Settings {
        first_robot: 0,
        robots: robots.robots as usize,
        all_robots: robots.robots as usize,
        addresses: robots.local_addrs.clone().map(|list| list.0).unwrap_or_default(),
        proxy,
        origins: vec![Origin { authority: plan.origin.to_owned(), address }],
        load: match rate {
            Some(rate) => Load::Open { rate: rate / f64::from(robots.robots) },
            None => Load::Closed { think: plan.robot_think.clone() },
        },
        launch_window: robots.launch_win.0.unwrap_or(0.0),
        recurrence: if robots.rep_cachable > 0.0 { robots.dhr / robots.rep_cachable } else { 0.0 },
        cachable: robots.rep_cachable,
        popularity: robots.pop_model,
        settle,
        requests_per_connection: common.pconn_use_lmt.clone(),
        lifetime: robots.xact_lifetime.0.map(nanos),
        open_limit,
        seed: Seed(common.local_rng_seed),
        properties: Properties {
            seed: Seed(common.global_rng_seed),
            size: plan.sizes.clone().unwrap_or(Distr::Const(0.0)),
        },
        verify_size: plan.sizes.is_some(),
        group,
    };
    let mut facts = vec![
        ("proxy".to_owned(), plan.proxy.unwrap_or("none").to_owned()),
        ("origin".to_owned(), plan.origin.to_owned()),
        ("robots".to_owned(), robots.robots.to_string()),
        ("request rate".to_owned(), rate.map_or("best effort".into(), |rate| format!("{rate}/sec"))),
        ("cachable".to_owned(), format!("{:.2} %", robots.rep_cachable * 100.0)),
        ("offered document hit ratio".to_owned(), format!("{:.2} %", robots.dhr * 100.0)),
        ("popularity".to_owned(), format!("{:?}", robots.pop_model)),
        ("repeats after".to_owned(), format!("{settle} s")),
        ("launch window".to_owned(), format!("{} s", robots.launch_win.0.unwrap_or(0.0))),
        ("open connections at most".to_owned(), open_limit.to_string()),
        ("transaction lifetime".to_owned(), seconds_or_none(robots.xact_lifetime.0)),
        ("local addresses".to_owned(), local_addresses_text(&settings.addresses)),
    ];
    facts.extend(robots.ports.0.map(|(low, high)| ("local ports".to_owned(), format!("{low}:{high}"))));
    facts.extend(plan.sizes.as_ref().map(|sizes| ("reply size".to_owned(), sizes.to_string())));
    facts.extend(common_facts(common, plan.schedule));
    let mut header = header(Side::Client, common, plan.schedule, plan.workload, facts);
    header.offered_rate = rate;
    header.offered_dhr = Some(robots.dhr);
    Ok(ClientJob { settings, ports: robots.ports.0, loops, ids, header, log: plan.log.clone() })
}

/// Everything about the server side.
#[derive(Debug)]
pub struct ServerPlan<'a> {
    /// Options of both sides.
    pub common: &'a CommonOptions,
    /// Reply sizes.
    pub sizes: &'a Distr,
    /// Delay before the first byte of a reply.
    pub think: Option<Distr>,
    /// The phases.
    pub schedule: &'a Schedule,
    /// Name of the workload.
    pub workload: &'a str,
    /// Where the log goes.
    pub log: Option<PathBuf>,
}

/// The server side as a job of the engine; `listeners` are bound already.
pub fn server_job(plan: &ServerPlan<'_>, listeners: Listeners) -> ServerJob {
    let common = plan.common;
    let address = own_address(listeners.address());
    let settings = polygraph_origin::Settings {
        index: 0,
        properties: Properties { seed: Seed(common.global_rng_seed), size: plan.sizes.clone() },
        think: plan.think.clone(),
        requests_per_connection: common.pconn_use_lmt.clone(),
        idle_timeout: None,
        seed: Seed(common.local_rng_seed),
        address: address.clone(),
        group: unique_ids(u32::MAX / 2).fresh(),
    };
    let mut facts = vec![
        ("address".to_owned(), address),
        ("reply size".to_owned(), plan.sizes.to_string()),
        ("think time".to_owned(), plan.think.as_ref().map_or("none".into(), Distr::to_string)),
    ];
    facts.extend(common_facts(common, plan.schedule));
    let header = header(Side::Server, common, plan.schedule, plan.workload, facts);
    ServerJob { sites: vec![(settings, listeners)], header, log: plan.log.clone() }
}

/// Listens at `address` with as many loops as the options say.
///
/// # Errors
/// If the address cannot be used.
pub fn listen(address: SocketAddr, loops: usize) -> Result<Listeners, Failure> {
    Listeners::bind(address, loops).map_err(|e| {
        let hint = match e.kind() {
            std::io::ErrorKind::PermissionDenied => "; ports below 1024 need root",
            std::io::ErrorKind::AddrInUse => "; another program uses it",
            _ => "",
        };
        Failure::setup(anyhow::anyhow!("cannot listen at {address}: {e}{hint}"))
    })
}

/// Number of event loops.
pub fn loops(common: &CommonOptions) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    common.loops.map_or(processors, |loops| loops as usize)
}

/// How long repeats are held back if the servers' think time is known: what nearly all replies need.
pub fn settle_time(think: Option<&Distr>) -> f64 {
    think.map_or(0.0, Distr::high) + SETTLE_MARGIN
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

fn header(
    side: Side,
    common: &CommonOptions,
    schedule: &Schedule,
    workload: &str,
    settings: Vec<(String, String)>,
) -> Header {
    Header {
        side,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        label: common.label.clone(),
        start_unix_ns: 0,
        pid: std::process::id(),
        environment: limits::environment(),
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        settings,
        workload: workload.to_owned(),
        loops: 0,
        phases: schedule.plans(),
        offered_rate: None,
        offered_dhr: None,
    }
}

fn common_facts(common: &CommonOptions, schedule: &Schedule) -> Vec<(String, String)> {
    let phases: Vec<String> =
        schedule.phases.iter().map(|phase| format!("{} ({})", phase.name, phase.goal)).collect();
    vec![
        ("requests per connection".to_owned(), common.pconn_use_lmt.to_string()),
        ("phases".to_owned(), phases.join(", ")),
        ("statistics interval".to_owned(), format!("{} s", common.stats_cycle)),
        ("timer quantum".to_owned(), format!("{} us", (common.timer_quantum * 1e6).round())),
        ("global seed".to_owned(), common.global_rng_seed.to_string()),
        ("local seed".to_owned(), common.local_rng_seed.to_string()),
        ("idle time-out".to_owned(), seconds_or_none(common.idle_tout.0)),
    ]
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

fn unique_ids(discriminator: u32) -> IdSource {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    IdSource::unique(now.as_secs(), now.subsec_micros(), discriminator ^ (std::process::id() << 8))
}
