//! Readers of the text formats of `/proc`, `/sys` and tools. Whatever they do not understand they leave out.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};

/// The number behind a name in lines like `MemAvailable:   23994988 kB`.
pub fn named_number(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The number behind a word in the line of a protocol: `TCP: inuse 1 orphan 0 tw 2495` has 2495 behind `tw`.
pub fn socket_count(text: &str, protocol: &str, word: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(protocol)?.strip_prefix(':'))?;
    let mut words = line.split_whitespace();
    words.find(|found| *found == word)?;
    words.next()?.parse().ok()
}

/// Packets that all processors dropped, from `/proc/net/softnet_stat`.
pub fn softnet_drops(text: &str) -> u64 {
    let of_line = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
    text.lines().filter_map(of_line).fold(0, u64::saturating_add)
}

/// Local ports from `low` to `high` that have a connection in TIME_WAIT, from `/proc/net/tcp` or `/proc/net/tcp6`.
pub fn time_wait_ports(text: &str, (low, high): (u16, u16)) -> BTreeSet<u16> {
    let port = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let (local, state) = (words.next()?, words.nth(1)?);
        let port = u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()?;
        (state == "06" && (low..=high).contains(&port)).then_some(port)
    };
    text.lines().filter_map(port).collect()
}

/// Clock ticks of all processors since the start of the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorTicks {
    /// All ticks.
    pub total: u64,
    /// Ticks without work.
    pub idle: u64,
    /// Ticks that other virtual machines took.
    pub steal: u64,
}

/// The ticks of all processors, from `/proc/stat`.
pub fn processor_ticks(text: &str) -> Option<ProcessorTicks> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guest time is a part of user time (proc(5)).
    let at = |index: usize| ticks.get(index).copied().unwrap_or(0);
    (ticks.len() >= 4).then(|| ProcessorTicks {
        total: ticks.iter().take(8).fold(0, |sum, ticks| u64::saturating_add(sum, *ticks)),
        idle: at(3).saturating_add(at(4)),
        steal: at(7),
    })
}

/// The name and the clock ticks of a process, from `/proc/PID/stat`.
pub fn process_ticks(text: &str) -> Option<(String, u64)> {
    // The name is in parentheses and may contain anything.
    let (before, after) = text.rsplit_once(')')?;
    let name = before.split_once('(')?.1;
    let mut fields = after.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some((name.to_owned(), user.saturating_add(system)))
}

/// How many numbers a list like `0-3,8` has.
pub fn list_length(text: &str) -> Option<u64> {
    let length = |part: &str| {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high): (u64, u64) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
        high.checked_sub(low)?.checked_add(1)
    };
    let parts = text.trim().split(',').filter(|part| !part.is_empty());
    parts.map(length).try_fold(0u64, |sum, length| sum.checked_add(length?))
}

/// How many of the ports in a list like `8080,9000-9010` are in a range.
pub fn ports_in_range(text: &str, (low, high): (u16, u16)) -> u64 {
    let within = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        let (first, last) = (first.max(low), last.min(high));
        (first <= last).then(|| u64::from(last - first) + 1)
    };
    text.trim().split(',').filter_map(within).fold(0, u64::saturating_add)
}

/// The choice in brackets of a file like `always [madvise] never`.
pub fn chosen(text: &str) -> Option<String> {
    let (choice, _) = text.split_once('[')?.1.split_once(']')?;
    Some(choice.to_owned())
}

/// Local addresses of `/proc/net/fib_trie`: single ones, and networks all of whose addresses are local.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalAddresses {
    /// Single addresses.
    pub single: BTreeSet<Ipv4Addr>,
    /// Networks with the length of their prefixes.
    pub networks: BTreeSet<(Ipv4Addr, u8)>,
}

/// The local addresses in `/proc/net/fib_trie`.
pub fn local_addresses(text: &str) -> LocalAddresses {
    let mut found = LocalAddresses::default();
    let mut address = None;
    for line in text.lines().map(str::trim_start) {
        if let Some(leaf) = line.strip_prefix("|-- ") {
            address = leaf.trim_end().parse::<Ipv4Addr>().ok();
        } else if let Some(rest) = line.strip_prefix('/')
            && let Some(length) =
                rest.strip_suffix(" host LOCAL").and_then(|length| length.parse::<u8>().ok())
            && let Some(address) = address
        {
            match length {
                32 => drop(found.single.insert(address)),
                _ => drop(found.networks.insert((address, length))),
            }
        }
    }
    found
}

/// The number of IPv6 addresses in `/proc/net/if_inet6`, without those of loopback and of links alone.
pub fn inet6_addresses(text: &str) -> u64 {
    // address, interface number, prefix length, scope (hexadecimal: 10 host, 20 link), flags, name
    let is_global = |line: &&str| line.split_whitespace().nth(3).is_some_and(|scope| scope == "00");
    text.lines().filter(is_global).count() as u64
}

/// Networks of IPv6 all of whose addresses are local, with the length of their prefixes, from `/proc/net/ipv6_route`.
pub fn inet6_local_networks(text: &str) -> BTreeSet<(Ipv6Addr, u8)> {
    // The flag of routes that end at this host (`RTF_LOCAL` in linux/ipv6_route.h).
    const LOCAL: u32 = 0x8000_0000;
    // destination, length, source, length, gateway, metric, users, uses, flags, interface; all numbers hexadecimal
    let network = |line: &str| {
        let mut words = line.split_whitespace();
        let address = u128::from_str_radix(words.next()?, 16).ok()?;
        let length = u8::from_str_radix(words.next()?, 16).ok()?;
        let flags = u32::from_str_radix(words.nth(6)?, 16).ok()?;
        (flags & LOCAL != 0 && length < 128).then(|| (Ipv6Addr::from(address), length))
    };
    text.lines().filter_map(network).collect()
}

/// The name servers of `/etc/resolv.conf`.
pub fn name_servers(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    lines.filter_map(|rest| rest.split_whitespace().next().map(str::to_owned)).collect()
}

/// The addresses of a host in `/etc/hosts`.
pub fn addresses_of(text: &str, host: &str) -> Vec<String> {
    let address = |line: &str| {
        let mut words = line.split('#').next()?.split_whitespace();
        let address = words.next()?.to_owned();
        words.any(|name| name.eq_ignore_ascii_case(host)).then_some(address)
    };
    text.lines().filter_map(address).collect()
}

/// The type of the file system that a directory is on, from `/proc/self/mounts`: that of the longest mount point above it.
pub fn file_system(mounts: &str, directory: &str) -> Option<String> {
    let is_above = |point: &str| {
        let rest = directory.strip_prefix(point);
        point == "/" || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let found = mounts.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (point, kind) = (words.next()?, words.next()?);
        is_above(point).then(|| (point.len(), kind.to_owned()))
    });
    // Of two with the same mount point, the later one is on top.
    found.max_by_key(|(length, _)| *length).map(|(_, kind)| kind)
}

/// The number of rules that `iptables-save` prints.
pub fn saved_rules(text: &str) -> u64 {
    text.lines().filter(|line| line.starts_with("-A ")).count() as u64
}

/// The number of rules that `nft list ruleset` prints: lines inside of chains that are not their type or policy.
pub fn listed_rules(text: &str) -> u64 {
    let (mut inside, mut rules) = (false, 0);
    for line in text.lines().map(str::trim) {
        if line.starts_with("chain ") {
            inside = true;
        } else if line == "}" {
            inside = false;
        } else if inside && !line.is_empty() && !line.starts_with("type ") && !line.starts_with("policy ") {
            rules += 1;
        }
    }
    rules
}

/// Queueing disciplines that delay, limit or lose packets, from `tc qdisc show`, each with its interface.
pub fn shaping(text: &str) -> Vec<String> {
    const KINDS: [&str; 7] = ["netem", "tbf", "htb", "hfsc", "cbq", "police", "ingress"];
    let mut found: BTreeMap<(String, String), usize> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        if words.next() != Some("qdisc") {
            continue;
        }
        let Some(kind) = words.next().filter(|kind| KINDS.contains(kind)) else { continue };
        words.find(|word| *word == "dev");
        let Some(device) = words.next() else { continue };
        *found.entry((device.to_owned(), kind.to_owned())).or_default() += 1;
    }
    found.into_keys().map(|(device, kind)| format!("{kind} on {device}")).collect()
}
