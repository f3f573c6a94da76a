//! One event loop per core: sockets, timers, pacing, statistics hand-over.
//!
//! The [`controller`] is the outline of a test: it decides when phases begin and end. The [`coordinator`] drives it: it
//! starts the loops, shows their counts to the controller, writes the logs and shows records to whoever watches. The
//! loops share nothing on the way of a transaction; they meet the outside only at interval edges, so it makes no
//! difference whether they are threads or live in other processes. What needs neither sockets nor threads works in
//! a simulation as well: the controller, keepers of loops, aggregator.
//!
//! * [`run`](mod@run): tests, started and followed from outside.
//! * [`net`]: the [`Link`](polygraph_link::Link) of real sockets.
//! * [`socket`]: one connection.
//! * [`datagram`]: one question and its reply over UDP.
//! * [`timers`]: a clock finer than a millisecond.
//! * [`watch`]: deadlines of connections.
//! * [`poller`]: registration of descriptors with the loop.
//! * [`ports`]: explicit local ports.
//! * [`listen`]: listening sockets.
//! * [`preflight`]: a request there and back before a test begins.
//! * [`layout`], [`roles`]: in which process loops live, and what each of them does.
//! * [`side`]: the loops and aggregator of one side.
//! * [`relay`], [`process`], [`protocol`]: worker processes, seen from the coordinator and from inside.
//! * [`live`]: what was counted so far, known to the coordinator.
//! * [`pacing`]: what the factors of a phase mean for robots.
//! * [`timeline`]: which phase it is, known to all loops.
//! * [`worker`]: the life of one loop.
//! * [`driver`]: what a loop does beside its traffic.
//! * [`aggregator`], [`aggregator`]: merge what the loops hand over and write the logs.
//! * [`simulation`]: the driver of a test in virtual time.
//! * [`host`]: time of day, processor time and memory of a real or virtual machine.
//! * [`sampling`]: samples of single transactions.
//! * [`signals`]: Ctrl-C, SIGTERM and panics.
//! * [`limits`]: file descriptors and other limits of the host.

#![allow(clippy::disallowed_methods, reason = "the engine owns clocks, threads and worker processes")]

pub mod aggregator;
pub mod coordinator;
pub mod datagram;
pub mod deadlines;
pub mod host;
pub mod layout;
pub mod limits;
pub mod listen;
pub mod live_counters;
pub mod loop_driver;
pub mod loop_spec;
pub mod loop_state;
pub mod net;
pub mod outcome;
pub mod pacing;
pub mod phase_controller;
pub mod poller;
pub mod ports;
pub mod preflight;
pub mod process;
pub mod protocol;
pub mod relay;
pub mod run;
pub mod setup;
pub mod side;
pub mod side_aggregator;
pub mod signals;
pub mod simulation;
pub mod socket;
pub mod timeline;
pub mod timers;
pub mod transaction_samples;
pub mod worker;

pub use layout::{DescriptorNeed, Layout, lay_out};
pub use listen::ReservedAddress;
pub use outcome::{EngineError, RunOutcome};
pub use run::{RunningTest, run, start};
pub use setup::{ClientSetup, RunSetup, ServerSetup, StartRule};
