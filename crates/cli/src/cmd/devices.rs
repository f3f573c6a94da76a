//! `polygraph devices`: the devices that `run --device` can start, and which of them are on this machine.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Parser;
use polygraph_device::Device;
use polygraph_runner::device::failure;
use serde_json::{Value, json};

use crate::exit::Done;
use crate::output;

/// Options of `devices`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Example:\n  polygraph run --device squid --device_opt mem=1GB --req_rate 100/sec --goal 5min"
)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Lists the devices.
pub fn run(args: Args) -> Done {
    let devices = Device::set().map_err(failure)?;
    if args.json {
        let all: Value = devices.iter().map(json_of).collect();
        output::print_json(&json!({ "devices": all }));
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for device in devices {
        let version = device.version().unwrap_or_else(|error| match error {
            polygraph_device::Error::Missing { remedy, .. } => format!("not on this machine; {remedy}"),
            other => other.to_string(),
        });
        let _ = writeln!(text, "{:<14} {:<10} {version}", device.name(), device.role().word());
        let _ = writeln!(text, "{:<14} {}", "", device.summary());
        for (name, setting) in device.options() {
            let choice = if setting.values.is_empty() { "...".into() } else { setting.values.join("|") };
            let default = if setting.default.is_empty() { "none" } else { &setting.default };
            let _ = writeln!(text, "{:<14} {name}={choice}: {} (default {default})", "", setting.help);
        }
    }
    output::print(&text);
    Ok(ExitCode::SUCCESS)
}

/// A device as JSON. If its program is not on this machine, `version` is null, and `missing` says how to get it.
fn json_of(device: &Device) -> Value {
    let (version, missing) = match device.version() {
        Ok(version) => (Some(version), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let option = |(name, setting): (&str, &polygraph_device::Setting)| json!({ "name": name, "help": setting.help, "default": setting.default, "values": setting.values });
    json!({
        "name": device.name(),
        "role": device.role().word(),
        "summary": device.summary(),
        "version": version,
        "missing": missing,
        "options": device.options().into_iter().map(option).collect::<Vec<_>>(),
    })
}
