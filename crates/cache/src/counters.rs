//! What the proxy counts. Each loop counts for itself; a snapshot adds them up.

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
        /// The counters of one loop.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $($(#[$doc])+ pub $name: Counter,)+
        }

        /// Figures of a proxy at one moment, over all loops since the start.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Snapshot {
            $($(#[$doc])+ pub $name: u64,)+
            /// Open client connections, now.
            pub client_connections: u64,
            /// Bytes taken by stored objects and their bookkeeping, now.
            pub store_bytes: u64,
            /// Stored objects, now.
            pub store_objects: u64,
            /// Objects pushed out of the store to make room.
            pub evicted: u64,
        }

        impl Snapshot {
            pub(crate) fn add(&mut self, counters: &Counters) {
                $(self.$name += counters.$name.get();)+
            }
        }
    };
}

counters! {
    /// Requests whose head was understood: the sum of `hits`, `validations`, `misses`, `rejected` and `asked`.
    requests,
    /// Requests answered from the store without asking the origin, with the whole reply or `304`.
    hits,
    /// Requests for which the origin was asked whether a stored reply is still good.
    validations,
    /// Validations that the origin answered with `304`, so that the stored reply was used.
    validated,
    /// Requests passed on to an origin without a stored reply to validate, uncachable ones included.
    misses,
    /// Requests that the proxy refused itself (other methods, schemes, loops, `only-if-cached`).
    rejected,
    /// Requests answered `407`: the client has to say first who it is.
    asked,
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
    /// Open connections to origins, now, idle ones included.
    origin_connections,
}
