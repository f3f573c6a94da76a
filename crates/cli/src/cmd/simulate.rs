//! `polygraph simulate`: a whole test in virtual time, with a result directory like that of a real run.

use std::path::{Path, PathBuf};

use clap::Parser;
use polygraph_link::nanos;
use polygraph_pgl::Compat;
use polygraph_sim::device::Model;
use polygraph_stats::Side;
use polygraph_traffic::Distr;

use crate::console::{self, Classic};
use crate::expect::Expectations;
use crate::forecast;
use crate::options::{
    CommonOptions, ConfigOptions, Optional, RobotToleranceOptions, ToleranceOptions, WorkingSetOptions,
    cycle, optional_time, scale, whole, yes_no,
};
use crate::result::{conclude, manifest, result_directory, write_manifest};
use crate::simulation::{Setup, Simulation, device};
use crate::working_set::Files;
use crate::{Done, Failure, source};

/// The time of day at the start of all simulations: Thu, 01 Nov 2001 00:00:00 GMT, and a second more for every seed.
pub const EPOCH: u64 = 1_004_572_800;

/// Options of `simulate`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Robots and servers are those of `run`; only the clock, the network and the device are models.\n\
        Example:\n  \
        polygraph simulate workloads/polymix-1.pg --set ReqRate=50/sec --scale 1/60 --device lru:64MB"
)]
pub struct Args {
    /// Workload in PGL
    #[arg(value_name = "FILE")]
    file: String,
    /// The device: none, ideal (keeps everything), lru:4GB, fifo:4GB, s3fifo:4GB or tinylfu:4GB; then, if you like, the
    /// time that hits and other requests take in it, and its capacity: lru:4GB,hit=2ms,miss=5ms,rate=300/s
    #[arg(long, value_name = "MODEL", default_value = "ideal", value_parser = device)]
    device: Optional<Model>,
    /// Time from one end of the network to the other
    #[arg(long, value_name = "TIME", default_value = "none", value_parser = optional_time)]
    net_delay: Optional<f64>,
    /// The result directory; files in it are replaced. Default: a new one in `runs`
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Directories for `#include`, searched in order; repeatable, or separated by colons
    #[arg(long, value_name = "DIRS", value_delimiter = ':')]
    cfg_dirs: Vec<String>,
    /// Give a top-level name or field of the workload a value, in PGL notation
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = crate::pgl_cmds::setting)]
    settings: Vec<(String, String)>,
    /// Let the workload run commands: back quotes and system()
    #[arg(long)]
    allow_exec: bool,
    /// Make all phases so many times as long, in time, transactions and bytes, and the working set with them
    #[arg(long, value_name = "FACTOR", value_parser = scale)]
    scale: Option<f64>,
    /// Choose what to ask for by the rules of another version, over what the workload says: 4.9 for comparison with
    /// results of the original, none for our own, which judge devices (docs/compat.md)
    #[arg(long, value_name = "4.9|none")]
    compat: Option<Compat>,
    /// Tell other robots, through the servers, which objects may be asked for again; of use with several --loops.
    /// Default: yes if servers redirect (`302 Found`), to objects that they learn of this way, or else no
    #[arg(long, value_name = "yes|no", value_parser = yes_no)]
    share_worlds: Option<bool>,
    /// A name for the run
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    label: String,
    /// Length of statistics intervals
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = cycle)]
    stats_cycle: f64,
    /// Robots are divided into so many groups, each with objects of its own, as event loops of a real run do
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole(1..=1024_u32))]
    loops: u32,
    /// Stop after so long without traffic
    #[arg(long, value_name = "TIME", default_value = "none", value_parser = optional_time)]
    idle_tout: Optional<f64>,
    /// Console detail: 1 shows phases, 2 intervals too
    #[arg(long, value_name = "LEVEL", default_value = "0", value_parser = whole(0..=u8::MAX))]
    verb_lvl: u8,
    /// Seed of everything both sides agree on
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole(0..=u64::MAX))]
    global_rng_seed: u64,
    /// Seed of all other choices
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole(0..=u64::MAX))]
    local_rng_seed: u64,
    #[command(flatten)]
    tolerance: ToleranceOptions,
    #[command(flatten)]
    robot_tolerance: RobotToleranceOptions,
    #[command(flatten)]
    working_set: WorkingSetOptions,
    #[command(flatten)]
    expectations: Expectations,
}

impl Args {
    fn common(&self) -> CommonOptions {
        CommonOptions {
            goal: None,
            pconn_use_lmt: Distr::Const(1.0),
            http_version: 1,
            idle_tout: self.idle_tout,
            verb_lvl: self.verb_lvl,
            label: self.label.clone(),
            stats_cycle: self.stats_cycle,
            loops: Some(self.loops),
            workers: 0,
            global_rng_seed: self.global_rng_seed,
            unique_world: false,
            local_rng_seed: self.local_rng_seed,
            timer_quantum: 0.0,
            dump: Default::default(),
        }
    }

    fn config(&self) -> ConfigOptions {
        ConfigOptions {
            config: Some(self.file.clone()),
            cfg_dirs: self.cfg_dirs.clone(),
            settings: self.settings.clone(),
            allow_exec: self.allow_exec,
            scale: self.scale,
            compat: self.compat,
            share_worlds: self.share_worlds,
        }
    }
}

/// Simulates a test.
pub fn run(args: Args) -> Done {
    let mut common = args.common();
    let working_set = Files::open(&args.working_set, &mut common)?;
    let Some(test) = source::workload(&args.config(), &common, false)? else {
        return Err(Failure::usage("a workload is needed"));
    };
    working_set.check(&test)?;
    let directory = match &args.out {
        Some(directory) => {
            let wrong = |e| Failure::setup(anyhow::anyhow!("cannot make {}: {e}", directory.display()));
            std::fs::create_dir_all(directory).map_err(wrong)?;
            directory.clone()
        }
        None => {
            let label = if args.label.is_empty() { "simulation" } else { &args.label };
            result_directory(Path::new("runs"), label)?
        }
    };
    let epoch = EPOCH + common.local_rng_seed % (1 << 32);
    let setup = Setup {
        test,
        places: None,
        common: &common,
        device: args.device.0,
        delay: nanos(args.net_delay.0.unwrap_or(0.0)),
        tolerance: args.robot_tolerance.tolerance(args.tolerance.accept_foreign_msgs),
        server_tolerance: args.tolerance.into(),
        working_set: &working_set,
        identities: None,
        epoch,
    };
    let mut simulation = Simulation::new(setup, Some(&directory)).inspect_err(|_| {
        // Nothing is in it yet. One that was there before, with something in it, stays.
        let _ = std::fs::remove_dir(&directory);
    })?;
    let command = command();
    let headers = simulation.headers();
    for header in headers {
        header.command.clone_from(&command);
    }
    let [client, server] = simulation.headers();
    let start = jiff::Timestamp::from_second(epoch as i64).map_err(Failure::setup)?;
    let mut manifest = manifest(client, server, &start.to_zoned(jiff::tz::TimeZone::UTC));
    let test = simulation.test.clone();
    let mut classic = Classic::new(common.verb_lvl);
    let (mut outcome, device) = simulation.run(None, |header, record| {
        if common.verb_lvl > 0 && header.side == Side::Client {
            classic.show(header, record);
        }
    })?;
    if let Some(figures) = &device {
        manifest["device"] = forecast::manifest_of(figures);
    }
    write_manifest(&directory, &manifest)?;
    let stored = working_set.store(&test, &common, outcome.shares.take());
    let result = conclude(&directory, &outcome, None, &args.expectations, &mut manifest, |_| None)?;
    console::print(&result.summary);
    console::print(&forecast::table(&result.facts, &directory.join("client.log"), device.as_ref())?);
    stored?;
    Ok(result.code)
}

/// The command line without the place of the results, on which nothing depends.
fn command() -> Vec<String> {
    let mut words = Vec::new();
    let mut all = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    while let Some(word) = all.next() {
        match word.as_str() {
            "--out" => drop(all.next()),
            other if other.starts_with("--out=") => {}
            _ => words.push(word),
        }
    }
    words
}
