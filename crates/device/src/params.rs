//! The parameters of a started device.

use std::collections::BTreeMap;
use std::iter;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use polygraph_cache::ServiceModel;
use polygraph_engine::Engine;

use crate::error::{Error, Result};

/// The name of the addresses of servers, in error messages and templates.
const ORIGINS: &str = "origins";
/// The name of the service model in error messages.
pub(crate) const SERVICE: &str = "service model";

/// The parameters of a started device. A parameter that is `None` has its default. A device does not start with a
/// parameter that has no effect on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// The address to listen on; port 0 selects a free port. The default is 127.0.0.1:0.
    pub listen: SocketAddr,
    /// Memory for stored replies in bytes; the default is [`Params::MEMORY`].
    pub memory: Option<u64>,
    /// Disk space for stored replies in bytes; the default, 0, means no disk store.
    pub disk: Option<u64>,
    /// Where the disk store is created, in a private directory that is removed with the device. The default is the
    /// device's work directory.
    pub disk_directory: Option<PathBuf>,
    /// The largest body in bytes that is stored; the default is [`Params::MAX_OBJECT`].
    pub max_object: Option<u64>,
    /// Worker processes or threads; the default is 1.
    pub workers: Option<usize>,
    /// The origin servers behind a reverse proxy or load balancer.
    pub origins: Vec<SocketAddr>,
    /// DNS servers that replace those of the system.
    pub nameservers: Vec<SocketAddr>,
    /// Addresses of names that the device need not look up.
    pub hosts: Vec<(String, IpAddr)>,
    /// The slower device that the built-in proxy simulates.
    pub service: ServiceModel,
    /// What the event loops of the built-in proxy wait with.
    pub engine: Engine,
    /// Settings that only this device has, see its `device.toml`.
    pub options: BTreeMap<String, String>,
}

impl Params {
    /// 256 MB.
    pub const MEMORY: u64 = 256 << 20;
    /// 32 MB, more than the largest objects of the standard workloads.
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
            engine: Engine::Epoll,
            options: BTreeMap::new(),
        }
    }
}

impl Params {
    /// The parameters that all devices may have: whether it is set, its name, and its variable in templates.
    fn common(&self) -> [(bool, &'static str, &'static str); 9] {
        [
            (self.memory.is_some(), "mem", "mem"),
            (self.disk.is_some(), "disk", "disk"),
            (self.disk_directory.is_some(), "disk_dir", "store"),
            (self.max_object.is_some(), "max_object", "max_object"),
            (self.workers.is_some(), "workers", "workers"),
            (!self.origins.is_empty(), ORIGINS, ORIGINS),
            (!self.nameservers.is_empty(), "dns", "dns"),
            (!self.hosts.is_empty(), "hosts", "hosts_file"),
            (self.service != ServiceModel::default(), SERVICE, SERVICE),
        ]
    }

    /// Refuses a parameter that is set and has no effect on a device.
    ///
    /// # Errors
    /// If there is such a parameter. The error lists the settings of the device: those of `common` that have an effect,
    /// and `own`.
    pub(crate) fn check<'a>(
        &self,
        device: &str,
        has_effect: impl Fn(&str) -> bool,
        own: impl Iterator<Item = &'a str>,
    ) -> Result<()> {
        let common = self.common();
        let given = common.iter().filter(|(given, ..)| *given).map(|(_, name, variable)| (*name, *variable));
        let mut given = given.chain(self.options.keys().map(|name| (name.as_str(), name.as_str())));
        let Some((name, _)) = given.find(|(_, variable)| !has_effect(variable)) else { return Ok(()) };
        // Nobody sets the servers, which are those of the test, and the service model is several settings of their own.
        let is_setting = |name: &str, variable| has_effect(variable) && ![ORIGINS, SERVICE].contains(&name);
        let settings = common.iter().filter(|(_, name, variable)| is_setting(name, variable));
        let settings = iter::once("listen").chain(settings.map(|(_, name, _)| *name)).chain(own);
        let settings = settings.collect::<Vec<_>>().join(", ");
        let problem = format!("`{name}` has no effect on this device; its settings are: {settings}");
        Err(Error::Setting { device: device.to_owned(), problem })
    }

    /// The text of a hosts(5) file for [`Params::hosts`].
    pub(crate) fn hosts_text(&self) -> String {
        self.hosts.iter().map(|(name, ip)| format!("{ip} {name}\n")).collect()
    }
}
