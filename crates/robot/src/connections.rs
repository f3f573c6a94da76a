//! Connections of robots: the pool of each robot, transactions that wait for a slot in it, and the addresses behind names.

pub mod alternatives;
pub mod counts;
pub mod hop;
pub mod layers;
pub mod multiplexed;
mod pending;
pub mod pool;
pub mod resolving;
mod socks;
pub mod tickets;
pub mod tunnels;
pub mod wait_queue;
