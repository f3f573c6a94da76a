//! The subcommands: each parses, calls and prints.

pub mod client;
pub mod devices;
pub mod dns;
pub mod downtime;
pub mod logs;
pub mod peak;
pub mod proxy;
pub mod run;
pub mod server;
pub mod try_run;
