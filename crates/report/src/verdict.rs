//! Can the run be trusted, and did the device hold? All rules, in one place: [`rules`] lists them, each is a function
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
mod party;
mod replies;
mod rules;
mod sample;
mod stalls;
mod trend;
mod verified;

use serde_json::{Value, json};

use crate::fold::RunFacts;

pub use contents::MARK as CONTENTS_MARK;
pub use party::LimitingParty;
pub use rules::{Rule, all as rules};
pub use sample::MIN as LEAST_TRANSACTIONS;

/// What a run is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunOutcome {
    /// The figures can be trusted, and the device held.
    Valid,
    /// The bench did not do its part; the figures say nothing about the device.
    #[default]
    Invalid,
    /// The device did not hold.
    Failed,
}

impl RunOutcome {
    /// `VALID`, `INVALID` or `FAILED`.
    pub fn word(self) -> &'static str {
        match self {
            RunOutcome::Valid => "VALID",
            RunOutcome::Invalid => "INVALID",
            RunOutcome::Failed => "FAILED",
        }
    }
}

/// What a finding says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingSeverity {
    /// The device failed.
    Failed,
    /// The bench failed.
    Invalid,
    /// To be known when the figures are read.
    Warning,
}

impl FindingSeverity {
    /// A word for tables.
    pub fn word(self) -> &'static str {
        match self {
            FindingSeverity::Failed => "failed",
            FindingSeverity::Invalid => "invalid",
            FindingSeverity::Warning => "warning",
        }
    }
}

/// A rule that had something to say.
#[derive(Clone, Debug, PartialEq)]
pub struct VerdictFinding {
    /// Name of the rule.
    pub rule: &'static str,
    /// What follows.
    pub weight: FindingSeverity,
    /// Who was the limit; `None` if nobody is to blame, as for most warnings.
    pub party: Option<LimitingParty>,
    /// The reason, a sentence with its numbers.
    pub text: String,
    /// What the device did, in few words that follow `the device`.
    deed: Option<&'static str>,
    /// The evidence is worthless if the bench was saturated.
    needs_quick_bench: bool,
}

/// The judgement of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// What the run is worth.
    pub outcome: RunOutcome,
    /// Who was the limit; `None` if the run is VALID.
    pub limit: Option<LimitingParty>,
    /// There was a device under test, as far as is known.
    pub device: bool,
    /// Reasons and warnings, the heaviest first.
    pub findings: Vec<VerdictFinding>,
}

impl Verdict {
    /// The verdict in a line: `INVALID (client): the client of the bench, not the device, was the
    /// limit: do not use these figures`.
    pub fn headline(&self) -> String {
        format!("{}: {}", self.word(), self.meaning())
    }

    /// The outcome and who was the limit, `INVALID (client)`; a run that is VALID had none.
    pub fn word(&self) -> String {
        let limit = self.limit.map_or_else(String::new, |party| format!(" ({})", party.name()));
        format!("{}{limit}", self.outcome.word())
    }

    /// What the outcome means, in words.
    pub fn meaning(&self) -> String {
        match self.outcome {
            RunOutcome::Valid if self.device => {
                "the device sustained the load and the bench kept up".to_owned()
            }
            RunOutcome::Valid => "the bench sustained the load; there was no device".to_owned(),
            RunOutcome::Failed => {
                let deed = self.findings.first().and_then(|finding| finding.deed);
                format!("the device {}", deed.unwrap_or(blame::OVERLOADED))
            }
            RunOutcome::Invalid => {
                let rule = self.findings.first().map_or("", |finding| finding.rule);
                let limit = self.limit.unwrap_or(LimitingParty::Test).limit(rule, self.device);
                format!("{limit}: do not use these figures")
            }
        }
    }

    /// The headline and, line by line, the reasons and warnings.
    pub fn text(&self) -> String {
        let mut out = self.headline() + "\n";
        for finding in &self.findings {
            let lead = if finding.weight == FindingSeverity::Warning { "warning: " } else { "" };
            out.push_str(&format!("  - {lead}{}\n", finding.text));
        }
        out
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let finding = |finding: &VerdictFinding| {
            json!({
                "rule": finding.rule,
                "weight": finding.weight.word(),
                "limit": finding.party.map(LimitingParty::name),
                "text": finding.text,
            })
        };
        json!({
            "outcome": self.outcome.word(),
            "limit": self.limit.map(LimitingParty::name),
            "meaning": self.meaning(),
            "findings": self.findings.iter().map(finding).collect::<Vec<_>>(),
        })
    }

    /// The findings of that weight.
    pub fn of_weight(&self, weight: FindingSeverity) -> impl Iterator<Item = &VerdictFinding> {
        self.findings.iter().filter(move |finding| finding.weight == weight)
    }
}

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
            Some(FindingSeverity::Failed) => RunOutcome::Failed,
            Some(FindingSeverity::Invalid) => RunOutcome::Invalid,
            Some(FindingSeverity::Warning) | None => RunOutcome::Valid,
        };
        let limit =
            findings.first().filter(|_| outcome != RunOutcome::Valid).and_then(|finding| finding.party);
        Verdict { outcome, limit, device, findings }
    }
}

impl VerdictFinding {
    /// How far it is from the root of the trouble: findings of equal weight are told in this order, the cause first.
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
