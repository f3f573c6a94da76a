//! The server side: origin servers that answer robots.
//!
//! A [`Site`] is the origin server as one event loop sees it. Read one transaction top-down:
//!
//! 1. [`serve`]: a connection is served, request by request.
//! 2. [`request`]: what the request asks for.
//! 3. [`reply`]: the head and body of the answer, after the think time.

pub mod reply;
pub mod request;
pub mod serve;
pub mod settings;

pub use serve::{Origin, Site};
pub use settings::{Cookies, Farm, House, Redirects, Server};
