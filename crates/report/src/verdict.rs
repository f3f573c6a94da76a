//! The verdict of a run: can its figures be trusted, and did the device sustain the load?

mod party;

use serde_json::{Value, json};

pub use party::LimitingParty;

/// What a device did that was too slow, in words that follow `the device`.
pub(crate) const OVERLOADED: &str = "did not sustain the load";

/// The outcome of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum VerdictOutcome {
    /// The device sustained the load, and the bench kept up.
    Valid,
    /// The bench, not the device, was the limit: the figures do not describe the device.
    #[default]
    Invalid,
    /// The device did not sustain the load.
    Failed,
}

impl VerdictOutcome {
    /// `VALID`, `INVALID` or `FAILED`.
    pub fn word(self) -> &'static str {
        match self {
            VerdictOutcome::Valid => "VALID",
            VerdictOutcome::Invalid => "INVALID",
            VerdictOutcome::Failed => "FAILED",
        }
    }
}

/// What was tested: what robots sent their requests to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Tested {
    /// A device. Robots of a workload file may be redirected to one that no log names.
    Device,
    /// Nothing but the bench: robots connected to its servers.
    #[default]
    Bench,
    /// What answers at this address of servers, of which there are no logs.
    Servers(String),
}

impl Tested {
    /// Whether there was a device.
    pub fn is_device(&self) -> bool {
        matches!(self, Tested::Device)
    }
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingSeverity {
    /// The device failed.
    Failed,
    /// The bench failed.
    Invalid,
    /// Readers of the figures should know this; it does not affect the outcome.
    Warning,
}

impl FindingSeverity {
    /// The name of the severity in tables and JSON.
    pub fn word(self) -> &'static str {
        match self {
            FindingSeverity::Failed => "failed",
            FindingSeverity::Invalid => "invalid",
            FindingSeverity::Warning => "warning",
        }
    }
}

/// Which slowness of the bench makes evidence against a device void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VoidBy {
    /// None: the evidence does not depend on the speed of the bench.
    Nothing,
    /// That of the servers, unless they only answered late: the device told that they did not answer, and did so more often than they
    /// were late.
    StoppedServers,
    /// That of the servers: the device told that they did not answer.
    SlowServers,
    /// That of any side: the device seemed slow.
    SlowBench,
}

/// A violated rule of the verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct VerdictFinding {
    /// Name of the rule.
    pub rule: &'static str,
    /// The effect on the outcome.
    pub weight: FindingSeverity,
    /// Who was the limit; `None` if nobody is to blame, as for most warnings.
    pub party: Option<LimitingParty>,
    /// The reason, a sentence with its numbers.
    pub text: String,
    /// What the device did, in a few words that follow `the device`.
    pub(crate) deed: Option<&'static str>,
    /// Which slowness of the bench makes the evidence void.
    pub(crate) void_by: VoidBy,
    /// Whether it explains why (nearly) all transactions failed.
    pub(crate) explains_all: bool,
}

/// The judgement of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Whether the run is valid, failed or invalid.
    pub outcome: VerdictOutcome,
    /// Who was the limit; `None` if the run is VALID.
    pub limit: Option<LimitingParty>,
    /// What was tested, as far as is known.
    pub tested: Tested,
    /// Reasons and warnings, the most severe first.
    pub findings: Vec<VerdictFinding>,
}

impl Verdict {
    /// The verdict in a line: `INVALID (client): the client of the bench, not the device, was the
    /// limit: do not use these figures`.
    pub fn headline(&self) -> String {
        format!("{}: {}", self.word(), self.meaning())
    }

    /// The outcome and the limit, for example `INVALID (client)`; a VALID run has no limit.
    pub fn word(&self) -> String {
        let limit = self.limit.map_or_else(String::new, |party| format!(" ({})", party.name()));
        format!("{}{limit}", self.outcome.word())
    }

    /// What the outcome means, in words.
    pub fn meaning(&self) -> String {
        match self.outcome {
            VerdictOutcome::Valid => match &self.tested {
                Tested::Device => "the device sustained the load and the bench kept up".to_owned(),
                Tested::Bench => "the bench sustained the load; there was no device".to_owned(),
                Tested::Servers(at) => format!("the server at {at} sustained the load and the bench kept up"),
            },
            VerdictOutcome::Failed => {
                let deed = self.findings.first().and_then(|finding| finding.deed);
                format!("the device {}", deed.unwrap_or(OVERLOADED))
            }
            VerdictOutcome::Invalid => {
                let rule = self.findings.first().map_or("", |finding| finding.rule);
                let limit = self.limit.unwrap_or(LimitingParty::Test).limit(rule, &self.tested);
                format!("{limit}: do not use these figures")
            }
        }
    }

    /// What to do if the load generator was too slow. Other reasons name their remedy themselves, if there is one.
    pub fn remedy(&self) -> Option<&'static str> {
        let rule = self.findings.first()?.rule;
        let too_slow = matches!(rule, "gaps" | "late" | "saturated" | "stalls");
        (self.outcome == VerdictOutcome::Invalid && too_slow).then_some(
            "repeat the run while nothing else uses the processors, lower the rate, or use more hosts; `polygraph doctor` says what \
             slows a host down, and how many requests it can make",
        )
    }

    /// The headline, each reason and warning on a line, and what to do.
    pub fn text(&self) -> String {
        let mut out = self.headline() + "\n";
        for finding in &self.findings {
            let lead = if finding.weight == FindingSeverity::Warning { "warning: " } else { "" };
            out.push_str(&format!("  - {lead}{}\n", finding.text));
        }
        if let Some(remedy) = self.remedy() {
            out.push_str(&format!("  - what to do: {remedy}\n"));
        }
        out
    }

    /// The verdict as JSON, for programs.
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

    /// The findings of this severity.
    pub fn of_weight(&self, weight: FindingSeverity) -> impl Iterator<Item = &VerdictFinding> {
        self.findings.iter().filter(move |finding| finding.weight == weight)
    }
}
