//! From a workload to a test that the engine can run.
//!
//! The code here decides on every field of every record of the language: the field is read, or a value other
//! than its default is a [`LowerError`] that names it, or, where nothing on the wire depends on it, a note. No
//! field is ignored silently.
//!
//! * this file: the top level, and what the parts share.
//! * `contents`: content types, and the behaviour of robots towards them.
//! * `maps`: the servers as robots see them: names, addresses, contents.
//! * `robots`, `servers`: agents.
//! * `ranges`: what range requests ask for.
//! * `tls`: TLS of robots and servers.
//! * `schedule`: the phases, and when the working set freezes.

mod contents;
mod maps;
mod ranges;
mod robots;
mod schedule;
mod servers;
#[cfg(test)]
mod tests;
mod tls;

use std::net::SocketAddr;
use std::sync::Arc;

pub use self::tls::plain_tls;
use polygraph_addr::Addr;
use polygraph_kerberos::service::ServiceKey;
use polygraph_multiplex::Http2Settings;
use polygraph_pgl::types::{
    Agent, Distribution, DrawnType, HeaderChoice as PglHeaderChoice, Selector as PglSelector,
};
use polygraph_pgl::value::{Shape, TableBin};
use polygraph_pgl::{Compat, Workload};
use polygraph_robot::{Field, Rules, Verify};
use polygraph_stats::{HttpVersion, StatusScope};
use polygraph_tls::settings::{Identity, KeyKind};
use polygraph_traffic::files::Files;
use polygraph_traffic::headers::{HeaderChoice, HeaderRule};
use polygraph_traffic::table::{Bin, DistributionTable};
use polygraph_traffic::{Catalog, Distr, Seed, Selector};

use crate::accounts::Accounts;
use crate::bench_needs::BenchNeeds;
use crate::test::{Test, TestShare};
use crate::without_effect::settings_without_effect;

/// Why a workload cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LowerError {
    /// The workload uses FTP.
    #[error("{0} is not supported: FTP is obsolete; leave it out")]
    Obsolete(String),
    /// Something outside the workload that is not available.
    #[error("{0}")]
    Missing(String),
    /// Settings that contradict each other.
    #[error("{0}")]
    Wrong(String),
}

/// Access to what workloads refer to but do not contain. Plans do no I/O; the caller of [`lower`] provides it.
/// Error texts name what was requested.
pub trait Environment {
    /// Entries of a content database.
    ///
    /// # Errors
    /// If it cannot be read, or is empty.
    fn content_db(&self, path: &str) -> Result<Files, String>;

    /// Files of a directory tree with their relative names.
    ///
    /// # Errors
    /// If it cannot be read, or is empty.
    fn document_root(&self, path: &str) -> Result<Files, String>;

    /// Entries of a database of texts.
    ///
    /// # Errors
    /// If it cannot be read, or is empty.
    fn text_db(&self, path: &str) -> Result<Files, String>;

    /// URLs of a trace as they are written.
    ///
    /// # Errors
    /// If it cannot be read, or has no URLs.
    fn trace(&self, path: &str) -> Result<Vec<String>, String>;

    /// The address of a host that is not part of the test, such as a proxy.
    ///
    /// # Errors
    /// If the host has no address.
    fn resolve(&self, host: &str, port: u16) -> Result<SocketAddr, String>;

    /// Whether TLS can be used.
    ///
    /// # Errors
    /// If this program was built without TLS.
    fn tls(&self) -> Result<(), String>;

    /// Whether Kerberos can be used.
    ///
    /// # Errors
    /// If this program was built without Kerberos.
    fn kerberos(&self) -> Result<(), String>;

    /// The keys in a keytab.
    ///
    /// # Errors
    /// If it cannot be read, or has no usable keys.
    fn keytab(&self, path: &str) -> Result<Vec<ServiceKey>, String>;

    /// The text of a file with certificates and keys.
    ///
    /// # Errors
    /// If it cannot be read.
    fn pem(&self, path: &str) -> Result<String, String>;

    /// Whether servers of the test run here. Nobody else needs their private keys, which take long to make.
    fn runs_servers(&self) -> bool;

    /// The authority that signs generated certificates. The same `sharing_group` always has the same one.
    ///
    /// # Errors
    /// If it cannot be made or stored.
    fn authority(&self, sharing_group: Option<&str>) -> Result<Identity, String>;

    /// The private key (PKCS #8) of generated certificates. The same `sharing_group` always has the same one of each kind.
    ///
    /// # Errors
    /// If it cannot be made or stored.
    fn private_key(&self, sharing_group: Option<&str>, kind: KeyKind) -> Result<Vec<u8>, String>;
}

/// The state of lowering: errors and notes so far, and the environment.
struct Lowering<'a> {
    obstacles: Vec<LowerError>,
    notes: Vec<String>,
    environment: &'a dyn Environment,
}

impl Lowering<'_> {
    fn obsolete(&mut self, what: impl Into<String>) {
        self.add(LowerError::Obsolete(what.into()));
    }

    fn wrong(&mut self, text: impl Into<String>) {
        self.add(LowerError::Wrong(text.into()));
    }

    /// Adds an error unless it is already known: agents of a workload are often copies of each other.
    fn add(&mut self, obstacle: LowerError) {
        if !self.obstacles.contains(&obstacle) {
            self.obstacles.push(obstacle);
        }
    }

    fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    fn load<T>(&mut self, got: Result<T, String>) -> Option<T> {
        got.map_err(|text| self.add(LowerError::Missing(text))).ok()
    }
}

/// Turns a workload into a test called `name`. `seed` is the seed that all processes of the test share.
///
/// # Errors
/// Everything in the workload that cannot be run.
pub fn lower(
    workload: &Workload,
    name: &str,
    seed: Seed,
    environment: &dyn Environment,
) -> Result<Test, Vec<LowerError>> {
    let mut found = Lowering { obstacles: Vec::new(), notes: Vec::new(), environment };
    rest(workload, &mut found);
    let contents = contents::contents(workload, &mut found);
    let catalog = Catalog { seed, contents };
    let mut visible = maps::VisibleServers::new(workload, &mut found);
    let robots: Vec<_> = workload
        .robots
        .iter()
        .map(|robot| Arc::new(robots::profile(robot, workload, &mut visible, &mut found)))
        .collect();
    let embeds = robots.iter().any(|profile| profile.embed_recur > 0.0)
        && catalog.contents.iter().any(|content| content.embeds.is_some());
    let accounts = Accounts::of(workload);
    let servers = servers::servers(workload, &accounts, &visible, seed, &mut found);
    let names = visible.names();
    let rules = match workload.compat {
        None | Some(Compat::None) => Rules::Device,
        Some(Compat::V4_9) => Rules::V4_9,
    };
    let settle = match rules {
        Rules::Device => servers::repeat_delay(&servers, embeds),
        Rules::V4_9 => 0.0,
    };
    let page_delay = servers::mean_think(&servers);
    let freshness = servers::told_freshness(&servers, &catalog);
    let (visible, direct) = visible.finish();
    if !visible.is_empty() && visible.iter().all(|server| server.bad_certificate.is_some()) {
        found.note(
            "all servers have a `certificate_fault`, so a device that refuses good certificates, too, goes unnoticed: add a Server \
             without one",
        );
    }
    let field = Field {
        servers: visible,
        direct,
        catalog,
        marks_cachable: None,
        rules,
        page_delay,
        settle,
        verify: Verify::Full,
        share_worlds: servers.iter().any(|servers| servers.farm.redirects.is_some()),
        redirects: servers.iter().any(|servers| servers.farm.redirects.is_some()),
        freshness,
        substitutes: workload
            .substitutes
            .iter()
            .map(|group| sockets(group, "note_substitutes()", &mut found))
            .collect(),
    };
    let schedule = schedule::schedule(workload);
    if found.obstacles.is_empty() {
        let (name, field, notes) = (name.to_owned(), Arc::new(field), found.notes);
        Ok(Test {
            name,
            robots,
            field,
            servers,
            classic: false,
            accounts,
            schedule,
            launch_window: 0.0,
            needs: BenchNeeds::of(workload),
            names,
            text: String::new(),
            notes,
            device_tls: None,
            share: TestShare::default(),
        })
    } else {
        Err(found.obstacles)
    }
}

/// The parts of a workload besides agents, contents and phases.
fn rest(workload: &Workload, found: &mut Lowering<'_>) {
    if workload.robots.is_empty() && workload.servers.is_empty() {
        found.wrong("the workload has neither robots nor servers");
    }
    if !workload.proxies.is_empty() {
        // The device under test answers at these addresses; robots have their own settings for it.
        found.note("the device under test replaces the Proxy agents, so none are started");
    }
    if !workload.net_pipes.is_empty() {
        found.note("`NetPipe` has no effect: the network must delay and drop packets itself (see `polygraph net wan`)");
    }
    let bench = workload.bench.as_ref();
    let machines = bench.and_then(|bench| Some(bench.client_side.as_ref()?.hosts.len())).unwrap_or(0);
    if machines > 1 {
        found.note(format!("the bench has {machines} client machines: a process runs the robots of all whose addresses its host has"));
    }
    for finding in settings_without_effect(workload) {
        found.note(format!("{}; {}", finding.message, finding.help.join("; ")));
    }
}

/// Status codes whose replies are counted separately. The checks of the language have validated the entries.
fn custom_scope(agent: &Agent) -> StatusScope {
    StatusScope::parse(agent.custom_stats_scope.iter().map(String::as_str)).unwrap_or_default()
}

/// Versions of HTTP. The checks of the language have validated the words.
fn versions(agent: &Agent) -> Selector<HttpVersion> {
    selector(&agent.http_versions, |word| HttpVersion::from_word(word).unwrap_or_default())
}

/// What an agent announces on HTTP/2 connections.
fn http2(agent: &Agent) -> Http2Settings {
    let default = Http2Settings::default();
    let streams = agent.h2_streams.and_then(|streams| u32::try_from(streams).ok());
    let window = agent.h2_window.and_then(|window| u32::try_from(window.0).ok());
    Http2Settings { streams: streams.unwrap_or(default.streams), window: window.unwrap_or(default.window) }
}

/// Requests per connection.
fn requests_per_connection(agent: &Agent, found: &mut Lowering<'_>) -> Distr {
    let limit = agent.pconn_use_lmt.as_ref().and_then(|limit| distr(limit, "pconn_use_lmt", found));
    limit.unwrap_or(Distr::Const(1.0))
}

/// The same selector over other items.
fn selector<T, M, U>(choice: &PglSelector<T, M>, mut change: impl FnMut(&T) -> U) -> Selector<U> {
    Selector::weighted(choice.items.iter().map(|(item, prob)| (change(item), *prob)))
}

/// A distribution in base units.
fn distr<T: DrawnType>(
    distribution: &Distribution<T>,
    field: &str,
    found: &mut Lowering<'_>,
) -> Option<Distr> {
    Some(match &distribution.shape {
        Shape::None => return None,
        &Shape::Const(value) => Distr::Const(value),
        &Shape::Unif { lo, hi } => Distr::Unif { min: lo, max: hi },
        &Shape::Exp { mean } => Distr::Exp { mean },
        &Shape::Norm { mean, sd } => Distr::Norm { mean, sd },
        &Shape::Logn { mean, sd } => Distr::logn(mean, sd),
        &Shape::Zipf { n } => Distr::Zipf { n: n as u64 },
        &Shape::Seq { first } => Distr::Ascending { first },
        Shape::Table(bins) => {
            let bin = |bin: &TableBin| Bin { min: bin.min, max: bin.max, weight: bin.weight };
            let table = DistributionTable::new(bins.iter().map(bin));
            if table.is_none() {
                found.wrong(format!("the table() of `{field}` has no bins with weights"));
            }
            Distr::Table(table?)
        }
    })
}

/// An optional distribution.
fn maybe<T: DrawnType>(
    distribution: &Option<Distribution<T>>,
    field: &str,
    found: &mut Lowering<'_>,
) -> Option<Distr> {
    distribution.as_ref().and_then(|distribution| distr(distribution, field, found))
}

/// Header fields with probabilities.
fn headers(rules: &[polygraph_pgl::types::HeaderRule]) -> Vec<HeaderRule> {
    let rule = |rule: &polygraph_pgl::types::HeaderRule| HeaderRule {
        prob: rule.prob,
        what: match &rule.what {
            PglHeaderChoice::One(header) => HeaderChoice::One {
                name: header.name.clone().unwrap_or_default(),
                value: header.value.clone().unwrap_or_default(),
            },
            PglHeaderChoice::Group(rules) => HeaderChoice::Group(headers(rules)),
        },
    };
    rules.iter().map(rule).collect()
}

/// Addresses that must be IP addresses with ports.
fn sockets(addresses: &[Addr], field: &str, found: &mut Lowering<'_>) -> Vec<SocketAddr> {
    let socket = |addr: &Addr| Some(SocketAddr::new(addr.host.ip()?, addr.port?));
    let sockets: Option<Vec<SocketAddr>> = addresses.iter().map(socket).collect();
    if sockets.is_none() {
        found.wrong(format!("`{field}` needs IP addresses with ports"));
    }
    sockets.unwrap_or_default()
}

/// Addresses of hosts outside the test, by name or IP address. `port` is the default port; with `None`, every
/// address needs its own.
fn hosts(addresses: &[Addr], field: &str, port: Option<u16>, found: &mut Lowering<'_>) -> Vec<SocketAddr> {
    let mut all = Vec::with_capacity(addresses.len());
    for addr in addresses {
        match (addr.host.ip(), addr.port.or(port)) {
            (_, None) => found.wrong(format!("{addr} in `{field}` has no port")),
            (Some(ip), Some(port)) => all.push(SocketAddr::new(ip, port)),
            (None, Some(port)) => {
                let got = found.environment.resolve(&addr.host.to_string(), port);
                all.extend(found.load(got));
            }
        }
    }
    all
}
