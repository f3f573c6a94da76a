//! What is wrong with a reply.

use polygraph_stats::{ErrorKind, Evidence};

/// What had to come and what came, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedVsActual {
    /// What had to come.
    pub expected: String,
    /// What came.
    pub seen: String,
}

/// Something that is wrong with a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its class.
    pub kind: ErrorKind,
    /// What was found, in one line.
    pub detail: String,
    /// What had to come and what came.
    pub comparison: Option<Box<ExpectedVsActual>>,
}

impl Violation {
    /// A violation in words.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Violation {
        Violation { kind, detail: detail.into(), comparison: None }
    }

    /// Adds what had to come and what came.
    #[must_use]
    pub fn expected(mut self, expected: impl Into<String>, seen: impl Into<String>) -> Violation {
        self.comparison = Some(Box::new(ExpectedVsActual { expected: expected.into(), seen: seen.into() }));
        self
    }
}

impl ExpectedVsActual {
    /// Adds it to the evidence.
    pub fn tell(&self, evidence: Evidence) -> Evidence {
        evidence.expected(self.expected.as_str(), self.seen.as_str())
    }
}
