//! The message bus: everything that is known about NATS. Without the feature `nats`, it cannot be connected.

#[cfg(feature = "nats")]
mod nats;
#[cfg(not(feature = "nats"))]
mod without;

use std::net::IpAddr;
use std::path::PathBuf;

use crate::error::{FleetError, Result};

#[cfg(feature = "nats")]
pub use self::nats::{Bus, Inbox};
#[cfg(not(feature = "nats"))]
pub use self::without::{Bus, Inbox};

/// How a process connects to NATS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BusOptions {
    /// Addresses of servers, separated by commas: `nats://host:4222`, `tls://host`. They may contain user and password.
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
