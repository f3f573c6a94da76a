//! Results as JUnit XML, which CI servers show as tests.

use std::fmt::Write as _;
use std::path::Path;

use polygraph_report::threshold::Checked;
use polygraph_report::{RunFacts, RunOutcome};

use crate::Failure;

/// One test.
#[derive(Debug)]
struct Case {
    name: String,
    /// How it is called that it is not good (`failure`, or `error` if it says nothing of the device), and why.
    wrong: Option<(&'static str, String)>,
    seconds: f64,
}

/// Writes the verdict and the conditions of a run.
///
/// # Errors
/// If the file cannot be written.
pub fn write(path: &Path, facts: &RunFacts, conditions: &[Checked]) -> Result<(), Failure> {
    let verdict = &facts.verdict;
    let why = verdict.findings.iter().map(|finding| format!("\n{}", finding.text));
    let told = format!("{}{}", verdict.headline(), why.collect::<String>());
    let seconds = facts.headline.as_ref().map_or(0.0, |headline| headline.scope.seconds);
    let wrong = match verdict.outcome {
        RunOutcome::Valid => None,
        RunOutcome::Failed => Some(("failure", told)),
        RunOutcome::Invalid => Some(("error", told)),
    };
    let condition = |checked: &Checked| Case {
        name: format!("expect {}", checked.condition),
        wrong: (!checked.holds).then(|| ("failure", format!("not met: {}", checked.found))),
        seconds: 0.0,
    };
    let verdict = Case { name: "verdict".into(), wrong, seconds };
    let cases: Vec<Case> = std::iter::once(verdict).chain(conditions.iter().map(condition)).collect();
    save(path, &facts.main_side().header().workload, &cases)
}

/// Writes that a run could not begin.
///
/// # Errors
/// If the file cannot be written.
pub fn write_failure(path: &Path, failure: &Failure) -> Result<(), Failure> {
    let kind = if failure.verdict { "failure" } else { "error" };
    let wrong = Some((kind, failure.to_string()));
    save(path, "run", &[Case { name: "verdict".into(), wrong, seconds: 0.0 }])
}

fn save(path: &Path, suite: &str, cases: &[Case]) -> Result<(), Failure> {
    std::fs::write(path, text(suite, cases))
        .map_err(|e| Failure::setup(anyhow::anyhow!("cannot write {}: {e}", path.display())))
}

fn text(suite: &str, cases: &[Case]) -> String {
    let count = |kind: &str| {
        cases.iter().filter(|case| case.wrong.as_ref().is_some_and(|(is, _)| *is == kind)).count()
    };
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"polygraph {}\" tests=\"{}\" failures=\"{}\" \
         errors=\"{}\">\n",
        escaped(suite),
        cases.len(),
        count("failure"),
        count("error"),
    );
    for Case { name, wrong, seconds } in cases {
        let _ =
            write!(out, "<testcase classname=\"polygraph\" name=\"{}\" time=\"{seconds:.3}\"", escaped(name));
        match wrong {
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

/// Text for elements and attributes; what XML cannot hold is left out.
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
        let case = |name: &str, wrong: Option<(&'static str, &str)>| Case {
            name: name.into(),
            wrong: wrong.map(|(kind, why)| (kind, why.to_owned())),
            seconds: 1.0,
        };
        let cases = [
            case("verdict", None),
            case("expect rptm.p95<2s", Some(("failure", "not met: \"3 s\"\nmore"))),
            case("x", Some(("error", "a & b\u{1b}"))),
        ];
        let found = text("poly<mix>", &cases);
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
