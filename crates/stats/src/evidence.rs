//! Examples of errors.

use serde::{Deserialize, Serialize};

use crate::error::ErrorKind;

/// Names of facts in the order in which reports show them. Others may follow.
pub mod fact {
    /// The requested URL.
    pub const URL: &str = "url";
    /// Method and kind of the request, for example `GET reload`.
    pub const REQUEST: &str = "request";
    /// Id of the transaction.
    pub const XACT: &str = "transaction";
    /// Number of the robot.
    pub const ROBOT: &str = "robot";
    /// Address of the robot.
    pub const CLIENT: &str = "client";
    /// The receiver of the request: the device, or the server if there is no device.
    pub const PEER: &str = "peer";
    /// The server that generated the reply (`X-Target`).
    pub const SERVER: &str = "server";
    /// The host of a foreign URL, which is none of the servers of the test.
    pub const FOREIGN_SERVER: &str = "foreign server";
    /// The expected value.
    pub const EXPECTED: &str = "expected";
    /// The actual value.
    pub const SEEN: &str = "seen";
    /// A line of the reply's header; there may be several.
    pub const HEADER: &str = "reply header";
}

/// The facts about an error: a line of text, and facts of both sides by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// What was found, in one line.
    pub detail: String,
    /// Name and value of each fact; see [`fact`].
    pub facts: Vec<(String, String)>,
}

/// Maximum length of a fact; longer facts are cut.
const MAX_FACT: usize = 400;
/// Maximum number of facts.
const MAX_FACTS: usize = 40;

impl Evidence {
    /// Evidence without facts yet.
    pub fn new(detail: impl Into<String>) -> Evidence {
        Evidence { detail: cut(detail.into()), facts: Vec::new() }
    }

    /// Adds a fact. Values are cut after 400 bytes; at most 40 facts are kept.
    #[must_use]
    pub fn fact(mut self, name: &str, value: impl Into<String>) -> Evidence {
        if self.facts.len() < MAX_FACTS {
            self.facts.push((name.to_owned(), cut(value.into())));
        }
        self
    }

    /// Adds the expected and the actual value.
    #[must_use]
    pub fn expected(self, expected: impl Into<String>, seen: impl Into<String>) -> Evidence {
        self.fact(fact::EXPECTED, expected).fact(fact::SEEN, seen)
    }
}

fn cut(mut text: String) -> String {
    if text.len() > MAX_FACT {
        text.truncate(text.floor_char_boundary(MAX_FACT));
        text.push_str(" ...");
    }
    text
}

impl From<String> for Evidence {
    fn from(detail: String) -> Evidence {
        Evidence::new(detail)
    }
}

/// An example of an error, with the facts a person needs to understand it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorSample {
    /// Time in nanoseconds of the loop's clock.
    pub at_ns: u64,
    /// Class of the error.
    pub kind: ErrorKind,
    /// The facts about the error.
    pub evidence: Evidence,
}

/// Number of first examples of each class, which are all kept.
const FIRST: u64 = 4;

/// Whether the `n`-th error of a class is kept as an example: the first few, then whenever the count has doubled.
pub(crate) fn is_kept(n: u64) -> bool {
    n <= FIRST || n.is_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_then_those_that_double_the_count_are_kept() {
        let kept: Vec<u64> = (1..=100).filter(|&n| is_kept(n)).collect();
        assert_eq!(kept, [1, 2, 3, 4, 8, 16, 32, 64]);
    }

    #[test]
    fn evidence_is_bounded() {
        let mut evidence = Evidence::new("ä".repeat(1000));
        for _ in 0..100 {
            evidence = evidence.fact(fact::HEADER, "x".repeat(10_000));
        }
        assert!(evidence.detail.len() <= MAX_FACT + 4 && evidence.facts.len() == MAX_FACTS);
        assert!(evidence.facts.iter().all(|(_, value)| value.len() <= MAX_FACT + 4));
    }
}
