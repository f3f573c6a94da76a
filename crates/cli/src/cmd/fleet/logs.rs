//! `polygraph fleet logs`: logs that could not be collected at the end of a run.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use polygraph_fleet::protocol::{AgentRequest, Answer};
use polygraph_fleet::{AgentName, Fleet, FleetEvent, RunId};
use polygraph_runner::{Expectations, Failure};
use serde_json::Value;

use super::FleetTarget;
use super::result::{conclude, loss_text};
use crate::exit::{self, Done};
use crate::options::fleet::failure;
use crate::output;

/// Options of `fleet logs`.
#[derive(Args, Debug)]
#[command(rename_all = "snake_case")]
pub struct LogsArgs {
    /// Result directory of a run with a fleet whose logs are not all there. Default: list the runs on the agents' disks
    directory: Option<PathBuf>,
    #[command(flatten)]
    target: FleetTarget,
}

/// Fetches what is missing, and writes the report again; or lists runs.
pub async fn run(args: &LogsArgs) -> Done {
    let mut fleet = args.target.connect().await?;
    match &args.directory {
        Some(directory) => fetch(&mut fleet, directory).await,
        None => list(&mut fleet, &args.target).await,
    }
}

async fn list(fleet: &mut Fleet, target: &FleetTarget) -> Done {
    let found = fleet.inventory(&target.agents, target.wait).await.map_err(failure)?;
    let asked = found.iter().map(|inventory| (&inventory.name, AgentRequest::Runs));
    for (agent, answer) in fleet.ask_all(asked, "runs", target.wait).await {
        let Answer::Runs(runs) = answer.map_err(failure)? else { continue };
        for run in runs {
            let side = |side: &polygraph_fleet::protocol::SideState| {
                format!("{} {} ({:.1} MB)", side.side.name(), side.stage, side.log_bytes as f64 / 1e6)
            };
            let sides: Vec<String> = run.sides.iter().map(side).collect();
            output::print(&format!("{agent}  {}  {}\n", run.run, sides.join(", ")));
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn fetch(fleet: &mut Fleet, directory: &Path) -> Done {
    let no_run = |why: &str| Failure::usage(format!("{}: {why}", directory.display()));
    let text = std::fs::read(directory.join("manifest.json"))
        .map_err(|error| no_run(&format!("the manifest cannot be read: {error}")))?;
    let old: Value = serde_json::from_slice(&text).map_err(|error| no_run(&error.to_string()))?;
    let mut description = old["fleet"].clone();
    let run: RunId = description["run"]
        .as_str()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| no_run("this is not the result of a run with a fleet"))?;
    let missing: Vec<AgentName> =
        serde_json::from_value(description["missing_logs"].clone()).unwrap_or_default();
    if missing.is_empty() {
        output::note("no logs are missing");
        return Ok(ExitCode::SUCCESS);
    }
    let mut show = |event| {
        if let FleetEvent::Step(text) = event {
            output::note(&text);
        }
    };
    let fetched = fleet.collect(&run, &missing, directory, &mut show).await.map_err(failure)?;
    fleet.clean_up(&run).await;
    for (agent, why) in &fetched.missing {
        output::warn(&format!("{agent}: {why}"));
    }
    description["missing_logs"] = fetched.missing.iter().map(|(name, _)| name.to_string()).collect();
    let mut result = conclude(directory, &description, false, &Expectations::default())?;
    result.summary.push_str(&loss_text(&description, directory));
    output::print(&result.summary);
    Ok(if fetched.missing.is_empty() { exit::of_run(&result) } else { ExitCode::from(exit::SETUP) })
}
