//! One event loop per core: sockets, timers, pacing, statistics hand-over.
//!
//! [`run`](run::run) is the outline of a test: it starts the loops, follows their counts, decides when phases
//! end, writes the logs and shows records to whoever watches. The loops share nothing on the way of a
//! transaction; they meet the outside only at interval edges.
//!
//! * [`net`]: the [`Link`](polygraph_link::Link) of real sockets.
//! * [`socket`]: one connection.
//! * [`datagram`]: one question and its reply over UDP.
//! * [`timers`]: a clock finer than a millisecond.
//! * [`watch`]: deadlines of connections.
//! * [`poller`]: registration of descriptors with the loop.
//! * [`ports`]: explicit local ports.
//! * [`listen`]: listening sockets, one per loop.
//! * [`timeline`]: which phase it is, known to all loops.
//! * [`worker`]: the life of one loop.
//! * [`ledger`]: merges what the loops hand over and writes the log.
//! * [`signals`]: Ctrl-C and SIGTERM.
//! * [`limits`]: file descriptors and other limits of the host.

pub mod datagram;
pub mod ledger;
pub mod limits;
pub mod listen;
pub mod net;
pub mod poller;
pub mod ports;
pub mod run;
pub mod signals;
pub mod socket;
pub mod timeline;
pub mod timers;
pub mod watch;
pub mod worker;

pub use listen::Listeners;
pub use run::{ClientJob, EngineError, Job, Outcome, ServerJob, StartRule, run};
