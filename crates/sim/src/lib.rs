//! A world without time of its own: an event loop with a virtual clock, connections in memory, and models of devices.
//!
//! Robots and origins run here as they do on real sockets, for both know the world as a
//! [`Link`](polygraph_link::Link) only. When all tasks wait, the clock goes on to the next moment that one waits for,
//! so hours of a test take as long as its transactions take to compute. Nothing depends on the machine: the same
//! tasks do the same things in the same order, always.
//!
//! * [`link`]: the loop and its network.
//! * [`conn`]: one connection.
//! * [`device`]: models of caching proxies with several replacement policies.
//! * `tasks`, `timers`: who runs, and who waits for what moment.
//!
//! # Decisions
//!
//! * **One virtual loop**: a queue of tasks that can continue, a heap of moments, and connections that are two bounded queues. Only the order of events matters, so
//!   runs are identical byte for byte.
//! * **The simulated device is the built-in proxy itself.** Contents that the catalog can make again are not stored.

pub mod conn;
pub mod device;
pub mod link;
mod network;
mod tasks;
#[cfg(test)]
mod tests;
mod timers;

pub use conn::VirtualConn;
pub use link::VirtualLink;
