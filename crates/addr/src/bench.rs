//! The bench as address schemes see it, and the allocations that they compute.

use std::fmt;

use crate::{Addr, AddrRange, merge_all};

/// The largest number of agents that a scheme gives to one side. It is far above every real bench; it keeps a
/// typing error from exhausting memory.
pub const MAX_AGENTS: u64 = 1 << 24;

/// One side of a bench. Settings that the user left out are `None` or empty.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SideSpec {
    /// The real addresses of the machines.
    pub hosts: Vec<AddrRange>,
    /// The capacity of one machine in requests per second.
    pub max_host_load: Option<f64>,
    /// The capacity of one agent in requests per second.
    pub max_agent_load: Option<f64>,
    /// The pool of the generation 4 schemes and of `SpreadAs`.
    pub addr_space: Vec<AddrRange>,
    /// The pool of `PolyMix3As`: first two octets, interface, port and subnet count.
    pub addr_mask: Option<Addr>,
}

/// A bench: the total request rate, and the machines of each side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BenchSpec {
    /// The total request rate that the device under test sees, per second.
    pub peak_req_rate: Option<f64>,
    /// The machines that run robots.
    pub client_side: SideSpec,
    /// The machines that run servers.
    pub server_side: SideSpec,
    /// The machines that run the device under test.
    pub proxy_side: SideSpec,
}

impl BenchSpec {
    /// The number of client machines: peak rate over the load of one machine, rounded up.
    ///
    /// # Errors
    /// If `peak_req_rate` or `client_side.max_host_load` is missing or not positive.
    pub fn client_host_count(&self) -> Result<u64, SchemeError> {
        let mut wants = RequiredSettings::to("clientHostCount", "count the client hosts".to_owned());
        let rate = wants.positive("peak_req_rate", self.peak_req_rate);
        let load = wants.positive("client_side.max_host_load", self.client_side.max_host_load);
        wants.check()?;
        Ok(crate::xceil(rate, load))
    }

    pub(crate) fn side(&self, role: BenchRole) -> &SideSpec {
        match role {
            BenchRole::Robots => &self.client_side,
            BenchRole::Servers => &self.server_side,
            BenchRole::Proxies => &self.proxy_side,
        }
    }
}

/// The agents that addresses are computed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BenchRole {
    /// The robots of the client side.
    Robots,
    /// The servers of the server side.
    Servers,
    /// The proxies of the proxy side.
    Proxies,
}

impl BenchRole {
    /// The bench field that describes this side in PGL.
    pub fn side_name(self) -> &'static str {
        match self {
            BenchRole::Robots => "client_side",
            BenchRole::Servers => "server_side",
            BenchRole::Proxies => "proxy_side",
        }
    }
}

impl fmt::Display for BenchRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BenchRole::Robots => "robots",
            BenchRole::Servers => "servers",
            BenchRole::Proxies => "proxies",
        })
    }
}

/// Agents distributed over addresses and machines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allocation {
    /// The addresses of each machine, each address once.
    pub shares: Vec<Vec<AddrRange>>,
    /// The number of agents that share one address.
    pub agents_per_addr: u64,
    /// Warnings for the user.
    pub warnings: Vec<SchemeWarning>,
}

impl Allocation {
    /// The number of machines.
    pub fn hosts(&self) -> u64 {
        self.shares.len() as u64
    }

    /// All addresses in the order of the machines, each address once.
    pub fn addresses(&self) -> Vec<AddrRange> {
        merge_all(self.shares.iter().flatten().cloned())
    }

    /// The number of addresses.
    pub fn address_count(&self) -> u64 {
        self.shares.iter().map(|share| crate::count(share)).sum()
    }

    /// The number of agents.
    pub fn agents(&self) -> u64 {
        self.address_count() * self.agents_per_addr
    }

    /// The number of agents on one machine; 0 for a machine that does not exist.
    pub fn agents_on(&self, host: usize) -> u64 {
        self.shares.get(host).map_or(0, |share| crate::count(share)) * self.agents_per_addr
    }

    /// The address of every agent in order: the whole list of addresses, repeated once for each agent of an
    /// address.
    pub fn agent_addresses(&self) -> impl Iterator<Item = Addr> + '_ {
        (0..self.agents_per_addr).flat_map(|_| self.shares.iter().flatten().flatten())
    }
}

/// Why a scheme cannot distribute agents.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SchemeError {
    /// Settings of the bench or the scheme are not set.
    #[error("{scheme} needs {} to {purpose}", .missing.join(", "))]
    Missing {
        /// The scheme (or call).
        scheme: &'static str,
        /// What they are needed for, such as "compute the addresses of robots".
        purpose: String,
        /// The paths of the missing fields, from the bench or the scheme.
        missing: Vec<String>,
    },
    /// A setting that must be greater than zero is not.
    #[error("{setting} must be positive, but it is {value}")]
    NotPositive {
        /// The path of the field.
        setting: String,
        /// Its value.
        value: f64,
    },
    /// The agents of one machine would exceed its capacity.
    #[error("{agents} {role} do not fit on {hosts} hosts: one host takes {per_host}")]
    HostCapacity {
        /// The agents.
        role: BenchRole,
        /// The number of agents.
        agents: u64,
        /// The number of machines.
        hosts: u64,
        /// The number of agents that one machine may have.
        per_host: u64,
    },
    /// The pool has fewer addresses than needed.
    #[error("{side}.addr_space has {pool} addresses, but {need} are needed")]
    PoolTooSmall {
        /// The side of the bench.
        side: &'static str,
        /// Addresses in the pool.
        pool: u64,
        /// Addresses needed.
        need: u64,
    },
    /// The pool ran out because every host takes whole subnets.
    #[error(
        "{side}.addr_space has room for {served} of {hosts} hosts: each host takes whole /{subnet} subnets; \
         use a larger space or smaller subnets"
    )]
    PoolExhausted {
        /// The side of the bench.
        side: &'static str,
        /// Hosts that got their addresses.
        served: u64,
        /// Hosts that need addresses.
        hosts: u64,
        /// The subnet that one host occupies.
        subnet: u8,
    },
    /// More agents or addresses than a plan may hold.
    #[error("{role} would be {count} agents, but the limit is {MAX_AGENTS}")]
    TooMany {
        /// The agents.
        role: BenchRole,
        /// The number of agents; `u64::MAX` stands for more than that.
        count: u64,
    },
    /// A host name in an address pool.
    #[error("{side}.addr_space contains the name {name}, but agents need IP addresses")]
    NameInPool {
        /// The side of the bench.
        side: &'static str,
        /// The name.
        name: String,
    },
    /// The mask is not an IPv4 address.
    #[error("{side}.addr_mask must be an IPv4 address such as 10.16.0.0, but it is {mask}")]
    BadMask {
        /// The side of the bench.
        side: &'static str,
        /// The mask.
        mask: String,
    },
    /// The scheme needs more third octets than it has.
    #[error("{agents} {role} need {octets} third octets, but PolyMix3As has only {room} for them")]
    MaskTooSmall {
        /// The agents.
        role: BenchRole,
        /// The number of agents.
        agents: u64,
        /// Third octets needed.
        octets: u64,
        /// Third octets available.
        room: u64,
    },
    /// The scheme does not assign addresses to proxies.
    #[error("{scheme} has no proxy addresses")]
    NoProxies {
        /// The scheme.
        scheme: &'static str,
    },
}

/// A questionable setting of a bench for which addresses could still be computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemeWarning {
    /// A generation 3 mask where the scheme uses a pool.
    #[error("{side}.addr_mask is deprecated and not used by {scheme}")]
    MaskIgnored {
        /// The scheme.
        scheme: &'static str,
        /// The side of the bench.
        side: &'static str,
    },
    /// A pool where the scheme uses the addresses of the real machines.
    #[error("{scheme} uses {side}.hosts as addresses and ignores {side}.addr_space")]
    PoolIgnored {
        /// The scheme.
        scheme: &'static str,
        /// The side of the bench.
        side: &'static str,
    },
    /// An agent load that the scheme ignores.
    #[error("{scheme} ignores {side}.max_agent_load: the number of servers follows from the robots")]
    AgentLoadIgnored {
        /// The scheme.
        scheme: &'static str,
        /// The side of the bench.
        side: &'static str,
    },
    /// An explicit subnet that does not hold the addresses of one machine.
    #[error("a host of {side} has addresses for a /{needed}, but addr_space has /{given}")]
    SubnetTooSmall {
        /// The side of the bench.
        side: &'static str,
        /// The subnet written in the pool.
        given: u8,
        /// The subnet that holds all addresses of one machine.
        needed: u8,
    },
    /// A machine gets more load than it can take.
    #[error(
        "each of {hosts} hosts of {side} gets {rate} requests/sec, above its max_host_load of {limit}/sec"
    )]
    HostOverloaded {
        /// The side of the bench.
        side: &'static str,
        /// The number of machines.
        hosts: u64,
        /// The rate of one machine, rounded.
        rate: u64,
        /// The limit, rounded.
        limit: u64,
    },
}

/// Refuses more than [`MAX_AGENTS`] agents.
pub(crate) fn check_limit(role: BenchRole, count: u64) -> Result<(), SchemeError> {
    if count > MAX_AGENTS { Err(SchemeError::TooMany { role, count }) } else { Ok(()) }
}

/// Collects the settings a scheme needs, so that one message names all that are missing.
pub(crate) struct RequiredSettings {
    scheme: &'static str,
    purpose: String,
    missing: Vec<String>,
    wrong: Option<SchemeError>,
}

impl RequiredSettings {
    pub fn new(scheme: &'static str, role: BenchRole) -> Self {
        RequiredSettings::to(scheme, format!("compute the addresses of {role}"))
    }

    pub fn to(scheme: &'static str, purpose: String) -> Self {
        RequiredSettings { scheme, purpose, missing: Vec::new(), wrong: None }
    }

    /// A setting that must be present and positive. A missing or wrong one counts as 0 until
    /// [`RequiredSettings::check`] reports it.
    pub fn positive(&mut self, setting: &str, value: Option<f64>) -> f64 {
        match value {
            Some(value) if value > 0.0 && value.is_finite() => return value,
            Some(value) => {
                let wrong = SchemeError::NotPositive { setting: setting.to_owned(), value };
                self.wrong.get_or_insert(wrong);
            }
            None => self.missing.push(setting.to_owned()),
        }
        0.0
    }

    /// A whole number that must be present and positive.
    pub fn count(&mut self, setting: &str, value: Option<i64>) -> u64 {
        self.positive(setting, value.map(|n| n as f64)) as u64
    }

    /// A list that must not be empty.
    pub fn list<'a>(&mut self, setting: &str, list: &'a [AddrRange]) -> &'a [AddrRange] {
        if list.is_empty() {
            self.missing.push(setting.to_owned());
        }
        list
    }

    pub fn check(self) -> Result<(), SchemeError> {
        match self.wrong {
            _ if !self.missing.is_empty() => Err(SchemeError::Missing {
                scheme: self.scheme,
                purpose: self.purpose,
                missing: self.missing,
            }),
            Some(wrong) => Err(wrong),
            None => Ok(()),
        }
    }
}
