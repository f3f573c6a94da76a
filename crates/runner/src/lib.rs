//! Carries out a test on this machine: turns a `Test` into jobs of the engine, starts the device, checks the path
//! before the test, predicts figures afterwards, and writes a result directory.
//!
//! ```text
//! Test --jobs--> engine (real time) or simulation (virtual time) --> logs --> result directory
//! ```
//!
//! The command line parses options into the plain values of this crate and prints what it returns. This crate does not
//! print: messages before the end of a run go through [`Notify`].

#![allow(clippy::disallowed_methods, reason = "runs start devices and have a time of day")]

pub mod addresses;
pub mod bench;
pub mod bench_routes;
pub mod ceiling;
mod certificates;
pub mod content_files;
pub mod described_settings;
pub mod device;
pub mod device_model;
pub mod device_place;
pub mod environment;
pub mod expectations;
pub mod failure;
pub mod host_check;
pub mod jobs;
pub mod layouts;
pub mod log_file;
pub mod name_server;
pub mod notify;
pub mod open_limit;
pub mod peak;
pub mod prediction;
pub mod preflight;
pub mod preview;
pub mod result;
pub mod run_settings;
pub mod simulation;
pub mod simulation_table;
pub mod working_set;

pub use addresses::AddressMode;
pub use bench::Bench;
pub use expectations::Expectations;
pub use failure::{Failure, FailureKind, make_directory, write_file};
pub use notify::{Notice, Notify};
pub use result::RunResult;
pub use run_settings::RunSettings;
