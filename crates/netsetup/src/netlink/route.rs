//! Routes: messages that add, remove and list them.

use std::fmt::{self, Display};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use serde::{Deserialize, Serialize};

use super::{Netlink, is_absent, system};
use crate::error::{Error, Result};
use crate::prefix::IpPrefix;

/// The table that holds what is delivered on this host.
const LOCAL_TABLE: u8 = 255;

/// What becomes of packets to a network.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RouteKind {
    /// They are sent to another host, or over an interface.
    Unicast {
        /// The host that forwards them; `None` if the network is directly behind the interface.
        gateway: Option<IpAddr>,
        /// The name of the interface; `None` if the address of the gateway says which.
        interface: Option<String>,
    },
    /// They are delivered on this host, whatever the address (AnyIP): one route stands for all addresses of the network.
    Local {
        /// The name of the interface.
        interface: String,
    },
}

/// A route: a network, and what becomes of packets to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Route {
    /// The network.
    pub network: IpPrefix,
    /// What becomes of packets to it.
    pub kind: RouteKind,
}

/// Writes the route as the arguments of `ip route add`.
impl Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            RouteKind::Local { interface } => write!(f, "local {} dev {interface}", self.network),
            RouteKind::Unicast { gateway, interface } => {
                write!(f, "{}", self.network)?;
                gateway.iter().try_for_each(|gateway| write!(f, " via {gateway}"))?;
                interface.iter().try_for_each(|interface| write!(f, " dev {interface}"))
            }
        }
    }
}

impl Netlink {
    /// The routes of the main table, and the local routes that the kernel did not make itself for the addresses of
    /// interfaces.
    ///
    /// # Errors
    /// If the kernel refuses, or its answer cannot be read.
    pub fn routes(&mut self) -> Result<Vec<Route>> {
        let interfaces = self.interfaces()?;
        let name = |index: u32| {
            interfaces.iter().find(|interface| interface.index == index).map(|found| found.name.clone())
        };
        let request = RouteNetlinkMessage::GetRoute(RouteMessage::default());
        let found = self.dump("reading the list of routes", &request)?;
        let routes = found.iter().filter_map(|entry| match entry {
            RouteNetlinkMessage::NewRoute(route) => read(route, &name),
            _ => None,
        });
        Ok(routes.collect())
    }

    /// Adds routes.
    ///
    /// # Errors
    /// If an interface does not exist, or the kernel refuses a route, for example because it has another one for this
    /// network or because no interface leads to the gateway. The others are added.
    pub(crate) fn add_routes(&mut self, routes: &[Route]) -> Result<()> {
        let messages = self.messages(routes)?;
        let requests = messages.into_iter().map(RouteNetlinkMessage::NewRoute);
        let refused = self.change(NLM_F_CREATE | NLM_F_EXCL, requests);
        let refused = refused.map_err(|error| system("adding routes", error))?;
        match refused.into_iter().next() {
            None => Ok(()),
            Some(first) => Err(system(format!("adding route {}", routes[first.index]), first.error)),
        }
    }

    /// Removes routes. Routes that are not there are no error.
    ///
    /// # Errors
    /// If the kernel refuses for another reason.
    pub(crate) fn remove_routes(&mut self, routes: &[Route]) -> Result<()> {
        let there: Vec<Route> = {
            let interfaces = self.interfaces()?;
            let exists = |name: &String| interfaces.iter().any(|interface| interface.name == *name);
            routes.iter().filter(|route| route.interface().is_none_or(exists)).cloned().collect()
        };
        let messages = self.messages(&there)?;
        let refused = self.change(0, messages.into_iter().map(RouteNetlinkMessage::DelRoute));
        let refused = refused.map_err(|error| system("removing routes", error))?;
        match refused.into_iter().find(|refusal| !is_absent(&refusal.error)) {
            None => Ok(()),
            Some(first) => Err(system(format!("removing route {}", there[first.index]), first.error)),
        }
    }

    fn messages(&mut self, routes: &[Route]) -> Result<Vec<RouteMessage>> {
        let interfaces = self.interfaces()?;
        let index = |name: &str| interfaces.iter().find(|interface| interface.name == name);
        let missing = |name: &str| Error::NoInterface {
            name: name.to_owned(),
            known: interfaces.iter().map(|interface| interface.name.clone()).collect(),
        };
        routes
            .iter()
            .map(|route| {
                let interface = route.interface();
                let found = interface.map(|name| index(name).ok_or_else(|| missing(name))).transpose()?;
                Ok(message(route, found.map(|interface| interface.index)))
            })
            .collect()
    }
}

impl Route {
    /// Whether packets of this route take the same way with another route to the same network.
    pub(crate) fn is_served_by(&self, other: &Route) -> bool {
        let agree = |mine: Option<&String>, theirs: Option<&String>| mine.is_none() || mine == theirs;
        let same = match (&self.kind, &other.kind) {
            (RouteKind::Local { .. }, RouteKind::Local { .. }) => true,
            (RouteKind::Unicast { gateway, .. }, RouteKind::Unicast { gateway: known, .. }) => {
                gateway == known
            }
            _ => false,
        };
        same && self.network.network() == other.network.network()
            && agree(self.interface(), other.interface())
    }

    /// The name of the interface, if the route has one.
    pub fn interface(&self) -> Option<&String> {
        match &self.kind {
            RouteKind::Unicast { interface, .. } => interface.as_ref(),
            RouteKind::Local { interface } => Some(interface),
        }
    }
}

fn message(route: &Route, interface: Option<u32>) -> RouteMessage {
    let mut message = RouteMessage::default();
    let header = &mut message.header;
    header.address_family = match route.network.address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    };
    header.destination_prefix_length = route.network.length;
    header.protocol = RouteProtocol::Static;
    let mut attributes = vec![RouteAttribute::Destination(route.network.network().address.into())];
    match &route.kind {
        RouteKind::Local { .. } => {
            (header.table, header.scope, header.kind) = (LOCAL_TABLE, RouteScope::Host, RouteType::Local);
        }
        RouteKind::Unicast { gateway, .. } => {
            header.table = RouteHeader::RT_TABLE_MAIN;
            header.kind = RouteType::Unicast;
            header.scope = if gateway.is_some() { RouteScope::Universe } else { RouteScope::Link };
            attributes.extend(gateway.map(|gateway| RouteAttribute::Gateway(gateway.into())));
        }
    }
    attributes.extend(interface.map(RouteAttribute::Oif));
    message.attributes = attributes;
    message
}

fn read(message: &RouteMessage, name: &impl Fn(u32) -> Option<String>) -> Option<Route> {
    let header = &message.header;
    let (mut network, mut gateway, mut interface) = (None, None, None);
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(address) => network = ip(address),
            RouteAttribute::Gateway(address) => gateway = ip(address),
            RouteAttribute::Oif(index) => interface = name(*index),
            _ => {}
        }
    }
    // The default route names no network.
    let anything = match header.address_family {
        AddressFamily::Inet => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        AddressFamily::Inet6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => return None,
    };
    let network = IpPrefix { address: network.unwrap_or(anything), length: header.destination_prefix_length };
    let kind = match (header.table, header.kind) {
        (RouteHeader::RT_TABLE_MAIN, RouteType::Unicast) => RouteKind::Unicast { gateway, interface },
        // The kernel keeps a local route for each address of an interface.
        (LOCAL_TABLE, RouteType::Local) if header.protocol != RouteProtocol::Kernel => {
            RouteKind::Local { interface: interface? }
        }
        _ => return None,
    };
    Some(Route { network, kind })
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(ip) => Some(IpAddr::V4(*ip)),
        RouteAddress::Inet6(ip) => Some(IpAddr::V6(*ip)),
        _ => None,
    }
}
