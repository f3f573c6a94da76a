//! Freshness: whether a cache was allowed to send a stored reply.

use polygraph_stats::ErrorKind;
use polygraph_traffic::Catalog;
use polygraph_traffic::life::Times;

use crate::exchange::reply::ReplyMeta;
use crate::request::Request;
use crate::violation::Violation;

/// Tolerance in seconds: HTTP dates are whole seconds, and forwarding a reply takes time.
const EXPIRY_TOLERANCE_S: i64 = 2;
/// Time in seconds for which modified objects may still count as fresh, because HTTP dates and the known times of
/// requests are whole seconds.
const MODIFICATION_TOLERANCE_S: i64 = 2;

pub(crate) fn http_time(seconds: i64) -> String {
    polygraph_wire::date::format(u64::try_from(seconds).unwrap_or(0))
}

/// A 304 to a request whose condition was the second before the last modification; `times` are those of the object.
pub(crate) fn not_modified(
    catalog: &Catalog,
    request: &Request,
    reply: &ReplyMeta,
    times: Times,
    sent_at: i64,
) -> Option<Violation> {
    // The reply contradicts itself, or refers to a version that has been outdated for longer than clocks may differ.
    let contradicts = reply.last_modified.is_some_and(|modified| modified >= times.lmt);
    let outdated = sent_at >= times.lmt + MODIFICATION_TOLERANCE_S;
    if !catalog.cachable(&request.oid) || !(contradicts || outdated) {
        return None;
    }
    let violation = Violation::new(ErrorKind::FalseNotModified, "304 although the object was modified since");
    let expected = format!("the object, modified at {}", http_time(times.lmt));
    Some(violation.expected(expected, format!("304 to a condition of {}", http_time(times.lmt - 1))))
}

/// A stored reply must not be older than the last modification or expired. `sent_at` is the time of the request in
/// seconds since 1970; `times_at` returns the times of the object at a given time, if it has any.
pub(crate) fn of_copy(
    reply: &ReplyMeta,
    sent_at: i64,
    times_at: impl FnOnce(i64) -> Option<Times>,
) -> Option<Violation> {
    // This need not be the latest modification, which may be too recent to count.
    let times = times_at(sent_at - MODIFICATION_TOLERANCE_S)?;
    // Some caches update the date of a copy, but that does not make it a new version.
    let version = reply.last_modified.filter(|_| times.shows_lmt);
    if let Some(made) = [reply.date, version].into_iter().flatten().find(|made| *made < times.lmt) {
        let detail = format!("the copy is {} s older than the last modification", times.lmt - made);
        let expected = format!("a reply made at {} or later", http_time(times.lmt));
        Some(
            Violation::new(ErrorKind::Stale, detail)
                .expected(expected, format!("one of {}", http_time(made))),
        )
    } else if let Some(expires) = reply.expires
        && reply.status == 200
        && sent_at > expires + EXPIRY_TOLERANCE_S
    {
        let detail = format!("the copy expired {} s before the request", sent_at - expires);
        let expected = format!("a reply that is fresh at {}", http_time(sent_at));
        let seen = format!("one that expired at {}", http_time(expires));
        Some(Violation::new(ErrorKind::Expired, detail).expected(expected, seen))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000;

    /// What is said of a copy of an object that is modified every three seconds, the last time at `NOW`.
    fn check(sent_at: i64, shows_lmt: bool, copy: ReplyMeta) -> Option<ErrorKind> {
        let times = |moment: i64| {
            let lmt = moment - (moment - NOW).rem_euclid(3);
            Some(Times { lmt, nmt: lmt + 3, shows_lmt, expires: None })
        };
        of_copy(&ReplyMeta { status: 200, ..copy }, sent_at, times).map(|violation| violation.kind)
    }

    #[test]
    fn a_copy_several_modifications_old_is_stale_at_any_time() {
        let of = |date| ReplyMeta { date: Some(date), ..ReplyMeta::default() };
        for sent_at in NOW..NOW + 9 {
            assert_eq!(check(sent_at, true, of(NOW - 4)), Some(ErrorKind::Stale), "{sent_at}");
            assert_eq!(check(sent_at, true, of(sent_at - 2)), None, "{sent_at}");
        }
        // Of the last version but one, when the last one is too young to count.
        assert_eq!([NOW, NOW + 1].map(|sent_at| check(sent_at, true, of(NOW - 1))), [None; 2]);
        assert_eq!(check(NOW + 2, true, of(NOW - 1)), Some(ErrorKind::Stale));
    }

    #[test]
    fn a_new_date_does_not_make_a_new_version() {
        let dated_anew =
            || ReplyMeta { date: Some(NOW + 2), last_modified: Some(NOW - 3), ..ReplyMeta::default() };
        assert_eq!(check(NOW + 2, true, dated_anew()), Some(ErrorKind::Stale));
        assert_eq!(check(NOW + 2, true, ReplyMeta { last_modified: Some(NOW), ..dated_anew() }), None);
        assert_eq!(check(NOW + 2, false, dated_anew()), None, "the server does not say when it was modified");
        let expired = ReplyMeta { expires: Some(NOW - 1), ..dated_anew() };
        assert_eq!(check(NOW + 2, false, expired), Some(ErrorKind::Expired));
    }

    #[test]
    fn what_does_not_change_has_no_age() {
        assert!(of_copy(&ReplyMeta { date: Some(0), ..ReplyMeta::default() }, NOW, |_| None).is_none());
    }
}
