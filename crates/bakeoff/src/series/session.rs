//! A device from its start to its end: all runs of a device meet the same filled cache.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use polygraph_device::{DeviceRole, Params, RunningDevice, resolve_port};
use polygraph_report::text;

use super::FindDevice;
use crate::plan::{BakeoffPlan, Contestant, DeviceLocation};

/// Where Linux says whether ports in TIME_WAIT may be taken again.
const REUSE: &str = "/proc/sys/net/ipv4/tcp_tw_reuse";

/// A device that is up.
pub struct DeviceSession {
    /// Its place in the plan.
    pub device: usize,
    /// Its cache is as full as it will get.
    pub full: bool,
    /// Where the servers of its runs listen.
    pub origin: SocketAddr,
    kind: Kind,
}

enum Kind {
    /// Started here.
    Here { running: Box<RunningDevice>, role: DeviceRole, size: u64 },
    /// Runs somewhere: the option that leads robots to it, its address, its size.
    Elsewhere { option: &'static str, address: String, size: u64 },
}

/// Whether a device can take part, as far as that is seen without starting it.
///
/// # Errors
/// What is wrong and what to do.
pub fn check(device: &Contestant, plan: &BakeoffPlan, find: &FindDevice<'_>) -> Result<(), String> {
    let DeviceLocation::Device { name, options } = &device.target else { return Ok(()) };
    let (found, _) = find(name, options)?;
    found.version().map_err(|e| e.to_string())?;
    if found.role() != DeviceRole::Forward && plan.workload.file.is_some() {
        return Err(format!(
            "{name} is a {}, and those are tested with PolyMix-1 only: leave config out",
            found.role().word()
        ));
    }
    Ok(())
}

impl DeviceSession {
    /// Starts a device, empty; one that runs elsewhere is taken as it is.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(device: &Contestant, index: usize, find: &FindDevice<'_>) -> Result<DeviceSession, String> {
        let origin = resolve_port(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
            .map_err(|e| format!("there is no free port for the servers: {e}"))?;
        let size = device.size.unwrap_or_default();
        let kind = match &device.target {
            DeviceLocation::Proxy(address) => {
                Kind::Elsewhere { option: "--proxy", address: address.clone(), size }
            }
            DeviceLocation::Surrogate(address) => {
                Kind::Elsewhere { option: "--surrogate", address: address.clone(), size }
            }
            DeviceLocation::Device { name, options } => {
                let (found, mut params) = find(name, options)?;
                if found.role() != DeviceRole::Forward {
                    params.origins = vec![origin];
                }
                let size = device.size.unwrap_or_else(|| size_of(&params));
                let running = Box::new(found.start(&params).map_err(|e| e.to_string())?);
                Kind::Here { running, role: found.role(), size }
            }
        };
        Ok(DeviceSession { device: index, full: false, origin, kind })
    }

    /// It was not started here: what it occupies and uses cannot be seen.
    pub fn is_elsewhere(&self) -> bool {
        matches!(self.kind, Kind::Elsewhere { .. })
    }

    /// Bytes that it can store.
    pub fn size(&self) -> u64 {
        match &self.kind {
            Kind::Here { size, .. } | Kind::Elsewhere { size, .. } => *size,
        }
    }

    /// Bytes that it occupies now, in memory and on disk, if that can be seen.
    pub fn occupied(&self) -> Option<u64> {
        match &self.kind {
            Kind::Here { running, .. } => Some(running.usage().resident_bytes + running.stored_bytes()),
            Kind::Elsewhere { .. } => None,
        }
    }

    /// Processor seconds that it has used since its start, if that can be seen.
    pub fn cpu_s(&self) -> Option<f64> {
        match &self.kind {
            Kind::Here { running, .. } => Some(running.usage().cpu_seconds),
            Kind::Elsewhere { .. } => None,
        }
    }

    /// Whether it runs, as far as that can be seen.
    pub fn is_up(&self) -> bool {
        match &self.kind {
            Kind::Here { running, .. } => running.is_up(),
            Kind::Elsewhere { .. } => true,
        }
    }

    /// Options that lead robots through it to the servers.
    pub fn route(&self) -> Vec<String> {
        let (option, address) = match &self.kind {
            Kind::Here { running, role: DeviceRole::Forward, .. } => {
                ("--proxy", running.address().to_string())
            }
            Kind::Here { running, .. } => ("--surrogate", running.address().to_string()),
            Kind::Elsewhere { option, address, .. } => (*option, address.clone()),
        };
        vec![option.into(), address]
    }

    /// Options that put the servers where the device expects them; a workload file places its servers itself.
    pub fn servers(&self) -> Vec<String> {
        let (ip, port) = (self.origin.ip().to_string(), self.origin.port().to_string());
        vec!["--origin_address".into(), ip, "--origin_port".into(), port]
    }

    /// What and where it is, in a few words.
    pub fn summary(&self) -> String {
        match &self.kind {
            Kind::Here { running, role, .. } => {
                format!("{} {} {} at {}", role.word(), running.name(), running.version(), running.address())
            }
            Kind::Elsewhere { address, .. } => format!("at {address}, as it is"),
        }
    }

    /// Its configuration for the appendix.
    pub fn facts(&self) -> Vec<(String, String)> {
        let fact = |name: &str, value: String| (name.to_owned(), value);
        let mut facts = vec![fact("cache size", text::bytes(Some(self.size() as f64)))];
        match &self.kind {
            Kind::Here { running, role, .. } => {
                // The built-in proxy has the version of the program that it is in.
                let program = running.pid().map(|_| format!("{} {}", running.name(), running.version()));
                let own = || format!("the built-in proxy of polygraph {}", env!("CARGO_PKG_VERSION"));
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

    /// Checks of the device before its runs.
    pub fn checks(&self) -> Vec<(String, String)> {
        vec![("TIME_WAIT".to_owned(), self.time_wait())]
    }

    /// The rule is 60 s. There is no test that sees it from outside yet; of this machine's kernel it is known.
    fn time_wait(&self) -> String {
        const NOT: &str = "not tested: this program has no test of it yet";
        match &self.kind {
            Kind::Elsewhere { .. } => format!("{NOT}; ask who brings the device"),
            Kind::Here { .. } => {
                let reuse = match std::fs::read_to_string(REUSE).unwrap_or_default().trim() {
                    "0" => "and ports in it are not taken again",
                    "1" => "but its kernel takes ports in it again for new connections (tcp_tw_reuse = 1)",
                    "2" => "but on loopback, as here, its kernel takes ports in it again (tcp_tw_reuse = 2)",
                    _ => "whether ports in it are taken again is not known",
                };
                format!("{NOT}. The device ran on this machine, where Linux keeps it for 60 s, {reuse}")
            }
        }
    }

    /// Takes it down in order and keeps configuration and logs.
    ///
    /// # Errors
    /// If they cannot be kept.
    pub fn close(&mut self, place: &Path) -> Result<(), String> {
        let Kind::Here { running, .. } = &mut self.kind else { return Ok(()) };
        running.halt();
        running.keep(place).map_err(|e| e.to_string())
    }
}

/// Bytes that a device of these parameters can store, at least: memory counts if it is given, or if there is no disk,
/// for some devices with a disk have no use for it.
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
