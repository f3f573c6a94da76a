//! Processors: how many, how fast, and whose they are.

use crate::facts::ProcessorFacts;
use crate::parse;

use super::control_group;
use super::host_files::HostFiles;

const PROCESSORS: &str = "/sys/devices/system/cpu";

/// Processors and how much of them this process may use.
pub(super) fn processors(files: &HostFiles) -> ProcessorFacts {
    let info = files.text("/proc/cpuinfo");
    let described = info.lines().filter(|line| line.starts_with("processor")).count() as u64;
    let online = parse::list_length(&files.text(&format!("{PROCESSORS}/online")));
    let status = files.text("/proc/self/status");
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let (quota, throttled) = control_group::processor_share(files);
    let ticks = parse::processor_ticks(&files.text("/proc/stat"));
    let (governor_files, mut governors) = governors(files);
    governors.sort();
    governors.dedup();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags")).unwrap_or_default();
    ProcessorFacts {
        online: online.filter(|&count| count > 0).or(Some(described).filter(|&count| count > 0)),
        allowed: allowed.and_then(parse::list_length),
        quota,
        throttled,
        governors,
        governor_files,
        turbo: turbo(files),
        virtual_machine: flags.split_whitespace().any(|flag| flag == "hypervisor"),
        steal: ticks.filter(|ticks| ticks.total > 0).map(|ticks| ticks.steal as f64 / ticks.total as f64),
    }
}

/// The files with governors, and their contents.
fn governors(files: &HostFiles) -> (Vec<std::path::PathBuf>, Vec<String>) {
    let is_policy = |name: &String| name.starts_with("policy");
    let names = files.names(&format!("{PROCESSORS}/cpufreq")).into_iter().filter(is_policy);
    let found = names.filter_map(|name| {
        let file = format!("{PROCESSORS}/cpufreq/{name}/scaling_governor");
        Some((files.path(&file), files.known_text(&file)?))
    });
    found.unzip()
}

/// Whether processors exceed their nominal frequency; `None` if the driver does not say.
fn turbo(files: &HostFiles) -> Option<bool> {
    let off: Option<u64> = files.value(&format!("{PROCESSORS}/intel_pstate/no_turbo"));
    let on: Option<u64> = files.value(&format!("{PROCESSORS}/cpufreq/boost"));
    off.map(|off| off == 0).or(on.map(|on| on != 0))
}
