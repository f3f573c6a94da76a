//! Ranges of addresses, expanded one address at a time.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use crate::number::{NumberRange, looks_like_ipv4};
use crate::{Addr, Host, TextPart, TextRange};

/// The hosts of a range.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostRange {
    /// Four octets, each 0 to 255.
    V4([NumberRange; 4]),
    /// Eight groups, each 0 to 65535.
    V6([NumberRange; 8]),
    /// A name with number positions.
    Name(TextRange),
}

/// A range of addresses, `[interface::]a-b.c-d.e-f.g-h[:port or :p-q][/subnet]`, also with IPv6 or a name.
///
/// The right-most number changes fastest, the port before the host. Every member has the same interface and
/// subnet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AddrRange {
    /// The interface of every member.
    pub interface: Option<Arc<str>>,
    /// The hosts.
    pub host: HostRange,
    /// The ports, 1 to 65535.
    pub port: Option<NumberRange>,
    /// The prefix length of every member.
    pub subnet: Option<u8>,
}

impl AddrRange {
    /// The number of addresses; `u64::MAX` means that many or more.
    #[expect(clippy::len_without_is_empty, reason = "a range is never empty")]
    pub fn len(&self) -> u64 {
        let hosts = match &self.host {
            HostRange::V4(octets) => octets.iter().fold(1, |n: u64, s| n.saturating_mul(s.len())),
            HostRange::V6(groups) => groups.iter().fold(1, |n: u64, s| n.saturating_mul(s.len())),
            HostRange::Name(name) => name.len(),
        };
        hosts.saturating_mul(self.port.map_or(1, NumberRange::len))
    }

    /// The member at an index, in the documented order; `None` past the end.
    pub fn get(&self, index: u64) -> Option<Addr> {
        if index >= self.len() {
            return None;
        }
        let (port, mut index) = match self.port {
            None => (None, index),
            Some(span) => {
                let (port, rest) = span.digit(index);
                (Some(port as u16), rest)
            }
        };
        let mut next = |span: NumberRange| {
            let (n, rest) = span.digit(index);
            index = rest;
            n
        };
        let host = match &self.host {
            HostRange::V4(octets) => {
                let mut bytes = [0; 4];
                for (byte, span) in bytes.iter_mut().zip(octets).rev() {
                    *byte = next(*span) as u8;
                }
                Host::V4(Ipv4Addr::from(bytes))
            }
            HostRange::V6(groups) => {
                let mut words = [0; 8];
                for (word, span) in words.iter_mut().zip(groups).rev() {
                    *word = next(*span) as u16;
                }
                Host::V6(Ipv6Addr::from(words))
            }
            HostRange::Name(name) => Host::Name(name.at(index).into()),
        };
        Some(Addr { interface: self.interface.clone(), host, port, subnet: self.subnet })
    }

    /// Iterates over all members in order.
    pub fn iter(&self) -> Iter<'_> {
        Iter { range: self, next: 0, len: self.len() }
    }

    /// The address, if this range has exactly one.
    pub fn as_single(&self) -> Option<Addr> {
        (self.len() == 1).then(|| self.get(0)).flatten()
    }
}

/// The members of an [`AddrRange`] in order.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    range: &'a AddrRange,
    next: u64,
    len: u64,
}

impl Iterator for Iter<'_> {
    type Item = Addr;

    fn next(&mut self) -> Option<Addr> {
        if self.next == self.len {
            return None;
        }
        let addr = self.range.get(self.next);
        self.next += 1;
        addr
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.len - self.next;
        (usize::try_from(left).unwrap_or(usize::MAX), usize::try_from(left).ok())
    }
}

impl<'a> IntoIterator for &'a AddrRange {
    type Item = Addr;
    type IntoIter = Iter<'a>;
    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl From<Addr> for AddrRange {
    fn from(addr: Addr) -> Self {
        let host = match addr.host {
            Host::V4(ip) => HostRange::V4(ip.octets().map(|n| NumberRange::one(n.into()))),
            Host::V6(ip) => HostRange::V6(ip.segments().map(|n| NumberRange::one(n.into()))),
            Host::Name(name) => HostRange::Name(TextRange::literal(&name)),
        };
        let port = addr.port.map(|port| NumberRange::one(port.into()));
        AddrRange { interface: addr.interface, host, port, subnet: addr.subnet }
    }
}

/// Writes the notation that [`AddrRange::parse`] reads back to an equal value.
impl fmt::Display for AddrRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(interface) = &self.interface {
            write!(f, "{interface}::")?;
        }
        match &self.host {
            HostRange::V4([a, b, c, d]) => write!(f, "{a}.{b}.{c}.{d}")?,
            HostRange::V6(groups) => write_groups(f, groups)?,
            HostRange::Name(name) => {
                let text = name.to_string();
                // A backslash marks a name that consists of numbers only, or that together with the interface
                // looks like an IPv6 address.
                let hex = |text: &str| text.bytes().all(|b| b.is_ascii_hexdigit());
                let like_ipv6 = hex(&text) && self.interface.as_deref().is_some_and(hex);
                let groups = name.parts.iter().map_while(|part| match part {
                    TextPart::Range(span) => Some(format!("[{span}]").len()),
                    TextPart::Lit(_) => None,
                });
                let first_plain = groups.sum();
                match looks_like_ipv4(&text) || like_ipv6 {
                    true if first_plain < text.len() => {
                        write!(f, "{}\\{}", &text[..first_plain], &text[first_plain..])?;
                    }
                    _ => f.write_str(&text)?,
                }
            }
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        if let Some(subnet) = self.subnet {
            write!(f, "/{subnet}")?;
        }
        Ok(())
    }
}

/// IPv6 groups in brackets, the longest run of zero groups written as `::`.
fn write_groups(f: &mut fmt::Formatter<'_>, groups: &[NumberRange; 8]) -> fmt::Result {
    let zero_run = |from: usize| groups[from..].iter().take_while(|s| s.hi == 0).count();
    let (start, len) = (0..8).rev().map(|i| (i, zero_run(i))).max_by_key(|(_, n)| *n).unwrap_or((8, 0));
    let (start, len) = if len >= 2 { (start, len) } else { (8, 0) };
    let write_some = |f: &mut fmt::Formatter<'_>, some: &[NumberRange]| {
        for (i, span) in some.iter().enumerate() {
            let colon = if i > 0 { ":" } else { "" };
            match span.len() {
                1 => write!(f, "{colon}{:x}", span.lo)?,
                _ => write!(f, "{colon}{:x}-{:x}", span.lo, span.hi)?,
            }
        }
        Ok(())
    };
    f.write_str("[")?;
    write_some(f, &groups[..start])?;
    if len > 0 {
        f.write_str("::")?;
        write_some(f, &groups[start + len..])?;
    }
    f.write_str("]")
}

/// There are more addresses than the caller accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these are {count} addresses, but the limit is {limit}")]
pub struct TooMany {
    /// The number of addresses.
    pub count: u64,
    /// The largest number that the caller accepts.
    pub limit: u64,
}

/// The number of addresses in all ranges; `u64::MAX` means that many or more.
pub fn count(ranges: &[AddrRange]) -> u64 {
    ranges.iter().fold(0, |n: u64, range| n.saturating_add(range.len()))
}

/// All addresses of these ranges in order.
///
/// # Errors
/// If there are more than `limit`.
pub fn expand(ranges: &[AddrRange], limit: u64) -> Result<Vec<Addr>, TooMany> {
    let count = count(ranges);
    if count > limit {
        return Err(TooMany { count, limit });
    }
    Ok(ranges.iter().flatten().collect())
}

/// The ranges as one text, with `separator` between them.
pub fn join(ranges: &[AddrRange], separator: &str) -> String {
    ranges.iter().map(ToString::to_string).collect::<Vec<_>>().join(separator)
}
