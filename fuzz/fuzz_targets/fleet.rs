//! Messages that agents and controllers of fleets receive, and the frames in which ssh carries them: `cargo +nightly fuzz run fleet`. What
//! can be read must be written and read again as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use polygraph_fleet::block_on;
use polygraph_fleet::bus::frame::SshFrame;
use polygraph_fleet::protocol::{AgentRequest, Answer, RunState, decode, encode};

fuzz_target!(|data: &[u8]| {
    if let Ok(request) = decode::<AgentRequest>(data) {
        assert_eq!(decode::<AgentRequest>(&encode(&request)).unwrap(), request);
    }
    if let Ok(answer) = decode::<Answer>(data) {
        assert!(decode::<Answer>(&encode(&answer)).is_ok());
    }
    let _ = decode::<RunState>(data);
    let _ = block_on(async {
        let mut input = data;
        while let Ok(Some(frame)) = SshFrame::read(&mut input).await {
            let again = frame.encode();
            assert_eq!(SshFrame::read(&mut again.as_slice()).await.unwrap(), Some(frame));
        }
    });
});
