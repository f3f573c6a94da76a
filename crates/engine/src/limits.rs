//! Limits and properties of the host.

use std::fs;

use polygraph_stats::record::environment;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::control_group;

/// Raises the soft limit of file descriptors to the hard limit and returns it.
pub fn raise_descriptor_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if limit.current != limit.maximum && setrlimit(Resource::Nofile, raised).is_ok() {
        return limit.maximum.unwrap_or(u64::MAX);
    }
    descriptor_limit()
}

/// The number of file descriptors that this process may open now.
pub fn descriptor_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The least number of file descriptors with which a process can start, on two loops and without connections.
pub const LEAST_DESCRIPTORS: u64 = 40;

/// The number of connections that a process with `descriptors` file descriptors may have open. The rest is for logs,
/// listeners and timers.
pub fn connection_limit(descriptors: u64) -> usize {
    let limit = descriptors.saturating_sub(descriptors / 33).saturating_sub(30);
    usize::try_from(limit).unwrap_or(usize::MAX).max(1)
}

/// The number of connections that a side may have open: in this process, or in `processes` worker processes, each of
/// which may open `descriptors` files.
pub fn open_connections(descriptors: u64, processes: usize) -> usize {
    connection_limit(descriptors).saturating_mul(processes.max(1))
}

/// The first descriptor number that servers do not accept connections under, in a process that may open `descriptors`
/// files. The rest is for logs and timers; listeners and the connections of robots in the same process have their
/// numbers already.
pub fn accept_limit(descriptors: u64) -> usize {
    let limit = descriptors.saturating_sub(descriptors / 33).saturating_sub(8);
    usize::try_from(limit).unwrap_or(usize::MAX).max(1)
}

/// The size in bytes from which blocks are returned to the system when they are freed.
const LARGE_BLOCK: i32 = 64 * 1024;

/// Makes the allocator return large blocks to the system as soon as they are freed. By default glibc learns from the
/// first freed block to keep them; a cache, whose blocks of mixed sizes come and go, would then keep much more memory
/// than it uses.
pub fn give_back_large_blocks() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt(3) sets a parameter of the allocator and may be called at any time from any thread.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BLOCK);
    }
}

/// Resident memory of this process in bytes, 0 if unknown.
pub fn resident_bytes() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()));
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

/// The model name of the first processor.
fn processor_model() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Properties of the host that a result depends on, as names and values for the report.
pub fn environment() -> Vec<(String, String)> {
    let read = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned()).ok();
    let uname = rustix::system::uname();
    let text = |value: &std::ffi::CStr| value.to_string_lossy().into_owned();
    let mut facts = vec![
        (environment::HOST.to_owned(), text(uname.nodename())),
        ("kernel".to_owned(), format!("{} {}", text(uname.sysname()), text(uname.release()))),
        ("machine".to_owned(), text(uname.machine())),
        ("processors".to_owned(), std::thread::available_parallelism().map_or(1, usize::from).to_string()),
        ("file descriptors".to_owned(), descriptor_limit().to_string()),
    ];
    let quotas = control_group::processor_quotas(control_group::read);
    if let Some(least) = quotas.into_iter().min_by(|a, b| a.processors.total_cmp(&b.processors)) {
        facts.push((environment::QUOTA.to_owned(), format!("{:.2} processors", least.processors)));
        facts.push((environment::CONTROL_GROUP.to_owned(), least.directory));
    }
    facts.extend(processor_model().map(|model| ("processor".to_owned(), model)));
    for (name, path) in [
        ("local port range", "/proc/sys/net/ipv4/ip_local_port_range"),
        ("somaxconn", "/proc/sys/net/core/somaxconn"),
        ("tcp_tw_reuse", "/proc/sys/net/ipv4/tcp_tw_reuse"),
        ("congestion control", "/proc/sys/net/ipv4/tcp_congestion_control"),
    ] {
        facts.extend(read(path).map(|value| (name.to_owned(), value.replace('\t', "-"))));
    }
    facts
}
