//! HTTP/3 (RFC 9114) over QUIC (RFC 9000), over the datagrams of the event loop.
//!
//! The library quinn-proto is QUIC without sockets and clocks; this crate connects it with [`polygraph_link`], and speaks HTTP/3 on
//! its streams. Robots and servers get streams that look like connections on which one exchange takes place, as with HTTP/2.
//!
//! * [`client`], [`server`]: the two sides of a connection.
//! * [`stream`]: a stream as a [`Conn`](polygraph_link::Conn).
//! * [`http3`]: frames and field sections, without I/O.
//! * [`lost`]: why connections end.
//! * `session`: what the streams of a connection share, and its control streams.
//! * `driver`, `wire`: a UDP socket and its connections.
//! * `handshakes`: how many handshakes a server has under way, and for how long.
//! * `config`, `clock`: settings and time of QUIC.
//!
//! # Decisions
//!
//! * **A client's connection has its own socket**, as in browsers. Servers on several event loops share an address, and the kernel
//!   chooses the loop by the addresses and ports of both sides: connections of one socket would all reach the same loop.
//! * **No dynamic table of QPACK**: neither side announces one, so no stream waits for another. Field sections are larger than those of
//!   browsers for it.
//! * **Robots need not write and read text**, as with HTTP/2: the usual request passes its fields on to the encoder, and the head of a reply
//!   has an index of its fields. A frame that arrives in one piece is read where it is.
//! * **Those who waited act before anything is sent.** What has arrived wakes streams; the task of the socket sends when they have had
//!   their turn, so that requests and replies leave together with acknowledgements, and a connection acts once instead of twice.
//! * **No connection migration**: a benchmark's addresses do not change, and its packets must not move to another event loop.
//! * **No push**: clients do not allow it, and servers do not offer it.
//! * **A client leaves without waiting.** It sends the end of the connection and closes its socket, which answers late packets (RFC 9000,
//!   section 10.2).

pub mod client;
mod clock;
mod config;
mod driver;
mod handshakes;
pub mod http3;
pub mod lost;
pub mod server;
mod session;
pub mod stream;
#[cfg(test)]
mod tests;
mod wire;

pub use client::ClientConnection;
pub use lost::Lost;
pub use server::{ServerConnection, listen, listen_with};
pub use session::PathCounts;
pub use stream::Http3Stream;
