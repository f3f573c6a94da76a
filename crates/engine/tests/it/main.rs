//! Tests that run robots, servers and, between them, a proxy in one process. Those on sockets run on both engines.

#![allow(clippy::disallowed_methods, reason = "hand-written peers are threads")]
#![allow(clippy::duplicate_mod, reason = "each engine runs the same tests")]

mod epoll;
mod scripts;
mod simulated;
mod support;
mod uring;
