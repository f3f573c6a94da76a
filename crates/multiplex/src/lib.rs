//! HTTP over multiplexed connections: many streams on one connection, each of which carries a request and its reply.
//!
//! Robots and origin servers read and write HTTP/1 messages on connections. This crate is for streams that look like
//! connections on which one exchange takes place, so that a transaction is the same code whatever the protocol.
//!
//! * [`message`]: the translation between HTTP/1 messages and field sections with content, without I/O. It is the same for
//!   HTTP/2 and HTTP/3.

pub mod message;

pub use message::ReplyTo;
