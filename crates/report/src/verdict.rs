//! Can the run be trusted, and did the device hold? All rules, in one place: [`rules`] lists them, each is a function
//! of its own, and `docs/verdict.md` has the same table.
//!
//! # Precedence
//! Evidence against the device is of two kinds. What the device *said* (statuses, broken messages, wrong
//! objects, resets) does not depend on the speed of the bench. What it was *too slow* for (time-outs, refused
//! connections, connections at their limit, transactions piling up) may be the doing of a bench that no longer
//! reads its sockets. So: if the bench was saturated or stuck, evidence of the second kind only becomes a warning.
//!
//! After that FAILED wins over INVALID. Late starts, clock steps, an interrupted or short run spoil the
//! figures, but they do not excuse the device: starts that were late were still made, and what was
//! counted before the end was counted. In particular an error goal ends a run before its primary phase is over;
//! that is the device's failure, not the bench's.

mod blame;
mod chance;
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

    /// What the word means.
    pub fn meaning(self) -> &'static str {
        match self {
            Outcome::Valid => "the device held and the bench did its part",
            Outcome::Invalid => "the bench did not do its part: do not use these figures",
            Outcome::Failed => "the device did not hold",
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
    /// Reasons and warnings, the heaviest first.
    pub findings: Vec<Finding>,
}

impl Verdict {
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
    fn add(&mut self, rule: &'static str, weight: Weight, text: String) {
        self.0.push(Finding { rule, weight, text, needs_quick_bench: false });
    }

    /// Evidence that counts only against a device in front of a bench that was quick enough.
    fn add_slow_device(&mut self, rule: &'static str, text: String) {
        self.0.push(Finding { rule, weight: Weight::Failed, text, needs_quick_bench: true });
    }

    /// Whether one of these rules had something to say.
    fn any_of(&self, rules: &[&str]) -> bool {
        self.0.iter().any(|finding| rules.contains(&finding.rule))
    }

    fn into_verdict(self) -> Verdict {
        let slow_bench = self.any_of(&["saturated", "gaps"]);
        let mut findings = self.0;
        for finding in findings.iter_mut().filter(|finding| slow_bench && finding.needs_quick_bench) {
            finding.weight = Weight::Warning;
            finding.text.push_str(" (perhaps the bench's doing, for it was not quick enough itself)");
        }
        findings.sort_by_key(|finding| finding.weight);
        let outcome = match findings.first().map(|finding| finding.weight) {
            Some(Weight::Failed) => Outcome::Failed,
            Some(Weight::Invalid) => Outcome::Invalid,
            Some(Weight::Warning) | None => Outcome::Valid,
        };
        Verdict { outcome, findings }
    }
}

#[cfg(test)]
mod tests;
