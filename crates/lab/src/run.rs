//! A test in a lab: servers, the device and clients on their hosts, and one result.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use polygraph_engine::signals::StopPoller;
use polygraph_netsetup::Namespace;
use polygraph_plan::Test;
use polygraph_runner::device::{DeviceReport, DeviceUnderTest, StartedDevice};
use polygraph_runner::result::{Conclusion, check_empty, manifest, result_directory, write_manifest};
use polygraph_runner::{Expectations, Failure, Notify, RunResult, make_directory};
use polygraph_stats::exit_code;
use serde_json::{Value, json};

use crate::host_process::HostProcess;
use crate::layout::{Lab, LabHost, LabRole};

/// How often processes are looked after.
const LOOK: Duration = Duration::from_millis(50);
/// How long a process may take until it works, and until it has ended after it was asked to.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long servers may go on after the last client; by themselves they end after three seconds without requests.
const SERVERS_END: Duration = Duration::from_secs(20);
/// What servers print when they accept connections.
const LISTENING: &str = "listening at";
/// The exit code of a process whose run ended as planned.
const OK: i32 = exit_code::OK as i32;
/// The exit code of a process that was asked to stop.
const INTERRUPTED: i32 = exit_code::INTERRUPTED as i32;
/// The exit code of a client whose error goal was reached, or whose device did not answer before the test.
const FAILED: i32 = exit_code::FAILED as i32;

/// A test in a lab.
#[derive(Debug)]
pub struct LabRun<'a> {
    /// The lab, which is up.
    pub lab: &'a Lab,
    /// This program.
    pub program: PathBuf,
    /// The test, as all processes understand it.
    pub test: Test,
    /// Options of clients and servers.
    pub words: Vec<String>,
    /// Options of clients.
    pub client_words: Vec<String>,
    /// Options of servers.
    pub server_words: Vec<String>,
    /// The device to start on the device's host.
    pub device: Option<DeviceUnderTest>,
    /// The command line, word by word, for the manifest.
    pub command: Vec<String>,
    /// Start of the result directory's name.
    pub label: &'a str,
    /// The parent directory of new result directories.
    pub runs: &'a Path,
    /// The result directory, which must be new or empty; `None`: a new one.
    pub out: Option<PathBuf>,
    /// What the user expects of the run.
    pub expectations: Expectations,
    /// Shows messages.
    pub notify: Notify,
}

/// What happens during a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabRunEvent {
    /// A process was started on a host.
    Started {
        /// The host.
        host: String,
        /// Its task.
        role: LabRole,
    },
    /// A process printed a line.
    Line {
        /// The host.
        host: String,
        /// The line.
        text: String,
    },
}

type Watch<'a> = &'a mut (dyn FnMut(LabRunEvent) + Send);

impl LabRun<'_> {
    /// Runs the test and writes its result directory. `watch` sees what happens.
    ///
    /// # Errors
    /// If the test cannot be run. A test that fails is no error.
    pub fn run(self, watch: Watch<'_>) -> Result<RunResult, Failure> {
        self.check()?;
        self.expectations.check_phases(&self.test.schedule)?;
        self.out.as_deref().map_or(Ok(()), check_empty)?;
        let Some(device) = self.lab.with_role(LabRole::Device).next().filter(|_| self.device.is_some())
        else {
            return self.measure(watch);
        };
        // The device and what waits for it are threads and children of a thread in its namespace.
        let namespace = Namespace::named(&self.lab.namespace(&device.name)).map_err(Failure::setup)?;
        let done = namespace.run(|| self.measure(watch)).map_err(Failure::setup)?;
        done.unwrap_or_else(|| {
            Err(Failure::setup(anyhow::anyhow!("the namespace of {} is gone", device.name)))
        })
    }

    fn check(&self) -> Result<(), Failure> {
        let missing = |what: &str| Failure::usage(format!("the lab {} has no {what}", self.lab.name));
        if self.hosts(LabRole::Client).next().is_none() || self.hosts(LabRole::Server).next().is_none() {
            return Err(missing("clients or no servers: a test needs both"));
        }
        if self.device.is_some() && self.hosts(LabRole::Device).next().is_none() {
            return Err(missing("host for the device: add [device] to its file, or add --no_proxy"));
        }
        Ok(())
    }

    fn hosts(&self, role: LabRole) -> impl Iterator<Item = &LabHost> {
        self.lab.with_role(role)
    }

    fn measure(mut self, watch: Watch<'_>) -> Result<RunResult, Failure> {
        let mut stop = StopPoller::new().map_err(Failure::setup)?;
        let origins: Vec<SocketAddr> =
            self.test.servers.iter().flat_map(|servers| &servers.sites).map(|site| site.listen).collect();
        let device = self.device.take();
        let device = device.map(|device| device.start(&mut self.test, &origins, self.notify)).transpose()?;
        let directory = match &self.out {
            Some(directory) => {
                make_directory(directory)?;
                directory.clone()
            }
            None => result_directory(self.runs, self.label)?,
        };
        let lab = self.lab;
        let measured = self.follow(device, &directory, &mut stop, watch);
        let begun = lab.with_role(LabRole::Client).any(|host| directory.join(log_name(host)).exists());
        if measured.is_err() && !begun {
            // What the processes said is in the error.
            let _ = std::fs::remove_dir_all(&directory);
        }
        measured
    }

    /// Starts the processes, waits for their end, and writes the result.
    fn follow(
        self,
        mut device: Option<StartedDevice>,
        directory: &Path,
        stop: &mut StopPoller,
        watch: Watch<'_>,
    ) -> Result<RunResult, Failure> {
        make_directory(&directory.join(CONSOLE))?;
        let mut manifest_device = Value::Null;
        if let Some(device) = &device {
            device.keep(directory)?;
            manifest_device = device.manifest();
        }
        let begin = Instant::now();
        let mut bench = Processes { all: Vec::new(), stopped: false };
        for (number, host) in self.hosts(LabRole::Server).enumerate() {
            let words = self.process_words("server", &self.server_words, host, number, directory);
            bench.start(self.lab, host, &words, directory, watch)?;
        }
        bench.wait_until_listening(stop, watch)?;
        let servers = bench.all.len();
        let path =
            device.as_ref().map(|device| [device.role().option().to_owned(), device.address().to_string()]);
        for (number, host) in self.hosts(LabRole::Client).enumerate() {
            let mut words =
                self.process_words("client", &self.client_words, host, servers + number, directory);
            words.extend(path.iter().flatten().cloned());
            bench.start(self.lab, host, &words, directory, watch)?;
        }
        bench.wait_for_end(servers, stop, watch, &mut || {
            device.iter_mut().for_each(|device| device.sample(begin.elapsed().as_secs_f64()));
        })?;
        bench.check_ends(servers)?;
        let report = device.map(|device| device.stop(directory, self.notify)).transpose()?;
        self.conclude(directory, &bench, manifest_device, report.as_ref())
    }

    /// The command line of a process.
    fn process_words(
        &self,
        command: &str,
        own: &[String],
        host: &LabHost,
        number: usize,
        directory: &Path,
    ) -> Vec<String> {
        let log = directory.join(log_name(host));
        let fixed = [
            self.program.display().to_string(),
            command.to_owned(),
            "--log".to_owned(),
            log.display().to_string(),
            "--local_rng_seed".to_owned(),
            (number + 1).to_string(),
        ];
        fixed.into_iter().chain(self.words.iter().cloned()).chain(own.iter().cloned()).collect()
    }

    fn conclude(
        self,
        directory: &Path,
        bench: &Processes,
        device: Value,
        report: Option<&DeviceReport>,
    ) -> Result<RunResult, Failure> {
        let logs = logs(self.lab, directory);
        let facts = polygraph_runner::result::read_logs(&logs)?;
        let header = |side: &Option<polygraph_report::facts::SideFacts>| {
            side.as_ref().map(|side| side.header().clone())
        };
        let main = facts.main_side().header().clone();
        let (client, server) = (header(&facts.client), header(&facts.server));
        let mut manifest =
            manifest(client.as_ref().unwrap_or(&main), server.as_ref().unwrap_or(&main), &jiff::Zoned::now());
        manifest["command"] = json!(self.command);
        manifest["lab"] = json!(self.lab);
        if !device.is_null() {
            manifest["device"] = device;
        }
        if let Some(report) = report {
            manifest["device"]["result"] = report.manifest();
        }
        write_manifest(directory, &manifest)?;
        let conclusion = Conclusion {
            directory,
            logs: &logs,
            interrupted: bench.stopped,
            device: report,
            expectations: &self.expectations,
        };
        conclusion.write(&mut manifest, |_| None, self.notify)
    }
}

/// The directory of what processes printed, in a result directory.
const CONSOLE: &str = "console";

/// The logs of a lab's hosts in a result directory.
fn logs(lab: &Lab, directory: &Path) -> Vec<PathBuf> {
    let of_hosts = lab.hosts.iter().map(|host| directory.join(log_name(host)));
    of_hosts.filter(|path| path.exists()).collect()
}

fn log_name(host: &LabHost) -> String {
    format!("{}.log", host.name)
}

/// The processes of a run: servers, then clients.
struct Processes {
    all: Vec<HostProcess>,
    /// Whether the user stopped the run.
    stopped: bool,
}

impl Processes {
    fn start(
        &mut self,
        lab: &Lab,
        host: &LabHost,
        words: &[String],
        directory: &Path,
        watch: Watch<'_>,
    ) -> Result<(), Failure> {
        let console = directory.join(CONSOLE).join(format!("{}.txt", host.name));
        let log = directory.join(log_name(host));
        let process = HostProcess::start(&host.name, &lab.namespace(&host.name), words, &console, log);
        self.all.push(process.map_err(Failure::setup)?);
        watch(LabRunEvent::Started { host: host.name.clone(), role: host.role });
        Ok(())
    }

    /// Passes on what processes print, and stops them if the user wants that.
    fn look(&mut self, stop: &mut StopPoller, watch: Watch<'_>) {
        if stop.pause(LOOK) {
            self.stopped = true;
            self.all.iter_mut().for_each(HostProcess::stop);
        }
        for process in &mut self.all {
            for text in process.new_lines() {
                watch(LabRunEvent::Line { host: process.host.clone(), text });
            }
        }
    }

    fn wait_until_listening(&mut self, stop: &mut StopPoller, watch: Watch<'_>) -> Result<(), Failure> {
        let deadline = Instant::now() + PATIENCE;
        let mut waiting: Vec<String> = self.all.iter().map(|process| process.host.clone()).collect();
        while !waiting.is_empty() {
            self.look(stop, &mut |event| {
                if let LabRunEvent::Line { host, text } = &event
                    && text.contains(LISTENING)
                {
                    waiting.retain(|name| name != host);
                }
                watch(event);
            });
            let gone = self.all.iter_mut().find_map(|process| {
                let is_waiting = waiting.contains(&process.host);
                Some((process.end().filter(|_| is_waiting)?, process))
            });
            if let Some((status, process)) = gone {
                return Err(failed(process, status));
            }
            if Instant::now() > deadline {
                return Err(Failure::setup(anyhow::anyhow!(
                    "the servers of {} do not listen after {} s",
                    waiting.join(", "),
                    PATIENCE.as_secs()
                )));
            }
        }
        Ok(())
    }

    /// Waits for the clients, which come after `servers` servers, and then for the servers.
    fn wait_for_end(
        &mut self,
        servers: usize,
        stop: &mut StopPoller,
        watch: Watch<'_>,
        tick: &mut dyn FnMut(),
    ) -> Result<(), Failure> {
        while self.all[servers..].iter_mut().any(|process| process.end().is_none()) {
            self.look(stop, watch);
            tick();
            // The others would wait for a client that is gone without a result.
            let failed =
                |process: &mut HostProcess| process.end().is_some_and(|end| !has_results(process, end));
            if self.all[servers..].iter_mut().any(failed) {
                self.all.iter_mut().for_each(HostProcess::stop);
            }
        }
        let (mut begin, mut asked) = (Instant::now(), false);
        while self.all.iter_mut().any(|process| process.end().is_none()) {
            self.look(stop, watch);
            if begin.elapsed() > SERVERS_END && !asked {
                self.all.iter_mut().for_each(HostProcess::stop);
                (begin, asked) = (Instant::now(), true);
            }
            if begin.elapsed() > PATIENCE {
                return Err(Failure::setup(anyhow::anyhow!("servers do not end when they are asked to")));
            }
        }
        self.look(stop, watch);
        Ok(())
    }

    /// Checks that all clients have results.
    fn check_ends(&mut self, servers: usize) -> Result<(), Failure> {
        for process in &mut self.all[servers..] {
            if let Some(status) = process.end()
                && !has_results(process, status)
            {
                return Err(failed(process, status));
            }
        }
        Ok(())
    }
}

/// Whether a process ended in order.
fn has_results(process: &mut HostProcess, status: ExitStatus) -> bool {
    match status.code() {
        Some(OK | INTERRUPTED) => true,
        // Without a log, its test has not begun.
        Some(FAILED) => process.log.exists(),
        _ => false,
    }
}

/// The failure of a run one of whose processes could not work.
fn failed(process: &mut HostProcess, status: ExitStatus) -> Failure {
    let last = process.last_words();
    let text = format!("{} could not do its work ({status}):\n  {last}", process.host);
    match status.code() {
        Some(FAILED) => Failure::verdict(text),
        Some(2) => Failure::usage(text),
        _ => Failure::setup(anyhow::anyhow!(text)),
    }
}
