//! Tables of names and addresses.

use std::cell::Cell;
use std::net::IpAddr;

use polygraph_addr::{Addr, Host, PairError, pair};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::name::{BadName, DomainName};
use crate::query::QueryType;

/// The names for which a server has answers, and the zones in which no other names exist.
///
/// The server also answers for names outside of all zones; each of them is its own zone.
#[derive(Debug, Default)]
pub struct Zone {
    names: FxHashMap<DomainName, Entry>,
    /// The entries for all names below a name.
    wildcards: FxHashMap<DomainName, Entry>,
    /// The parents of names: they exist without addresses (RFC 8020).
    inner: FxHashSet<DomainName>,
    zones: FxHashSet<DomainName>,
}

/// The addresses of a name by type.
#[derive(Debug, Default)]
struct Entry {
    v4: Rotation,
    v6: Rotation,
}

/// Addresses whose order rotates.
#[derive(Debug, Default)]
struct Rotation {
    addresses: Vec<IpAddr>,
    next: Cell<usize>,
}

/// The result of a lookup in the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ZoneAnswer {
    /// The addresses of the name, at least one; each reply starts with another one.
    Addresses(Vec<IpAddr>),
    /// The name exists in this zone, but has no address of this type.
    NoData(DomainName),
    /// This zone has no such name.
    NoName(DomainName),
    /// The name is in none of the zones.
    Foreign,
}

/// Why the names of an address map cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// Names and addresses cannot be paired.
    #[error(transparent)]
    Pairs(#[from] PairError),
    /// A name is invalid.
    #[error(transparent)]
    Name(#[from] BadName),
    /// A name where an address is required.
    #[error("{0} is a name; a name server needs its IP address")]
    NameAsAddress(Host),
}

impl Zone {
    /// Adds the names of an address map (docs/reference/language.md, "Address maps") and its zone, if it has one. IP
    /// addresses among the names need no DNS and are skipped.
    ///
    /// # Errors
    /// If names and addresses cannot be paired, or one of them is invalid.
    pub fn add_map(
        &mut self,
        zone: Option<&str>,
        names: &[Addr],
        addresses: &[Addr],
    ) -> Result<(), MapError> {
        let mut ips = Vec::new();
        for (name, behind) in pair(names, addresses)? {
            let Host::Name(name) = &name.host else { continue };
            ips.clear();
            for address in behind {
                let ip = address.host.ip().ok_or_else(|| MapError::NameAsAddress(address.host.clone()))?;
                ips.push(ip);
            }
            self.add(name, &ips)?;
        }
        zone.map_or(Ok(()), |zone| self.add_zone(zone)).map_err(MapError::from)
    }

    /// Declares a zone: other names below `name` do not exist. `.` is the root zone, outside of which there are no
    /// names.
    ///
    /// # Errors
    /// If `name` is not a domain name.
    pub fn add_zone(&mut self, name: &str) -> Result<(), BadName> {
        // A zone may be written as `.bench.tst`, like dynamic names.
        let name = if name == "." { name } else { name.trim_start_matches('.') };
        self.zones.insert(DomainName::parse(name)?);
        Ok(())
    }

    /// Adds addresses to a name. `*.suffix` and `.suffix` are wildcards for all names below `suffix` that neither
    /// exist nor have an existing parent below `suffix` (RFC 4592).
    ///
    /// # Errors
    /// If `name` is not a domain name.
    pub fn add(&mut self, name: &str, addresses: &[IpAddr]) -> Result<(), BadName> {
        let suffix =
            name.strip_prefix("*.").or_else(|| name.strip_prefix('.').filter(|rest| !rest.is_empty()));
        let owner = DomainName::parse(suffix.unwrap_or(name))?;
        let above = if suffix.is_some() { 0 } else { 1 };
        self.inner.extend(owner.suffixes().skip(above).map(DomainName::of_suffix));
        let table = if suffix.is_some() { &mut self.wildcards } else { &mut self.names };
        let entry = table.entry(owner).or_default();
        for &address in addresses {
            let of_type = if address.is_ipv4() { &mut entry.v4 } else { &mut entry.v6 };
            if !of_type.addresses.contains(&address) {
                of_type.addresses.push(address);
            }
        }
        Ok(())
    }

    /// Number of names, including wildcards.
    pub fn len(&self) -> usize {
        self.names.len() + self.wildcards.len()
    }

    /// True if there are no names.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Looks up a name. `kind` is the type of addresses; with `None`, a name that exists has no data.
    pub fn lookup(&self, name: &DomainName, kind: Option<QueryType>) -> ZoneAnswer {
        let Some(zone) = self.zone_of(name) else { return ZoneAnswer::Foreign };
        let entry = match self.names.get(name) {
            Some(entry) => entry,
            None if self.inner.contains(name) || self.zones.contains(name) => {
                return ZoneAnswer::NoData(DomainName::of_suffix(zone));
            }
            None => match self.wildcard(name) {
                Some(entry) => entry,
                None => return ZoneAnswer::NoName(DomainName::of_suffix(zone)),
            },
        };
        let addresses = match kind {
            Some(QueryType::A) => entry.v4.turn(),
            Some(QueryType::Aaaa) => entry.v6.turn(),
            None => Vec::new(),
        };
        match addresses.is_empty() {
            true => ZoneAnswer::NoData(DomainName::of_suffix(zone)),
            false => ZoneAnswer::Addresses(addresses),
        }
    }

    /// The zone of a name: the nearest declared one, otherwise the farthest parent with an entry.
    fn zone_of<'a>(&self, name: &'a DomainName) -> Option<&'a [u8]> {
        let declared = name.suffixes().find(|suffix| self.zones.contains(*suffix));
        declared.or_else(|| {
            let has_entry =
                |suffix: &&[u8]| self.names.contains_key(*suffix) || self.wildcards.contains_key(*suffix);
            name.suffixes().filter(has_entry).last()
        })
    }

    /// The wildcard for a name that does not exist: that of its nearest existing parent.
    fn wildcard(&self, name: &DomainName) -> Option<&Entry> {
        let exists = |suffix: &&[u8]| self.names.contains_key(*suffix) || self.inner.contains(*suffix);
        name.suffixes().skip(1).find(exists).and_then(|encloser| self.wildcards.get(encloser))
    }
}

impl Rotation {
    fn turn(&self) -> Vec<IpAddr> {
        let mut addresses = self.addresses.clone();
        if !addresses.is_empty() {
            let first = self.next.get() % addresses.len();
            addresses.rotate_left(first);
            self.next.set(first + 1);
        }
        addresses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone() -> Zone {
        let mut zone = Zone::default();
        zone.add_zone("bench.tst").unwrap();
        let mut add = |name: &str, addresses: &[&str]| {
            let addresses: Vec<IpAddr> = addresses.iter().map(|a| a.parse().unwrap()).collect();
            zone.add(name, &addresses).unwrap();
        };
        add("w1.h2.bench.tst", &["10.0.0.1"]);
        add("six.bench.tst", &["::1"]);
        add("*.dyn.bench.tst", &["10.0.0.2"]);
        add("fixed.dyn.bench.tst", &["10.0.0.3"]);
        add(".All.Foreign.Org", &["10.0.0.4"]);
        add("alone.example", &["10.0.0.5"]);
        zone
    }

    #[test]
    fn what_is_known() {
        let zone = zone();
        let check = |name: &str, expected: &str| {
            let shown = match zone.lookup(&DomainName::parse(name).unwrap(), Some(QueryType::A)) {
                ZoneAnswer::Addresses(addresses) => addresses.iter().map(|a| a.to_string()).collect(),
                ZoneAnswer::NoData(zone) => format!("no data in {zone}"),
                ZoneAnswer::NoName(zone) => format!("no name in {zone}"),
                ZoneAnswer::Foreign => "foreign".to_owned(),
            };
            assert_eq!(shown, expected, "{name}");
        };
        check("w1.h2.bench.tst", "10.0.0.1");
        check("W1.H2.Bench.Tst.", "10.0.0.1");
        check("w2.h2.bench.tst", "no name in bench.tst");
        check("x.w1.h2.bench.tst", "no name in bench.tst");
        check("h2.bench.tst", "no data in bench.tst");
        check("bench.tst", "no data in bench.tst");
        check("six.bench.tst", "no data in bench.tst");
        check("w0000000000000001.dyn.bench.tst", "10.0.0.2");
        check("a.b.dyn.bench.tst", "10.0.0.2");
        check("dyn.bench.tst", "no data in bench.tst");
        check("fixed.dyn.bench.tst", "10.0.0.3");
        // What exists hides the pattern, and so does what is above it.
        check("below.fixed.dyn.bench.tst", "no name in bench.tst");
        check("x.all.foreign.org", "10.0.0.4");
        check("foreign.org", "foreign");
        check("alone.example", "10.0.0.5");
        check("below.alone.example", "no name in alone.example");
        check("example", "foreign");
        check("tst", "foreign");
        check(".", "foreign");
    }

    #[test]
    fn names_of_address_maps() {
        let read = |text: &str| {
            polygraph_addr::expand(&polygraph_addr::AddrRange::parse_list(text).unwrap(), 100).unwrap()
        };
        let mut zone = Zone::default();
        zone.add_map(Some(".bench.tst"), &read("w[1-3].bench.tst:80"), &read("10.0.0.1-2:80")).unwrap();
        zone.add_map(None, &read("all.example:80"), &read("10.0.1.1-3:80")).unwrap();
        zone.add_map(None, &read("10.0.2.1:80"), &read("10.0.2.1:80")).unwrap();
        assert_eq!(zone.len(), 4);
        let v4 = |name: &str| zone.lookup(&DomainName::parse(name).unwrap(), Some(QueryType::A));
        let addresses = |list: &[[u8; 4]]| ZoneAnswer::Addresses(list.iter().map(|&ip| ip.into()).collect());
        assert_eq!(v4("w2.bench.tst"), addresses(&[[10, 0, 0, 2]]));
        assert_eq!(v4("w3.bench.tst"), addresses(&[[10, 0, 0, 1]]));
        assert_eq!(v4("all.example"), addresses(&[[10, 0, 1, 1], [10, 0, 1, 2], [10, 0, 1, 3]]));
        assert_eq!(v4("w4.bench.tst"), ZoneAnswer::NoName(DomainName::parse("bench.tst").unwrap()));
        let wrong = zone.add_map(None, &read("a.b"), &read("c.d"));
        assert!(matches!(wrong, Err(MapError::NameAsAddress(_))), "{wrong:?}");
        let wrong = zone.add_map(None, &read("a[1-2].b"), &read("10.0.0.1-3"));
        assert!(matches!(wrong, Err(MapError::Pairs(_))), "{wrong:?}");
    }

    #[test]
    fn the_root_zone_leaves_nothing_foreign() {
        let mut zone = zone();
        zone.add_zone(".").unwrap();
        let name = DomainName::parse("example").unwrap();
        assert_eq!(
            zone.lookup(&name, Some(QueryType::A)),
            ZoneAnswer::NoData(DomainName::parse(".").unwrap())
        );
        let name = DomainName::parse("nothing.here").unwrap();
        assert_eq!(
            zone.lookup(&name, Some(QueryType::A)),
            ZoneAnswer::NoName(DomainName::parse(".").unwrap())
        );
    }

    #[test]
    fn every_address_has_its_turn_and_types_do_not_mix() {
        let mut zone = Zone::default();
        let addresses: Vec<IpAddr> = ["10.0.0.1", "::1", "10.0.0.2", "10.0.0.3", "10.0.0.1"]
            .map(|address| address.parse().unwrap())
            .into();
        zone.add("a.b", &addresses).unwrap();
        let name = DomainName::parse("a.b").unwrap();
        let mut firsts = Vec::new();
        for _ in 0..6 {
            let ZoneAnswer::Addresses(v4) = zone.lookup(&name, Some(QueryType::A)) else { panic!() };
            let ZoneAnswer::Addresses(v6) = zone.lookup(&name, Some(QueryType::Aaaa)) else { panic!() };
            assert_eq!((v4.len(), v6.len()), (3, 1));
            firsts.push(v4[0].to_string());
        }
        assert_eq!(firsts, ["10.0.0.1", "10.0.0.2", "10.0.0.3"].repeat(2));
    }
}
