//! Devices under test: programs with a configuration for benchmarks that are started, watched, emptied and
//! stopped together with a run.
//!
//! A device is a directory: a description `device.toml`, templates of configuration files, a README. The set that
//! comes with the program lies in `devices/`, whose README documents the form, and is part of the binary.
//!
//! ```no_run
//! use polygraph_device::{Device, Params};
//!
//! let device = Device::find("squid")?;
//! let mut running = device.start(&Params { memory: Some(64 << 20), ..Params::default() })?;
//! println!("{} {} listens at {}", running.name(), running.version(), running.address());
//! running.halt();
//! println!("{:?}", running.counts()?);
//! # Ok::<(), polygraph_device::Error>(())
//! ```
//!
//! `device` finds, `spec` is the description, `render` makes files and command lines from it and `params`,
//! `process` runs programs as children under `unix_user`, `ports` sees when they are ready, `usage` what they
//! use, `usage_series` that over time, `access_log` what they did; `running_device` is the handle of it all, `builtin` the same for the built-in proxy.

#![allow(
    clippy::disallowed_methods,
    reason = "devices are programs that are started, watched and stopped in real time"
)]

mod access_log;
mod builtin;
mod claim;
mod device;
mod disk_usage;
mod error;
mod params;
mod ports;
mod process;
mod render;
#[cfg(test)]
mod render_tests;
mod running_device;
mod spec;
mod unix_user;
mod usage;
mod usage_series;

pub use access_log::{AccessCounts, LogFormat, PlainCounts, PlainRequests};
pub use device::Device;
pub use error::{Error, Result};
pub use params::Params;
pub use ports::resolve_port;
pub use process::ProcessEnd;
pub use running_device::RunningDevice;
pub use spec::{DeviceRole, Setting};
pub use usage::Usage;
pub use usage_series::UsageSeries;
