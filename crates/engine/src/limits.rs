//! Limits and figures of the host.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of file descriptors to the hard one and returns it.
pub fn raise_descriptor_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if limit.current != limit.maximum && setrlimit(Resource::Nofile, raised).is_ok() {
        return limit.maximum.unwrap_or(u64::MAX);
    }
    descriptor_limit()
}

/// How many file descriptors this process may open now.
pub fn descriptor_limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// A process needs so many file descriptors to start at all, on two loops and without a connection.
pub const LEAST_DESCRIPTORS: u64 = 40;

/// Connections that a process with `descriptors` file descriptors may have open: some are kept for logs,
/// listeners and timers.
pub fn connection_limit(descriptors: u64) -> usize {
    let limit = descriptors.saturating_sub(descriptors / 33).saturating_sub(30);
    usize::try_from(limit).unwrap_or(usize::MAX).max(1)
}

/// Servers accept no connection under a descriptor number from this on, where a process may open `descriptors` files: what is
/// left is for logs and timers. Listeners and the connections of robots in the same process have their numbers already.
pub fn accept_limit(descriptors: u64) -> usize {
    let limit = descriptors.saturating_sub(descriptors / 33).saturating_sub(8);
    usize::try_from(limit).unwrap_or(usize::MAX).max(1)
}

/// Blocks from this size on are given back to the system when they are freed, in bytes.
const LARGE_BLOCK: i32 = 64 * 1024;

/// Makes the allocator give large blocks back as soon as they are freed. Otherwise glibc learns from the first of them to
/// keep them, and between blocks of mixed sizes that come and go, as in a cache, much more is kept than used.
pub fn give_back_large_blocks() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it sets a parameter of the allocator, at any time and from any thread (mallopt(3)).
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

/// What the first processor calls itself.
fn processor_model() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Facts about the host that a result depends on, for people: names and values.
pub fn environment() -> Vec<(String, String)> {
    let read = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned()).ok();
    let uname = rustix::system::uname();
    let text = |value: &std::ffi::CStr| value.to_string_lossy().into_owned();
    let mut facts = vec![
        ("host".to_owned(), text(uname.nodename())),
        ("kernel".to_owned(), format!("{} {}", text(uname.sysname()), text(uname.release()))),
        ("machine".to_owned(), text(uname.machine())),
        ("processors".to_owned(), std::thread::available_parallelism().map_or(1, usize::from).to_string()),
        ("file descriptors".to_owned(), descriptor_limit().to_string()),
    ];
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
