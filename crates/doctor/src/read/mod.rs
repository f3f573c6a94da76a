//! The reader of a host: files of `/proc`, `/sys` and `/etc` below a root directory, and system calls if the root is
//! that of the running system.

mod control_group;
mod ethtool;
mod host_files;
mod interfaces;
mod leftovers;
mod network;
mod processors;
mod sample;
mod system;

use std::path::Path;

use crate::facts::HostFacts;

use host_files::HostFiles;

pub use sample::sample_idle;

/// How closely to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Only what can be read in a few milliseconds.
    Quick,
    /// Everything that does not need a load: also interfaces, tables of connections and addresses, rules.
    Thorough,
}

/// Reads the facts about the host whose files are below `root`: `/` for the running system. Results of runs go to
/// `results`.
pub fn read_host(root: &Path, results: &Path, depth: Depth) -> HostFacts {
    let files = HostFiles::at(root);
    let mut facts = HostFacts {
        descriptors: system::descriptors(&files),
        ports: network::ports(&files),
        queues: network::queues(&files),
        buffers: network::buffers(&files),
        memory: control_group::memory(&files),
        conntrack: network::conntrack(&files),
        processors: processors::processors(&files),
        storage: system::storage(&files, results),
        names: system::names(&files),
        ..HostFacts::default()
    };
    facts.leftovers.abandoned = leftovers::abandoned(&files);
    if depth == Depth::Thorough {
        facts.clock = system::clock(&files);
        facts.uring_refusal = system::uring_refusal(&files);
        facts.ports.time_wait_ports = network::time_wait_ports(&files, facts.ports.range);
        facts.interfaces = interfaces::interfaces(&files);
        facts.leftovers = leftovers::leftovers(&files);
    }
    facts
}

/// Reads how many files processes may have open on the host whose files are below `root`, and nothing else.
pub fn read_descriptors(root: &Path) -> HostFacts {
    HostFacts { descriptors: system::descriptors(&HostFiles::at(root)), ..HostFacts::default() }
}
