//! Whether the process of a device that the program started ended during the run.

use super::Findings;
use crate::facts::RunFacts;
use crate::usage::DeviceEnd;

/// Name of the rule.
pub(super) const ENDED: &str = "ended";
/// What such a device did, in words that follow `the device`.
const GONE: &str = "ended during the run";

pub(super) fn ended(facts: &RunFacts, found: &mut Findings) {
    let Some(DeviceEnd { name, status }) = &facts.device_end else { return };
    // A process that has ended has no memory.
    let last = facts.device_usage.iter().rfind(|sample| sample.resident_bytes > 0.0);
    let seen = last.map_or_else(String::new, |sample| {
        format!("; {:.0} s after the start of the run it was still running", sample.at_s)
    });
    let advice = match status.contains("SIGKILL") {
        true => {
            "another program killed it, or the kernel did because the host had no memory left (`journalctl -k` or `dmesg` tells): then \
             give the device less memory, or run it on another host"
        }
        false => "its logs and what it printed are in the folder `device` of the result directory",
    };
    found.failed_as(
        ENDED,
        GONE,
        format!("the process of {name} ended during the run ({status}){seen}: {advice}"),
    );
}
