//! `polygraph aka`: addresses of interfaces that stay after the command.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};

use clap::Parser;
use polygraph_addr::{Addr, AddrRange, compact, count, join};
use polygraph_netsetup::{
    Change, IpPrefix, Ledger, MAX_INTERFACE_ADDRESSES, Namespace, Netlink, RecordedChanges, State,
};
use polygraph_runner::Failure;
use polygraph_text as text;

use super::net::{done, failure};
use crate::exit::Done;
use crate::output;

/// What the changes were made for, in the ledger: this word and the interface.
const PURPOSE: &str = "aka ";

/// Options of `aka`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Addresses that `aka` added earlier and that are not in the new ranges are removed, unless --keep is given; without ranges, all of them \
        are. Other addresses of the interface are never touched. A range without a prefix length means /32, or /128 for IPv6.\nExamples:\n  \
        polygraph aka eth0 10.16.1-4.1-209               836 addresses\n  \
        polygraph aka lo 10.101.0-3.1-250/22 [fd00:101::1-ff]\n  \
        polygraph aka eth0 \"$(polygraph pmix3-ips 16 1000 clt1)\"\n  \
        polygraph aka eth0 --list\n  \
        polygraph aka eth0 10.16.4.1-209 --remove"
)]
pub struct Args {
    /// The interface, then ranges of addresses. A range may name its interface itself: eth0::10.16.1.1-250/16
    #[arg(value_name = "INTERFACE|RANGE")]
    words: Vec<String>,
    /// The interface, instead of the first word
    #[arg(long = "if", value_name = "INTERFACE")]
    interface: Option<String>,
    /// More ranges, separated by commas
    #[arg(long, value_name = "RANGES")]
    aliases: Option<String>,
    /// Show the addresses of the interface, or of all interfaces
    #[arg(long, conflicts_with_all = ["remove", "keep", "aliases"])]
    list: bool,
    /// Remove these addresses, as far as `aka` added them; without ranges all that it added
    #[arg(long, conflicts_with = "keep")]
    remove: bool,
    /// Keep the addresses that `aka` added earlier
    #[arg(long)]
    keep: bool,
}

/// The addresses that an interface should have.
#[derive(Debug, PartialEq, Eq)]
struct Aliases {
    interface: String,
    addresses: Vec<IpPrefix>,
}

/// Adds, removes or shows addresses.
pub fn run(args: &Args) -> Done {
    if args.list {
        let (interface, ranges) = args.split()?;
        if let Some(range) = ranges.first() {
            return Err(Failure::usage(format!("--list shows whole interfaces: leave out {range}")));
        }
        output::print(&list(interface.as_deref())?);
        return done();
    }
    let wanted = args.wanted()?;
    let ledger = Ledger::of_system().map_err(failure)?;
    // What a killed process left behind may be in the way.
    ledger.undo_abandoned().map_err(failure)?;
    for aliases in &wanted {
        let name = Netlink::open().and_then(|mut netlink| netlink.interface(&aliases.interface));
        let aliases =
            Aliases { interface: name.map_err(failure)?.name, addresses: aliases.addresses.clone() };
        let text = if args.remove { remove(&ledger, &aliases)? } else { set(&ledger, &aliases, args.keep)? };
        output::print(&text);
    }
    done()
}

impl Args {
    /// The interface, if there is one, and the words for ranges.
    fn split(&self) -> Result<(Option<String>, Vec<String>), Failure> {
        let mut words: Vec<String> = self.words.clone();
        let is_interface = |word: &String| {
            !word.starts_with(|c: char| c.is_ascii_digit() || c == '[') && !word.contains("::")
        };
        let first = if words.first().is_some_and(is_interface) { Some(words.remove(0)) } else { None };
        words.extend(self.aliases.clone());
        match (&self.interface, first) {
            (Some(given), Some(first)) if *given != first => {
                Err(Failure::usage(format!("two interfaces are named, {given} and {first}")))
            }
            (given, first) => Ok((given.clone().or(first), words)),
        }
    }

    /// The addresses of each interface, in the order of the command line.
    fn wanted(&self) -> Result<Vec<Aliases>, Failure> {
        let (interface, words) = self.split()?;
        let mut ranges: Vec<AddrRange> = Vec::new();
        for word in &words {
            ranges.extend(AddrRange::parse_list(word).map_err(Failure::usage)?);
        }
        let total = count(&ranges);
        if total > MAX_INTERFACE_ADDRESSES as u64 {
            return Err(Failure::usage(format!(
                "these are {total} addresses, and an interface is given {MAX_INTERFACE_ADDRESSES} at most: let a whole network be local instead \
                 (`ip route add local NETWORK dev lo`, or --addresses anyip of `client`, `server` and `run`)"
            )));
        }
        let mut all: Vec<Aliases> = Vec::new();
        for range in &ranges {
            let name = match (&interface, &range.interface) {
                (Some(given), Some(own)) if **own != **given => {
                    return Err(Failure::usage(format!("{range} is for another interface than {given}")));
                }
                (Some(name), _) => name.clone(),
                (None, Some(own)) => own.to_string(),
                (None, None) => return Err(missing_interface()),
            };
            let addresses = range.iter().map(|addr| alias(&addr)).collect::<Result<Vec<_>, _>>()?;
            match all.iter_mut().find(|aliases| aliases.interface == name) {
                Some(aliases) => aliases.addresses.extend(addresses),
                None => all.push(Aliases { interface: name, addresses }),
            }
        }
        if all.is_empty() {
            all.push(Aliases { interface: interface.ok_or_else(missing_interface)?, addresses: Vec::new() });
        }
        Ok(all)
    }
}

fn missing_interface() -> Failure {
    Failure::usage(
        "name the interface that gets the addresses, for example: polygraph aka eth0 10.16.1-4.1-209",
    )
}

/// An address as an interface has it.
fn alias(addr: &Addr) -> Result<IpPrefix, Failure> {
    let refused = |why: &str| Err(Failure::usage(format!("{addr}: {why}")));
    let Some(ip) = addr.host.ip() else {
        return refused("an interface has IP addresses, and this is a name");
    };
    if addr.port.is_some() {
        return refused("addresses of interfaces have no port: leave it out");
    }
    if ip.is_unspecified() || ip.is_multicast() || ip == IpAddr::V4(Ipv4Addr::BROADCAST) {
        return refused("no host can have this address");
    }
    let host = IpPrefix::host(ip);
    Ok(IpPrefix { length: addr.subnet.unwrap_or(host.length), ..host })
}

/// Gives an interface addresses. Others that `aka` added earlier go, unless they are kept.
fn set(ledger: &Ledger, wanted: &Aliases, keep: bool) -> Result<String, Failure> {
    let interface = &wanted.interface;
    let new: HashSet<IpPrefix> = wanted.addresses.iter().copied().collect();
    let removed = if keep { 0 } else { take_back(ledger, interface, |prefix| !new.contains(prefix))? };
    let mut changes = ledger.begin(&format!("{PURPOSE}{interface}")).map_err(failure)?;
    let added = changes.add_addresses(interface, &wanted.addresses).map_err(failure)?;
    if added > 0 {
        changes.keep().map_err(failure)?;
    }
    let mut parts = Vec::new();
    if removed > 0 || wanted.addresses.is_empty() {
        parts.push(format!("{} removed", addresses(removed)));
    }
    if !wanted.addresses.is_empty() {
        parts.push(format!("{} added", addresses(added)));
    }
    if new.len() > added {
        parts.push(format!("{} there already", addresses(new.len() - added)));
    }
    Ok(format!("{interface}: {}\n", parts.join(", ")))
}

/// Removes addresses that `aka` added; no addresses stand for all of them.
fn remove(ledger: &Ledger, unwanted: &Aliases) -> Result<String, Failure> {
    let interface = &unwanted.interface;
    let named: HashSet<_> = unwanted.addresses.iter().map(|prefix| prefix.address).collect();
    let is_unwanted = |prefix: &IpPrefix| named.is_empty() || named.contains(&prefix.address);
    let removed = take_back(ledger, interface, is_unwanted)?;
    let mut text = format!("{interface}: {} removed\n", addresses(removed));
    let there = present(interface)?.into_iter().filter(|prefix| named.contains(&prefix.address)).count();
    if there > 0 {
        let _ = writeln!(
            text,
            "{interface}: {} stay, because `aka` did not add them (`ip address del` removes them)",
            addresses(there)
        );
    }
    Ok(text)
}

/// Removes addresses from what `aka` added to an interface of this network namespace, and returns their number.
fn take_back(
    ledger: &Ledger,
    interface: &str,
    unwanted: impl Fn(&IpPrefix) -> bool,
) -> Result<usize, Failure> {
    let mut removed = 0;
    for mut record in records(ledger)? {
        removed += record.remove_addresses(interface, &unwanted).map_err(failure)?;
    }
    Ok(removed)
}

/// What `aka` added in this network namespace.
fn records(ledger: &Ledger) -> Result<Vec<RecordedChanges>, Failure> {
    let here = Namespace::current().map_err(failure)?;
    let mut records = ledger.records().map_err(failure)?;
    records.retain(|record| {
        record.purpose.starts_with(PURPOSE) && record.state == State::Kept && record.namespace == here
    });
    Ok(records)
}

/// The addresses of an interface.
fn present(interface: &str) -> Result<Vec<IpPrefix>, Failure> {
    let mut netlink = Netlink::open().map_err(failure)?;
    let index = netlink.interface(interface).map_err(failure)?.index;
    let all = netlink.addresses().map_err(failure)?;
    Ok(all.into_iter().filter(|found| found.interface == index).map(|found| found.prefix).collect())
}

/// The addresses of an interface or of all, those that `aka` added apart.
fn list(interface: Option<&str>) -> Result<String, Failure> {
    let mut netlink = Netlink::open().map_err(failure)?;
    let shown = match interface {
        Some(name) => vec![netlink.interface(name).map_err(failure)?],
        None => netlink.interfaces().map_err(failure)?,
    };
    // Others than root cannot read what was added.
    let records = Ledger::of_system().ok().map_or(Ok(Vec::new()), |ledger| records(&ledger))?;
    let mut text = String::new();
    for interface in shown {
        let added: HashSet<IpPrefix> = records
            .iter()
            .flat_map(|record| &record.changes)
            .filter_map(|change| match change {
                Change::Addresses { interface: name, addresses } if *name == interface.name => {
                    Some(addresses)
                }
                _ => None,
            })
            .flatten()
            .copied()
            .collect();
        // The kernel has its own order.
        let mut all = present(&interface.name)?;
        all.sort_unstable();
        let (ours, others): (Vec<IpPrefix>, Vec<IpPrefix>) =
            all.into_iter().partition(|prefix| added.contains(prefix));
        for (label, prefixes) in [("", &others), (" added by aka", &ours)] {
            if !prefixes.is_empty() {
                let number = if label.is_empty() { String::new() } else { format!(" ({})", prefixes.len()) };
                let _ = writeln!(text, "{}{label}: {}{number}", interface.name, ranges(prefixes));
            }
        }
        if ours.is_empty() && others.is_empty() {
            let _ = writeln!(text, "{}: no addresses", interface.name);
        }
    }
    Ok(text)
}

/// Addresses as ranges.
fn ranges(prefixes: &[IpPrefix]) -> String {
    let addrs = prefixes.iter().map(|prefix| Addr { subnet: Some(prefix.length), ..prefix.address.into() });
    join(&compact(addrs), ", ")
}

fn addresses(number: usize) -> String {
    text::counted(number as u64, "address")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(line: &str) -> Result<Vec<(String, String)>, String> {
        let args =
            Args::try_parse_from(format!("aka {line}").split_whitespace()).map_err(|e| e.to_string())?;
        let found = args.wanted().map_err(|failure| failure.to_string())?;
        Ok(found.into_iter().map(|aliases| (aliases.interface, ranges(&aliases.addresses))).collect())
    }

    #[test]
    fn interfaces_and_ranges_as_the_original_reads_them() {
        for (line, expected) in [
            ("eth0 10.16.1-4.1-209", vec![("eth0", "10.16.1-4.1-209/32")]),
            ("eth0 10.16.1-4.1-250/22", vec![("eth0", "10.16.1-4.1-250/22")]),
            ("--if eth0 10.16.1.1 10.16.1.2", vec![("eth0", "10.16.1.1-2/32")]),
            ("eth0 --aliases 10.16.1.1,10.16.1.2", vec![("eth0", "10.16.1.1-2/32")]),
            ("eth0 10.1.0.1;10.2.0.1", vec![("eth0", "10.1-2.0.1/32")]),
            ("lo [fd00::1-3]", vec![("lo", "[fd00::1-3]/128")]),
            (
                "lo0::10.101.0.1-2/22 eth0::10.1.0.1",
                vec![("lo0", "10.101.0.1-2/22"), ("eth0", "10.1.0.1/32")],
            ),
            ("fxp0", vec![("fxp0", "")]),
        ] {
            let expected: Vec<(String, String)> =
                expected.into_iter().map(|(name, ranges)| (name.to_owned(), ranges.to_owned())).collect();
            assert_eq!(wanted(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn wrong_ranges_are_refused_with_the_reason() {
        for (line, part) in [
            ("", "name the interface"),
            ("10.16.1.1", "name the interface"),
            ("--if eth0 eth1 10.16.1.1", "two interfaces"),
            ("eth0 eth1::10.16.1.1", "for another interface than eth0"),
            ("eth0 10.16.1.1:80", "no port"),
            ("eth0 w1.bench.tst", "this is a name"),
            ("eth0 10.16.1.300", "300"),
            ("eth0 10.16.9-1.1", "9-1"),
            ("eth0 224.0.0.1", "no host can have this address"),
            ("eth0 255.255.255.255", "no host can have this address"),
            ("eth0 0.0.0.0", "no host can have this address"),
            ("eth0 10.0-3.0-255.0-255", "--addresses anyip"),
        ] {
            let error = wanted(line).unwrap_err();
            assert!(error.contains(part), "{line}: {error}");
        }
    }
}
