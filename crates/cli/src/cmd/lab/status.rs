//! `polygraph lab status` and `polygraph lab down`.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use polygraph_addr::{Addr, compact, join};
use polygraph_lab::{AgentPlaces, Lab, LabDirectory, LabHost, LabState, take_down};
use polygraph_netsetup::{Ledger, Namespace};
use polygraph_runner::Failure;
use polygraph_text::counted;
use serde_json::{Value, json};

use super::{failure, require_root, target};
use crate::exit::{Done, SETUP};
use crate::options::files::lab;
use crate::output;

/// Options of `lab status`.
#[derive(Args, Debug)]
#[command(rename_all = "snake_case")]
pub struct StatusArgs {
    /// Name of the lab, or its file. Default: all labs
    #[arg(value_parser = lab)]
    lab: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Options of `lab down`.
#[derive(Args, Debug)]
#[command(rename_all = "snake_case")]
pub struct DownArgs {
    /// Name of the lab, or its file
    #[arg(required_unless_present = "all", value_parser = lab)]
    lab: Option<String>,
    /// Remove all labs
    #[arg(long, conflicts_with = "lab")]
    all: bool,
}

/// Shows labs.
pub fn status(args: &StatusArgs) -> Done {
    let directory = LabDirectory::of_system();
    let names = match &args.lab {
        Some(text) => vec![target::name(text)?],
        None => directory.names(),
    };
    let labs: Vec<LabState> =
        names.iter().map(|name| directory.read(name)).collect::<Result<_, _>>().map_err(failure)?;
    if args.json {
        let all: Value = labs.iter().map(json_of).collect();
        output::print_json(&json!({ "labs": all }));
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for state in &labs {
        text += &hosts_text(&state.lab);
        if !state.complete {
            let _ = writeln!(text, "  not complete: `polygraph lab down {}` removes it", state.lab.name);
        }
    }
    if labs.is_empty() {
        text = "no lab is up\n".to_owned();
    }
    output::print(&text);
    Ok(ExitCode::SUCCESS)
}

/// The hosts of a lab as a table.
pub fn hosts_text(lab: &Lab) -> String {
    let mut text = format!("lab {}", lab.name);
    if !lab.summary.is_empty() {
        let _ = write!(text, ": {}", lab.summary);
    }
    text.push('\n');
    for host in &lab.hosts {
        let own: Vec<String> = host.addresses.iter().map(ToString::to_string).collect();
        let mut line = format!("  {:<8} {:<7} {:<16}", host.name, host.role.word(), own.join(" "));
        if !host.agents.is_empty() && host.places != AgentPlaces::None {
            let word = if host.places == AgentPlaces::Anyip { "AnyIP" } else { "aliases" };
            let _ = write!(line, " {} {word}: {}", host.agents.len(), agents(host));
        }
        if !host.wan.is_empty() {
            let words: Vec<&str> = host.wan.iter().map(|word| word.trim_start_matches("--")).collect();
            let _ = write!(line, "; {}", words.join(" "));
        }
        if let Some(device) = lab.device.filter(|device| host.addresses == [device.ip()]) {
            let _ = write!(line, " port {}", device.port());
        }
        let processes = processes(lab, host);
        if processes > 0 {
            let _ = write!(line, "; {}", counted(processes as u64, "process"));
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn agents(host: &LabHost) -> String {
    join(&compact(host.agents.iter().map(|ip| Addr::from(*ip))), ",")
}

fn processes(lab: &Lab, host: &LabHost) -> usize {
    Namespace::named(&lab.namespace(&host.name)).map_or(0, |namespace| namespace.processes().len())
}

fn json_of(state: &LabState) -> Value {
    let lab = &state.lab;
    let host = |host: &LabHost| {
        json!({
            "name": host.name,
            "role": host.role.word(),
            "namespace": lab.namespace(&host.name),
            "addresses": host.addresses,
            "agents": agents(host),
            "processes": processes(lab, host),
        })
    };
    json!({
        "name": lab.name,
        "file": lab.file,
        "complete": state.complete,
        "device": lab.device,
        "hosts": lab.hosts.iter().map(host).collect::<Vec<_>>(),
    })
}

/// Removes labs.
pub fn down(args: &DownArgs) -> Done {
    require_root()?;
    let directory = LabDirectory::of_system();
    let names = match &args.lab {
        Some(text) => vec![target::name(text)?],
        None => directory.names(),
    };
    let mut code = ExitCode::SUCCESS;
    for name in names {
        if !remove(&name)? {
            code = ExitCode::from(SETUP);
        }
    }
    Ok(code)
}

/// Removes a lab. Returns whether all of it is gone.
///
/// # Errors
/// If there is no such lab.
pub fn remove(name: &str) -> Result<bool, Failure> {
    let ledger = Ledger::of_system().map_err(Failure::setup)?;
    let undone = take_down(name, &LabDirectory::of_system(), &ledger).map_err(failure)?;
    for (change, error) in &undone.failed {
        output::warn(&format!("not undone: {change}: {error}"));
    }
    Ok(undone.failed.is_empty())
}
