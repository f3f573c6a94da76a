//! TCP segments (RFC 9293, section 3.1).

use std::fmt::{self, Display};
use std::net::IpAddr;
use std::ops::BitOr;

use super::checksum::{checksum, pseudo_header};
use super::{u16_at, u32_at};

/// The number of TCP among the protocols of IP.
const PROTOCOL: u8 = 6;
/// Octets of a header without options.
const HEADER: usize = 20;

/// The control bits of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFlags(u8);

impl TcpFlags {
    /// No more data follows.
    pub const FIN: TcpFlags = TcpFlags(0x01);
    /// A connection is opened.
    pub const SYN: TcpFlags = TcpFlags(0x02);
    /// A connection is aborted, or there is none.
    pub const RST: TcpFlags = TcpFlags(0x04);
    /// The data is to be delivered at once.
    pub const PSH: TcpFlags = TcpFlags(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: TcpFlags = TcpFlags(0x10);

    /// Whether all bits of `others` are set.
    pub fn has(self, others: TcpFlags) -> bool {
        self.0 & others.0 == others.0
    }
}

impl BitOr for TcpFlags {
    type Output = TcpFlags;

    fn bitor(self, other: TcpFlags) -> TcpFlags {
        TcpFlags(self.0 | other.0)
    }
}

impl Display for TcpFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Self::SYN, "SYN"),
            (Self::FIN, "FIN"),
            (Self::RST, "RST"),
            (Self::PSH, "PSH"),
            (Self::ACK, "ACK"),
        ];
        let set: Vec<&str> =
            names.iter().filter(|(flag, _)| self.has(*flag)).map(|(_, name)| *name).collect();
        f.write_str(&set.join("+"))
    }
}

/// A TCP segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpSegment {
    /// The port of the sender.
    pub source_port: u16,
    /// The port of the receiver.
    pub destination_port: u16,
    /// The number of the first octet, or of the SYN.
    pub sequence: u32,
    /// The number of the octet that the sender expects next.
    pub acknowledgement: u32,
    /// The control bits.
    pub flags: TcpFlags,
    /// How many octets the sender of the segment accepts.
    pub window: u16,
    /// The largest segment that the sender accepts, an option of a SYN.
    pub max_segment: Option<u16>,
    /// The data.
    pub payload: Vec<u8>,
}

impl TcpSegment {
    /// Reads a segment. The checksum is not verified: the host did so, or its network card computes it later.
    pub fn read(bytes: &[u8]) -> Option<TcpSegment> {
        let header = usize::from(bytes.get(12)? >> 4) * 4;
        let options = bytes.get(HEADER..header)?;
        Some(TcpSegment {
            source_port: u16_at(bytes, 0)?,
            destination_port: u16_at(bytes, 2)?,
            sequence: u32_at(bytes, 4)?,
            acknowledgement: u32_at(bytes, 8)?,
            flags: TcpFlags(bytes[13] & 0x3f),
            window: u16_at(bytes, 14)?,
            max_segment: max_segment(options),
            payload: bytes[header..].to_vec(),
        })
    }

    /// The segment as bytes, with the checksum for these addresses.
    pub fn bytes(&self, source: IpAddr, destination: IpAddr) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + 4 + self.payload.len());
        bytes.extend(self.source_port.to_be_bytes());
        bytes.extend(self.destination_port.to_be_bytes());
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(self.acknowledgement.to_be_bytes());
        let words = if self.max_segment.is_some() { 6 } else { 5 };
        bytes.extend([words << 4, self.flags.0]);
        bytes.extend(self.window.to_be_bytes());
        // Checksum and urgent pointer.
        bytes.extend([0; 4]);
        if let Some(octets) = self.max_segment {
            bytes.extend([2, 4]);
            bytes.extend(octets.to_be_bytes());
        }
        bytes.extend(&self.payload);
        let header = pseudo_header(source, destination, PROTOCOL, bytes.len());
        let sum = checksum(&[&header, &bytes]);
        bytes[16..18].copy_from_slice(&sum.to_be_bytes());
        bytes
    }

    /// The number behind the last octet; SYN and FIN count as one octet each.
    pub fn end(&self) -> u32 {
        let controls = u32::from(self.flags.has(TcpFlags::SYN)) + u32::from(self.flags.has(TcpFlags::FIN));
        self.sequence.wrapping_add(self.payload.len() as u32).wrapping_add(controls)
    }
}

/// The option "maximum segment size" (RFC 9293, section 3.2).
fn max_segment(mut options: &[u8]) -> Option<u16> {
    loop {
        match *options {
            // Padding.
            [1, ref rest @ ..] => options = rest,
            [2, 4, high, low, ..] => return Some(u16::from_be_bytes([high, low])),
            [kind, length, ..] if kind > 1 && length >= 2 => options = options.get(usize::from(length)..)?,
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_checksum_covers_addresses_and_payload() {
        let segment = TcpSegment {
            source_port: 1,
            destination_port: 80,
            flags: TcpFlags::SYN | TcpFlags::ACK,
            payload: b"abc".to_vec(),
            ..TcpSegment::default()
        };
        for (source, destination) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
            let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
            let bytes = segment.bytes(source, destination);
            let header = pseudo_header(source, destination, PROTOCOL, bytes.len());
            // A receiver that sums everything, the checksum included, gets 0.
            assert_eq!(checksum(&[&header, &bytes]), 0);
        }
        assert_eq!(segment.flags.to_string(), "SYN+ACK");
        assert_eq!(segment.end(), 4);
    }

    #[test]
    fn options_in_any_order() {
        for (options, expected) in [
            (&[2, 4, 5, 180][..], Some(1460)),
            (&[1, 1, 8, 3, 9, 2, 4, 0, 9][..], Some(9)),
            (&[0, 2, 4, 0, 9][..], None),
            (&[8, 0, 2, 4, 0, 9][..], None),
            (&[8, 40][..], None),
            (&[2][..], None),
        ] {
            assert_eq!(max_segment(options), expected, "{options:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            ports in any::<(u16, u16)>(), numbers in any::<(u32, u32)>(), flags in 0u8..0x40, window in any::<u16>(),
            max_segment in any::<Option<u16>>(), payload in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let segment = TcpSegment {
                source_port: ports.0,
                destination_port: ports.1,
                sequence: numbers.0,
                acknowledgement: numbers.1,
                flags: TcpFlags(flags),
                window,
                max_segment,
                payload,
            };
            let address = IpAddr::from([10, 0, 0, 1]);
            prop_assert_eq!(TcpSegment::read(&segment.bytes(address, address)), Some(segment));
        }
    }
}
