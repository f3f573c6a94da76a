//! Robots: from the fields of a `Robot` to a profile.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use polygraph_link::nanos;
use polygraph_pgl::Workload;
use polygraph_pgl::types::{DnsResolver, Robot, Session as PglSession};
use polygraph_robot::settings::{Dns, Expect, Kerberos, Load, Profile, Session, Socks};
use polygraph_traffic::{Behavior, Distr, Method, RequestKind, Selector};
use polygraph_wire::markup::LinkTags;
use polygraph_wire::socks::MAX_TEXT;

use super::contents::{kinds, methods, popularity, request_kinds};
use super::maps::VisibleServers;
use super::{
    Lowering, custom_scope, distr, headers, hosts, http2, maybe, ranges, requests_per_connection, tls,
    versions,
};
use crate::accounts::WORKER;

/// The default port of name servers.
const DNS_PORT: u16 = 53;
/// The default port of SOCKS proxies (RFC 1928).
const SOCKS_PORT: u16 = 1080;
/// The default timeout of name servers, in seconds.
const DNS_TIMEOUT: f64 = 5.0;
/// The default timeout of KDCs, in seconds.
const KDC_TIMEOUT: f64 = 5.0;

/// A kind of robots.
///
/// `xact_think` has no effect on robots, and the old names `proxies` and `put_contents` are resolved by the
/// checks of the language.
pub fn profile(
    robot: &Robot,
    workload: &Workload,
    visible: &mut VisibleServers<'_>,
    found: &mut Lowering<'_>,
) -> Profile {
    if let Err(e) = LinkTags::parse(&robot.container_tags) {
        found.wrong(format!("`container_tags` of a Robot: {e}"));
    }
    let proxies = hosts(&robot.http_proxies, "http_proxies", None, found);
    let dns = robot.dns_resolver.as_deref().map(|resolver| dns(resolver, found));
    // Behind a proxy, the proxy resolves names.
    let all_use_proxies =
        !proxies.is_empty() && (robot.socks_proxies.is_empty() || robot.socks_chaining_prob == 1.0);
    let resolves = dns.is_some() && !all_use_proxies;
    let origins: Vec<_> = robot
        .origins
        .items
        .iter()
        .map(|(name, prob)| (visible.position(name, resolves, found), *prob))
        .collect();
    let addresses: Vec<IpAddr> = robot.agent.addresses.0.iter().filter_map(|addr| addr.host.ip()).collect();
    let foreign = robot.interests.prob("foreign");
    let secure_proxies = secure_proxies(&proxies, workload);
    let tls = tls::of_robot(robot, workload, found);
    let trace = trace(robot, found);
    foreign_schemes(&trace, &proxies, !tls.is_empty(), found);
    let needs_tls = !secure_proxies.is_empty() || origins.iter().any(|&(server, _)| visible.has_tls(server));
    if needs_tls && tls.is_empty() {
        found.wrong("robots whose servers or proxies have `ssl_wraps` need `ssl_wraps` of their own");
    }
    Profile {
        name: robot.agent.kind.clone().unwrap_or_else(|| "Robot".to_owned()),
        count: addresses.len(),
        addresses,
        load: load(robot, found),
        behavior: behavior(robot, found),
        origins: Selector::weighted(origins),
        proxy_names: robot.http_proxies.iter().map(|proxy| proxy.host.to_string()).collect(),
        proxies,
        secure_proxies,
        tls,
        socks: socks(robot, found),
        kerberos: kerberos(robot, found),
        embed_recur: robot.embed_recur,
        container_tags: robot.container_tags.clone(),
        http_version: versions(&robot.agent),
        http2: http2(&robot.agent),
        requests_per_connection: requests_per_connection(&robot.agent, found),
        idle_timeout: robot.agent.idle_pconn_tout.map(|time| nanos(time.secs())),
        open_limit: robot.open_conn_lmt.map(count),
        wait_limit: robot.wait_xact_lmt.map(count),
        pipeline: maybe(&robot.pipeline_depth, "pipeline_depth", found)
            .filter(|depth| *depth != Distr::Const(1.0)),
        minimize_new_conn: robot.minimize_new_conn,
        private_cache: count(robot.private_cache_cap),
        unique_urls: robot.unique_urls,
        follow_alt_svc: robot.follow_alt_svc,
        lifetime: maybe(&robot.agent.xact_lifetime, "xact_lifetime", found),
        abort_prob: robot.agent.abort_prob,
        post: kinds(&robot.post_contents),
        upload: kinds(&robot.upload_contents),
        body_recurrence: robot.req_body_recurrence,
        expect: expect(robot),
        headers: headers(&robot.agent.http_headers),
        accept_encoding: Some(robot.accept_content_encodings.join(", ")).filter(|value| !value.is_empty()),
        session: robot.session.as_deref().and_then(|session| self::session(session, found)),
        credentials: robot.credentials.iter().map(|user| user.replace("${worker}", WORKER)).collect(),
        auth_error: robot.auth_error,
        spnego: robot.spnego_auth_ratio.unwrap_or(1.0),
        cookie_sender: robot.agent.cookie_sender.unwrap_or(1.0),
        cookies_keep: maybe(&robot.cookies_keep_lmt, "cookies_keep_lmt", found).unwrap_or(Distr::Const(0.0)),
        foreign,
        trace,
        raw_uri_thrower: robot.raw_uri_thrower.clone(),
        dns,
        custom_scope: custom_scope(&robot.agent),
    }
}

/// The proxies of a robot to which it uses TLS: those that a Proxy with `ssl_wraps` describes.
fn secure_proxies(proxies: &[SocketAddr], workload: &Workload) -> Vec<SocketAddr> {
    let with_tls = workload.proxies.iter().filter(|proxy| !proxy.agent.ssl_wraps.is_empty());
    let known: Vec<_> = with_tls
        .flat_map(|proxy| &proxy.agent.addresses.0)
        .filter_map(|addr| Some(SocketAddr::new(addr.host.ip()?, addr.port?)))
        .collect();
    proxies.iter().copied().filter(|proxy| known.contains(proxy)).collect()
}

/// The SOCKS proxies of a robot, if it may use any.
fn socks(robot: &Robot, found: &mut Lowering<'_>) -> Option<Socks> {
    let proxies = hosts(&robot.socks_proxies, "socks_proxies", Some(SOCKS_PORT), found);
    let share = robot.socks_prob.unwrap_or(1.0);
    if proxies.is_empty() || share == 0.0 {
        return None;
    }
    let too_long = |text: &str| text.len() > MAX_TEXT;
    if let Some(user) = robot.credentials.iter().find(|user| user.split(':').any(too_long)) {
        let shown: String = user.chars().take(20).collect();
        found.wrong(format!(
            "`credentials` of a Robot with `socks_proxies`: SOCKS has no room for more than {MAX_TEXT} bytes of `{shown}...`"
        ));
    }
    Some(Socks { proxies, share, chained: robot.socks_chaining_prob, names: robot.socks_names })
}

/// Kerberos of a robot, if it uses it.
fn kerberos(robot: &Robot, found: &mut Lowering<'_>) -> Option<Kerberos> {
    let wrap = robot.kerberos_wrap.as_deref()?;
    let built = found.environment.kerberos();
    found.load(built)?;
    let port = Some(polygraph_kerberos::PORT);
    let both = hosts(&wrap.servers, "servers", port, found);
    let mut tcp = hosts(&wrap.servers_tcp, "servers_tcp", port, found);
    let mut udp = hosts(&wrap.servers_udp, "servers_udp", port, found);
    tcp.extend(&both);
    udp.extend(&both);
    let timeout = nanos(wrap.timeout.map_or(KDC_TIMEOUT, |time| time.secs()));
    Some(Kerberos { realm: wrap.realm.clone()?, udp, tcp, timeout, service: wrap.service.clone() })
}

/// A limit as a count. The checks of the language have refused negative ones.
fn count(limit: i32) -> usize {
    usize::try_from(limit).unwrap_or(0)
}

/// The foreign URLs of a robot that requests any.
fn trace(robot: &Robot, found: &mut Lowering<'_>) -> Arc<Vec<String>> {
    let path = robot.foreign_trace.as_ref().filter(|_| robot.interests.prob("foreign") > 0.0);
    let urls = path.and_then(|path| {
        let urls = found.environment.trace(path);
        found.load(urls)
    });
    // The remaining macros are replaced when a URL is requested.
    Arc::new(urls.unwrap_or_default().into_iter().map(|url| url.replace("${worker}", WORKER)).collect())
}

/// Checks whether robots can request the URLs of their trace.
fn foreign_schemes(trace: &[String], proxies: &[SocketAddr], has_tls: bool, found: &mut Lowering<'_>) {
    let first = |scheme: &str| {
        let is =
            |url: &&String| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
        trace.iter().find(is)
    };
    if let Some(url) = first("https://").filter(|_| !has_tls) {
        found.wrong(format!(
            "`foreign_trace` of a Robot has `{url}`: give the robots `ssl_wraps`, or leave out https URLs"
        ));
    }
    if let Some(url) = first("ftp://").filter(|_| proxies.is_empty()) {
        found.obsolete(format!("`{url}` in `foreign_trace` of a Robot without `http_proxies`"));
    }
}

fn load(robot: &Robot, found: &mut Lowering<'_>) -> Load {
    let gaps = maybe(&robot.req_inter_arrival, "req_inter_arrival", found);
    if gaps.as_ref().is_some_and(|gaps| gaps.mean() <= 0.0) {
        found.wrong("`req_inter_arrival` of a Robot has a mean of 0, so requests would never stop");
    }
    match (robot.req_rate, gaps) {
        (Some(rate), _) if rate.0 > 0.0 => Load::Open { rate: rate.0 },
        (Some(_), _) => Load::Passive,
        (None, Some(gaps)) => Load::InterArrival(gaps),
        (None, None) => Load::Closed { think: None },
    }
}

fn behavior(robot: &Robot, found: &mut Lowering<'_>) -> Behavior {
    // A selector with only the default item needs no draws.
    let kinds = Some(request_kinds(&robot.req_types)).filter(|kinds| kinds.items() != [RequestKind::Basic]);
    let methods = Some(methods(&robot.req_methods)).filter(|methods| methods.items() != [Method::Get]);
    Behavior {
        recurrence: robot.recurrence,
        popularity: robot.agent.pop_model.as_deref().map(popularity).unwrap_or_default(),
        kinds: kinds.unwrap_or_default(),
        methods: methods.unwrap_or_default(),
        ranges: ranges::rules(&robot.ranges, found),
    }
}

fn expect(robot: &Robot) -> Expect {
    match (robot.req_body_pause_prob, robot.req_body_pause_start) {
        (Some(prob), _) if prob > 0.0 => Expect::Prob(prob),
        (None, Some(size)) => Expect::From(u64::try_from(size.0).unwrap_or(0)),
        _ => Expect::Never,
    }
}

fn session(session: &PglSession, found: &mut Lowering<'_>) -> Option<Session> {
    let busy = session.busy_period.as_deref()?;
    let idle = distr(session.idle_period_duration.as_ref()?, "idle_period_duration", found)?;
    Some(Session {
        busy_s: busy.duration.map(|time| time.secs()),
        busy_xacts: busy.xactions.and_then(|count| u64::try_from(count).ok()),
        busy_fill: busy.fill_size.and_then(|size| u64::try_from(size.0).ok()),
        idle,
    })
}

fn dns(resolver: &DnsResolver, found: &mut Lowering<'_>) -> Dns {
    let cache = resolver.cache.as_deref();
    Dns {
        servers: hosts(&resolver.servers, "servers", Some(DNS_PORT), found),
        timeout: nanos(resolver.timeout.map_or(DNS_TIMEOUT, |time| time.secs())),
        v6: resolver.query_type.as_deref() == Some("AAAA"),
        cache: cache.and_then(|cache| cache.capacity).map_or(0, count),
        sharing_group: cache.and_then(|cache| cache.sharing_group.clone()),
    }
}
