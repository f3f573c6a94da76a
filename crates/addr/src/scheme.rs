//! Address schemes: rules that give every agent of a bench an address.

mod generation3;
mod generation4;
mod spread;

use crate::{Allocation, BenchRole, BenchSpec, SchemeError};

/// An address scheme. `agents_per_addr` is `None` where the user left it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddrScheme {
    /// Generation 3: whole third octets per machine, taken from a mask.
    PolyMix3,
    /// Generation 4 with servers in a separate address space.
    PolyMix4 {
        /// Agents that share one address.
        agents_per_addr: Option<i64>,
    },
    /// Generation 4 with the real server machines as servers.
    WebAxe4 {
        /// Agents that share one address.
        agents_per_addr: Option<i64>,
    },
    /// As WebAxe-4, without proxies.
    SrvLb4 {
        /// Agents that share one address.
        agents_per_addr: Option<i64>,
    },
    /// All configured machines evenly, instead of filling one after the other.
    Spread {
        /// Agents that share one address.
        agents_per_addr: Option<i64>,
    },
}

impl AddrScheme {
    /// The PGL type of the scheme.
    pub fn name(self) -> &'static str {
        match self {
            AddrScheme::PolyMix3 => "PolyMix3As",
            AddrScheme::PolyMix4 { .. } => "PolyMix4As",
            AddrScheme::WebAxe4 { .. } => "WebAxe4As",
            AddrScheme::SrvLb4 { .. } => "SrvLb4As",
            AddrScheme::Spread { .. } => "SpreadAs",
        }
    }

    /// Distributes agents of one role over addresses and machines.
    ///
    /// # Errors
    /// If settings are missing or wrong, addresses do not suffice, or the scheme has no proxies.
    pub fn allocate(self, role: BenchRole, bench: &BenchSpec) -> Result<Allocation, SchemeError> {
        let none = Err(SchemeError::NoProxies { scheme: self.name() });
        match (self, role) {
            (
                AddrScheme::PolyMix3 | AddrScheme::Spread { .. } | AddrScheme::SrvLb4 { .. },
                BenchRole::Proxies,
            ) => none,
            (AddrScheme::PolyMix3, _) => generation3::allocate(role, bench),
            (AddrScheme::Spread { agents_per_addr }, _) => spread::allocate(role, bench, agents_per_addr),
            (AddrScheme::PolyMix4 { agents_per_addr }, BenchRole::Servers) => {
                generation4::polymix4_servers(self.name(), bench, agents_per_addr)
            }
            (AddrScheme::WebAxe4 { .. } | AddrScheme::SrvLb4 { .. }, BenchRole::Servers) => {
                generation4::real_servers(self.name(), bench)
            }
            (
                AddrScheme::PolyMix4 { agents_per_addr }
                | AddrScheme::WebAxe4 { agents_per_addr }
                | AddrScheme::SrvLb4 { agents_per_addr },
                _,
            ) => generation4::agents(self.name(), role, bench, agents_per_addr),
        }
    }
}
