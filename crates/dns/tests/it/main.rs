//! Names on the wire: messages, the server, the resolver, and both over real sockets.

#![allow(clippy::disallowed_methods, reason = "peers of the resolver are threads")]

mod exchange;
mod fuzzing;
mod messages;
mod mutate;
mod sockets;
