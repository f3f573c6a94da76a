//! What lies between HTTP messages and a connection of the event loop.
//!
//! Robots and origin servers exchange messages over a [`Channel`]. It is itself a [`polygraph_link::Conn`], so the code
//! that reads and writes messages does not know which layers are below. Each step between a fresh connection and the
//! first message is a function here: [`tls::secure`] adds TLS, [`tunnel::connect`] asks a proxy for a tunnel. Who opens a
//! connection calls them in the order of the layers.
//!
//! HTTP/3 has no connection of the link below it: [`http3`] makes channels of the streams of a QUIC connection.
//!
//! Without the feature `tls`, the types of [`tls`] and [`http3`] exist, but no connection can have TLS.

mod channel;
pub mod http3;
pub mod kdc;
pub mod socks;
pub mod tls;
pub mod tunnel;

pub use channel::Channel;
pub use tunnel::TunnelFailure;
