//! Runs both sides of HTTP/2 on mutated sessions, many times: `cargo run --release --example fuzz_multiplex -- 1000000 [seed]`.

use std::process::ExitCode;

use polygraph_testing::fuzz::at_length;

#[path = "../tests/fuzz/mod.rs"]
mod fuzz;

fn main() -> ExitCode {
    let corpus = fuzz::corpus();
    at_length("multiplex", "with messages", |random| fuzz::mutated(&corpus, random), fuzz::run)
}
