//! A device from start to stop: all of its runs use the same filled cache.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use polygraph_device::{DeviceRole, Params, RunningDevice, resolve_port};
use polygraph_report::text;
use serde_json::{Value, json};

use super::FindDevice;
use crate::plan::{BakeoffPlan, Contestant, DeviceLocation};

/// The kernel setting that says whether ports in TIME_WAIT may be reused.
const REUSE: &str = "/proc/sys/net/ipv4/tcp_tw_reuse";

/// A started device.
pub struct DeviceSession {
    /// Index of the device in the plan.
    pub device: usize,
    /// Whether the cache has been filled.
    pub full: bool,
    /// Addresses of the servers of its runs.
    pub origin: SocketAddr,
    kind: Kind,
}

enum Kind {
    /// A device that was started here.
    Here { running: Box<RunningDevice>, role: DeviceRole, size: u64 },
    /// A device that runs elsewhere.
    Elsewhere { role: DeviceRole, address: String, size: u64 },
}

/// Checks whether a device can be tested, as far as possible without starting it.
///
/// # Errors
/// The problem and its remedy.
pub fn check(device: &Contestant, plan: &BakeoffPlan, find: &FindDevice<'_>) -> Result<(), String> {
    let DeviceLocation::Device { name, options } = &device.target else { return Ok(()) };
    let (found, _) = find(name, options)?;
    found.version().map_err(|e| e.to_string())?;
    if found.role().acts_as_servers() && plan.workload.file.is_some() {
        return Err(format!(
            "{name} is a {}, and such devices are tested with PolyMix-1 only: leave config out",
            found.role().word()
        ));
    }
    Ok(())
}

impl DeviceSession {
    /// Starts a device with an empty cache. A device that runs elsewhere is used as it is.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(device: &Contestant, index: usize, find: &FindDevice<'_>) -> Result<DeviceSession, String> {
        let origin = resolve_port(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
            .map_err(|e| format!("there is no free port for the servers: {e}"))?;
        let size = device.size.unwrap_or_default();
        let kind = match &device.target {
            DeviceLocation::Proxy(address) => {
                Kind::Elsewhere { role: DeviceRole::Forward, address: address.clone(), size }
            }
            DeviceLocation::Surrogate(address) => {
                Kind::Elsewhere { role: DeviceRole::Surrogate, address: address.clone(), size }
            }
            DeviceLocation::Device { name, options } => {
                let (found, mut params) = find(name, options)?;
                if found.role().acts_as_servers() {
                    params.origins = vec![origin];
                }
                let size = device.size.unwrap_or_else(|| size_of(&params));
                let running = Box::new(found.start(&params).map_err(|e| e.to_string())?);
                Kind::Here { running, role: found.role(), size }
            }
        };
        Ok(DeviceSession { device: index, full: false, origin, kind })
    }

    /// The device was not started here, so its resources cannot be observed.
    pub fn is_elsewhere(&self) -> bool {
        matches!(self.kind, Kind::Elsewhere { .. })
    }

    /// Size of the store in bytes.
    pub fn size(&self) -> u64 {
        match &self.kind {
            Kind::Here { size, .. } | Kind::Elsewhere { size, .. } => *size,
        }
    }

    /// Current size of memory and disk store in bytes, if it can be observed.
    pub fn occupied(&self) -> Option<u64> {
        match &self.kind {
            Kind::Here { running, .. } => Some(running.usage().resident_bytes + running.stored_bytes()),
            Kind::Elsewhere { .. } => None,
        }
    }

    /// Processor time in seconds since its start, if it can be observed.
    pub fn cpu_s(&self) -> Option<f64> {
        match &self.kind {
            Kind::Here { running, .. } => Some(running.usage().cpu_seconds),
            Kind::Elsewhere { .. } => None,
        }
    }

    /// Whether the device is running, as far as this can be observed.
    pub fn is_up(&self) -> bool {
        match &self.kind {
            Kind::Here { running, .. } => running.is_up(),
            Kind::Elsewhere { .. } => true,
        }
    }

    /// Options that direct robots through the device to the servers.
    pub fn route(&self) -> Vec<String> {
        let (role, address) = match &self.kind {
            Kind::Here { running, role, .. } => (role, running.address().to_string()),
            Kind::Elsewhere { role, address, .. } => (role, address.clone()),
        };
        vec![role.option().to_owned(), address]
    }

    /// Options that place the servers where the device expects them; a workload file places its servers itself.
    pub fn servers(&self) -> Vec<String> {
        let (ip, port) = (self.origin.ip().to_string(), self.origin.port().to_string());
        vec!["--origin_address".into(), ip, "--origin_port".into(), port]
    }

    /// Role, name and address in a few words.
    pub fn summary(&self) -> String {
        match &self.kind {
            Kind::Here { running, role, .. } => {
                format!("{} {} {} at {}", role.word(), running.name(), running.version(), running.address())
            }
            Kind::Elsewhere { address, .. } => format!("at {address}, in its existing configuration"),
        }
    }

    /// Its configuration for the appendix.
    pub fn facts(&self) -> Vec<(String, String)> {
        let fact = |name: &str, value: String| (name.to_owned(), value);
        let mut facts = vec![fact("cache size", text::bytes(Some(self.size() as f64)))];
        match &self.kind {
            Kind::Here { running, role, .. } => {
                // The version of the built-in proxy is that of this program.
                let program = running.pid().map(|_| format!("{} {}", running.name(), running.version()));
                let own = || format!("the built-in proxy of polygraph {}", polygraph_stats::version());
                facts.push(fact("software", program.unwrap_or_else(own)));
                facts.push(fact("role", role.word().into()));
                facts.push(fact("network", "loopback of one machine".into()));
                if !running.command().is_empty() {
                    facts.push(fact("command", text::command(&running.command())));
                }
            }
            Kind::Elsewhere { address, .. } => facts.push(fact("address", address.clone())),
        }
        facts
    }

    /// The device as the manifest of a run describes it, if it was started here.
    pub fn manifest(&self) -> Option<Value> {
        let Kind::Here { running, role, .. } = &self.kind else { return None };
        Some(json!({
            "name": running.name(),
            "version": running.version(),
            "role": role.word(),
            "address": running.address().to_string(),
            "command": running.command(),
        }))
    }

    /// Checks of the device before its runs.
    pub fn checks(&self) -> Vec<(String, String)> {
        vec![("TIME_WAIT".to_owned(), self.time_wait())]
    }

    /// The rule is 60 s. A series does not measure it, because that takes a minute for each device.
    fn time_wait(&self) -> String {
        const NOT: &str = "not measured by the series: `polygraph msl_test` measures it";
        match &self.kind {
            Kind::Elsewhere { .. } => NOT.to_owned(),
            Kind::Here { .. } => {
                let reuse = match std::fs::read_to_string(REUSE).unwrap_or_default().trim() {
                    "0" => "and ports in this state are not reused",
                    "1" => "but its kernel reuses ports in this state for new connections (tcp_tw_reuse = 1)",
                    "2" => {
                        "but on loopback, as here, its kernel reuses ports in this state (tcp_tw_reuse = 2)"
                    }
                    _ => "and it is not known whether ports in this state are reused",
                };
                format!(
                    "{NOT}. The device ran on this machine, where Linux keeps this state for 60 s, {reuse}"
                )
            }
        }
    }

    /// Shuts the device down, and keeps its configuration and logs.
    ///
    /// # Errors
    /// If files cannot be copied.
    pub fn close(&mut self, place: &Path) -> Result<(), String> {
        let Kind::Here { running, .. } = &mut self.kind else { return Ok(()) };
        running.halt();
        running.keep(place).map_err(|e| e.to_string())
    }
}

/// Bytes that a device with these parameters can store at least. Memory counts if it is given, or if there is no disk,
/// because some devices with a disk do not use memory.
fn size_of(params: &Params) -> u64 {
    match (params.memory, params.disk.filter(|disk| *disk > 0)) {
        (memory, Some(disk)) => disk + memory.unwrap_or(0),
        (memory, None) => memory.unwrap_or(Params::MEMORY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        for (memory, disk, size) in [
            (None, None, Params::MEMORY),
            (Some(5), None, 5),
            (Some(5), Some(0), 5),
            (None, Some(7), 7),
            (Some(5), Some(7), 12),
        ] {
            assert_eq!(size_of(&Params { memory, disk, ..Params::default() }), size, "{memory:?} {disk:?}");
        }
    }
}
