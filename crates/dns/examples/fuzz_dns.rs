//! Runs the message code on mutated messages, many times: `cargo run --release --example fuzz_dns -- 1000000 [seed]`.

use std::process::ExitCode;

use polygraph_testing::fuzz::at_length;

#[path = "../tests/it/mutate.rs"]
mod mutate;

fn main() -> ExitCode {
    let (subject, corpus) = (mutate::Subject::new(), mutate::corpus());
    at_length(
        "dns",
        "with addresses",
        |random| mutate::mutate(&corpus, random),
        |message| subject.run(message),
    )
}
