//! `polygraph fleet ls`, `doctor` and `stop`: one question to all agents.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use polygraph_fleet::controller::Candidate;
use polygraph_fleet::protocol::{AgentRequest, Answer};
use polygraph_fleet::{AgentName, Fleet, RunId};
use polygraph_runner::Failure;
use serde_json::json;

use super::FleetTarget;
use crate::exit::{DISTORTED, Done, FAILED, SETUP};
use crate::options::fleet::failure;
use crate::output;

/// How long the quick check of a host may take.
const DOCTOR: Duration = Duration::from_secs(30);
/// How long an agent may take to pass a signal on.
const STOP: Duration = Duration::from_secs(5);

/// Options of `fleet ls`.
#[derive(Args, Debug)]
#[command(rename_all = "snake_case")]
pub struct LsArgs {
    #[command(flatten)]
    target: FleetTarget,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Options of `fleet doctor`.
#[derive(Args, Debug)]
#[command(rename_all = "snake_case")]
pub struct DoctorArgs {
    #[command(flatten)]
    target: FleetTarget,
}

/// Options of `fleet stop`.
#[derive(Args, Debug)]
#[command(rename_all = "snake_case")]
pub struct StopArgs {
    #[command(flatten)]
    target: FleetTarget,
    /// Only the processes of this run
    #[arg(long, value_name = "RUN", value_parser = run_id)]
    run: Option<RunId>,
}

fn run_id(text: &str) -> Result<RunId, String> {
    text.parse().map_err(|error| format!("{error}"))
}

/// Lists the agents.
pub async fn ls(args: &LsArgs) -> Done {
    let mut fleet = args.target.connect().await?;
    let found = fleet.inventory(&args.target.agents, args.target.wait).await.map_err(failure)?;
    let mut agents = Vec::new();
    for inventory in found {
        let clock = fleet.clock_offset(&inventory.name).await.ok();
        agents.push(Candidate { inventory, clock });
    }
    if args.json {
        let all: Vec<_> = agents.iter().map(json_of).collect();
        output::print_json(&json!({ "agents": all }));
    } else if agents.is_empty() {
        return Err(nobody());
    } else {
        output::print(&table(&agents));
    }
    Ok(ExitCode::SUCCESS)
}

fn nobody() -> Failure {
    Failure::setup(anyhow::anyhow!("no agent answers: start `polygraph agent --nats URL` on the hosts"))
}

fn json_of(agent: &Candidate) -> serde_json::Value {
    let mut all = json!(agent.inventory);
    all["clock_offset_s"] = json!(agent.clock.map(|clock| clock.seconds));
    all["clock_uncertainty_s"] = json!(agent.clock.map(|clock| clock.uncertainty));
    all
}

fn table(agents: &[Candidate]) -> String {
    let name = agents.iter().map(|agent| agent.inventory.name.as_str().len()).max().unwrap_or(0).max(5);
    let host = agents.iter().map(|agent| agent.inventory.host.len()).max().unwrap_or(0).max(4);
    let mut text = format!(
        "{:name$}  {:host$}  roles          cores  memory    disk free  weight  clock offset        version, run\n",
        "agent", "host"
    );
    for Candidate { inventory, clock } in agents {
        let roles: Vec<&str> = [("client", inventory.client), ("server", inventory.server)]
            .into_iter()
            .filter_map(|(role, has)| has.then_some(role))
            .collect();
        let busy = inventory.busy.as_ref().map_or_else(String::new, |run| format!(", runs {run}"));
        let clock = clock.map_or_else(|| "-".to_owned(), |clock| clock.to_string());
        let _ = writeln!(
            text,
            "{:name$}  {:host$}  {:13}  {:>5}  {:>6.1}GB  {:>7.1}GB  {:>6}  {clock:18}  {}{busy}",
            inventory.name,
            inventory.host,
            roles.join(","),
            inventory.cores,
            inventory.memory as f64 / 1e9,
            inventory.disk_free as f64 / 1e9,
            inventory.weight,
            inventory.version,
        );
    }
    text
}

/// Checks all hosts.
pub async fn doctor(args: &DoctorArgs) -> Done {
    let mut fleet = args.target.connect().await?;
    let names = names(&mut fleet, &args.target).await?;
    let asked = names.iter().map(|name| (name, AgentRequest::Doctor { words: Vec::new() }));
    let mut worst = 0;
    for (agent, answer) in fleet.ask_all(asked, "the doctor", DOCTOR).await {
        match answer.map_err(failure)? {
            Answer::Output { code, text } => {
                output::print(&format!("== {agent}\n{text}"));
                worst = worst.max(match code {
                    Some(0) => 0,
                    Some(code) if code == i32::from(DISTORTED) => 1,
                    Some(code) if code == i32::from(FAILED) => 2,
                    _ => 3,
                });
            }
            other => return Err(Failure::setup(anyhow::anyhow!("{agent}: unexpected answer: {other:?}"))),
        }
    }
    Ok(ExitCode::from([0, DISTORTED, FAILED, SETUP][worst]))
}

/// Ends processes.
pub async fn stop(args: &StopArgs) -> Done {
    let mut fleet = args.target.connect().await?;
    let names = names(&mut fleet, &args.target).await?;
    let asked = names.iter().map(|name| (name, AgentRequest::Stop { run: args.run.clone() }));
    for (agent, answer) in fleet.ask_all(asked, "stop", STOP).await {
        answer.map_err(failure)?;
        output::note(&format!("{agent}: processes were asked to end"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The agents that are meant.
async fn names(fleet: &mut Fleet, target: &FleetTarget) -> Result<Vec<AgentName>, Failure> {
    let found = fleet.inventory(&target.agents, target.wait).await.map_err(failure)?;
    let names: Vec<AgentName> = found.into_iter().map(|inventory| inventory.name).collect();
    if names.is_empty() { Err(nobody()) } else { Ok(names) }
}
