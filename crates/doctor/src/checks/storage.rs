//! Checks of the directory for results, and of the resolution of names.

use crate::facts::HostFacts;
use crate::finding::{HostFinding, Impact, Remedy};
use crate::planned_load::PlannedLoad;
use crate::units::{bytes, whole};

/// Room for the logs and the report of a short run.
const LEAST: u64 = 16 << 20;
/// Room for the logs, working sets and device caches of any run.
const COMFORTABLE: u64 = 1 << 30;
/// Files of a run and its device.
const LEAST_FILES: u64 = 1_000;

/// Free space.
pub(crate) fn space(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    let (free, files) = (facts.storage.free?, facts.storage.free_inodes.unwrap_or(u64::MAX));
    let place = facts.storage.directory.display();
    let impact = match (free, files) {
        (..LEAST, _) | (_, 0..16) => Impact::Blocks,
        (..COMFORTABLE, _) | (_, ..LEAST_FILES) => Impact::Note,
        _ => return None,
    };
    let inodes =
        if files < LEAST_FILES { format!(" and room for {} files", whole(files)) } else { String::new() };
    Some(HostFinding::new(
        impact,
        format!("{place} has {} of free space{inodes}", bytes(free)),
        "logs grow by up to 100 KB a second, a device's cache by more; a run whose log cannot be written ends",
        Remedy::manual(format!(
            "write results to another disk with --runs DIR or --out DIR, or find large files: du -xh {place} | sort -h | tail"
        )),
    ))
}

/// Whether results can be written.
pub(crate) fn writable(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    let can = facts.storage.writable?;
    (!can).then(|| {
        HostFinding::new(
            Impact::Blocks,
            format!("results cannot be written to {}", facts.storage.directory.display()),
            "a run does not start",
            Remedy::manual("--runs DIR with another directory"),
        )
    })
}

/// File systems on which logs behave differently.
pub(crate) fn kind(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    let kind = facts.storage.kind.as_deref()?;
    let effect = match kind {
        "tmpfs" | "ramfs" => "results use memory, and a restart deletes them",
        _ => "packets of logs share the network with those of the test, and a slow server delays statistics",
    };
    Some(HostFinding::new(
        Impact::Note,
        format!("results go to {}, which is {kind}", facts.storage.directory.display()),
        effect,
        Remedy::manual("--runs DIR on a local disk"),
    ))
}

/// Name servers and `localhost`.
pub(crate) fn names(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    if facts.names.localhost.is_empty() {
        return Some(HostFinding::new(
            Impact::Note,
            "/etc/hosts does not name localhost",
            "devices that listen at localhost or look it up depend on a name server",
            Remedy::manual("echo '127.0.0.1 localhost' >> /etc/hosts"),
        ));
    }
    facts.names.servers.is_empty().then(|| {
        HostFinding::new(
            Impact::Note,
            "no name server is set in /etc/resolv.conf",
            "a device asked for a server by name cannot find it; robots find addresses themselves or ask --dns",
            Remedy::manual("polygraph dns --config FILE, and its address as nameserver in /etc/resolv.conf"),
        )
    })
}
