//! What the proxy counts. Each event loop counts for itself; a snapshot adds them up.

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

        /// Figures of a proxy at one moment, over all event loops since the start.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Snapshot {
            $($(#[$doc])+ pub $name: u64,)+
            /// Open client connections, at this moment.
            pub client_connections: u64,
            /// Bytes taken by stored objects and their bookkeeping, at this moment.
            pub store_bytes: u64,
            /// Stored objects, at this moment.
            pub store_objects: u64,
            /// Objects evicted from the store to make room.
            pub evicted: u64,
            /// When the first of them was evicted: the store was full.
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
    /// Requests whose head was understood: the sum of `hits`, `validations`, `misses`, `rejected` and `challenged`.
    requests,
    /// Requests answered from the store without a request to the origin, with the whole reply or `304`.
    hits,
    /// Requests for which the origin had to confirm a stored reply.
    validations,
    /// Validations that the origin answered with `304`, so that the stored reply was used.
    validated,
    /// Requests passed on to an origin without a stored reply to validate, uncachable ones included.
    misses,
    /// Requests that the proxy refused itself (other methods, schemes, loops, `only-if-cached`).
    rejected,
    /// Requests answered `407`: the client has to authenticate itself first.
    challenged,
    /// Bytes that were not understood as a request, and request heads that took too long.
    bad_requests,
    /// Transactions that ended in a `502` or `504` because the origin failed before its reply began.
    origin_errors,
    /// Replies cut short: the origin failed, or the client left, after the reply had begun.
    aborted,
    /// Objects put into the store, those included that replaced another.
    stored,
    /// Faults committed on purpose.
    faults,
    /// Bytes written to clients.
    bytes_out,
    /// Bytes read from origins.
    bytes_in,
    /// Client connections accepted, without the refused ones.
    accepted,
    /// Client connections refused because the limit was reached.
    refused,
    /// Connections that could not be accepted, as a rule for want of file descriptors.
    accept_errors,
    /// Connections opened to origins.
    origin_connects,
    /// Open connections to origins, at this moment, idle ones included.
    origin_connections,
}
