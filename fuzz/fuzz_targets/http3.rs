//! Streams of HTTP/3 and field sections of QPACK: `cargo +nightly fuzz run http3`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/quic/tests/syntax/targets.rs"]
mod targets;

fuzz_target!(|data: &[u8]| targets::syntax(data));
