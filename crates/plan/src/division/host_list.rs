//! The list of the hosts of a test, as a TOML file (docs/fleet.md).

use std::collections::BTreeSet;
use std::net::IpAddr;

use polygraph_addr::{AddrRange, expand};
use serde::Deserialize;

use super::TestHost;

/// A host with more addresses than this is probably a typing error.
const MAX_ADDRESSES: u64 = 1 << 20;

/// The hosts of a test, and what their commands have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct HostList {
    /// The hosts in the order of the file.
    pub hosts: Vec<ListedHost>,
    /// Further options of the commands that run robots.
    pub client_options: Vec<String>,
    /// Further options of the commands that run servers.
    pub server_options: Vec<String>,
}

/// A host of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedHost {
    /// What the division needs to know about the host.
    pub host: TestHost,
    /// Where ssh finds the host, for example `bench@10.0.0.7`.
    pub ssh: String,
}

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    #[serde(default)]
    client_options: Vec<String>,
    #[serde(default)]
    server_options: Vec<String>,
    host: Vec<HostText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HostText {
    name: String,
    ssh: Option<String>,
    roles: Vec<Role>,
    addresses: Option<Vec<String>>,
    #[serde(default = "one")]
    weight: f64,
    cores: Option<u32>,
}

#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Role {
    Client,
    Server,
}

fn one() -> f64 {
    1.0
}

impl HostList {
    /// Reads a list of hosts.
    ///
    /// # Errors
    /// A message for the user, without the name of the file.
    pub fn parse(text: &str) -> Result<HostList, String> {
        let text: Text = toml::from_str(text).map_err(|error| error.to_string().trim().to_owned())?;
        let hosts = text.host.into_iter().map(HostText::host).collect::<Result<Vec<ListedHost>, String>>()?;
        Ok(HostList { hosts, client_options: text.client_options, server_options: text.server_options })
    }

    /// The hosts, for [`divide`](super::divide).
    pub fn test_hosts(&self) -> Vec<TestHost> {
        self.hosts.iter().map(|listed| listed.host.clone()).collect()
    }
}

impl HostText {
    fn host(self) -> Result<ListedHost, String> {
        let wrong = |why: String| format!("host `{}`: {why}", self.name);
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        if self.name.is_empty() || self.name.starts_with(['-', '.']) || !self.name.chars().all(plain) {
            return Err(wrong(
                "its name becomes part of file names: use letters, digits, `.`, `-` and `_`".to_owned(),
            ));
        }
        if self.cores == Some(0) {
            return Err(wrong("it needs at least one core".to_owned()));
        }
        let ssh = self.ssh.clone().unwrap_or_else(|| self.name.clone());
        if ssh.is_empty() || ssh.starts_with('-') {
            return Err(wrong(format!("`{ssh}` is not a destination of ssh")));
        }
        let addresses = self.addresses.as_ref().map(|ranges| addresses(ranges)).transpose().map_err(wrong)?;
        let host = TestHost {
            client: self.roles.contains(&Role::Client),
            server: self.roles.contains(&Role::Server),
            name: self.name,
            addresses,
            weight: self.weight,
            cores: self.cores,
        };
        Ok(ListedHost { host, ssh })
    }
}

/// The IP addresses of ranges.
fn addresses(ranges: &[String]) -> Result<BTreeSet<IpAddr>, String> {
    let parse = |range: &String| AddrRange::parse(range).map_err(|error| format!("`{range}`: {error}"));
    let ranges = ranges.iter().map(parse).collect::<Result<Vec<AddrRange>, String>>()?;
    let all = expand(&ranges, MAX_ADDRESSES).map_err(|error| error.to_string())?;
    let ip = |addr: polygraph_addr::Addr| match (addr.host.ip(), addr.port) {
        (Some(ip), None) => Ok(ip),
        (Some(_), Some(_)) => Err(format!("{addr}: a host has addresses, and ports belong to its servers")),
        (None, _) => Err(format!("{addr} is a name: list IP addresses")),
    };
    all.into_iter().map(ip).collect()
}
