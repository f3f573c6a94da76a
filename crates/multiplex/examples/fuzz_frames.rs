//! Runs the state of HTTP/2 connections on mutated frames, many times: `cargo run --release --example fuzz_frames -- 10000000 [seed]`.

use std::process::ExitCode;

use polygraph_testing::fuzz::at_length;

#[path = "../tests/frames/mod.rs"]
mod frames;

fn main() -> ExitCode {
    let corpus = frames::corpus();
    at_length("frames", "with messages", |random| frames::mutated(&corpus, random), frames::run)
}
