//! `polygraph bakeoff`: series of runs, and their report.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use polygraph_bakeoff::entry::{AttemptStatus, Participant, RatePoint};
use polygraph_bakeoff::gather::{self, ResultSource};
use polygraph_bakeoff::journal::Journal;
use polygraph_bakeoff::page;
use polygraph_bakeoff::plan::{BakeoffPlan, DeviceLocation};
use polygraph_bakeoff::series::{self, Series, SeriesContext, SeriesEnd, SeriesNote};
use polygraph_device::{Device, Params};
use polygraph_runner::device::failure;
use polygraph_runner::{Failure, make_directory, write_file};
use serde_json::{Value, json};

use crate::exit::{self, Done};
use crate::options::device::params_of;
use crate::options::files::bakeoff_plan;
use crate::options::values::resolve;
use crate::output::{self, Progress};

/// The directory of bake-offs in the directory of results.
pub const BAKEOFFS: &str = "bakeoff";
/// The directory of imported results, beside bake-offs.
pub const IMPORTED: &str = "imported";

/// How long a device may take to accept a connection.
const REACH: Duration = Duration::from_secs(5);

/// Options of `bakeoff`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    args_conflicts_with_subcommands = true,
    after_help = "Run the same command again to resume a series that was stopped or killed.\n\
        Examples:\n  polygraph bakeoff five-caches\n  \
        polygraph import bakeoff-1\n  polygraph bakeoff report --out bakeoff.html"
)]
pub struct Args {
    #[command(subcommand)]
    command: Option<Sub>,
    /// Plan of the series (docs/bakeoff.md), or the name of a built-in one
    #[arg(value_name = "PLAN.toml", required = true, value_parser = bakeoff_plan)]
    plan: Option<PathBuf>,
    /// First delete all results of this device; repeatable
    #[arg(long, value_name = "NAME")]
    drop: Vec<String>,
    /// Show what would be done, and do nothing
    #[arg(long, conflicts_with = "json")]
    dry_run: bool,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
    /// Directory of results
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

#[derive(Subcommand, Debug)]
enum Sub {
    /// Write the report of series and imported results
    Report(ReportArgs),
}

/// Options of `bakeoff report`.
#[derive(Parser, Debug)]
#[command(rename_all = "snake_case")]
struct ReportArgs {
    /// Names of series and imports: those of the plan or of the imported file. Default: all
    names: Vec<String>,
    /// File for the report
    #[arg(long, value_name = "FILE", default_value = "bakeoff.html")]
    out: PathBuf,
    /// Title of the report
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Directory of results
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
}

/// Carries out a plan, or writes a report.
pub fn run(args: Args) -> Done {
    match (args.command, args.plan) {
        (Some(Sub::Report(args)), _) => report(&args),
        (None, Some(plan)) => carry_out(&plan, &args.runs, &args.drop, args.dry_run, args.json),
        (None, None) => Err(Failure::usage("name a plan: `polygraph bakeoff PLAN.toml`")),
    }
}

/// Carries out the plan in a file. Its results are in a directory with the name of the plan.
pub fn carry_out(path: &Path, runs: &Path, drop: &[String], dry_run: bool, json: bool) -> Done {
    let plan = BakeoffPlan::read(path).map_err(Failure::usage)?;
    let name = path.file_stem().map_or_else(|| "bakeoff".into(), |stem| stem.to_string_lossy().into_owned());
    if name == IMPORTED {
        return Err(Failure::usage(format!(
            "rename the plan: the directory {IMPORTED} is for imported results"
        )));
    }
    if name.starts_with('.') {
        return Err(Failure::usage(format!(
            "rename the plan {name}: its name, which is also the directory of its results, must not start with a dot"
        )));
    }
    if let Some(stranger) = drop.iter().find(|name| plan.devices.iter().all(|device| device.name != **name)) {
        return Err(Failure::usage(format!("--drop {stranger}: the plan has no such device")));
    }
    check_devices(&plan)?;
    let directory = runs.join(BAKEOFFS).join(&name);
    if dry_run {
        output::print(&gather::outlook(&plan, &directory).map_err(Failure::data)?);
        return Ok(ExitCode::SUCCESS);
    }
    reach_devices(&plan)?;
    make_directory(&directory)?;
    if !drop.is_empty() {
        let mut journal = Journal::open(&directory.join(series::JOURNAL)).map_err(Failure::setup)?;
        drop.iter()
            .try_for_each(|device| Series::drop_results(&mut journal, device))
            .map_err(Failure::setup)?;
    }
    let end = work(&plan, path, &directory)?;
    let out = directory.join("report.html");
    let sources = [ResultSource::Series { name, directory: directory.clone() }];
    write(&sources, None, &out)?;
    match end {
        SeriesEnd::Done => {
            let entries = gather::entries(&sources).map_err(Failure::data)?;
            output::print_either(
                json,
                || json_of(&entries, &out),
                || format!("{}report         {}\n", page::summary(&entries), out.display()),
            );
            Ok(ExitCode::SUCCESS)
        }
        SeriesEnd::Stopped => {
            output::note("stopped; run the same command again to resume");
            Ok(ExitCode::from(exit::INTERRUPTED))
        }
        SeriesEnd::BenchFails => Err(Failure::setup(anyhow::anyhow!(
            "the bench does not sustain {} requests per second without a device: lower the rates, or stop other programs on \
             this machine; to try again, raise rules.attempts in the plan",
            plan.top_rate()
        ))),
    }
}

/// The figures of all devices.
fn json_of(entries: &[Participant], report: &Path) -> Value {
    let point = |point: &RatePoint| {
        json!({
            "rate": point.rate,
            "passed": point.status == AttemptStatus::Passed,
            "rptm_mean_s": point.mean_s.map(|mean| mean.value),
            "dhr_percent": point.hit_pct.map(|ratio| ratio.value),
        })
    };
    let device = |entry: &Participant| {
        json!({
            "device": entry.name,
            "peak_rate": entry.achieved(),
            "claimed_rate": entry.claimed,
            "rates": entry.points.iter().map(point).collect::<Vec<_>>(),
        })
    };
    json!({ "devices": entries.iter().map(device).collect::<Vec<_>>(), "report": report })
}

/// A device of a plan with its parameters.
fn find(name: &str, options: &BTreeMap<String, String>) -> Result<(Device, Params), String> {
    let device = Device::find(name).map_err(|e| e.to_string())?;
    let options: Vec<(String, String)> = options.clone().into_iter().collect();
    Ok((device, params_of(&options)?))
}

/// Checks all devices of a plan before the first run, which may be hours before their own.
///
/// # Errors
/// If there is no such device, a parameter is wrong, or its program is not on this machine.
pub fn check_devices(plan: &BakeoffPlan) -> Result<(), Failure> {
    for contestant in &plan.devices {
        if let DeviceLocation::Device { name, options } = &contestant.target {
            let wrong = |why| Failure::usage(format!("device {}: {why}", contestant.name));
            let (device, _) = find(name, options).map_err(wrong)?;
            device.version().map_err(failure)?;
        }
    }
    Ok(())
}

/// Checks that devices that run elsewhere accept connections.
fn reach_devices(plan: &BakeoffPlan) -> Result<(), Failure> {
    for contestant in &plan.devices {
        if let DeviceLocation::Proxy(place) | DeviceLocation::Surrogate(place) = &contestant.target {
            let address = resolve(place)?;
            TcpStream::connect_timeout(&address, REACH).map_err(|e| {
                Failure::setup(anyhow::anyhow!(
                    "device {} cannot be reached at {place}: {e}; is it running?",
                    contestant.name
                ))
            })?;
        }
    }
    Ok(())
}

fn work(plan: &BakeoffPlan, path: &Path, directory: &Path) -> Result<SeriesEnd, Failure> {
    let mut progress = Progress::new(None);
    let mut notify = |note: SeriesNote| match note {
        SeriesNote::Event(text) => {
            progress.clear();
            output::note(&text);
        }
        SeriesNote::Progress(text) => progress.line(&text),
    };
    let program = std::env::current_exe()
        .map_err(|e| Failure::setup(anyhow::anyhow!("cannot find the program file: {e}")))?;
    let stage = SeriesContext { program, find: &find, notify: &mut notify };
    let mut series = Series::open(plan, directory, stage).map_err(Failure::setup)?;
    // Reports need a copy of the plan and the files that it names, as they were when the series ran.
    gather::keep_plan(path, plan, directory).map_err(Failure::setup)?;
    series.run().map_err(Failure::setup)
}

fn report(args: &ReportArgs) -> Done {
    let all = gather::sources(&args.runs.join(BAKEOFFS), IMPORTED);
    let known = || all.iter().map(ResultSource::name).collect::<Vec<_>>().join(", ");
    let mut chosen = Vec::new();
    for name in &args.names {
        let source = all.iter().find(|source| source.name() == name).ok_or_else(|| {
            Failure::usage(format!(
                "there is no series or import `{name}` in {}; known names: {}",
                args.runs.display(),
                known()
            ))
        })?;
        chosen.push(source.clone());
    }
    if args.names.is_empty() {
        chosen.clone_from(&all);
    }
    if chosen.is_empty() {
        return Err(Failure::usage(format!(
            "there are no results in {}: run `polygraph import bakeoff-1` or `polygraph bakeoff PLAN.toml`",
            args.runs.display()
        )));
    }
    write(&chosen, args.title.as_deref(), &args.out)?;
    output::note(&format!("report: {}", args.out.display()));
    Ok(ExitCode::SUCCESS)
}

fn write(sources: &[ResultSource], title: Option<&str>, out: &Path) -> Result<(), Failure> {
    let page = gather::page(sources, title).map_err(Failure::data)?;
    write_file(out, page)
}
