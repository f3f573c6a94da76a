//! Memory of the host, and the limits of the control group that this process is in.

use crate::facts::MemoryFacts;
use crate::parse;

use super::host_files::HostFiles;

const GROUPS: &str = "/proc/self/cgroup";
const MOUNTED: &str = "/sys/fs/cgroup";
/// Version 1 writes "no limit" as a number near the largest one.
const NO_LIMIT: u64 = 1 << 60;

/// The directories of the control group that limits this process and of those above it, the innermost first.
fn directories(files: &HostFiles, controller: &str) -> Vec<String> {
    let text = files.text(GROUPS);
    let (mount, path) = match parse::control_group(&text, controller) {
        Some(path) => (format!("{MOUNTED}/{controller}"), path),
        None => (MOUNTED.to_owned(), parse::control_group(&text, "").unwrap_or_default()),
    };
    let mut found = Vec::new();
    let mut path = path.trim_matches('/');
    while !path.is_empty() {
        found.push(format!("{mount}/{path}"));
        path = path.rsplit_once('/').map_or("", |(above, _)| above);
    }
    found.push(mount);
    found
}

/// Memory of the host and of the control group.
pub(super) fn memory(files: &HostFiles) -> MemoryFacts {
    let text = files.text("/proc/meminfo");
    let kilobytes = |name: &str| parse::named_number(&text, name).map(|number| number.saturating_mul(1024));
    let swap = kilobytes("SwapTotal").zip(kilobytes("SwapFree"));
    let pages = |name: &str| {
        files
            .known_text(&format!("/sys/kernel/mm/transparent_hugepage/{name}"))
            .and_then(|text| parse::chosen(&text))
    };
    let group = directories(files, "memory").into_iter().filter_map(|directory| limit(files, &directory));
    let (limit, used) = group.min_by_key(|(limit, used)| limit.saturating_sub(*used)).unzip();
    MemoryFacts {
        total: kilobytes("MemTotal"),
        available: kilobytes("MemAvailable"),
        swap_used: swap.map(|(total, free)| total.saturating_sub(free)),
        group_limit: limit,
        group_used: used,
        huge_pages: pages("enabled"),
        huge_page_defrag: pages("defrag"),
    }
}

/// The limit of a group and what it uses without what the kernel can take back at once; `None` without a limit.
fn limit(files: &HostFiles, directory: &str) -> Option<(u64, u64)> {
    let of = |name: &str| files.value::<u64>(&format!("{directory}/{name}"));
    let (limit, used) = of("memory.max")
        .or(of("memory.limit_in_bytes"))
        .zip(of("memory.current").or(of("memory.usage_in_bytes")))?;
    let stat = files.text(&format!("{directory}/memory.stat"));
    let cached = stat.lines().find_map(|line| {
        let rest =
            line.strip_prefix("inactive_file ").or_else(|| line.strip_prefix("total_inactive_file "))?;
        rest.trim().parse::<u64>().ok()
    });
    (limit < NO_LIMIT).then(|| (limit, used.saturating_sub(cached.unwrap_or(0))))
}

/// Processors that the control group may use, and how often it was stopped because it had used its share.
pub(super) fn processor_share(files: &HostFiles) -> (Option<f64>, Option<u64>) {
    let (mut share, mut throttled): (Option<f64>, Option<u64>) = (None, None);
    for directory in directories(files, "cpu") {
        let number = |name: &str, at: usize| files.value_at::<f64>(&format!("{directory}/{name}"), at);
        // Version 2 has both in one file, and `max` for no limit; version 1 has -1 for no limit.
        let quota = number("cpu.max", 0).or(number("cpu.cfs_quota_us", 0)).filter(|quota| *quota > 0.0);
        let period = number("cpu.max", 1).or(number("cpu.cfs_period_us", 0)).filter(|period| *period > 0.0);
        if let Some((quota, period)) = quota.zip(period) {
            share = Some(share.unwrap_or(f64::MAX).min(quota / period));
            let stat = files.text(&format!("{directory}/cpu.stat"));
            let times = stat.lines().find_map(|line| line.strip_prefix("nr_throttled ")?.trim().parse().ok());
            throttled = throttled.max(times);
        }
    }
    (share, throttled)
}
