//! Messages of the kernel about packets in queues: `cargo +nightly fuzz run nfqueue`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/impair/tests/it/mutate.rs"]
#[expect(dead_code, reason = "the fuzzer has mutations of its own")]
mod mutate;

fuzz_target!(|data: &[u8]| {
    mutate::run(data);
});
