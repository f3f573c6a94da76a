//! What came out of a run, for programs.

use polygraph_history::IndexedRun;
use polygraph_report::run_dir::Run;
use serde_json::json;

use crate::Failure;
use crate::result::RunResult;

/// The result of a run: the figures of `polygraph runs --json`, and more.
pub fn of_result(result: &RunResult) -> String {
    let run = Run::of(&result.directory, result.facts.clone());
    let mut all = IndexedRun::of(&run).json();
    let manifest = run.manifest.unwrap_or_default();
    let verdict = &result.facts.verdict;
    all["headline"] = json!(verdict.headline());
    all["limit"] = json!(verdict.limit.map(polygraph_report::verdict::LimitingParty::name));
    let finding = |finding: &polygraph_report::verdict::VerdictFinding| {
        json!({
            "rule": finding.rule,
            "weight": finding.weight.word(),
            "party": finding.party.map(polygraph_report::verdict::LimitingParty::name),
            "text": finding.text,
        })
    };
    all["findings"] = verdict.findings.iter().map(finding).collect();
    all["expected"] = manifest["expected"].clone();
    all["device_under_test"] = manifest["device"].clone();
    all["directory"] = json!(result.directory);
    all["report"] = json!(result.report);
    all["interrupted"] = json!(result.interrupted);
    format!("{all:#}\n")
}

/// Why a run did not begin. A device that did not answer has a verdict, whatever else is wrong has none.
pub fn of_failure(failure: &Failure) -> String {
    let verdict = failure.verdict.then_some("FAILED");
    let all =
        json!({ "verdict": verdict, "headline": failure.to_string(), "report": null, "directory": null });
    format!("{all:#}\n")
}
