//! Delay, loss and limited bandwidth on the way of packets: what the pipes of dummynet were for in the reference.
//!
//! An [`Emulation`] says for which packets, a [`Pipe`] what happens to them in one direction. Two back ends carry it out:
//!
//! * the kernel, where it has netem: [`netem`] writes the commands, [`netem_host`] runs them;
//! * a process of ours, everywhere else: the firewall sends packets into queues ([`firewall`]), the process reads them
//!   ([`nfqueue`]), draws their fate ([`model`]), and lets them go when they are due ([`emulator`]).
//!
//! [`backend`] chooses, sets up and removes; [`active`] finds what is set up and asks for its [`status`]. All changes to
//! the host are recorded (`polygraph-netsetup`), so that nothing is left behind by a crash.
//!
//! # Decisions
//!
//! * **Packets that go out are copied** ([`emulator`]): TCP counts what the kernel holds against the socket, and would
//!   send no more than two segments in each delay.
//! * **Packets in order by default**: a packet that draws a shorter delay waits for those before it, as on a real path.
//! * **A process that dies delays nothing**: rules let packets pass that nobody reads, and the kernel drops what it held.

#![allow(
    clippy::disallowed_methods,
    reason = "packets are held in real time, by a process of its own, with a thread that waits for its end"
)]

pub mod active;
pub mod backend;
pub mod delay_line;
pub mod emulation;
pub mod emulator;
pub mod error;
pub mod firewall;
mod means;
pub mod model;
pub mod netem;
pub mod netem_host;
pub mod nfqueue;
pub mod pipe;
pub mod raw_sender;
pub mod status;
pub mod user_space;

pub use active::{ActiveEmulation, StatusAnswer};
pub use backend::{Backend, StartOptions, Started, planned_steps, start, stop_all};
pub use emulation::{Direction, Emulation};
pub use error::WanError;
pub use means::Means;
pub use pipe::{NamedPipe, Pipe, QueueLimit};
pub use status::{HoldExcess, PipeStatus, Status};
