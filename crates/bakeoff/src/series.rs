//! Carries out a plan step by step, and records the result of each step in the journal.

pub(crate) mod child;
pub(crate) mod fill;
mod fleet_load;
mod network;
mod session;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use polygraph_device::{Device, Params};
use polygraph_engine::signals::StopPoller;
use polygraph_report::run_dir::MANIFEST;
use polygraph_report::text;
use serde_json::Value;

use crate::entry::AttemptStatus;
use crate::figures::MainFigures;
use crate::journal::{BakeoffProgress, Journal, JournalError, JournalEvent};
use crate::order::{self, BakeoffStep, BenchCapacity};
use crate::plan::{BakeoffPlan, Contestant, FleetBench};
use crate::rules;
use child::{ChildOutcome, ChildRun};
use session::DeviceSession;

/// The journal's name in the directory of a bake-off.
pub const JOURNAL: &str = "journal.jsonl";
/// A copy of the plan there.
pub const PLAN: &str = "plan.toml";
/// Maximum time that a run takes in addition to its phases: to finish transactions and to write the report, even on a
/// busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Why a series cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum SeriesError {
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A device cannot be used.
    #[error("device `{name}`: {problem}")]
    Device {
        /// Name of the device in the plan.
        name: String,
        /// The problem and its remedy.
        problem: String,
    },
    /// A program that carries out a step failed.
    #[error("{0}")]
    Step(String),
    /// A system call failed.
    #[error("cannot {action}: {source}")]
    Io {
        /// The failed operation.
        action: String,
        /// The cause.
        source: std::io::Error,
    },
}

impl SeriesError {
    fn io(action: impl Into<String>) -> impl FnOnce(std::io::Error) -> SeriesError {
        let action = action.into();
        move |source| SeriesError::Io { action, source }
    }
}

/// How a series ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesEnd {
    /// All steps are done.
    Done,
    /// The user stopped the series; the next call continues it.
    Stopped,
    /// The bench does not sustain the top rate without a device, so no device was tested.
    BenchFails,
}

/// A message of a series.
#[derive(Clone, Debug)]
pub enum SeriesNote {
    /// An event.
    Event(String),
    /// Progress of the current step.
    Progress(String),
}

/// Finds a device and its parameters by its name and options in a plan.
pub type FindDevice<'a> = dyn Fn(&str, &BTreeMap<String, String>) -> Result<(Device, Params), String> + 'a;

/// Dependencies of a series.
pub struct SeriesContext<'a> {
    /// Path of this program, which carries out single runs.
    pub program: PathBuf,
    /// Finds devices.
    pub find: &'a FindDevice<'a>,
    /// Receives progress and events.
    pub notify: &'a mut dyn FnMut(SeriesNote),
}

/// A bake-off in progress.
pub struct Series<'a> {
    plan: &'a BakeoffPlan,
    directory: PathBuf,
    journal: Journal,
    progress: BakeoffProgress,
    stage: SeriesContext<'a>,
    stop: StopPoller,
    session: Option<DeviceSession>,
}

impl<'a> Series<'a> {
    /// Starts a series, or continues the one in `directory`, which must exist.
    ///
    /// # Errors
    /// If the journal cannot be used, or a device is missing or has results with another configuration.
    pub fn open(
        plan: &'a BakeoffPlan,
        directory: &Path,
        stage: SeriesContext<'a>,
    ) -> Result<Series<'a>, SeriesError> {
        let journal = Journal::open(&directory.join(JOURNAL))?;
        let progress = BakeoffProgress::of(journal.entries());
        let stop = StopPoller::new().map_err(SeriesError::io("listen for signals"))?;
        let directory = directory.to_owned();
        let mut series = Series { plan, directory, journal, progress, stage, stop, session: None };
        series.enrol()?;
        Ok(series)
    }

    /// Deletes all results of a device, which then starts again.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub fn drop_results(journal: &mut Journal, device: &str) -> Result<(), SeriesError> {
        Ok(journal.note(now(), JournalEvent::Dropped { device: device.to_owned() })?)
    }

    /// Checks that all devices exist, and that earlier results were measured with the configuration of this plan.
    fn enrol(&mut self) -> Result<(), SeriesError> {
        for device in &self.plan.devices {
            let wrong = |problem| SeriesError::Device { name: device.name.clone(), problem };
            session::check(device, self.plan, self.stage.find).map_err(wrong)?;
            let configuration = device.configuration(self.plan);
            let known = self.progress.devices.get(&device.name).and_then(|s| s.configuration.as_ref());
            match known {
                Some(known) if *known != configuration => {
                    return Err(wrong(format!(
                        "it has results with another configuration or workload, and results must not be mixed: restore the \
                         plan, or delete the results with --drop {}",
                        device.name
                    )));
                }
                Some(_) => {}
                None => {
                    let device = device.name.clone();
                    self.note(JournalEvent::Enrolled { device, configuration })?;
                }
            }
        }
        Ok(())
    }

    fn note(&mut self, event: JournalEvent) -> Result<(), SeriesError> {
        self.progress.apply(&event);
        Ok(self.journal.note(now(), event)?)
    }

    fn notify(&mut self, text: impl Into<String>) {
        (self.stage.notify)(SeriesNote::Event(text.into()));
    }

    /// The state of the series.
    pub fn progress(&self) -> &BakeoffProgress {
        &self.progress
    }

    /// Carries out all remaining steps.
    ///
    /// # Errors
    /// If a step cannot be carried out. Earlier steps remain recorded.
    pub fn run(&mut self) -> Result<SeriesEnd, SeriesError> {
        let left = order::remaining(self.plan, &self.progress).len();
        let done: usize = self.progress.devices.values().map(|standing| standing.ended.len()).sum();
        let eta = text::duration(self.left_s().round());
        let before =
            if done > 0 { format!("{} done; ", text::counted(done as u64, "run")) } else { String::new() };
        self.notify(format!("{before}{} to go, about {eta}", text::counted(left as u64, "step")));
        while let Some(step) = order::next(self.plan, &self.progress) {
            let went_on = match step {
                BakeoffStep::Network => self.network()?,
                BakeoffStep::NoProxy => self.no_proxy()?,
                BakeoffStep::Run { device, rate, attempt } => self.device_run(device, rate, attempt)?,
            };
            if !went_on {
                self.close()?;
                return Ok(SeriesEnd::Stopped);
            }
        }
        self.close()?;
        Ok(match order::bench(self.plan, &self.progress) {
            BenchCapacity::Fails => SeriesEnd::BenchFails,
            _ => SeriesEnd::Done,
        })
    }

    fn left_s(&self) -> f64 {
        let steps = order::remaining(self.plan, &self.progress);
        let up = self.session.as_ref().filter(|session| session.full).map(|session| session.device);
        order::duration_s(self.plan, &self.progress, &steps, up)
    }

    /// The start of progress lines: the remaining part of the series.
    fn lead(&self, what: &str) -> String {
        let left = order::remaining(self.plan, &self.progress).len();
        format!("{what}, {left} to go, {} in all", text::duration((self.left_s() / 60.0).ceil() * 60.0))
    }

    fn network(&mut self) -> Result<bool, SeriesError> {
        let seconds = self.plan.checks.network_s.unwrap_or_default();
        let mbit_s = network::throughput(Duration::from_secs_f64(seconds), &mut self.stop)
            .map_err(SeriesError::io("measure the network's throughput"))?;
        let Some(mbit_s) = mbit_s else { return Ok(false) };
        self.notify(format!(
            "network between robots and servers: {} Mbit/s over {}",
            text::number(Some(mbit_s), 0),
            text::duration(seconds)
        ));
        self.note(JournalEvent::Network { mbit_s, seconds })?;
        Ok(true)
    }

    fn no_proxy(&mut self) -> Result<bool, SeriesError> {
        let (rate, seconds) = (self.plan.top_rate(), self.plan.checks.no_proxy_s.unwrap_or_default());
        let place = self.directory.join("no-proxy");
        let mut words = vec!["--no_proxy".to_owned()];
        words.extend(self.load(rate, seconds)?);
        let lead = self.lead("no proxy");
        let Some(ran) = self.child("no-proxy", &place, words, seconds, &lead)? else { return Ok(false) };
        let (status, reason) = self.judge(&ran);
        self.notify(format!("no proxy at {rate} requests per second: {} ({reason})", status.word()));
        let run = self.relative(&ran.directory);
        self.note(JournalEvent::NoProxy { rate, run, status, reason })?;
        Ok(true)
    }

    fn device_run(&mut self, index: usize, rate: f64, attempt: u32) -> Result<bool, SeriesError> {
        let device = &self.plan.devices[index];
        if !self.ready(index)? || !self.rest(device)? {
            return Ok(false);
        }
        let name = device.name.clone();
        self.note(JournalEvent::Begin { device: name.clone(), rate, attempt })?;
        let Some(session) = &self.session else { return Ok(false) };
        let before = session.cpu_s();
        let mut words = session.route();
        if self.plan.workload.file.is_none() && self.plan.workload.fleet.is_none() {
            words.extend(session.servers());
        }
        words.extend(self.load(rate, self.plan.workload.duration_s)?);
        let label = format!("{name}-{rate}-{attempt}");
        let lead = self.lead(&format!("{name} at {rate}/s"));
        let place = self.directory.join(&name);
        let seconds = self.plan.workload.duration_s;
        let Some(ran) = self.child(&label, &place, words, seconds, &lead)? else { return Ok(false) };
        let (status, mut reason) = self.judge(&ran);
        self.describe_device(&ran)?;
        let session = self.session.as_ref();
        let cpu_s = session.and_then(DeviceSession::cpu_s).zip(before).map(|(after, before)| after - before);
        let fell = session.is_some_and(|session| !session.is_up());
        if fell {
            reason = format!("{reason}; the device stopped during the run");
            // The next step must start and fill the device again.
            self.close()?;
        }
        let status = if fell { AttemptStatus::Failed } else { status };
        self.notify(format!(
            "{name} at {rate}/s, run {attempt}: {} ({})",
            status.word(),
            ran.figures(&reason)
        ));
        let run = self.relative(&ran.directory);
        let figures = ran.facts.as_ref().ok().map(MainFigures::of);
        self.note(JournalEvent::End { device: name, rate, attempt, run, status, reason, cpu_s, figures })?;
        Ok(true)
    }

    /// Starts and fills a device unless it is the current one.
    fn ready(&mut self, index: usize) -> Result<bool, SeriesError> {
        if self.session.as_ref().is_some_and(|session| session.device == index && session.full) {
            return Ok(true);
        }
        self.close()?;
        let device = &self.plan.devices[index];
        let wrong = |problem| SeriesError::Device { name: device.name.clone(), problem };
        let mut session = DeviceSession::start(device, index, self.stage.find).map_err(wrong)?;
        self.notify(format!("{}: {}", device.name, session.summary()));
        let (facts, checks) = (session.facts(), session.checks());
        self.note(JournalEvent::Up { device: device.name.clone(), facts, checks })?;
        // A device elsewhere keeps its cache when this program ends.
        let filled =
            self.progress.devices.get(&device.name).is_some_and(|standing| !standing.fills.is_empty());
        session.full = session.is_elsewhere() && filled;
        self.session = Some(session);
        Ok(self.session.as_ref().is_some_and(|session| session.full) || self.fill(device)?)
    }

    /// Stops the current device and keeps its files.
    fn close(&mut self) -> Result<(), SeriesError> {
        let Some(mut session) = self.session.take() else { return Ok(()) };
        let name = &self.plan.devices[session.device].name;
        let place = self.directory.join(name).join("device");
        session.close(&place).map_err(|problem| SeriesError::Device { name: name.clone(), problem })
    }

    /// Waits for the idle gap before a run.
    fn rest(&mut self, device: &Contestant) -> Result<bool, SeriesError> {
        let gap = Duration::from_secs_f64(self.plan.rules.idle_gap_s);
        let begin = Instant::now();
        while begin.elapsed() < gap {
            let left = gap.saturating_sub(begin.elapsed());
            let lead = self.lead(&device.name);
            (self.stage.notify)(SeriesNote::Progress(format!(
                "{lead}: pauses for {} s",
                left.as_secs_f64().ceil()
            )));
            if self.stop.pause(left.min(Duration::from_secs(10))) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Options of a run at a rate.
    fn load(&self, rate: f64, seconds: f64) -> Result<Vec<String>, SeriesError> {
        let workload = &self.plan.workload;
        let mut words = Vec::new();
        match &workload.fleet {
            Some(bench) if workload.file.is_none() => {
                let text = fleet_load::measurement(bench, self.plan, rate, seconds);
                words.extend(self.fleet_words(bench, &text, "measurement")?);
            }
            Some(bench) => {
                words.extend(["--fleet".to_owned(), bench.url.clone()]);
                words.extend(bench.options.iter().cloned());
            }
            None => {}
        }
        let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
        for (name, value) in &workload.options {
            option(name, value.clone());
        }
        match &workload.file {
            Some(file) => {
                option("config", file.path.display().to_string());
                option("set", format!("{}={rate}/sec", file.rate));
            }
            None if workload.fleet.is_some() => {}
            None => {
                option("req_rate", format!("{rate}/sec"));
                option("goal", format!("{seconds}s"));
                // A short check is shorter than the whole window.
                option("launch_win", format!("{}s", self.plan.rules.launch_window_s.min(seconds / 2.0)));
                option("cool_phase", format!("{}s", workload.cool_s));
            }
        }
        Ok(words)
    }

    /// Options that run a workload with the fleet.
    fn fleet_words(&self, bench: &FleetBench, text: &str, name: &str) -> Result<Vec<String>, SeriesError> {
        fleet_load::words(bench, text, &self.directory, name)
            .map_err(SeriesError::io(format!("write {name}.pg to {}", self.directory.display())))
    }

    /// Runs this program as a child. `None`: the user stopped the series.
    fn child(
        &mut self,
        label: &str,
        place: &Path,
        words: Vec<String>,
        seconds: f64,
        lead: &str,
    ) -> Result<Option<child::CompletedRun>, SeriesError> {
        let limit = Duration::from_secs_f64(seconds + self.plan.workload.cool_s) + PATIENCE;
        let child = ChildRun {
            program: &self.stage.program,
            label,
            place,
            words,
            with_fleet: self.plan.workload.fleet.is_some(),
            limit,
        };
        let notify = &mut self.stage.notify;
        let outcome =
            child.run(&mut self.stop, |line| notify(SeriesNote::Progress(format!("{lead}: {line}"))))?;
        match outcome {
            ChildOutcome::Completed(ran) => Ok(Some(*ran)),
            ChildOutcome::Stopped => Ok(None),
            ChildOutcome::Refused(problem) => Err(SeriesError::Step(problem)),
        }
    }

    /// Adds the device to the manifest of a run, which knows only its address.
    fn describe_device(&self, ran: &child::CompletedRun) -> Result<(), SeriesError> {
        let Some(device) = self.session.as_ref().and_then(DeviceSession::manifest) else { return Ok(()) };
        let path = ran.directory.join(MANIFEST);
        let add = || -> std::io::Result<()> {
            let mut manifest: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
            manifest["device"] = device;
            std::fs::write(&path, serde_json::to_string_pretty(&manifest)? + "\n")
        };
        add().map_err(SeriesError::io(format!("add the device to {}", path.display())))
    }

    fn judge(&self, ran: &child::CompletedRun) -> (AttemptStatus, String) {
        match &ran.facts {
            Ok(facts) => rules::judge(facts, self.plan.rules.max_errors),
            Err(problem) => (AttemptStatus::Invalid, problem.clone()),
        }
    }

    fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.directory).unwrap_or(path).display().to_string()
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
