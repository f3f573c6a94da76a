//! The device of a run, from its result directory: name, configuration, used resources, and the counts of its own log.
//! They are known only for devices that the program started.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::facts::RunFacts;
use crate::text::{UNDEFINED, bytes, number};
use crate::usage::usage_in;
use crate::verdict::Tested;

pub use crate::usage::{DeviceEnd, USAGE, UsageSample};

/// Maximum number of bytes of a configuration file that are shown.
const CONFIGURATION_MAX: usize = 64 * 1024;

/// A device that the program started for the run.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct DeviceFacts {
    /// Name, for example `squid`.
    pub name: String,
    /// Version as the device prints it.
    #[serde(default)]
    pub version: String,
    /// Role: `forward`, `surrogate` or `balancer`.
    #[serde(default)]
    pub role: String,
    /// Address at which it listens.
    #[serde(default)]
    pub address: String,
    /// Options by name.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// Command line.
    #[serde(default)]
    pub command: Vec<String>,
    #[serde(default)]
    configuration: Vec<String>,
    /// Used resources and counts; `None` if the run was interrupted.
    #[serde(default)]
    pub result: Option<DeviceUsage>,
    /// Configuration files: name and text.
    #[serde(skip)]
    pub files: Vec<(String, String)>,
    /// Used resources over time.
    #[serde(skip)]
    pub usage: Vec<UsageSample>,
}

/// Resources that a device used during a run, and the counts of its log.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct DeviceUsage {
    /// Processor time in seconds.
    pub cpu_s: f64,
    /// Largest observed resident memory in bytes.
    pub resident_bytes: u64,
    /// Exit status, if it ended before the run stopped it.
    #[serde(default)]
    pub ended_by_itself: Option<String>,
    /// Counts of its own log.
    pub log: OwnLog,
}

/// Counts of a device's own log.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct OwnLog {
    /// Requests of any kind.
    pub requests: u64,
    /// Requests that the device calls hits.
    pub hits: u64,
    /// The same counts for plain requests only, if the log distinguishes them.
    #[serde(default)]
    pub plain: Option<PlainRequests>,
}

/// Plain requests of a device's own log.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct PlainRequests {
    /// Number of plain requests.
    pub requests: u64,
    /// Number of plain requests that the device calls hits.
    pub hits: u64,
}

impl DeviceFacts {
    /// The device of a result directory with this manifest; `None` if the program started none.
    pub fn of_run(directory: &Path, manifest: &serde_json::Value) -> Option<DeviceFacts> {
        let mut device: DeviceFacts = serde_json::from_value(manifest.get("device")?.clone()).ok()?;
        let text = |name: &String| {
            let bytes = std::fs::read(directory.join(name)).ok()?;
            let shown = &bytes[..bytes.len().min(CONFIGURATION_MAX)];
            Some((name.clone(), String::from_utf8_lossy(shown).into_owned()))
        };
        device.files = device.configuration.iter().filter_map(text).collect();
        device.usage = usage_in(directory);
        Some(device)
    }

    /// Name and version.
    pub fn title(&self) -> String {
        title(&self.name, &self.version)
    }

    /// Name, role, address and configuration in one line.
    pub fn setup(&self) -> String {
        let options = self.options.iter().map(|(name, value)| format!("{name}={value}"));
        let options: Vec<String> = options.collect();
        let settings =
            if options.is_empty() { "default configuration".to_owned() } else { options.join(" ") };
        let role = match self.role.as_str() {
            "" | "forward" => "forward proxy",
            role => role,
        };
        format!("{}, {role} at {}, {settings}", self.title(), self.address)
    }

    /// Resources used over the whole run, in one line; `transactions` are those of the robots.
    pub fn used(&self, transactions: Option<u64>) -> Option<String> {
        let account = self.result.as_ref()?;
        let each = transactions.filter(|count| *count > 0).map_or(String::new(), |count| {
            let ms = number(Some(1000.0 * account.cpu_s / count as f64), 2);
            format!(" ({ms} ms per transaction)")
        });
        let memory = bytes(Some(account.resident_bytes as f64));
        // The built-in proxy shares the process of the bench, so only its store is known.
        let what = if self.name.starts_with("builtin") { "stored replies" } else { "memory" };
        Some(format!("{} s of processor time{each}, {memory} of {what}", number(Some(account.cpu_s), 2)))
    }

    /// The hits in its own log, compared with those that the robots saw in the whole run.
    pub fn own_hits(&self, seen: Option<u64>) -> Option<String> {
        let log = &self.result.as_ref()?.log;
        let (hits, requests, kind) = match log.plain {
            Some(plain) => (plain.hits, plain.requests, "plain requests"),
            None => (log.hits, log.requests, "requests"),
        };
        let count = |count: u64| number(Some(count as f64), 0);
        let seen = seen.map_or(UNDEFINED.to_owned(), count);
        Some(format!("{} hits in {} {kind}; robots saw {seen} hits", count(hits), count(requests)))
    }
}

/// The device as far as it is known from logs alone: the proxy's address, the model of a simulation, or no device.
pub fn of_settings(facts: &RunFacts) -> Option<String> {
    if let Tested::Servers(at) = &facts.tested {
        return Some(format!("the server at {at}"));
    }
    let header = facts.main_side().header();
    match header.setting("device") {
        Some("none") => return Some("no device".to_owned()),
        Some("surrogate") => return Some("a surrogate".to_owned()),
        Some("balancer") => return Some("a load balancer".to_owned()),
        Some(model) => return Some(format!("simulated {model}")),
        None => {}
    }
    let of_robots = |setting: &str| {
        let is_it = |name: &str| {
            name == setting || name.strip_suffix(setting).is_some_and(|kind| kind.ends_with(": "))
        };
        let (_, found) = header.settings.iter().find(|(name, _)| is_it(name))?;
        (found != "none").then_some(found)
    };
    // Robots without a proxy may have a surrogate.
    let socks = of_robots("SOCKS proxy").map(|socks| format!("SOCKS proxy {socks}"));
    of_robots("proxy").map(|proxy| format!("proxy {proxy}")).or(socks)
}

/// What people call a device of this name and version.
pub fn title(name: &str, version: &str) -> String {
    match (name, version) {
        ("builtin", _) => "built-in proxy".to_owned(),
        ("builtin-surrogate", _) => "built-in surrogate".to_owned(),
        (name, "") => name.to_owned(),
        (name, version) => format!("{name} {version}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"{ "device": { "name": "squid", "version": "6.13", "role": "forward", "address": "127.0.0.1:3128",
        "options": { "mem": "64MB" }, "configuration": ["device/squid.conf", "device/missing.conf"],
        "result": { "cpu_s": 2.5, "resident_bytes": 88080384, "ended_by_itself": null,
            "log": { "requests": 1200, "hits": 640, "plain": { "requests": 1000, "hits": 600 } } } } }"#;

    #[test]
    fn a_result_directory_knows_its_device() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("device")).unwrap();
        std::fs::write(dir.path().join("device/squid.conf"), "cache_mem 64 MB").unwrap();
        let csv = "seconds,cpu_seconds,resident_bytes,processes,waiting_seconds,io_pressure_seconds\n\
                   1.0,0.5,1000,2,0.25,\nbroken\n2.0,1.0,2000,2,0.5,17.5\n";
        std::fs::write(dir.path().join(USAGE), csv).unwrap();
        let manifest = serde_json::from_str(MANIFEST).unwrap();
        let device = DeviceFacts::of_run(dir.path(), &manifest).unwrap();
        assert_eq!(device.setup(), "squid 6.13, forward proxy at 127.0.0.1:3128, mem=64MB");
        assert_eq!(
            device.used(Some(1000)).unwrap(),
            "2.50 s of processor time (2.50 ms per transaction), 84.0 MB of memory"
        );
        assert_eq!(
            device.own_hits(Some(600)).unwrap(),
            "600 hits in 1,000 plain requests; robots saw 600 hits"
        );
        assert_eq!(device.files, [("device/squid.conf".to_owned(), "cache_mem 64 MB".to_owned())]);
        let at = |at_s, cpu_s, resident_bytes, waiting_s, io_pressure_s| UsageSample {
            at_s,
            cpu_s,
            resident_bytes,
            waiting_s,
            io_pressure_s,
        };
        let second = at(2.0, 1.0, 2000.0, Some(0.5), Some(17.5));
        assert_eq!(device.usage, [at(1.0, 0.5, 1000.0, Some(0.25), None), second]);
    }

    #[test]
    fn a_run_that_was_killed_has_no_account() {
        let manifest = serde_json::json!({ "device": { "name": "builtin", "version": "built-in" } });
        let device = DeviceFacts::of_run(Path::new("/nowhere"), &manifest).unwrap();
        assert_eq!(
            (device.title().as_str(), device.used(None), device.usage),
            ("built-in proxy", None, vec![])
        );
        assert!(DeviceFacts::of_run(Path::new("/nowhere"), &serde_json::json!({})).is_none());
    }
}
