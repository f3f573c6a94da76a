//! What a device is told.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use polygraph_cache::ServiceModel;

/// What errors call the service model.
pub(crate) const SERVICE: &str = "service model";

/// What a device is told. What is left at `None` has its default; what is given must be of use to the device, or
/// it does not start.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Where it listens; port 0: a free one. Default 127.0.0.1:0.
    pub listen: SocketAddr,
    /// Memory for stored replies, in bytes. Default [`Params::MEMORY`].
    pub memory: Option<u64>,
    /// Disk space for stored replies, in bytes; 0: none. Default 0.
    pub disk: Option<u64>,
    /// Where the store on disk is made, in a directory of its own that disappears with the device. Default: the
    /// device's work directory.
    pub disk_directory: Option<PathBuf>,
    /// Replies with larger bodies, in bytes, are not stored. Default [`Params::MAX_OBJECT`].
    pub max_object: Option<u64>,
    /// Worker processes or threads. Default 1.
    pub workers: Option<usize>,
    /// The origin servers behind a surrogate or balancer.
    pub origins: Vec<SocketAddr>,
    /// DNS servers to ask instead of the system's.
    pub nameservers: Vec<SocketAddr>,
    /// Addresses of names that DNS need not be asked for.
    pub hosts: Vec<(String, IpAddr)>,
    /// The slower device that the built-in proxy poses as.
    pub service: ServiceModel,
    /// Settings of this one device, see its `device.toml`.
    pub options: BTreeMap<String, String>,
}

impl Params {
    /// 256 MB.
    pub const MEMORY: u64 = 256 << 20;
    /// 32 MB: the largest objects of the standard workloads, and then some.
    pub const MAX_OBJECT: u64 = 32 << 20;
}

impl Default for Params {
    fn default() -> Params {
        Params {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            memory: None,
            disk: None,
            disk_directory: None,
            max_object: None,
            workers: None,
            origins: Vec::new(),
            nameservers: Vec::new(),
            hosts: Vec::new(),
            service: ServiceModel::default(),
            options: BTreeMap::new(),
        }
    }
}

impl Params {
    /// The settings that were given, as (name, variable of templates).
    pub(crate) fn given(&self) -> Vec<(&str, &str)> {
        let common = [
            (self.memory.is_some(), "mem", "mem"),
            (self.disk.is_some(), "disk", "disk"),
            (self.disk_directory.is_some(), "disk_dir", "store"),
            (self.max_object.is_some(), "max_object", "max_object"),
            (self.workers.is_some(), "workers", "workers"),
            (!self.origins.is_empty(), "origins", "origins"),
            (!self.nameservers.is_empty(), "dns", "dns"),
            (!self.hosts.is_empty(), "hosts", "hosts_file"),
            (self.service != ServiceModel::default(), SERVICE, SERVICE),
        ];
        let own = self.options.keys().map(|name| (name.as_str(), name.as_str()));
        common.into_iter().filter(|(given, ..)| *given).map(|(_, name, var)| (name, var)).chain(own).collect()
    }

    /// The file of [`Params::hosts`], in the form of hosts(5).
    pub(crate) fn hosts_text(&self) -> String {
        self.hosts.iter().map(|(name, ip)| format!("{ip} {name}\n")).collect()
    }
}
