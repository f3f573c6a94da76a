//! Was what the device delivered right? Findings by class of error, with evidence of both sides.

use std::fmt::Write as _;

use polygraph_stats::error::Nature;
use polygraph_stats::{Block, ErrorKind, Side, VerificationStats};
use serde_json::{Value, json};

use crate::facts::{ErrorExample, RunFacts, SideFacts};
use crate::text::{bytes, counted, number};

/// A class of errors that occurred on one side.
#[derive(Clone, Debug)]
pub struct CorrectnessFinding<'a> {
    /// The class.
    pub kind: ErrorKind,
    /// The side that counted it.
    pub side: Side,
    /// How often.
    pub count: u64,
    /// Share of the transactions of that side (0 to 1).
    pub share: f64,
    /// The first examples.
    pub samples: Vec<&'a ErrorExample>,
}

/// What is known about the correctness of replies, over the whole run.
#[derive(Clone, Debug)]
pub struct Correctness<'a> {
    /// The worst first: wrong content, then by count.
    pub findings: Vec<CorrectnessFinding<'a>>,
    /// What the robots compared.
    pub verified: VerificationStats,
    /// Number of bad certificates that were refused, as they must be.
    pub refused: u64,
}

/// Collects the findings of a run.
pub fn of_run(facts: &RunFacts) -> Correctness<'_> {
    let mut findings: Vec<_> = facts.sides().flat_map(of_side).collect();
    findings
        .sort_by_key(|finding| (finding.kind.nature() != Nature::Content, std::cmp::Reverse(finding.count)));
    let total = facts.client.as_ref().and_then(|side| side.total.as_ref());
    let of_total = |block: &Block| (block.verified, block.tls.refusal_count());
    let (verified, refused) = total.map(|total| of_total(&total.block)).unwrap_or_default();
    Correctness { findings, verified, refused }
}

fn of_side(side: &SideFacts) -> Vec<CorrectnessFinding<'_>> {
    let Some(total) = &side.total else { return Vec::new() };
    let ended = total.ended_count().max(1) as f64;
    let finding = |(kind, count): (ErrorKind, u64)| CorrectnessFinding {
        kind,
        side: side.side,
        count,
        share: count as f64 / ended,
        samples: side.samples.iter().filter(|sample| sample.kind == kind).collect(),
    };
    total.block.errors.iter().filter(|(kind, _)| (*kind).concerns_correctness()).map(finding).collect()
}

impl Correctness<'_> {
    /// The result in a sentence or two.
    pub fn conclusion(&self) -> String {
        let checked = self.checked();
        if self.findings.is_empty() {
            return match self.verified.replies + self.refused {
                0 if self.verified.marked > 0 => format!(
                    "No correctness error was seen: robots recognized {} without a body by the marks of the servers, but verified no body.",
                    counted(self.verified.marked, "reply")
                ),
                0 => "No correctness error was seen, but no reply was verified either.".to_owned(),
                _ => format!("No correctness error in {checked}."),
            };
        }
        let wrong: u64 = self.findings.iter().map(|finding| finding.count).sum();
        let mut text = format!("{} correctness error{}", number(Some(wrong as f64), 0), plural(wrong));
        if self.verified.replies + self.refused > 0 {
            let _ = write!(text, "; the robots checked {checked}");
        }
        text + "."
    }

    fn checked(&self) -> String {
        let VerificationStats { replies, bytes: volume, uncompared, digests, due, .. } = self.verified;
        let count = |n: u64| number(Some(n as f64), 0);
        let mut details = Vec::new();
        let size = |volume: u64| bytes(Some(volume as f64));
        if uncompared > 0 {
            details.push(format!("{} of {} compared", size(volume), size(volume + uncompared)));
        } else if volume > 0 {
            details.push(format!("{} compared", size(volume)));
        }
        if digests > 0 {
            details.push(format!("{} digest{} checked", count(digests), plural(digests)));
        }
        let of = count(due.max(replies));
        let replies =
            format!("{} verified repl{} of {of}", count(replies), if replies == 1 { "y" } else { "ies" });
        let replies =
            if details.is_empty() { replies } else { format!("{replies} ({})", details.join(", ")) };
        let refusals = format!("{} refusal{} of bad certificates", count(self.refused), plural(self.refused));
        match (self.verified.replies, self.refused) {
            (_, 0) => replies,
            (0, _) => refusals,
            _ => format!("{replies} and {refusals}"),
        }
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let sample = |sample: &&ErrorExample| {
            let facts: Vec<_> = sample.facts.iter().map(|(name, value)| json!([name, value])).collect();
            json!({ "at": sample.at_s, "detail": sample.detail, "facts": facts })
        };
        let finding = |finding: &CorrectnessFinding<'_>| {
            json!({
                "number": finding.kind.number(),
                "name": finding.kind.name(),
                "text": finding.kind.text(),
                "meaning": finding.kind.hint(),
                "side": finding.side.name(),
                "count": finding.count,
                "share": finding.share,
                "examples": finding.samples.iter().map(sample).collect::<Vec<_>>(),
            })
        };
        let VerificationStats { replies, bytes, uncompared, digests, due, marked } = self.verified;
        json!({
            "conclusion": self.conclusion(),
            "verified": {
                "replies": replies, "bytes": bytes, "uncompared": uncompared, "digests": digests, "due": due, "marked": marked,
            },
            "findings": self.findings.iter().map(finding).collect::<Vec<_>>(),
        })
    }
}

fn plural(n: u64) -> &'static str {
    if n == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::fold;
    use crate::testlog::Run;

    #[test]
    fn a_clean_run_says_what_was_compared() {
        let facts = fold(&Run::default().logs()).unwrap();
        let found = of_run(&facts);
        assert!(found.findings.is_empty());
        let total = &facts.client.as_ref().unwrap().total.as_ref().unwrap();
        let replies = number(Some(total.block.ok_count() as f64), 0);
        let text = found.conclusion();
        assert!(
            text.starts_with(&format!("No correctness error in {replies} verified replies of {replies} (")),
            "{text}"
        );
        assert!(text.contains(" MB compared, ") && !text.contains("MB of "), "{text}");
    }

    #[test]
    fn what_was_not_compared_is_told() {
        let run = Run { compare: false, ..Run::default() };
        let text = of_run(&fold(&run.logs()).unwrap()).conclusion();
        let (replies, rest) = text.split_once(" verified replies of ").unwrap();
        let replies = replies.rsplit(' ').next().unwrap();
        let compared = bytes(Some(replies.replace(',', "").parse().unwrap()));
        let rest = rest.split_once('(').unwrap().1;
        assert!(rest.starts_with(&format!("{compared} of ")) && rest.contains(" MB compared, "), "{text}");
    }

    #[test]
    fn nothing_verified_is_not_called_clean() {
        let run = Run { verify: false, ..Run::default() };
        let text = of_run(&fold(&run.logs()).unwrap()).conclusion();
        assert_eq!(text, "No correctness error was seen, but no reply was verified either.");
    }

    #[test]
    fn wrong_content_comes_first_with_its_evidence() {
        let run = Run {
            error: Some((20, ErrorKind::Stale)),
            second_error: Some((301, ErrorKind::PrivateLeak)),
            ..Run::default()
        };
        let facts = fold(&[run.client()]).unwrap();
        let found = of_run(&facts);
        let kinds: Vec<_> = found.findings.iter().map(|finding| finding.kind).collect();
        assert_eq!(kinds, [ErrorKind::PrivateLeak, ErrorKind::Stale]);
        let sample = found.findings[0].samples[0];
        assert!(sample.facts.iter().any(|(name, _)| name == "expected"), "{sample:?}");
        let json = found.json();
        assert_eq!(json["findings"][0]["name"], "private_leak");
        assert!(json["findings"][0]["examples"][0]["facts"].as_array().is_some_and(|facts| facts.len() > 3));
    }
}
