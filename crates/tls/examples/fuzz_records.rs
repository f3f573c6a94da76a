//! Feeds mutated flights of TLS to both sides, many times:
//! `cargo run --release -p polygraph-tls --features rustls --example fuzz_records -- 1000000 [seed]`.

use std::process::ExitCode;

use polygraph_testing::fuzz::at_length;

#[path = "../tests/records/seeds.rs"]
mod seeds;
#[path = "../tests/records/targets.rs"]
mod targets;

fn main() -> ExitCode {
    let corpus = seeds::seeds();
    let run = |flight: &[u8]| {
        targets::records(flight);
        true
    };
    at_length("records", "were read", |random| seeds::mutated(&corpus, random), run)
}
