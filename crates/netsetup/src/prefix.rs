//! IP addresses with a prefix length.

use std::fmt::{self, Display};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// An IP address with a prefix length, such as `10.16.1.7/22`: an address of an interface, or a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct IpPrefix {
    /// The address.
    pub address: IpAddr,
    /// The number of leading bits that name the network; at most 32 for IPv4 and 128 for IPv6.
    pub length: u8,
}

impl IpPrefix {
    /// The address with a prefix that names it alone.
    pub fn host(address: IpAddr) -> IpPrefix {
        IpPrefix { address, length: width(address) }
    }

    /// The network of this size around an address; a length beyond that of the address means the address alone.
    pub fn around(address: IpAddr, length: u8) -> IpPrefix {
        IpPrefix { address, length: length.min(width(address)) }.network()
    }

    /// Whether two networks have addresses in common.
    pub fn overlaps(self, other: IpPrefix) -> bool {
        self.contains(other.address) || other.contains(self.address)
    }

    /// The network of the address: all bits behind the prefix are zero.
    #[must_use]
    pub fn network(self) -> IpPrefix {
        let address = match self.address {
            IpAddr::V4(ip) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.length)).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from(u32::from(ip) & mask))
            }
            IpAddr::V6(ip) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.length)).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from(u128::from(ip) & mask))
            }
        };
        IpPrefix { address, ..self }
    }

    /// Whether an address is in the network.
    pub fn contains(self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4()
            && IpPrefix { address, ..self }.network() == self.network()
    }
}

/// The bits of an address.
fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl Display for IpPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl From<IpPrefix> for String {
    fn from(prefix: IpPrefix) -> String {
        prefix.to_string()
    }
}

impl TryFrom<String> for IpPrefix {
    type Error = String;
    fn try_from(text: String) -> Result<IpPrefix, String> {
        text.parse()
    }
}

impl FromStr for IpPrefix {
    type Err = String;

    /// Reads `ADDRESS/LENGTH`, or an address alone.
    fn from_str(text: &str) -> Result<IpPrefix, String> {
        let wrong = || format!("`{text}` is no address with a prefix length, such as 10.16.0.0/16");
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let length = length.map_or(Ok(width(address)), str::parse).map_err(|_| wrong())?;
        if length > width(address) {
            return Err(wrong());
        }
        Ok(IpPrefix { address, length })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_their_addresses() {
        for (text, network, inside, outside) in [
            ("10.16.7.9/22", "10.16.4.0/22", "10.16.4.0", "10.16.8.0"),
            ("10.0.0.1/0", "0.0.0.0/0", "255.1.2.3", "::1"),
            ("10.0.0.1", "10.0.0.1/32", "10.0.0.1", "10.0.0.2"),
            ("fd00::1:2/112", "fd00::1:0/112", "fd00::1:ffff", "fd00::2:0"),
            ("fd00::1/0", "::/0", "::1", "10.0.0.1"),
        ] {
            let prefix: IpPrefix = text.parse().unwrap();
            assert_eq!(prefix.network().to_string(), network);
            assert!(prefix.contains(inside.parse().unwrap()), "{text} {inside}");
            assert!(!prefix.contains(outside.parse().unwrap()), "{text} {outside}");
            assert_eq!(prefix.to_string().parse(), Ok(prefix));
        }
        let overlap = |a: &str, b: &str| a.parse::<IpPrefix>().unwrap().overlaps(b.parse().unwrap());
        assert!(overlap("10.0.0.0/8", "10.1.2.0/24") && overlap("10.1.2.0/24", "10.0.0.0/8"));
        assert!(!overlap("10.0.0.0/16", "10.1.0.0/16") && !overlap("0.0.0.0/0", "::/0"));
        for text in ["", "10.0.0.1/33", "fd00::/129", "10.0.0.1/", "10.0.0/8", "10.0.0.1/-1"] {
            assert!(text.parse::<IpPrefix>().is_err(), "{text}");
        }
    }
}
