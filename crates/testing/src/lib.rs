//! What tests of several crates share. No program contains it.
//!
//! - [`mutation`]: bytes that resemble valid messages, for parsers of foreign bytes.
//! - [`fuzz`]: the main function of programs that run a parser on such bytes for a long time, without coverage; the targets with
//!   coverage are in `fuzz/`.
//! - [`memory`]: an allocator that counts, for tests of what a transaction allocates and what a long log needs.

pub mod fuzz;
pub mod memory;
pub mod mutation;
