//! Options for those who watch a process while it runs.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use polygraph_live::{Endpoint, Notifier, Publisher, metrics};
use polygraph_runner::Failure;
use polygraph_stats::{Header, Record};
use rustix::process::geteuid;

use super::values::{host_port, resolve};
use crate::output;

/// How a process can be watched while it runs.
#[derive(Args, Clone, Debug)]
#[command(rename_all = "snake_case", next_help_heading = "Monitoring")]
pub struct LiveOptions {
    /// Where monitors attach. `auto`: a socket on this host, where `polygraph mon` finds it; an address: also there, for
    /// monitors on other hosts; `no`: nowhere
    #[arg(long, value_name = "auto|ADDR:PORT|no", default_value = "auto", value_parser = live_place)]
    live: LivePlace,
    /// Serve figures in OpenMetrics format at this address, under /metrics, for Prometheus and the like
    #[arg(long, value_name = "ADDR:PORT", value_parser = listen_place)]
    metrics: Option<String>,
    /// Send a status notification to this host at the end of every statistics interval, by UDP: usually to `udp2tcpd`
    #[arg(long, value_name = "HOST:PORT", value_parser = host_port)]
    notify: Option<String>,
}

/// Where monitors attach.
#[derive(Clone, Debug, PartialEq, Eq)]
enum LivePlace {
    OnThisHost,
    At(String),
    Nowhere,
}

fn live_place(text: &str) -> Result<LivePlace, String> {
    match text {
        "auto" => Ok(LivePlace::OnThisHost),
        "no" => Ok(LivePlace::Nowhere),
        _ => listen_place(text).map(LivePlace::At).map_err(|_| {
            format!("`{text}` is not a place for monitors: write auto, no, or address:port, for example 10.0.0.1:18300")
        }),
    }
}

/// Reads an address and a port, which may be 0.
pub fn listen_place(text: &str) -> Result<String, String> {
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
    match port.map(str::parse::<u16>) {
        Some(Ok(_)) => Ok(text.to_owned()),
        _ => Err(format!(
            "`{text}` is not an address to listen on: write address:port, for example 127.0.0.1:9190"
        )),
    }
}

/// Publishes the records of a run to those who watch it.
#[derive(Debug)]
pub struct LivePublisher {
    publisher: Option<Publisher>,
    notifier: Option<Notifier>,
}

impl LiveOptions {
    /// Starts publishing.
    ///
    /// # Errors
    /// If an address cannot be used. A run on a host without a place for sockets goes on with a warning.
    pub fn start(&self) -> Result<LivePublisher, Failure> {
        let notifier = self.notify.as_deref().map(|receiver| {
            Notifier::new(receiver)
                .map_err(|e| Failure::setup(anyhow::anyhow!("cannot send notifications to {receiver}: {e}")))
        });
        let wanted = self.live != LivePlace::Nowhere || self.metrics.is_some();
        let publisher = wanted.then(|| self.publisher()).transpose()?;
        Ok(LivePublisher { publisher, notifier: notifier.transpose()? })
    }

    fn publisher(&self) -> Result<Publisher, Failure> {
        let mut publisher = Publisher::new().map_err(Failure::setup)?;
        if self.live != LivePlace::Nowhere {
            let served = Endpoint::local(&runtime_directory()).and_then(|endpoint| publisher.serve(endpoint));
            if let Err(error) = served {
                let directory = runtime_directory();
                output::warn(&format!(
                    "`polygraph mon` cannot find this process: no socket in {}: {error} (--live no turns this off)",
                    directory.display()
                ));
            }
        }
        if let LivePlace::At(place) = &self.live {
            let endpoint = Endpoint::tcp(resolve(place)?).map_err(|e| cannot_listen(place, e))?;
            let address = endpoint.address();
            publisher.serve(endpoint).map_err(Failure::setup)?;
            address.into_iter().for_each(|address| output::note(&format!("live statistics at {address}")));
        }
        if let Some(place) = &self.metrics {
            let address: SocketAddr =
                metrics::serve(resolve(place)?, publisher.hub()).map_err(|e| cannot_listen(place, e))?;
            output::note(&format!("metrics at http://{address}/metrics"));
        }
        Ok(publisher)
    }
}

fn cannot_listen(place: &str, error: std::io::Error) -> Failure {
    Failure::setup(anyhow::anyhow!("cannot listen at {place}: {error}"))
}

impl LivePublisher {
    /// Publishes that a side waits for traffic.
    pub fn waiting(&mut self, header: &Header) {
        if let Some(publisher) = &mut self.publisher {
            publisher.waiting(header);
        }
    }

    /// Publishes a record.
    pub fn observe(&mut self, header: &Header, record: &Record) {
        if let Some(publisher) = &mut self.publisher {
            publisher.observe(header, record);
        }
        if let Some(notifier) = &mut self.notifier {
            notifier.observe(header, record);
        }
    }
}

/// Where processes of root have their sockets if there is no directory for the session.
const OF_ROOT: &str = "/run/polygraph";

/// Where processes of this user have their sockets.
pub fn runtime_directory() -> PathBuf {
    let of_session = std::env::var_os("XDG_RUNTIME_DIR").filter(|path| !path.is_empty());
    match of_session {
        Some(path) => Path::new(&path).join("polygraph"),
        None if geteuid().is_root() => PathBuf::from(OF_ROOT),
        None => std::env::temp_dir().join(format!("polygraph-{}", geteuid().as_raw())),
    }
}

/// Where a monitor of this user looks for sockets: root also in the directories of others.
pub fn watched_directories() -> Vec<PathBuf> {
    let mut found = vec![runtime_directory()];
    if geteuid().is_root() {
        found.push(PathBuf::from(OF_ROOT));
        let users = std::fs::read_dir("/run/user").into_iter().flatten().flatten();
        found.extend(users.map(|entry| entry.path().join("polygraph")));
    }
    found.sort();
    found.dedup();
    found
}
