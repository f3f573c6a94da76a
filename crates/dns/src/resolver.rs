//! The resolver of robots: finds the addresses of names.

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

/// The settings of a resolver: `DnsResolver` of the workload language.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolverConfig {
    /// The servers, in the order of attempts.
    pub servers: Vec<SocketAddr>,
    /// The longest time for each server, in nanoseconds; `None`: unlimited.
    pub timeout: Option<Nanos>,
    /// The type of address.
    pub query_type: QueryType,
}

/// Looks up names for the robots of one event loop. Clones share the cache and the counts.
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
    /// How they were found.
    pub source: AnswerSource,
}

/// How the addresses of a name were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerSource {
    /// In the cache.
    Cache,
    /// By the query of another lookup that was in progress.
    Joined,
    /// By a query of this lookup.
    Server {
        /// The time from the query to the reply in microseconds, without the time for servers that failed.
        response_us: u64,
    },
}

impl<L: Link> Resolver<L> {
    /// A resolver that counts in `stats`. Its first query has the id `first_id`; the following ids are pseudo-random.
    pub fn new(
        link: L,
        config: Rc<ResolverConfig>,
        cache: AddressCache,
        stats: Rc<RefCell<ResolverStats>>,
        first_id: u16,
    ) -> Resolver<L> {
        Resolver { link, config, cache, stats, next_id: Rc::new(Cell::new(first_id)) }
    }

    /// Finds the addresses of a name: in the cache, by a query in progress, or by a query that is sent from the
    /// address `from` (if it is of the server's family). The future may be dropped at any time; a lookup that waits
    /// for the same query then sends its own.
    ///
    /// # Errors
    /// If no server returns an address. "No such name" is final; after any other failure and after the timeout the
    /// next server is asked.
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

    /// Asks the servers in order. Returns the result, and the response time of a successful query in microseconds.
    async fn ask_servers(&self, from: Option<IpAddr>, name: &DomainName) -> (LookupResult, u64) {
        let mut attempts = Vec::new();
        for &server in &self.config.servers {
            self.stats.borrow_mut().queries += 1;
            let begin = self.link.now();
            match self.query(server, from, name, begin).await {
                Ok(answer) => {
                    let response_us = self.link.now().saturating_sub(begin).as_micros();
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

    async fn query(
        &self,
        server: SocketAddr,
        from: Option<IpAddr>,
        name: &DomainName,
        begin: Nanos,
    ) -> Result<Addresses, AttemptFailure> {
        let query = Query::new(self.id(), name.clone(), self.config.query_type);
        let from = from.filter(|from| from.is_ipv4() == server.is_ipv4());
        let until = self.config.timeout.map(|timeout| begin.saturating_add(timeout));
        // The class of a wrong reply, if one arrives: it is more specific than a timeout.
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

    /// The next query id. The step is odd, so all ids are used before one repeats.
    fn id(&self) -> u16 {
        let id = self.next_id.get();
        self.next_id.set(id.wrapping_add(40_503));
        id
    }
}
