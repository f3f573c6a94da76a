//! Checks of the network of a bench: throughput, echo times, names, clocks, and how long a device stays in TIME_WAIT.
//!
//! | module | contents |
//! |---|---|
//! | [`time_wait`] | the state TIME_WAIT of a device, measured from outside with packets of its own |
//! | [`ping`] | echo times between many addresses |
//! | [`throughput`] | how much streams of TCP carry between hosts, in both directions |
//! | [`names`] | whether a name server answers, with which addresses, and how fast |
//! | [`clock`] | the offset between the clocks of two hosts |
//! | [`packet`] | TCP segments and ICMP echoes as bytes; does no I/O and accepts any bytes |
//! | `error` | what keeps a check from measuring |
//!
//! Checks measure and return figures. They change nothing on this host; what they need, they take as sockets, which end
//! with the process.

#![allow(
    clippy::disallowed_methods,
    reason = "checks measure real time, wait, and use threads for streams in both directions"
)]

pub mod clock;
pub mod error;
pub mod names;
pub mod packet;
pub mod ping;
pub mod throughput;
pub mod time_wait;

pub use error::{CheckResult, Error};
