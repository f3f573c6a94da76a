//! Text of `/proc` and of tools, as the doctor reads it: `cargo +nightly fuzz run host_facts`.
#![no_main]

use libfuzzer_sys::fuzz_target;

// The readers need nothing but the standard library.
#[allow(dead_code)]
#[path = "../../crates/engine/src/control_group.rs"]
mod control_group;
#[path = "../../crates/engine/src/kernel_counters.rs"]
mod kernel_counters;
#[path = "../../crates/doctor/src/parse.rs"]
mod parse;
#[path = "../../crates/doctor/tests/it/readers.rs"]
mod readers;

fuzz_target!(|data: &[u8]| readers::all(&String::from_utf8_lossy(data)));
