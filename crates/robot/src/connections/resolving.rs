//! Resolvers are looked up where a robot connects to servers itself (reference: models.md, section 24).

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use polygraph_dns::address_cache::{AddressCache, AddressCaches};
use polygraph_dns::name::DomainName;
use polygraph_dns::query::QueryType;
use polygraph_dns::resolver::{AnswerSource, Resolver, ResolverConfig};
use polygraph_dns::resolver_stats::ResolverStats;
use polygraph_link::Link;
use polygraph_stats::{ErrorKind, Recorder};
use polygraph_traffic::Random;
use polygraph_wire::uri;
use rustc_hash::FxHashMap;

use crate::exchange::TransactionFailure;
use crate::settings::{Dns, Settings};

/// The resolvers of one loop.
#[derive(Debug)]
pub struct Resolvers<L> {
    link: L,
    recorder: Recorder,
    stats: Rc<RefCell<ResolverStats>>,
    caches: RefCell<AddressCaches>,
    /// By kind of robots and, where each has a cache of its own, by robot.
    resolvers: RefCell<FxHashMap<(usize, usize), Resolver<L>>>,
    first_id: u16,
}

impl<L: Link> Resolvers<L> {
    /// Resolvers that have not been asked anything yet.
    pub fn new(link: L, recorder: Recorder, settings: &Settings) -> Resolvers<L> {
        let first_id = settings.seed.stream("dns", settings.first_robot as u64).bits() as u16;
        Resolvers {
            link,
            recorder,
            stats: Rc::default(),
            caches: RefCell::default(),
            resolvers: RefCell::default(),
            first_id,
        }
    }

    fn resolver(&self, dns: &Dns, profile: usize, robot: usize) -> Resolver<L> {
        let own = dns.cache > 0 && dns.sharing_group.is_none();
        let key = (profile, if own { robot } else { usize::MAX });
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
            let id = self.first_id.wrapping_add(robot as u16);
            Resolver::new(self.link.clone(), Rc::new(config), cache, Rc::clone(&self.stats), id)
        });
        resolver.clone()
    }

    /// An address of `authority`, which is `host:port`, for a robot of kind `profile` that lives at `from`.
    ///
    /// # Errors
    /// If no server knows one.
    pub async fn resolve(
        &self,
        dns: &Dns,
        profile: usize,
        robot: usize,
        from: Option<IpAddr>,
        authority: &str,
    ) -> Result<SocketAddr, TransactionFailure> {
        let unknown = || TransactionFailure::new(ErrorKind::UnknownHost, authority);
        let (host, port) = uri::host_port(authority.as_bytes()).ok_or_else(unknown)?;
        let host = std::str::from_utf8(host).map_err(|_| unknown())?;
        let name = DomainName::parse(host).map_err(|_| unknown())?;
        let resolver = self.resolver(dns, profile, robot);
        self.recorder.with(|block| block.dns.lookups += 1);
        match resolver.lookup(from, &name).await {
            Ok(found) => {
                self.recorder.with(|block| match found.source {
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
}
