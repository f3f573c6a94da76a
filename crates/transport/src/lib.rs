//! What lies between HTTP messages and a connection of the event loop.
//!
//! Robots and origin servers exchange messages over a [`Channel`]. It is itself a [`polygraph_link::Conn`], so the code
//! that reads and writes messages does not know which layers are below.

mod channel;
pub mod socks;

pub use channel::Channel;
