//! The built-in proxy as a device.

use std::net::SocketAddr;

use polygraph_cache::{ProxyConfig, Snapshot};
use polygraph_engine::Engine;
use polygraph_engine::proxy::ProxyServer;

use crate::access_log::AccessCounts;
use crate::error::{Error, Result};
use crate::params::{Params, SERVICE};
use crate::usage::Usage;

/// The name of the built-in proxy.
pub(crate) const NAME: &str = "builtin";

/// The built-in proxy. Its counts survive restarts, its store does not.
#[derive(Debug)]
pub(crate) struct Builtin {
    config: ProxyConfig,
    engine: Engine,
    proxy: Option<ProxyServer>,
    /// The counts and the processor seconds of earlier instances.
    before: (AccessCounts, f64),
    /// Counts that do not belong to the test.
    overlooked: AccessCounts,
}

impl Builtin {
    pub fn start(params: &Params) -> Result<Builtin> {
        const KNOWN: [&str; 4] = ["mem", "workers", "hosts", SERVICE];
        if let Some((name, _)) = params.given().iter().find(|(name, _)| !KNOWN.contains(name)) {
            let problem = format!("`{name}` has no effect on this device");
            return Err(Error::Setting { device: NAME.into(), problem });
        }
        let config = ProxyConfig {
            listen: params.listen,
            cache_bytes: params.memory.unwrap_or(Params::MEMORY),
            loops: params.workers.unwrap_or(1),
            hosts: params.hosts.clone(),
            service: params.service.clone(),
            ..ProxyConfig::default()
        };
        let mut device = Builtin {
            config,
            engine: params.engine,
            proxy: None,
            before: Default::default(),
            overlooked: AccessCounts::default(),
        };
        device.resume()?;
        Ok(device)
    }

    pub fn address(&self) -> SocketAddr {
        self.config.listen
    }

    pub fn is_up(&self) -> bool {
        self.proxy.is_some()
    }

    pub fn resume(&mut self) -> Result<()> {
        if self.proxy.is_none() {
            let address = self.config.listen;
            let proxy = ProxyServer::start(self.config.clone(), self.engine)
                .map_err(|source| Error::Address { device: NAME.into(), address, source })?;
            // After a restart the proxy listens on the same port.
            self.config.listen = proxy.local_addr();
            self.proxy = Some(proxy);
        }
        Ok(())
    }

    pub fn halt(&mut self) {
        if let Some(mut proxy) = self.proxy.take() {
            proxy.stop();
            self.before =
                (self.before.0.plus(&counts(&proxy.snapshot())), self.before.1 + proxy.cpu_seconds());
        }
    }

    pub fn counts(&self) -> AccessCounts {
        self.all().less(&self.overlooked)
    }

    fn all(&self) -> AccessCounts {
        self.proxy.iter().fold(self.before.0, |sum, proxy| sum.plus(&counts(&proxy.snapshot())))
    }

    /// Excludes everything counted so far, once the counts include `requests` requests.
    pub fn overlook(&mut self, requests: u64) {
        let mut patience = 100;
        // The proxy counts a reply after it has sent it.
        while patience > 0 && self.all().requests < requests {
            patience -= 1;
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        self.overlooked = self.all();
    }

    /// Resource usage. The memory is that of the store, because the process also runs the benchmark.
    pub fn usage(&self) -> Usage {
        let idle = Usage { cpu_seconds: self.before.1, ..Usage::default() };
        self.proxy.iter().fold(idle, |sum, proxy| Usage {
            cpu_seconds: sum.cpu_seconds + proxy.cpu_seconds(),
            resident_bytes: proxy.snapshot().store_bytes,
            processes: 0,
        })
    }
}

/// The counts of a device. A validation that the origin answers with `304` ends in a stored reply, any other one does
/// not.
fn counts(seen: &Snapshot) -> AccessCounts {
    AccessCounts {
        requests: seen.requests,
        hits: seen.hits + seen.validated,
        misses: seen.misses + seen.validations.saturating_sub(seen.validated),
        other: seen.rejected,
        bytes: seen.bytes_out,
        unreadable: 0,
        plain: None,
    }
}
