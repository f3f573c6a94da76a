//! HTTP dates (RFC 9110, section 5.6.7): written in the IMF-fixdate form, read in that and the obsolete ones.

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// Length of an IMF-fixdate.
pub const DATE_LEN: usize = 29;

/// `unix_seconds` as `Sun, 06 Nov 1994 08:49:37 GMT`, for years up to 9999.
pub fn format(unix_seconds: u64) -> String {
    String::from_utf8_lossy(&text(unix_seconds)).into_owned()
}

/// Like [`format()`], without allocation.
pub fn text(unix_seconds: u64) -> [u8; DATE_LEN] {
    let days = unix_seconds / 86_400;
    let (year, month, day) = civil_from_days(days as i64);
    let second = unix_seconds % 86_400;
    let mut out = *b"Thu, 00 Jan 0000 00:00:00 GMT";
    let mut number = |at: usize, value: u64| {
        out[at] = b'0' + (value / 10 % 10) as u8;
        out[at + 1] = b'0' + (value % 10) as u8;
    };
    number(5, day);
    number(12, year as u64 / 100);
    number(14, year as u64 % 100);
    number(17, second / 3600);
    number(20, second / 60 % 60);
    number(23, second % 60);
    out[..3].copy_from_slice(DAYS[(days % 7) as usize].as_bytes());
    out[8..11].copy_from_slice(MONTHS[month as usize - 1]);
    out
}

/// Seconds since 1970 of an IMF-fixdate; `None` for anything else or dates before 1970.
pub fn parse(text: &[u8]) -> Option<u64> {
    let text: &[u8; DATE_LEN] = text.trim_ascii().try_into().ok()?;
    // Nearly every reply has two or three dates, and every part has a fixed position, so eight bytes are read
    // at a time.
    let eight = |at: usize| text[at..].first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
    if !text.is_ascii() || !text.ends_with(b" GMT") {
        return None;
    }
    // `06` and, in the other half, `1994`; then `08:49:37`.
    let date = pairs(eight(5)? & 0xffff | eight(8)? & 0xffff_ffff << 32, 0xffff_ffff_0000_ffff)?;
    let time = pairs(eight(17)?, 0xffff_00ff_ff00_ffff)?;
    let number = |pairs: u64, place: u32| pairs >> (8 * place) & 0xff;
    let year = number(date, 4) * 100 + number(date, 6);
    let month = month_number(text[8..].first_chunk()?)?;
    moment(year, month, number(date, 0), (number(time, 0), number(time, 3), number(time, 6)))
}

/// The two-digit numbers in eight bytes of ASCII, each at the position of its first digit; other positions are
/// undefined. `None` if a byte that `digits` selects is not a digit.
#[inline]
fn pairs(text: u64, digits: u64) -> Option<u64> {
    let values = (text ^ 0x3030_3030_3030_3030) & digits;
    // This sets the highest bit of everything from 10 on.
    ((values + 0x7676_7676_7676_7676) & 0x8080_8080_8080_8080 == 0).then(|| values * 10 + (values >> 8))
}

/// 1 to 12 for the name of a month as it is written in dates.
#[inline(always)]
fn month_number(name: &[u8; 3]) -> Option<u64> {
    Some(match name {
        b"Jan" => 1,
        b"Feb" => 2,
        b"Mar" => 3,
        b"Apr" => 4,
        b"May" => 5,
        b"Jun" => 6,
        b"Jul" => 7,
        b"Aug" => 8,
        b"Sep" => 9,
        b"Oct" => 10,
        b"Nov" => 11,
        b"Dec" => 12,
        _ => return None,
    })
}

/// Seconds since 1970, if every number is in its range. A day beyond the end of its month is one of the next
/// month.
#[inline(always)]
fn moment(year: u64, month: u64, day: u64, (hour, minute, second): (u64, u64, u64)) -> Option<u64> {
    if !(1..=31).contains(&day) || year < 1970 || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    Some(days_from_civil(year, month, day) as u64 * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Seconds since 1970 of a date in any of the three forms that recipients must understand (RFC 9110, section
/// 5.6.7): IMF-fixdate, the two-digit year of RFC 850, and the form of C's `asctime`.
///
/// `now` (seconds since 1970) resolves two-digit years: one that would lie more than 50 years ahead is in the
/// past century.
pub fn parse_any(text: &[u8], now: u64) -> Option<u64> {
    parse(text).or_else(|| parse_rfc850(text, now)).or_else(|| parse_asctime(text))
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`
fn parse_rfc850(text: &[u8], now: u64) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let rest = text.split_once(", ")?.1.strip_suffix(" GMT")?.as_bytes();
    if rest.len() != 18 || rest[2] != b'-' || rest[6] != b'-' || rest[9] != b' ' {
        return None;
    }
    let this_year = civil_from_days((now / 86_400) as i64).0 as u64;
    let century = this_year - this_year % 100;
    let short = crate::body::parse_decimal(&rest[7..9])?;
    let year = if century + short > this_year + 50 { century - 100 + short } else { century + short };
    from_parts(year, &rest[3..6], &rest[0..2], &rest[10..18])
}

/// `Sun Nov  6 08:49:37 1994`
fn parse_asctime(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    if text.len() != 24 || text[3] != b' ' || text[7] != b' ' || text[10] != b' ' || text[19] != b' ' {
        return None;
    }
    let year = crate::body::parse_decimal(&text[20..24])?;
    from_parts(year, &text[4..7], text[8..10].trim_ascii(), &text[11..19])
}

/// From a year, the name of a month, a day of the month and `hh:mm:ss`.
fn from_parts(year: u64, month: &[u8], day: &[u8], time: &[u8]) -> Option<u64> {
    let month = month_number(month.try_into().ok()?)?;
    let day = crate::body::parse_decimal(day)?;
    let number = |from: usize| crate::body::parse_decimal(time.get(from..from + 2)?);
    let time_of_day = (number(0)?, number(3)?, number(6)?);
    let separated = time[2] == b':' && time[5] == b':';
    separated.then(|| moment(year, month, day, time_of_day)).flatten()
}

/// Seconds since 1970 of the date of a cookie, in any of the many forms in use: the algorithm of RFC 6265,
/// section 5.1.1, looks for the first word that can be a time, a day, a month and a year. Years 0 to 69 are in
/// this century; dates before 1970 become 0.
pub fn parse_cookie(text: &[u8]) -> Option<u64> {
    let is_delimiter = |b: &u8| matches!(b, 0x09 | 0x20..=0x2f | 0x3b..=0x40 | 0x5b..=0x60 | 0x7b..=0x7e);
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for word in text.split(is_delimiter).filter(|word| !word.is_empty()) {
        if time.is_none() && cookie_time(word).is_some() {
            time = cookie_time(word);
        } else if day.is_none() && leading_number(word, 1..=2).is_some() {
            day = leading_number(word, 1..=2).map(|(day, _)| day);
        } else if month.is_none() && month_of(word).is_some() {
            month = month_of(word);
        } else if year.is_none() {
            year = leading_number(word, 2..=4).map(|(year, _)| year);
        }
    }
    let (time, day, month) = (time?, day?, month?);
    let year = match year? {
        short @ 0..=69 => short + 2000,
        short @ 70..=99 => short + 1900,
        full => full,
    };
    if !(1..=31).contains(&day) || year < 1601 {
        return None;
    }
    let days = days_from_civil(year, month, day);
    Some(u64::try_from(days).map_or(0, |days| days * 86_400 + time))
}

/// Seconds of a day from `hh:mm:ss`, with one or two digits each.
fn cookie_time(word: &[u8]) -> Option<u64> {
    let (hour, rest) = leading_number(word, 1..=2)?;
    let (minute, rest) = leading_number(rest.strip_prefix(b":")?, 1..=2)?;
    let (second, _) = leading_number(rest.strip_prefix(b":")?, 1..=2)?;
    (hour <= 23 && minute <= 59 && second <= 59).then_some(hour * 3600 + minute * 60 + second)
}

/// The digits at the start of a word, if their count is in the range, and the rest of the word.
fn leading_number(word: &[u8], digits: std::ops::RangeInclusive<usize>) -> Option<(u64, &[u8])> {
    let count = word.iter().take_while(|b| b.is_ascii_digit()).count();
    if !digits.contains(&count) {
        return None;
    }
    Some((crate::body::parse_decimal(&word[..count])?, &word[count..]))
}

/// 1 to 12 if a word begins with the name of a month.
fn month_of(word: &[u8]) -> Option<u64> {
    let name = word.get(..3)?;
    MONTHS.iter().position(|month| month.eq_ignore_ascii_case(name)).map(|index| index as u64 + 1)
}

/// Year, month and day of a day number counted from 1970-01-01: the usual shift of the year's start to March, so
/// that the leap day comes last in a 400-year era of 146,097 days.
fn civil_from_days(days: i64) -> (i64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month as u64, day as u64)
}

/// The day number, counted from 1970-01-01, of a day of a month (1 to 12) of a year from 1 on.
fn days_from_civil(year: u64, month: u64, day: u64) -> i64 {
    /// The number of days before each month in a year that is not a leap year.
    const BEFORE: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    // The number of years whose leap day, if any, has passed.
    let past = if month <= 2 { year - 1 } else { year };
    let leap_days = past / 4 - past / 100 + past / 400;
    let before = BEFORE[month as usize - 1];
    (year * 365 + leap_days + before + day) as i64 - 719_528
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_dates() {
        assert_eq!(format(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(parse(b"Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(format(0), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(format(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        for bad in [
            "",
            "Sun, 06 Nov 1994 08:49:37",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:49:37 GMT",
        ] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }

    /// A simple version of [`parse`] to compare with.
    fn parse_simply(text: &[u8]) -> Option<u64> {
        let text = std::str::from_utf8(text).ok()?.trim_ascii();
        let number = |places: std::ops::Range<usize>| crate::body::parse_decimal(text[places].as_bytes());
        if text.len() != DATE_LEN || !text.is_ascii() || !text.ends_with(" GMT") {
            return None;
        }
        let month = MONTHS.iter().position(|month| text.as_bytes()[8..11] == **month)?;
        let (day, year) = (number(5..7)?, number(12..16)?);
        let (hour, minute, second) = (number(17..19)?, number(20..22)?, number(23..25)?);
        let is_leap =
            |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let february = |year| 28 + u64::from(is_leap(year));
        let months = [31, february(year), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let years: u64 = (1970..year).map(|year| 337 + february(year)).sum();
        let days = years + months[..month].iter().sum::<u64>() + day;
        let valid = day > 0 && day < 32 && year >= 1970 && hour < 24 && minute < 60 && second <= 60;
        valid.then(|| (days - 1) * 86_400 + hour * 3600 + minute * 60 + second)
    }

    #[test]
    fn every_day_of_the_calendar() {
        // More than a cycle of 400 years, starting before 1970.
        for days in -140_000..20_000 {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year as u64, month, day), days, "{year}-{month}-{day}");
        }
    }

    #[test]
    fn obsolete_forms() {
        const NOW: u64 = 1_767_225_600; // 2026
        #[track_caller]
        fn check(text: &str, expected: Option<u64>) {
            assert_eq!(parse_any(text.as_bytes(), NOW), expected, "{text}");
        }
        check("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777));
        check("Sunday, 06-Nov-94 08:49:37 GMT", Some(784_111_777));
        check("Sun Nov  6 08:49:37 1994", Some(784_111_777));
        check("Sun Nov 06 08:49:37 1994", Some(784_111_777));
        check("Thursday, 01-Jan-26 00:00:00 GMT", Some(NOW));
        check("Wednesday, 01-Jan-76 00:00:00 GMT", Some(3_345_062_400));
        check("Saturday, 01-Jan-77 00:00:00 GMT", Some(220_924_800));
        check("Sunday, 06-Nov-94 08:49:37", None);
        check("Sunday, 06-Foo-94 08:49:37 GMT", None);
        check("Sun Nov  6 08-49-37 1994", None);
        check("Sun Nov  0 08:49:37 1994", None);
    }

    #[test]
    fn dates_of_cookies() {
        #[track_caller]
        fn check(text: &str, expected: Option<u64>) {
            assert_eq!(parse_cookie(text.as_bytes()), expected, "{text}");
        }
        for same in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun, 06-Nov-1994 08:49:37 GMT",
            "8:49:37 6 november 94",
        ] {
            check(same, Some(784_111_777));
        }
        check("Fri, 01-Jan-1960 00:00:00 GMT", Some(0));
        check("01 Jan 69 00:00:00", Some(3_124_224_000));
        for bad in ["", "06 Nov 1994", "08:49:37 1994", "06 Nov 1994 24:00:00", "32 Nov 1994 00:00:00"] {
            check(bad, None);
        }
        check("06 Nov 1600 00:00:00", None);
        check("06 Nov 19945 00:00:00", None);
    }

    proptest! {
        #[test]
        fn random_dates_never_panic(text in "[A-Za-z]{3,9}[, ]{1,2}[0-9A-Za-z:, -]{0,24}( GMT)?") {
            let _ = parse_any(text.as_bytes(), 0);
        }

        #[test]
        fn round_trips(seconds in 0u64..253_402_300_800) {
            prop_assert_eq!(parse(format(seconds).as_bytes()), Some(seconds));
            prop_assert_eq!(parse_cookie(format(seconds).as_bytes()), Some(seconds));
        }

        #[test]
        fn dates_with_wrong_bytes_are_what_they_are_to_a_simple_parser(
            seconds in 0u64..253_402_300_800,
            wrong in prop::collection::vec((0..DATE_LEN, prop_oneof![Just(b' '), b'0'..=b':', any::<u8>()]), 0..3),
            day_of_month in 0u8..40,
            year in 1960u16..2500,
        ) {
            let mut date = text(seconds);
            for (at, byte) in wrong {
                date[at] = byte;
            }
            prop_assert_eq!(parse(&date), parse_simply(&date), "{}", String::from_utf8_lossy(&date));
            let date = format!("Sun, {day_of_month:02} Feb {year:04} 23:59:60 GMT");
            prop_assert_eq!(parse(date.as_bytes()), parse_simply(date.as_bytes()), "{}", date);
        }

        #[test]
        fn random_bytes_never_panic(text in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = parse_any(&text, 0);
            let _ = parse_cookie(&text);
        }
    }
}
