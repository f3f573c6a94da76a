//! Tests of the language front end.

#![allow(clippy::disallowed_methods, reason = "a test bounds the time of the evaluator")]

mod docs;
mod formatting;
mod fuzzing;
mod generated;
mod limits;
mod messages;
mod mutate;
mod programs;
mod scripts;
mod server;
mod vectors;

use polygraph_pgl::render::Style;
use polygraph_pgl::{Compilation, MemoryLoader, Options, compile};

/// Compiles a program that needs no other files.
fn compile_text(text: &str) -> Compilation {
    let loader = MemoryLoader::default().with("test.pg", text);
    compile("test.pg", &loader, &Options::default())
}

/// The findings of a compilation as text.
fn findings(compilation: &Compilation) -> String {
    compilation.render(Style::Plain)
}
