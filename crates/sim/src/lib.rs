//! Simulation in virtual time: an event loop with a virtual clock, connections in memory, and models of devices.
//!
//! Robots and origins run here as on real sockets, because both use only a [`Link`](polygraph_link::Link). When all
//! tasks wait, the clock advances to the next time for which a task waits, so hours of a test take only the time to
//! compute its transactions. The machine has no influence: the same tasks always perform the same actions in the same
//! order.
//!
//! * [`link`]: the loop and its network.
//! * [`conn`]: one connection.
//! * [`device`]: models of caching proxies with several replacement policies.
//! * `pieces`: what is on its way on a connection.
//! * `tasks`, `timers`: tasks that are ready, and alarms of waiting tasks.
//!
//! # Decisions
//!
//! * **One virtual loop**: a queue of ready tasks, a heap of alarms, and connections of two bounded queues. Only the order of
//!   events matters, so runs are identical byte for byte.
//! * **The simulated device is the built-in proxy itself.** Contents that the catalog can generate again are not
//!   stored.

pub mod conn;
mod datagrams;
pub mod device;
pub mod link;
mod network;
mod pieces;
mod tasks;
#[cfg(test)]
mod tests;
mod timers;

pub use conn::VirtualConn;
pub use datagrams::VirtualDatagrams;
pub use link::VirtualLink;
