//! Turns a test into jobs of the engine.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use polygraph_engine::{ClientSetup, Layout, ReservedAddress, ServerSetup, limits};
use polygraph_origin::{OriginConfig, ServerSpec};
use polygraph_plan::Test;
use polygraph_plan::offered::offered_dhr;
use polygraph_plan::test::rate;
use polygraph_report::CONTENTS_MARK;
use polygraph_robot::Profile;
use polygraph_stats::record::settings::{ACCOUNTS, SERVERS};
use polygraph_stats::{Header, KindLimits, RobotLimits, Side};
use polygraph_traffic::{Catalog, Distr, Fingerprint, IdSource, Seed};

use crate::addresses::is_local;
use crate::open_limit::OpenLimit;
use crate::working_set::WorkingSetFiles;
use crate::{Failure, RunSettings, described_settings};

/// Settings of the client side on this machine that are not part of the test.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientSettings {
    /// Local ports, lowest and highest; `None`: the system chooses.
    pub ports: Option<(u16, u16)>,
    /// Maximum number of open connections; `None`: as many as file descriptors allow.
    pub open_connections: Option<u32>,
    /// What robots do not count as errors.
    pub tolerance: polygraph_robot::Tolerance,
}

/// What servers accept although it is not a request of a robot.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServerTolerance {
    /// URLs that name no object of the test.
    pub any_url: bool,
    /// Messages without the marks of this program.
    pub foreign_messages: bool,
}

/// The client side of a test as a job of the engine, within the limits of this machine. `with_servers`: servers of the
/// same test run beside the robots.
///
/// # Errors
/// If robots cannot connect from their addresses, would request objects that the servers do not have, or may not open
/// as many connections as the user wants.
pub fn client_job(
    test: &Test,
    settings: &RunSettings,
    client: &ClientSettings,
    with_servers: bool,
    layout: Layout,
    working_set: &WorkingSetFiles,
) -> Result<ClientSetup, Failure> {
    if test.robot_count() == 0 {
        return Err(Failure::usage("there are no robots: the workload uses none, or they have no addresses"));
    }
    if let Some(text) = test.misdirection() {
        return Err(Failure::usage(text));
    }
    test.check_http3().map_err(Failure::usage)?;
    test.check_bad_certificates().map_err(Failure::usage)?;
    check_local(test)?;
    let open_limit = OpenLimit::of(client.open_connections, layout, with_servers)?;
    Ok(client_job_within(test, settings, client, open_limit, layout, working_set))
}

/// The client side of a test as a job of the engine, with a limit of open connections that this machine need not support.
pub fn client_job_within(
    test: &Test,
    settings: &RunSettings,
    client: &ClientSettings,
    open_limit: OpenLimit,
    layout: Layout,
    working_set: &WorkingSetFiles,
) -> ClientSetup {
    let ClientSettings { ports, tolerance, .. } = *client;
    let earlier = working_set.earlier.as_ref();
    let stored = |index: usize| earlier.and_then(|set| set.shares.get(index)).map(|share| share.ids.clone());
    let ids_of = |index: usize| match stored(index) {
        // Reproducible ids would start again with those of the stored objects.
        Some(ids) if !settings.unique_ids => ids,
        _ => new_ids(settings, "ids", number_of_robot(test, index) as u32),
    };
    let mut ids: Vec<IdSource> = (0..layout.loops).map(ids_of).collect();
    let group = ids[0].fresh();
    let robots = polygraph_robot::Settings {
        first_robot: 0,
        robots: test.robot_count(),
        profiles: test.robots.clone(),
        share: test.share.robots.clone(),
        field: Arc::clone(&test.field),
        launch_window: test.launch_window,
        open_limit: open_limit.connections,
        limited_by_host: open_limit.descriptors.is_some(),
        seed: Seed(settings.local_seed),
        group,
        tolerance,
        share_phases: false,
        others_fill: !settings.unique_ids || earlier.is_some(),
    };
    let described = described_settings::of_client(test, open_limit, ports);
    let mut header = header(Side::Client, test, settings, described);
    if let Some(set) = earlier {
        let fact = format!("continues with {} stored objects", set.fill().count);
        header.settings.push(("working set".to_owned(), fact));
    }
    header.settings.push(contents_mark(&robots.field.catalog));
    header.settings.push((ACCOUNTS.to_owned(), test.accounts.mark()));
    // Servers that options describe may be any number behind one address.
    let planned: usize = test.servers.iter().map(|servers| servers.sites.len()).sum();
    if planned > 0 {
        header.settings.push((SERVERS.to_owned(), planned.to_string()));
    }
    let accepting = if tolerance.foreign_replies { "yes" } else { "no" };
    header.settings.push(("accepts foreign messages".to_owned(), accepting.to_owned()));
    header.settings.push(("process group".to_owned(), group.to_string()));
    // Between sessions, robots request nothing; how long, is a matter of chance.
    let has_sessions = test.robots.iter().any(|profile| profile.session.is_some());
    header.offered_rate = test.full_rate().filter(|_| !test.schedule.is_steered() && !has_sessions);
    header.offered_dhr = offered_dhr(test);
    header.limits = robot_limits(test, open_limit);
    let (earlier, stores, dump) = (earlier.cloned(), working_set.stores(), settings.dump);
    ClientSetup {
        settings: robots,
        ports,
        layout,
        ids,
        earlier,
        stores,
        header,
        log: None,
        sample_log: None,
        dump,
    }
}

/// The server side of a test as a job of the engine. Its addresses, in the order of the test, are reserved already.
pub fn server_job(
    test: &Test,
    settings: &RunSettings,
    tolerance: ServerTolerance,
    reserved: Vec<ReservedAddress>,
    layout: Layout,
) -> ServerSetup {
    let number_of = |position: usize| {
        let numbers = test.share.servers.as_ref();
        numbers.and_then(|numbers| numbers.get(position)).map_or(position as u64, |number| *number)
    };
    let config = OriginConfig {
        catalog: Arc::new(test.field.catalog.clone()),
        profiles: test.servers.iter().map(|servers| servers.farm.clone()).collect(),
        seed: Seed(settings.local_seed),
        group: new_ids(settings, "server ids", SERVER_IDS + number_of(0) as u32).fresh(),
        classic: test.classic,
        ignore_urls: tolerance.any_url,
        accept_foreign_msgs: tolerance.foreign_messages,
        share_worlds: test.field.share_worlds,
        all_names: test.field.servers.iter().map(|server| server.authority.clone()).collect(),
    };
    let sites = test.servers.iter().enumerate();
    let sites = sites.flat_map(|(profile, servers)| servers.sites.iter().map(move |site| (profile, site)));
    let sites: Vec<(ServerSpec, ReservedAddress)> = sites
        .zip(reserved)
        .enumerate()
        .map(|(position, ((profile, site), reserved))| {
            let (number, address) = (number_of(position), own_address(reserved.address()));
            (ServerSpec { profile, number, address, names: site.names.clone() }, reserved)
        })
        .collect();
    let addresses: Vec<String> = sites.iter().map(|(server, _)| server.address.clone()).collect();
    let number = (SERVERS.to_owned(), sites.len().to_string());
    let described = described_settings::of_servers(test, &addresses);
    let mut header = header(Side::Server, test, settings, described);
    header.settings.push(("process group".to_owned(), config.group.to_string()));
    header.settings.push(contents_mark(&config.catalog));
    header.settings.push((ACCOUNTS.to_owned(), test.accounts.mark()));
    header.settings.push(number);
    ServerSetup {
        config: Arc::new(config),
        servers: sites,
        layout,
        header,
        log: None,
        sample_log: None,
        dump: settings.dump,
    }
}

/// Reserves all addresses of the test's servers.
///
/// # Errors
/// If the test has no servers, or one of them cannot listen at its address.
pub fn reserve_all(test: &Test) -> Result<Vec<ReservedAddress>, Failure> {
    let sites = test.servers.iter().flat_map(|servers| &servers.sites);
    if sites.clone().next().is_none() {
        return Err(Failure::usage(
            "there are no servers: the workload uses none, or they have no addresses",
        ));
    }
    sites.map(|site| reserve(site.listen)).collect()
}

/// Checks that robots can connect from their addresses.
fn check_local(test: &Test) -> Result<(), Failure> {
    let addresses: BTreeSet<IpAddr> =
        test.robots.iter().flat_map(|profile| profile.addresses.iter().copied()).collect();
    match addresses.into_iter().find(|address| !is_local(*address)) {
        None => Ok(()),
        Some(address) => Err(Failure::setup(anyhow::anyhow!(
            "robots cannot connect from {address}, which is not an address of this host: let the program add it for the time of the run \
             (--addresses anyip), add it to an interface (`polygraph aka`), or change the addresses of the robots"
        ))),
    }
}

fn reserve(address: SocketAddr) -> Result<ReservedAddress, Failure> {
    ReservedAddress::new(address).map_err(|e| {
        let hint = listen_hint(&e);
        Failure::setup(anyhow::anyhow!("cannot listen at {address}: {e}{hint}"))
    })
}

/// The remedy if a server cannot listen at its address, as the end of a sentence; empty if the error needs no
/// explanation.
pub fn listen_hint(error: &std::io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::PermissionDenied => {
            "; ports below 1024 need root or CAP_NET_BIND_SERVICE: run the program as root (sudo), or use a higher port"
        }
        ErrorKind::AddrInUse => "; another program uses it",
        ErrorKind::AddrNotAvailable => {
            "; it is not an address of this host: let the program add it for the time of the run (--addresses anyip), or add it to an interface \
             (`polygraph aka`)"
        }
        _ => "",
    }
}

/// The mark of contents that replies carry: logs with the same mark belong to sides that agree on contents.
fn contents_mark(catalog: &Catalog) -> (String, String) {
    let mut mark = Vec::new();
    Fingerprint::of(catalog).write(&mut mark);
    (CONTENTS_MARK.to_owned(), String::from_utf8_lossy(&mark).into_owned())
}

fn header(side: Side, test: &Test, settings: &RunSettings, mut described: Vec<(String, String)>) -> Header {
    let phases: Vec<String> =
        test.schedule.phases.iter().map(|phase| format!("{} ({})", phase.name, phase.goal)).collect();
    described.extend([
        ("phases".to_owned(), phases.join(", ")),
        ("statistics interval".to_owned(), format!("{} s", settings.interval_s)),
        ("timer quantum".to_owned(), format!("{} µs", (settings.timer_quantum_s * 1e6).round())),
    ]);
    described.extend(settings.engine.map(|engine| ("engine".to_owned(), engine.name().to_owned())));
    described.extend([
        ("global seed".to_owned(), settings.global_seed.to_string()),
        ("local seed".to_owned(), settings.local_seed.to_string()),
        ("ids".to_owned(), if settings.unique_ids { "of this run alone" } else { "repeatable" }.to_owned()),
        ("idle time-out".to_owned(), seconds_or_none(settings.idle_timeout_s)),
    ]);
    Header {
        side,
        version: polygraph_stats::version().to_owned(),
        label: settings.label.clone(),
        start_unix_ns: 0,
        pid: std::process::id(),
        environment: limits::environment(),
        command: settings.command.clone(),
        settings: described,
        workload: test.name.clone(),
        loops: 0,
        phases: test.schedule.plans(),
        offered_rate: None,
        offered_dhr: None,
        limits: Default::default(),
        contents: described_settings::content_names(test),
        workload_text: test.text.clone(),
    }
}

/// The limits of the robots of a test.
fn robot_limits(test: &Test, open_limit: OpenLimit) -> RobotLimits {
    let kind = |profile: &Arc<Profile>| KindLimits {
        robots: profile.count as u64,
        rate: rate(profile).filter(|_| profile.session.is_none()),
        lifetime_s: profile.lifetime.as_ref().map(Distr::high),
        open_connections: profile.open_limit.map(|limit| profile.count as u64 * limit as u64),
    };
    // The limit of the system is no part of the plan.
    let is_of_user = open_limit.descriptors.is_none() && open_limit.connections < usize::MAX;
    RobotLimits {
        open_connections: is_of_user.then_some(open_limit.connections as u64),
        kinds: test.robots.iter().map(kind).collect(),
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

/// The number, in the whole test, of the robot at `position` among those of this process. Loop `i` takes its ids from the number of
/// robot `i`, because there are no more loops than robots: so processes that run different robots have different ids with the same seed.
fn number_of_robot(test: &Test, position: usize) -> usize {
    test.share.robots.as_ref().map_or(position, |share| share.number(position))
}

/// Servers take their ids from this index and the number of the first one, which no loop of robots has.
const SERVER_IDS: u32 = 1 << 30;

fn new_ids(settings: &RunSettings, purpose: &str, index: u32) -> IdSource {
    if !settings.unique_ids {
        return IdSource::reproducible(settings.local_seed, index);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let first = Seed(settings.local_seed).derive(purpose, u64::from(index));
    IdSource::unique(now.as_secs(), now.subsec_micros(), index ^ (std::process::id() << 8), first)
}
