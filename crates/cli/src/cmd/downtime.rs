//! `polygraph downtime`: kills the device in the middle of a test, starts it again, and says when robots had it back.

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use polygraph_plan::{Goal, Phase, Schedule, values};
use polygraph_report::downtime::{DOWNTIME, Downtime, PowerCut, downtime};
use polygraph_report::{Extras, Log, write_html};
use serde_json::Value;

use crate::bench::BenchOptions;
use crate::device::{self, DeviceOptions};
use crate::{Done, Failure, console, exit};

/// The phase in which the device is off.
const DARK: &str = "dark";

/// Options of `downtime`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    mut_arg("device", |arg| arg.required(true)),
    mut_arg("goal", |arg| arg.hide(true)),
    mut_arg("stats_cycle", |arg| arg.default_value("100msec")),
    mut_arg("config", |arg| arg.conflicts_with_all([
        "origin_address", "origin_port", "xact_think", "rep_sz", "robots", "req_rate", "rep_cachable", "dhr",
        "pop_model", "tmp_loc", "repeat_delay", "launch_win", "local_addrs", "xact_lifetime", "pconn_use_lmt",
        "http_version", "warm", "load", "meas",
    ])),
    after_help = "Example, Squid with a cache on disk, which survives:\n  \
        polygraph downtime --device squid --device_opt disk=1GB --device_opt mem=1MB --req_rate 100/sec\n\
        A workload file needs a phase called `dark`, as workloads/downtime-2.pg has one."
)]
pub struct Args {
    #[command(flatten)]
    device: DeviceOptions,
    /// The cache fills
    #[arg(long, value_name = "TIME", default_value = "1min", value_parser = values::time, help_heading = "Phases")]
    warm: f64,
    /// The level before is measured
    #[arg(long, value_name = "TIME", default_value = "1min", value_parser = values::time, help_heading = "Phases")]
    load: f64,
    /// The device is off. Default: as the workload says, or 5sec
    #[arg(long, value_name = "TIME", value_parser = values::time, help_heading = "Phases")]
    dark: Option<f64>,
    /// The device is back
    #[arg(long, value_name = "TIME", default_value = "2min", value_parser = values::time, help_heading = "Phases")]
    meas: f64,
    #[command(flatten)]
    bench: BenchOptions,
}

/// Runs the test and shows the table.
pub fn run(args: Args) -> Done {
    if args.bench.common.goal.is_some() {
        return Err(Failure::usage(
            "--goal has no meaning here: --warm, --load, --dark and --meas say how long",
        ));
    }
    let device = device::under_test(&args.device)?
        .ok_or_else(|| Failure::usage("a device that can be killed: name it with --device"))?;
    let mut test = args.bench.test("after Downtime-2", || schedule(&args))?;
    let Some(dark) = test.schedule.phases.iter_mut().find(|phase| phase.name == DARK) else {
        return Err(Failure::usage(format!(
            "the workload has no phase called `{DARK}`, in which the device is off"
        )));
    };
    dark.goal.duration = args.dark.or(dark.goal.duration);
    // While the device is off everything has to fail.
    dark.goal.errors = None;
    let mut bench = args.bench.bench(test, "downtime")?;
    bench.device = Some(device.off_in(DARK));
    bench.fail_timeout = None;
    let result = bench.run()?;
    console::print(&result.summary);
    let directory = result.directory.as_path();
    let found = analyse(directory)?;
    let table = found.text();
    keep(directory, &found, &table)?;
    // Only now there is something to show of the cut.
    write_html(&result.facts, &result.report, &Extras::of_run(directory)).map_err(Failure::data)?;
    console::print(&format!("\n{table}"));
    // A test that was stopped, or whose bench was at fault, says nothing of the device.
    let is_back = found.first_reply_s.is_some();
    Ok(if is_back { result.code } else { ExitCode::from(exit::FAILED) })
}

/// The phases of Downtime-2. Results are those of the phase before the cut.
fn schedule(args: &Args) -> Schedule {
    let phase = |name: &str, seconds| Phase {
        name: name.into(),
        primary: name == "load",
        // What fails while the device is off is no fault of the test.
        log_stats: name != DARK,
        goal: Goal { duration: Some(seconds), ..Goal::default() },
        ..Phase::default()
    };
    let phases = vec![
        phase("warm", args.warm),
        phase("load", args.load),
        phase(DARK, args.dark.unwrap_or(5.0)),
        phase("meas", args.meas),
    ];
    Schedule { phases, working_set: None }
}

/// What a result directory says of the cut.
fn analyse(directory: &Path) -> Result<Downtime, Failure> {
    let path = directory.join("manifest.json");
    let text = std::fs::read_to_string(&path).map_err(Failure::data)?;
    let manifest: Value = serde_json::from_str(&text).map_err(Failure::data)?;
    let power = &manifest["device"]["result"]["power"];
    if let Some(why) = power["failure"].as_str() {
        console::warn(&format!("the device did not come back: {why}"));
    }
    let client = Log::open(&directory.join("client.log")).map_err(Failure::data)?.log;
    let start = client.header.start_unix_ns;
    let moment = |name: &str| power[name].as_u64().map(|ns| ns.saturating_sub(start) as f64 * 1e-9);
    let Some(killed_s) = moment("killed_unix_ns") else {
        return Err(Failure::data(anyhow::anyhow!("the test ended before the device was killed")));
    };
    let cut = PowerCut {
        killed_s,
        restarted_s: moment("restarted_unix_ns"),
        listening_s: moment("listening_unix_ns"),
    };
    Ok(downtime(&client, cut))
}

/// Writes the table to the result directory, for people and for programs.
fn keep(directory: &Path, found: &Downtime, table: &str) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(found).map_err(Failure::setup)? + "\n";
    for (name, text) in [("downtime.txt", table), (DOWNTIME, json.as_str())] {
        let path = directory.join(name);
        polygraph_report::write_whole(&path, text)
            .map_err(|e| Failure::setup(anyhow::anyhow!("cannot write {}: {e}", path.display())))?;
    }
    Ok(())
}
