//! The proxy between a hand-written origin and a hand-written client, in virtual time.

mod caching;
mod faults;
mod frontend;
mod limits;
mod relaying;
mod support;
