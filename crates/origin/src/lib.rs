//! The server side: origin servers that answer robots.
//!
//! An [`Origin`] is all servers of one event loop, a [`Server`] one of them. Read one transaction top-down:
//!
//! 1. [`server`]: a connection is served, request by request.
//! 2. [`request`]: what the request says; [`object_lookup`] has which object it asks for, [`names`] as whom the server was
//!    addressed, [`upload`] the request's body.
//! 3. [`reply`]: the answer, after the think time; [`reply_head`] has its head, [`digest`] that of bodies,
//!    [`known_worlds`] what is known of objects that robots asked for.
//! 4. [`record`]: what the transaction counts as.

pub mod digest;
pub mod known_worlds;
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
