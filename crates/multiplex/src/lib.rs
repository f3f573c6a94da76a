//! HTTP over multiplexed connections: many streams on one connection, each of which carries a request and its reply.
//!
//! Robots and origin servers read and write HTTP/1 messages on connections. This crate gives them streams that look like
//! connections on which one exchange takes place, so that a transaction is the same code whatever the protocol.
//!
//! * [`message`]: the translation between HTTP/1 messages and field sections with content, without I/O. It is the same for
//!   HTTP/2 and HTTP/3.
//! * [`http2`]: frames, field sections and the state of an HTTP/2 connection, without I/O.
//! * [`client`], [`server`]: the two sides of an HTTP/2 connection.
//! * [`stream`]: a stream as a [`Conn`](polygraph_link::Conn).
//! * [`fault`]: why streams and connections end early.
//! * [`rapid_reset`]: how many requests a client may give up before they are read.
//! * [`literals`], [`name_index`]: integers, strings and the Huffman code, and the search for names, which HPACK and QPACK share.
//! * [`settings`], [`traffic`]: what the sides announce, and the bytes that they count.
//! * `session`, `driver`, `relay`, `below`, `buffers`, [`alarm`], [`deadlines`]: what is between a stream and its connection.
//!
//! # Decisions
//!
//! * **A task drives each connection.** Streams only queue their frames; all frames of a turn leave in one system call. A client's stream
//!   that is alone on its connection sends and receives itself: an exchange then costs one turn of the robot's task, as with HTTP/1,
//!   instead of three turns of two tasks.
//! * **No header maps.** The head of an HTTP/1 message becomes a header block in the buffer of what is to be sent, and a header block
//!   that arrives becomes a head in the buffer that its stream reads. A byte of content is copied once.
//! * **Robots need not write and read text.** The usual request passes its fields on to the encoder one by one ([`message::request`]), and
//!   the head of a reply has an index of its fields, so that nobody looks for them again. Everything else has the form of HTTP/1.
//! * **Windows are given back when content is read**, so a slow reader slows down its own stream only, until the window of the
//!   connection is used up. WINDOW_UPDATE is sent for half a window at a time.
//! * **What cannot be sent is not answered.** As long as more than 64 KB wait to be sent, nothing is read, so that a peer cannot make
//!   this side collect replies to PING and SETTINGS.
//! * **Floods end the connection** with ENHANCE_YOUR_CALM: header blocks without end, and too many requests that are reset before they
//!   are read, by the same rule as over HTTP/3 ([`rapid_reset`]). A field section that is too large ends its stream; servers answer it with 431.
//! * **No push**: clients forbid it (RFC 9113, section 8.4), and servers do not offer it. Priorities are ignored.

pub mod alarm;
mod below;
mod buffers;
pub mod client;
pub mod deadlines;
mod driver;
pub mod fault;
pub mod http2;
pub mod literals;
pub mod message;
pub mod name_index;
pub mod rapid_reset;
mod relay;
pub mod server;
mod session;
pub mod settings;
pub mod stream;
pub mod traffic;

pub use client::{ClientConnection, ClientEnd};
pub use fault::{Fault, FaultKind};
pub use message::ReplyTo;
pub use server::{NO_PREFACE, ServerEnd, ServerPolicy, may_be_http2, serve};
pub use settings::Http2Settings;
pub use stream::Stream;
pub use traffic::WireBytes;
