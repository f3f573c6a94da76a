//! Tests with both sides on this machine: their options, and how they run.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::Args;
use polygraph_engine::{ReservedAddress, RunSetup, StartRule};
use polygraph_link::nanos;
use polygraph_plan::test::repeat_delay;
use polygraph_plan::{Schedule, Test};
use polygraph_report::RunFacts;
use polygraph_sim::device::{Cache, Model};
use polygraph_stats::{Record, Side};
use polygraph_traffic::Distr;

use crate::Failure;
use crate::console::{self, Classic, Progress};
use crate::device::{InPath, UnderTest};
use crate::expect::Expectations;
use crate::forecast::{Forecast, Predicting};
use crate::jobs::{self, ClientLimits, Tolerance, client_job, server_job};
use crate::names::Names;
use crate::options::{
    CommonOptions, ConfigOptions, FAIL_TIMEOUT, Optional, ReplyOptions, RobotOptions, RobotToleranceOptions,
    ToleranceOptions, think, whole,
};
use crate::preflight::{self, Look, Preflight, PreflightOptions, Servers};
use crate::processes;
use crate::result::{RunResult, conclude, explain, manifest, result_directory, write_manifest};
use crate::simulation::Identities;
use crate::source::{self, Rest};
use crate::working_set::Files;

/// What a test with both sides on this machine is told, whatever runs it. Without a workload file it is after PolyMix-1.
#[derive(Args, Clone, Debug)]
#[command(
    rename_all = "snake_case",
    next_help_heading = "Bench",
    mut_arg("dhr", |arg| arg.default_value("55p")),
    mut_arg("pop_model", |arg| arg.default_value("unif")),
    mut_arg("req_rate", |arg| arg.default_value("50/sec")),
)]
pub struct BenchOptions {
    /// Address of the origin servers, as the device reaches them
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub origin_address: IpAddr,
    /// Port of the origin servers; 0: a free one
    #[arg(long, value_name = "PORT", default_value = "0", value_parser = whole(0..=u16::MAX))]
    pub origin_port: u16,
    /// Delay before the first byte of a reply
    #[arg(long, value_name = "DISTR", default_value = "none", value_parser = think)]
    pub xact_think: Optional<Distr>,
    /// Where result directories are made
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub runs: PathBuf,
    /// A workload file.
    #[command(flatten)]
    pub workload: ConfigOptions,
    /// Replies.
    #[command(flatten)]
    pub replies: ReplyOptions,
    /// Robots.
    #[command(flatten)]
    pub robots: RobotOptions,
    /// What servers put up with.
    #[command(flatten)]
    pub tolerance: ToleranceOptions,
    /// What robots put up with.
    #[command(flatten)]
    pub robot_tolerance: RobotToleranceOptions,
    /// The look before the test.
    #[command(flatten)]
    pub preflight: PreflightOptions,
    /// Options of both sides.
    #[command(flatten)]
    pub common: CommonOptions,
}

impl BenchOptions {
    /// The test of the workload file, or else one called `name` with this schedule.
    ///
    /// # Errors
    /// If there is something wrong with it.
    pub fn test(&self, name: &str, schedule: impl FnOnce() -> Schedule) -> Result<Test, Failure> {
        if let Some(test) = source::workload(&self.workload, &self.common, false)? {
            return Ok(test);
        }
        source::classic(
            &self.robots,
            &self.common,
            Rest {
                name,
                proxy: None,
                origin: None,
                listen: vec![SocketAddr::new(self.origin_address, self.origin_port)],
                robot_think: None,
                server_think: self.xact_think.0.clone(),
                sizes: Some(self.replies.rep_sz.clone()),
                settle: repeat_delay(self.xact_think.0.as_ref(), false),
                schedule: schedule(),
            },
        )
    }

    /// A bench for `test`; result directories are named after `command` if the user gives no name.
    ///
    /// # Errors
    /// As [`Bench::new`].
    pub fn bench<'a>(&'a self, test: Test, command: &'a str) -> Result<Bench<'a>, Failure> {
        let limits = ClientLimits {
            ports: self.robots.ports.0,
            open_connections: self.robots.open_conn_lmt,
            with_servers: true,
        };
        let label = if self.common.label.is_empty() { command } else { &self.common.label };
        Ok(Bench {
            label,
            limits,
            preflight: self.preflight.preflight,
            tolerance: self.tolerance.into(),
            fail_timeout: self.robots.fail_tout.0,
            robot_tolerance: self.robot_tolerance.tolerance(self.tolerance.accept_foreign_msgs),
            ..Bench::new(test, &self.common, &self.runs)?
        })
    }
}

/// A test with both sides on this machine.
#[derive(Debug)]
pub struct Bench<'a> {
    /// The test.
    pub test: Test,
    /// Where its servers will listen.
    pub places: Vec<ReservedAddress>,
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
    /// How long answers are waited for before the test.
    pub preflight: Preflight,
    /// Robots without a proxy connect to a device that poses as the servers.
    pub surrogate: bool,
    /// The name server of the robots.
    pub names: Option<Names>,
    /// Working sets to go on with and to store.
    pub working_set: Files,
    /// What the run has to reach.
    pub expectations: Expectations,
    /// How figures are predicted.
    pub predict: Forecast,
    /// The run has failed if nothing succeeds for so many seconds.
    pub fail_timeout: Option<f64>,
}

impl<'a> Bench<'a> {
    /// Reserves the servers' addresses. Options of 1.x leave their ports to the system: robots ask whatever servers
    /// there are; those of a workload name their servers themselves.
    ///
    /// # Errors
    /// If an address cannot be used.
    pub fn new(mut test: Test, common: &'a CommonOptions, runs: &'a Path) -> Result<Bench<'a>, Failure> {
        let places = jobs::reserve_all(&test)?;
        test.serve_at(&places.iter().map(ReservedAddress::address).collect::<Vec<_>>());
        let limits = ClientLimits { ports: None, open_connections: None, with_servers: true };
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
            preflight: Preflight::default(),
            surrogate: false,
            names: None,
            working_set: Files::default(),
            expectations: Expectations::default(),
            predict: Forecast::Auto,
            fail_timeout: FAIL_TIMEOUT,
        })
    }

    /// Runs the test and writes its result directory.
    ///
    /// # Errors
    /// If it cannot be run. A test that fails is no error.
    pub fn run(self) -> Result<RunResult, Failure> {
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
        let origins: Vec<SocketAddr> = places.iter().map(ReservedAddress::address).collect();
        let mut device = self.device.map(|device| device.start(&mut test, &origins)).transpose()?;
        let [on_client, on_server] = processes::layouts(
            &test,
            self.common,
            self.limits.open_connections,
            [Side::Client, Side::Server],
        );
        let (limits, tolerance) = (self.limits, self.robot_tolerance);
        let mut client =
            client_job(&test, self.common, limits, on_client, None, &self.working_set, tolerance)?;
        let mut server = server_job(&test, self.common, self.tolerance, places, on_server, None);
        let look = Look {
            preflight: self.preflight,
            servers: Servers::Here(&origins),
            surrogate: self.surrogate || device.as_ref().is_some_and(InPath::is_surrogate),
            strangers: tolerance.foreign_replies,
        };
        let looked = preflight::look(&test, look)?;
        // Only a test that can begin has a result directory.
        let directory = result_directory(self.runs, self.label)?;
        client.log = Some(directory.join("client.log"));
        server.log = Some(directory.join("server.log"));
        if test.is_direct(&origins) {
            client.header.settings.push(("device".to_owned(), "none".to_owned()));
        }
        if let Some(device) = &device {
            device.overlook(looked);
            device.keep(&directory)?;
        }
        let mut manifest = manifest(&client.header, &server.header, &jiff::Zoned::now());
        if let Some(device) = &device {
            manifest["device"] = device.manifest();
        }
        write_manifest(&directory, &manifest)?;
        let identities = Identities {
            robots: client.ids.clone(),
            client: client.settings.group,
            server: server.config.group,
        };
        let mut progress = Progress::new(test.schedule.duration());
        let mut classic = Classic::new(self.common.verb_lvl).of_options(test.classic);
        let job = RunSetup {
            schedule: test.schedule.clone(),
            start: StartRule::Now,
            client: Some(client),
            server: Some(server),
            interval: nanos(self.common.stats_cycle),
            quantum: nanos(self.common.timer_quantum),
            fail_timeout: self.fail_timeout,
            idle_timeout: self.common.idle_tout.0,
            sync_timeout: None,
        };
        // Whoever sees intervals needs no line of progress.
        let (verbose, with_progress) = (self.common.verb_lvl > 0, self.common.verb_lvl < 2);
        let mut outcome = polygraph_engine::run(job, |header, record| {
            device.iter_mut().for_each(|device| device.watch(header, record));
            if with_progress && !(verbose && matches!(record, Record::Comment { .. })) {
                progress.show(header, record);
            }
            if verbose && header.side == Side::Client {
                progress.give_way(record);
                classic.show(header, record);
            }
        })
        .inspect_err(|_| match directory.join("client.log").exists() {
            true => explain(&directory),
            // Nothing was measured.
            false => drop(std::fs::remove_dir_all(&directory)),
        })
        .map_err(Failure::setup)?;
        // What was measured is worth something, even if not everything can be kept of it.
        let mut trouble = None;
        let summary = device.and_then(|device| match device.stop(&directory) {
            Ok(report) => {
                manifest["device"]["result"] = report.manifest();
                Some(report)
            }
            Err(failure) => {
                trouble = Some(failure);
                None
            }
        });
        if let Some(names) = self.names {
            manifest["dns"] = names.manifest();
        }
        trouble = trouble.or(write_manifest(&directory, &manifest).err());
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
        let mut result =
            conclude(&directory, &outcome, summary.as_ref(), expectations, &mut manifest, predict)?;
        let stored = self.working_set.store(&test, self.common, outcome.shares.take());
        match trouble.or(result.trouble.take()).or(stored.err()) {
            Some(trouble) => {
                console::print(&result.summary);
                Err(trouble)
            }
            None => Ok(result),
        }
    }
}
