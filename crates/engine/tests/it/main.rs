//! Tests that run robots, servers and, between them, a proxy in one process.

#![allow(clippy::disallowed_methods, reason = "hand-written peers are threads")]

mod detection;
mod proxy;
mod scripts;
mod simulated;
mod support;
mod whole;
