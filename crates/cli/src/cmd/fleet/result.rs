//! The result directory of a run with a fleet.

use std::path::{Path, PathBuf};

use polygraph_runner::result::{Conclusion, manifest, read_logs, write_manifest};
use polygraph_runner::{Expectations, Failure, RunResult};
use serde_json::{Value, json};

use crate::options::common::command_line;
use crate::output::notify;

/// Writes the manifest and the report of the logs in a directory. `fleet` is what the manifest says about the fleet.
pub fn conclude(
    directory: &Path,
    fleet: &Value,
    interrupted: bool,
    expectations: &Expectations,
) -> Result<RunResult, Failure> {
    let mut logs: Vec<PathBuf> = std::fs::read_dir(directory)
        .map_err(Failure::setup)?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "log"))
        .collect();
    logs.sort();
    let facts = read_logs(&logs)?;
    let main = facts.main_side().header().clone();
    let header = |side: &Option<polygraph_report::facts::SideFacts>| {
        side.as_ref().map_or_else(|| main.clone(), |side| side.header().clone())
    };
    let mut all = manifest(&header(&facts.client), &header(&facts.server), &jiff::Zoned::now());
    all["command"] = json!(command_line());
    all["fleet"] = fleet.clone();
    write_manifest(directory, &all)?;
    let conclusion = Conclusion { directory, logs: &logs, interrupted, device: None, expectations };
    conclusion.write(&mut all, |_| None, notify)
}

/// What happened to the fleet and what was lost, for people.
pub fn loss_text(description: &Value, directory: &Path) -> String {
    let texts = |name: &str| -> Vec<String> {
        let all = description[name].as_array().into_iter().flatten();
        all.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let (lost, missing) = (texts("lost"), texts("missing_logs"));
    let mut text = String::new();
    let incidents = description["incidents"].as_array().into_iter().flatten();
    let incidents: Vec<String> = incidents
        .filter_map(|incident| {
            let time = incident["at"].as_str()?.get(11..19)?;
            Some(format!("  {time}  {}", incident["text"].as_str()?))
        })
        .collect();
    if !incidents.is_empty() {
        text += &format!("\nincidents during the run:\n{}\n", incidents.join("\n"));
    }
    if !lost.is_empty() {
        text += &format!("\nLOST during the run:\n  {}\n", lost.join("\n  "));
        text += match description["lost_policy"].as_str() {
            Some("degrade") => "the verdict is about the others (--lost degrade)\n",
            _ => "the run has FAILED because of that (--lost fail)\n",
        };
    }
    if !missing.is_empty() {
        text += &format!(
            "the logs of {} are missing here; they are on the disks of the hosts. When the agents are back:\n  \
             polygraph fleet logs {} --fleet URL\n",
            missing.join(", "),
            directory.display()
        );
    }
    text
}
