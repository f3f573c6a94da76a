//! Counters of the proxy. Each event loop has its own; a snapshot is their sum.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A figure with a single writer, so that counting needs no locked instruction.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(n), Relaxed);
    }

    pub fn sub(&self, n: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_sub(n), Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// The counters of one event loop.
        #[derive(Debug, Default)]
        pub struct Counters {
            $($(#[$doc])+ pub(crate) $name: Counter,)+
        }

        /// Counts of a proxy since its start, over all event loops.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Snapshot {
            $($(#[$doc])+ pub $name: u64,)+
            /// Currently open client connections.
            pub client_connections: u64,
            /// Bytes currently taken by stored objects and their bookkeeping.
            pub store_bytes: u64,
            /// Currently stored objects.
            pub store_objects: u64,
            /// Objects evicted from the store to make room.
            pub evicted: u64,
            /// When the first object was evicted: the time at which the store was full.
            pub full_at: Option<polygraph_link::Nanos>,
        }

        impl Snapshot {
            pub(crate) fn add(&mut self, counters: &Counters) {
                $(self.$name += counters.$name.get();)+
            }
        }
    };
}

counters! {
    /// Requests whose head was understood: the sum of `hits`, `validations`, `misses`, `rejected` and `challenged`, and tunnels whether they could be opened or not.
    requests,
    /// Requests answered from the store without a request to the origin, with the complete reply or `304`.
    hits,
    /// Requests for which the origin had to confirm a stored reply.
    validations,
    /// Validations that the origin answered with `304`, so that the stored reply was used.
    validated,
    /// Requests forwarded to an origin without a stored reply to validate, including uncachable ones.
    misses,
    /// Requests that the proxy refused itself (other methods, schemes, loops, `only-if-cached`).
    rejected,
    /// Requests answered `407`: the client has to authenticate itself first.
    challenged,
    /// Tunnels that were opened.
    tunnels,
    /// Bytes that were not understood as a request, and request heads that took too long.
    bad_requests,
    /// Transactions that ended in a `502` or `504` because the origin failed before its reply began.
    origin_errors,
    /// Truncated replies: the origin failed or the client closed the connection after the reply had begun.
    aborted,
    /// Stored objects, including those that replaced another.
    stored,
    /// Injected faults.
    faults,
    /// Bytes written to clients.
    bytes_out,
    /// Bytes read from origins.
    bytes_in,
    /// Client connections accepted, without the refused ones.
    accepted,
    /// TLS handshakes with clients that succeeded.
    handshakes,
    /// TLS handshakes with clients that failed.
    failed_handshakes,
    /// Client connections that carried HTTP/2.
    http2,
    /// Client connections refused because the limit was reached.
    refused,
    /// Connections that could not be accepted, usually because file descriptors had run out.
    accept_errors,
    /// How often a client found the queue of the listening socket full, and had to try again.
    queue_full,
    /// Connections opened to origins.
    origin_connects,
    /// Currently open connections to origins, including idle ones.
    origin_connections,
}
