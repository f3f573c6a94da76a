//! The checks: packets and conversations without a network, and exchanges over loopback addresses.

#![allow(clippy::disallowed_methods, reason = "tests start the other side of a check")]

mod conversation;
mod exchanges;
mod fuzzing;
mod mutate;
