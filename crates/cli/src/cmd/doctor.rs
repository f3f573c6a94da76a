//! `polygraph doctor`: finds what would spoil a run on this host, and how to fix it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use polygraph_device::DeviceRole;
use polygraph_doctor::{
    CHECKS, Depth, Diagnosis, HostFacts, Impact, Mended, PlannedLoad, diagnose, mend, read_host, sample_idle,
    take_back, worst,
};
use polygraph_netsetup::Ledger;
use polygraph_plan::{Schedule, Test, values};
use polygraph_runner::environment::Machine;
use polygraph_runner::{Failure, RunSettings, ceiling, host_check, jobs::ClientSettings, layouts};
use polygraph_stats::Side;
use polygraph_traffic::Distr;
use serde_json::{Value, json};

use crate::exit::{DISTORTED, Done, FAILED, SETUP};
use crate::options::files::workload;
use crate::options::values::{
    LocalAddressList, counts, host_port, local_addresses, optional_rate, ports, sizes, think, whole,
};
use crate::options::{BenchOptions, ConfigOptions, DevicePath, Optional, SourceOptions, VariantOptions};
use crate::output;

/// Options of `doctor`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    mut_arg("cfg_dirs", |arg| arg.requires("config")),
    mut_arg("settings", |arg| arg.requires("config")),
    mut_arg("allow_exec", |arg| arg.requires("config")),
    group = clap::ArgGroup::new("planned").args(["req_rate", "robots", "config"]).multiple(true),
    after_help = "Without a planned load, figures are judged for tests in general.\nExamples:\n  \
        polygraph doctor\n  \
        polygraph doctor --req_rate 5000/sec --robots 10000\n  \
        polygraph doctor --config polymix-4 --side client --quick\n  \
        polygraph doctor --req_rate 5000/sec --fix; polygraph doctor --undo"
)]
pub struct Args {
    /// Skip the measurement: causes no load, and takes less than a second
    #[arg(long)]
    quick: bool,
    /// How long to measure what this host achieves over loopback
    #[arg(long, value_name = "TIME", default_value = "9s", value_parser = measured, conflicts_with = "quick")]
    measure: f64,
    /// Apply the safe remedies: change kernel settings, and remove what killed runs left behind
    #[arg(long)]
    fix: bool,
    /// Restore the settings that --fix changed, and do nothing else
    #[arg(long, conflicts_with_all = ["fix", "quick", "json", "config", "req_rate", "robots"])]
    undo: bool,
    /// Print JSON: findings, facts and the planned load
    #[arg(long)]
    json: bool,
    /// The parent directory of result directories
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    /// What will run on this host
    #[arg(long, value_enum, default_value = "both", help_heading = "Planned load")]
    side: PlannedSide,
    /// Mean request rate of all robots together
    #[arg(long, value_name = "RATE", value_parser = optional_rate, conflicts_with = "config", help_heading = "Planned load")]
    req_rate: Option<Optional<f64>>,
    /// Number of robots
    #[arg(long, value_name = "N", value_parser = whole(1..=10_000_000_u32), conflicts_with = "config", help_heading = "Planned load")]
    robots: Option<u32>,
    /// Think time of the servers, for which connections stay open
    #[arg(long, value_name = "DISTR", default_value = "norm:3s,1.5s", value_parser = think, conflicts_with = "config", requires = "planned", help_heading = "Planned load")]
    xact_think: Optional<Distr>,
    /// Reply sizes
    #[arg(long, value_name = "DISTR", default_value = "exp:13KB", value_parser = sizes, conflicts_with = "config", requires = "planned", help_heading = "Planned load")]
    rep_sz: Distr,
    /// Requests per connection
    #[arg(long, value_name = "DISTR", default_value = "1", value_parser = counts, conflicts_with = "config", requires = "planned", help_heading = "Planned load")]
    pconn_use_lmt: Distr,
    /// Local addresses of robots
    #[arg(long, value_name = "RANGES", value_parser = local_addresses, conflicts_with = "config", requires = "planned", help_heading = "Planned load")]
    local_addrs: Option<LocalAddressList>,
    /// Local ports. Default: the system chooses
    #[arg(long, value_name = "LOW:HIGH", default_value = "none", value_parser = ports, help_heading = "Planned load")]
    ports: Optional<(u16, u16)>,
    /// Maximum number of open connections
    #[arg(long, value_name = "N", value_parser = whole(1..=u32::MAX), requires = "planned", help_heading = "Planned load")]
    open_conn_lmt: Option<u32>,
    /// Address of the proxy under test
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port, requires = "planned", help_heading = "Planned load")]
    proxy: Option<String>,
    /// Workload file in PGL, or the name of a built-in workload, instead of the options that describe the load
    #[arg(long, value_name = "FILE|NAME", value_parser = workload, help_heading = "Planned load")]
    config: Option<String>,
    #[command(flatten, next_help_heading = "Planned load")]
    source: SourceOptions,
}

/// What will run on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PlannedSide {
    Client,
    Server,
    Both,
}

/// The options of a run, for their defaults.
#[derive(Parser)]
#[command(rename_all = "snake_case")]
struct RunDefaults {
    #[command(flatten)]
    bench: BenchOptions,
}

/// How long the doctor observes the host before it measures.
const WATCH: Duration = Duration::from_secs(1);

/// A time that is long enough to measure a rate.
fn measured(text: &str) -> Result<f64, String> {
    match values::time(text)? {
        seconds if (1.0..=600.0).contains(&seconds) => Ok(seconds),
        _ => Err(format!("`{text}` is not a time to measure: write 1s to 10min")),
    }
}

/// Checks the host, fixes it if requested, and prints the remaining findings.
pub fn run(args: Args) -> Done {
    if args.undo {
        return undo();
    }
    let load = args.load()?;
    let mut facts = read_host(Path::new("/"), &args.runs, Depth::Thorough);
    if !args.quick {
        facts.idle = sample_idle(WATCH);
        if !args.json {
            output::note(&format!("measuring this host over loopback for {} s", args.measure));
        }
        match host_check::check_descriptors().and_then(|()| ceiling::measure(args.measure)) {
            Ok(measured) => facts.ceiling = Some(measured),
            Err(failure) => facts.ceiling_error = Some(failure.to_string()),
        }
    }
    let mut found = diagnose(&facts, &load);
    let mut mended = Mended::default();
    if args.fix {
        let records = Ledger::of_system().map_err(Failure::setup)?;
        mended = mend(&found, &records, &std::env::temp_dir()).map_err(Failure::setup)?;
        let again = read_host(Path::new("/"), &args.runs, Depth::Thorough);
        let HostFacts { idle, ceiling, ceiling_error, .. } = facts;
        facts = HostFacts { idle, ceiling, ceiling_error, ..again };
        found = diagnose(&facts, &load);
    }
    output::print_either(
        args.json,
        || json_of(&facts, &load, &found, &mended),
        || text_of(&found, &mended, &load),
    );
    Ok(ExitCode::from(match worst(&found) {
        Some(Impact::Blocks) => FAILED,
        Some(Impact::Distorts) => DISTORTED,
        Some(Impact::Note) | None => 0,
    }))
}

fn undo() -> Done {
    let records = Ledger::of_system().map_err(Failure::setup)?;
    let undone = take_back(&records).map_err(Failure::setup)?;
    for change in &undone.done {
        output::print(&format!("undone: {change}\n"));
    }
    for (change, error) in &undone.failed {
        output::warn(&format!("not undone: {change}: {error}"));
    }
    if undone.done.is_empty() && undone.failed.is_empty() {
        output::print("nothing to undo\n");
    }
    Ok(if undone.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(SETUP) })
}

impl Args {
    /// The planned load; an unknown one if no option describes it.
    fn load(&self) -> Result<PlannedLoad, Failure> {
        if self.config.is_none() && self.req_rate.is_none() && self.robots.is_none() {
            let load = PlannedLoad { ports: self.ports.0, ..PlannedLoad::default() };
            return Ok(self.on_side(load.clone(), load));
        }
        let RunDefaults { mut bench } = RunDefaults::try_parse_from(["doctor"]).map_err(Failure::usage)?;
        let settings = bench.common.run_settings();
        let mut test = match self.workload(&settings)? {
            Some(test) => test,
            None => {
                bench.robots.robots = self.robots.unwrap_or(1);
                bench.robots.req_rate = Some(self.req_rate.unwrap_or(Optional(None)));
                bench.robots.local_addrs.clone_from(&self.local_addrs);
                bench.common.pconn_use_lmt.clone_from(&self.pconn_use_lmt);
                bench.replies.rep_sz.clone_from(&self.rep_sz);
                bench.xact_think.clone_from(&self.xact_think);
                bench.test("doctor", &settings, || Schedule::classic(Default::default(), None))?
            }
        };
        if let Some(address) = &self.proxy {
            DevicePath { role: DeviceRole::Forward, address }.apply(&mut test)?;
        }
        let client = ClientSettings {
            ports: self.ports.0,
            open_connections: self.open_conn_lmt,
            ..ClientSettings::default()
        };
        let both = [Side::Client, Side::Server];
        let [layout, _] = match self.side {
            PlannedSide::Both => layouts::layouts(&test, &settings, self.open_conn_lmt, both),
            _ => {
                let [alone] = layouts::layouts(&test, &settings, self.open_conn_lmt, [Side::Client]);
                [alone, alone]
            }
        };
        let listening: Vec<_> =
            test.servers.iter().flat_map(|servers| &servers.sites).map(|site| site.listen).collect();
        let of_client = host_check::of_client(&test, &client, layout, &listening);
        Ok(self.on_side(of_client, host_check::of_server(&test, layout)))
    }

    /// The load of the side that runs here.
    fn on_side(&self, client: PlannedLoad, server: PlannedLoad) -> PlannedLoad {
        match self.side {
            PlannedSide::Client => PlannedLoad { servers: false, ..client },
            PlannedSide::Server => PlannedLoad { robots: false, ..server },
            PlannedSide::Both => PlannedLoad { servers: true, listening: server.listening, ..client },
        }
    }

    fn workload(&self, settings: &RunSettings) -> Result<Option<Test>, Failure> {
        let options = ConfigOptions {
            config: self.config.clone(),
            source: self.source.clone(),
            variant: VariantOptions::default(),
            share_worlds: None,
        };
        options.test(settings.global_seed, false, Machine::WITHOUT_SERVERS)
    }
}

fn json_of(facts: &HostFacts, load: &PlannedLoad, found: &[Diagnosis], mended: &Mended) -> Value {
    let failed: Vec<_> =
        mended.failed.iter().map(|(what, why)| json!({ "command": what, "reason": why })).collect();
    json!({
        "worst": worst(found).map(Impact::word),
        "checks": CHECKS.len(),
        "findings": found,
        "fixed": mended.done,
        "not_fixed": failed,
        "planned": load.is_known().then_some(load),
        "facts": facts,
    })
}

fn text_of(found: &[Diagnosis], mended: &Mended, load: &PlannedLoad) -> String {
    let mut text = String::new();
    for what in &mended.done {
        let _ = writeln!(text, "fixed: {what}");
    }
    for (what, why) in &mended.failed {
        let _ = writeln!(text, "not fixed: {what}: {why}");
    }
    for Diagnosis { check, finding } in found {
        let _ = writeln!(text, "{} [{}] {}", finding.impact.word().to_uppercase(), check.name, finding.found);
        let _ = writeln!(text, "    effect: {}", finding.effect);
        for (at, remedy) in finding.remedies.iter().enumerate() {
            let word = if at == 0 { "remedy:" } else { "    or:" };
            let mark = if remedy.is_safe() { "  (--fix does it)" } else { "" };
            let _ = writeln!(text, "    {word} {}{mark}", remedy.command);
        }
    }
    let count = |impact| found.iter().filter(|diagnosis| diagnosis.finding.impact == impact).count();
    let planned = if load.is_known() { "the planned load" } else { "tests in general" };
    let _ = writeln!(
        text,
        "{} checks for {planned}: {} block, {} distort, {} notes",
        CHECKS.len(),
        count(Impact::Blocks),
        count(Impact::Distorts),
        count(Impact::Note)
    );
    text
}
