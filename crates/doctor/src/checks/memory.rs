//! Checks of memory.

use std::path::PathBuf;

use crate::facts::HostFacts;
use crate::finding::{HostFinding, Impact, Remedy};
use crate::planned_load::PlannedLoad;
use crate::units::bytes;

/// Memory of a process without connections, with room for objects that robots remember.
const BASE: u64 = 64 << 20;
/// Memory of one end of an open connection, in the program and in the kernel together.
const CONNECTION: u64 = 24 << 10;
/// Less memory than this is little for any test.
const LITTLE: u64 = 512 << 20;

/// Memory that the test needs, as far as it depends on connections.
fn needed(load: &PlannedLoad) -> u64 {
    (load.connections as u64)
        .saturating_mul(load.ends_on_host() as u64)
        .saturating_mul(CONNECTION)
        .saturating_add(BASE)
}

fn judge(free: u64, load: &PlannedLoad) -> Option<Impact> {
    match needed(load) {
        needed if needed > free => Some(Impact::Blocks),
        needed if needed.saturating_mul(2) > free => Some(Impact::Distorts),
        _ if free < LITTLE && !load.is_known() => Some(Impact::Note),
        _ => None,
    }
}

/// Memory of the host.
pub(crate) fn available(facts: &HostFacts, load: &PlannedLoad) -> Option<HostFinding> {
    let free = facts.memory.available?;
    let impact = judge(free, load)?;
    Some(HostFinding::new(
        impact,
        format!(
            "{} of memory are available{}",
            bytes(free),
            facts.memory.total.map(|total| format!(" of {}", bytes(total))).unwrap_or_default()
        ),
        format!(
            "connections of the test need about {}; a host without memory swaps or kills processes",
            bytes(needed(load))
        ),
        Remedy::manual("ps -eo pid,rss,comm --sort=-rss | head"),
    ))
}

/// Memory of the control group.
pub(crate) fn group(facts: &HostFacts, load: &PlannedLoad) -> Option<HostFinding> {
    let (limit, used) = facts.memory.group_limit.zip(facts.memory.group_used)?;
    let free = limit.saturating_sub(used);
    let impact = judge(free, load)?;
    Some(HostFinding::new(
        impact,
        format!("the control group may use {} of memory and uses {}", bytes(limit), bytes(used)),
        format!(
            "connections of the test need about {}; above the limit the kernel kills this program",
            bytes(needed(load))
        ),
        Remedy::manual(
            "systemctl set-property UNIT MemoryMax=infinity, or a larger --memory of the container",
        ),
    ))
}

/// Swap space in use.
pub(crate) fn swap(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    let used = facts.memory.swap_used.filter(|&used| used > 0)?;
    let now = facts.idle.as_ref().map_or(0, |idle| idle.swapped_in);
    let (impact, effect) = match now {
        0 => {
            (Impact::Note, "a process whose memory was swapped out stalls when it needs it again".to_owned())
        }
        pages => (Impact::Distorts, format!("{pages} pages were read back within a second: processes stall")),
    };
    let found = format!("{} of memory are swapped out", bytes(used));
    Some(HostFinding::new(impact, found, effect, Remedy::manual("swapoff -a && swapon -a")))
}

/// Huge pages, for which processes may have to wait.
pub(crate) fn huge_pages(facts: &HostFacts, _: &PlannedLoad) -> Option<HostFinding> {
    let (pages, defrag) = facts.memory.huge_pages.as_deref().zip(facts.memory.huge_page_defrag.as_deref())?;
    (pages == "always" && defrag == "always").then(|| {
        let file = PathBuf::from("/sys/kernel/mm/transparent_hugepage/defrag");
        HostFinding::new(
            Impact::Note,
            "every process waits while the kernel puts huge pages together (transparent_hugepage/defrag is always)",
            "a loop may stall for milliseconds when it needs memory, above all on a host with little free memory",
            Remedy::files(&[file], "madvise"),
        )
    })
}
