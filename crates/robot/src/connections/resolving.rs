//! Determines the destination of a request: the robot's proxy, or an address of the server, which may have to be looked up first
//! (`docs/reference/models.md`, "Name resolution").

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use polygraph_dns::address_cache::{AddressCache, AddressCaches};
use polygraph_dns::name::DomainName;
use polygraph_dns::query::QueryType;
use polygraph_dns::resolver::{AnswerSource, Resolver, ResolverConfig};
use polygraph_dns::resolver_stats::ResolverStats;
use polygraph_link::{Link, Nanos, run_until};
use polygraph_stats::ErrorKind;
use polygraph_traffic::Random;
use polygraph_wire::uri;
use rustc_hash::FxHashMap;

use super::hop::Hop;
use crate::context::{GroupContext, RobotContext};
use crate::failure::TransactionFailure;
use crate::request::Request;
use crate::settings::Dns;

/// The name resolvers of one loop.
#[derive(Debug)]
pub struct Resolvers<L> {
    stats: Rc<RefCell<ResolverStats>>,
    caches: RefCell<AddressCaches>,
    /// Caches by profile and, where each robot has its own cache, by robot.
    resolvers: RefCell<FxHashMap<(usize, usize), Resolver<L>>>,
    first_id: u16,
}

impl<L: Link> Resolvers<L> {
    /// Resolvers with empty caches.
    pub fn new(group: &GroupContext<L>) -> Resolvers<L> {
        let settings = &group.settings;
        let first_id = settings.seed.stream("dns", settings.first_number() as u64).bits() as u16;
        Resolvers {
            stats: Rc::default(),
            caches: RefCell::default(),
            resolvers: RefCell::default(),
            first_id,
        }
    }

    /// The destination of a request if it needs no look-up: the robot's proxy, the origin of its container, or one of the
    /// addresses of its server.
    pub fn known_hop(&self, cx: RobotContext<'_, L>, request: &Request) -> Option<Hop> {
        let by_name = || cx.proxy().is_none() && cx.sends_names();
        let hop = request.hop.or_else(|| match by_name() {
            true => {
                Some(Hop { address: cx.socks()?, server: Some(peer_of(cx, request)?), alternative: None })
            }
            false => Some(hop_at(cx, request, cx.proxy()?)),
        });
        if hop.is_some() || request.foreign.is_some() {
            return hop;
        }
        match cx.settings.field.servers[request.server].addresses[..] {
            [] => None,
            [only] => Some(hop_at(cx, request, only)),
            ref several => {
                let at = cx.reply_rng.borrow_mut().below(several.len() as u64) as usize;
                Some(hop_at(cx, request, several[at]))
            }
        }
    }

    /// The destination of a request that has no [`Resolvers::known_hop`].
    ///
    /// # Errors
    /// If the server's name has no address, or if none is known before `deadline`.
    pub async fn look_up_hop(
        &self,
        cx: RobotContext<'_, L>,
        request: &Request,
        deadline: Option<Nanos>,
    ) -> Result<Hop, TransactionFailure> {
        let authority = match &request.foreign {
            Some(url) => match foreign_host(url)? {
                Host::Address(address) => return Ok(hop_at(cx, request, address)),
                Host::Name(authority) => authority,
            },
            None => &cx.settings.field.servers[request.server].authority,
        };
        let found = self.resolve(cx, authority, deadline).await?;
        if request.foreign.is_none() {
            let planned = &cx.settings.field.servers[request.server].behind;
            if !planned.is_empty() && !planned.contains(&found.ip()) {
                cx.recorder.with(|block| block.dns.unplanned += 1);
            }
        }
        Ok(hop_at(cx, request, found))
    }

    async fn resolve(
        &self,
        cx: RobotContext<'_, L>,
        authority: &str,
        deadline: Option<Nanos>,
    ) -> Result<SocketAddr, TransactionFailure> {
        let Some(dns) = &cx.profile().dns else {
            let detail = format!("{authority} has no address, and the robots have no dns_resolver");
            return Err(TransactionFailure::new(ErrorKind::UnknownHost, detail));
        };
        let found = self.look_up(cx, dns, authority);
        let Some(deadline) = deadline else { return found.await };
        let timeout = || {
            TransactionFailure::new(
                ErrorKind::DnsTimeout,
                format!("the transaction's time was over while looking up {authority}"),
            )
        };
        run_until(cx.link.sleep_until(deadline), found).await.unwrap_or_else(|| Err(timeout()))
    }

    /// An address of `authority`, which is `host` or `host:port`.
    async fn look_up(
        &self,
        cx: RobotContext<'_, L>,
        dns: &Dns,
        authority: &str,
    ) -> Result<SocketAddr, TransactionFailure> {
        let unknown = || TransactionFailure::new(ErrorKind::UnknownHost, authority);
        let (host, port) = uri::host_port(authority.as_bytes()).ok_or_else(unknown)?;
        let host = std::str::from_utf8(host).map_err(|_| unknown())?;
        let name = DomainName::parse(host).map_err(|_| unknown())?;
        let resolver = self.resolver(cx, dns);
        cx.recorder.with(|block| block.dns.lookups += 1);
        match resolver.lookup(cx.address(), &name).await {
            Ok(found) => {
                cx.recorder.with(|block| match found.source {
                    AnswerSource::Cache => block.dns.cache_hits += 1,
                    AnswerSource::Server { response_us } => block.dns.rptm_us.record(response_us),
                    AnswerSource::Joined => {}
                });
                Ok(SocketAddr::new(found.answer.address(), port.unwrap_or(80)))
            }
            Err(e) => {
                let kind = ErrorKind::from_code(u16::from(e.error.number()));
                Err(TransactionFailure::new(kind, format!("{host}: {e}")))
            }
        }
    }

    fn resolver(&self, cx: RobotContext<'_, L>, dns: &Dns) -> Resolver<L> {
        let own = dns.cache > 0 && dns.sharing_group.is_none();
        let key = (cx.profile_index(), if own { cx.robot } else { usize::MAX });
        let mut resolvers = self.resolvers.borrow_mut();
        let resolver = resolvers.entry(key).or_insert_with(|| {
            let config = ResolverConfig {
                servers: dns.servers.clone(),
                timeout: Some(dns.timeout),
                query_type: if dns.v6 { QueryType::Aaaa } else { QueryType::A },
            };
            let cache = match dns.sharing_group.as_deref() {
                Some(group) => self.caches.borrow_mut().cache(dns.cache, Some(group)),
                None => AddressCache::new(dns.cache),
            };
            let id = self.first_id.wrapping_add(cx.robot as u16);
            Resolver::new(cx.link.clone(), Rc::new(config), cache, Rc::clone(&self.stats), id)
        });
        resolver.clone()
    }
}

/// The peer of a request that goes to `address`. A connection with TLS to a server serves this server only.
fn hop_at<L: Link>(cx: RobotContext<'_, L>, request: &Request, address: SocketAddr) -> Hop {
    let server = if cx.is_https(request) { peer_of(cx, request) } else { None };
    Hop { address, server, alternative: None }
}

/// The visible server or the foreign host of a request; `None` if its URL has no host.
fn peer_of<L: Link>(cx: RobotContext<'_, L>, request: &Request) -> Option<u32> {
    let Some(url) = &request.foreign else { return Some(request.server as u32) };
    let parts = uri::split(url.as_bytes())?;
    let (host, port) = uri::host_port(parts.authority)?;
    let host = std::str::from_utf8(host).ok()?;
    let port = port.or_else(|| uri::default_port(parts.scheme)).unwrap_or(80);
    // An address of IPv6 needs its brackets.
    let authority = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    Some(cx.foreign_peer(&authority, cx.is_https(request)))
}

/// The destination of a foreign URL.
enum Host<'a> {
    Address(SocketAddr),
    /// Name and optional port.
    Name(&'a str),
}

fn foreign_host(url: &str) -> Result<Host<'_>, TransactionFailure> {
    let failure = || TransactionFailure::new(ErrorKind::NoUrlHost, url);
    let parts = uri::split(url.as_bytes()).ok_or_else(failure)?;
    if parts.scheme.eq_ignore_ascii_case(b"ftp") {
        let detail = format!("{url}: FTP is obsolete and not supported, except through an HTTP proxy");
        return Err(TransactionFailure::new(ErrorKind::Other, detail));
    }
    let authority = std::str::from_utf8(parts.authority).map_err(|_| failure())?;
    let (host, port) = uri::host_port(parts.authority).ok_or_else(failure)?;
    let port = port.or_else(|| uri::default_port(parts.scheme)).unwrap_or(80);
    let ip = std::str::from_utf8(host).ok().and_then(|host| host.trim_matches(['[', ']']).parse().ok());
    Ok(ip.map_or(Host::Name(authority), |ip| Host::Address(SocketAddr::new(ip, port))))
}
