//! Messages that monitors and dispatchers receive: `cargo +nightly fuzz run live`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/live/tests/it/mutate.rs"]
#[expect(dead_code, reason = "the fuzzer has mutations of its own")]
mod mutate;

fuzz_target!(|data: &[u8]| {
    mutate::run(data);
});
