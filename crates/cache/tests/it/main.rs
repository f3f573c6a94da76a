//! The proxy between a hand-written origin and a hand-written client, over loopback.

#![allow(clippy::disallowed_methods, reason = "peers of the proxy are threads")]

mod caching;
mod faults;
mod limits;
mod relaying;
mod support;
