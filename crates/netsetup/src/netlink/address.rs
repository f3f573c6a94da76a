//! The addresses of interfaces.

use std::collections::HashSet;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage, AddressScope,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::{Netlink, is_absent, system};
use crate::error::Result;
use crate::prefix::IpPrefix;

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InterfaceAddress {
    /// The number of the interface.
    pub interface: u32,
    /// The address and the prefix length of its network.
    pub prefix: IpPrefix,
    /// Whether it depends on an earlier address of the same network: the kernel removes it together with that one.
    pub secondary: bool,
    /// Whether it was set by hand or by a program, and not for a limited time.
    pub permanent: bool,
}

impl InterfaceAddress {
    fn of(message: &AddressMessage) -> Option<InterfaceAddress> {
        let (mut local, mut address) = (None, None);
        for attribute in &message.attributes {
            match attribute {
                // `Address` is the other end of a point-to-point link.
                AddressAttribute::Local(ip) => local = Some(*ip),
                AddressAttribute::Address(ip) => address = Some(*ip),
                _ => {}
            }
        }
        let header = &message.header;
        Some(InterfaceAddress {
            interface: header.index,
            prefix: IpPrefix { address: local.or(address)?, length: header.prefix_len },
            secondary: header.flags.contains(AddressHeaderFlags::Secondary),
            permanent: header.flags.contains(AddressHeaderFlags::Permanent),
        })
    }
}

impl Netlink {
    /// The addresses of all interfaces, in the order of the kernel.
    ///
    /// # Errors
    /// If the kernel refuses, or its answer cannot be read.
    pub fn addresses(&mut self) -> Result<Vec<InterfaceAddress>> {
        let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        let found = self.dump("reading the list of addresses", &request)?;
        let addresses = found.iter().filter_map(|entry| match entry {
            RouteNetlinkMessage::NewAddress(address) => InterfaceAddress::of(address),
            _ => None,
        });
        Ok(addresses.collect())
    }

    /// Adds addresses to the interface with a number. They can be used at once: the kernel does not ask the network
    /// first whether another host has them.
    ///
    /// # Errors
    /// If the kernel refuses an address, for example because the interface has it already. The others are added.
    pub(crate) fn add_addresses(&mut self, interface: u32, addresses: &[IpPrefix]) -> Result<()> {
        let requests =
            addresses.iter().map(|prefix| RouteNetlinkMessage::NewAddress(message(interface, *prefix)));
        let refused = self.change(NLM_F_CREATE | NLM_F_EXCL, requests);
        let refused = refused.map_err(|error| system("adding addresses", error))?;
        match refused.into_iter().next() {
            None => Ok(()),
            Some(first) => Err(system(format!("adding address {}", addresses[first.index]), first.error)),
        }
    }

    /// Removes addresses from the interface with a number. Addresses that are not there are no error.
    ///
    /// The kernel removes later IPv4 addresses of a network together with the first one, unless the interface has the
    /// setting `promote_secondaries`. Others than those that should go are added again.
    ///
    /// # Errors
    /// If the kernel refuses for another reason.
    pub(crate) fn remove_addresses(&mut self, interface: u32, addresses: &[IpPrefix]) -> Result<()> {
        let unwanted: HashSet<&IpPrefix> = addresses.iter().collect();
        let others = |netlink: &mut Netlink| -> Result<Vec<IpPrefix>> {
            let all = netlink.addresses()?.into_iter().filter(|found| found.interface == interface);
            let prefixes = all.map(|found| found.prefix);
            Ok(prefixes.filter(|found| found.address.is_ipv4() && !unwanted.contains(found)).collect())
        };
        let before = others(self)?;
        self.remove_addresses_only(interface, addresses)?;
        let after: HashSet<IpPrefix> = others(self)?.into_iter().collect();
        let lost: Vec<IpPrefix> = before.into_iter().filter(|prefix| !after.contains(prefix)).collect();
        if lost.is_empty() { Ok(()) } else { self.add_addresses(interface, &lost) }
    }

    fn remove_addresses_only(&mut self, interface: u32, addresses: &[IpPrefix]) -> Result<()> {
        let requests =
            addresses.iter().rev().map(|prefix| RouteNetlinkMessage::DelAddress(message(interface, *prefix)));
        let refused = self.change(0, requests).map_err(|error| system("removing addresses", error))?;
        match refused.into_iter().find(|refusal| !is_absent(&refusal.error)) {
            None => Ok(()),
            Some(first) => {
                let prefix = addresses[addresses.len() - 1 - first.index];
                Err(system(format!("removing address {prefix}"), first.error))
            }
        }
    }
}

fn message(interface: u32, prefix: IpPrefix) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.index = interface;
    message.header.prefix_len = prefix.length;
    message.header.scope =
        if prefix.address.is_loopback() { AddressScope::Host } else { AddressScope::Universe };
    message.attributes.push(AddressAttribute::Local(prefix.address));
    message.attributes.push(AddressAttribute::Address(prefix.address));
    message.header.family = match prefix.address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => {
            message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
            AddressFamily::Inet6
        }
    };
    message
}
