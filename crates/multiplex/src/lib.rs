//! HTTP over multiplexed connections: many streams on one connection, each of which carries a request and its reply.
//!
//! Robots and origin servers read and write HTTP/1 messages on connections. This crate gives them streams that look like
//! connections on which one exchange takes place, so that a transaction is the same code whatever the protocol.
//!
//! * [`message`]: the translation between HTTP/1 messages and field sections with content, without I/O. It is the same for
//!   HTTP/2 and HTTP/3.
//! * [`literals`]: integers, strings and the Huffman code, which HPACK and QPACK share.
//! * [`client`], [`server`]: the two sides of an HTTP/2 connection, with the crate `h2` for frames, HPACK and flow control.
//! * [`stream`]: a stream as a [`Conn`](polygraph_link::Conn).
//! * [`fault`]: why streams and connections end early.
//! * [`settings`]: what the sides announce.
//! * `transport`, `driver`, `alarm`, `deadlines`, `convert`: what is between a stream and its connection.
//!
//! # Decisions
//!
//! * **A task drives each connection.** Streams only queue their frames; all frames of a turn leave in one system call.
//! * **Windows are given back when content is read**, so a slow reader slows down its own stream only, until the window of the
//!   connection is used up.
//! * **No push**: clients forbid it (RFC 9113, section 8.4), and servers do not offer it.

pub mod alarm;
pub mod client;
mod convert;
pub mod deadlines;
mod driver;
pub mod fault;
pub mod literals;
pub mod message;
pub mod server;
pub mod settings;
pub mod stream;
mod transport;

pub use client::{ClientConnection, ClientEnd};
pub use fault::{Fault, FaultKind};
pub use message::ReplyTo;
pub use server::{NO_PREFACE, ServerEnd, ServerPolicy, may_be_http2, serve};
pub use settings::Http2Settings;
pub use stream::Stream;
pub use transport::WireBytes;
