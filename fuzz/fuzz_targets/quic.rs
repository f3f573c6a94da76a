//! Sessions of HTTP/3 with changed packets, on both sides: `cargo +nightly fuzz run quic`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/quic/tests/packets/targets.rs"]
mod targets;

fuzz_target!(|data: &[u8]| {
    targets::packets(data);
});
