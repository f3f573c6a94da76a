//! Memory of the host, and the limits of the control group that this process is in.

use polygraph_engine::control_group::{self, GROUPS};

use crate::facts::MemoryFacts;
use crate::parse;

use super::host_files::HostFiles;

/// Version 1 writes "no limit" as a number near the largest one.
const NO_LIMIT: u64 = 1 << 60;

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
    let group = control_group::directories(&files.text(GROUPS), "memory")
        .into_iter()
        .filter_map(|directory| limit(files, &directory));
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
    let quotas = control_group::processor_quotas(|path| files.known_text(path));
    let share = quotas.iter().map(|quota| quota.processors).reduce(f64::min);
    (share, quotas.iter().filter_map(|quota| quota.stops).max())
}
