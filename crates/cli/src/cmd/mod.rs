//! The commands, one per file: each parses its options, calls the crates that do the work, and prints.

pub mod accounts;
pub mod addresses;
pub mod bakeoff;
pub mod bb;
pub mod check;
pub mod client;
pub mod compare;
pub mod devices;
pub mod dns;
pub mod downtime;
pub mod explain;
pub mod export;
pub mod fmt;
pub mod import;
pub mod labels;
pub mod logs;
pub mod lsp;
pub mod peak;
pub mod proxy;
pub mod run;
pub mod runs;
pub mod server;
pub mod simulate;
pub mod try_run;
