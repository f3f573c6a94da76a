//! Can the run be trusted, and did the device hold? All rules, in one place: [`rules`] lists them, each is a function
//! of its own, and `docs/verdict.md` has the same table.
//!
//! # Precedence
//! Evidence against the device is of two kinds. What the device *said* (statuses, broken messages, wrong
//! objects, resets) does not depend on the speed of the bench. What it was *too slow* for (time-outs, refused
//! connections, connections at their limit, transactions piling up) may be the doing of a bench that no longer
//! reads its sockets. So: if the bench was saturated or stuck, evidence of the second kind only becomes a warning.
//!
//! Each finding names the [`Party`] that was the limit; the verdict names that of its heaviest finding.
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
mod overload;
mod replies;
mod rules;
mod sample;
mod trend;

use crate::fold::RunFacts;

pub use rules::{Rule, all as rules};

/// What a run is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The figures can be trusted, and the device held.
    Valid,
    /// The bench did not do its part; the figures say nothing about the device.
    #[default]
    Invalid,
    /// The device did not hold.
    Failed,
}

impl Outcome {
    /// `VALID`, `INVALID` or `FAILED`.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Valid => "VALID",
            Outcome::Invalid => "INVALID",
            Outcome::Failed => "FAILED",
        }
    }
}

/// Who was the limit of a run that is not VALID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Party {
    /// The device under test.
    Device,
    /// A client process: the robots of the bench.
    Client,
    /// A server process: the origin servers of the bench.
    Server,
    /// The name server that robots ask.
    NameServer,
    /// A host of the bench: its clock, ports, descriptors, memory or processors.
    Host,
    /// What connects client, device and servers.
    Network,
    /// The test as it was planned or carried out: too short, stopped by its user, or without content to verify.
    Test,
}

impl Party {
    /// Name for people and for machines.
    pub fn name(self) -> &'static str {
        match self {
            Party::Device => "device",
            Party::Client => "client",
            Party::Server => "server",
            Party::NameServer => "name server",
            Party::Host => "host",
            Party::Network => "network",
            Party::Test => "test",
        }
    }

    /// What an INVALID run suffered from.
    fn limit(self) -> &'static str {
        match self {
            Party::Device => "the device was the limit",
            Party::Client => "the client, not the device, was the limit",
            Party::Server => "the origin server of the bench, not the device, was the limit",
            Party::NameServer => "the name server, not the device, was the limit",
            Party::Host => "a host of the bench, not the device, was the limit",
            Party::Network => "the network, not the device, was the limit",
            Party::Test => "the test does not say enough about the device",
        }
    }
}

/// What a finding says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// The device failed.
    Failed,
    /// The bench failed.
    Invalid,
    /// To be known when the figures are read.
    Warning,
}

impl Weight {
    /// A word for tables.
    pub fn word(self) -> &'static str {
        match self {
            Weight::Failed => "failed",
            Weight::Invalid => "invalid",
            Weight::Warning => "warning",
        }
    }
}

/// A rule that had something to say.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Name of the rule.
    pub rule: &'static str,
    /// What follows.
    pub weight: Weight,
    /// Who was the limit; `None` if nobody is to blame, as for most warnings.
    pub party: Option<Party>,
    /// The reason, a sentence with its numbers.
    pub text: String,
    /// The evidence is worthless if the bench was saturated.
    needs_quick_bench: bool,
}

/// The judgement of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// What the run is worth.
    pub outcome: Outcome,
    /// Who was the limit; `None` if the run is VALID.
    pub limit: Option<Party>,
    /// Reasons and warnings, the heaviest first.
    pub findings: Vec<Finding>,
}

impl Verdict {
    /// The verdict in a line: `INVALID (client): the client, not the device, was the limit: do not use these figures`.
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
            Outcome::Valid => "the device sustained the load and the bench kept up".to_owned(),
            Outcome::Failed => "the device did not sustain the load".to_owned(),
            Outcome::Invalid => {
                format!("{}: do not use these figures", self.limit.unwrap_or(Party::Test).limit())
            }
        }
    }

    /// The findings of that weight.
    pub fn of_weight(&self, weight: Weight) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(move |finding| finding.weight == weight)
    }
}

/// Applies all rules.
pub fn judge(facts: &RunFacts) -> Verdict {
    let mut found = Findings::default();
    rules().iter().for_each(|rule| rule.apply(facts, &mut found));
    found.into_verdict()
}

/// What the rules have found so far.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    /// Something to be known when the figures are read, which spoils nothing.
    fn warn(&mut self, rule: &'static str, text: String) {
        self.push(rule, Weight::Warning, None, text);
    }

    /// The bench, for which `party` stands, did not do its part.
    fn invalid(&mut self, rule: &'static str, party: Party, text: String) {
        self.push(rule, Weight::Invalid, Some(party), text);
    }

    /// The device failed, however quick the bench was.
    fn failed(&mut self, rule: &'static str, text: String) {
        self.push(rule, Weight::Failed, Some(Party::Device), text);
    }

    /// Evidence that counts only against a device in front of a bench that was quick enough.
    fn add_slow_device(&mut self, rule: &'static str, text: String) {
        self.failed(rule, text);
        self.0.iter_mut().rev().take(1).for_each(|finding| finding.needs_quick_bench = true);
    }

    fn push(&mut self, rule: &'static str, weight: Weight, party: Option<Party>, text: String) {
        self.0.push(Finding { rule, weight, party, text, needs_quick_bench: false });
    }

    /// Whether one of these rules had something to say.
    fn any_of(&self, rules: &[&str]) -> bool {
        self.0.iter().any(|finding| rules.contains(&finding.rule))
    }

    fn into_verdict(mut self) -> Verdict {
        self.excuse_for_contents();
        self.excuse_for_descriptors();
        let slow_bench = self.any_of(&["saturated", "gaps"]);
        let mut findings = self.0;
        for finding in findings.iter_mut().filter(|finding| slow_bench && finding.needs_quick_bench) {
            finding.weight = Weight::Warning;
            finding.text.push_str(" (perhaps the bench's doing, for it was not quick enough itself)");
        }
        // A test cut short is what follows when something else broke: the cause comes first.
        // That client and server disagree is no such consequence.
        let is_consequence =
            |found: &Finding| found.party == Some(Party::Test) && found.rule != contents::CONTENTS;
        findings.sort_by_key(|finding| (finding.weight, is_consequence(finding)));
        let outcome = match findings.first().map(|finding| finding.weight) {
            Some(Weight::Failed) => Outcome::Failed,
            Some(Weight::Invalid) => Outcome::Invalid,
            Some(Weight::Warning) | None => Outcome::Valid,
        };
        let limit = findings.first().filter(|_| outcome != Outcome::Valid).and_then(|finding| finding.party);
        Verdict { outcome, limit, findings }
    }
}

#[cfg(test)]
mod tests;
