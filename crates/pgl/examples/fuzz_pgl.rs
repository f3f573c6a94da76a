//! Runs the front end on mutated programs, many times: `cargo run --release --example fuzz_pgl -- 1000000 [seed]`.

use std::process::ExitCode;

use polygraph_testing::fuzz::at_length;

#[path = "../tests/it/mutate.rs"]
mod mutate;

fn main() -> ExitCode {
    let corpus = mutate::corpus();
    at_length("pgl", "with the right syntax", |random| mutate::mutate(&corpus, random), mutate::run)
}
