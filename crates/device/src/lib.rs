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
//! `process` runs programs as children under `account`, `listening` sees when they are ready, `usage` what they
//! use, `log` what they did; `running` is the handle of it all, `builtin` the same for the built-in proxy.

mod account;
mod builtin;
mod claim;
mod device;
mod error;
mod listening;
mod log;
mod params;
mod process;
mod render;
#[cfg(test)]
mod render_tests;
mod running;
mod spec;
mod store;
mod usage;

pub use device::Device;
pub use error::{Error, Result};
pub use listening::settle;
pub use log::{Counts, LogFormat, Plain, PlainRequests};
pub use params::Params;
pub use process::End;
pub use running::Running;
pub use spec::{Role, Setting};
pub use usage::Usage;
