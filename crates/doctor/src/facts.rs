//! What is known about a host, as plain data: the reader fills it in, checks look at it. `None` means unknown.

use std::path::PathBuf;

use serde::Serialize;

/// Everything that is known about a host.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HostFacts {
    /// Files that processes may have open.
    pub descriptors: DescriptorFacts,
    /// Local ports and connections in TIME_WAIT.
    pub ports: PortFacts,
    /// Queues in which connections and packets wait.
    pub queues: QueueFacts,
    /// Memory of sockets.
    pub buffers: BufferFacts,
    /// Memory of the host and of this process's control group.
    pub memory: MemoryFacts,
    /// The kernel's table of tracked connections.
    pub conntrack: ConntrackFacts,
    /// Processors and how much of them this process may use.
    pub processors: ProcessorFacts,
    /// Network interfaces that are up, without loopback.
    pub interfaces: Vec<InterfaceFacts>,
    /// The clock of the host.
    pub clock: ClockFacts,
    /// What earlier runs left behind, and what else changes packets on their way.
    pub leftovers: LeftoverFacts,
    /// The directory for results.
    pub storage: StorageFacts,
    /// The resolution of names.
    pub names: NameFacts,
    /// Why event loops cannot use io_uring; `None`: they can, or it was not tried.
    pub uring_refusal: Option<UringRefusal>,
    /// What the host did in a second without load from this program.
    pub idle: Option<IdleSample>,
    /// What the host achieves over loopback.
    pub ceiling: Option<CeilingMeasurement>,
    /// Why that could not be measured, if it was tried.
    pub ceiling_error: Option<String>,
}

/// Why event loops cannot use io_uring.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UringRefusal {
    /// What the system said, and what that means.
    pub reason: String,
    /// What would help.
    pub remedy: String,
}

/// Files that processes may have open.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DescriptorFacts {
    /// The limit of this process, which it can raise itself.
    pub soft: Option<u64>,
    /// The limit up to which it can raise its limit.
    pub hard: Option<u64>,
    /// Files that are open in the whole system.
    pub system_used: Option<u64>,
    /// Files that may be open in the whole system.
    pub system_limit: Option<u64>,
}

/// Local ports and connections in TIME_WAIT.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PortFacts {
    /// The lowest and the highest port that the system gives to outgoing connections.
    pub range: Option<(u16, u16)>,
    /// Ports of the range that outgoing connections do not get.
    pub reserved: u64,
    /// `tcp_tw_reuse`: 0 never, 1 always, 2 on loopback only.
    pub time_wait_reuse: Option<u64>,
    /// Milliseconds after which a port in TIME_WAIT may be used again if `tcp_tw_reuse` allows it.
    pub reuse_delay_ms: Option<u64>,
    /// Whether TCP timestamps are on, without which ports in TIME_WAIT are not used again.
    pub timestamps: Option<bool>,
    /// Connections in TIME_WAIT.
    pub time_wait: Option<u64>,
    /// Connections that may be in TIME_WAIT at the same time.
    pub time_wait_limit: Option<u64>,
    /// Ports of the range with a connection in TIME_WAIT.
    pub time_wait_ports: Option<u64>,
}

/// Queues in which connections and packets wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QueueFacts {
    /// `somaxconn`: connections that may wait for a listening socket.
    pub listen: Option<u64>,
    /// Connections that a listening socket dropped because its queue was full, since the start of the system.
    pub listen_overflows: Option<u64>,
    /// `tcp_max_syn_backlog`: connections that may be half open.
    pub syn: Option<u64>,
    /// Whether the kernel answers with SYN cookies when too many connections are half open.
    pub syn_cookies: Option<bool>,
    /// `netdev_max_backlog`: packets that may wait for a processor.
    pub packets: Option<u64>,
    /// Packets that were dropped because a processor had too many, since the start of the system.
    pub packet_drops: Option<u64>,
    /// TCP segments sent since the start of the system.
    pub segments: Option<u64>,
    /// TCP segments sent again since the start of the system.
    pub retransmitted: Option<u64>,
    /// `gc_thresh3`: hosts of connected networks whose hardware addresses the kernel remembers.
    pub neighbours: Option<u64>,
}

/// Memory of sockets in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BufferFacts {
    /// The most that a socket buffers of received data.
    pub receive: Option<u64>,
    /// The most that a socket buffers of data to send.
    pub send: Option<u64>,
    /// Whether windows may exceed 64 KB.
    pub window_scaling: Option<bool>,
    /// Memory of all TCP sockets in use.
    pub used: Option<u64>,
    /// Memory of all TCP sockets from which the kernel shrinks their buffers.
    pub pressure: Option<u64>,
}

/// Memory in bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MemoryFacts {
    /// Memory of the host.
    pub total: Option<u64>,
    /// Memory that programs can get without swapping.
    pub available: Option<u64>,
    /// Swap space in use.
    pub swap_used: Option<u64>,
    /// The limit of the control group.
    pub group_limit: Option<u64>,
    /// What the control group uses.
    pub group_used: Option<u64>,
    /// When the kernel gives huge pages: `always`, `madvise` or `never`.
    pub huge_pages: Option<String>,
    /// Whether a process waits while the kernel makes huge pages.
    pub huge_page_defrag: Option<String>,
}

/// The kernel's table of tracked connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ConntrackFacts {
    /// Connections in the table; `None` if the kernel has none.
    pub count: Option<u64>,
    /// The size of the table.
    pub limit: Option<u64>,
    /// Seconds for which a closed connection stays in the table.
    pub time_wait_s: Option<u64>,
}

/// Processors and how much of them this process may use.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProcessorFacts {
    /// Processors of the host.
    pub online: Option<u64>,
    /// Processors on which this process may run.
    pub allowed: Option<u64>,
    /// Processors that the control group may use, for example 1.5.
    pub quota: Option<f64>,
    /// How often the control group was stopped because it had used its share.
    pub throttled: Option<u64>,
    /// Governors of the processors' frequencies, each once.
    pub governors: Vec<String>,
    /// Files with the governors.
    pub governor_files: Vec<PathBuf>,
    /// Whether processors exceed their nominal frequency.
    pub turbo: Option<bool>,
    /// Whether the host is a virtual machine.
    pub virtual_machine: bool,
    /// Share of time since the start of the system that other virtual machines took, from 0 to 1.
    pub steal: Option<f64>,
}

/// A network interface that is up.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct InterfaceFacts {
    /// Its name.
    pub name: String,
    /// Whether there is no hardware behind it, as in a bridge or a pair of virtual interfaces.
    pub is_virtual: bool,
    /// Megabits per second; `None` if the driver does not say.
    pub speed: Option<u64>,
    /// Whether it sends and receives in turn.
    pub half_duplex: bool,
    /// The size of the largest packet in bytes.
    pub mtu: Option<u64>,
    /// Packets received and sent.
    pub packets: u64,
    /// Damaged or lost packets: checksums, frames, carrier.
    pub errors: u64,
    /// Received packets that were dropped because a ring of the card or a queue was full.
    pub drops: u64,
    /// Packets that the receive ring holds, and the most that it could hold.
    pub ring: Option<(u64, u64)>,
    /// Offloads that are off although the driver has them, as `ethtool -K` calls them.
    pub offloads_off: Vec<String>,
}

/// The clock of the host.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ClockFacts {
    /// Whether a time service keeps the clock right.
    pub synchronised: Option<bool>,
    /// The estimated error in microseconds.
    pub error_us: Option<i64>,
    /// What the kernel reads the time from.
    pub source: Option<String>,
    /// Nanoseconds that reading the clock takes.
    pub read_ns: Option<f64>,
}

/// What earlier runs left behind, and what else changes packets on their way.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LeftoverFacts {
    /// Changes to this host by processes of this program that were killed.
    pub abandoned: Vec<String>,
    /// Changes to this host that are there to stay.
    pub kept: Vec<String>,
    /// Directories of devices whose runs were killed.
    pub device_directories: Vec<PathBuf>,
    /// Addresses of this host without loopback.
    pub addresses: u64,
    /// Networks all of whose addresses are local (AnyIP), without loopback's own.
    pub local_networks: Vec<String>,
    /// Firewall rules; `None`: unknown.
    pub firewall_rules: Option<u64>,
    /// Queueing disciplines that delay, limit or lose packets, each with its interface.
    pub shaping: Vec<String>,
}

/// The directory for results.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StorageFacts {
    /// The directory, or the one above it that exists.
    pub directory: PathBuf,
    /// Whether files can be created there.
    pub writable: Option<bool>,
    /// Free bytes.
    pub free: Option<u64>,
    /// Free inodes.
    pub free_inodes: Option<u64>,
    /// What kind of storage it is if that matters: `tmpfs`, `nfs`, `cifs`, `9p`.
    pub kind: Option<String>,
}

/// The resolution of names.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NameFacts {
    /// Name servers in `/etc/resolv.conf`.
    pub servers: Vec<String>,
    /// Addresses of `localhost` in `/etc/hosts`.
    pub localhost: Vec<String>,
}

/// What the host did in a second without load from this program.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct IdleSample {
    /// Processors that other processes used, for example 0.7.
    pub busy: f64,
    /// Share of time that other virtual machines took, from 0 to 1.
    pub steal: f64,
    /// The busiest processes with the processors that each used.
    pub processes: Vec<(String, f64)>,
    /// Pages read from swap space.
    pub swapped_in: u64,
    /// Packets dropped because a processor had too many.
    pub packet_drops: u64,
}

/// What robots and servers of this program achieve together on this host over loopback.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CeilingMeasurement {
    /// Requests per second with a new connection for each request.
    pub new_connections: f64,
    /// Requests per second over persistent connections.
    pub persistent: f64,
    /// The first rate for each processor that was busy with it.
    pub new_per_processor: f64,
    /// The second rate for each processor that was busy with it.
    pub persistent_per_processor: f64,
    /// The size of replies in bytes.
    pub reply_bytes: u64,
    /// The engine of event loops: `epoll` or `uring`.
    pub engine: &'static str,
    /// Requests that failed.
    pub failed: u64,
    /// Packets dropped because a processor had too many.
    pub packet_drops: u64,
    /// Whether the program was built without optimisation.
    pub is_debug_build: bool,
}
