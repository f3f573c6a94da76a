//! Counters of the name server. Its thread writes them, any thread reads them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::reply::DnsOutcome;

macro_rules! counters {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// The counters of a server.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $($(#[$doc])+ pub $name: Counter,)+
        }

        /// The counts of a name server since its start.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct NameServerCounts {
            $($(#[$doc])+ pub $name: u64,)+
        }

        impl Counters {
            pub fn snapshot(&self) -> NameServerCounts {
                NameServerCounts { $($name: self.$name.0.load(Relaxed),)+ }
            }
        }
    };
}

counters! {
    /// Queries over UDP.
    udp_queries,
    /// Queries over TCP.
    tcp_queries,
    /// Queries answered with addresses or with the SOA record of a zone.
    answered,
    /// Queries for names that exist without an address of the requested type.
    no_data,
    /// Queries for names that do not exist (NXDOMAIN).
    no_name,
    /// Queries for names of other zones, other classes, or whole zones (REFUSED).
    refused,
    /// Malformed queries (FORMERR).
    bad_format,
    /// Requests that are not queries, or that use an unknown version of the protocol (NOTIMP, BADVERS).
    not_implemented,
    /// Replies without room for all addresses.
    truncated,
    /// Messages without a reply: those that are malformed, or replies themselves.
    ignored,
    /// Replies that could not be sent.
    send_errors,
    /// TCP connections accepted.
    connections,
    /// TCP connections closed at once because the limit was reached.
    connections_refused,
}

impl Counters {
    pub fn count(&self, outcome: DnsOutcome) {
        let counter = match outcome {
            DnsOutcome::Answered => &self.answered,
            DnsOutcome::NoData => &self.no_data,
            DnsOutcome::NoName => &self.no_name,
            DnsOutcome::Refused => &self.refused,
            DnsOutcome::BadFormat => &self.bad_format,
            DnsOutcome::NotImplemented => &self.not_implemented,
        };
        counter.add(1);
    }
}

impl NameServerCounts {
    /// All queries that got a reply.
    pub fn queries(&self) -> u64 {
        self.udp_queries + self.tcp_queries
    }
}

/// A counter with a single writer, so that counting needs no locked instruction.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }
}
