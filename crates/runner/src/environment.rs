//! Files and hosts that workloads refer to, on this machine and its network.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;

use polygraph_kerberos::service::ServiceKey;
use polygraph_pgl::{DiskLoader, FileKind, Loader};
use polygraph_plan::Environment;
use polygraph_tls::settings::{Identity, KeyKind};
use polygraph_traffic::files::Files;
use polygraph_wire::foreign::UrlTrace;

use crate::{certificates, content_files};

/// This machine. Relative paths start in the working directory.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Whether servers of the test run here, in this process or in its workers.
    runs_servers: bool,
}

impl Machine {
    /// For processes that run servers.
    pub const WITH_SERVERS: Machine = Machine { runs_servers: true };
    /// For clients, and for processes that only start others.
    pub const WITHOUT_SERVERS: Machine = Machine { runs_servers: false };
}

impl Environment for Machine {
    fn content_db(&self, path: &str) -> Result<Files, String> {
        content_files::content_database(Path::new(path)).map_err(|e| e.to_string())
    }

    fn document_root(&self, path: &str) -> Result<Files, String> {
        content_files::document_root(Path::new(path)).map_err(|e| e.to_string())
    }

    fn text_db(&self, path: &str) -> Result<Files, String> {
        content_files::texts(Path::new(path)).map_err(|e| e.to_string())
    }

    fn trace(&self, path: &str) -> Result<Vec<String>, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {path}: {e}"))?;
        let trace = UrlTrace::parse(text).map_err(|e| format!("the trace {path}: {e}"))?;
        Ok(trace.urls().map(str::to_owned).collect())
    }

    fn resolve(&self, host: &str, port: u16) -> Result<SocketAddr, String> {
        let wrong = |why: String| format!("cannot resolve {host}: {why}");
        let mut found = (host, port).to_socket_addrs().map_err(|e| wrong(e.to_string()))?;
        found.next().ok_or_else(|| wrong("it has no address".to_owned()))
    }

    fn tls(&self) -> Result<(), String> {
        match polygraph_tls::BUILT_IN {
            true => Ok(()),
            false => Err(format!("this test needs TLS, but {}", polygraph_tls::MISSING)),
        }
    }

    fn kerberos(&self) -> Result<(), String> {
        polygraph_kerberos::available().map_err(|missing| format!("this test needs Kerberos, but {missing}"))
    }

    fn keytab(&self, path: &str) -> Result<Vec<ServiceKey>, String> {
        let bytes = std::fs::read(path).map_err(|e| format!("cannot read {path}: {e}"))?;
        polygraph_kerberos::keytab::read(&bytes).map_err(|e| format!("{path}: {e}"))
    }

    fn pem(&self, path: &str) -> Result<String, String> {
        std::fs::read_to_string(path).map_err(|e| format!("cannot read {path}: {e}"))
    }

    fn runs_servers(&self) -> bool {
        self.runs_servers
    }

    fn authority(&self, sharing_group: Option<&str>) -> Result<Identity, String> {
        certificates::authority(sharing_group)
    }

    fn private_key(&self, sharing_group: Option<&str>, kind: KeyKind) -> Result<Vec<u8>, String> {
        certificates::private_key(sharing_group, kind)
    }
}

/// The directory with the parts of standard workloads, which all workloads may include.
const LIBRARY: &str = "builtin:workloads/include";

/// Reads workloads: files of this machine and built-in ones.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadLoader;

impl Loader for WorkloadLoader {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        match polygraph_assets::builtin(path) {
            Some(text) => text.map(|text| text.as_bytes().to_vec()),
            None => DiskLoader.read(path),
        }
    }

    fn list(&self, directory: &str) -> Vec<String> {
        polygraph_assets::names_in(directory).unwrap_or_else(|| DiskLoader.list(directory))
    }

    fn library(&self) -> Option<&str> {
        Some(LIBRARY)
    }

    fn is_library(&self, path: &str) -> bool {
        path.starts_with(polygraph_assets::SCHEME)
    }

    fn run(&self, command: &str) -> io::Result<String> {
        DiskLoader.run(command)
    }
}

/// Reads workloads, and checks that the files they name can be used.
#[derive(Clone, Copy, Debug)]
pub struct CheckingLoader;

impl Loader for CheckingLoader {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        WorkloadLoader.read(path)
    }

    fn library(&self) -> Option<&str> {
        WorkloadLoader.library()
    }

    fn is_library(&self, path: &str) -> bool {
        WorkloadLoader.is_library(path)
    }

    fn look(&self, kind: FileKind, path: &str) -> Result<(), String> {
        let here = Machine::WITHOUT_SERVERS;
        match kind {
            FileKind::ContentDb => here.content_db(path).map(drop),
            FileKind::DocumentRoot => here.document_root(path).map(drop),
            FileKind::TextDb => here.text_db(path).map(drop),
            FileKind::Trace => here.trace(path).map(drop),
        }
    }

    fn run(&self, command: &str) -> io::Result<String> {
        DiskLoader.run(command)
    }
}
