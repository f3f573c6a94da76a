//! The verdict and the conditions of a run, or the figures and the conditions of a comparison, as JUnit XML, which CI servers show as
//! tests.

use std::fmt::Write as _;

use crate::compare::{self, ChangeJudgement, Comparison, FigureChange};
use crate::facts::RunFacts;
use crate::threshold::Checked;
use crate::verdict::VerdictOutcome;

/// A test of the suite.
#[derive(Debug)]
struct JunitCase {
    name: String,
    /// Why it did not pass: `failure`, `error` if that says nothing about the device, or `skipped` if nothing is known, and the text.
    problem: Option<(&'static str, String)>,
    /// What was found, for a test that passed.
    found: String,
    /// Length of the run in seconds.
    seconds: f64,
}

/// A test for the verdict of a run and one for each condition.
pub fn of_run(facts: &RunFacts, conditions: &[Checked]) -> String {
    let verdict = &facts.verdict;
    let why = verdict.findings.iter().map(|finding| format!("\n{}", finding.text));
    let text = format!("{}{}", verdict.headline(), why.collect::<String>());
    let seconds = facts.headline.as_ref().map_or(0.0, |headline| headline.scope.seconds);
    let problem = match verdict.outcome {
        VerdictOutcome::Valid => None,
        VerdictOutcome::Failed => Some(("failure", text)),
        VerdictOutcome::Invalid => Some(("error", text)),
    };
    let condition = |checked: &Checked| JunitCase {
        name: format!("expect {}", checked.condition),
        problem: (checked.holds != Some(true)).then(|| ("failure", format!("not met: {}", checked.found))),
        found: checked.found.clone(),
        seconds: 0.0,
    };
    let verdict = JunitCase { name: "verdict".into(), problem, found: verdict.headline(), seconds };
    let cases: Vec<JunitCase> = std::iter::once(verdict).chain(conditions.iter().map(condition)).collect();
    suite(&facts.main_side().header().workload, &cases)
}

/// A test for each condition of a comparison, which must not hold, one for each group whose device has newly failed, and one for each
/// judged figure. A figure that is worse is a failure only if there are no conditions: else these say what is too much.
pub fn of_comparison(comparison: &Comparison<'_>, conditions: &[Checked]) -> String {
    let condition = |checked: &Checked| JunitCase {
        name: format!("fail_on {}, {}", checked.condition, checked.place),
        problem: match checked.holds {
            Some(true) => Some(("failure", checked.found.clone())),
            Some(false) => None,
            None => Some(("error", format!("not decided: {}", checked.found))),
        },
        found: checked.found.clone(),
        seconds: 0.0,
    };
    let verdict = |(name, verdict): (&str, String)| JunitCase {
        name: format!("verdict of {name}"),
        problem: Some(("failure", verdict)),
        found: String::new(),
        seconds: 0.0,
    };
    let failing = comparison.newly_failed().into_iter().map(verdict);
    let mut cases: Vec<JunitCase> = conditions.iter().map(condition).chain(failing).collect();
    for part in &comparison.parts {
        for row in &part.rows {
            let of_group = |(index, change): (usize, &FigureChange)| {
                let found = compare::in_words(row, index + 1, change);
                JunitCase {
                    name: format!(
                        "{} in {}, {}",
                        row.figure.name,
                        part.phase,
                        comparison.groups[index + 1].name
                    ),
                    problem: match change.judgement {
                        ChangeJudgement::Worse if conditions.is_empty() => Some(("failure", found.clone())),
                        ChangeJudgement::Unknown => Some(("skipped", found.clone())),
                        _ => None,
                    },
                    found,
                    seconds: 0.0,
                }
            };
            cases.extend(row.changes.iter().enumerate().map(of_group));
        }
    }
    suite("compare", &cases)
}

/// A test for runs that cannot be compared, for this reason.
pub fn of_refusal(why: &str) -> String {
    let problem = Some(("error", why.to_owned()));
    suite("compare", &[JunitCase { name: "comparable".into(), problem, found: String::new(), seconds: 0.0 }])
}

/// A test for a run that could not start; `is_verdict`: because of the device.
pub fn of_failure(text: &str, is_verdict: bool) -> String {
    let kind = if is_verdict { "failure" } else { "error" };
    let problem = Some((kind, text.to_owned()));
    suite("run", &[JunitCase { name: "verdict".into(), problem, found: String::new(), seconds: 0.0 }])
}

fn suite(name: &str, cases: &[JunitCase]) -> String {
    let count = |kind: &str| {
        cases.iter().filter(|case| case.problem.as_ref().is_some_and(|(is, _)| *is == kind)).count()
    };
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"polygraph {}\" tests=\"{}\" failures=\"{}\" \
         errors=\"{}\" skipped=\"{}\">\n",
        escaped(name),
        cases.len(),
        count("failure"),
        count("error"),
        count("skipped"),
    );
    for JunitCase { name, problem, found, seconds } in cases {
        let _ =
            write!(out, "<testcase classname=\"polygraph\" name=\"{}\" time=\"{seconds:.3}\"", escaped(name));
        match problem {
            None if found.is_empty() => out.push_str("/>\n"),
            None => {
                let _ = writeln!(out, ">\n<system-out>{}</system-out>\n</testcase>", escaped(found));
            }
            Some((kind, why)) => {
                let first = escaped(why.lines().next().unwrap_or_default());
                let _ =
                    writeln!(out, ">\n<{kind} message=\"{first}\">{}</{kind}>\n</testcase>", escaped(why));
            }
        }
    }
    out + "</testsuite>\n</testsuites>\n"
}

/// Text for elements and attributes, without characters that XML cannot represent.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    let allowed = |c: &char| !matches!(c, '\u{fffe}' | '\u{ffff}') && (!c.is_control() || *c == '\n');
    for c in text.chars().filter(allowed) {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_become_tests() {
        let case = |name: &str, problem: Option<(&'static str, &str)>| JunitCase {
            name: name.into(),
            problem: problem.map(|(kind, why)| (kind, why.to_owned())),
            found: if name == "good" { "3 < 4".into() } else { String::new() },
            seconds: 1.0,
        };
        let cases = [
            case("verdict", None),
            case("expect rptm.p95<2s", Some(("failure", "not met: \"3 s\"\nmore"))),
            case("x", Some(("error", "a & b\u{1b}\u{ffff}"))),
            case("good", None),
            case("unknown", Some(("skipped", "too short"))),
        ];
        let found = suite("poly<mix>", &cases);
        let expected = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n\
            <testsuite name=\"polygraph poly&lt;mix&gt;\" tests=\"5\" failures=\"1\" errors=\"1\" skipped=\"1\">\n\
            <testcase classname=\"polygraph\" name=\"verdict\" time=\"1.000\"/>\n\
            <testcase classname=\"polygraph\" name=\"expect rptm.p95&lt;2s\" time=\"1.000\">\n\
            <failure message=\"not met: &quot;3 s&quot;\">not met: &quot;3 s&quot;\nmore</failure>\n</testcase>\n\
            <testcase classname=\"polygraph\" name=\"x\" time=\"1.000\">\n\
            <error message=\"a &amp; b\">a &amp; b</error>\n</testcase>\n\
            <testcase classname=\"polygraph\" name=\"good\" time=\"1.000\">\n<system-out>3 &lt; 4</system-out>\n</testcase>\n\
            <testcase classname=\"polygraph\" name=\"unknown\" time=\"1.000\">\n\
            <skipped message=\"too short\">too short</skipped>\n</testcase>\n</testsuite>\n</testsuites>\n";
        assert_eq!(found, expected);
    }
}
