//! The server side: origin servers that answer robots.
//!
//! An [`Origin`] contains all servers of one event loop, a [`Server`] is one of them. A transaction, top-down:
//!
//! 1. [`server`] serves a connection, request by request; `multiplexed` serves the streams of HTTP/2 and HTTP/3 connections.
//! 2. [`request`] reads the request head. [`object_lookup`] finds the requested object, [`names`] the name under
//!    which the client addresses the server; [`upload`] reads the request body.
//! 3. [`reply`] decides on the reply after the think time. [`reply_head`] writes the head, [`digest`] computes
//!    digests of bodies, [`known_worlds`] knows the objects that robots have requested.
//! 4. [`record`] records the outcome.

pub mod digest;
pub mod known_worlds;
mod multiplexed;
pub mod names;
pub mod object_lookup;
pub mod origin;
pub mod record;
pub mod reply;
pub mod reply_head;
pub mod request;
pub mod server;
#[cfg(test)]
mod server_tests;
pub mod settings;
#[cfg(test)]
mod testing;
pub mod upload;

pub use origin::Origin;
pub use server::Server;
pub use settings::{Cookies, OriginConfig, Redirects, ServerProfile, ServerSpec};
