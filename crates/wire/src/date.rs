//! HTTP dates (RFC 9110, section 5.6.7): written and read in the IMF-fixdate form.

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Length of an IMF-fixdate.
pub const DATE_LEN: usize = 29;

/// `unix_seconds` as `Sun, 06 Nov 1994 08:49:37 GMT`, for years up to 9999.
pub fn format(unix_seconds: u64) -> String {
    let days = unix_seconds / 86_400;
    let (year, month, day) = civil_from_days(days as i64);
    let second = unix_seconds % 86_400;
    format!(
        "{}, {day:02} {} {year:04} {:02}:{:02}:{:02} GMT",
        DAYS[(days % 7) as usize],
        MONTHS[month as usize - 1],
        second / 3600,
        second / 60 % 60,
        second % 60,
    )
}

/// Seconds since 1970 of an IMF-fixdate; `None` for anything else or dates before 1970.
pub fn parse(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.trim();
    if text.len() != DATE_LEN || !text.is_ascii() || !text.ends_with(" GMT") {
        return None;
    }
    let number = |from: usize, to: usize| {
        let digits = &text.as_bytes()[from..to];
        crate::body::parse_decimal(digits)
    };
    let day = number(5, 7)?;
    let month = MONTHS.iter().position(|m| *m == &text[8..11])? as u64 + 1;
    let (year, hour, minute, second) = (number(12, 16)?, number(17, 19)?, number(20, 22)?, number(23, 25)?);
    if !(1..=31).contains(&day) || year < 1970 || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let days = days_from_civil(year as i64, month, day);
    Some(days as u64 * 86_400 + hour * 3600 + minute * 60 + second)
}

/// Year, month and day of a day number counted from 1970-01-01, and back: the usual shift of the year's start
/// to March, so that the leap day comes last in a 400-year era of 146,097 days.
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

fn days_from_civil(year: i64, month: u64, day: u64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = (month as i64 + 9) % 12;
    let day_of_year = (153 * shifted_month + 2) / 5 + day as i64 - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
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

    proptest! {
        #[test]
        fn round_trips(seconds in 0u64..253_402_300_800) {
            prop_assert_eq!(parse(format(seconds).as_bytes()), Some(seconds));
        }

        #[test]
        fn random_bytes_never_panic(text in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = parse(&text);
        }
    }
}
