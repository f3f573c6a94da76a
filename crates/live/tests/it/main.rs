//! Messages of processes on their way to monitors: as bytes, and through sockets on loopback.

#![allow(clippy::disallowed_methods, reason = "tests have peers on threads")]

mod dispatcher;
mod fuzzing;
mod metrics;
mod mutate;
mod notification;
mod records;
mod stream;
