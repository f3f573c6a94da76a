//! What an agent says about its host.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use polygraph_addr::{Addr, AddrRange, compact, expand};

use crate::names::RunId;
use crate::protocol::Inventory;

use super::AgentOptions;

/// Ranges with more addresses than this are refused.
const MOST_ADDRESSES: u64 = 1 << 20;

/// The name of this host.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

pub(super) fn inventory(options: &AgentOptions, instance: u64, busy: Option<RunId>) -> Inventory {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Inventory {
        name: options.name.clone(),
        instance,
        host: host_name(),
        version: options.version.clone(),
        client: options.client,
        server: options.server,
        weight: options.weight,
        cores: u32::try_from(cores).unwrap_or(u32::MAX),
        memory: memory(&fs::read_to_string("/proc/meminfo").unwrap_or_default()),
        disk_free: disk_free(&options.logs),
        busy,
    }
}

fn disk_free(path: &Path) -> u64 {
    rustix::fs::statvfs(path).map_or(0, |disk| disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// The memory of the host, from the text of /proc/meminfo.
fn memory(text: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.unwrap_or(0).saturating_mul(1024)
}

/// Which of these addresses the agent's processes can use.
///
/// # Errors
/// If a range is none, or there are too many addresses.
pub(super) fn owned(
    wanted: &[String],
    claimed: &[AddrRange],
    is_local: fn(IpAddr) -> bool,
) -> Result<Vec<String>, String> {
    let parse = |text: &String| AddrRange::parse(text).map_err(|error| format!("`{text}`: {error}"));
    let ranges = wanted.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    let addresses = expand(&ranges, MOST_ADDRESSES).map_err(|error| error.to_string())?;
    let claimed: std::collections::HashSet<IpAddr> = expand(claimed, MOST_ADDRESSES)
        .map_err(|error| error.to_string())?
        .iter()
        .filter_map(|address| address.host.ip())
        .collect();
    let is_owned = |address: &Addr| address.host.ip().is_some_and(|ip| claimed.contains(&ip) || is_local(ip));
    Ok(compact(addresses.into_iter().filter(is_owned)).iter().map(AddrRange::to_string).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_owns_what_its_host_has_and_what_it_claims() {
        let ranges = |text: &str| AddrRange::parse_list(text).unwrap();
        let wanted = ["10.1.0.1-9".to_owned(), "10.2.0.1".to_owned()];
        let local = |ip: IpAddr| ip.to_string().ends_with(".3") || ip.to_string().ends_with(".4");
        assert_eq!(owned(&wanted, &[], local).unwrap(), ["10.1.0.3-4"]);
        assert_eq!(owned(&wanted, &ranges("10.2.0.1-7"), local).unwrap(), ["10.1.0.3-4", "10.2.0.1"]);
        assert!(owned(&["10.0-255.0-255.0-255".to_owned()], &[], local).is_err());
        assert!(owned(&["x y".to_owned()], &[], local).is_err());
    }

    #[test]
    fn memory_is_read() {
        assert_eq!(memory("MemTotal:       16384 kB\nMemFree: 1 kB\n"), 16 << 20);
        assert_eq!(memory(""), 0);
    }
}
