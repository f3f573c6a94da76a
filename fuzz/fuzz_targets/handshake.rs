//! Tokens of NTLM and SPNEGO: `cargo +nightly fuzz run handshake`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/engine/tests/messages/targets.rs"]
#[expect(dead_code, reason = "one target of several")]
mod targets;

fuzz_target!(|data: &[u8]| targets::handshake(data));
