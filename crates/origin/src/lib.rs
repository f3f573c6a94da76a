//! The server side: origin servers that answer robots.
//!
//! An [`Origin`] is all servers of one event loop, a [`Site`] one of them. Read one transaction top-down:
//!
//! 1. [`serve`]: a connection is served, request by request.
//! 2. [`request`]: what the request says; [`wanted`] has which object it asks for, [`names`] as whom the server was
//!    addressed, [`upload`] the request's body.
//! 3. [`reply`]: the answer, after the think time; [`fields`] has its head, [`digest`] that of bodies,
//!    [`universe`] what is known of objects that robots asked for.
//! 4. [`account`]: what the transaction counts as.

pub mod account;
pub mod digest;
pub mod fields;
pub mod names;
pub mod origin;
pub mod reply;
pub mod request;
pub mod serve;
#[cfg(test)]
mod serve_tests;
pub mod settings;
#[cfg(test)]
mod testing;
pub mod universe;
pub mod upload;
pub mod wanted;

pub use origin::Origin;
pub use serve::Site;
pub use settings::{Cookies, Farm, House, Redirects, Server};
