//! The interfaces of this host.

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};

use super::Netlink;
use crate::error::{Error, Result};

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its number.
    pub index: u32,
    /// Its name, for example `eth0`.
    pub name: String,
    /// Whether it is switched on.
    pub up: bool,
    /// Whether it is the loopback interface.
    pub loopback: bool,
    /// The largest packet in bytes.
    pub mtu: u32,
}

impl Interface {
    fn of(message: LinkMessage) -> Interface {
        let flags = message.header.flags;
        let mut interface = Interface {
            index: message.header.index,
            name: String::new(),
            up: flags.contains(LinkFlags::Up),
            loopback: flags.contains(LinkFlags::Loopback),
            mtu: 0,
        };
        for attribute in message.attributes {
            match attribute {
                LinkAttribute::IfName(name) => interface.name = name,
                LinkAttribute::Mtu(mtu) => interface.mtu = mtu,
                _ => {}
            }
        }
        interface
    }
}

impl Netlink {
    /// The interfaces of this host, in the order of their numbers.
    ///
    /// # Errors
    /// If the kernel refuses, or its answer cannot be read.
    pub fn interfaces(&mut self) -> Result<Vec<Interface>> {
        let request = RouteNetlinkMessage::GetLink(LinkMessage::default());
        let found = self.dump("reading the list of interfaces", &request)?;
        let mut interfaces: Vec<Interface> = found
            .into_iter()
            .filter_map(|entry| match entry {
                RouteNetlinkMessage::NewLink(link) => Some(Interface::of(link)),
                _ => None,
            })
            .collect();
        interfaces.sort_by_key(|interface| interface.index);
        Ok(interfaces)
    }

    /// The interface of a name. `lo0`, the name of the loopback interface in older documents, stands for `lo`.
    ///
    /// # Errors
    /// If there is none; the message lists those that exist.
    pub fn interface(&mut self, name: &str) -> Result<Interface> {
        let interfaces = self.interfaces()?;
        let found = interfaces.iter().find(|interface| interface.name == name);
        let loopback = || interfaces.iter().find(|interface| interface.loopback && name == "lo0");
        found.or_else(loopback).cloned().ok_or_else(|| Error::NoInterface {
            name: name.to_owned(),
            known: interfaces.into_iter().map(|interface| interface.name).collect(),
        })
    }
}
