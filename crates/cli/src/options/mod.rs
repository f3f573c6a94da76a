//! The options of commands, and what they become: plain values of the crates that do the work.
//!
//! A group of options is a struct that commands flatten. Options that describe what a workload file describes too say
//! `conflicts_with = "config"` themselves, so commands need no lists of them.

pub mod bench;
pub mod common;
pub mod console;
pub mod criteria;
pub mod device;
pub mod dump;
pub mod expect;
pub mod files;
pub mod fleet;
pub mod live;
pub mod make_test;
pub mod path;
pub mod robots;
pub mod servers;
pub mod service;
pub mod tls;
pub mod values;
pub mod working_set;
pub mod workload;

pub use self::bench::BenchOptions;
pub use self::common::CommonOptions;
pub use self::console::ConsoleOptions;
pub use self::device::DeviceOptions;
pub use self::expect::ExpectOptions;
pub use self::fleet::{FleetOptions, NatsOptions};
pub use self::live::LiveOptions;
pub use self::path::{DevicePath, PathOptions};
pub use self::robots::{
    AddressOptions, PreflightOptions, RobotOptions, RobotToleranceOptions, ShareOptions, SyncOptions,
};
pub use self::servers::{ReplyOptions, ToleranceOptions};
pub use self::tls::DeviceTlsOptions;
pub use self::values::Optional;
pub use self::working_set::WorkingSetOptions;
pub use self::workload::{ConfigOptions, SourceOptions, VariantOptions};
