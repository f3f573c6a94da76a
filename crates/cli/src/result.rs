//! Result directories: what is in them, and what came out of a test.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use polygraph_engine::RunOutcome;
use polygraph_report::prediction::RunPrediction;
use polygraph_report::run_dir::Run;
use polygraph_report::{Extras, RunFacts, fold_files, summary_text, write_html};
use polygraph_stats::{Class, EndReason};

use crate::expect::Expectations;
use crate::{Failure, console, device, exit};

/// What came out of a test.
#[derive(Debug)]
pub struct RunResult {
    /// The verdict and the main figures.
    pub summary: String,
    /// The report.
    pub report: PathBuf,
    /// The exit code.
    pub code: ExitCode,
    /// The result directory.
    pub directory: PathBuf,
    /// What was measured.
    pub facts: RunFacts,
    /// The user stopped it.
    pub interrupted: bool,
    /// What could not be written, although the test is over and its verdict is known.
    pub trouble: Option<Failure>,
}

/// A label as a name in a directory: of letters, digits, `-`, `_` and `.`, and in sight, for names that begin with a dot
/// are hidden.
fn file_name(label: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = label.chars().map(plain).collect();
    let hidden = name.len() - name.trim_start_matches('.').len();
    "-".repeat(hidden) + &name[hidden..]
}

/// Makes a directory `<label>-<time>` that does not exist yet.
///
/// # Errors
/// If it cannot be made.
pub fn result_directory(runs: &Path, label: &str) -> Result<PathBuf, Failure> {
    let label = file_name(label);
    let time = jiff::Zoned::now().strftime("%Y-%m-%dT%H-%M-%S").to_string();
    let wrong = |path: &Path, e: std::io::Error| {
        Failure::setup(anyhow::anyhow!("cannot make the result directory {}: {e}", path.display()))
    };
    std::fs::create_dir_all(runs).map_err(|e| wrong(runs, e))?;
    for attempt in 0..100 {
        let suffix = if attempt == 0 { String::new() } else { format!("-{attempt}") };
        let path = runs.join(format!("{label}-{time}{suffix}"));
        match std::fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(wrong(&path, e)),
        }
    }
    Err(Failure::setup(anyhow::anyhow!(
        "cannot find a free name for a result directory in {}",
        runs.display()
    )))
}

/// What one needs to know to repeat a run that began at `time`.
pub fn manifest(
    client: &polygraph_stats::Header,
    server: &polygraph_stats::Header,
    time: &jiff::Zoned,
) -> serde_json::Value {
    let object = |pairs: &[(String, String)]| {
        pairs
            .iter()
            .map(|(name, value)| (name.clone(), value.clone().into()))
            .collect::<serde_json::Map<String, serde_json::Value>>()
    };
    serde_json::json!({
        "program": "polygraph",
        "version": client.version,
        "workload": client.workload,
        "label": client.label,
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        "command": client.command,
        "environment": object(&client.environment),
        "client": object(&client.settings),
        "server": object(&server.settings),
        "phases": client.phases.iter().map(|phase| serde_json::json!({
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
/// If it cannot be written.
pub fn write_manifest(directory: &Path, manifest: &serde_json::Value) -> Result<(), Failure> {
    let path = directory.join("manifest.json");
    let text = serde_json::to_string_pretty(manifest).map_err(Failure::setup)?;
    polygraph_report::write_whole(&path, text + "\n")
        .map_err(|e| Failure::setup(anyhow::anyhow!("cannot write {}: {e}", path.display())))
}

/// Writes the report of a result directory, with what `predict` makes of the run, remembers the run and says what
/// came out. A report that cannot be written is no error: the verdict is worth something without it, see
/// [`RunResult::trouble`].
///
/// # Errors
/// If its logs cannot be read.
pub fn conclude(
    directory: &Path,
    outcome: &RunOutcome,
    device: Option<&device::Report>,
    expectations: &Expectations,
    manifest: &mut serde_json::Value,
    predict: impl FnOnce(&RunFacts) -> Option<RunPrediction>,
) -> Result<RunResult, Failure> {
    let paths = ["client.log", "server.log"].map(|name| directory.join(name));
    let report = directory.join("report.html");
    let facts = fold_files(&paths).map_err(Failure::data)?;
    let met = expectations.check(&facts);
    manifest["verdict"] = facts.verdict.json();
    let mut trouble = write_manifest(directory, manifest).err();
    trouble = trouble.or(expectations.publish(&facts, &met).err());
    let mut write = |name: &str, json: Option<serde_json::Value>| {
        if let Some(json) = json {
            manifest[name] = json;
            write_manifest(directory, manifest)?;
        }
        write_html(&facts, &report, &Extras::of_run(directory)).map_err(Failure::setup)
    };
    // A prediction takes its time: who does not wait for it has a report all the same.
    trouble = trouble.or(write("expected", met.json()).err());
    let prediction = predict(&facts);
    if let Some(prediction) = &prediction {
        trouble = trouble.or(write("prediction", serde_json::to_value(prediction).ok()).err());
    }
    let run = Run::of(directory, facts);
    if let Err(error) = polygraph_history::record(&run) {
        console::note(&format!("{error}; `polygraph runs` will find the run all the same"));
    }
    let facts = run.facts;
    // What could not be written is not named.
    let places = [("report", report.as_path()), ("logs", directory)];
    let places = if trouble.is_some() { &places[1..] } else { &places[..] };
    let device = device.map_or_else(String::new, |device| device.line(&client_counts(&facts)));
    let predicted = prediction.map_or_else(String::new, |prediction| prediction.text());
    let summary = format!("\n{}{}{device}{predicted}", summary_text(&facts, places), met.text());
    let code = match (&outcome.reason, facts.verdict.outcome) {
        (EndReason::Interrupted, _) => ExitCode::from(exit::INTERRUPTED),
        (_, polygraph_report::VerdictOutcome::Valid) => met.failure().unwrap_or(ExitCode::SUCCESS),
        _ => ExitCode::from(exit::FAILED),
    };
    let interrupted = outcome.reason == EndReason::Interrupted;
    Ok(RunResult { summary, report, code, directory: directory.to_owned(), facts, interrupted, trouble })
}

/// Says what the logs of a test tell that could not go on: its verdict, if there is enough for one.
pub fn explain(directory: &Path) {
    let paths = ["client.log", "server.log"].map(|name| directory.join(name));
    if let Ok(facts) = fold_files(&paths) {
        console::print(&format!("\n{}", summary_text(&facts, &[("logs", directory)])));
    }
}

/// Transactions and hits as the robots count them, over all phases.
fn client_counts(facts: &RunFacts) -> device::Seen {
    let total = facts.client.as_ref().and_then(|side| side.total.as_ref());
    let count = |class| total.map_or(0, |total| total.block.class(class).rptm_us.count());
    device::Seen {
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
