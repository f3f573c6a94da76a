//! The devices of the set as they come with Debian's packages, between a client and origins of the tests' own.

mod bench;
mod life;
mod logs;
mod set;
