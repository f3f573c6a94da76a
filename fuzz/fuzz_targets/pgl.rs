//! The language front end on any bytes: `cargo +nightly fuzz run pgl`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/pgl/tests/it/mutate.rs"]
#[expect(dead_code, reason = "the fuzzer has mutations of its own")]
mod mutate;

fuzz_target!(|data: &[u8]| {
    mutate::run(data);
});
