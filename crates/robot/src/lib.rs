//! The client side: robots, their connections and transactions, hit detection.
//!
//! A [`Crew`] is the robots of one event loop. Read one transaction top-down:
//!
//! 1. [`crew`]: a request is due (open loop) or a robot is free (closed loop); it is launched.
//! 2. [`order`]: which object, or which foreign URL ([`trace`]), it asks for, how, under which transaction id.
//! 3. [`exchange`]: an address is found ([`names`]), a connection taken ([`pool`]), the request sent ([`request`]), the reply read.
//! 4. [`reply`] and [`entity`]: what the reply says, and whether its content is what it has to be; [`links`] are
//!    followed at once.
//! 5. [`account`]: was it a hit? how long did it take? what went wrong? `freshness` judges copies, [`history`] knows why a hit
//!    was none.
//!
//! [`peers`] and [`rounds`] keep the robots in step with other processes of the test.

pub mod account;
pub mod auth;
mod comparison;
pub mod cookies;
pub mod crew;
pub mod entity;
pub mod exchange;
pub mod finding;
mod freshness;
pub mod gaps;
pub mod gate;
pub mod history;
pub mod links;
pub mod names;
pub mod order;
pub mod pace;
pub mod page;
pub mod peers;
pub mod pipeline;
pub mod pool;
mod ranks;
pub mod reply;
pub mod request;
pub mod rounds;
pub mod session;
pub mod settings;
pub mod trace;

#[cfg(test)]
mod account_tests;
#[cfg(test)]
mod content_tests;
#[cfg(test)]
mod crew_tests;
#[cfg(test)]
mod edge_tests;
#[cfg(test)]
mod exchange_tests;
#[cfg(test)]
mod rules_tests;
#[cfg(test)]
mod step_tests;
#[cfg(test)]
mod testing;

pub use crew::Crew;
pub use pace::{Pace, Ramp};
pub use settings::{Field, Load, Profile, Rules, Server, Settings, Tolerance, Verify};
