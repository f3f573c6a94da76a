//! One event loop per core: sockets, timers, pacing, and the delivery of statistics.
//!
//! The [`phase_controller`] decides when the phases of a test start and end. The [`coordinator`] drives it: it starts the
//! loops, passes their counters to the phase controller, writes the logs and passes all records to an observer. Loops
//! share nothing during a transaction. They exchange data with the coordinator at interval edges only, so it makes no
//! difference whether they are threads or run in other processes. The parts that need neither sockets nor threads also
//! work in a simulation: the phase controller, loop drivers, aggregators.
//!
//! From the outside to the inside:
//!
//! * [`run`](mod@run), [`setup`], [`outcome`]: start and follow a run; what it consists of; how it ended.
//! * [`coordinator`], [`simulation`]: the drivers of a test on real loops and in virtual time.
//! * [`phase_controller`], [`timeline`]: decisions about phases, and where loops read them.
//! * [`aggregator`], [`side_aggregator`], [`transaction_samples`]: merge what loops deliver, and write the logs.
//! * [`side`]: the loops of one side, and the state of its log.
//! * [`layout`], [`loop_spec`], [`loop_starter`]: which process runs which loop, and what each loop runs.
//! * [`channels`]: the messages between loops and the coordinator.
//! * [`relay`], [`process`], [`protocol`]: worker processes, as the coordinator sees them and from inside.
//! * [`worker`], [`loop_driver`]: a loop on real sockets, and what every loop does besides its traffic.
//! * [`live_counters`]: counters that the coordinator reads while a loop runs.
//! * [`pacing`]: converts the factors of a phase to the pace of robots.
//! * [`net`], [`loop_state`], [`socket`], [`datagram`], [`udp`], [`listen`], [`ports`], [`poller`]: the
//!   [`Link`](polygraph_link::Link) over real sockets.
//! * [`proxy`]: the built-in proxy on sockets.
//! * [`timers`], [`deadlines`]: timers finer than a millisecond, and deadlines of connections.
//! * [`preflight`]: a request to a server and back before a test.
//! * [`host`], [`limits`], [`signals`]: clocks, memory, file descriptors, signals and panics.
//!
//! # Decisions
//!
//! * **One `current_thread` runtime per loop.** Loops share nothing during a transaction: no locks, no channel send, one `SO_REUSEPORT` listener each.
//! * **Timers of our own** ([`timers`]): a heap and a timerfd with a quantum of 100 µs, because the runtime's millisecond would quantize starts.
//! * **Lazy registration** ([`socket`]): a request does not wait for its connect, and an accepted connection is read at once, because the kernel
//!   delivers it with its first bytes ([`listen`]). Only sockets that must wait are registered with the poller.
//! * **Deadlines** ([`deadlines`]) are numbers in a table that is compared with the clock ten times a second, so setting one costs nothing.
//! * **Phases end at published times** ([`timeline`]): the phase controller writes the end of a phase a tenth of a second ahead, and every loop
//!   switches by its own clock. Intervals never cross phase boundaries, so phases are folds of intervals.
//! * **The phase controller has no clock.** It receives counts and times, decides, and returns what is to be logged, so tests and
//!   simulations drive it without threads.
//! * **Processes of a machine share the monotonic clock**, so decisions about times are passed to worker processes unchanged.
//! * **A phase whose load is controlled has no planned load**, so the verdict cannot find that the bench missed it.

#![allow(clippy::disallowed_methods, reason = "the engine owns clocks, threads and worker processes")]

pub mod aggregator;
pub mod channels;
pub mod control_group;
pub mod coordinator;
pub mod datagram;
pub mod deadlines;
pub mod event_loop;
pub mod host;
pub mod kernel_counters;
pub mod layout;
pub mod limits;
pub mod listen;
mod listen_queue;
pub mod live_counters;
pub mod loop_driver;
pub mod loop_spec;
pub mod loop_starter;
pub mod loop_state;
pub mod net;
pub mod outcome;
pub mod pacing;
pub mod phase_controller;
pub mod polled_socket;
pub mod poller;
pub mod ports;
pub mod preflight;
pub mod process;
pub mod protocol;
pub mod proxy;
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
pub mod udp;
pub mod worker;

pub use event_loop::{Engine, EngineChoice};
pub use layout::{DescriptorNeed, Layout, lay_out};
pub use listen::ReservedAddress;
pub use outcome::{EngineError, RunOutcome};
pub use polygraph_uring::refusal as uring_refusal;
pub use run::{RunningTest, run, start};
pub use setup::{ClientSetup, RunSetup, ServerSetup, StartRule};
