//! ICMP echoes (RFC 792; RFC 4443, section 4).

use super::checksum::checksum;
use super::{ipv4_payload, u16_at};

/// Octets before the data of an echo.
const HEADER: usize = 8;
/// The number of ICMP among the protocols of IP, and that of ICMPv6.
const PROTOCOLS: [u8; 2] = [1, 58];

/// An echo request. The kernel computes the checksum of ICMPv6, and that of ICMP if it owns the socket's identifier.
pub fn echo_request(ipv6: bool, identifier: u16, sequence: u16, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + data.len());
    bytes.extend([if ipv6 { 128 } else { 8 }, 0, 0, 0]);
    bytes.extend(identifier.to_be_bytes());
    bytes.extend(sequence.to_be_bytes());
    bytes.extend(data);
    if !ipv6 {
        let sum = checksum(&[&bytes]);
        bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    bytes
}

/// What comes back after an echo request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EchoAnswer<'a> {
    /// The echo.
    Echo {
        /// The sequence number of the request.
        sequence: u16,
        /// The data of the request.
        data: &'a [u8],
    },
    /// The request could not be delivered.
    Undelivered {
        /// Why, in a few words.
        reason: &'static str,
        /// The data of the request, as far as the message repeats it.
        data: &'a [u8],
    },
}

impl EchoAnswer<'_> {
    /// Reads an ICMP message. Messages that answer no echo request are `None`.
    pub fn read(ipv6: bool, message: &[u8]) -> Option<EchoAnswer<'_>> {
        let (kind, code) = (*message.first()?, *message.get(1)?);
        let data = message.get(HEADER..)?;
        match (ipv6, kind) {
            (false, 0) | (true, 129) => Some(EchoAnswer::Echo { sequence: u16_at(message, 6)?, data }),
            (false, 3) => undelivered(ipv6, unreachable_v4(code), data),
            (false, 11) | (true, 3) => undelivered(ipv6, "the packet was forwarded too often", data),
            (true, 1) => undelivered(ipv6, unreachable_v6(code), data),
            (true, 2) => undelivered(ipv6, "the packet is too big for a link", data),
            _ => None,
        }
    }
}

/// The message repeats the packet that was not delivered.
fn undelivered<'a>(ipv6: bool, reason: &'static str, packet: &'a [u8]) -> Option<EchoAnswer<'a>> {
    let (protocol, echo) = match ipv6 {
        false => ipv4_payload(packet)?,
        // Requests are sent without extension headers.
        true => (*packet.get(6)?, packet.get(40..)?),
    };
    let is_request = matches!((ipv6, echo.first()?), (false, 8) | (true, 128));
    let data = echo.get(HEADER..)?;
    (protocol == PROTOCOLS[usize::from(ipv6)] && is_request)
        .then_some(EchoAnswer::Undelivered { reason, data })
}

fn unreachable_v4(code: u8) -> &'static str {
    match code {
        0 | 6 | 11 => "there is no route to the network",
        1 | 7 | 12 => "the host does not answer in its network",
        4 => "the packet is too big for a link",
        9 | 10 | 13 => "a firewall forbids it",
        _ => "the destination is unreachable",
    }
}

fn unreachable_v6(code: u8) -> &'static str {
    match code {
        0 => "there is no route to the network",
        1 | 5 | 6 => "a firewall forbids it",
        3 => "the host does not answer in its network",
        _ => "the destination is unreachable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn echoes_are_read() {
        for ipv6 in [false, true] {
            let mut message = echo_request(ipv6, 7, 9, b"data");
            assert_eq!(EchoAnswer::read(ipv6, &message), None, "a request is no answer");
            message[0] = if ipv6 { 129 } else { 0 };
            assert_eq!(
                EchoAnswer::read(ipv6, &message),
                Some(EchoAnswer::Echo { sequence: 9, data: b"data" })
            );
            assert_eq!(EchoAnswer::read(ipv6, &message[..7]), None);
        }
        assert_eq!(checksum(&[&echo_request(false, 7, 9, b"data")]), 0);
    }

    #[test]
    fn errors_repeat_the_request() {
        let mut v4 = vec![3, 1, 0, 0, 0, 0, 0, 0];
        let mut header = [0; 20];
        (header[0], header[3], header[9]) = (0x45, 32, 1);
        v4.extend(header);
        v4.extend(echo_request(false, 7, 9, b"data"));
        let reason = "the host does not answer in its network";
        assert_eq!(EchoAnswer::read(false, &v4), Some(EchoAnswer::Undelivered { reason, data: b"data" }));
        v4[17] = 6;
        assert_eq!(EchoAnswer::read(false, &v4), None, "another protocol");
        let mut v6 = vec![1, 3, 0, 0, 0, 0, 0, 0];
        let mut header = [0; 40];
        (header[0], header[6]) = (0x60, 58);
        v6.extend(header);
        v6.extend(echo_request(true, 7, 9, b"data"));
        assert_eq!(EchoAnswer::read(true, &v6), Some(EchoAnswer::Undelivered { reason, data: b"data" }));
        assert_eq!(EchoAnswer::read(true, &v6[..50]), None);
    }
}
