//! The IPv4 header (RFC 791), which raw sockets leave before what they receive.

use super::u16_at;

/// What an IPv4 packet carries: its protocol and its payload.
pub fn ipv4_payload(packet: &[u8]) -> Option<(u8, &[u8])> {
    let first = *packet.first()?;
    let (version, header) = (first >> 4, usize::from(first & 0x0f) * 4);
    if version != 4 || header < 20 {
        return None;
    }
    // The length is 0 in packets that the host merged to more than 64 KB.
    let length = match usize::from(u16_at(packet, 2)?) {
        0 => packet.len(),
        length => length.min(packet.len()),
    };
    Some((*packet.get(9)?, packet.get(header..length)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_with_and_without_options() {
        let mut packet = vec![0; 28];
        (packet[0], packet[3], packet[9], packet[20]) = (0x45, 24, 6, 7);
        assert_eq!(ipv4_payload(&packet), Some((6, &[7, 0, 0, 0][..])));
        packet[0] = 0x46;
        assert_eq!(ipv4_payload(&packet), Some((6, &[][..])));
        packet[3] = 0;
        assert_eq!(ipv4_payload(&packet), Some((6, &[0, 0, 0, 0][..])));
        for wrong in [0x65, 0x44, 0x4f] {
            packet[0] = wrong;
            assert_eq!(ipv4_payload(&packet), None, "{wrong:x}");
        }
        assert_eq!(ipv4_payload(&[]), None);
    }
}
