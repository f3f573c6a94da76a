//! DNS zone files for an address map: what `dns-cfg` writes.

use std::fmt::Write as _;
use std::net::IpAddr;

use crate::{Addr, Host};

/// The address of the name server of a bench.
const NAME_SERVER: &str = "172.16.101.100";

/// Seconds of the SOA record: time to live, refresh, retry, expire, minimum; and the fixed serial number.
const TTL: u32 = 3600;
const SOA: [u32; 5] = [1, 10_800, 1801, 3_600_000, 259_200];

/// The files that let a name server answer for an address map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneFiles {
    /// The configuration of the name server (BIND), with both zones.
    pub config: String,
    /// Name of the file that maps names to addresses.
    pub forward_name: String,
    /// The text of that file.
    pub forward: String,
    /// Name of the file that maps addresses to names.
    pub reverse_name: String,
    /// The text of that file.
    pub reverse: String,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// Why there are no zone files for a map.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZoneError {
    /// The zone is not a domain name.
    #[error("'{0}' is not a zone; write a domain such as bench.tst, or '.' for the root")]
    BadZone(String),
    /// A name outside the zone.
    #[error("the name {name} is not in the zone {zone}")]
    OutsideZone {
        /// The name.
        name: String,
        /// The requested zone.
        zone: String,
    },
    /// The list of addresses is empty.
    #[error("the map has no addresses")]
    NoAddresses,
    /// The map has no names that DNS could answer for.
    #[error("the map has no names: DNS has nothing to answer for IP addresses")]
    NoNames,
    /// A name where an address is required.
    #[error("{0} is a name; a name server needs its IP address")]
    NameAsAddress(String),
    /// The map has both IPv4 and IPv6 addresses.
    #[error("the map has IPv4 and IPv6 addresses; make one zone file for each")]
    MixedFamilies,
}

/// Writes zone files in which name i has address i; if there are fewer addresses, they are used in turn.
///
/// Names outside the zone are cut, dynamic names (`*.x`, `.x`) become wildcards, and names with an underscore,
/// which are not host names, are written as comments.
///
/// # Errors
/// If the zone is not a domain name, or names and addresses do not fit together.
pub fn zone_files(zone: &str, addresses: &[Addr], names: &[Addr]) -> Result<ZoneFiles, ZoneError> {
    let root = zone == ".";
    let domain = if root { "" } else { zone.trim_matches('.') };
    let is_domain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    if !root && (domain.is_empty() || domain.contains("..") || !domain.chars().all(is_domain)) {
        return Err(ZoneError::BadZone(zone.to_owned()));
    }
    let ips = addresses
        .iter()
        .map(|addr| addr.host.ip().ok_or_else(|| ZoneError::NameAsAddress(addr.host.to_string())))
        .collect::<Result<Vec<_>, _>>()?;
    let first = *ips.first().ok_or(ZoneError::NoAddresses)?;
    if ips.iter().any(|ip| ip.is_ipv4() != first.is_ipv4()) {
        return Err(ZoneError::MixedFamilies);
    }

    let mut files =
        ZoneFiles { forward_name: if root { "root" } else { domain }.to_owned(), ..ZoneFiles::default() };
    files.reverse_name = format!("{}.rev", files.forward_name);
    if addresses.len() > names.len() {
        let unused = addresses.len() - names.len();
        files
            .warnings
            .push(format!("{unused} of {} addresses have no name and are omitted", addresses.len()));
    }
    let labels: Vec<Vec<String>> = ips.iter().map(reverse_labels).collect();
    let shared = shared_labels(&labels);
    let reverse_zone = labels[0][labels[0].len() - shared..].join(".");
    let origin = if root { ".".to_owned() } else { format!("{domain}.") };
    files.forward = head(&origin, &origin);
    let _ = writeln!(files.forward, "ns\tIN\tA\t{NAME_SERVER}");
    files.reverse = head(&format!("{reverse_zone}."), &origin);

    let mut ip_names = 0;
    for (i, name) in names.iter().enumerate() {
        let Host::Name(name) = &name.host else {
            ip_names += 1;
            continue;
        };
        let (ip, labels) = (ips[i % ips.len()], &labels[i % ips.len()]);
        let (wildcard, plain) = dynamic(name);
        let owner = owner(plain, domain)
            .ok_or_else(|| ZoneError::OutsideZone { name: name.to_string(), zone: zone.to_owned() })?;
        let owner = match (wildcard, owner) {
            (false, "") => "@".to_owned(),
            (false, owner) => owner.to_owned(),
            (true, "") => "*".to_owned(),
            (true, owner) => format!("*.{owner}"),
        };
        let comment = if name.contains('_') {
            files.warnings.push(format!("{name} is written as a comment: host names have no underscore"));
            "; error: a host name has no underscore: "
        } else {
            ""
        };
        let kind = if ip.is_ipv4() { "A" } else { "AAAA" };
        let _ = writeln!(files.forward, "{comment}{owner}\tIN\t{kind}\t{ip}");
        let place = labels[..labels.len() - shared].join(".");
        // An address has one reverse name, even where the map makes up names as it is used.
        let first_name = if wildcard { "w000000." } else { "" };
        let _ = writeln!(files.reverse, "{comment}{place}\tIN\tPTR\t{first_name}{plain}.");
    }
    if ip_names == names.len() {
        return Err(ZoneError::NoNames);
    }
    if ip_names > 0 {
        files.warnings.push(format!("{ip_names} names of the map are IP addresses and need no DNS"));
    }
    files.config = config(&reverse_zone, &files.reverse_name, zone, &files.forward_name);
    Ok(files)
}

fn config(reverse_zone: &str, reverse_file: &str, zone: &str, forward_file: &str) -> String {
    let master =
        |zone: &str, file: &str| format!("\nzone \"{zone}\" {{\n\ttype master;\n\tfile \"{file}\";\n}};\n");
    let zone = if zone == "." { zone } else { zone.trim_matches('.') };
    "options {\n\tdirectory \"/etc/namedb\";\n\trecursion no;\n};\n".to_owned()
        + &master(reverse_zone, reverse_file)
        + &master(zone, forward_file)
}

/// The records at the start of every zone; `domain` is the zone in which the name server has its name.
fn head(origin: &str, domain: &str) -> String {
    let name_server = if domain == "." { "ns.".to_owned() } else { format!("ns.{domain}") };
    let hostmaster = if domain == "." { "hostmaster.".to_owned() } else { format!("hostmaster.{domain}") };
    let [serial, refresh, retry, expire, minimum] = SOA;
    format!(
        "$TTL {TTL}\n$ORIGIN {origin}\n@\tIN\tSOA\t{name_server} {hostmaster} (\n\t{serial}\t; serial\n\
         \t{refresh}\t; refresh\n\t{retry}\t; retry\n\t{expire}\t; expire\n\t{minimum}\t; minimum\n)\n\
         @\tIN\tNS\t{name_server}\n"
    )
}

/// Whether a name is a mask for made-up names, and the name without the mask.
fn dynamic(name: &str) -> (bool, &str) {
    match name.strip_prefix("*.").or_else(|| name.strip_prefix('.')) {
        Some(rest) => (true, rest.trim_end_matches('.')),
        None => (false, name.trim_end_matches('.')),
    }
}

/// The name relative to its zone, empty for the zone itself.
fn owner<'a>(name: &'a str, domain: &str) -> Option<&'a str> {
    let cut = name.len().checked_sub(domain.len())?;
    match (domain, name.get(cut..)) {
        ("", _) => Some(name),
        (_, Some(tail)) if tail.eq_ignore_ascii_case(domain) => match &name[..cut] {
            "" => Some(""),
            front => front.strip_suffix('.'),
        },
        _ => None,
    }
}

/// The labels of the reverse name of an address: `1 128 101 10 IN-ADDR ARPA`.
fn reverse_labels(ip: &IpAddr) -> Vec<String> {
    match ip {
        IpAddr::V4(ip) => {
            let octets = ip.octets().into_iter().rev().map(|octet| octet.to_string());
            octets.chain(["IN-ADDR".to_owned(), "ARPA".to_owned()]).collect()
        }
        IpAddr::V6(ip) => {
            let nibbles = ip.octets().into_iter().rev().flat_map(|byte| [byte & 15, byte >> 4]);
            nibbles.map(|n| format!("{n:x}")).chain(["IP6".to_owned(), "ARPA".to_owned()]).collect()
        }
    }
}

/// The number of labels at the end that all names share; at least one label stays for each name.
fn shared_labels(names: &[Vec<String>]) -> usize {
    let first = &names[0];
    let same = |n: usize| names.iter().all(|labels| labels[labels.len() - n..] == first[first.len() - n..]);
    (1..first.len()).take_while(|n| same(*n)).last().unwrap_or(0)
}
