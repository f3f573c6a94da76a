//! The devices of the set as they come with Debian's packages, between a client and origins of the tests' own.

#![allow(clippy::disallowed_methods, reason = "tests start devices and wait for them")]

mod bench;
mod life;
mod logs;
mod set;
