//! From text to tree.

pub mod lexer;
mod literal;
mod parser;
pub mod preprocess;
mod quoted;
pub mod token;
pub mod tree;

pub use parser::{MAX_NESTING, parse, parse_expr};

/// True for words that are units or truth values when they stand alone, and so cannot be variables.
pub fn is_constant(word: &str) -> bool {
    let nowhere = crate::source::Span { file: crate::source::FileId(0), start: 0, end: 0 };
    literal::constant(word, nowhere).is_some()
}

pub use literal::{SIZE_UNITS, TIME_UNITS, unit_alias};
