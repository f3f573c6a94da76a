//! Syntax: from text to tree.

mod layout;
pub mod lexer;
mod literal;
mod parser;
pub mod preprocess;
mod quoted;
mod remedy;
pub mod token;
pub mod tree;

pub use parser::{MAX_NESTING, parse, parse_expr};

/// True for words that are units or truth values when they stand alone, and so cannot be variables.
pub fn is_constant(word: &str) -> bool {
    let nowhere = crate::source::Span { file: crate::source::FileId(0), start: 0, end: 0 };
    literal::constant(word, nowhere).is_some()
}

pub use literal::{BARE, SIZE_UNITS, TIME_UNITS, bare_unit, unit_alias};
