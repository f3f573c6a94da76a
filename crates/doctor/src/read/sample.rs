//! What the host does in a moment without load from this program.

use std::collections::HashMap;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::facts::IdleSample;
use crate::parse;

use super::host_files::HostFiles;
use super::network;

/// Processes that are named.
const NAMED: usize = 3;
/// Processors that a process must have used to be named.
const NOTABLE: f64 = 0.02;

/// Two readings of `/proc`.
struct Reading {
    at: Instant,
    ticks: parse::ProcessorTicks,
    processes: HashMap<u32, (String, u64)>,
    swapped_in: u64,
    packet_drops: u64,
}

/// Watches the host for a while; `None` if `/proc` cannot be read.
pub fn sample_idle(length: Duration) -> Option<IdleSample> {
    let files = HostFiles::at(Path::new("/"));
    let before = read(&files)?;
    sleep(length);
    let after = read(&files)?;
    // Ticks of processes are hundredths of a second everywhere (sysconf(3), _SC_CLK_TCK).
    let seconds = after.at.duration_since(before.at).as_secs_f64();
    let used = |(pid, (name, ticks)): (&u32, &(String, u64))| {
        let earlier = before.processes.get(pid).map_or(*ticks, |(_, ticks)| *ticks);
        (name.clone(), ticks.saturating_sub(earlier) as f64 / 100.0 / seconds)
    };
    let mut processes: Vec<(String, f64)> = after.processes.iter().map(used).collect();
    processes.retain(|(_, used)| *used >= NOTABLE);
    processes.sort_by(|a, b| b.1.total_cmp(&a.1));
    processes.truncate(NAMED);
    let between =
        |of: fn(&parse::ProcessorTicks) -> u64| of(&after.ticks).saturating_sub(of(&before.ticks)) as f64;
    let total = between(|ticks| ticks.total).max(1.0);
    Some(IdleSample {
        busy: (total - between(|ticks| ticks.idle)).max(0.0) / 100.0 / seconds,
        steal: between(|ticks| ticks.steal) / total,
        processes,
        swapped_in: after.swapped_in.saturating_sub(before.swapped_in),
        packet_drops: after.packet_drops.saturating_sub(before.packet_drops),
    })
}

fn read(files: &HostFiles) -> Option<Reading> {
    let ticks = parse::processor_ticks(&files.text("/proc/stat"))?;
    let own = std::process::id();
    let process = |name: String| {
        let pid: u32 = name.parse().ok()?;
        let text = files.known_text(&format!("/proc/{pid}/stat"))?;
        Some((pid, parse::process_ticks(&text)?))
    };
    let vmstat = files.text("/proc/vmstat");
    let swapped = vmstat.lines().find_map(|line| line.strip_prefix("pswpin ")?.trim().parse().ok());
    Some(Reading {
        at: Instant::now(),
        ticks,
        processes: files
            .names("/proc")
            .into_iter()
            .filter_map(process)
            .filter(|(pid, _)| *pid != own)
            .collect(),
        swapped_in: swapped.unwrap_or(0),
        packet_drops: network::packet_drops(files).unwrap_or(0),
    })
}
