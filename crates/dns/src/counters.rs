//! What the server counts. Its thread writes, anybody reads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::reply::DnsOutcome;

macro_rules! counters {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// The counters of a server.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $($(#[$doc])+ pub $name: Counter,)+
        }

        /// Figures of a server since its start, at one moment.
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
    /// Queries that came in datagrams.
    udp_queries,
    /// Queries that came over TCP.
    tcp_queries,
    /// Queries answered with addresses, or with the record of a zone.
    answered,
    /// Queries for names that exist, but not with an address of the wanted type.
    no_data,
    /// Queries for names that do not exist (NXDOMAIN).
    no_name,
    /// Queries for names of other zones, other classes, or whole zones (REFUSED).
    refused,
    /// Queries that were not understood (FORMERR).
    bad_format,
    /// Requests that are no queries, or in an unknown version of the protocol (NOTIMP, BADVERS).
    not_implemented,
    /// Replies in which not all addresses had room.
    truncated,
    /// Messages that got no reply, being none themselves or replies.
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

/// A figure with a single writer, so that counting needs no locked instruction.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }
}
