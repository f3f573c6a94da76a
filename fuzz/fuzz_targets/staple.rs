//! Certificates and stapled OCSP responses, as robots read them: `cargo +nightly fuzz run staple`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/engine/tests/messages/targets.rs"]
#[expect(dead_code, reason = "one target of several")]
mod targets;

fuzz_target!(|data: &[u8]| targets::staple(data));
