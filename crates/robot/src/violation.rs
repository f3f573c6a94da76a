//! What is wrong with a reply.

use polygraph_stats::{ErrorKind, Evidence};

/// What a robot expected and what it got, as text for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedVsActual {
    /// What the robot expected.
    pub expected: String,
    /// What the robot got instead.
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
    /// What the robot expected and what it got.
    pub comparison: Option<Box<ExpectedVsActual>>,
}

impl Violation {
    /// A violation without a comparison.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Violation {
        Violation { kind, detail: detail.into(), comparison: None }
    }

    /// Adds what the robot expected and what it got.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>, actual: impl Into<String>) -> Violation {
        self.comparison =
            Some(Box::new(ExpectedVsActual { expected: expected.into(), actual: actual.into() }));
        self
    }
}
