//! `polygraph devices`: what `run --device` can start, and what is on this machine.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Parser;
use polygraph_device::Device;

use crate::device::failure;
use crate::{Done, console};

/// Options of `devices`: none are needed.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Example:\n  polygraph run --device squid --device_opt mem=1GB --req_rate 100/sec --goal 5min"
)]
pub struct Args {}

/// Lists the devices.
pub fn run(_: Args) -> Done {
    let mut text = String::new();
    for device in Device::set().map_err(failure)? {
        let version = device.version().unwrap_or_else(|error| match error {
            polygraph_device::Error::Missing { remedy, .. } => format!("not on this machine; {remedy}"),
            other => other.to_string(),
        });
        let _ = writeln!(text, "{:<14} {:<10} {version}", device.name(), device.role().word());
        let _ = writeln!(text, "{:<14} {}", "", device.summary());
        for (name, setting) in device.options() {
            let choice = if setting.values.is_empty() { "...".into() } else { setting.values.join("|") };
            let _ =
                writeln!(text, "{:<14} {name}={choice}: {} (default {})", "", setting.help, setting.default);
        }
    }
    console::print(&text);
    Ok(ExitCode::SUCCESS)
}
