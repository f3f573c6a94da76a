//! What the messages have in common (RFC 4120, section 5).

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::der::{self, Der, element, field, sequence, tag};
use crate::etype::{self, CipherError, CipherKey, EncryptionType, Usage};

/// The tag of a message in the class "application".
pub(crate) fn application(number: u8) -> u8 {
    tag::APPLICATION + number
}

/// Numbers of messages, which are also those of their tags.
pub(crate) mod number {
    pub(crate) const TICKET: u8 = 1;
    pub(crate) const AUTHENTICATOR: u8 = 2;
    pub(crate) const TICKET_PART: u8 = 3;
    pub(crate) const LOGIN: u8 = 10;
    pub(crate) const LOGIN_REPLY: u8 = 11;
    pub(crate) const TICKET_REQUEST: u8 = 12;
    pub(crate) const TICKET_REPLY: u8 = 13;
    pub(crate) const SERVICE_REQUEST: u8 = 14;
    pub(crate) const SERVICE_REPLY: u8 = 15;
    pub(crate) const LOGIN_REPLY_PART: u8 = 25;
    pub(crate) const TICKET_REPLY_PART: u8 = 26;
    pub(crate) const SERVICE_REPLY_PART: u8 = 27;
    pub(crate) const ERROR: u8 = 30;
}

/// The version of the protocol in all messages.
pub(crate) const VERSION: i64 = 5;

/// Why an exchange with a KDC gave no ticket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KdcError {
    /// The KDC answered with an error.
    #[error("the KDC answers {}{}", error_name(*code), text.as_ref().map_or_else(String::new, |text| format!(" (`{text}`)")))]
    Refused {
        /// The error code (RFC 4120, section 7.5.9).
        code: i64,
        /// What the KDC says about it.
        text: Option<String>,
    },
    /// The reply is no reply to the request.
    #[error("the reply of the KDC is malformed: {0}")]
    Malformed(&'static str),
    /// The reply to a login is encrypted with another key than that of the password.
    #[error("the reply of the KDC is encrypted with another password")]
    Password,
    /// The KDC knows no encryption type that this program has.
    #[error("the KDC offers no encryption type of AES for the user")]
    NothingInCommon,
    /// Encryption is impossible.
    #[error(transparent)]
    Cipher(#[from] CipherError),
}

/// The name of an error code.
fn error_name(code: i64) -> String {
    let name = match code {
        code::UNKNOWN_USER => "KDC_ERR_C_PRINCIPAL_UNKNOWN",
        code::UNKNOWN_SERVICE => "KDC_ERR_S_PRINCIPAL_UNKNOWN",
        12 => "KDC_ERR_POLICY",
        14 => "KDC_ERR_ETYPE_NOSUPP",
        18 => "KDC_ERR_CLIENT_REVOKED",
        23 => "KDC_ERR_KEY_EXPIRED",
        code::WRONG_PASSWORD => "KDC_ERR_PREAUTH_FAILED",
        code::PASSWORD_NEEDED => "KDC_ERR_PREAUTH_REQUIRED",
        31 => "KRB_AP_ERR_BAD_INTEGRITY",
        32 => "KRB_AP_ERR_TKT_EXPIRED",
        code::CLOCK => "KRB_AP_ERR_SKEW",
        code::TOO_BIG => "KRB_ERR_RESPONSE_TOO_BIG",
        60 => "KRB_ERR_GENERIC",
        68 => "KDC_ERR_WRONG_REALM",
        other => return format!("error {other}"),
    };
    format!("{name} ({code})")
}

/// Error codes that matter to clients.
pub mod code {
    /// There is no such user.
    pub const UNKNOWN_USER: i64 = 6;
    /// There is no such service.
    pub const UNKNOWN_SERVICE: i64 = 7;
    /// The time in the request is encrypted with a wrong password.
    pub const WRONG_PASSWORD: i64 = 24;
    /// The request must prove the password.
    pub const PASSWORD_NEEDED: i64 = 25;
    /// The clocks differ too much.
    pub const CLOCK: i64 = 37;
    /// The reply does not fit a datagram.
    pub const TOO_BIG: i64 = 52;
}

/// A time of day in microseconds, of which messages have the seconds and the rest apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Moment {
    /// Microseconds since 1970.
    pub unix_us: u64,
}

impl Moment {
    /// The time of day from milliseconds since 1970. `number` tells apart moments in the same millisecond.
    pub fn of_millis(unix_ms: u64, number: u64) -> Moment {
        Moment { unix_us: unix_ms * 1000 + number % 1000 }
    }

    /// Whole seconds since 1970.
    pub fn seconds(self) -> u64 {
        self.unix_us / 1_000_000
    }

    pub(crate) fn micros(self) -> i64 {
        (self.unix_us % 1_000_000) as i64
    }

    /// The time to the second.
    pub(crate) fn write(self) -> Vec<u8> {
        write_time(self.seconds())
    }
}

/// A KerberosTime: `YYYYMMDDhhmmssZ`.
pub(crate) fn write_time(unix_s: u64) -> Vec<u8> {
    let (days, rest) = (unix_s / 86_400, unix_s % 86_400);
    let (year, month, day) = date_of(days as i64);
    let text = format!("{year:04}{month:02}{day:02}{:02}{:02}{:02}Z", rest / 3600, rest / 60 % 60, rest % 60);
    element(tag::TIME, text.as_bytes())
}

/// Seconds since 1970 of a KerberosTime; times before 1970 are 0.
pub(crate) fn read_time(text: &[u8]) -> Option<u64> {
    let digits = text.strip_suffix(b"Z").filter(|digits| digits.len() == 14)?;
    let number = |from: usize, to: usize| {
        digits[from..to].iter().try_fold(0_i64, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
        })
    };
    let days = days_of(number(0, 4)?, number(4, 6)?, number(6, 8)?);
    let seconds = (number(8, 10)? * 60 + number(10, 12)?) * 60 + number(12, 14)?;
    Some(u64::try_from(days * 86_400 + seconds).unwrap_or(0))
}

/// Year, month and day of a day after 1970, in the Gregorian calendar. Years begin in March here, so that the leap day is the last.
fn date_of(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The reverse of [`date_of`].
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let shifted_month = (month + 9) % 12;
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// A user or a service, without its realm: `joe`, `HTTP/proxy.example.com`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Principal {
    kind: u8,
    parts: Vec<String>,
}

impl Principal {
    /// A user (NT-PRINCIPAL).
    pub fn user(name: &str) -> Principal {
        Principal { kind: 1, parts: name.split('/').map(str::to_owned).collect() }
    }

    /// A service on a host (NT-SRV-HST), such as `HTTP/proxy.example.com`.
    pub fn service(name: &str) -> Principal {
        Principal { kind: 3, parts: name.split('/').map(str::to_owned).collect() }
    }

    /// The service that grants tickets in a realm (NT-SRV-INST).
    pub(crate) fn granter(realm: &str) -> Principal {
        Principal { kind: 2, parts: vec!["krbtgt".to_owned(), realm.to_owned()] }
    }

    /// Whether both have the same name; its type is only a hint (RFC 4120, section 6.2).
    pub(crate) fn is(&self, other: &Principal) -> bool {
        self.parts == other.parts
    }

    /// The salt of its password, if the KDC names none: realm and name.
    pub(crate) fn salt(&self, realm: &str) -> Vec<u8> {
        format!("{realm}{}", self.parts.concat()).into_bytes()
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let parts: Vec<Vec<u8>> = self.parts.iter().map(|part| der::text(part)).collect();
        sequence(&[field(0, &der::number(i64::from(self.kind))), field(1, &sequence(&parts))])
    }

    /// Reads the contents of a sequence.
    pub(crate) fn read(bytes: &[u8]) -> Option<Principal> {
        let mut fields = Der(bytes);
        let kind = u8::try_from(fields.number_field(0)?).unwrap_or(0);
        let (mut list, mut parts) = (Der(fields.field(1, tag::SEQUENCE)?), Vec::new());
        while let Some((found, part)) = list.next()? {
            let part = Some(part).filter(|_| found == tag::TEXT)?;
            parts.push(String::from_utf8_lossy(part).into_owned());
        }
        (!parts.is_empty()).then_some(Principal { kind, parts })
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parts.join("/"))
    }
}

/// Encrypted bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Encrypted {
    pub(crate) kind: i64,
    /// Which of the keys of the principal was used.
    pub(crate) version: Option<i64>,
    pub(crate) bytes: Vec<u8>,
}

impl Encrypted {
    pub(crate) fn new(
        key: &CipherKey,
        usage: Usage,
        random: [u8; 16],
        plain: &[u8],
    ) -> Result<Encrypted, CipherError> {
        let bytes = etype::encrypt(key, usage, random, plain)?;
        Ok(Encrypted { kind: i64::from(key.kind().number()), version: None, bytes })
    }

    pub(crate) fn open(&self, key: &CipherKey, usage: Usage) -> Result<Vec<u8>, CipherError> {
        match self.kind == i64::from(key.kind().number()) {
            true => etype::decrypt(key, usage, &self.bytes),
            false => Err(CipherError::Integrity),
        }
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let version = self.version.map(|version| field(1, &der::number(version))).unwrap_or_default();
        sequence(&[field(0, &der::number(self.kind)), version, field(2, &der::octets(&self.bytes))])
    }

    /// Reads the contents of a sequence.
    pub(crate) fn read(bytes: &[u8]) -> Option<Encrypted> {
        let mut fields = Der(bytes);
        let kind = fields.number_field(0)?;
        let version = fields.optional_field(1, tag::INTEGER).and_then(der::number_of);
        Some(Encrypted { kind, version, bytes: fields.field(2, tag::OCTETS)?.to_vec() })
    }
}

/// The fields of a ticket that everybody can read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TicketFrame {
    pub(crate) realm: String,
    pub(crate) service: Principal,
    pub(crate) secret: Encrypted,
}

impl TicketFrame {
    /// Reads a ticket with its tag.
    pub(crate) fn read(bytes: &[u8]) -> Option<TicketFrame> {
        let mut fields = message(bytes, number::TICKET)?;
        fields.number_field(0).filter(|version| *version == VERSION)?;
        let realm = String::from_utf8_lossy(fields.field(1, tag::TEXT)?).into_owned();
        let service = Principal::read(fields.field(2, tag::SEQUENCE)?)?;
        Some(TicketFrame { realm, service, secret: Encrypted::read(fields.field(3, tag::SEQUENCE)?)? })
    }
}

/// The fields of a message with this number.
pub(crate) fn message(bytes: &[u8], number: u8) -> Option<Der<'_>> {
    Some(Der(Der(Der(bytes).expect(application(number))?).expect(tag::SEQUENCE)?))
}

/// A message with these fields.
pub(crate) fn write_message(number: u8, fields: &[Vec<u8>]) -> Vec<u8> {
    element(application(number), &sequence(fields))
}

/// A key in a field of a message.
pub(crate) fn read_key(bytes: &[u8]) -> Option<CipherKey> {
    let mut fields = Der(bytes);
    let kind = EncryptionType::of_number(fields.number_field(0)?)?;
    CipherKey::new(kind, fields.field(1, tag::OCTETS)?).ok()
}

/// Data for preauthentication: type and value.
pub(crate) fn write_padata(kind: i64, value: &[u8]) -> Vec<u8> {
    sequence(&[field(1, &der::number(kind)), field(2, &der::octets(value))])
}

/// All data of a list for preauthentication, the contents of a sequence.
pub(crate) fn read_padata(bytes: &[u8]) -> Option<Vec<(i64, &[u8])>> {
    let (mut list, mut found) = (Der(bytes), Vec::new());
    while let Some((tag, item)) = list.next()? {
        let mut fields = Der(Some(item).filter(|_| tag == tag::SEQUENCE)?);
        found.push((fields.number_field(1)?, fields.field(2, tag::OCTETS)?));
    }
    Some(found)
}

/// An error message of a KDC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ErrorMessage<'a> {
    pub(crate) code: i64,
    pub(crate) text: Option<String>,
    pub(crate) data: Option<&'a [u8]>,
}

impl<'a> ErrorMessage<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Option<ErrorMessage<'a>> {
        let mut fields = message(bytes, number::ERROR)?;
        let (mut code, mut text, mut data) = (None, None, None);
        while let Some((found, value)) = fields.next()? {
            match found.checked_sub(tag::CONTEXT)? {
                6 => code = Some(der::number_of(Der(value).expect(tag::INTEGER)?)?),
                11 => text = Some(String::from_utf8_lossy(Der(value).expect(tag::TEXT)?).into_owned()),
                12 => data = Some(Der(value).expect(tag::OCTETS)?),
                _ => {}
            }
        }
        Some(ErrorMessage { code: code?, text, data })
    }

    pub(crate) fn refusal(self) -> KdcError {
        KdcError::Refused { code: self.code, text: self.text }
    }
}

/// What a reply of a KDC says about the new ticket to the client alone.
#[derive(Clone, Debug)]
pub(crate) struct ReplyPart {
    pub(crate) key: CipherKey,
    pub(crate) nonce: i64,
    pub(crate) ends: u64,
    pub(crate) service: Principal,
}

impl ReplyPart {
    pub(crate) fn read(bytes: &[u8]) -> Option<ReplyPart> {
        // Some KDCs use the tag of the other reply (RFC 4120, section 5.4.2).
        let fields = message(bytes, number::LOGIN_REPLY_PART);
        let mut fields = fields.or_else(|| message(bytes, number::TICKET_REPLY_PART))?;
        let (mut key, mut nonce, mut ends, mut service) = (None, None, None, None);
        while let Some((found, value)) = fields.next()? {
            match found.checked_sub(tag::CONTEXT)? {
                0 => key = Some(read_key(Der(value).expect(tag::SEQUENCE)?)?),
                2 => nonce = Some(der::number_of(Der(value).expect(tag::INTEGER)?)?),
                7 => ends = Some(read_time(Der(value).expect(tag::TIME)?)?),
                10 => service = Some(Principal::read(Der(value).expect(tag::SEQUENCE)?)?),
                _ => {}
            }
        }
        Some(ReplyPart { key: key?, nonce: nonce?, ends: ends?, service: service? })
    }
}

/// A reply of a KDC with a ticket.
#[derive(Clone, Debug)]
pub(crate) struct Reply<'a> {
    pub(crate) padata: Vec<(i64, &'a [u8])>,
    pub(crate) ticket: &'a [u8],
    pub(crate) secret: Encrypted,
}

impl<'a> Reply<'a> {
    pub(crate) fn read(bytes: &'a [u8], number: u8) -> Option<Reply<'a>> {
        let mut fields = message(bytes, number)?;
        let (mut padata, mut ticket, mut secret) = (Vec::new(), None, None);
        while let Some((found, value)) = fields.next()? {
            match found.checked_sub(tag::CONTEXT)? {
                2 => padata = read_padata(Der(value).expect(tag::SEQUENCE)?)?,
                5 => ticket = Some(value).filter(|ticket| TicketFrame::read(ticket).is_some()),
                6 => secret = Some(Encrypted::read(Der(value).expect(tag::SEQUENCE)?)?),
                _ => {}
            }
        }
        Some(Reply { padata, ticket: ticket?, secret: secret? })
    }
}

/// The error that an answer of a KDC is, if it is none of the wanted kind.
pub(crate) fn refusal(bytes: &[u8]) -> KdcError {
    ErrorMessage::read(bytes).map_or(KdcError::Malformed("not a reply to the request"), ErrorMessage::refusal)
}

/// The error code of an answer of a KDC, if it is an error.
pub fn error_code(bytes: &[u8]) -> Option<i64> {
    ErrorMessage::read(bytes).map(|error| error.code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_dates() {
        for (seconds, text) in [
            (0, "19700101000000Z"),
            (951_782_399, "20000228235959Z"),
            (951_782_400, "20000229000000Z"),
            (1_763_999_999, "20251124155959Z"),
            (4_102_444_800, "21000101000000Z"),
        ] {
            assert_eq!(write_time(seconds), element(tag::TIME, text.as_bytes()));
            assert_eq!(read_time(text.as_bytes()), Some(seconds), "{text}");
        }
        assert_eq!(read_time(b"19691231235959Z"), Some(0));
        for bad in [&b"20251124155959"[..], b"2025112415595Z", b"2025112415595xZ", b""] {
            assert_eq!(read_time(bad), None);
        }
    }

    #[test]
    fn principals_round_trip() {
        let service = Principal::service("HTTP/proxy.example.com");
        assert_eq!(
            Principal::read(Der(&service.write()).expect(tag::SEQUENCE).unwrap()),
            Some(service.clone())
        );
        assert_eq!(service.to_string(), "HTTP/proxy.example.com");
        assert_eq!(Principal::user("joe").salt("EXAMPLE.COM"), b"EXAMPLE.COMjoe");
    }

    #[test]
    fn errors_are_named() {
        let error = write_message(
            number::ERROR,
            &[field(0, &der::number(VERSION)), field(6, &der::number(24)), field(11, &der::text("no"))],
        );
        assert_eq!(error_code(&error), Some(24));
        assert_eq!(refusal(&error).to_string(), "the KDC answers KDC_ERR_PREAUTH_FAILED (24) (`no`)");
        assert!(matches!(refusal(b"x"), KdcError::Malformed(_)));
    }
}
