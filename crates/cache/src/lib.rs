//! The built-in caching proxy, the default device under test.
//!
//! A proxy with a bounded memory store that obeys RFC 9111 as a shared cache: a forward proxy, or a surrogate if its
//! configuration names origins. Clients speak HTTP/1.1 or HTTP/2, with or without TLS, origins HTTP/1.1. It is written against
//! [`Link`](polygraph_link::Link): the crate `engine` runs it on sockets, one [`Proxy`] per event loop, and the crate
//! `sim` runs it in virtual time, where it represents other devices.
//!
//! A request passes through the modules in this order: `serve` takes the connection, with TLS and HTTP/2 if the client
//! speaks them; each stream is served like a connection with one request. `client` reads the head, checks the client and decides
//! with `policy` and `store`; then `reply` sends the stored reply, or `forward` sends the request to an origin over a
//! connection from `origins`, `admission` decides whether the reply is stored, and `relay` forwards it. `policy`,
//! `directives`, `target`, `message`, `object` and `store` do no I/O. A proxy with `faults` behaves incorrectly on
//! purpose, to check that a test detects it.
//!
//! Unsupported: TLS to origins, collapsed forwarding, storing parts or answering
//! them from stored replies, serving stale replies when an origin fails, trailers.

#![allow(clippy::disallowed_methods, reason = "the proxy serves sockets of its own, in real time")]

mod admission;
mod buffered;
mod client;
mod config;
mod content;
mod counters;
mod directives;
mod faults;
mod forward;
mod message;
mod object;
mod origins;
mod policy;
mod proxy;
mod relay;
mod reply;
mod request;
mod serve;
mod service;
mod store;
mod target;
#[cfg(test)]
mod testing;
mod tunnel;

pub use config::ProxyConfig;
pub use content::{ContentGenerator, GeneratedContent};
pub use counters::{Counters, Snapshot};
pub use faults::Fault;
pub use origins::Resolver;
pub use proxy::{Identity, Proxy, Shared};
pub use service::ServiceModel;
pub use store::Replacement;
