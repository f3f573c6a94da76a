//! The device under test that a run starts: how it becomes part of the test, and its results at the end.

mod power_failure;

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};

use polygraph_device::{
    AccessCounts, Device, DeviceRole, Error, Params, ProcessEnd, RunningDevice, Usage, UsageSeries,
};
use polygraph_engine::Engine;
use polygraph_plan::Test;
use polygraph_report::device::{USAGE, title};
use polygraph_report::text::whole;
use polygraph_sim::device::{Cache, Model};
use polygraph_stats::{Header, HttpVersion, Record, Side};
use serde_json::{Value, json};

use self::power_failure::{PowerFailure, PowerFailureTimes, lock};
use crate::jobs::listen_hint;
use crate::{Failure, Notice, Notify, make_directory, write_file};

/// The directory of the device's files in a result directory.
const DIRECTORY: &str = "device";

/// A device and its parameters.
#[derive(Debug)]
pub struct DeviceUnderTest {
    device: Device,
    params: Params,
    options: Vec<(String, String)>,
    /// The phase in which the device is off.
    dark: Option<String>,
}

/// A device in the path of a test.
#[derive(Debug)]
pub struct StartedDevice {
    /// Dropped before `running`.
    power: Option<PowerFailure>,
    running: Arc<Mutex<RunningDevice>>,
    role: DeviceRole,
    options: Vec<(String, String)>,
    /// Processor time that the device used before the test, in seconds.
    cpu_before: f64,
    /// Resources of the device over time.
    usage: UsageSeries,
}

impl DeviceUnderTest {
    /// A device that is started with `params`, which the user gave as `options`.
    pub fn new(device: Device, params: Params, options: Vec<(String, String)>) -> DeviceUnderTest {
        DeviceUnderTest { device, params, options, dark: None }
    }

    /// The model of the device's cache for predictions of `test`: LRU of its size, or a cache that keeps everything if no size is
    /// known. `None` for balancers, which store nothing, and for proxies that see nothing but tunnels.
    pub fn model(&self, test: &Test) -> Option<Model> {
        let is_tunneled = self.device.role() == DeviceRole::Forward && test.has_secure_servers();
        if is_tunneled && !self.device.intercepts() {
            return None;
        }
        let size = self.params.memory.unwrap_or(0).saturating_add(self.params.disk.unwrap_or(0));
        let cache = if size > 0 { Cache::Lru(size) } else { Cache::Ideal };
        (self.device.role() != DeviceRole::Balancer).then(|| Model::instant(cache))
    }

    /// The role of the device.
    pub fn role(&self) -> DeviceRole {
        self.device.role()
    }

    /// Event loops of the built-in proxy wait with `engine`.
    #[must_use]
    pub fn with_engine(mut self, engine: Engine) -> DeviceUnderTest {
        self.params.engine = engine;
        self
    }

    /// Switches the device off in the phase called `dark`.
    #[must_use]
    pub fn off_in(self, dark: &str) -> DeviceUnderTest {
        DeviceUnderTest { dark: Some(dark.to_owned()), ..self }
    }

    /// Starts the device in front of servers at `origins`, and makes the robots of the test use it.
    ///
    /// # Errors
    /// If the device does not start.
    pub fn start(
        mut self,
        test: &mut Test,
        origins: &[SocketAddr],
        notify: Notify,
    ) -> Result<StartedDevice, Failure> {
        let role = self.device.role();
        if role.acts_as_servers() {
            self.params.origins = origins.iter().copied().map(reachable).collect();
        }
        if self.device.takes_hosts() && self.params.hosts.is_empty() {
            // The hosts replace a name server.
            self.params.hosts = hosts_of(test);
        }
        let running = self.device.start(&self.params).map_err(failure)?;
        if let Some(spoken) = running.http_versions() {
            check_versions(test, &running, spoken)?;
        }
        route_through(test, role, reachable(running.address()))?;
        let (title, address) = (title(running.name(), running.version()), running.address());
        notify(Notice::Note(format!("{} {title} at {address}", role.word())));
        let usage = running.usage();
        let running = Arc::new(Mutex::new(running));
        Ok(StartedDevice {
            power: self.dark.map(|dark| PowerFailure::new(&running, dark)),
            running,
            role,
            options: self.options,
            cpu_before: usage.cpu_seconds,
            usage: UsageSeries::default(),
        })
    }
}

/// The names of the test's servers with their addresses.
fn hosts_of(test: &Test) -> Vec<(String, IpAddr)> {
    let pairs = |(name, addresses): &(String, Vec<IpAddr>)| {
        addresses.iter().map(|address| (name.clone(), *address)).collect::<Vec<_>>()
    };
    test.names.iter().flat_map(pairs).collect()
}

/// Checks that a device with these settings speaks all versions of HTTP that robots speak.
///
/// # Errors
/// If there is a version that it does not speak: every request would fail, and the device would be blamed.
fn check_versions(test: &Test, device: &RunningDevice, spoken: &[String]) -> Result<(), Failure> {
    let robots = test.robots.iter().filter(|profile| profile.count > 0);
    let versions = robots.flat_map(|profile| profile.http_version.items()).map(|version| match version {
        // What speaks HTTP/1.1 understands HTTP/1.0.
        HttpVersion::Http10 => HttpVersion::Http11.word(),
        version => version.word(),
    });
    let Some(version) = versions.into_iter().find(|version| !spoken.iter().any(|word| word == version))
    else {
        return Ok(());
    };
    let remedy = match device.setting_for_version(version) {
        Some(setting) => format!("add --device_opt {setting}"),
        None => "change the settings of the device (--device_opt; `polygraph devices` lists them)".to_owned(),
    };
    Err(Failure::usage(format!(
        "with these settings, {} speaks HTTP/{} with robots, and robots speak HTTP/{version}: {remedy}, or change the version of the \
         robots (--http_version, or `http_versions` in a workload file)",
        device.name(),
        spoken.join(" and HTTP/")
    )))
}

/// Makes the robots of a test use a device: a forward proxy becomes their proxy, other devices act as the servers.
///
/// # Errors
/// If the workload names a proxy.
fn route_through(test: &mut Test, role: DeviceRole, address: SocketAddr) -> Result<(), Failure> {
    if test.robots.iter().any(|profile| !profile.proxies.is_empty()) {
        return Err(Failure::usage("the workload names a proxy: leave out --device"));
    }
    match role {
        DeviceRole::Forward => test.through_proxies(&[address]),
        DeviceRole::Surrogate => test.through_surrogate(address),
        DeviceRole::Balancer => test.through_balancer(address),
    }
    Ok(())
}

/// The address at which a local server can be reached: loopback if it listens on all addresses.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

impl StartedDevice {
    /// The role of the device.
    pub fn role(&self) -> DeviceRole {
        self.role
    }

    /// Leaves the first `requests` requests in its log out of its counts: they are not part of the test.
    pub fn skip_requests(&self, requests: u64) {
        lock(&self.running).overlook(requests);
    }

    /// Writes its configuration to the result directory.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn keep(&self, directory: &Path) -> Result<(), Failure> {
        lock(&self.running).keep(&directory.join(DIRECTORY)).map_err(failure)
    }

    /// Samples the resources that the device uses, and switches it off and on. Takes every record of the run.
    pub fn watch(&mut self, header: &Header, record: &Record) {
        self.power.iter_mut().for_each(|power| power.watch(header, record));
        if let Record::Interval(interval) = record
            && header.side == Side::Client
        {
            self.sample(interval.end_ns as f64 * 1e-9);
        }
    }

    /// Samples the resources that the device uses, unless the last sample is recent. The time is in seconds from the start of
    /// the run.
    pub fn sample(&mut self, at_s: f64) {
        // The lock is held while the device starts, which must not delay the run.
        if self.usage.is_due(at_s)
            && let Ok(running) = self.running.try_lock()
        {
            self.usage.add(at_s, running.usage());
        }
    }

    /// The address at which the device accepts requests.
    pub fn address(&self) -> SocketAddr {
        lock(&self.running).address()
    }

    /// The part of the manifest about the device, before the run.
    pub fn manifest(&self) -> Value {
        let running = lock(&self.running);
        let files: Vec<String> =
            running.configs().iter().map(|(name, _)| format!("{DIRECTORY}/{name}")).collect();
        json!({
            "name": running.name(),
            "version": running.version(),
            "role": self.role.word(),
            "address": running.address().to_string(),
            "command": running.command(),
            "work_directory": running.work_directory(),
            "options": self.options.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
            "configuration": files,
        })
    }

    /// Stops the device and writes its logs to the result directory.
    ///
    /// # Errors
    /// If its log cannot be read or written.
    pub fn stop(self, directory: &Path, notify: Notify) -> Result<DeviceReport, Failure> {
        let mut running = lock(&self.running);
        let usage = running.usage();
        let end = running.halt();
        if let Some(status) = end.early {
            notify(Notice::Warning(format!("{} ended during the run ({status})", running.name())));
        }
        running.keep(&directory.join(DIRECTORY)).map_err(failure)?;
        write_usage(directory, &self.usage, self.cpu_before)?;
        Ok(DeviceReport {
            name: title(running.name(), running.version()),
            counts: running.counts().map_err(failure)?,
            usage: Usage {
                cpu_seconds: usage.cpu_seconds - self.cpu_before,
                resident_bytes: usage.resident_bytes.max(self.usage.resident_max()),
                ..usage
            },
            end,
            power: self.power.as_ref().map(PowerFailure::times),
        })
    }
}

/// Writes the resources that the device used over time to the result directory.
fn write_usage(directory: &Path, usage: &UsageSeries, cpu_before: f64) -> Result<(), Failure> {
    let Some(csv) = usage.csv(cpu_before) else { return Ok(()) };
    let path = directory.join(USAGE);
    path.parent().map_or(Ok(()), make_directory)?;
    write_file(&path, csv)
}

/// Resources and counts of a device in a run.
#[derive(Debug)]
pub struct DeviceReport {
    name: String,
    /// The times of its power failure, if there was one.
    power: Option<PowerFailureTimes>,
    counts: AccessCounts,
    /// Resources used during the run; for memory, the largest sample.
    usage: Usage,
    end: ProcessEnd,
}

/// The same counts as the robots saw them.
#[derive(Clone, Copy, Debug)]
pub struct RobotCounts {
    /// Started transactions.
    pub requests: u64,
    /// Hits. Only basic transactions can be hits.
    pub hits: u64,
    /// Basic transactions that ended: GET requests without conditions, `no-cache` and similar fields.
    pub basic: u64,
}

impl DeviceReport {
    /// The part of the manifest about the device, after the run.
    pub fn manifest(&self) -> Value {
        json!({
            "ended_by_itself": self.end.early.map(|status| status.to_string()),
            "killed": self.end.killed,
            "power": self.power.as_ref().map(PowerFailureTimes::manifest),
            "cpu_s": self.usage.cpu_seconds,
            "resident_bytes": self.usage.resident_bytes,
            "log": {
                "requests": self.counts.requests,
                "hits": self.counts.hits,
                "misses": self.counts.misses,
                "other": self.counts.other,
                "bytes": self.counts.bytes,
                "unreadable_lines": self.counts.unreadable,
                "plain": self.counts.plain.map(|plain| json!({
                    "requests": plain.requests,
                    "hits": plain.hits,
                })),
            },
        })
    }

    /// A line of the summary: the resources that the device used, and its counts beside those of the robots.
    pub fn line(&self, robots: &RobotCounts) -> String {
        let AccessCounts { requests, hits, unreadable, plain, .. } = self.counts;
        let mut line = format!(
            "{:<14} {}: {:.2} s of processor time, {:.0} MB of {}; its log has ",
            "device",
            self.name,
            self.usage.cpu_seconds,
            self.usage.resident_bytes as f64 / f64::from(1 << 20),
            // The built-in proxy has no process.
            if self.usage.processes == 0 { "stored replies" } else { "memory" },
        );
        let [requests, hits] = [requests, hits].map(whole);
        let [seen, seen_hits, basic] = [robots.requests, robots.hits, robots.basic].map(whole);
        let _ = match plain {
            // Devices count hits among all requests, robots only among basic transactions.
            Some(plain) => write!(
                line,
                "{requests} requests, the robots sent {seen}; of plain requests, its log has {} hits in {}, and the robots saw \
                 {seen_hits} in {basic}",
                whole(plain.hits),
                whole(plain.requests),
            ),
            None => write!(line, "{hits} hits in {requests} requests, the robots saw {seen_hits} in {seen}"),
        };
        if unreadable > 0 {
            let _ = write!(line, "; unreadable lines of its log: {unreadable}");
        }
        line + "\n"
    }
}

/// The failure for an error of a device: a wrong command line, or something that this machine lacks.
pub fn failure(error: Error) -> Failure {
    match error {
        Error::Unknown { .. }
        | Error::Ambiguous(_)
        | Error::Description { .. }
        | Error::Template { .. }
        | Error::Setting { .. } => Failure::usage(error),
        Error::Address { ref source, .. } => {
            let hint = listen_hint(source);
            Failure::setup(anyhow::anyhow!("{error}{hint}"))
        }
        _ => Failure::setup(error),
    }
}
