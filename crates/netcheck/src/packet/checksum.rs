//! The checksum of IP, TCP and ICMP (RFC 1071).

use std::net::IpAddr;

/// The complement of the sum of all pairs of octets. An odd octet at the end of a part counts as the first of a pair.
pub fn checksum(parts: &[&[u8]]) -> u16 {
    let pairs = parts.iter().flat_map(|part| part.chunks(2));
    let sum: u64 =
        pairs.map(|pair| u64::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]))).sum();
    let mut sum = sum;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// What TCP and ICMPv6 add to their checksum: addresses, protocol and length (RFC 9293, section 3.1; RFC 8200, section
/// 8.1). Addresses of different families have no common pseudo header; the first one decides.
pub fn pseudo_header(source: IpAddr, destination: IpAddr, protocol: u8, length: usize) -> Vec<u8> {
    let mut header = Vec::with_capacity(40);
    for address in [source, destination] {
        match address {
            IpAddr::V4(address) => header.extend(address.octets()),
            IpAddr::V6(address) => header.extend(address.octets()),
        }
    }
    header.extend((length as u32).to_be_bytes());
    header.extend([0, 0, 0, protocol]);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_rfc() {
        // RFC 1071, section 3: the sum of these octets is ddf2.
        assert_eq!(checksum(&[&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]]), !0xddf2);
        assert_eq!(checksum(&[&[0x00, 0x01, 0xf2, 0x03], &[0xf4, 0xf5, 0xf6, 0xf7]]), !0xddf2);
        assert_eq!(checksum(&[&[0xab]]), !0xab00);
        assert_eq!(checksum(&[]), 0xffff);
    }
}
