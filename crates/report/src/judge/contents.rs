//! Whether bodies could be compared with what the servers must have sent.

use polygraph_stats::ErrorKind;

use super::{FindingSeverity, Findings, LimitingParty, blame, unasked};
use crate::facts::{ProcessFacts, RunFacts};
use crate::figures::error_count;
use crate::text;

/// Largest share of replies whose mark may name other contents than the robots expect: copies from an earlier test.
pub(super) const OTHER_MAX: f64 = 0.01;
/// Smallest share of body bytes that must be compared. The rest are, for example, bodies of redirects.
pub(super) const COMPARED_MIN: f64 = 0.99;

/// Name of the rule about contents that differ.
pub(super) const CONTENTS: &str = "contents";

/// Setting of both sides' logs that names their contents.
pub const MARK: &str = "contents mark";

/// Both sides state that they have the same contents, and robots cannot request copies from an earlier test.
fn sides_agree(facts: &RunFacts) -> bool {
    if facts.client.is_none() || facts.server.is_none() {
        return false;
    }
    let setting = |process: &ProcessFacts, wanted: &str| process.setting(wanted).map(str::to_owned);
    let mut processes = facts.sides().flat_map(|side| &side.processes);
    let first = processes.next().and_then(|process| setting(process, MARK));
    let old_copies = facts.sides().flat_map(|side| &side.processes).any(|process| {
        setting(process, "ids").as_deref() == Some("repeatable") || setting(process, "working set").is_some()
    });
    first.is_some() && !old_copies && processes.all(|process| setting(process, MARK) == first)
}

/// Client and server have different contents: wrong replies are then no evidence against the device.
pub(super) fn contents(facts: &RunFacts, found: &mut Findings) {
    let Some(total) = facts.client.as_ref().and_then(|side| side.total.as_ref()) else { return };
    let (other, ended) = (error_count(&total.block, ErrorKind::OtherContents), total.ended_count() as f64);
    if other == 0.0 {
        return;
    }
    let share = format!("in {other:.0} of {ended:.0} replies");
    if sides_agree(facts) {
        if unasked::others_answered(facts) {
            // The contents are those of the servers that answered instead.
            return;
        }
        let text = format!("{share} the contents mark is not the one that the servers send");
        return found.failed_as("content", blame::WRONG_CONTENT, text);
    }
    if other <= OTHER_MAX * ended {
        let text = format!(
            "{share} the server's mark names other contents than the client has: these replies were not compared"
        );
        return found.warn(CONTENTS, text);
    }
    let text = format!(
        "client and server disagree about the contents ({share} the server's mark is not the client's): start both with the same \
         --global_rng_seed and --rep_sz, or with the same workload and --set, and empty the cache of the device first"
    );
    found.invalid(CONTENTS, LimitingParty::Test, text);
}

/// Some of the received bytes were not compared with anything.
pub(super) fn compared(facts: &RunFacts, found: &mut Findings) {
    let Some(total) = facts.client.as_ref().and_then(|side| side.total.as_ref()) else { return };
    let verified = total.block.verified;
    let all = verified.bytes + verified.uncompared;
    if (verified.bytes as f64) < COMPARED_MIN * all as f64 {
        let size = |bytes: u64| text::bytes(Some(bytes as f64));
        let shares = format!("{} of {} reply bytes were compared", size(verified.bytes), size(all));
        found.warn(
            "compared",
            format!("{shares} with what the servers must have sent; the rest could be wrong"),
        );
    }
}

impl Findings {
    /// Findings against a device are void if client and server disagree about what is right, or others answered.
    pub(super) fn excuse_for_contents(&mut self) {
        let is_invalid = |rule| {
            self.all.iter().any(|found| found.rule == rule && found.weight == FindingSeverity::Invalid)
        };
        let why = if is_invalid(CONTENTS) {
            "client and server disagree about the contents"
        } else if is_invalid(unasked::UNASKED) {
            "servers that are not part of this run answered"
        } else {
            return;
        };
        for finding in self.all.iter_mut().filter(|finding| finding.weight == FindingSeverity::Failed) {
            finding.weight = FindingSeverity::Warning;
            finding.text.push_str(&format!(" (no evidence: {why})"));
        }
    }
}
