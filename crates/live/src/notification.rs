//! The status notifications of Web Polygraph as bytes (docs/monitor.md, "Status notifications").
//!
//! All fields are big-endian integers of 32 bits, except the label and the totals of 64 bits. A fractional value is a
//! mantissa and an exponent: `mantissa / 2^31 * 2^exponent`. Undefined values are -1, as in all output of Web Polygraph.

use std::net::{Ipv4Addr, SocketAddrV4};

use polygraph_stats::Side;

/// The kind of message that a status notification is.
const STATUS: i32 = 1;
/// Bytes of the label, one of them a zero at its end.
const LABEL_BYTES: usize = 16;
/// Bytes of a notification.
pub const NOTIFICATION_BYTES: usize = 124;
/// Bytes that a dispatcher appends.
const APPENDED_BYTES: usize = 20;
/// Bytes of a notification as a dispatcher forwards it.
pub const FORWARDED_BYTES: usize = NOTIFICATION_BYTES + APPENDED_BYTES;

/// A point in time or a length of time in whole microseconds. A point counts from the start of 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros(pub i64);

impl Micros {
    /// The length in seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 * 1e-6
    }
}

/// The state of one side of a process at the end of an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    /// The label of the run; at most 15 bytes are sent.
    pub label: String,
    /// When the run started.
    pub start: Micros,
    /// When the message was sent.
    pub sent: Micros,
    /// Mean response time in the interval.
    pub response_time: Option<Micros>,
    /// Transactions started per second.
    pub request_rate: f64,
    /// Transactions that succeeded per second.
    pub reply_rate: f64,
    /// Reply bytes per second.
    pub bandwidth: f64,
    /// Document hit ratio in the interval, 0 to 1.
    pub hit_ratio: Option<f64>,
    /// Mean number of transactions per closed connection in the interval.
    pub connection_use: Option<f64>,
    /// Share of the transactions that failed in the interval, 0 to 1.
    pub error_ratio: Option<f64>,
    /// Transactions since the start that succeeded.
    pub transactions: i64,
    /// Transactions since the start that failed.
    pub errors: i64,
    /// Open connections now.
    pub open_connections: i64,
    /// The side.
    pub side: Side,
}

/// A notification with what a dispatcher has added.
#[derive(Clone, Debug, PartialEq)]
pub struct ForwardedNotification {
    /// The notification.
    pub notification: Notification,
    /// When the dispatcher received it.
    pub received: Micros,
    /// Where it came from.
    pub sender: SocketAddrV4,
    /// The number of monitors to which the dispatcher sent it.
    pub copies: u32,
}

/// Why bytes are not a notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotificationError {
    /// The number of bytes is wrong.
    #[error("a notification has {expected} bytes, not {found}")]
    Length {
        /// The right number.
        expected: usize,
        /// The number of bytes.
        found: usize,
    },
    /// The first fields name another kind of message.
    #[error("a message of kind {kind} with {size} bytes is not a status notification")]
    Kind {
        /// The kind of message.
        kind: i32,
        /// The size that the message gives.
        size: i32,
    },
    /// The last field names no side.
    #[error("{0} is neither 1 (client) nor 2 (server)")]
    Side(i32),
}

impl Notification {
    /// The bytes of the datagram.
    pub fn encode(&self) -> [u8; NOTIFICATION_BYTES] {
        let mut out = FieldWriter { bytes: [0; NOTIFICATION_BYTES], at: 0 };
        out.int(STATUS);
        out.int(NOTIFICATION_BYTES as i32);
        out.label(&self.label);
        out.time(self.start);
        out.time(self.sent);
        out.time(self.response_time.unwrap_or(Micros(-1_000_000)));
        [self.request_rate, self.reply_rate, self.bandwidth].into_iter().for_each(|rate| out.fraction(rate));
        let ratios = [self.hit_ratio, self.connection_use, self.error_ratio];
        ratios.into_iter().for_each(|ratio| out.fraction(ratio.unwrap_or(-1.0)));
        let counts = [self.transactions, self.errors, self.open_connections];
        counts.into_iter().for_each(|count| out.put(&count.to_be_bytes()));
        out.int(match self.side {
            Side::Client => 1,
            Side::Server => 2,
        });
        out.bytes
    }

    /// Reads a datagram.
    ///
    /// # Errors
    /// If the bytes are not a status notification.
    pub fn decode(bytes: &[u8]) -> Result<Notification, NotificationError> {
        if bytes.len() != NOTIFICATION_BYTES {
            return Err(NotificationError::Length { expected: NOTIFICATION_BYTES, found: bytes.len() });
        }
        let mut from = FieldReader { bytes };
        let (kind, size) = (from.int(), from.int());
        if (kind, size) != (STATUS, NOTIFICATION_BYTES as i32) {
            return Err(NotificationError::Kind { kind, size });
        }
        let defined = |value: f64| (value >= 0.0).then_some(value);
        Ok(Notification {
            label: from.label(),
            start: from.time(),
            sent: from.time(),
            response_time: Some(from.time()).filter(|time| time.0 >= 0),
            request_rate: from.fraction(),
            reply_rate: from.fraction(),
            bandwidth: from.fraction(),
            hit_ratio: defined(from.fraction()),
            connection_use: defined(from.fraction()),
            error_ratio: defined(from.fraction()),
            transactions: from.long(),
            errors: from.long(),
            open_connections: from.long(),
            side: match from.int() {
                1 => Side::Client,
                2 => Side::Server,
                other => return Err(NotificationError::Side(other)),
            },
        })
    }
}

impl ForwardedNotification {
    /// The bytes of a datagram with what the dispatcher appends.
    pub fn encode(
        datagram: &[u8; NOTIFICATION_BYTES],
        received: Micros,
        sender: SocketAddrV4,
        copies: u32,
    ) -> [u8; FORWARDED_BYTES] {
        let mut out = FieldWriter { bytes: [0; FORWARDED_BYTES], at: 0 };
        out.put(datagram);
        out.time(received);
        out.put(&sender.ip().octets());
        out.int(i32::from(sender.port()));
        out.put(&copies.to_be_bytes());
        out.bytes
    }

    /// Reads a forwarded notification.
    ///
    /// # Errors
    /// If the bytes are not a status notification with what a dispatcher appends.
    pub fn decode(bytes: &[u8]) -> Result<ForwardedNotification, NotificationError> {
        if bytes.len() != FORWARDED_BYTES {
            return Err(NotificationError::Length { expected: FORWARDED_BYTES, found: bytes.len() });
        }
        let (datagram, appended) = bytes.split_at(NOTIFICATION_BYTES);
        let notification = Notification::decode(datagram)?;
        let mut from = FieldReader { bytes: appended };
        Ok(ForwardedNotification {
            notification,
            received: from.time(),
            sender: SocketAddrV4::new(Ipv4Addr::from(from.take::<4>()), from.int() as u16),
            copies: from.int() as u32,
        })
    }
}

/// The mantissa and the exponent of a value: `mantissa / 2^31 * 2^exponent`, with a mantissa of at least 2^30 unless
/// the value is 0. Values that are not numbers, or out of all proportion, become 0.
fn parts(value: f64) -> [i32; 2] {
    if !(1e-300..1e300).contains(&value.abs()) {
        return [0, 0];
    }
    // `value` is `m * 2^exponent` with m from 0.5 to 1.
    let exponent = value.abs().log2().floor() as i32 + 1;
    let mantissa = (value * 2f64.powi(31 - exponent)).round();
    // Rounding may give 2^31, and the logarithm may be off by one next to a power of two.
    if mantissa.abs() > f64::from(i32::MAX) {
        return [(mantissa / 2.0) as i32, exponent + 1];
    }
    [mantissa as i32, exponent]
}

/// Writes fields one after the other.
struct FieldWriter<const SIZE: usize> {
    bytes: [u8; SIZE],
    at: usize,
}

impl<const SIZE: usize> FieldWriter<SIZE> {
    fn put(&mut self, field: &[u8]) {
        self.bytes[self.at..self.at + field.len()].copy_from_slice(field);
        self.at += field.len();
    }

    fn int(&mut self, value: i32) {
        self.put(&value.to_be_bytes());
    }

    fn time(&mut self, time: Micros) {
        let seconds = time.0.div_euclid(1_000_000).clamp(i32::MIN.into(), i32::MAX.into());
        self.int(seconds as i32);
        self.int(time.0.rem_euclid(1_000_000) as i32);
    }

    fn fraction(&mut self, value: f64) {
        parts(value).into_iter().for_each(|part| self.int(part));
    }

    /// As many whole characters as fit.
    fn label(&mut self, label: &str) {
        let fits = label.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end < LABEL_BYTES);
        let end = fits.last().unwrap_or(0);
        let mut field = [0; LABEL_BYTES];
        field[..end].copy_from_slice(&label.as_bytes()[..end]);
        self.put(&field);
    }
}

/// Reads fields one after the other. Bytes beyond the end are zeros.
struct FieldReader<'a> {
    bytes: &'a [u8],
}

impl FieldReader<'_> {
    fn take<const SIZE: usize>(&mut self) -> [u8; SIZE] {
        let Some((field, rest)) = self.bytes.split_first_chunk() else { return [0; SIZE] };
        self.bytes = rest;
        *field
    }

    fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.take())
    }

    fn long(&mut self) -> i64 {
        i64::from_be_bytes(self.take())
    }

    fn time(&mut self) -> Micros {
        let (seconds, micros) = (self.int(), self.int());
        Micros(i64::from(seconds) * 1_000_000 + i64::from(micros))
    }

    fn fraction(&mut self) -> f64 {
        let (mantissa, exponent) = (self.int(), self.int());
        // Within these limits, the value is finite whatever the mantissa is.
        f64::from(mantissa) / 2f64.powi(31) * 2f64.powi(exponent.clamp(-1022, 1023))
    }

    fn label(&mut self) -> String {
        let field: [u8; LABEL_BYTES] = self.take();
        let text = field.split(|byte| *byte == 0).next().unwrap_or_default();
        // Monitors print labels on terminals.
        String::from_utf8_lossy(text).chars().filter(|c| !c.is_control()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Notification {
        Notification {
            label: "pmix".into(),
            start: Micros(0x0102_0304 * 1_000_000 + 5),
            sent: Micros(0x0102_0309 * 1_000_000 + 6),
            response_time: Some(Micros(2_500_000)),
            request_rate: 250.0,
            reply_rate: 249.5,
            bandwidth: 3_328_000.0,
            hit_ratio: Some(0.5),
            connection_use: Some(1.0),
            error_ratio: None,
            transactions: 0x0102_0304_0506_0708,
            errors: 3,
            open_connections: 700,
            side: Side::Server,
        }
    }

    /// The documented layout, byte by byte: docs/monitor.md, "Status notifications".
    #[test]
    fn the_layout_is_the_documented_one() {
        let bytes = example().encode();
        let int = |at: usize| i32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!((int(0), int(4)), (1, 124), "kind, size");
        assert_eq!(&bytes[8..24], b"pmix\0\0\0\0\0\0\0\0\0\0\0\0");
        assert_eq!((int(24), int(28)), (0x0102_0304, 5), "start");
        assert_eq!((int(32), int(36)), (0x0102_0309, 6), "sent");
        assert_eq!((int(40), int(44)), (2, 500_000), "response time");
        // 250 = 250/256 * 2^8, and so on.
        assert_eq!((int(48), int(52)), (0x7d00_0000, 8), "request rate");
        assert_eq!((int(56), int(60)), (0x7cc0_0000, 8), "reply rate");
        assert_eq!(int(68), 22, "bandwidth");
        assert_eq!((int(72), int(76)), (1 << 30, 0), "hit ratio");
        assert_eq!((int(80), int(84)), (1 << 30, 1), "transactions per connection");
        assert_eq!((int(88), int(92)), (-(1 << 30), 1), "undefined error ratio");
        assert_eq!(&bytes[96..104], [1, 2, 3, 4, 5, 6, 7, 8], "transactions");
        assert_eq!((int(104), int(108)), (0, 3), "errors");
        assert_eq!((int(112), int(116)), (0, 700), "open connections");
        assert_eq!(int(120), 2, "side");
        let sender = SocketAddrV4::new(Ipv4Addr::new(10, 16, 1, 2), 4660);
        let forwarded = ForwardedNotification::encode(&bytes, Micros(7_000_008), sender, 3);
        assert_eq!(forwarded[..124], bytes);
        assert_eq!(
            forwarded[124..],
            [0, 0, 0, 7, 0, 0, 0, 8, 10, 16, 1, 2, 0, 0, 0x12, 0x34, 0, 0, 0, 3],
            "receive time, address, port, copies"
        );
    }

    #[test]
    fn other_messages_are_rejected() {
        let good = example().encode();
        assert_eq!(
            Notification::decode(&good[1..]),
            Err(NotificationError::Length { expected: 124, found: 123 })
        );
        let with = |at: usize, value: u8| {
            let mut bytes = good;
            bytes[at] = value;
            Notification::decode(&bytes)
        };
        assert_eq!(with(3, 2), Err(NotificationError::Kind { kind: 2, size: 124 }));
        assert_eq!(with(7, 1), Err(NotificationError::Kind { kind: 1, size: 1 }));
        assert_eq!(with(123, 3), Err(NotificationError::Side(3)));
        assert_eq!(with(8, 0x1b).unwrap().label, "mix", "control characters do not reach terminals");
    }

    #[test]
    fn long_labels_are_cut_between_characters() {
        let label = |text: &str| {
            let sent = Notification { label: text.into(), ..example() };
            Notification::decode(&sent.encode()).unwrap().label
        };
        assert_eq!(label("0123456789abcdefgh"), "0123456789abcde");
        assert_eq!(label("0123456789abcdé"), "0123456789abcd");
        assert_eq!(label(""), "");
    }
}
