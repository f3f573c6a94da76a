//! Devices under test: programs with a benchmark configuration, which a run starts, monitors, empties and stops.
//!
//! A device is a directory with a description `device.toml`, templates of configuration files, and a README. The
//! built-in set is in `devices/`, whose README documents the format, and is part of the binary.
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
//! `device` finds devices, `spec` is their description, `params` are the parameters of one start, and `render` makes
//! configuration files and command lines from these. `process` runs programs as children under a `unix_user`, `ports`
//! detects when they are ready, `usage` and `usage_series` measure their resources, `access_log` counts their
//! requests. `running_device` is the handle to a started device, `builtin` the same for the built-in proxy. `claim`
//! removes leftovers of killed runs.

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
pub use builtin::server_tls;
pub use claim::{abandoned_directories, tidy_up};
pub use device::Device;
pub use error::{Error, Result};
pub use params::Params;
pub use ports::resolve_port;
pub use process::ProcessEnd;
pub use running_device::RunningDevice;
pub use spec::{DeviceRole, Setting};
pub use usage::Usage;
pub use usage_series::UsageSeries;
