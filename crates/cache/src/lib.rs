//! The built-in caching proxy, the default device under test.
//!
//! An HTTP/1.1 forward proxy with a bounded memory store that obeys RFC 9111 as a shared cache. It runs inside
//! the program that starts it:
//!
//! ```
//! use polygraph_cache::{Proxy, ProxyConfig};
//!
//! let mut proxy = Proxy::start(ProxyConfig { cache_bytes: 64 << 20, ..ProxyConfig::default() })?;
//! println!("listening on {}", proxy.local_addr());
//! assert_eq!(proxy.snapshot().requests, 0);
//! proxy.stop();
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! A request passes through the modules in this order: `proxy` accepts, `client` reads the head, has `access`
//! judge it and decides with `policy` and `store`, then either writes the stored reply or has `forward` ask an
//! origin over a connection from `origins`. `policy`, `directives`, `target`, `message`, `object` and `store`
//! do no I/O. A proxy with `faults` does some of it wrongly, to try out whether a test finds that.
//!
//! The modules that decide without I/O are public: models of caches decide with them, too.
//!
//! What it does not do: tunnels (`CONNECT` is answered `501`), `https`, collapsed forwarding, storing parts or
//! answering them from stored replies, serving stale replies when an origin fails, trailers.

#![allow(clippy::disallowed_methods, reason = "the proxy serves sockets of its own, in real time")]

mod access;
mod client;
mod config;
mod counters;
pub mod directives;
mod faults;
mod forward;
pub mod message;
pub mod object;
mod origins;
mod peer;
pub mod policy;
mod proxy;
mod service;
mod store;
pub mod target;
mod worker;

pub use access::{Access, Scheme};
pub use config::ProxyConfig;
pub use counters::Snapshot;
pub use faults::Fault;
pub use proxy::Proxy;
pub use service::ServiceModel;
pub use store::{OBJECT_SHARE, STORED_BYTES};
