//! A test with both sides on this machine.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use polygraph_device::DeviceRole;
use polygraph_doctor::PlannedLoad;
use polygraph_engine::{ClientSetup, ReservedAddress, RunSetup, ServerSetup, StartRule};
use polygraph_link::nanos;
use polygraph_plan::Test;
use polygraph_report::RunFacts;
use polygraph_report::prediction::RunPrediction;
use polygraph_sim::device::{Cache, Model};
use polygraph_stats::{EndReason, Header, Record, Side};
use serde_json::Value;

use crate::addresses::{AddedAddresses, AddressMode};
use crate::device::{DeviceReport, DeviceUnderTest, StartedDevice};
use crate::jobs::{self, ClientSettings, ServerTolerance};
use crate::name_server::RunNameServer;
use crate::prediction::{PredictionInput, PredictionModel};
use crate::preflight::{self, OriginPlaces, PreflightCheck};
use crate::result::{
    Conclusion, check_empty, logs, manifest, partial_summary, result_directory, write_manifest,
};
use crate::run_settings::FAIL_TIMEOUT_S;
use crate::simulation::RunIdentities;
use crate::working_set::WorkingSetFiles;
use crate::{
    Expectations, Failure, Notify, RunResult, RunSettings, device_place, host_check, layouts, make_directory,
};

/// A test with both sides on this machine.
#[derive(Debug)]
pub struct Bench<'a> {
    /// The test.
    pub test: Test,
    /// The reserved addresses of its servers, in order.
    pub reserved: Vec<ReservedAddress>,
    /// Start of the result directory's name.
    pub label: &'a str,
    /// Settings of both sides.
    pub settings: &'a RunSettings,
    /// The client side.
    pub client: ClientSettings,
    /// Unexpected requests that servers accept.
    pub tolerance: ServerTolerance,
    /// The parent directory of new result directories.
    pub runs: &'a Path,
    /// The result directory, which must be new or empty; `None`: a new one.
    pub out: Option<PathBuf>,
    /// A device to start in front of the servers and to stop afterwards.
    pub device: Option<DeviceUnderTest>,
    /// How long the check before the test waits for an answer; `None`: no check.
    pub preflight: Option<Duration>,
    /// The device, if it acts as the servers and is running already.
    pub reverse_proxy: Option<ReverseProxy>,
    /// The name server of the robots.
    pub name_server: Option<RunNameServer>,
    /// Working sets to continue with and to store.
    pub working_set: WorkingSetFiles,
    /// What the user expects of the run.
    pub expectations: Expectations,
    /// The model of the device that predicts figures.
    pub prediction: PredictionModel,
    /// The run fails if nothing succeeds for this many seconds; `None`: it continues.
    pub fail_timeout_s: Option<f64>,
    /// Shows messages.
    pub notify: Notify,
    /// The addresses of robots and servers that this host had not.
    pub addresses: AddedAddresses,
}

/// A device that acts as the servers and is running already.
#[derive(Debug)]
pub struct ReverseProxy {
    /// Its role.
    pub role: DeviceRole,
    /// The test without it.
    pub without: Test,
}

/// Facts that are known before a run starts and needed after it.
struct Beforehand {
    /// The test without the device, with the model of the device, or why there is none.
    predicted: Option<(Test, Result<Option<Model>, String>)>,
    identities: RunIdentities,
    origins: Vec<SocketAddr>,
    epoch: u64,
}

impl<'a> Bench<'a> {
    /// Adds missing addresses of robots and servers to this host, and reserves those of the servers. Options of generation
    /// 1.x may let the system choose ports; robots then use the servers that exist. Workload files name their servers.
    ///
    /// # Errors
    /// If addresses cannot be added, or a server cannot listen at its address.
    pub fn new(
        mut test: Test,
        settings: &'a RunSettings,
        runs: &'a Path,
        addresses: AddressMode,
        notify: Notify,
    ) -> Result<Bench<'a>, Failure> {
        let addresses =
            AddedAddresses::of_test(&test, &[Side::Client, Side::Server], addresses, None, notify)?;
        let reserved = jobs::reserve_all(&test)?;
        test.serve_at(&reserved.iter().map(ReservedAddress::address).collect::<Vec<_>>());
        Ok(Bench {
            test,
            reserved,
            label: "run",
            settings,
            client: ClientSettings::default(),
            tolerance: ServerTolerance::default(),
            runs,
            out: None,
            device: None,
            preflight: Some(preflight::DEFAULT_TIMEOUT),
            reverse_proxy: None,
            name_server: None,
            working_set: WorkingSetFiles::default(),
            expectations: Expectations::default(),
            prediction: PredictionModel::Auto,
            fail_timeout_s: FAIL_TIMEOUT_S,
            notify,
            addresses,
        })
    }

    /// Runs the test and writes its result directory; `observer` sees all records. Without a device, the run creates no files
    /// before the preflight check has succeeded.
    ///
    /// # Errors
    /// If the test cannot be run. A test that fails is not an error.
    pub fn run(mut self, mut observer: impl FnMut(&Header, &Record)) -> Result<RunResult, Failure> {
        self.expectations.check_phases(&self.test.schedule)?;
        self.working_set.check(&self.test, self.notify)?;
        self.out.as_deref().map_or(Ok(()), check_empty)?;
        // The simulation puts its own device in front of the servers.
        let undisturbed = self.reverse_proxy.as_ref().map_or(&self.test, |proxy| &proxy.without);
        let role = self.device_role();
        let acts_as_servers = role.is_some_and(DeviceRole::acts_as_servers);
        let predicted = self.device_model().map(|model| {
            let mut test = undisturbed.clone();
            if acts_as_servers && model == Ok(None) {
                test.serve_all_versions();
            }
            (test, model)
        });
        let epoch = jiff::Timestamp::now().as_second() as u64;
        let origins: Vec<SocketAddr> = self.reserved.iter().map(ReservedAddress::address).collect();
        let running = self.reverse_proxy.as_ref().map(|proxy| proxy.role);
        device_place::check(&self.test, running, &origins)?;
        let engine = self.settings.engine();
        let device = self.device.take().map(|device| device.with_engine(engine));
        let mut device =
            device.map(|device| device.start(&mut self.test, &origins, self.notify)).transpose()?;
        let (mut client, mut server) = self.jobs(&origins)?;
        let check = PreflightCheck {
            timeout: self.preflight,
            origins: OriginPlaces::Here(&origins),
            surrogate: acts_as_servers,
            accepts_foreign_replies: self.client.tolerance.foreign_replies,
        };
        let probes = preflight::check(&self.test, check, self.notify)?;
        // Only a test that can start gets a result directory.
        let directory = match &self.out {
            Some(directory) => {
                make_directory(directory)?;
                directory.clone()
            }
            None => result_directory(self.runs, self.label)?,
        };
        client.log = Some(directory.join("client.log"));
        server.log = Some(directory.join("server.log"));
        let kind = match self.test.is_direct(&origins) {
            true => Some("none"),
            // Reports need to know that a load balancer has no cache.
            false => role.filter(|role| role.acts_as_servers()).map(DeviceRole::word),
        };
        client.header.settings.extend(kind.map(|kind| ("device".to_owned(), kind.to_owned())));
        if let Some(device) = &device {
            device.skip_requests(probes);
            device.keep(&directory)?;
        }
        let mut manifest = manifest(&client.header, &server.header, &jiff::Zoned::now());
        if let Some(device) = &device {
            manifest["device"] = device.manifest();
        }
        write_manifest(&directory, &manifest)?;
        let identities = RunIdentities {
            robots: client.ids.clone(),
            client: client.settings.group,
            server: server.config.group,
        };
        self.settings.announce_engine(self.notify);
        let mut outcome = polygraph_engine::run(self.job(client, server), |header, record| {
            device.iter_mut().for_each(|device| device.watch(header, record));
            observer(header, record);
        })
        .map_err(|error| broken_off(&directory, error))?;
        let mut trouble = None;
        let report =
            device.and_then(|device| self.stop_device(device, &directory, &mut manifest, &mut trouble));
        if let Some(name_server) = &self.name_server {
            manifest["dns"] = name_server.manifest();
        }
        trouble = trouble.or(write_manifest(&directory, &manifest).err());
        let shares = outcome.shares.take();
        let conclusion = Conclusion {
            directory: &directory,
            logs: &logs(&directory),
            interrupted: outcome.reason == EndReason::Interrupted,
            device: report.as_ref(),
            expectations: &self.expectations,
        };
        let before = Beforehand { predicted, identities, origins, epoch };
        let predict = |facts: &RunFacts| self.predict(before, facts, &outcome.reason);
        let mut result = conclusion.write(&mut manifest, predict, self.notify)?;
        let stored = self.working_set.store(&self.test, self.settings, shares);
        match trouble.or(result.trouble.take()).or(stored.err()) {
            Some(trouble) => Err(trouble.with_summary(Some(result.summary))),
            None => Ok(result),
        }
    }

    /// The role of the device; `None` without a device, or if it is a proxy that is running already.
    fn device_role(&self) -> Option<DeviceRole> {
        let running = self.reverse_proxy.as_ref().map(|proxy| proxy.role);
        self.device.as_ref().map(DeviceUnderTest::role).or(running)
    }

    /// The model of the device for predictions, or why it is unknown; `None`: nothing is predicted.
    fn device_model(&self) -> Option<Result<Option<Model>, String>> {
        match self.prediction {
            PredictionModel::Off => None,
            PredictionModel::Of(model) => Some(Ok(model)),
            PredictionModel::Auto => Some(match &self.device {
                Some(device) => Ok(device.model(&self.test)),
                None if self.test.uses_tunnels() => Err(
                    "requests travel through tunnels, and whether the proxy sees them is unknown: --predict MODEL predicts hits, \
                     and --predict none no hits"
                        .to_owned(),
                ),
                None if self.device_role() == Some(DeviceRole::Balancer) || self.test.uses_socks_alone() => Ok(None),
                None => Ok(Some(Model::instant(Cache::Ideal))),
            }),
        }
    }

    /// Both sides as jobs of the engine.
    fn jobs(&mut self, origins: &[SocketAddr]) -> Result<(ClientSetup, ServerSetup), Failure> {
        let Bench { test, settings, client, working_set, .. } = &*self;
        let sides = [Side::Client, Side::Server];
        let [on_client, on_server] = layouts::layouts(test, settings, client.open_connections, sides);
        let load = PlannedLoad { servers: true, ..host_check::of_client(test, client, on_client, origins) };
        host_check::check(&load, self.out.as_deref().unwrap_or(self.runs), self.notify)?;
        let client = jobs::client_job(test, settings, client, true, on_client, working_set)?;
        let reserved = std::mem::take(&mut self.reserved);
        let server = jobs::server_job(&self.test, self.settings, self.tolerance, reserved, on_server);
        Ok((client, server))
    }

    fn job(&self, client: ClientSetup, server: ServerSetup) -> RunSetup {
        RunSetup {
            schedule: self.test.schedule.clone(),
            start: StartRule::Now,
            client: Some(client),
            server: Some(server),
            interval: nanos(self.settings.interval_s),
            quantum: nanos(self.settings.timer_quantum_s),
            engine: self.settings.engine(),
            fail_timeout: self.fail_timeout_s,
            idle_timeout: self.settings.idle_timeout_s,
            sync_timeout: None,
        }
    }

    /// Stops the device. If its files cannot be copied, the rest of the result is still written, and `trouble`
    /// describes the problem.
    fn stop_device(
        &self,
        device: StartedDevice,
        directory: &Path,
        manifest: &mut Value,
        trouble: &mut Option<Failure>,
    ) -> Option<DeviceReport> {
        match device.stop(directory, self.notify) {
            Ok(report) => {
                manifest["device"]["result"] = report.manifest();
                Some(report)
            }
            Err(failure) => {
                *trouble = Some(failure);
                None
            }
        }
    }

    /// Predicts the run by simulation.
    fn predict(&self, before: Beforehand, facts: &RunFacts, reason: &EndReason) -> Option<RunPrediction> {
        let (test, device) = before.predicted?;
        let input = PredictionInput {
            test,
            places: before.origins,
            settings: self.settings,
            identities: before.identities,
            device,
            epoch: before.epoch,
            tolerance: self.client.tolerance,
            server_tolerance: self.tolerance,
            working_set: &self.working_set,
        };
        Some(input.predict(facts, reason))
    }
}

/// The failure of a run that ended early, with the results in its logs. Without logs, the result directory is removed.
fn broken_off(directory: &Path, error: polygraph_engine::EngineError) -> Failure {
    let summary = match directory.join("client.log").exists() {
        true => partial_summary(directory),
        false => {
            let _ = std::fs::remove_dir_all(directory);
            None
        }
    };
    Failure::setup(error).with_summary(summary)
}
