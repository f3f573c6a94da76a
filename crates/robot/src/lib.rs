//! The client side: simulated user agents (robots), their connections and transactions, hit detection.
//!
//! A [`RobotGroup`] is the robots of one event loop. To follow one transaction, read [`transaction`] from the top:
//!
//! 1. [`load`] decides when a robot sends its next request, and [`request`] decides which object it requests, and how.
//! 2. [`transaction`] runs the exchanges of the request, with credentials if a reply demands them. Each [`exchange`] uses one of
//!    the [`connections`].
//! 3. [`judge`] compares the reply with what the robot knows and gives a verdict.
//! 4. [`record`] counts the outcome.
//! 5. [`transaction`] starts what follows from the reply: embedded objects and redirects.
//!
//! [`peers`] keeps the robots in step with the other processes of the test.
//!
//! # Decisions
//!
//! * **Requests do not depend on replies.** What is requested follows from seeds and due times; so do the launches that embedded objects replace, from the
//!   moment on at which these can be expected. Without that, the same seed would not make the same requests.
//! * **Requests that fill no cache ask for known objects** (unless the rules are those of 4.9): a client validates what it has, and the first request for an object must
//!   be one whose reply a cache keeps, or the offered hit ratio would promise what no device can deliver.
//! * **Workers** carry out transactions one after the other instead of ending, because spawning a task costs more than most steps of a transaction.
//! * **Popularity by rank needs no table of objects**: requests are counted by their number among those for their object, and these counts add up.

pub mod connections;
pub mod context;
pub mod divide;
pub mod exchange;
pub mod failure;
pub mod group;
pub mod judge;
pub mod load;
pub mod peers;
pub mod record;
pub mod request;
pub mod robot;
pub mod settings;
pub mod share;
pub mod transaction;
pub mod violation;

#[cfg(test)]
mod content_tests;
#[cfg(test)]
mod exchange_tests;
#[cfg(test)]
mod group_tests;
#[cfg(test)]
mod object_choice_tests;
#[cfg(test)]
mod phase_edge_tests;
#[cfg(test)]
mod phase_sync_tests;
#[cfg(test)]
mod record_tests;
#[cfg(test)]
mod testing;

pub use group::RobotGroup;
pub use load::pace::{Pace, Ramp};
pub use settings::{Field, Load, Profile, Rules, Server, Settings, ToldFreshness, Tolerance, Verify};
pub use share::RobotShare;
