//! Tests that run robots, servers and, between them, a proxy in one process.

mod detection;
mod support;
mod whole;
