//! `polygraph run`: both sides on this machine against a device you name.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use polygraph_engine::{Job, Outcome, Reserved, StartRule};
use polygraph_link::nanos;
use polygraph_plan::test::settle_time;
use polygraph_plan::{Goal, Schedule, Test};
use polygraph_report::prediction::Prediction;
use polygraph_report::run_dir::Run;
use polygraph_report::{Extras, RunFacts, fold_files, summary_text, write_html};
use polygraph_sim::device::{Cache, Model};
use polygraph_stats::{Class, EndReason, Side};
use polygraph_traffic::{Distr, Popularity};

use crate::console::{self, Classic, Progress};
use crate::device::{self, DeviceOptions, UnderTest};
use crate::expect::Expectations;
use crate::forecast::{Forecast, Predicting, forecast};
use crate::jobs::{self, ClientLimits, Tolerance, client_job, server_job};
use crate::names::{NameService, Names, name_service};
use crate::options::{
    CommonOptions, ConfigOptions, Optional, ReplyOptions, RobotOptions, RobotToleranceOptions,
    ToleranceOptions, WorkingSetOptions, host_port, optional_time, think, whole,
};
use crate::simulation::Identities;
use crate::source::{self, Rest, Route};
use crate::working_set::Files;
use crate::{Done, Failure, exit, processes};

/// Options of `run`.
#[derive(Parser, Clone, Debug)]
#[command(
    rename_all = "snake_case",
    mut_arg("device", |arg| arg.conflicts_with_all(["proxy", "surrogate", "no_proxy"])),
    mut_arg("config", |arg| arg.conflicts_with_all([
        "origin_address", "origin_port", "cool_phase", "xact_think", "rep_sz", "robots", "req_rate", "rep_cachable",
        "dhr", "pop_model", "tmp_loc", "settle_time", "launch_win", "local_addrs", "xact_lifetime", "goal",
        "pconn_use_lmt", "http_version",
    ])),
    after_help = "The defaults are PolyMix-1: 80 % of the replies cachable, 55 % hits offered, 13 KB mean size,\n\
        servers that think for 3 s. Example:\n  \
        polygraph run --proxy 127.0.0.1:3128 --req_rate 100/sec --goal 5min\n  \
         polygraph run --device squid --device_opt mem=1GB --config workloads/polymix-1.pg --set ReqRate=100/sec",
    group = clap::ArgGroup::new("target").args(["proxy", "surrogate", "no_proxy", "device", "config"]).multiple(true).required(true)
)]
pub struct Args {
    /// The proxy under test
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port)]
    proxy: Option<String>,
    /// The surrogate or balancer under test: robots connect there and name the servers in `Host`
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port, conflicts_with = "proxy")]
    surrogate: Option<String>,
    /// No proxy: robots ask the servers themselves, which shows what the bench can do
    #[arg(long, conflicts_with_all = ["proxy", "surrogate"])]
    no_proxy: bool,
    #[command(flatten)]
    device: DeviceOptions,
    /// Address of the origin servers, as the proxy reaches them
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    origin_address: IpAddr,
    /// Port of the origin servers; 0: a free one
    #[arg(long, value_name = "PORT", default_value = "0", value_parser = whole(0..=u16::MAX))]
    origin_port: u16,
    /// Delay before the first byte of a reply
    #[arg(long, value_name = "DISTR", default_value = "norm:3s,1.5s", value_parser = think)]
    xact_think: Optional<Distr>,
    /// Cool-down after measuring, over which the load falls to nothing
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = optional_time)]
    cool_phase: Optional<f64>,
    /// The name server that robots ask: `auto` is one that knows the names of the workload, for this run
    #[arg(long, value_name = "HOST:PORT|auto", value_parser = name_service, requires = "config",
        conflicts_with_all = ["proxy", "surrogate", "device"])]
    dns: Option<NameService>,
    /// The model of the device that figures are predicted with, shown beside those measured at the end, as for
    /// `simulate --device`; `auto`: LRU with the sizes that the device is told, if it is told any, else ideal; `no`:
    /// nothing is predicted
    #[arg(long, value_name = "MODEL|auto|no", default_value = "auto", value_parser = forecast)]
    predict: Forecast,
    /// Where result directories are made
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    #[command(flatten)]
    workload: ConfigOptions,
    #[command(flatten)]
    replies: ReplyOptions,
    #[command(flatten)]
    robots: PolyMix1,
    #[command(flatten)]
    tolerance: ToleranceOptions,
    #[command(flatten)]
    robot_tolerance: RobotToleranceOptions,
    #[command(flatten)]
    working_set: WorkingSetOptions,
    #[command(flatten)]
    expectations: Expectations,
    #[command(flatten)]
    common: CommonOptions,
}

/// The robots' options with the defaults of PolyMix-1.
#[derive(clap::Args, Clone, Debug)]
#[command(
    rename_all = "snake_case",
    mut_arg("dhr", |arg| arg.default_value("55p")),
    mut_arg("pop_model", |arg| arg.default_value("unif")),
    mut_arg("req_rate", |arg| arg.default_value("50/sec")),
)]
pub struct PolyMix1 {
    /// The options.
    #[command(flatten)]
    pub robots: RobotOptions,
}

/// Runs both sides.
pub fn run(args: Args) -> Done {
    let result = measure(args)?;
    console::print(&result.summary);
    Ok(result.code)
}

/// Runs both sides without saying what came out.
///
/// # Errors
/// If the test cannot be run. A test that fails is no error.
pub fn measure(mut args: Args) -> std::result::Result<Result, Failure> {
    let working_set = Files::open(&args.working_set, &mut args.common)?;
    let common = &args.common;
    let device = device::under_test(&args.device)?;
    let test = match source::workload(&args.workload, common, false)? {
        Some(test) => test,
        None => classic(&args)?,
    };
    let mut bench = Bench::new(test, common, &args.runs)?;
    if !common.label.is_empty() {
        bench.label = &common.label;
    }
    bench.limits.ports = args.robots.robots.ports.0;
    bench.limits.open_connections = args.robots.robots.open_conn_lmt;
    bench.tolerance = args.tolerance.into();
    bench.robot_tolerance = args.robot_tolerance.tolerance(args.tolerance.accept_foreign_msgs);
    Route { proxy: args.proxy.as_deref(), surrogate: args.surrogate.as_deref() }.apply(&mut bench.test)?;
    bench.names = args.dns.as_ref().map(|service| Names::start(service, &mut bench.test)).transpose()?;
    bench.predict = match args.predict {
        Forecast::Auto if args.no_proxy => Forecast::With(None),
        predict => predict,
    };
    bench.device = device;
    bench.working_set = working_set;
    bench.expectations = args.expectations.clone();
    bench.run()
}

/// What a search for a peak must know of its runs, and tell them.
impl Args {
    /// The test comes from a workload file.
    pub fn is_workload(&self) -> bool {
        self.workload.config.is_some()
    }

    /// The values of `--set`.
    pub fn settings(&self) -> impl Iterator<Item = &str> {
        self.workload.settings.iter().map(|(_, value)| value.as_str())
    }

    /// The rate of all robots, if they have one.
    pub fn rate(&self) -> Option<f64> {
        self.robots.robots.req_rate.and_then(|rate| rate.0)
    }

    /// A name for the run.
    pub fn label(&self) -> &str {
        &self.common.label
    }

    /// Where result directories are made.
    pub fn runs(&self) -> &Path {
        &self.runs
    }

    /// The device is started for the run and stopped after it.
    pub fn starts_device(&self) -> bool {
        self.device.is_given()
    }

    /// Makes it run number `number` of a search, with this rate, whose result directory goes into `runs`. In a workload,
    /// the rate replaces `mark` in the values of `--set`. Runs differ in what is random, or repeating one would tell
    /// nothing new.
    pub fn aim(&mut self, runs: &Path, number: usize, rate: f64, mark: &str) {
        self.runs = runs.to_owned();
        self.common.label = format!("step-{number:02}");
        self.predict = Forecast::No;
        self.common.local_rng_seed = self.common.local_rng_seed.wrapping_add(number as u64 - 1);
        if self.is_workload() {
            let text = super::peak::rate_text(rate);
            self.workload.settings.iter_mut().for_each(|(_, value)| *value = value.replace(mark, &text));
        } else {
            self.robots.robots.req_rate = Some(Optional(Some(rate)));
            self.common.goal.get_or_insert_with(super::peak::goal);
        }
    }
}

/// The test that options describe.
fn classic(args: &Args) -> std::result::Result<Test, Failure> {
    // A test that cannot end is no test, and errors must end it.
    let goal = args.common.goal.unwrap_or(Goal { duration: Some(300.0), ..Goal::default() });
    let goal = Goal { errors: goal.errors.or(Some(0.3)), ..goal };
    source::classic(
        &args.robots.robots,
        &args.common,
        Rest {
            name: workload_name(args),
            proxy: None,
            origin: None,
            listen: vec![SocketAddr::new(args.origin_address, args.origin_port)],
            robot_think: None,
            server_think: args.xact_think.0.clone(),
            sizes: Some(args.replies.rep_sz.clone()),
            settle: settle_time(args.xact_think.0.as_ref(), false),
            schedule: Schedule::classic(goal, args.cool_phase.0),
        },
    )
}

/// Only what is PolyMix-1 may be called so: everything but rate, durations and connections has a fixed value.
fn workload_name(args: &Args) -> &'static str {
    let robots = &args.robots.robots;
    let standard = robots.req_rate.is_some_and(|rate| rate.0.is_some())
        && robots.dhr == 0.55
        && robots.rep_cachable == 0.8
        && robots.pop_model == Popularity::Unif
        && args.replies.rep_sz == Distr::Exp { mean: 13.0 * 1024.0 }
        && args.xact_think.0 == Some(Distr::Norm { mean: 3.0, sd: 1.5 })
        && robots.settle_time.is_none()
        && args.common.http_version == 1
        && args.common.pconn_use_lmt == Distr::Const(1.0);
    if standard { "PolyMix-1" } else { "command line, after PolyMix-1" }
}

/// A test with both sides on this machine.
#[derive(Debug)]
pub struct Bench<'a> {
    /// The test.
    pub test: Test,
    /// Where its servers will listen.
    pub places: Vec<Reserved>,
    /// Begin of the result directory's name.
    pub label: &'a str,
    /// Options of both sides.
    pub common: &'a CommonOptions,
    /// Limits of the client side.
    pub limits: ClientLimits,
    /// What the server side puts up with.
    pub tolerance: Tolerance,
    /// What robots put up with.
    pub robot_tolerance: polygraph_robot::Tolerance,
    /// Where result directories are made.
    pub runs: &'a Path,
    /// A device to start in front of the servers and to stop afterwards.
    pub device: Option<UnderTest>,
    /// The name server of the robots.
    pub names: Option<Names>,
    /// Working sets to go on with and to store.
    pub working_set: Files,
    /// What the run has to reach.
    pub expectations: Expectations,
    /// How figures are predicted.
    pub predict: Forecast,
}

/// What came out of a test.
#[derive(Debug)]
pub struct Result {
    /// The verdict and the main figures.
    pub summary: String,
    /// The report.
    pub report: PathBuf,
    /// The exit code.
    pub code: ExitCode,
    /// The result directory.
    pub directory: PathBuf,
    /// What was measured.
    pub facts: RunFacts,
    /// The user stopped it.
    pub interrupted: bool,
}

impl<'a> Bench<'a> {
    /// Reserves the servers' addresses. Options of 1.x leave their ports to the system: robots ask whatever servers
    /// there are; those of a workload name their servers themselves.
    ///
    /// # Errors
    /// If an address cannot be used.
    pub fn new(
        mut test: Test,
        common: &'a CommonOptions,
        runs: &'a Path,
    ) -> std::result::Result<Bench<'a>, Failure> {
        let places = jobs::reserve_all(&test)?;
        test.serve_at(&places.iter().map(Reserved::address).collect::<Vec<_>>());
        let limits = ClientLimits { ports: None, open_connections: None };
        Ok(Bench {
            test,
            places,
            label: "run",
            common,
            limits,
            tolerance: Tolerance::default(),
            robot_tolerance: polygraph_robot::Tolerance::default(),
            runs,
            device: None,
            names: None,
            working_set: Files::default(),
            expectations: Expectations::default(),
            predict: Forecast::Auto,
        })
    }

    /// Runs the test and writes its result directory.
    ///
    /// # Errors
    /// If it cannot be run. A test that fails is no error.
    pub fn run(self) -> std::result::Result<Result, Failure> {
        let Bench { mut test, places, .. } = self;
        self.working_set.check(&test)?;
        let predicted = match self.predict {
            Forecast::No => None,
            Forecast::With(model) => Some((test.clone(), model)),
            Forecast::Auto => {
                let unknown = Some(Model::instant(Cache::Ideal));
                Some((test.clone(), self.device.as_ref().map_or(unknown, UnderTest::model)))
            }
        };
        let epoch = jiff::Timestamp::now().as_second() as u64;
        let directory = result_directory(self.runs, self.label)?;
        let origins: Vec<SocketAddr> = places.iter().map(Reserved::address).collect();
        let mut device = match self.device {
            Some(device) => Some(device.start(&mut test, &origins, &directory)?),
            None => None,
        };
        let log = |name: &str| Some(directory.join(name));
        let [on_client, on_server] = processes::layouts(
            &test,
            self.common,
            self.limits.open_connections,
            [Side::Client, Side::Server],
        );
        let server = server_job(&test, self.common, self.tolerance, places, on_server, log("server.log"));
        let log = log("client.log");
        let (limits, tolerance) = (self.limits, self.robot_tolerance);
        let client = client_job(&test, self.common, limits, on_client, log, &self.working_set, tolerance)?;
        let mut manifest = manifest(&client.header, &server.header, &jiff::Zoned::now());
        if let Some(device) = &device {
            manifest["device"] = device.manifest();
        }
        write_manifest(&directory, &manifest)?;
        let identities = Identities {
            robots: client.ids.clone(),
            client: client.settings.group,
            server: server.house.group,
        };
        let mut progress = Progress::new(test.schedule.duration());
        let mut classic = Classic::new(self.common.verb_lvl).of_options(test.classic);
        let job = Job {
            schedule: test.schedule.clone(),
            start: StartRule::Now,
            client: Some(client),
            server: Some(server),
            interval: nanos(self.common.stats_cycle),
            quantum: nanos(self.common.timer_quantum),
            idle_timeout: self.common.idle_tout.0,
            sync_timeout: None,
        };
        let verbose = self.common.verb_lvl > 0;
        let mut outcome = polygraph_engine::run(job, |header, record| {
            device.iter_mut().for_each(|device| device.watch(header, record));
            match verbose {
                true if header.side == Side::Client => classic.show(header, record),
                true => {}
                false => progress.show(header, record),
            }
        })
        .map_err(Failure::setup)?;
        let summary = match device {
            Some(device) => {
                let report = device.stop(&directory)?;
                manifest["device"]["result"] = report.manifest();
                write_manifest(&directory, &manifest)?;
                Some(report)
            }
            None => None,
        };
        if let Some(names) = self.names {
            manifest["dns"] = names.manifest();
            write_manifest(&directory, &manifest)?;
        }
        let predict = |facts: &RunFacts| {
            let (as_run, device) = predicted?;
            let predicting = Predicting {
                test: as_run,
                places: origins,
                common: self.common,
                identities,
                device,
                epoch,
                tolerance: self.robot_tolerance,
                server_tolerance: self.tolerance,
                working_set: &self.working_set,
            };
            Some(predicting.beside(facts, &outcome.reason))
        };
        let expectations = &self.expectations;
        let result = conclude(&directory, &outcome, summary.as_ref(), expectations, &mut manifest, predict)?;
        let stored = self.working_set.store(&test, self.common, outcome.shares.take());
        // What was measured is worth something without the working set.
        stored.inspect_err(|_| console::print(&result.summary))?;
        Ok(result)
    }
}

/// Writes the report of a result directory, with what `predict` makes of the run, remembers the run and says what
/// came out.
///
/// # Errors
/// If its logs cannot be read, or the report cannot be written.
pub fn conclude(
    directory: &Path,
    outcome: &Outcome,
    device: Option<&device::Report>,
    expectations: &Expectations,
    manifest: &mut serde_json::Value,
    predict: impl FnOnce(&RunFacts) -> Option<Prediction>,
) -> std::result::Result<Result, Failure> {
    let paths = ["client.log", "server.log"].map(|name| directory.join(name));
    let report = directory.join("report.html");
    let facts = fold_files(&paths).map_err(Failure::data)?;
    let met = expectations.check(&facts);
    let prediction = predict(&facts);
    let added = [
        ("expected", met.json()),
        ("prediction", prediction.as_ref().and_then(|prediction| serde_json::to_value(prediction).ok())),
    ];
    for (name, json) in added.into_iter().filter_map(|(name, json)| Some((name, json?))) {
        manifest[name] = json;
        write_manifest(directory, manifest)?;
    }
    write_html(&facts, &report, &Extras::of_run(directory)).map_err(Failure::data)?;
    let run = Run::of(directory, facts);
    if let Err(error) = polygraph_history::record(&run) {
        console::note(&format!("{error}; `polygraph runs` will find the run all the same"));
    }
    let facts = run.facts;
    let places = [("report", report.as_path()), ("logs", directory)];
    let device = device.map_or_else(String::new, |device| device.line(&client_counts(&facts)));
    let predicted = prediction.map_or_else(String::new, |prediction| prediction.text());
    let summary = format!("\n{}{}{device}{predicted}", summary_text(&facts, &places), met.text());
    let code = match (&outcome.reason, facts.verdict.outcome) {
        (EndReason::Interrupted, _) => ExitCode::from(exit::INTERRUPTED),
        (_, polygraph_report::Outcome::Valid) => met.failure().unwrap_or(ExitCode::SUCCESS),
        _ => ExitCode::from(exit::FAILED),
    };
    let interrupted = outcome.reason == EndReason::Interrupted;
    Ok(Result { summary, report, code, directory: directory.to_owned(), facts, interrupted })
}

/// Transactions and hits as the robots count them, over all phases.
fn client_counts(facts: &RunFacts) -> device::Seen {
    let total = facts.client.as_ref().and_then(|side| side.total.as_ref());
    let count = |class| total.map_or(0, |total| total.block.class(class).rptm_us.count());
    device::Seen {
        requests: total.map_or(0, |total| total.block.xacts.entered),
        hits: count(Class::Hit),
        basic: Class::ALL.into_iter().filter(|class| class.is_basic()).map(count).sum(),
    }
}

/// The exit code of one side alone, which can tell only whether it came to its end.
///
/// # Errors
/// Never; the type is that of commands.
pub fn exit_code(outcome: &Outcome) -> Done {
    Ok(ExitCode::from(match outcome.reason {
        EndReason::Finished | EndReason::Idle => exit::OK,
        EndReason::ErrorGoal { .. } | EndReason::Fatal(_) => exit::FAILED,
        EndReason::Interrupted => exit::INTERRUPTED,
    }))
}

/// Makes a directory `<label>-<time>` that does not exist yet.
///
/// # Errors
/// If it cannot be made.
pub fn result_directory(runs: &Path, label: &str) -> std::result::Result<PathBuf, Failure> {
    let label: String =
        label.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' }).collect();
    let time = jiff::Zoned::now().strftime("%Y-%m-%dT%H-%M-%S").to_string();
    let wrong = |path: &Path, e: std::io::Error| {
        Failure::setup(anyhow::anyhow!("cannot make the result directory {}: {e}", path.display()))
    };
    std::fs::create_dir_all(runs).map_err(|e| wrong(runs, e))?;
    for attempt in 0..100 {
        let suffix = if attempt == 0 { String::new() } else { format!("-{attempt}") };
        let path = runs.join(format!("{label}-{time}{suffix}"));
        match std::fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(wrong(&path, e)),
        }
    }
    Err(Failure::setup(anyhow::anyhow!(
        "cannot find a free name for a result directory in {}",
        runs.display()
    )))
}

/// What one needs to know to repeat a run that began at `time`.
pub fn manifest(
    client: &polygraph_stats::Header,
    server: &polygraph_stats::Header,
    time: &jiff::Zoned,
) -> serde_json::Value {
    let object = |pairs: &[(String, String)]| {
        pairs
            .iter()
            .map(|(name, value)| (name.clone(), value.clone().into()))
            .collect::<serde_json::Map<String, serde_json::Value>>()
    };
    serde_json::json!({
        "program": "polygraph",
        "version": client.version,
        "workload": client.workload,
        "label": client.label,
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        "command": client.command,
        "environment": object(&client.environment),
        "client": object(&client.settings),
        "server": object(&server.settings),
        "phases": client.phases.iter().map(|phase| serde_json::json!({
            "name": phase.name,
            "primary": phase.primary,
            "duration_s": phase.duration_s,
            "transactions": phase.xactions,
            "fill_bytes": phase.fill_bytes,
        })).collect::<Vec<_>>(),
    })
}

/// Writes the manifest of a result directory.
///
/// # Errors
/// If it cannot be written.
pub fn write_manifest(directory: &Path, manifest: &serde_json::Value) -> std::result::Result<(), Failure> {
    let path = directory.join("manifest.json");
    let text = serde_json::to_string_pretty(manifest).map_err(Failure::setup)?;
    std::fs::write(&path, text + "\n")
        .map_err(|e| Failure::setup(anyhow::anyhow!("cannot write {}: {e}", path.display())))
}

/// The address that everything of a loopback run binds to.
pub const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
