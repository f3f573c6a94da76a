//! What a stapled OCSP response says about a certificate (RFC 6960, section 4.2). Its signature is not verified: the figures say what
//! servers and devices send, and robots trust the certificate without it.

use polygraph_stats::ErrorKind;

use crate::certificate::{element, expect, serial};

/// How far clocks may differ, in seconds.
const CLOCK_SKEW: i64 = 300;

/// What a response says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staple {
    /// The status of the certificate.
    pub status: StapleStatus,
    /// When a newer response will be there, for people; `None` if the response does not say it, or cannot be read.
    pub next_update: Option<String>,
}

/// The status of a certificate, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StapleStatus {
    /// It is not revoked.
    Good,
    /// It is revoked.
    Revoked,
    /// The responder does not know it.
    Unknown,
    /// There should be a newer response, or this one is from the future.
    Outdated,
    /// The response is about other certificates.
    Other,
    /// The response is no OCSP response, or one that says that there is none.
    Unusable,
}

impl StapleStatus {
    /// The class in the catalogue of errors; `None` if the status is as it should be.
    pub fn class(self) -> Option<ErrorKind> {
        match self {
            StapleStatus::Good => None,
            StapleStatus::Revoked => Some(ErrorKind::StapleRevoked),
            StapleStatus::Outdated => Some(ErrorKind::StapleOutdated),
            StapleStatus::Unknown | StapleStatus::Other | StapleStatus::Unusable => {
                Some(ErrorKind::StapleUnusable)
            }
        }
    }
}

impl std::fmt::Display for StapleStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            StapleStatus::Good => "good",
            StapleStatus::Revoked => "revoked",
            StapleStatus::Unknown => "unknown",
            StapleStatus::Outdated => "outdated",
            StapleStatus::Other => "about another certificate",
            StapleStatus::Unusable => "unusable",
        })
    }
}

impl std::fmt::Display for Staple {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.status.fmt(f)?;
        match &self.next_update {
            Some(at) => write!(f, ", next update {at}"),
            None => Ok(()),
        }
    }
}

impl Staple {
    /// What a response says about `certificate` at `now`, in seconds since 1970.
    pub fn read(response: &[u8], certificate: &[u8], now: u64) -> Staple {
        let unusable = Staple { status: StapleStatus::Unusable, next_update: None };
        let Some((all, serial)) = singles(response).zip(serial(certificate)) else { return unusable };
        let mut rest = all;
        while !rest.is_empty() {
            let Some((single, after)) =
                expect(SEQUENCE, rest).and_then(|(body, after)| Some((read(body)?, after)))
            else {
                return unusable;
            };
            rest = after;
            if single.serial != serial {
                continue;
            }
            let is_outdated = single.this_update.seconds > now as i64 + CLOCK_SKEW
                || single.next_update.as_ref().is_some_and(|time| time.seconds + CLOCK_SKEW < now as i64);
            // A revocation is for ever.
            let status = match single.status {
                StapleStatus::Revoked => StapleStatus::Revoked,
                _ if is_outdated => StapleStatus::Outdated,
                status => status,
            };
            return Staple { status, next_update: single.next_update.map(|time| time.text) };
        }
        Staple { status: StapleStatus::Other, ..unusable }
    }
}

const SEQUENCE: u8 = 0x30;
const TIME: u8 = 0x18;

/// The statuses in a successful basic response.
fn singles(response: &[u8]) -> Option<&[u8]> {
    /// The type of basic responses, 1.3.6.1.5.5.7.48.1.1.
    const BASIC: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1];
    let (response, _) = expect(SEQUENCE, response)?;
    let (status, rest) = expect(0x0a, response)?;
    if status != [0] {
        return None;
    }
    let (bytes, _) = expect(0xa0, rest)?;
    let (bytes, _) = expect(SEQUENCE, bytes)?;
    let (kind, rest) = expect(0x06, bytes)?;
    let (basic, _) = expect(0x04, rest).filter(|_| kind == BASIC)?;
    let (basic, _) = expect(SEQUENCE, basic)?;
    let (mut data, _) = expect(SEQUENCE, basic)?;
    if let Some((_, after)) = expect(0xa0, data) {
        // The version is explicit except in version 1.
        data = after;
    }
    // The responder, by name or by key.
    let (_, _, rest) = element(data).filter(|(tag, ..)| matches!(tag, 0xa1 | 0xa2))?;
    let (_, rest) = expect(TIME, rest)?;
    Some(expect(SEQUENCE, rest)?.0)
}

/// The status of one certificate.
struct Single<'a> {
    serial: &'a [u8],
    status: StapleStatus,
    this_update: Time,
    next_update: Option<Time>,
}

fn read(single: &[u8]) -> Option<Single<'_>> {
    let (id, rest) = expect(SEQUENCE, single)?;
    let (_, id) = expect(SEQUENCE, id)?;
    let (_, id) = expect(0x04, id)?;
    let (_, id) = expect(0x04, id)?;
    let (serial, _) = expect(0x02, id)?;
    let (tag, _, rest) = element(rest)?;
    let status = match tag {
        0x80 => StapleStatus::Good,
        0xa1 => StapleStatus::Revoked,
        0x82 => StapleStatus::Unknown,
        _ => return None,
    };
    let (this_update, rest) = expect(TIME, rest)?;
    let next_update = match expect(0xa0, rest) {
        Some((inner, _)) => Some(Time::read(expect(TIME, inner)?.0)?),
        None => None,
    };
    Some(Single { serial, status, this_update: Time::read(this_update)?, next_update })
}

/// A moment.
struct Time {
    /// In seconds since 1970.
    seconds: i64,
    /// For people.
    text: String,
}

impl Time {
    /// Reads a GeneralizedTime as RFC 5280, section 4.1.2.5.2, has it: `YYYYMMDDHHMMSSZ`.
    fn read(value: &[u8]) -> Option<Time> {
        let digits = value.strip_suffix(b"Z").filter(|digits| digits.len() == 14)?;
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let part = |from: usize, to: usize| {
            digits[from..to].iter().fold(0i64, |sum, digit| sum * 10 + i64::from(digit - b'0'))
        };
        let (year, month, day) = (part(0, 4), part(4, 6), part(6, 8));
        let (hour, minute, second) = (part(8, 10), part(10, 12), part(12, 14));
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        // Days since 1970 in the Gregorian calendar, of years that begin in March, so that the leap day is the last one.
        let (year_of_march, month_of_march) =
            if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let leap_days =
            year_of_march.div_euclid(4) - year_of_march.div_euclid(100) + year_of_march.div_euclid(400);
        let days = 365 * year_of_march + leap_days + (153 * month_of_march + 2) / 5 + day - 1 - 719_468;
        let seconds = days * 86_400 + hour * 3600 + minute * 60 + second;
        Some(Time { seconds, text: format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 2026-11-24 20:00:00 UTC.
    const NOW: u64 = 1_795_550_400;

    fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        let length = u16::try_from(content.len()).unwrap().to_be_bytes();
        [&[tag, 0x82][..], &length, &content].concat()
    }

    /// A certificate, as far as its serial number.
    fn certificate(serial: &[u8]) -> Vec<u8> {
        let version = der(0xa0, &[&der(2, &[&[2]])]);
        der(SEQUENCE, &[&der(SEQUENCE, &[&version, &der(2, &[serial])])])
    }

    fn single(serial: &[u8], status: &[u8], this: &str, next: Option<&str>) -> Vec<u8> {
        let algorithm = der(SEQUENCE, &[&der(6, &[&[0x2b, 14, 3, 2, 26]])]);
        let id = der(SEQUENCE, &[&algorithm, &der(4, &[b"names"]), &der(4, &[b"key"]), &der(2, &[serial])]);
        let next = next.map_or(Vec::new(), |next| der(0xa0, &[&der(TIME, &[next.as_bytes()])]));
        der(SEQUENCE, &[&id, status, &der(TIME, &[this.as_bytes()]), &next])
    }

    fn response(singles: &[Vec<u8>]) -> Vec<u8> {
        let produced = der(TIME, &[b"20261124190000Z"]);
        let data = der(
            SEQUENCE,
            &[&der(0xa2, &[&der(4, &[b"key"])]), &produced, &der(SEQUENCE, &[&singles.concat()])],
        );
        let basic = der(SEQUENCE, &[&data, &der(SEQUENCE, &[]), &der(3, &[b"\0signature"])]);
        let bytes = der(SEQUENCE, &[&der(6, &[&[0x2b, 6, 1, 5, 5, 7, 0x30, 1, 1]]), &der(4, &[&basic])]);
        der(SEQUENCE, &[&der(0x0a, &[&[0]]), &der(0xa0, &[&bytes])])
    }

    fn good() -> Vec<u8> {
        single(&[7], &[0x80, 0], "20261124190000Z", Some("20261125190000Z"))
    }

    fn said(response: &[u8]) -> String {
        Staple::read(response, &certificate(&[7]), NOW).to_string()
    }

    #[test]
    fn responses_say_what_they_say() {
        let revoked = der(0xa1, &[&der(TIME, &[b"20261101000000Z"])]);
        let (this, next) = ("20261124190000Z", Some("20261125190000Z"));
        let earlier = ("20261101190000Z", Some("20261102190000Z"));
        let unknown = [0x82, 0];
        for (response, text) in [
            (response(&[good()]), "good, next update 2026-11-25 19:00 UTC"),
            (response(&[single(&[7], &revoked, this, next)]), "revoked, next update 2026-11-25 19:00 UTC"),
            (
                response(&[single(&[7], &revoked, earlier.0, earlier.1)]),
                "revoked, next update 2026-11-02 19:00 UTC",
            ),
            (response(&[single(&[7], &unknown, this, next)]), "unknown, next update 2026-11-25 19:00 UTC"),
            (
                response(&[single(&[7], &[0x80, 0], earlier.0, earlier.1)]),
                "outdated, next update 2026-11-02 19:00 UTC",
            ),
            (response(&[single(&[7], &[0x80, 0], "20261124201000Z", None)]), "outdated"),
            // Without a next update, newer responses are always there (RFC 6960, section 4.2.2.1).
            (response(&[single(&[7], &[0x80, 0], this, None)]), "good"),
            (
                response(&[single(&[8], &revoked, this, next), good()]),
                "good, next update 2026-11-25 19:00 UTC",
            ),
            (response(&[single(&[8], &[0x80, 0], this, next)]), "about another certificate"),
            (response(&[]), "about another certificate"),
            // tryLater.
            (der(SEQUENCE, &[&der(0x0a, &[&[3]])]), "unusable"),
            (b"HTTP/1.1 404 Not Found".to_vec(), "unusable"),
            (response(&[single(&[7], &[0x80, 0], "20261324190000Z", None)]), "unusable"),
        ] {
            assert_eq!(said(&response), text);
        }
        assert_eq!(StapleStatus::Good.class(), None);
        assert_eq!(StapleStatus::Revoked.class(), Some(ErrorKind::StapleRevoked));
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (text, seconds) in [
            ("19700101000000Z", 0),
            ("20000229120000Z", 951_825_600),
            ("20261124200000Z", NOW as i64),
            ("19691231235959Z", -1),
        ] {
            assert_eq!(Time::read(text.as_bytes()).map(|time| time.seconds), Some(seconds), "{text}");
        }
        for wrong in
            ["", "20261124200000", "2026112420000Z", "20261124200000+", "2026112x200000Z", "20261124240000Z"]
        {
            assert!(Time::read(wrong.as_bytes()).is_none(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..300, byte: u8) {
            said(&bytes);
            let mut damaged = response(&[good(), good()]);
            let at = at % damaged.len();
            damaged[at] = byte;
            said(&damaged);
            said(&damaged[..at]);
        }
    }
}
