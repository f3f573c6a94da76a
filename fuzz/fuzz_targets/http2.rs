//! Frames of HTTP/2 and header blocks of HPACK: `cargo +nightly fuzz run http2`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/multiplex/tests/frames/mod.rs"]
#[expect(dead_code, reason = "the fuzzer has mutations of its own")]
mod frames;

fuzz_target!(|data: &[u8]| {
    frames::run(data);
});
