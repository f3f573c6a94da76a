//! Records and handshake messages of TLS, on both sides: `cargo +nightly fuzz run tls`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/tls/tests/records/targets.rs"]
mod targets;

fuzz_target!(|data: &[u8]| targets::records(data));
