//! HTTP/2 sessions, as servers and as clients take them, and messages to translate: `cargo +nightly fuzz run multiplex`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/multiplex/tests/fuzz/mod.rs"]
#[expect(dead_code, reason = "the fuzzer has mutations of its own")]
mod fuzz;

fuzz_target!(|data: &[u8]| {
    fuzz::run(data);
});
