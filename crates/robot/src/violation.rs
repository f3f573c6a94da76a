//! Violations of rules in replies.

use polygraph_stats::{ErrorKind, Evidence};

/// Expected and actual value, as text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedVsActual {
    /// The expected value.
    pub expected: String,
    /// The actual value.
    pub actual: String,
}

impl ExpectedVsActual {
    /// Adds the comparison to the evidence of an error.
    pub fn add_to(&self, evidence: Evidence) -> Evidence {
        evidence.expected(self.expected.as_str(), self.actual.as_str())
    }
}

/// A rule that a reply breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The class of the error.
    pub kind: ErrorKind,
    /// What the robot found, in one line.
    pub detail: String,
    /// Expected and actual value.
    pub comparison: Option<Box<ExpectedVsActual>>,
}

impl Violation {
    /// A violation without a comparison.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Violation {
        Violation { kind, detail: detail.into(), comparison: None }
    }

    /// Adds the expected and the actual value.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>, actual: impl Into<String>) -> Violation {
        self.comparison =
            Some(Box::new(ExpectedVsActual { expected: expected.into(), actual: actual.into() }));
        self
    }
}
