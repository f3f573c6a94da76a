//! Addresses and routes as recorded changes.

use std::collections::HashSet;

use crate::change::Change;
use crate::error::Result;
use crate::ledger::Changes;
use crate::netlink::{Netlink, Route};
use crate::prefix::IpPrefix;
use crate::record::RecordedChanges;

/// Addresses that one call adds to an interface at most: the kernel compares each new address with all others, and
/// routes to whole networks (AnyIP) have no such limit.
pub const MAX_INTERFACE_ADDRESSES: usize = 1 << 16;

impl Changes {
    /// Adds addresses to an interface, thousands of them in one batch. Addresses that the interface has already are
    /// left as they are and not recorded. Returns the number of those added.
    ///
    /// # Errors
    /// If there is no such interface, the change cannot be recorded, or the kernel refuses an address.
    pub fn add_addresses(&mut self, interface: &str, addresses: &[IpPrefix]) -> Result<usize> {
        let mut netlink = Netlink::open()?;
        let interface = netlink.interface(interface)?;
        let there: HashSet<_> = {
            let all = netlink.addresses()?.into_iter();
            all.filter(|found| found.interface == interface.index).map(|found| found.prefix.address).collect()
        };
        let mut seen = HashSet::new();
        let is_new = |prefix: &&IpPrefix| !there.contains(&prefix.address) && seen.insert(prefix.address);
        let new: Vec<IpPrefix> = addresses.iter().filter(is_new).copied().collect();
        if !new.is_empty() {
            let change = Change::Addresses { interface: interface.name, addresses: new.clone() };
            self.make(change, || netlink.add_addresses(interface.index, &new))?;
        }
        Ok(new.len())
    }

    /// Adds routes in one batch. Routes that are there already are left as they are and not recorded. Returns the number
    /// of those added.
    ///
    /// # Errors
    /// If an interface does not exist, the change cannot be recorded, or the kernel refuses a route, for example because
    /// there is another one to the same network.
    pub fn add_routes(&mut self, routes: &[Route]) -> Result<usize> {
        let mut netlink = Netlink::open()?;
        let mut there = netlink.routes()?;
        let mut new: Vec<Route> = Vec::new();
        for route in routes {
            if !there.iter().any(|known| route.is_served_by(known)) {
                there.push(route.clone());
                new.push(route.clone());
            }
        }
        if !new.is_empty() {
            self.make(Change::Routes { routes: new.clone() }, || netlink.add_routes(&new))?;
        }
        Ok(new.len())
    }
}

impl RecordedChanges {
    /// Undoes the part of the changes that adds some addresses to an interface, and returns how many those were. The rest
    /// stays as it is. Changes in use are left alone.
    ///
    /// # Errors
    /// If the kernel refuses, or the record cannot be written.
    pub fn remove_addresses(
        &mut self,
        interface: &str,
        unwanted: impl Fn(&IpPrefix) -> bool,
    ) -> Result<usize> {
        let mut removed: Vec<IpPrefix> = Vec::new();
        let mut left: Vec<Change> = Vec::new();
        for change in &self.changes {
            match change {
                Change::Addresses { interface: name, addresses } if name == interface => {
                    let (gone, stay): (Vec<IpPrefix>, Vec<IpPrefix>) =
                        addresses.iter().partition(|prefix| unwanted(prefix));
                    removed.extend(gone);
                    if !stay.is_empty() {
                        left.push(Change::Addresses { interface: name.clone(), addresses: stay });
                    }
                }
                other => left.push(other.clone()),
            }
        }
        let count = removed.len();
        if count > 0 {
            let change = Change::Addresses { interface: interface.to_owned(), addresses: removed };
            self.undo_in_part(&change, left)?;
        }
        Ok(count)
    }

    /// Undoes the part of the changes that adds some routes, and returns how many those were. The rest stays as it is.
    /// Changes in use are left alone.
    ///
    /// # Errors
    /// If the kernel refuses, or the record cannot be written.
    pub fn remove_routes(&mut self, unwanted: impl Fn(&Route) -> bool) -> Result<usize> {
        let mut removed: Vec<Route> = Vec::new();
        let mut left: Vec<Change> = Vec::new();
        for change in &self.changes {
            match change {
                Change::Routes { routes } => {
                    let (gone, stay): (Vec<Route>, Vec<Route>) =
                        routes.iter().cloned().partition(|route| unwanted(route));
                    removed.extend(gone);
                    if !stay.is_empty() {
                        left.push(Change::Routes { routes: stay });
                    }
                }
                other => left.push(other.clone()),
            }
        }
        let count = removed.len();
        if count > 0 {
            self.undo_in_part(&Change::Routes { routes: removed }, left)?;
        }
        Ok(count)
    }
}
