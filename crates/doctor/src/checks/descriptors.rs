//! Checks of file descriptors.

use polygraph_engine::limits;

use crate::facts::HostFacts;
use crate::finding::{HostFinding, Impact, Remedy};
use crate::planned_load::PlannedLoad;
use crate::units::{count, whole};

/// Connections without which hardly any test works, for an unknown load.
const FEW_CONNECTIONS: usize = 1_000;
/// Connections that suffice for most tests, for an unknown load.
const MANY_CONNECTIONS: usize = 10_000;
/// What a limit is raised to at least.
const GENEROUS: u64 = 65_536;

/// The limit of a process, up to which it raises its own.
pub(crate) fn limit(facts: &HostFacts, load: &PlannedLoad) -> Option<HostFinding> {
    let descriptors = facts.descriptors.hard?;
    let mend =
        |needed: u64| Remedy::manual(format!("ulimit -n {}", needed.next_power_of_two().max(GENEROUS)));
    if descriptors < limits::LEAST_DESCRIPTORS {
        return Some(HostFinding::new(
            Impact::Blocks,
            format!(
                "a process may open only {descriptors} files here, and needs at least {}",
                limits::LEAST_DESCRIPTORS
            ),
            "commands with event loops do not start: raise the limit",
            mend(0),
        ));
    }
    let own = limits::open_connections(descriptors, load.processes) / load.ends();
    // A limit that the user sets is a part of the test.
    let most = own.max(1);
    let found =
        format!("a process may open {descriptors} files, which allows {} open connections", count(most));
    if load.connection_limit.is_some() {
        return None;
    }
    let expected = load.connections;
    if expected == 0 {
        let impact = match most {
            ..FEW_CONNECTIONS => Impact::Distorts,
            FEW_CONNECTIONS..MANY_CONNECTIONS => Impact::Note,
            _ => return None,
        };
        let effect =
            "a test that needs more starts worker processes, or is INVALID if it has too few robots for that";
        return Some(HostFinding::new(impact, found, effect, mend(0)));
    }
    // The expectation is an estimate, so a test is expected to need up to twice as many.
    (expected.saturating_mul(2) > most).then(|| {
        let per_process = expected.saturating_mul(2 * load.ends()) / load.processes.max(1);
        HostFinding::new(
            Impact::Distorts,
            found,
            format!(
                "the test is expected to need about {}, and up to twice as many with a slow device; it is INVALID if it needs more than the limit",
                count(expected)
            ),
            mend(per_process as u64),
        )
        .or(Remedy::manual("LimitNOFILE= in the unit of a service"))
        .or(Remedy::manual("--workers N with several robots"))
    })
}

/// The limit that devices and other programs started from the same shell get.
pub(crate) fn soft_limit(facts: &HostFacts, load: &PlannedLoad) -> Option<HostFinding> {
    let (soft, hard) = facts.descriptors.soft.zip(facts.descriptors.hard)?;
    let needed = load.connections.max(FEW_CONNECTIONS) as u64 * 2;
    (soft < hard && soft < needed).then(|| {
        HostFinding::new(
            Impact::Note,
            format!("the soft limit of file descriptors is {soft}, the hard limit {}", whole(hard)),
            "this program raises its own limit; a device that you start from this shell may not",
            Remedy::manual("ulimit -Sn hard"),
        )
    })
}

/// Files that may be open in the whole system.
pub(crate) fn system(facts: &HostFacts, load: &PlannedLoad) -> Option<HostFinding> {
    let (used, most) = facts.descriptors.system_used.zip(facts.descriptors.system_limit)?;
    let free = most.saturating_sub(used);
    let needed = (load.connections as u64).saturating_mul(load.ends_on_host() as u64);
    let impact = match free {
        free if free < needed.max(limits::LEAST_DESCRIPTORS) => Impact::Blocks,
        // A device between robots and servers has two more ends for each.
        free if free < needed.saturating_mul(2).max(GENEROUS) => Impact::Distorts,
        _ => return None,
    };
    let wanted = (used + needed * 4 + GENEROUS).next_power_of_two();
    Some(HostFinding::new(
        impact,
        format!("{} of {} files of the whole system are open", whole(used), whole(most)),
        format!("{} more can be opened by robots, servers and devices together", whole(free)),
        Remedy::sysctl("fs.file-max", wanted),
    ))
}
