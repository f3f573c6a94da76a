//! Packets that the network checks receive: TCP segments, ICMP messages, NTP packets: `cargo +nightly fuzz run packet`.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/netcheck/tests/it/mutate.rs"]
#[expect(dead_code, reason = "the fuzzer has mutations of its own")]
mod mutate;

fuzz_target!(|data: &[u8]| {
    mutate::run(data);
});
