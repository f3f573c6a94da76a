//! Lab files: the description of a lab as the user writes it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use polygraph_addr::{AddrRange, expand};
use polygraph_assets::{EntryKind, is_builtin, join, locate, read_to_string};
use polygraph_netsetup::IpPrefix;
use polygraph_plan::values::{self, Unit};
use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result};

/// How a host gets the addresses of its agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentPlaces {
    /// Each is an address of the network interface.
    Aliases,
    /// Their networks are local as a whole (AnyIP): one route on the loopback interface, and routes on the other hosts.
    Anyip,
    /// Somebody else adds them.
    None,
}

/// The most hosts of one kind.
const MOST_HOSTS: u64 = 250;
/// The longest name of a network: names of switch ports consist of a host and a network, in 15 characters.
const NETWORK_NAME: usize = 8;

/// A lab file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabFile {
    /// What the lab is, in one line.
    #[serde(default)]
    pub summary: String,
    /// The workload that runs in the lab unless the user names another one, and that says which addresses its hosts have.
    pub workload: Option<WorkloadChoice>,
    /// Networks by name; each is a switch.
    pub networks: BTreeMap<String, NetworkFile>,
    /// The hosts of robots.
    pub clients: Option<HostsFile>,
    /// The hosts of origin servers.
    pub servers: Option<HostsFile>,
    /// The host of the device under test.
    pub device: Option<DeviceFile>,
    /// A host from which the others are watched.
    pub monitor: Option<HostFile>,
    /// A host that forwards packets between networks.
    pub router: Option<RouterFile>,
    /// Where the file is.
    #[serde(skip)]
    pub path: PathBuf,
}

/// A workload file with settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadChoice {
    /// The file, whose relative path starts at the lab file, or `builtin:` and the name of a built-in workload.
    pub config: PathBuf,
    /// Values of names in the workload, in the notation of `--set`.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
}

/// A network.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetworkFile {
    /// Its addresses, for example `172.16.101.0/24`.
    pub subnet: IpPrefix,
    /// The rate of each link in each direction, in the notation of tc(8), for example `100mbit`.
    pub rate: Option<String>,
    /// The largest packet in bytes.
    pub mtu: Option<u32>,
}

/// Clients or servers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostsFile {
    /// Ranges with an address for each host, for example `10.16.0.61-91`; a bench with fewer hosts uses the first ones.
    #[serde(default)]
    pub addresses: String,
    /// How the hosts get the addresses of their agents. Default: as the workload says.
    pub agents: Option<AgentPlaces>,
    /// The delay of each packet to or from the host: a time, for example `40ms`, or a distribution of times.
    pub delay: Option<String>,
    /// The share of packets lost in each direction, for example `0.05%`.
    pub loss: Option<String>,
    /// Addresses of the host whose packets are delayed or lost. Default: all.
    #[serde(rename = "match")]
    pub matching: Option<IpPrefix>,
}

/// The host of the device.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceFile {
    /// Its address. Default: the one that the workload names (`proxy_side.hosts`).
    pub address: Option<String>,
    /// The port at which it accepts requests.
    pub port: Option<u16>,
    /// The device that `lab run` starts, a name from `polygraph devices` or a directory, unless the user names another one.
    pub device: Option<String>,
    /// Parameters of that device.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
}

/// A host without a task.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFile {
    /// Its address.
    pub address: String,
}

/// A router.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RouterFile {
    /// Its addresses, one in each network, with commas between them.
    pub addresses: String,
}

impl LabFile {
    /// Reads a lab file.
    ///
    /// # Errors
    /// If it cannot be read, or is no lab file.
    pub fn read(path: &Path) -> Result<LabFile> {
        let text = read_to_string(path).map_err(LabError::file(path))?;
        let place = if is_builtin(path) { Ok(path.to_owned()) } else { std::path::absolute(path) };
        let place = place.map_err(LabError::file(path))?;
        LabFile::parse(&text, &place)
            .map_err(|problem| LabError::Description { path: path.to_owned(), problem })
    }

    /// Reads the text of a lab file at a path, to which it refers.
    ///
    /// # Errors
    /// The place in the text, what is wrong there, and what to write.
    pub fn parse(text: &str, path: &Path) -> std::result::Result<LabFile, String> {
        let mut file: LabFile = toml::from_str(text).map_err(|error| error.to_string().trim().to_owned())?;
        path.clone_into(&mut file.path);
        if let Some(choice) = &mut file.workload
            && let Some(text) = choice.config.to_str().filter(|_| is_builtin(&choice.config))
        {
            let located = locate(EntryKind::Workload, text);
            choice.config = located.map_err(|error| format!("workload.config: {error}"))?.into();
        }
        file.check()?;
        Ok(file)
    }

    /// The name of the lab unless the user gives another one: that of its file.
    ///
    /// # Errors
    /// If the name of the file cannot be that of a lab.
    pub fn name(&self) -> Result<String> {
        let stem = self.path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        match check_name(&stem) {
            Ok(()) => Ok(stem),
            Err(problem) => Err(LabError::Description {
                path: self.path.clone(),
                problem: format!("{problem}; rename the file, or add --name"),
            }),
        }
    }

    /// The path of the file's workload.
    pub fn workload_path(&self) -> Option<PathBuf> {
        let choice = self.workload.as_ref()?;
        let place = self.path.parent().unwrap_or(Path::new(""));
        Some(join(place, &choice.config))
    }

    fn check(&self) -> std::result::Result<(), String> {
        if self.networks.is_empty() {
            return Err("there is no network: add [networks.lan] with subnet = \"10.16.0.0/16\"".to_owned());
        }
        for (name, network) in &self.networks {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
            if name.is_empty() || name.len() > NETWORK_NAME || !name.chars().all(plain) {
                return Err(format!(
                    "networks.{name}: the name of a network has 1 to {NETWORK_NAME} small letters and digits"
                ));
            }
            network.check().map_err(|problem| format!("networks.{name}: {problem}"))?;
        }
        let sides = [("clients", &self.clients), ("servers", &self.servers)];
        for (name, hosts) in sides {
            hosts
                .as_ref()
                .map_or(Ok(()), HostsFile::check)
                .map_err(|problem| format!("{name}: {problem}"))?;
        }
        if self.clients.is_none() && self.servers.is_none() {
            return Err("there are no hosts: add [clients] and [servers]".to_owned());
        }
        Ok(())
    }
}

impl NetworkFile {
    fn check(&self) -> std::result::Result<(), String> {
        let IpPrefix { length, .. } = self.subnet;
        if self.subnet.network() != self.subnet || length == IpPrefix::host(self.subnet.address).length {
            return Err(format!(
                "subnet = \"{}\" is an address and no network: write for example {}",
                self.subnet,
                IpPrefix::around(self.subnet.address, length.min(24))
            ));
        }
        if let Some(rate) = &self.rate {
            bits_per_second(rate)?;
        }
        match self.mtu {
            Some(mtu) if !(576..=65_535).contains(&mtu) => {
                Err(format!("mtu = {mtu}: write a number from 576 to 65535"))
            }
            _ => Ok(()),
        }
    }
}

impl HostsFile {
    fn check(&self) -> std::result::Result<(), String> {
        if let Some(delay) = &self.delay {
            values::distr(delay, Unit::Time).map_err(|problem| format!("delay: {problem}"))?;
        }
        if let Some(loss) = &self.loss {
            values::share(loss).map_err(|problem| format!("loss: {problem}"))?;
        }
        if self.matching.is_some() && self.delay.is_none() && self.loss.is_none() {
            return Err("match has no effect without delay or loss".to_owned());
        }
        Ok(())
    }

    /// Whether packets are delayed or lost.
    pub fn has_wan(&self) -> bool {
        self.delay.is_some() || self.loss.is_some()
    }
}

/// The members of ranges of addresses.
///
/// # Errors
/// If the text is no list of ranges, or has a member that is no IP address.
pub(crate) fn addresses(text: &str) -> std::result::Result<Vec<IpAddr>, String> {
    let ranges = AddrRange::parse_list(text)
        .map_err(|error| format!("`{text}` are not ranges of addresses: {error}"))?;
    let all = expand(&ranges, MOST_HOSTS)
        .map_err(|_| format!("the ranges have more than {MOST_HOSTS} addresses"))?;
    let ip = |addr: &polygraph_addr::Addr| {
        addr.host.ip().ok_or_else(|| format!("`{addr}` is a name: write an IP address"))
    };
    all.iter().map(ip).collect()
}

/// A rate in the notation of tc(8).
///
/// # Errors
/// If the text is no such rate, or less than 8 kbit/s.
pub(crate) fn bits_per_second(text: &str) -> std::result::Result<u64, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let factor = match &text[digits..] {
        "kbit" => Some(1000),
        "mbit" => Some(1_000_000),
        "gbit" => Some(1_000_000_000),
        _ => None,
    };
    let rate = factor.and_then(|factor| text[..digits].parse::<u64>().ok()?.checked_mul(factor));
    rate.filter(|rate| (8_000..=400_000_000_000).contains(rate)).ok_or_else(|| {
        format!("rate = \"{text}\" is not the rate of a link: write for example 100mbit, 1gbit or 512kbit")
    })
}

/// Checks that a text can be the name of a lab.
///
/// # Errors
/// What names consist of.
pub(crate) fn check_name(name: &str) -> std::result::Result<(), String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    if starts && name.len() <= 40 && name.chars().all(plain) {
        return Ok(());
    }
    Err(format!("`{name}` cannot be the name of a lab, which has 1 to 40 small letters, digits and -"))
}
