//! Kerberos, as robots and servers read it: `cargo +nightly fuzz run kerberos`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/engine/tests/messages/targets.rs"]
#[expect(dead_code, reason = "one target of several")]
mod targets;

fuzz_target!(|data: &[u8]| targets::kerberos(data));
