//! Result directories: their files, and the result of a run.

use std::path::{Path, PathBuf};

use polygraph_history::IndexedRun;
use polygraph_report::prediction::RunPrediction;
use polygraph_report::run_dir::Run;
use polygraph_report::verdict::{LimitingParty, VerdictFinding};
use polygraph_report::{Extras, RunFacts, fold_files, summary_text, write_html};
use polygraph_stats::{Class, Header};
use serde_json::{Value, json};

use crate::device::{DeviceReport, RobotCounts};
use crate::{Expectations, Failure, Notice, Notify, make_directory, write_file};

/// The result of a run.
#[derive(Debug)]
pub struct RunResult {
    /// The verdict and the main figures, for people.
    pub summary: String,
    /// The HTML report.
    pub report: PathBuf,
    /// The result directory.
    pub directory: PathBuf,
    /// The figures.
    pub facts: RunFacts,
    /// Whether the user stopped the run.
    pub interrupted: bool,
    /// Whether the run met all expectations.
    pub expectations_met: bool,
    /// Why a file could not be written, although the run is over and its verdict is known.
    pub trouble: Option<Failure>,
}

impl RunResult {
    /// The result as JSON: the figures of `polygraph runs --json`, findings, expectations and paths.
    pub fn json(&self) -> Value {
        let run = Run::of(&self.directory, self.facts.clone());
        let mut all = IndexedRun::of(&run).json();
        let manifest = run.manifest.unwrap_or_default();
        let verdict = &self.facts.verdict;
        let finding = |finding: &VerdictFinding| {
            json!({
                "rule": finding.rule,
                "weight": finding.weight.word(),
                "party": finding.party.map(LimitingParty::name),
                "text": finding.text,
            })
        };
        all["headline"] = json!(verdict.headline());
        all["limit"] = json!(verdict.limit.map(LimitingParty::name));
        all["findings"] = verdict.findings.iter().map(finding).collect();
        all["expected"] = manifest["expected"].clone();
        all["device_under_test"] = manifest["device"].clone();
        all["fleet"] = manifest["fleet"].clone();
        all["directory"] = json!(self.directory);
        all["report"] = json!(self.report);
        all["interrupted"] = json!(self.interrupted);
        all
    }
}

/// The parts of a result other than the logs.
#[derive(Debug)]
pub struct Conclusion<'a> {
    /// The result directory.
    pub directory: &'a Path,
    /// Its logs.
    pub logs: &'a [PathBuf],
    /// Whether the user stopped the run.
    pub interrupted: bool,
    /// Resources and counts of the device, if the run started it.
    pub device: Option<&'a DeviceReport>,
    /// The user's expectations.
    pub expectations: &'a Expectations,
}

/// A label as a file name of letters, digits, `-`, `_` and `.`. It does not start with a dot, because such files are hidden.
fn file_name(label: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = label.chars().map(plain).collect();
    let hidden = name.len() - name.trim_start_matches('.').len();
    "-".repeat(hidden) + &name[hidden..]
}

/// Creates a new directory `<label>-<time>`.
///
/// # Errors
/// If the directory cannot be created.
pub fn result_directory(runs: &Path, label: &str) -> Result<PathBuf, Failure> {
    let label = file_name(label);
    let time = jiff::Zoned::now().strftime("%Y-%m-%dT%H-%M-%S").to_string();
    make_directory(runs)?;
    for attempt in 0..100 {
        let suffix = if attempt == 0 { String::new() } else { format!("-{attempt}") };
        let path = runs.join(format!("{label}-{time}{suffix}"));
        match std::fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => {
                let path = path.display();
                return Err(Failure::setup(anyhow::anyhow!("cannot make the result directory {path}: {e}")));
            }
        }
    }
    Err(Failure::setup(anyhow::anyhow!(
        "cannot find a free name for a result directory in {}",
        runs.display()
    )))
}

/// Checks that a directory, which the user names for results, is new or empty.
///
/// # Errors
/// If the directory contains something, or cannot be read.
pub fn check_empty(directory: &Path) -> Result<(), Failure> {
    match std::fs::read_dir(directory).map(|entries| entries.count()) {
        Ok(0) => Ok(()),
        Ok(_) => Err(Failure::usage(format!(
            "--out {}: the directory is not empty; name a new one, or remove the results in it",
            directory.display()
        ))),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(Failure::setup(anyhow::anyhow!("cannot read {}: {e}", directory.display()))),
    }
}

/// The manifest: everything that is needed to repeat a run that started at `time`.
pub fn manifest(client: &Header, server: &Header, time: &jiff::Zoned) -> Value {
    let object = |pairs: &[(String, String)]| {
        pairs
            .iter()
            .map(|(name, value)| (name.clone(), value.clone().into()))
            .collect::<serde_json::Map<String, Value>>()
    };
    json!({
        "program": "polygraph",
        "version": client.version,
        "workload": client.workload,
        "label": client.label,
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        "command": client.command,
        "environment": object(&client.environment),
        "client": object(&client.settings),
        "server": object(&server.settings),
        "phases": client.phases.iter().map(|phase| json!({
            "name": phase.name,
            "primary": phase.primary,
            "duration_s": phase.duration_s,
            "transactions": phase.xactions,
            "fill_bytes": phase.fill_bytes,
        })).collect::<Vec<_>>(),
    })
}

/// Writes the manifest of a result directory.
///
/// # Errors
/// If the manifest cannot be written.
pub fn write_manifest(directory: &Path, manifest: &Value) -> Result<(), Failure> {
    let path = directory.join("manifest.json");
    let text = serde_json::to_string_pretty(manifest).map_err(Failure::setup)?;
    write_file(&path, text + "\n")
}

impl Conclusion<'_> {
    /// Computes the verdict from the logs, writes the report, with the result of `predict`, and adds the run to the
    /// history. A report that cannot be written is not an error, because the verdict does not need it: see
    /// [`RunResult::trouble`].
    ///
    /// # Errors
    /// If the logs cannot be read.
    pub fn write(
        self,
        manifest: &mut Value,
        predict: impl FnOnce(&RunFacts) -> Option<RunPrediction>,
        notify: Notify,
    ) -> Result<RunResult, Failure> {
        let Conclusion { directory, logs, interrupted, device, expectations } = self;
        let report = directory.join("report.html");
        let facts = read_logs(logs)?;
        let met = expectations.check(&facts);
        manifest["verdict"] = facts.verdict.json();
        let mut trouble = write_manifest(directory, manifest).err();
        trouble = trouble.or(expectations.publish(&facts, &met).err());
        let mut write = |name: &str, json: Option<Value>| {
            if let Some(json) = json {
                manifest[name] = json;
                write_manifest(directory, manifest)?;
            }
            write_html(&facts, &report, &Extras::of_run(directory)).map_err(Failure::setup)
        };
        // The first report is written before the prediction, which takes time: the user may not wait for it.
        trouble = trouble.or(write("expected", met.json()).err());
        let prediction = predict(&facts);
        if let Some(prediction) = &prediction {
            trouble = trouble.or(write("prediction", serde_json::to_value(prediction).ok()).err());
        }
        let run = Run::of(directory, facts);
        if let Err(error) = polygraph_history::record(&run) {
            notify(Notice::Note(format!("{error}; `polygraph runs` finds the run anyway")));
        }
        let facts = run.facts;
        // The summary names only files that could be written.
        let places = [("report", report.as_path()), ("logs", directory)];
        let places = if trouble.is_some() { &places[1..] } else { &places[..] };
        let device = device.map_or_else(String::new, |device| device.line(&robot_counts(&facts)));
        let predicted = prediction.map_or_else(String::new, |prediction| prediction.text());
        Ok(RunResult {
            summary: format!("\n{}{}{device}{predicted}", summary_text(&facts, places), met.text()),
            report,
            directory: directory.to_owned(),
            facts,
            interrupted,
            expectations_met: met.all_met(),
            trouble,
        })
    }
}

/// The verdict of a run that ended early, as far as its logs permit.
pub fn partial_summary(directory: &Path) -> Option<String> {
    let facts = fold_files(&logs(directory)).ok()?;
    Some(format!("\n{}", summary_text(&facts, &[("logs", directory)])))
}

/// Folds the logs of a run.
///
/// # Errors
/// If one of them cannot be read.
pub fn read_logs(logs: &[PathBuf]) -> Result<RunFacts, Failure> {
    fold_files(logs).map_err(Failure::data)
}

/// The logs of a run with both sides in one process.
pub fn logs(directory: &Path) -> [PathBuf; 2] {
    ["client.log", "server.log"].map(|name| directory.join(name))
}

/// Transactions and hits as robots count them, over all phases.
fn robot_counts(facts: &RunFacts) -> RobotCounts {
    let total = facts.client.as_ref().and_then(|side| side.total.as_ref());
    let count = |class| total.map_or(0, |total| total.block.class(class).rptm_us.count());
    RobotCounts {
        requests: total.map_or(0, |total| total.block.xacts.entered),
        hits: count(Class::Hit),
        basic: Class::ALL.into_iter().filter(|class| class.is_basic()).map(count).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_make_names_in_sight() {
        for (label, name) in [
            ("run", "run"),
            ("a b/c", "a-b-c"),
            (".hidden", "-hidden"),
            ("../up", "---up"),
            ("v1.2", "v1.2"),
            ("..", "--"),
        ] {
            assert_eq!(file_name(label), name);
        }
    }
}
