//! The verdict and the conditions of a run as JUnit XML, which CI servers show as tests.

use std::fmt::Write as _;

use crate::facts::RunFacts;
use crate::threshold::Checked;
use crate::verdict::VerdictOutcome;

/// A test of the suite.
#[derive(Debug)]
struct JunitCase {
    name: String,
    /// Why it did not pass: `failure`, or `error` if that says nothing about the device, and the text.
    problem: Option<(&'static str, String)>,
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
        seconds: 0.0,
    };
    let verdict = JunitCase { name: "verdict".into(), problem, seconds };
    let cases: Vec<JunitCase> = std::iter::once(verdict).chain(conditions.iter().map(condition)).collect();
    suite(&facts.main_side().header().workload, &cases)
}

/// A test for a run that could not start; `is_verdict`: because of the device.
pub fn of_failure(text: &str, is_verdict: bool) -> String {
    let kind = if is_verdict { "failure" } else { "error" };
    let problem = Some((kind, text.to_owned()));
    suite("run", &[JunitCase { name: "verdict".into(), problem, seconds: 0.0 }])
}

fn suite(name: &str, cases: &[JunitCase]) -> String {
    let count = |kind: &str| {
        cases.iter().filter(|case| case.problem.as_ref().is_some_and(|(is, _)| *is == kind)).count()
    };
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"polygraph {}\" tests=\"{}\" failures=\"{}\" \
         errors=\"{}\">\n",
        escaped(name),
        cases.len(),
        count("failure"),
        count("error"),
    );
    for JunitCase { name, problem, seconds } in cases {
        let _ =
            write!(out, "<testcase classname=\"polygraph\" name=\"{}\" time=\"{seconds:.3}\"", escaped(name));
        match problem {
            None => out.push_str("/>\n"),
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
    for c in text.chars().filter(|c| !c.is_control() || *c == '\n') {
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
            seconds: 1.0,
        };
        let cases = [
            case("verdict", None),
            case("expect rptm.p95<2s", Some(("failure", "not met: \"3 s\"\nmore"))),
            case("x", Some(("error", "a & b\u{1b}"))),
        ];
        let found = suite("poly<mix>", &cases);
        let expected = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n\
            <testsuite name=\"polygraph poly&lt;mix&gt;\" tests=\"3\" failures=\"1\" errors=\"1\">\n\
            <testcase classname=\"polygraph\" name=\"verdict\" time=\"1.000\"/>\n\
            <testcase classname=\"polygraph\" name=\"expect rptm.p95&lt;2s\" time=\"1.000\">\n\
            <failure message=\"not met: &quot;3 s&quot;\">not met: &quot;3 s&quot;\nmore</failure>\n</testcase>\n\
            <testcase classname=\"polygraph\" name=\"x\" time=\"1.000\">\n\
            <error message=\"a &amp; b\">a &amp; b</error>\n</testcase>\n</testsuite>\n</testsuites>\n";
        assert_eq!(found, expected);
    }
}
