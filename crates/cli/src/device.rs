//! The device of a run: from options to parameters, into the path of the test, and what it has to say at the end.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use clap::Args;
use polygraph_device::{
    AccessCounts, Device, DeviceRole, Error, Params, ProcessEnd, RunningDevice, Usage, UsageSeries,
};
use polygraph_plan::{Test, values};
use polygraph_report::device::USAGE;
use polygraph_sim::device::{Cache, Model};
use polygraph_stats::{Header, Record, Side};
use serde_json::{Value, json};

use crate::power::{Moments, Power, lock};
use crate::{Failure, console};

/// Where the device's files are in a result directory.
const DIRECTORY: &str = "device";

/// A device to start.
#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case", next_help_heading = "Device")]
pub struct DeviceOptions {
    /// Start this device, test it, stop it: a name from `polygraph devices`, or a directory in the same form
    #[arg(long, value_name = "NAME|DIR")]
    device: Option<String>,
    /// What the device is told, repeatable: listen=IP:PORT, mem=SIZE, disk=SIZE, disk_dir=DIR, max_object=SIZE,
    /// workers=N, dns=IP:PORT, hosts=FILE, and what `polygraph devices` lists; for `builtin` the options of
    /// `polygraph proxy` that make it slower, like service_rate=200/sec
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    device_opt: Vec<(String, String)>,
}

/// The two sides of `KEY=VALUE`.
pub fn key_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, for example mem=256MB")?;
    Ok((key.to_owned(), value.to_owned()))
}

impl DeviceOptions {
    /// Whether there is one to start.
    pub fn is_given(&self) -> bool {
        self.device.is_some()
    }
}

/// A device with what it is told.
#[derive(Debug)]
pub struct UnderTest {
    device: Device,
    params: Params,
    options: Vec<(String, String)>,
    /// The phase in which it is off.
    dark: Option<String>,
}

/// The device that options ask for.
///
/// # Errors
/// If there is none of that name, or an option has no such value.
pub fn under_test(options: &DeviceOptions) -> Result<Option<UnderTest>, Failure> {
    let Some(name) = &options.device else {
        let lonely = options.device_opt.first();
        return lonely.map_or(Ok(None), |(key, _)| {
            Err(Failure::usage(format!("--device_opt {key} is for a --device, and there is none")))
        });
    };
    let device = Device::find(name).map_err(failure)?;
    let params = params_of(&options.device_opt)
        .map_err(|problem| Failure::usage(format!("--device_opt {problem}")))?;
    Ok(Some(UnderTest { device, params, options: options.device_opt.clone(), dark: None }))
}

/// What a device is told, from names and values.
///
/// # Errors
/// The name and value that is wrong, and why.
pub fn params_of(options: &[(String, String)]) -> Result<Params, String> {
    let mut params = Params::default();
    for (key, value) in options {
        set(&mut params, key, value).map_err(|problem| format!("{key}={value}: {problem}"))?;
    }
    Ok(params)
}

/// Sets one parameter. What is not known here is for the device to know.
fn set(params: &mut Params, key: &str, value: &str) -> Result<(), String> {
    match key {
        "listen" => params.listen = address(value)?,
        "mem" => params.memory = Some(values::size(value)?),
        "disk" => params.disk = Some(values::size(value)?),
        "disk_dir" => params.disk_directory = Some(PathBuf::from(value)),
        "max_object" => params.max_object = Some(values::size(value)?),
        "workers" => {
            let workers = value.parse().ok().filter(|workers| (1..=1024).contains(workers));
            params.workers = Some(workers.ok_or("write a whole number from 1 to 1024")?);
        }
        "dns" => params.nameservers.push(address(value)?),
        "hosts" => params.hosts = hosts(value)?,
        _ if crate::service::set(&mut params.service, key, value)? => {}
        _ => drop(params.options.insert(key.to_owned(), value.to_owned())),
    }
    Ok(())
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "write IP:PORT, for example 127.0.0.1:3128".into())
}

/// The names and addresses of a file in the form of hosts(5).
fn hosts(path: &str) -> Result<Vec<(String, IpAddr)>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let mut hosts = Vec::new();
    for line in text.lines() {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(first) = words.next() else { continue };
        let ip = first.parse().map_err(|_| format!("`{first}` in {path} is not an IP address"))?;
        hosts.extend(words.map(|name| (name.to_owned(), ip)));
    }
    Ok(hosts)
}

/// A device in the path of a test.
#[derive(Debug)]
pub struct InPath {
    /// Ends before the device is forgotten, and after it was stopped.
    power: Option<Power>,
    running: Arc<Mutex<RunningDevice>>,
    role: DeviceRole,
    options: Vec<(String, String)>,
    /// Processor seconds before the test.
    cpu_before: f64,
    /// What it used over time.
    usage: UsageSeries,
}

impl UnderTest {
    /// What is known of the device's cache, for predictions: without any size it may keep everything;
    /// balancers keep nothing.
    pub fn model(&self) -> Option<Model> {
        let size = self.params.memory.unwrap_or(0).saturating_add(self.params.disk.unwrap_or(0));
        let cache = if size > 0 { Cache::Lru(size) } else { Cache::Ideal };
        (self.device.role() != DeviceRole::Balancer).then(|| Model::instant(cache))
    }

    /// The device will be off in the phase called `dark`.
    #[must_use]
    pub fn off_in(self, dark: &str) -> UnderTest {
        UnderTest { dark: Some(dark.to_owned()), ..self }
    }

    /// Starts the device in front of servers at `origins` and leads the robots of the test to it.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(mut self, test: &mut Test, origins: &[SocketAddr]) -> Result<InPath, Failure> {
        let role = self.device.role();
        if role != DeviceRole::Forward {
            self.params.origins = origins.iter().copied().map(reachable).collect();
        }
        if self.device.takes_hosts() && self.params.hosts.is_empty() {
            // What the device would ask a name server.
            self.params.hosts = hosts_of(test);
        }
        let running = self.device.start(&self.params).map_err(failure)?;
        lead(test, role, reachable(running.address()))?;
        let (name, version, address) = (running.name(), running.version(), running.address());
        console::note(&format!("{} {name} {version} at {address}", role.word()));
        let usage = running.usage();
        let running = Arc::new(Mutex::new(running));
        Ok(InPath {
            power: self.dark.map(|dark| Power::new(&running, dark)),
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

/// Leads the robots of a test to a device: a forward proxy is named to them, the others pose as the servers.
///
/// # Errors
/// If the workload names a proxy itself.
fn lead(test: &mut Test, role: DeviceRole, address: SocketAddr) -> Result<(), Failure> {
    if test.robots.iter().any(|profile| !profile.proxies.is_empty()) {
        return Err(Failure::usage("the workload names a proxy itself: leave --device out"));
    }
    match role {
        DeviceRole::Forward => test.through_proxies(&[address]),
        DeviceRole::Surrogate | DeviceRole::Balancer => test.through_surrogate(address),
    }
    Ok(())
}

/// Whoever listens at all addresses is reached at the loopback one.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

impl InPath {
    /// It poses as the servers.
    pub fn is_surrogate(&self) -> bool {
        self.role != DeviceRole::Forward
    }

    /// The first `requests` requests that it has answered are none of the test.
    pub fn overlook(&self, requests: u64) {
        lock(&self.running).overlook(requests);
    }

    /// Keeps its configuration in the result directory.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn keep(&self, directory: &Path) -> Result<(), Failure> {
        lock(&self.running).keep(&directory.join(DIRECTORY)).map_err(failure)
    }

    /// Samples what the device uses, and cuts its power when that is wanted; called with every record of the run.
    pub fn watch(&mut self, header: &Header, record: &Record) {
        self.power.iter_mut().for_each(|power| power.watch(header, record));
        if let Record::Interval(interval) = record
            && header.side == Side::Client
            && self.usage.is_due(interval.end_ns as f64 * 1e-9)
            // While it starts nobody waits for it here.
            && let Ok(running) = self.running.try_lock()
        {
            self.usage.add(interval.end_ns as f64 * 1e-9, running.usage());
        }
    }

    /// What the manifest says before the run.
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

    /// Stops the device and keeps its logs in the result directory.
    ///
    /// # Errors
    /// If its log cannot be read or kept.
    pub fn stop(self, directory: &Path) -> Result<Report, Failure> {
        let mut running = lock(&self.running);
        let usage = running.usage();
        let end = running.halt();
        if let Some(status) = end.early {
            console::warn(&format!("{} ended by itself during the run ({status})", running.name()));
        }
        running.keep(&directory.join(DIRECTORY)).map_err(failure)?;
        keep_usage(directory, &self.usage, self.cpu_before)?;
        Ok(Report {
            name: format!("{} {}", running.name(), running.version()),
            counts: running.counts().map_err(failure)?,
            usage: Usage {
                cpu_seconds: usage.cpu_seconds - self.cpu_before,
                resident_bytes: usage.resident_bytes.max(self.usage.resident_max()),
                ..usage
            },
            end,
            power: self.power.as_ref().map(Power::moments),
        })
    }
}

/// Writes what the device used over time to the result directory.
fn keep_usage(directory: &Path, usage: &UsageSeries, cpu_before: f64) -> Result<(), Failure> {
    let Some(csv) = usage.csv(cpu_before) else { return Ok(()) };
    let path = directory.join(USAGE);
    path.parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| std::fs::write(&path, csv))
        .map_err(|e| Failure::setup(anyhow::anyhow!("cannot write {}: {e}", path.display())))
}

/// What a device has done in a run.
#[derive(Debug)]
pub struct Report {
    name: String,
    /// When its power was cut, if that was wanted.
    power: Option<Moments>,
    counts: AccessCounts,
    /// During the run; of memory the most that was seen.
    usage: Usage,
    end: ProcessEnd,
}

/// The same as the robots saw it.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Transactions that were started.
    pub requests: u64,
    /// Hits; only basic transactions can be hits.
    pub hits: u64,
    /// Transactions that were finished and are basic: of method GET, without conditions, `no-cache` and the like.
    pub basic: u64,
}

impl Report {
    /// The part of the manifest that only the end of the run knows.
    pub fn manifest(&self) -> Value {
        json!({
            "ended_by_itself": self.end.early.map(|status| status.to_string()),
            "killed": self.end.killed,
            "power": self.power.as_ref().map(Moments::manifest),
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

    /// A line of the summary: what the device used, and its counts beside those of the robots.
    pub fn line(&self, seen: &Seen) -> String {
        let AccessCounts { requests, hits, unreadable, plain, .. } = self.counts;
        let mut line = format!(
            "{:<14} {}: {:.2} s of processor time, {} MB; its log has ",
            "device",
            self.name,
            self.usage.cpu_seconds,
            self.usage.resident_bytes >> 20,
        );
        let Seen { requests: seen, hits: seen_hits, basic } = *seen;
        let _ = match plain {
            // Conditional requests and others may be hits too, but not in the robots' count.
            Some(plain) => write!(
                line,
                "{requests} requests, {} of them plain with {} hits; the robots saw {seen}, {basic} of them basic \
                 with {seen_hits} hits",
                plain.requests, plain.hits,
            ),
            None => write!(line, "{hits} hits in {requests} requests, the robots saw {seen_hits} in {seen}"),
        };
        if unreadable > 0 {
            let _ = write!(line, "; {unreadable} lines of it cannot be read");
        }
        line + "\n"
    }
}

/// What a wrong command line is, and what this machine lacks.
pub fn failure(error: Error) -> Failure {
    match error {
        Error::Unknown { .. }
        | Error::Description { .. }
        | Error::Template { .. }
        | Error::Setting { .. } => Failure::usage(error),
        Error::Address { ref source, .. } => {
            let hint = console::listen_hint(source);
            Failure::setup(anyhow::anyhow!("{error}{hint}"))
        }
        _ => Failure::setup(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_by_example() {
        let mut params = Params::default();
        for (key, value) in [
            ("listen", "127.0.0.1:3128"),
            ("mem", "1GB"),
            ("disk", "0"),
            ("disk_dir", "/x"),
            ("max_object", "4MB"),
            ("workers", "2"),
            ("dns", "127.0.0.1:5300"),
            ("dns", "127.0.0.2:53"),
            ("store_type", "rock"),
        ] {
            set(&mut params, key, value).unwrap_or_else(|e| panic!("{key}={value}: {e}"));
        }
        let address = |text: &str| text.parse().unwrap();
        let expected = Params {
            listen: address("127.0.0.1:3128"),
            memory: Some(1 << 30),
            disk: Some(0),
            disk_directory: Some("/x".into()),
            max_object: Some(4 << 20),
            workers: Some(2),
            nameservers: vec![address("127.0.0.1:5300"), address("127.0.0.2:53")],
            options: [("store_type".to_owned(), "rock".to_owned())].into(),
            ..Params::default()
        };
        assert_eq!(params, expected);
        for (key, value) in [
            ("listen", "3128"),
            ("mem", "much"),
            ("workers", "0"),
            ("dns", "localhost:53"),
            ("hosts", "/no/file"),
        ] {
            assert!(set(&mut params, key, value).is_err(), "{key}={value}");
        }
    }
}
