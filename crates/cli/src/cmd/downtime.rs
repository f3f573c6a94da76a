//! `polygraph downtime`: kills the device during a test, restarts it, and measures the outage that robots see.

use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use polygraph_plan::{Goal, Phase, Schedule, values};
use polygraph_report::downtime::{DOWNTIME, Downtime, PowerCut, downtime};
use polygraph_report::{Extras, Log, write_html};
use polygraph_runner::{Failure, write_file};
use serde_json::Value;

use crate::exit::{self, Done};
use crate::options::{BenchOptions, DeviceOptions, LiveOptions};
use crate::output::{self, RunConsole};

/// The phase in which the device is off.
const DARK: &str = "dark";

/// Options of `downtime`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    mut_arg("device", |arg| arg.required(true)),
    mut_arg("goal", |arg| arg.hide(true)),
    mut_arg("stats_cycle", |arg| arg.default_value("100msec")),
    after_help = "Example, Squid with a cache on disk, which survives the failure:\n  \
        polygraph downtime --device squid --device_opt disk=1GB --device_opt mem=1MB --req_rate 100/sec\n\
        A workload file needs a phase called `dark`, like the one in `polygraph workloads show downtime-2`."
)]
pub struct Args {
    #[command(flatten)]
    device: DeviceOptions,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Length of the phase in which the cache fills
    #[arg(long, value_name = "TIME", default_value = "1min", value_parser = values::time, help_heading = "Phases", conflicts_with = "config")]
    warm: f64,
    /// Length of the phase before the failure, which is measured for comparison
    #[arg(long, value_name = "TIME", default_value = "1min", value_parser = values::time, help_heading = "Phases", conflicts_with = "config")]
    load: f64,
    /// Length of the phase in which the device is off. Default: as in the workload, or 5sec
    #[arg(long, value_name = "TIME", value_parser = values::time, help_heading = "Phases")]
    dark: Option<f64>,
    /// Length of the phase after the restart of the device
    #[arg(long, value_name = "TIME", default_value = "2min", value_parser = values::time, help_heading = "Phases", conflicts_with = "config")]
    meas: f64,
    #[command(flatten)]
    bench: BenchOptions,
    #[command(flatten)]
    live: LiveOptions,
}

/// Runs the test and shows the table.
pub fn run(args: Args) -> Done {
    if args.bench.common.goal.is_some() {
        return Err(Failure::usage(
            "--goal cannot be used here: set the lengths of phases with --warm, --load, --dark and --meas",
        ));
    }
    let missing = || Failure::usage("name a device with --device");
    let device = args.device.device()?.ok_or_else(missing)?;
    let settings = args.bench.common.run_settings();
    let mut test = args.bench.test("after Downtime-2", &settings, || schedule(&args))?;
    let Some(dark) = test.schedule.phases.iter_mut().find(|phase| phase.name == DARK) else {
        return Err(Failure::usage(format!(
            "the workload has no phase called `{DARK}`, in which the device is off"
        )));
    };
    dark.goal.duration = args.dark.or(dark.goal.duration);
    // While the device is off, everything must fail.
    dark.goal.errors = None;
    let mut bench = args.bench.bench(test, &settings, "downtime")?;
    bench.device = Some(device.off_in(DARK));
    bench.fail_timeout_s = None;
    let mut live = args.live.start()?;
    let mut console = RunConsole::new(args.bench.common.verb_lvl, &bench.test);
    let result = bench.run(|header, record| {
        live.observe(header, record);
        console.show(header, record);
    })?;
    if !args.json {
        output::print(&result.summary);
    }
    let directory = result.directory.as_path();
    let found = analyse(directory)?;
    let table = found.text();
    keep(directory, &found, &table)?;
    // The report that the run has written does not contain the downtime yet.
    write_html(&result.facts, &result.report, &Extras::of_run(directory)).map_err(Failure::data)?;
    let json = || {
        let mut all = result.json();
        all["downtime"] = serde_json::json!(found);
        all
    };
    output::print_either(args.json, json, || format!("\n{table}"));
    let is_back = found.first_reply_s.is_some();
    Ok(if is_back { exit::of_run(&result) } else { ExitCode::from(exit::FAILED) })
}

/// The phases of Downtime-2. The results of the run are those of the phase before the failure.
fn schedule(args: &Args) -> Schedule {
    let phase = |name: &str, seconds| Phase {
        name: name.into(),
        primary: name == "load",
        // Failures while the device is off are not errors of the test.
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

/// The downtime, from the files of a result directory.
fn analyse(directory: &Path) -> Result<Downtime, Failure> {
    let path = directory.join("manifest.json");
    let text = std::fs::read_to_string(&path).map_err(Failure::data)?;
    let manifest: Value = serde_json::from_str(&text).map_err(Failure::data)?;
    let power = &manifest["device"]["result"]["power"];
    if let Some(why) = power["failure"].as_str() {
        output::warn(&format!("the device did not restart: {why}"));
    }
    let client = Log::open(&directory.join("client.log")).map_err(Failure::data)?.log;
    let start = client.header.start_unix_ns;
    let seconds = |name: &str| power[name].as_u64().map(|ns| ns.saturating_sub(start) as f64 * 1e-9);
    let Some(killed_s) = seconds("killed_unix_ns") else {
        return Err(Failure::data(anyhow::anyhow!("the test ended before the device was killed")));
    };
    let cut = PowerCut {
        killed_s,
        restarted_s: seconds("restarted_unix_ns"),
        listening_s: seconds("listening_unix_ns"),
    };
    Ok(downtime(&client, cut))
}

/// Writes the table to the result directory, as text and as JSON.
fn keep(directory: &Path, found: &Downtime, table: &str) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(found).map_err(Failure::setup)? + "\n";
    for (name, text) in [("downtime.txt", table), (DOWNTIME, json.as_str())] {
        write_file(&directory.join(name), text)?;
    }
    Ok(())
}
