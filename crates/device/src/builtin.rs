//! The built-in proxy as a device: a forward proxy, or a surrogate.

use std::hash::BuildHasher as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::LazyLock;

use polygraph_cache::{ProxyConfig, Snapshot};
use polygraph_engine::Engine;
use polygraph_engine::proxy::ProxyServer;
use polygraph_tls::pem::PemFile;
use polygraph_tls::settings::ServerTls;

use crate::access_log::AccessCounts;
use crate::error::{Error, Result};
use crate::params::{Params, SERVICE};
use crate::spec::{DeviceRole, Setting};
use crate::usage::Usage;

/// The built-in devices, with their roles and descriptions.
pub(crate) const DEVICES: [(&str, DeviceRole, &str); 2] = [
    ("builtin", DeviceRole::Forward, "the caching forward proxy of this program, inside its process"),
    ("builtin-surrogate", DeviceRole::Surrogate, "the same proxy in front of the servers"),
];

/// How messages refer to the settings of the service model, which is one parameter.
const SERVICE_SETTINGS: &str = "service_rate and the others of its service model (`polygraph proxy --help`)";

/// The setting that names a certificate.
const CERT: &str = "cert";

/// The settings that only these devices have.
pub(crate) static OPTIONS: LazyLock<[(&str, Setting); 1]> = LazyLock::new(|| {
    let help = "file with certificate chain and private key (PEM): robots use TLS to it (`--device_tls yes`)";
    [(CERT, Setting { default: String::new(), values: Vec::new(), file: true, help: help.to_owned() })]
});

/// Reads the TLS settings of a proxy from a file with a certificate chain and its private key (PEM).
///
/// # Errors
/// If the file cannot be read, or does not contain both.
pub fn server_tls(path: &Path) -> std::result::Result<ServerTls, String> {
    let problem = |text: String| format!("{}: {text}", path.display());
    let text = std::fs::read_to_string(path).map_err(|e| problem(e.to_string()))?;
    let identity = PemFile::parse(&text).and_then(PemFile::identity).map_err(problem)?;
    let mut secret = [0; 32];
    for part in secret.chunks_mut(8) {
        let random = std::hash::RandomState::new().hash_one(std::process::id());
        part.copy_from_slice(&random.to_le_bytes());
    }
    Ok(ServerTls::of_web_server(identity, secret))
}

/// The built-in proxy. Its counts survive restarts, its store does not.
#[derive(Debug)]
pub(crate) struct Builtin {
    name: String,
    config: ProxyConfig,
    engine: Engine,
    proxy: Option<ProxyServer>,
    /// The counts and the processor seconds of earlier instances.
    before: (AccessCounts, f64),
    /// Counts that do not belong to the test.
    overlooked: AccessCounts,
}

impl Builtin {
    pub fn start(device: &str, params: &Params) -> Result<Builtin> {
        const KNOWN: [&str; 6] = ["mem", "workers", "hosts_file", "origins", CERT, SERVICE];
        let wrong = |problem| Error::Setting { device: device.into(), problem };
        params.check(device, |variable| KNOWN.contains(&variable), [CERT, SERVICE_SETTINGS].into_iter())?;
        let certificate = params.options.get(CERT).filter(|path| !path.is_empty());
        let tls = certificate.map(|path| server_tls(Path::new(path))).transpose();
        let config = ProxyConfig {
            listen: params.listen,
            cache_bytes: params.memory.unwrap_or(Params::MEMORY),
            loops: params.workers.unwrap_or(1),
            hosts: params.hosts.clone(),
            origins: params.origins.clone(),
            tls: tls.map_err(|text| wrong(format!("`{CERT}`: {text}")))?,
            service: params.service.clone(),
            ..ProxyConfig::default()
        };
        let mut device = Builtin {
            name: device.to_owned(),
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
                .map_err(|source| Error::Address { device: self.name.clone(), address, source })?;
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
            waiting_seconds: 0.0,
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
