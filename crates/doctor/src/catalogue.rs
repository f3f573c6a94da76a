//! The list of all checks. The page `docs/doctor.md` shows it.

use serde::{Serialize, Serializer};

use crate::checks::{
    bench_limit, clock, descriptors, interfaces, leftovers, memory, ports, processors, queues, storage,
};
use crate::facts::HostFacts;
use crate::finding::{HostFinding, Impact};
use crate::planned_load::PlannedLoad;

/// A check of one thing that could spoil a run.
#[derive(Debug)]
pub struct HostCheck {
    /// The name for programs and for the page of checks.
    pub name: &'static str,
    /// What it looks at.
    pub looks_at: &'static str,
    /// Whether runs carry it out at their start, too.
    pub is_quick: bool,
    /// The check.
    pub run: fn(&HostFacts, &PlannedLoad) -> Option<HostFinding>,
}

/// A check with what it found.
#[derive(Debug, Serialize)]
pub struct Diagnosis {
    /// The check; only its name is written.
    #[serde(serialize_with = "name_of")]
    pub check: &'static HostCheck,
    /// What it found.
    #[serde(flatten)]
    pub finding: HostFinding,
}

fn name_of<S: Serializer>(check: &&'static HostCheck, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(check.name)
}

/// A check that runs carry out at their start, too.
const fn quick(
    name: &'static str,
    run: fn(&HostFacts, &PlannedLoad) -> Option<HostFinding>,
    looks_at: &'static str,
) -> HostCheck {
    HostCheck { name, looks_at, is_quick: true, run }
}

/// A check of `polygraph doctor` alone.
const fn thorough(
    name: &'static str,
    run: fn(&HostFacts, &PlannedLoad) -> Option<HostFinding>,
    looks_at: &'static str,
) -> HostCheck {
    HostCheck { name, looks_at, is_quick: false, run }
}

/// All checks, by subject.
pub const CHECKS: &[HostCheck] = &[
    quick(
        "descriptors",
        descriptors::limit,
        "files that a process may open (`ulimit -Hn`), against connections that the test has open",
    ),
    thorough(
        "soft_descriptors",
        descriptors::soft_limit,
        "the soft limit of files, which devices started from the same shell get",
    ),
    quick("system_files", descriptors::system, "files open in the whole system, against `fs.file-max`"),
    quick(
        "port_range",
        ports::range,
        "local ports, against open connections, and against new connections per second with TIME_WAIT of 60 s",
    ),
    quick(
        "time_wait_reuse",
        ports::time_wait_reuse,
        "whether ports in TIME_WAIT are used again (`tcp_tw_reuse`, `tcp_timestamps`)",
    ),
    thorough("time_wait", ports::in_time_wait, "local ports that earlier connections hold in TIME_WAIT"),
    quick(
        "time_wait_limit",
        ports::time_wait_limit,
        "how many connections may be in TIME_WAIT (`tcp_max_tw_buckets`)",
    ),
    quick("listening_ports", ports::listening, "ports of servers that outgoing connections may take"),
    quick(
        "listen_queue",
        queues::listen,
        "connections that may wait for a server (`somaxconn`), against new connections per second",
    ),
    thorough(
        "listen_overflows",
        queues::listen_overflows,
        "connections that found the queue of a listening socket full",
    ),
    quick(
        "syn_queue",
        queues::syn,
        "connections that may be half open (`tcp_max_syn_backlog`, `tcp_syncookies`)",
    ),
    thorough(
        "packet_queue",
        queues::packets,
        "packets that found the queue of a processor full (`netdev_max_backlog`)",
    ),
    thorough("retransmissions", queues::retransmissions, "TCP segments that were sent again"),
    quick(
        "neighbours",
        queues::neighbours,
        "hosts whose hardware addresses the kernel remembers (`gc_thresh3`), against addresses of the test",
    ),
    thorough(
        "socket_buffers",
        queues::buffers,
        "the largest buffers of a socket (`tcp_rmem`, `tcp_wmem`) and `tcp_window_scaling`",
    ),
    quick("socket_memory", queues::socket_memory, "memory that all TCP sockets may use (`tcp_mem`)"),
    quick(
        "conntrack",
        queues::conntrack,
        "the table of tracked connections: entries and size, against new connections per second",
    ),
    quick("memory", memory::available, "memory that is available, against what connections need"),
    quick("memory_limit", memory::group, "the memory limit of the control group"),
    thorough("swap", memory::swap, "memory that is swapped out, and whether it comes back"),
    thorough("huge_pages", memory::huge_pages, "whether processes wait while the kernel makes huge pages"),
    quick("processors", processors::number, "the number of processors, against requests per second"),
    quick("processor_quota", processors::quota, "the share of processor time of the control group"),
    thorough("processor_mask", processors::mask, "processors on which this process may run"),
    thorough("frequency", processors::frequency, "governors that change the frequency of processors"),
    thorough("io_uring", processors::uring, "whether event loops can use io_uring ([engines](engines.md))"),
    thorough("turbo", processors::turbo, "frequencies above the nominal one"),
    thorough("virtual_machine", processors::virtual_machine, "whether the host is a virtual machine"),
    thorough("steal", processors::steal, "processor time that other virtual machines take"),
    thorough("other_processes", processors::others, "processor time that other processes use"),
    thorough(
        "link_speed",
        interfaces::speed,
        "the speed of network cards, against bytes of replies per second",
    ),
    thorough("link_duplex", interfaces::duplex, "network cards at half duplex"),
    thorough("link_errors", interfaces::errors, "packets that were damaged or lost on the wire"),
    thorough("link_drops", interfaces::drops, "packets for which the ring of a card had no room"),
    thorough(
        "link_offloads",
        interfaces::offloads,
        "work that a card could do for the processor and does not",
    ),
    thorough("link_mtu", interfaces::mtu, "cards with small packets, or packets of different sizes"),
    thorough("time_sync", clock::synchronisation, "whether a time service keeps the clock right (adjtimex)"),
    thorough("clock_source", clock::source, "what the kernel reads the time from, and what that costs"),
    quick(
        "abandoned_changes",
        leftovers::abandoned,
        "changes to the network by processes of this program that were killed",
    ),
    thorough("kept_changes", leftovers::kept, "changes to the network that are there to stay"),
    thorough("abandoned_devices", leftovers::devices, "directories of devices whose runs were killed"),
    thorough(
        "addresses",
        leftovers::addresses,
        "many addresses, and networks all of whose addresses are local (AnyIP)",
    ),
    thorough("firewall", leftovers::firewall, "firewall rules (nft, iptables)"),
    thorough("shaping", leftovers::shaping, "queueing disciplines that delay, limit or lose packets"),
    quick("disk_space", storage::space, "free space in the directory for results"),
    thorough("writable", storage::writable, "whether results can be written"),
    thorough("storage_kind", storage::kind, "whether results go to memory or over the network"),
    thorough("names", storage::names, "name servers in `/etc/resolv.conf`, and `localhost` in `/etc/hosts`"),
    thorough(
        "ceiling",
        bench_limit::ceiling,
        "requests per second that robots and servers achieve over loopback, against the planned rate",
    ),
    thorough(
        "loopback_failures",
        bench_limit::failures,
        "requests that failed while the ceiling was measured",
    ),
];

/// What all checks find, the worst first.
pub fn diagnose(facts: &HostFacts, load: &PlannedLoad) -> Vec<Diagnosis> {
    find(facts, load, |_| true)
}

/// What quick checks find, the worst first.
pub fn diagnose_quick(facts: &HostFacts, load: &PlannedLoad) -> Vec<Diagnosis> {
    find(facts, load, |check| check.is_quick)
}

fn find(facts: &HostFacts, load: &PlannedLoad, wanted: fn(&HostCheck) -> bool) -> Vec<Diagnosis> {
    let checks = CHECKS.iter().filter(|check| wanted(check));
    let mut all: Vec<Diagnosis> =
        checks.filter_map(|check| Some(Diagnosis { check, finding: (check.run)(facts, load)? })).collect();
    all.sort_by_key(|diagnosis| std::cmp::Reverse(diagnosis.finding.impact));
    all
}

/// How much the worst finding matters.
pub fn worst(diagnoses: &[Diagnosis]) -> Option<Impact> {
    diagnoses.iter().map(|diagnosis| diagnosis.finding.impact).max()
}
