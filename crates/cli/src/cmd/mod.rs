//! The subcommands: each parses, calls and prints.

pub mod bakeoff;
pub mod bb;
pub mod client;
pub mod compare;
pub mod devices;
pub mod dns;
pub mod downtime;
pub mod export;
pub mod import;
pub mod labels;
pub mod logs;
pub mod peak;
pub mod proxy;
pub mod run;
pub mod runs;
pub mod server;
pub mod simulate;
pub mod try_run;
