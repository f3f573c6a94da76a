//! Can the run be trusted, and did the device sustain the load? All rules, in one place: [`rules`] lists them, each is a function
//! of its own, and `docs/verdict.md` has the same table.
//!
//! # Precedence
//! Evidence against the device is of two kinds. What the device *said* (statuses, broken messages, wrong
//! objects, resets) does not depend on the speed of the bench. What it was *too slow* for (time-outs, refused
//! connections, connections at their limit, transactions piling up) may be the doing of a bench that no longer
//! reads its sockets. So: if the bench was saturated, stood still or refused connections, evidence of the second kind only becomes a warning. If client and server
//! disagree about the contents, nothing is held against the device.
//!
//! What a device says after its origin is gone is no evidence against it either: only what was counted until then is,
//! see `RunFacts::origin_gone`. Where robots asked the servers themselves there is nobody to fail: what would be
//! held against a device is the servers'.
//!
//! Each finding names the [`LimitingParty`] that was the limit; the verdict names that of its heaviest finding.
//!
//! After that FAILED wins over INVALID. Late starts, clock steps, an interrupted or short run spoil the
//! figures, but they do not excuse the device: starts that were late were still made, and what was
//! counted before the end was counted. In particular an error goal ends a run before its primary phase is over;
//! that is the device's failure, not the bench's.

mod blame;
mod chance;
mod contents;
mod descriptors;
mod generator;
mod logs;
mod outside;
mod overload;
mod replies;
mod rules;
mod sample;
mod stalls;
mod trend;
mod verified;

use crate::facts::RunFacts;
use crate::verdict::{FindingSeverity, LimitingParty, Verdict, VerdictFinding, VerdictOutcome};

pub use contents::MARK as CONTENTS_MARK;
pub use rules::{Rule, all as rules};
pub use sample::MIN as LEAST_TRANSACTIONS;

/// Applies all rules.
pub fn judge(facts: &RunFacts) -> Verdict {
    let mut found = Findings { all: Vec::new(), device: facts.device };
    rules().iter().for_each(|rule| rule.apply(facts, &mut found));
    found.into_verdict()
}

/// What the rules have found so far.
struct Findings {
    all: Vec<VerdictFinding>,
    /// There was a device, as far as is known.
    device: bool,
}

/// Rules that find a bench too slow to hold it against a device that it took long.
const SLOW_BENCH: [&str; 3] = ["saturated", "gaps", "stalls"];

/// Rules about failed transactions, which a device cannot help if its origin servers are not there.
const FAILURES: [&str; 4] = ["errors", "error goal", "following", "growing"];

impl Findings {
    /// Something to be known when the figures are read, which spoils nothing.
    fn warn(&mut self, rule: &'static str, text: String) {
        self.push(rule, FindingSeverity::Warning, None, text);
    }

    /// The bench, for which `party` stands, did not do its part.
    fn invalid(&mut self, rule: &'static str, party: LimitingParty, text: String) {
        self.push(rule, FindingSeverity::Invalid, Some(party), text);
    }

    /// The device failed, however quick the bench was; `deed` tells what it did, and follows `the device`. Where robots asked
    /// the servers themselves, these are what failed.
    fn failed_as(&mut self, rule: &'static str, deed: &'static str, text: String) {
        match self.device {
            true => self.push(rule, FindingSeverity::Failed, Some(LimitingParty::Device), text),
            false => self.push(
                rule,
                FindingSeverity::Invalid,
                Some(LimitingParty::Server),
                text.replace("the device", "the server"),
            ),
        }
        self.all.iter_mut().rev().take(1).for_each(|finding| finding.deed = Some(deed));
    }

    /// Evidence that counts only against a device in front of a bench that was quick enough.
    fn add_slow_device(&mut self, rule: &'static str, text: String) {
        self.slow_as(rule, blame::OVERLOADED, text);
    }

    /// The same of a device that did something else than not to sustain the load.
    fn slow_as(&mut self, rule: &'static str, deed: &'static str, text: String) {
        self.failed_as(rule, deed, text);
        self.all.iter_mut().rev().take(1).for_each(|finding| finding.needs_quick_bench = true);
    }

    fn push(
        &mut self,
        rule: &'static str,
        weight: FindingSeverity,
        party: Option<LimitingParty>,
        text: String,
    ) {
        self.all.push(VerdictFinding { rule, weight, party, text, deed: None, needs_quick_bench: false });
    }

    /// Why it says nothing about a device that something took long; `None` if nothing excuses it.
    fn excuse(&self) -> Option<&'static str> {
        let invalid = || self.all.iter().filter(|finding| finding.weight == FindingSeverity::Invalid);
        if invalid().any(|finding| SLOW_BENCH.contains(&finding.rule)) {
            return Some("perhaps the bench's doing, for it was not quick enough itself");
        }
        let gone = |finding: &VerdictFinding| {
            finding.rule == "interrupted" && finding.party == Some(LimitingParty::Server)
        };
        invalid().any(gone).then_some("perhaps for want of an origin server")
    }

    fn into_verdict(mut self) -> Verdict {
        self.excuse_for_contents();
        self.excuse_for_descriptors();
        self.excuse_for_missing_server_log();
        let excuse = self.excuse();
        let Findings { all: mut findings, device } = self;
        for finding in findings.iter_mut().filter(|finding| finding.needs_quick_bench) {
            if let Some(excuse) = excuse {
                finding.weight = FindingSeverity::Warning;
                finding.text.push_str(&format!(" ({excuse})"));
            }
        }
        findings.sort_by_key(|finding| (finding.weight, finding.depth()));
        let outcome = match findings.first().map(|finding| finding.weight) {
            Some(FindingSeverity::Failed) => VerdictOutcome::Failed,
            Some(FindingSeverity::Invalid) => VerdictOutcome::Invalid,
            Some(FindingSeverity::Warning) | None => VerdictOutcome::Valid,
        };
        let limit =
            findings.first().filter(|_| outcome != VerdictOutcome::Valid).and_then(|finding| finding.party);
        Verdict { outcome, limit, device, findings }
    }
}

impl VerdictFinding {
    /// How far it is from the root of the trouble: findings of equal weight are listed in this order, the cause first.
    fn depth(&self) -> u8 {
        match (self.weight, self.rule, self.party) {
            (FindingSeverity::Failed, "content", _) => 0,
            // A server that cannot be told from the device is the last to be suspected.
            (FindingSeverity::Invalid, _, Some(LimitingParty::Server)) if self.deed.is_some() => 5,
            // A test cut short is what follows when something else broke; that client and server disagree is no such thing.
            (_, rule, Some(LimitingParty::Test)) if rule != contents::CONTENTS => 6,
            (_, "interrupted" | "origin" | "stalls", _) => 1,
            (_, "names" | "network" | "resources" | descriptors::REFUSED, _) => 2,
            (_, "gaps" | "saturated" | "clock", _) => 3,
            _ => 4,
        }
    }
}

#[cfg(test)]
mod tests;
