//! Messages that agents and controllers of fleets receive: `cargo +nightly fuzz run fleet`. What can be read must be written and read
//! again as the same message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use polygraph_fleet::protocol::{AgentRequest, Answer, RunState, decode, encode};

fuzz_target!(|data: &[u8]| {
    if let Ok(request) = decode::<AgentRequest>(data) {
        assert_eq!(decode::<AgentRequest>(&encode(&request)).unwrap(), request);
    }
    if let Ok(answer) = decode::<Answer>(data) {
        assert!(decode::<Answer>(&encode(&answer)).is_ok());
    }
    let _ = decode::<RunState>(data);
});
