//! Tests that run robots, servers and, between them, a proxy in one process.

mod detection;
mod scripts;
mod simulated;
mod support;
mod whole;
