//! DNS messages, as the resolver and as the server take them: `cargo +nightly fuzz run dns`.
#![no_main]

use std::cell::OnceCell;

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/dns/tests/it/mutate.rs"]
#[expect(dead_code, reason = "the fuzzer has mutations of its own")]
mod mutate;

thread_local! {
    static SUBJECT: OnceCell<mutate::Subject> = const { OnceCell::new() };
}

fuzz_target!(|data: &[u8]| {
    SUBJECT.with(|subject| subject.get_or_init(mutate::Subject::new).run(data));
});
