//! Field sections of HTTP/2 (RFC 7541).
//!
//! * [`static_table`], [`table`]: the fields that can be named by a number.
//! * [`names`]: field names that are looked up at once, and whether their fields repeat.
//! * [`decoder`], [`encoder`]: header blocks to fields, and fields to header blocks.
//!
//! # Decisions
//!
//! * **Fields that repeat are indexed; those with a new value each time are not**, as browsers do it with `:path`: they are "literal
//!   fields without indexing", so they push nothing out of the dynamic table. They are not "never indexed", so devices may treat them
//!   as they like.
//! * **No memory is allocated for a field.** The decoder passes fields on from where they are: the block, a table, or one buffer for
//!   Huffman-coded strings.

pub mod decoder;
pub mod encoder;
pub mod names;
pub mod static_table;
pub mod table;

pub use decoder::{Decoder, HpackError};
pub use encoder::Encoder;

/// The size of the dynamic table with which connections start, in bytes (RFC 9113, section 6.5.2). Neither side uses a larger one.
pub const TABLE_SIZE: usize = 4096;
