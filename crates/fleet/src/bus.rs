//! The message bus: messages by subjects, and files in buckets.
//!
//! * this file: the bus as the rest of the crate sees it, and how it is connected.
//! * `nats`: everything that is known about NATS. Programs without the feature `nats` lack it.
//! * `ssh`, `host_list`: the bus of a controller that starts agents with ssh.
//! * `stdio`: the bus of such an agent.
//! * `frame`, `subscriptions`: what both have in common.

pub mod frame;
mod host_list;
#[cfg(feature = "nats")]
mod nats;
mod ssh;
mod stdio;
mod subscriptions;

use std::net::IpAddr;
use std::path::{Path, PathBuf};

#[cfg(feature = "nats")]
use futures_util::StreamExt as _;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::error::{FleetError, Result};

/// The start of the addresses of fleets without NATS; the path of a list of hosts follows.
const SSH: &str = "ssh:";
/// The address of the controller that has started this agent with ssh.
pub const STDIO: &str = "stdio:";

/// How a process connects to NATS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BusOptions {
    /// Addresses of servers of NATS, separated by commas: `nats://host:4222`, `tls://host`. They may contain user and password. Or
    /// `ssh:` with the path of a list of hosts, or [`STDIO`].
    pub url: String,
    /// A file with credentials (`.creds`).
    pub creds: Option<PathBuf>,
    /// A file with certificates of authorities, for TLS.
    pub tls_ca: Option<PathBuf>,
    /// The certificate of this client, for TLS.
    pub tls_cert: Option<PathBuf>,
    /// The key of that certificate.
    pub tls_key: Option<PathBuf>,
    /// Whether a server elsewhere than on this host may be used without credentials.
    pub anonymous: bool,
    /// The name by which servers know the connection.
    pub client: String,
}

/// A message that was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusMessage {
    /// The subject on which it came.
    pub subject: String,
    /// Where an answer goes, if one is expected.
    pub reply: Option<String>,
    /// True if the server says that nobody listens on the subject of the request that this answers.
    pub is_undelivered: bool,
    /// The message.
    pub bytes: Vec<u8>,
}

/// A connection of a controller or an agent, which is made again whenever it is lost.
#[derive(Clone, Debug)]
pub enum Bus {
    /// To NATS.
    #[cfg(feature = "nats")]
    Nats(nats::NatsBus),
    /// To agents that this controller has started with ssh.
    Ssh(ssh::SshBus),
    /// To the controller that has started this agent with ssh.
    Stdio(stdio::StdioBus),
}

/// Messages of a subject.
#[derive(Debug)]
pub enum Inbox {
    /// From NATS.
    #[cfg(feature = "nats")]
    Nats(Box<async_nats::Subscriber>),
    /// From other connections.
    Own(UnboundedReceiver<BusMessage>),
}

impl Bus {
    /// Connects. If `patient`, the first connection to NATS is awaited for as long as it takes.
    ///
    /// # Errors
    /// If no server or agent can be reached, or the credentials are refused.
    pub async fn connect(options: &BusOptions, patient: bool) -> Result<Bus> {
        if let Some(list) = options.url.strip_prefix(SSH) {
            return Ok(Bus::Ssh(ssh::SshBus::connect(Path::new(list)).await?));
        }
        if options.url == STDIO {
            return Ok(Bus::Stdio(stdio::StdioBus::start()));
        }
        options.check()?;
        #[cfg(feature = "nats")]
        return Ok(Bus::Nats(nats::NatsBus::connect(options, patient).await?));
        #[cfg(not(feature = "nats"))]
        {
            let _ = patient;
            Err(FleetError::NotBuilt)
        }
    }

    /// Whether there is a connection now. That to agents over ssh consists of one to each of them, which are lost one by one.
    pub fn is_connected(&self) -> bool {
        match self {
            #[cfg(feature = "nats")]
            Bus::Nats(bus) => bus.is_connected(),
            Bus::Ssh(_) => true,
            Bus::Stdio(bus) => bus.is_connected(),
        }
    }

    /// What this process is connected to, for people.
    pub fn peer(&self) -> String {
        match self {
            #[cfg(feature = "nats")]
            Bus::Nats(bus) => format!("NATS at {}", bus.server()),
            Bus::Ssh(_) => "agents over ssh".to_owned(),
            Bus::Stdio(_) => "the controller".to_owned(),
        }
    }

    /// How often the connection was made, so that it can be seen whether it was lost meanwhile.
    pub fn connections(&self) -> u64 {
        match self {
            #[cfg(feature = "nats")]
            Bus::Nats(bus) => bus.connections(),
            // Over ssh, nothing is asked again.
            Bus::Ssh(_) | Bus::Stdio(_) => 1,
        }
    }

    /// Which servers of NATS accept no connections, for people; `None` if all do.
    pub async fn lost_servers(&self) -> Option<String> {
        match self {
            #[cfg(feature = "nats")]
            Bus::Nats(bus) => bus.lost_servers().await,
            Bus::Ssh(_) | Bus::Stdio(_) => None,
        }
    }

    /// Whether the connection ends with the controller, so that an agent has nothing more to do then.
    pub fn ends_with_controller(&self) -> bool {
        matches!(self, Bus::Stdio(_))
    }

    /// A new subject for answers.
    pub fn new_inbox(&self) -> String {
        match self {
            #[cfg(feature = "nats")]
            Bus::Nats(bus) => bus.new_inbox(),
            Bus::Ssh(bus) => bus.new_inbox(),
            // Agents ask nothing.
            Bus::Stdio(_) => "_INBOX.agent".to_owned(),
        }
    }

    /// Publishes a message. Without a connection, it is lost: states are published again.
    pub async fn publish(&self, subject: String, reply: Option<String>, bytes: Vec<u8>) {
        match self {
            #[cfg(feature = "nats")]
            Bus::Nats(bus) => bus.publish(subject, reply, bytes).await,
            Bus::Ssh(bus) => bus.publish(subject, reply, bytes).await,
            Bus::Stdio(bus) => bus.publish(subject, reply, bytes).await,
        }
    }

    /// Receives the messages of a subject.
    ///
    /// # Errors
    /// If the server refuses that.
    pub async fn subscribe(&self, subject: String) -> Result<Inbox> {
        match self {
            #[cfg(feature = "nats")]
            Bus::Nats(bus) => Ok(Inbox::Nats(Box::new(bus.subscribe(subject).await?))),
            Bus::Ssh(bus) => Ok(Inbox::Own(bus.subscribe(subject))),
            Bus::Stdio(bus) => Ok(Inbox::Own(bus.subscribe(subject).await)),
        }
    }

    /// Makes a bucket for files, unless it exists.
    ///
    /// # Errors
    /// If the server refuses that.
    pub async fn make_bucket(&self, bucket: &str) -> Result<()> {
        match self {
            #[cfg(feature = "nats")]
            Bus::Nats(bus) => bus.make_bucket(bucket).await,
            // Files need none.
            Bus::Ssh(_) | Bus::Stdio(_) => {
                let _ = bucket;
                Ok(())
            }
        }
    }

    /// Removes a bucket with all files.
    pub async fn remove_bucket(&self, bucket: &str) {
        match self {
            #[cfg(feature = "nats")]
            Bus::Nats(bus) => bus.remove_bucket(bucket).await,
            Bus::Ssh(bus) => bus.remove_bucket(bucket),
            // Controllers do that.
            Bus::Stdio(_) => {}
        }
    }

    /// Stores a file, and returns its size in bytes.
    ///
    /// # Errors
    /// If the file cannot be read, or is refused.
    pub async fn put_file(&self, bucket: &str, object: &str, path: &Path) -> Result<u64> {
        match self {
            #[cfg(feature = "nats")]
            Bus::Nats(bus) => bus.put_file(bucket, object, path).await,
            Bus::Ssh(bus) => bus.put_file(bucket, object, path),
            Bus::Stdio(bus) => bus.put_file(bucket, object, path).await,
        }
    }

    /// Fetches a file, and returns its size in bytes. It is whole: NATS checks its digest, ssh every packet.
    ///
    /// # Errors
    /// If the file is not there, or cannot be written.
    pub async fn get_file(&self, bucket: &str, object: &str, path: &Path) -> Result<u64> {
        match self {
            #[cfg(feature = "nats")]
            Bus::Nats(bus) => bus.get_file(bucket, object, path).await,
            Bus::Ssh(bus) => bus.get_file(bucket, object, path).await,
            Bus::Stdio(bus) => bus.get_file(bucket, object, path).await,
        }
    }

    /// Removes a file from a bucket.
    pub async fn remove_file(&self, bucket: &str, object: &str) {
        match self {
            #[cfg(feature = "nats")]
            Bus::Nats(bus) => bus.remove_file(bucket, object).await,
            Bus::Ssh(bus) => bus.remove_file(bucket, object),
            // Controllers do that.
            Bus::Stdio(_) => {}
        }
    }
}

impl Inbox {
    /// The next message; `None` if the connection was closed for good.
    pub async fn next(&mut self) -> Option<BusMessage> {
        match self {
            #[cfg(feature = "nats")]
            Inbox::Nats(messages) => messages.next().await.map(nats::message_of),
            Inbox::Own(messages) => messages.recv().await,
        }
    }
}

impl BusOptions {
    /// Checks that servers on other hosts are not used without credentials.
    ///
    /// # Errors
    /// If they would be.
    pub fn check(&self) -> Result<()> {
        let proven = self.creds.is_some() || self.tls_cert.is_some() || self.anonymous;
        let open = self.servers().find(|server| server.user.is_none() && !server.is_loopback());
        match open.filter(|_| !proven) {
            None => Ok(()),
            Some(server) => Err(FleetError::Usage(format!(
                "{} is another host, where everyone who reaches NATS could start processes on all agents: add --creds FILE, --tls_cert and \
                 --tls_key, a user and password in the address (nats://USER:PASSWORD@HOST), or --anonymous if the network is closed",
                server.host
            ))),
        }
    }

    /// User and password of the first address that has them.
    #[cfg_attr(not(feature = "nats"), allow(dead_code, reason = "only the client of NATS needs them"))]
    fn user(&self) -> Option<(&str, &str)> {
        let user = self.servers().find_map(|server| server.user)?;
        Some(user.split_once(':').unwrap_or((user, "")))
    }

    fn servers(&self) -> impl Iterator<Item = ServerAddress<'_>> {
        self.url.split(',').map(|text| ServerAddress::of(text.trim()))
    }
}

/// The parts of an address of a server.
struct ServerAddress<'a> {
    /// User and password.
    user: Option<&'a str>,
    host: &'a str,
    /// The address without user and password.
    #[cfg_attr(not(feature = "nats"), allow(dead_code, reason = "only the client of NATS needs it"))]
    plain: String,
}

impl<'a> ServerAddress<'a> {
    fn of(text: &'a str) -> ServerAddress<'a> {
        let (scheme, rest) = text.split_once("://").map_or(("nats", text), |(scheme, rest)| (scheme, rest));
        let (user, place) = rest.rsplit_once('@').map_or((None, rest), |(user, place)| (Some(user), place));
        let place = place.split('/').next().unwrap_or_default();
        let host = match place.strip_prefix('[').and_then(|place| place.split_once(']')) {
            Some((host, _)) => host,
            None => place.split(':').next().unwrap_or_default(),
        };
        let user = user.filter(|user| !user.is_empty());
        ServerAddress { user, host, plain: format!("{scheme}://{place}") }
    }

    fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_part_of_addresses() {
        let options = |url: &str| BusOptions { url: url.to_owned(), ..BusOptions::default() };
        assert_eq!(options("nats://a,tls://u:p:q@b:1").user(), Some(("u", "p:q")));
        assert_eq!(options("t@b").user(), Some(("t", "")));
        assert_eq!(options("a,b").user(), None);
        let plain = |url: &str| ServerAddress::of(url).plain;
        assert_eq!(plain("tls://u:p@b:1"), "tls://b:1");
        assert_eq!(plain("[::1]:4222"), "nats://[::1]:4222");
    }

    #[test]
    fn anonymous_clients_stay_on_their_host() {
        let options = |url: &str| BusOptions { url: url.to_owned(), ..BusOptions::default() };
        for url in [
            "127.0.0.1",
            "nats://localhost:4222",
            "[::1]:4222",
            "127.0.0.1:1,127.0.0.1:2",
            "nats://u:p@10.0.0.1",
        ] {
            assert!(options(url).check().is_ok(), "{url}");
        }
        for url in ["10.0.0.1", "nats://bench.example:4222", "127.0.0.1,tls://10.0.0.1", "nats://@10.0.0.1"] {
            let error = options(url).check().unwrap_err().to_string();
            assert!(error.contains("--creds"), "{error}");
            assert!(BusOptions { anonymous: true, ..options(url) }.check().is_ok());
            assert!(BusOptions { creds: Some("x".into()), ..options(url) }.check().is_ok());
        }
    }
}
