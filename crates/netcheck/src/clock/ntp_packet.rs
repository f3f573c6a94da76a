//! The packet of NTP, version 4 (RFC 5905, section 7.3).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Octets of a packet without extensions.
const LENGTH: usize = 48;
/// Seconds from 1900, where NTP begins to count, to 1970.
const UNIX: u64 = 2_208_988_800;
/// Version 4.
const VERSION: u8 = 4 << 3;
const CLIENT: u8 = 3;
const SERVER: u8 = 4;
/// The clock is not synchronised: two bits of the first octet, and a stratum.
const ALARM: u8 = 3 << 6;
const UNSYNCHRONISED: u8 = 16;

/// A time in units of 2^-32 s since 1900, modulo 136 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NtpTime(pub u64);

impl NtpTime {
    /// The time of this host's clock.
    pub fn now() -> NtpTime {
        NtpTime::of_unix(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    /// A time since 1970.
    pub fn of_unix(time: Duration) -> NtpTime {
        let seconds = time.as_secs().wrapping_add(UNIX) << 32;
        NtpTime(seconds | ((u64::from(time.subsec_nanos()) << 32) / 1_000_000_000))
    }

    /// The seconds from an earlier time to this one; negative if it is later. Times are less than 68 years apart.
    pub fn since(self, earlier: NtpTime) -> f64 {
        self.0.wrapping_sub(earlier.0) as i64 as f64 / 4_294_967_296.0
    }
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NtpPacket {
    /// Whether it comes from a server.
    pub from_server: bool,
    /// Whether the sender's clock is synchronised.
    pub synchronised: bool,
    /// In a reply: when the client sent the request, by its clock.
    pub originated: NtpTime,
    /// In a reply: when the request came.
    pub received: NtpTime,
    /// When the packet was sent.
    pub transmitted: NtpTime,
}

impl NtpPacket {
    /// A request that is sent at a time.
    pub fn request(now: NtpTime) -> NtpPacket {
        let none = NtpTime::default();
        NtpPacket {
            from_server: false,
            synchronised: false,
            originated: none,
            received: none,
            transmitted: now,
        }
    }

    /// Whether this is the reply to the request that was sent at a time.
    pub fn answers(&self, request: NtpTime) -> bool {
        self.from_server && self.originated == request && self.transmitted != NtpTime::default()
    }

    /// Reads a packet of version 3 or 4. Extensions are skipped.
    pub fn read(bytes: &[u8]) -> Option<NtpPacket> {
        let first = *bytes.first()?;
        let time = |at: usize| Some(NtpTime(u64::from_be_bytes(*bytes.get(at..)?.first_chunk()?)));
        let from_server = match (first >> 3 & 7, first & 7) {
            (3 | 4, CLIENT) => false,
            (3 | 4, SERVER) => true,
            _ => return None,
        };
        let synchronised =
            first & ALARM != ALARM && (1..UNSYNCHRONISED).contains(&bytes[1..].first().copied()?);
        Some(NtpPacket {
            from_server,
            synchronised,
            originated: time(24)?,
            received: time(32)?,
            transmitted: time(40)?,
        })
    }

    /// The packet as bytes.
    pub fn bytes(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[0] = VERSION | if self.from_server { SERVER } else { CLIENT };
        if self.from_server {
            let (alarm, stratum) =
                if self.synchronised { (0, UNSYNCHRONISED - 1) } else { (ALARM, UNSYNCHRONISED) };
            bytes[0] |= alarm;
            bytes[1] = stratum;
            // The precision of the clock: 2^-20 s.
            bytes[3] = -20_i8 as u8;
        }
        for (at, time) in [(24, self.originated), (32, self.received), (40, self.transmitted)] {
            bytes[at..at + 8].copy_from_slice(&time.0.to_be_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_as_written() {
        for (from_server, synchronised) in [(false, false), (true, false), (true, true)] {
            let packet = NtpPacket {
                from_server,
                synchronised,
                originated: NtpTime(1),
                received: NtpTime(2),
                transmitted: NtpTime(u64::MAX),
            };
            let bytes = packet.bytes();
            assert_eq!(NtpPacket::read(&bytes), Some(packet));
            assert_eq!(NtpPacket::read(&bytes[..47]), None);
            assert_eq!((packet.answers(NtpTime(1)), packet.answers(NtpTime(2))), (from_server, false));
        }
        assert_eq!((NtpPacket::read(&[]), NtpPacket::read(&[0x25; 48])), (None, None));
    }

    #[test]
    fn times_run_over() {
        let (before, after) = (NtpTime(u64::MAX - 1), NtpTime(1 << 31));
        assert!((after.since(before) - 0.5).abs() < 1e-6 && (before.since(after) + 0.5).abs() < 1e-6);
        let time = NtpTime::of_unix(Duration::new(0, 500_000_000));
        assert_eq!(time.0, (UNIX << 32) + (1 << 31));
    }
}
