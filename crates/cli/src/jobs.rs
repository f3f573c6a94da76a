//! From a test to jobs of the engine.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use polygraph_addr::{AddrRange, expand};
use polygraph_engine::{ClientSetup, Layout, ReservedAddress, ServerSetup, limits};
use polygraph_origin::{OriginConfig, ServerSpec};
use polygraph_plan::Test;
use polygraph_plan::offered::offered_dhr;
use polygraph_report::CONTENTS_MARK;
use polygraph_stats::{Header, Side};
use polygraph_traffic::{Catalog, Fingerprint, IdSource, Seed};

use crate::options::{CommonOptions, ToleranceOptions};
use crate::{Failure, console, facts, processes, working_set};

/// More local addresses than this are a slip in a range.
const MAX_ADDRESSES: u64 = 1 << 20;

/// The limits of this machine's client side.
#[derive(Clone, Copy, Debug)]
pub struct ClientLimits {
    /// Explicit local ports.
    pub ports: Option<(u16, u16)>,
    /// Open connections at most.
    pub open_connections: Option<u32>,
    /// Servers of the same test run beside the robots.
    pub with_servers: bool,
}

/// How many connections the robots of a process may have open.
#[derive(Clone, Copy, Debug)]
pub struct OpenLimit {
    /// So many.
    pub connections: usize,
    /// Not because the test says so, but because each process may open no more than so many file descriptors.
    pub descriptors: Option<u64>,
}

impl OpenLimit {
    /// No limit.
    pub const NONE: OpenLimit = OpenLimit { connections: usize::MAX, descriptors: None };

    /// The limit of robots in `layout`, given what the user wants. Robots that share their process with servers
    /// (`with_servers`) share its descriptors, too: each connection to them has two ends there.
    ///
    /// # Errors
    /// If there are fewer descriptors than what the user wants needs.
    fn of(wanted: Option<u32>, layout: Layout, with_servers: bool) -> Result<OpenLimit, Failure> {
        let descriptors = limits::raise_descriptor_limit();
        let most = limits::connection_limit(descriptors).saturating_mul(layout.processes.max(1));
        match wanted.map(|limit| limit as usize) {
            Some(limit) if limit > most => Err(Failure::setup(anyhow::anyhow!(
                "--open_conn_lmt {limit} needs more file descriptors than the {descriptors} this process may \
                 open: at most {most} connections; raise the hard limit (ulimit -Hn) or lower the option"
            ))),
            Some(limit) => Ok(OpenLimit { connections: limit, descriptors: None }),
            None => {
                let ends = if with_servers && layout.processes == 0 { 2 } else { 1 };
                Ok(OpenLimit { connections: (most / ends).max(1), descriptors: Some(descriptors) })
            }
        }
    }

    /// What the log says about it.
    pub fn text(self) -> String {
        match self {
            OpenLimit { connections: usize::MAX, .. } => "any number".to_owned(),
            OpenLimit { connections, descriptors: Some(descriptors) } => {
                format!("{connections}, all that {descriptors} file descriptors allow")
            }
            OpenLimit { connections, descriptors: None } => connections.to_string(),
        }
    }

    /// What the user must know before the test, which is expected to have so many connections open.
    fn warning(self, expected: usize) -> Option<String> {
        let descriptors = self.descriptors?;
        (expected.saturating_mul(2) > self.connections).then(|| {
            format!(
                "robots may have {} connections open at a time, because a process may open {descriptors} files here, \
                 and the test is expected to need about {expected}: more of them would make the run INVALID. Raise the limit \
                 (ulimit -Hn, LimitNOFILE of a service), or start more processes (--workers N) for several robots",
                self.connections
            )
        })
    }
}

/// The client side of a test as a job of the engine.
///
/// # Errors
/// If a limit cannot be kept, or robots would ask servers for what they do not have.
pub fn client_job(
    test: &Test,
    common: &CommonOptions,
    limit: ClientLimits,
    layout: Layout,
    log: Option<PathBuf>,
    working_set: &working_set::Files,
    tolerance: polygraph_robot::Tolerance,
) -> Result<ClientSetup, Failure> {
    if test.robot_count() == 0 {
        return Err(Failure::usage(
            "there are no robots: the workload uses none, or gives them no addresses",
        ));
    }
    if let Some(text) = test.misdirection() {
        return Err(Failure::usage(text));
    }
    check_local(test)?;
    let open_limit = OpenLimit::of(limit.open_connections, layout, limit.with_servers)?;
    if let Some(text) = open_limit.warning(processes::expected_connections(test)) {
        console::warn(&text);
    }
    Ok(client_job_within(test, common, (limit.ports, open_limit), layout, log, working_set, tolerance))
}

/// The client side of a test as a job of the engine, with explicit local ports and so many open connections at most,
/// whatever this machine has of both.
pub fn client_job_within(
    test: &Test,
    common: &CommonOptions,
    (ports, open_limit): (Option<(u16, u16)>, OpenLimit),
    layout: Layout,
    log: Option<PathBuf>,
    working_set: &working_set::Files,
    tolerance: polygraph_robot::Tolerance,
) -> ClientSetup {
    let earlier = working_set.earlier.as_ref();
    let stored = |index: usize| earlier.and_then(|set| set.shares.get(index)).map(|share| share.ids.clone());
    let ids_of = |index: usize| match stored(index) {
        // Ids that repeat would begin anew with those of the stored objects.
        Some(ids) if !common.unique_world => ids,
        _ => new_ids(common, "ids", index as u32),
    };
    let mut ids: Vec<IdSource> = (0..layout.loops).map(ids_of).collect();
    let group = ids[0].fresh();
    let settings = polygraph_robot::Settings {
        first_robot: 0,
        robots: test.robot_count(),
        profiles: test.robots.clone(),
        field: Arc::clone(&test.field),
        launch_window: test.launch_window,
        open_limit: open_limit.connections,
        limited_by_host: open_limit.descriptors.is_some(),
        seed: Seed(common.local_rng_seed),
        group,
        tolerance,
        share_phases: false,
        others_fill: !common.unique_world || earlier.is_some(),
    };
    let mut header = header(Side::Client, test, common, facts::of_client(test, open_limit, ports));
    if let Some(set) = earlier {
        let fact = format!("goes on with {} objects filled before", set.fill().count);
        header.settings.push(("working set".to_owned(), fact));
    }
    header.settings.push(contents_mark(&settings.field.catalog));
    let accepting = if tolerance.foreign_replies { "yes" } else { "no" };
    header.settings.push(("accepts foreign messages".to_owned(), accepting.to_owned()));
    header.settings.push(("process group".to_owned(), group.to_string()));
    header.offered_rate = test.full_rate().filter(|_| !test.schedule.is_steered());
    header.offered_dhr = offered_dhr(test);
    let (earlier, stores, dump) = (earlier.cloned(), working_set.stores(), common.dump.plan());
    ClientSetup { settings, ports, layout, ids, earlier, stores, header, log, sample_log: None, dump }
}

/// What servers put up with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tolerance {
    /// URLs that are not ours.
    pub any_url: bool,
    /// Messages without any marks of ours.
    pub foreign_messages: bool,
}

impl From<ToleranceOptions> for Tolerance {
    fn from(options: ToleranceOptions) -> Tolerance {
        Tolerance { any_url: options.ign_urls, foreign_messages: options.accept_foreign_msgs }
    }
}

/// The server side of a test as a job of the engine; all its addresses are reserved already, in the order of the
/// test.
pub fn server_job(
    test: &Test,
    common: &CommonOptions,
    tolerance: Tolerance,
    places: Vec<ReservedAddress>,
    layout: Layout,
    log: Option<PathBuf>,
) -> ServerSetup {
    let config = OriginConfig {
        catalog: Arc::new(test.field.catalog.clone()),
        profiles: test.servers.iter().map(|servers| servers.farm.clone()).collect(),
        seed: Seed(common.local_rng_seed),
        group: new_ids(common, "server ids", SERVER_IDS).fresh(),
        classic: test.classic,
        ignore_urls: tolerance.any_url,
        accept_foreign_msgs: tolerance.foreign_messages,
        share_worlds: test.field.share_worlds,
    };
    let sites = test.servers.iter().enumerate();
    let sites = sites.flat_map(|(profile, servers)| servers.sites.iter().map(move |site| (profile, site)));
    let sites: Vec<(ServerSpec, ReservedAddress)> = sites
        .zip(places)
        .enumerate()
        .map(|(number, ((profile, site), place))| {
            let (number, address) = (number as u64, own_address(place.address()));
            (ServerSpec { profile, number, address, names: site.names.clone() }, place)
        })
        .collect();
    let addresses: Vec<String> = sites.iter().map(|(server, _)| server.address.clone()).collect();
    let mut header = header(Side::Server, test, common, facts::of_servers(test, &addresses));
    header.settings.push(("process group".to_owned(), config.group.to_string()));
    header.settings.push(contents_mark(&config.catalog));
    ServerSetup {
        config: Arc::new(config),
        servers: sites,
        layout,
        header,
        log,
        sample_log: None,
        dump: common.dump.plan(),
    }
}

/// Reserves all addresses of the test's servers.
///
/// # Errors
/// If an address cannot be used.
pub fn reserve_all(test: &Test) -> Result<Vec<ReservedAddress>, Failure> {
    let sites = test.servers.iter().flat_map(|servers| &servers.sites);
    if sites.clone().next().is_none() {
        return Err(Failure::usage(
            "there are no servers: the workload uses none, or gives them no addresses",
        ));
    }
    sites.map(|site| reserve(site.listen)).collect()
}

/// Makes sure that robots can connect from their addresses: each must be one of this host, or of a network that the host
/// takes for its own (`ip route add local`). Nothing but binding tells.
fn check_local(test: &Test) -> Result<(), Failure> {
    let addresses: BTreeSet<IpAddr> =
        test.robots.iter().flat_map(|profile| profile.addresses.iter().copied()).collect();
    for address in addresses {
        if let Err(e) = UdpSocket::bind((address, 0))
            && matches!(e.kind(), ErrorKind::AddrNotAvailable | ErrorKind::Unsupported)
        {
            return Err(Failure::setup(anyhow::anyhow!(
                "robots cannot connect from {address}, which is not an address of this host: add it (`ip addr add`, or `ip route add \
                 local` for a whole network), or change the addresses of the robots"
            )));
        }
    }
    Ok(())
}

fn reserve(address: SocketAddr) -> Result<ReservedAddress, Failure> {
    ReservedAddress::new(address).map_err(|e| {
        let hint = console::listen_hint(&e);
        Failure::setup(anyhow::anyhow!("cannot listen at {address}: {e}{hint}"))
    })
}

/// Makes sure that a log can be written, and leaves everything as it was.
///
/// # Errors
/// If it cannot be written.
pub fn can_write_log(path: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let is_new = !path.exists();
    let opened = std::fs::File::options().create(true).append(true).open(path);
    if is_new && opened.is_ok() {
        let _ = std::fs::remove_file(path);
    }
    opened.map(drop).map_err(|e| unwritable(path, &e))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::setup(anyhow::anyhow!("cannot write the log {}: {error}", path.display()))
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
        Err(e) => Err(unwritable(path, &e)),
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

/// What replies carry as the mark of their contents: logs with the same one are of sides that agree.
fn contents_mark(catalog: &Catalog) -> (String, String) {
    let mut mark = Vec::new();
    Fingerprint::of(catalog).write(&mut mark);
    (CONTENTS_MARK.to_owned(), String::from_utf8_lossy(&mark).into_owned())
}

fn header(side: Side, test: &Test, common: &CommonOptions, mut settings: Vec<(String, String)>) -> Header {
    let phases: Vec<String> =
        test.schedule.phases.iter().map(|phase| format!("{} ({})", phase.name, phase.goal)).collect();
    settings.extend([
        ("phases".to_owned(), phases.join(", ")),
        ("statistics interval".to_owned(), format!("{} s", common.stats_cycle)),
        ("timer quantum".to_owned(), format!("{} µs", (common.timer_quantum * 1e6).round())),
        ("global seed".to_owned(), common.global_rng_seed.to_string()),
        ("local seed".to_owned(), common.local_rng_seed.to_string()),
        ("ids".to_owned(), if common.unique_world { "of this run alone" } else { "repeatable" }.to_owned()),
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
        contents: facts::kinds(test),
        workload_text: test.text.clone(),
    }
}

fn seconds_or_none(seconds: Option<f64>) -> String {
    seconds.map_or("none".into(), |seconds| format!("{seconds} s"))
}

/// The address that replies carry: the host's name stands for "any address".
fn own_address(bound: SocketAddr) -> String {
    if !bound.ip().is_unspecified() {
        return bound.to_string();
    }
    let host = limits::environment().into_iter().find(|(name, _)| name == "host").map(|(_, host)| host);
    format!("{}:{}", host.unwrap_or_default(), bound.port())
}

/// Servers take their ids from here, where no loop of robots does.
const SERVER_IDS: u32 = 1 << 30;

fn new_ids(common: &CommonOptions, purpose: &str, index: u32) -> IdSource {
    if !common.unique_world {
        return IdSource::reproducible(common.local_rng_seed, index);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let first = Seed(common.local_rng_seed).derive(purpose, u64::from(index));
    IdSource::unique(now.as_secs(), now.subsec_micros(), index ^ (std::process::id() << 8), first)
}
