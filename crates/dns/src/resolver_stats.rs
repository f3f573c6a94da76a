//! Counts of resolvers.

use crate::error::{AttemptFailure, DnsError};

/// Counts of the resolvers that share them, usually all of one event loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResolverStats {
    /// Lookups started.
    pub lookups: u64,
    /// Lookups that found their name in the cache.
    pub cache_hits: u64,
    /// Lookups that waited for the query of another one.
    pub joined: u64,
    /// Queries sent to servers, or that could not be sent.
    pub queries: u64,
    /// Queries that returned addresses.
    pub answers: u64,
    /// The sum of the response times of these queries, in microseconds.
    pub response_us: u64,
    /// Lookups that found no address, including those that shared a query.
    pub failures: u64,
    /// Queries that returned no address, by class ([`DnsError::index`]). [`DnsError::AllFailed`] is a class of
    /// lookups, not of queries.
    pub errors: [u64; DnsError::COUNT],
    /// Queries that could not be sent, or whose server was not there.
    pub socket_errors: u64,
}

impl ResolverStats {
    /// Adds the counts of `other`.
    pub fn add(&mut self, other: &ResolverStats) {
        self.lookups += other.lookups;
        self.cache_hits += other.cache_hits;
        self.joined += other.joined;
        self.queries += other.queries;
        self.answers += other.answers;
        self.response_us += other.response_us;
        self.failures += other.failures;
        for (sum, one) in self.errors.iter_mut().zip(other.errors) {
            *sum += one;
        }
        self.socket_errors += other.socket_errors;
    }

    /// Mean response time in microseconds of the queries that returned addresses; `None` without such queries.
    pub fn mean_response_us(&self) -> Option<f64> {
        (self.answers > 0).then(|| self.response_us as f64 / self.answers as f64)
    }

    pub(crate) fn failed(&mut self, failure: AttemptFailure) {
        match failure {
            AttemptFailure::Dns(error) => self.errors[error.index()] += 1,
            AttemptFailure::Socket(_) => self.socket_errors += 1,
        }
    }
}
