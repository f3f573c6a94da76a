//! The client side: robots, their connections and transactions, hit detection.
//!
//! A [`Crew`] is the robots of one event loop. Read one transaction top-down:
//!
//! 1. [`crew`]: a request is due (open loop) or a robot is free (closed loop); it is launched.
//! 2. [`order`]: which object it asks for, under which transaction id.
//! 3. [`exchange`]: a connection is taken, the request sent, the reply read.
//! 4. [`reply`]: what the reply says.
//! 5. [`account`]: was it a hit? how long did it take? what went wrong?

pub mod account;
pub mod crew;
pub mod exchange;
pub mod order;
pub mod pace;
pub mod reply;
pub mod settings;

pub use crew::Crew;
pub use pace::{Pace, Ramp};
pub use settings::{Load, Origin, Settings};
