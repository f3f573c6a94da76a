//! An event loop of one thread on io_uring (io_uring(7)): streams, datagrams, accepting, readiness, tasks.
//!
//! A [`Ring`] collects what its streams want (receives, sends, closes) and passes it to the kernel in one system call
//! together with the wait for completions, [`Ring::turn`]. [`Tasks`] are the futures of the thread that these completions wake.
//! [`run()`] alternates between the two.
//!
//! * [`run`](mod@run): the loop, and how many completions a wait gathers.
//! * [`ring`]: submission and completions.
//! * [`stream`], [`datagrams`], [`accept`], [`readiness`]: the operations and their states.
//! * [`message`]: datagrams as the kernel sees them.
//! * [`buffers`]: the memory that the kernel receives into and sends from.
//! * [`tasks`]: the tasks of one thread.
//! * [`support`]: whether this host allows io_uring, and if not, why.
//!
//! # Decisions
//!
//! * **Multishot receives into provided buffers.** A connection is armed once; the kernel chooses a buffer of the loop when
//!   bytes arrive, so idle connections hold no memory. The first receive of a connection is a single one, because a connection for
//!   one request would otherwise have to cancel.
//! * **Nothing is lost and nobody starves.** Bytes for which no task waits are copied out of the buffers of the loop at once. A
//!   connection whose bytes nobody takes stops receiving, so that TCP slows its peer down.
//! * **Small sends are copied and batched**, and the kernel carries them out, in order, before a turn waits. They must not block: what the
//!   socket does not take is kept and sent when it has room. Large sends are separate system calls, which costs less than copying.
//! * **Datagrams are received as bytes are, and sent as small messages are.** A datagram that needs an address at most is copied and
//!   queued; the others are sent by separate system calls, after those that are queued.
//! * **Completions come when asked for** (`IORING_SETUP_DEFER_TASKRUN`), so the kernel never interrupts the loop.

#![allow(clippy::disallowed_methods, reason = "event loops own their threads")]

pub mod accept;
pub mod buffers;
pub mod datagrams;
#[cfg(test)]
mod datagrams_tests;
pub mod message;
pub mod readiness;
pub mod ring;
pub mod run;
mod states;
pub mod stream;
#[cfg(test)]
mod stream_tests;
pub mod support;
pub mod tasks;

pub use accept::Acceptor;
pub use datagrams::RingDatagrams;
pub use message::Received;
pub use readiness::Readiness;
pub use ring::{Gather, Ring, Wait};
pub use run::{Clock, run};
pub use stream::{RingStream, Unread};
pub use support::{Unavailable, refusal};
pub use tasks::Tasks;
