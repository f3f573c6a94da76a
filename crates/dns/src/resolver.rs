//! The client's side: from a name to its addresses.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use polygraph_link::{Link, Nanos};

use crate::address_cache::{AddressCache, Addresses, CacheState, LookupResult};
use crate::error::{Attempt, AttemptFailure, DnsError, LookupError};
use crate::name::DomainName;
use crate::query::{Query, QueryType};
use crate::resolver_stats::ResolverStats;

/// How names are looked up: `DnsResolver` of the workload language.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolverConfig {
    /// Servers, tried in this order.
    pub servers: Vec<SocketAddr>,
    /// How long each of them may take, in nanoseconds; `None`: for ever, or until the lookup is dropped.
    pub timeout: Option<Nanos>,
    /// IPv4 or IPv6.
    pub query_type: QueryType,
}

/// Looks names up for the robots of one event loop. Clones share the cache and the counts.
#[derive(Clone, Debug)]
pub struct Resolver<L> {
    link: L,
    config: Rc<ResolverConfig>,
    cache: AddressCache,
    stats: Rc<RefCell<ResolverStats>>,
    next_id: Rc<Cell<u16>>,
}

/// A successful lookup.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The addresses.
    pub answer: Addresses,
    /// How they became known.
    pub source: AnswerSource,
}

/// How an answer became known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerSource {
    /// From the cache.
    Cache,
    /// By the query of another lookup that was under way.
    Joined,
    /// By a query of its own: the time from the query to the reply, in microseconds.
    Server {
        /// Without the time that servers asked in vain have taken.
        response_us: u64,
    },
}

impl<L: Link> Resolver<L> {
    /// A resolver that counts in `stats` and numbers its queries from `first_id` on, in an order that jumps.
    pub fn new(
        link: L,
        config: Rc<ResolverConfig>,
        cache: AddressCache,
        stats: Rc<RefCell<ResolverStats>>,
        first_id: u16,
    ) -> Resolver<L> {
        Resolver { link, config, cache, stats, next_id: Rc::new(Cell::new(first_id)) }
    }

    /// The addresses of a name, from the cache, by the query under way, or by one that is sent from the address
    /// `from` (if it is of the server's family). It may be dropped at any time; whoever waits for the same
    /// query then asks for itself.
    ///
    /// # Errors
    /// If no server gives an address. A name that does not exist is an answer; after any other failure and
    /// after the timeout the next server is asked.
    pub async fn lookup(&self, from: Option<IpAddr>, name: &DomainName) -> Result<Resolved, LookupError> {
        self.stats.borrow_mut().lookups += 1;
        let found = self.find(from, name).await;
        let mut stats = self.stats.borrow_mut();
        match &found {
            Ok(Resolved { source: AnswerSource::Cache, .. }) => stats.cache_hits += 1,
            Ok(_) => {}
            Err(_) => stats.failures += 1,
        }
        found
    }

    async fn find(&self, from: Option<IpAddr>, name: &DomainName) -> Result<Resolved, LookupError> {
        let key = (self.config.query_type, name.clone());
        let mut joined = false;
        loop {
            match self.cache.enter(&key) {
                CacheState::ZoneAnswer(answer) => {
                    return Ok(Resolved { answer, source: AnswerSource::Cache });
                }
                CacheState::Asked(pending) => {
                    if !std::mem::replace(&mut joined, true) {
                        self.stats.borrow_mut().joined += 1;
                    }
                    if let Some(end) = pending.end().await {
                        return end.map(|answer| Resolved { answer, source: AnswerSource::Joined });
                    }
                }
                CacheState::Ask(duty) => {
                    let (outcome, response_us) = self.ask_servers(from, name).await;
                    duty.finish(outcome.clone());
                    return outcome
                        .map(|answer| Resolved { answer, source: AnswerSource::Server { response_us } });
                }
            }
        }
    }

    /// The outcome, and the response time of an answer.
    async fn ask_servers(&self, from: Option<IpAddr>, name: &DomainName) -> (LookupResult, u64) {
        let mut attempts = Vec::new();
        for &server in &self.config.servers {
            self.stats.borrow_mut().queries += 1;
            let begin = self.link.now();
            match self.ask(server, from, name, begin).await {
                Ok(answer) => {
                    let response_us = self.link.now().saturating_sub(begin) / 1000;
                    let mut stats = self.stats.borrow_mut();
                    stats.answers += 1;
                    stats.response_us += response_us;
                    return (Ok(answer), response_us);
                }
                Err(failure) => {
                    self.stats.borrow_mut().failed(failure);
                    attempts.push(Attempt { server, failure });
                    if failure == AttemptFailure::Dns(DnsError::NoName) {
                        break;
                    }
                }
            }
        }
        (Err(LookupError::new(attempts)), 0)
    }

    async fn ask(
        &self,
        server: SocketAddr,
        from: Option<IpAddr>,
        name: &DomainName,
        begin: Nanos,
    ) -> Result<Addresses, AttemptFailure> {
        let query = Query::new(self.id(), name.clone(), self.config.query_type);
        let from = from.filter(|from| from.is_ipv4() == server.is_ipv4());
        let until = self.config.timeout.map(|timeout| begin.saturating_add(timeout));
        // What came instead of the reply, if anything did: it says more than that nothing came in time.
        let mut stray = DnsError::Timeout;
        let message = query.message();
        let reply = self.link.exchange_datagram(from, server, &message, until, |datagram| {
            match query.read(datagram) {
                Err(error @ (DnsError::Id | DnsError::Mismatch)) => {
                    stray = error;
                    None
                }
                read => Some(read),
            }
        });
        let read = match reply.await {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(stray),
            Err(error) => return Err(AttemptFailure::Socket(error.kind())),
        };
        let answer = read.and_then(|addresses| Addresses::new(addresses).ok_or(DnsError::NoName));
        answer.map_err(AttemptFailure::Dns)
    }

    /// The step is odd, so that every number has its turn before the first comes again.
    fn id(&self) -> u16 {
        let id = self.next_id.get();
        self.next_id.set(id.wrapping_add(40_503));
        id
    }
}
