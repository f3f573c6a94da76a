//! Servers: from the fields of a `Server` to a profile, and their addresses.

use std::sync::Arc;

use polygraph_link::nanos;
use polygraph_origin::settings::{Cookies, Redirects, ServerProfile};
use polygraph_pgl::Workload;
use polygraph_pgl::types::{Agent, Server};
use polygraph_robot::ToldFreshness;
use polygraph_stats::HttpVersion;
use polygraph_traffic::headers::{HeaderRule, may_draw};
use polygraph_traffic::{Catalog, Distr, Seed, Selector};
use polygraph_wire::auth::access::{Access, Scheme};

use super::contents::{kinds, popularity};
use super::maps::VisibleServers;
use super::{Lowering, custom_scope, headers, http2, maybe, requests_per_connection, sockets, tls, versions};
use crate::accounts::Accounts;
use crate::test::{self, Endpoint, ServerGroup};

/// All server groups with their addresses.
pub fn servers(
    workload: &Workload,
    accounts: &Accounts,
    visible: &VisibleServers<'_>,
    seed: Seed,
    found: &mut Lowering<'_>,
) -> Vec<ServerGroup> {
    let servers = |server: &Server| {
        let addresses = sockets(&server.agent.addresses.0, "addresses", found);
        let site = |listen| Endpoint { listen, names: visible.names_of(listen) };
        let farm = ServerProfile {
            tls: tls::of_server(&server.agent, workload, seed, found),
            ..farm(server, accounts, found)
        };
        ServerGroup { farm, sites: addresses.into_iter().map(site).collect() }
    };
    workload.servers.iter().map(servers).collect()
}

/// Seconds after which objects may be requested again; the slowest servers decide.
pub fn repeat_delay(servers: &[ServerGroup], embedded: bool) -> f64 {
    servers
        .iter()
        .map(|servers| test::repeat_delay(servers.farm.think.as_ref(), embedded))
        .fold(0.0, f64::max)
}

/// The mean think time of all servers, in seconds.
pub fn mean_think(servers: &[ServerGroup]) -> f64 {
    let think = |servers: &ServerGroup| servers.farm.think.as_ref().map_or(0.0, Distr::mean);
    let (sum, sites) = servers.iter().fold((0.0, 0.0), |(sum, sites), servers| {
        let here = servers.sites.len() as f64;
        (sum + here * think(servers), sites + here)
    });
    if sites > 0.0 { sum / sites } else { 0.0 }
}

/// The profile of a server group. Which contents can be requested directly is part of the robots' settings.
fn farm(server: &Server, accounts: &Accounts, found: &mut Lowering<'_>) -> ServerProfile {
    let versions = versions(&server.agent);
    ServerProfile {
        name: server.agent.kind.clone().unwrap_or_else(|| "Server".to_owned()),
        contents: kinds(&server.contents),
        think: maybe(&server.agent.xact_think, "xact_think", found),
        http_minors: http1_minors(&server.agent),
        accepts_http1: versions.items().iter().any(|version| !version.is_multiplexed()),
        http2: versions.items().contains(&HttpVersion::Http2).then(|| http2(&server.agent)),
        http3: versions.items().contains(&HttpVersion::Http3).then(|| http2(&server.agent)),
        alt_svc: server.alt_svc.map(|time| time.secs().max(0.0) as u64),
        requests_per_connection: requests_per_connection(&server.agent, found),
        idle_timeout: server.agent.idle_pconn_tout.map(|time| nanos(time.secs())),
        lifetime: maybe(&server.agent.xact_lifetime, "xact_lifetime", found),
        abort_prob: server.agent.abort_prob,
        redirects: redirects(server),
        cookies: cookies(server, found),
        continue_prob: server.req_body_allowed,
        access: access(server, accounts, found),
        headers: headers(&server.agent.http_headers),
        custom_scope: custom_scope(&server.agent),
        tls: Selector::default(),
    }
}

/// What robots know of the freshness that these servers give objects: nothing, if the workload configures a field that says it.
pub(super) fn told_freshness(servers: &[ServerGroup], catalog: &Catalog) -> ToldFreshness {
    let of_servers = servers.iter().map(|servers| &servers.farm.headers);
    let of_contents = catalog.contents.iter().map(|content| &content.headers);
    let is_configured = |rules: &Vec<HeaderRule>| {
        ["Expires", "Cache-Control", "Date"].into_iter().any(|name| may_draw(rules, name))
    };
    match of_servers.chain(of_contents).any(is_configured) {
        true => ToldFreshness::Configured,
        false => ToldFreshness::LifeCycle,
    }
}

/// Access control of a server, if it has any: the accounts of all robots have access.
fn access(server: &Server, accounts: &Accounts, found: &mut Lowering<'_>) -> Option<Arc<Access>> {
    // The checks of the language have refused unknown schemes.
    let schemes: Vec<Scheme> = server.auth_schemes.iter().filter_map(|name| Scheme::named(name)).collect();
    if schemes.is_empty() {
        return None;
    }
    if let Some(user) = accounts.contradictory.first() {
        found.wrong(format!(
            "`auth_schemes` of a Server: the credentials of the robots have two passwords of the user `{user}`"
        ));
    }
    let users = accounts.list.iter().map(|account| (account.user.clone(), account.password.clone()));
    let mut access = Access::new(schemes, "polygraph", users);
    if let Some(path) = &server.keytab {
        let keys = found.environment.kerberos().and_then(|()| found.environment.keytab(path));
        access.keys = found.load(keys).unwrap_or_default();
    }
    Some(Arc::new(access))
}

/// The minor versions of HTTP/1 among those of a server.
fn http1_minors(agent: &Agent) -> Selector<u8> {
    let versions = agent.http_versions.items.iter();
    let versions = versions.filter_map(|(word, weight)| Some((HttpVersion::from_word(word)?, *weight)));
    let http1 = versions.filter(|(version, _)| !version.is_multiplexed());
    Selector::weighted(http1.map(|(version, weight)| (version.minor(), weight)))
}

/// Redirects of a server. Without them its popularity model has no effect.
fn redirects(server: &Server) -> Option<Redirects> {
    let share = server.rep_types.prob("302 Found");
    let popularity = server.agent.pop_model.as_deref().map(popularity).unwrap_or_default();
    (share > 0.0).then_some(Redirects { share, popularity })
}

fn cookies(server: &Server, found: &mut Lowering<'_>) -> Option<Cookies> {
    let Agent { cookie_sender, .. } = server.agent;
    let count = maybe(&server.cookie_set_count, "cookie_set_count", found)?;
    let size = maybe(&server.cookie_value_size, "cookie_value_size", found)?;
    let prob = server.cookie_set_prob;
    (prob > 0.0).then_some(Cookies { senders: cookie_sender.unwrap_or(1.0), prob, count, size })
}
