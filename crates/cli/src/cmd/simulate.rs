//! `polygraph simulate`: a whole test in virtual time, with a result directory like that of a real run.

use std::path::{Path, PathBuf};

use clap::Parser;
use polygraph_link::nanos;
use polygraph_runner::environment::Machine;
use polygraph_runner::result::{Conclusion, logs, manifest, result_directory, write_manifest};
use polygraph_runner::simulation::{EPOCH, Simulation, SimulationSetup};
use polygraph_runner::{Expectations, Failure, RunSettings, make_directory, simulation_table};
use polygraph_sim::device::Model;
use polygraph_stats::{EndReason, Side};

use crate::exit::{self, Done};
use crate::options::common::command_line;
use crate::options::files::workload;
use crate::options::make_test;
use crate::options::values::{cycle, device_model, optional_time, whole, yes_no};
use crate::options::{
    ExpectOptions, Optional, RobotToleranceOptions, SourceOptions, ToleranceOptions, VariantOptions,
    WorkingSetOptions,
};
use crate::output::{self, ClassicConsole, notify};

/// Options of `simulate`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Robots and servers are those of `run`. Clock, network and device are models.\n\
        Example:\n  \
        polygraph simulate polymix-1 --set ReqRate=50/sec --scale 1/60 --device lru:64MB"
)]
pub struct Args {
    /// Workload file in PGL, or the name of a built-in workload
    #[arg(value_name = "FILE|NAME", value_parser = workload)]
    file: String,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Model of the device: none, ideal (a cache that keeps everything), or a replacement policy with a cache size: lru:4GB
    /// or fifo:4GB. Optional parameters are the time that the device needs for hits and for other
    /// requests, and its maximum request rate: lru:4GB,hit=2ms,miss=5ms,rate=300/s
    #[arg(long, value_name = "MODEL", default_value = "ideal", value_parser = device_model)]
    device: Optional<Model>,
    /// Network delay in one direction
    #[arg(long, value_name = "TIME", default_value = "none", value_parser = optional_time)]
    net_delay: Optional<f64>,
    /// Result directory; existing files are replaced. Default: a new directory in `runs`
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    source: SourceOptions,
    #[command(flatten)]
    variant: VariantOptions,
    /// Share knowledge about objects that may be requested again between --loops, through the servers. Default: no, unless
    /// servers redirect (302 Found) to objects that they know from robots
    #[arg(long, value_name = "yes|no", value_parser = yes_no)]
    share_worlds: Option<bool>,
    /// A name for the run
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    label: String,
    /// Length of statistics intervals
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = cycle)]
    stats_cycle: f64,
    /// Number of groups of robots, each with its own objects, like the event loops of a real run
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole(1..=1024_u32))]
    loops: u32,
    /// Stop after this time without traffic
    #[arg(long, value_name = "TIME", default_value = "none", value_parser = optional_time)]
    idle_tout: Optional<f64>,
    /// Console detail: 1 shows phases, 2 also shows intervals
    #[arg(long, value_name = "LEVEL", default_value = "0", value_parser = whole(0..=u8::MAX))]
    verb_lvl: u8,
    /// Random seed for everything that both sides must agree on
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole(0..=u64::MAX))]
    global_rng_seed: u64,
    /// Random seed for all other choices
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole(0..=u64::MAX))]
    local_rng_seed: u64,
    #[command(flatten)]
    tolerance: ToleranceOptions,
    #[command(flatten)]
    robot_tolerance: RobotToleranceOptions,
    #[command(flatten)]
    working_set: WorkingSetOptions,
    #[command(flatten)]
    expectations: ExpectOptions,
}

impl Args {
    fn settings(&self) -> RunSettings {
        let interval_s = self.stats_cycle;
        RunSettings {
            command: command(),
            label: self.label.clone(),
            idle_timeout_s: self.idle_tout.0,
            loops: Some(self.loops as usize),
            ..RunSettings::of_simulation(self.global_rng_seed, self.local_rng_seed, interval_s)
        }
    }

    fn directory(&self) -> Result<PathBuf, Failure> {
        if let Some(directory) = &self.out {
            make_directory(directory)?;
            return Ok(directory.clone());
        }
        let label = if self.label.is_empty() { "simulation" } else { &self.label };
        result_directory(Path::new("runs"), label)
    }
}

/// Simulates a test.
pub fn run(args: Args) -> Done {
    let mut settings = args.settings();
    let working_set = args.working_set.open(&mut settings)?;
    let sharing = (args.share_worlds, false);
    let test = make_test::of_workload(
        &args.file,
        &args.source,
        args.variant,
        sharing,
        settings.global_seed,
        Machine::WITH_SERVERS,
    )?;
    let expectations = Expectations::from(args.expectations.clone());
    expectations.check_phases(&test.schedule)?;
    working_set.check(&test, notify)?;
    let directory = args.directory()?;
    // Simulations with different seeds have different times of day.
    let epoch = EPOCH + settings.local_seed % (1 << 32);
    let setup = SimulationSetup {
        delay: nanos(args.net_delay.0.unwrap_or(0.0)),
        tolerance: args.robot_tolerance.tolerance(args.tolerance.accept_foreign_msgs),
        server_tolerance: args.tolerance.into(),
        epoch,
        ..SimulationSetup::new(test, &settings, args.device.0, &working_set)
    };
    let simulation = Simulation::new(setup, Some(&directory)).inspect_err(|_| {
        // Removes the directory only if it is empty.
        let _ = std::fs::remove_dir(&directory);
    })?;
    let [client, server] = simulation.headers();
    let start = jiff::Timestamp::from_second(epoch as i64).map_err(Failure::setup)?;
    let mut manifest = manifest(client, server, &start.to_zoned(jiff::tz::TimeZone::UTC));
    let test = simulation.test.clone();
    let (mut console, mut lines) = (ClassicConsole::new(args.verb_lvl), Vec::new());
    let (mut outcome, device) = simulation.run(None, |header, record| {
        if header.side == Side::Client {
            lines.extend(simulation_table::working_set_line(record));
            if args.verb_lvl > 0 {
                console.show(header, record);
            }
        }
    })?;
    if let Some(figures) = &device {
        manifest["device"] = simulation_table::device_manifest(figures);
    }
    write_manifest(&directory, &manifest)?;
    let stored = working_set.store(&test, &settings, outcome.shares.take());
    let conclusion = Conclusion {
        directory: &directory,
        logs: &logs(&directory),
        interrupted: outcome.reason == EndReason::Interrupted,
        device: None,
        expectations: &expectations,
    };
    let result = conclusion.write(&mut manifest, |_| None, notify)?;
    let table = simulation_table::table(&result.facts, &lines, device.as_ref());
    output::print_either(args.json, || result.json(), || result.summary.clone() + &table);
    stored?;
    Ok(exit::of_run(&result))
}

/// The command line without the result directory: results do not depend on it.
fn command() -> Vec<String> {
    let mut words = Vec::new();
    let mut all = command_line().into_iter();
    while let Some(word) = all.next() {
        match word.as_str() {
            "--out" => drop(all.next()),
            other if other.starts_with("--out=") => {}
            _ => words.push(word),
        }
    }
    words
}
