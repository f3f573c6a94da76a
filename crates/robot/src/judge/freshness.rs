//! Freshness: whether a cache was allowed to send a stored reply.

use polygraph_stats::ErrorKind;
use polygraph_traffic::Catalog;
use polygraph_traffic::life::{CLASSIC_MAX_AGE, Times};

use crate::exchange::reply::ReplyMeta;
use crate::request::Request;
use crate::settings::ToldFreshness;
use crate::violation::Violation;

/// Tolerance in seconds: HTTP dates are whole seconds, and forwarding a reply takes time.
const EXPIRY_TOLERANCE_S: i64 = 2;
/// Time in seconds for which modified objects may still count as fresh, because HTTP dates and the known times of
/// requests are whole seconds.
const MODIFICATION_TOLERANCE_S: i64 = 2;

/// The end of the year 9999, in seconds since 1970: HTTP has no later dates.
const LAST_DATE: i64 = 253_402_300_799;

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

/// What a reply says of the freshness of an object that may be stored, if it is not what the server sent at the time of its `Date`.
/// `times_at` returns the times of the object at a given time, if it has any.
pub(crate) fn changed(
    told: ToldFreshness,
    reply: &ReplyMeta,
    times_at: impl Fn(i64) -> Option<Times>,
) -> Option<Violation> {
    let made = reply.date.filter(|_| told != ToldFreshness::Configured)?;
    let expected = |moment| {
        let times = times_at(moment);
        let is_classic = told == ToldFreshness::Classic && times.is_none();
        (times.and_then(|times| times.expires), is_classic.then_some(CLASSIC_MAX_AGE))
    };
    let same = |(expires, max_age): (Option<i64>, Option<u64>)| {
        max_age == reply.max_age
            && match (expires, reply.expires) {
                (Some(sent), Some(seen)) => sent.max(0).abs_diff(seen) <= EXPIRY_TOLERANCE_S as u64,
                (sent, seen) => sent.is_none() && seen.is_none(),
            }
    };
    // The object may have been modified within the second of `Date`.
    let sent = expected(made);
    let is_writable = sent.0.is_none_or(|expires| expires < LAST_DATE);
    if !is_writable || same(sent) || [made - 1, made + 1].into_iter().any(|moment| same(expected(moment))) {
        return None;
    }
    let text = |(expires, max_age): (Option<i64>, Option<u64>)| {
        let expires =
            expires.map_or_else(|| "no Expires".to_owned(), |at| format!("Expires: {}", http_time(at)));
        let max_age = max_age.map_or_else(String::new, |age| format!(", max-age={age}"));
        format!("{expires}{max_age}")
    };
    let seen = (reply.expires, reply.max_age);
    let detail = format!("{} of a reply with Date: {}", text(seen), http_time(made));
    Some(Violation::new(ErrorKind::FreshnessChanged, detail).expected(text(sent), text(seen)))
}

/// What a reply lacks of the fields in which the server said how long the object may be used: without them, nobody can tell that a copy is
/// too old. `times` returns the times of the object, which are only computed if a field is missing.
pub(crate) fn hidden(
    told: ToldFreshness,
    reply: &ReplyMeta,
    times: impl FnOnce() -> Option<Times>,
) -> Option<Violation> {
    let ends_itself = reply.expires.is_some() || reply.max_age.is_some();
    if ends_itself && reply.last_modified.is_some()
        || told == ToldFreshness::Configured
        || reply.status != 200
    {
        return None;
    }
    let times = times();
    let ends = match times {
        Some(times) => times.expires.is_some_and(|expires| expires < LAST_DATE),
        None => told == ToldFreshness::Classic,
    };
    let missing = match times {
        _ if ends && !ends_itself => "Expires or max-age",
        Some(times) if times.shows_lmt && reply.last_modified.is_none() => "Last-Modified",
        _ => return None,
    };
    Some(Violation::new(ErrorKind::FreshnessChanged, format!("no {missing}")).expected(missing, "none"))
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

    #[test]
    fn lifetimes_that_servers_did_not_send_are_changed() {
        use ToldFreshness::{Classic, Configured, LifeCycle};
        // Modified every three seconds, the last time at `NOW`; expires with the next modification.
        let lives = |moment: i64| {
            let lmt = moment - (moment - NOW).rem_euclid(3);
            Some(Times { lmt, nmt: lmt + 3, shows_lmt: true, expires: Some(lmt + 3) })
        };
        let reply = |expires, max_age| ReplyMeta {
            status: 200,
            date: Some(NOW),
            expires,
            max_age,
            ..ReplyMeta::default()
        };
        let kind = |told, reply: &ReplyMeta| changed(told, reply, lives).map(|violation| violation.kind);
        let found = Some(ErrorKind::FreshnessChanged);
        assert_eq!(kind(LifeCycle, &reply(Some(NOW + 3), None)), None);
        assert_eq!(kind(LifeCycle, &reply(Some(NOW), None)), None, "made in the second before");
        for (expires, max_age) in [(Some(NOW + 60), None), (None, None), (Some(NOW + 3), Some(60))] {
            assert_eq!(kind(LifeCycle, &reply(expires, max_age)), found, "{expires:?} {max_age:?}");
            assert_eq!(kind(Classic, &reply(expires, max_age)), found, "{expires:?} {max_age:?}");
            assert_eq!(kind(Configured, &reply(expires, max_age)), None);
        }
        assert_eq!(kind(LifeCycle, &ReplyMeta { date: None, ..reply(None, None) }), None);
        let still = |told, reply: &ReplyMeta| changed(told, reply, |_| None).map(|violation| violation.kind);
        assert_eq!(still(LifeCycle, &reply(None, None)), None);
        assert_eq!(still(LifeCycle, &reply(Some(NOW + 60), None)), found);
        assert_eq!(still(Classic, &reply(None, Some(CLASSIC_MAX_AGE))), None);
        assert_eq!(still(Classic, &reply(None, None)), found);
        let hides =
            |told, reply: &ReplyMeta, times| hidden(told, reply, || times).map(|violation| violation.kind);
        let modified = |reply| ReplyMeta { last_modified: Some(NOW), ..reply };
        for (reply, expected) in [
            (modified(reply(Some(NOW + 60), None)), None),
            (modified(reply(None, Some(60))), None),
            (modified(reply(None, None)), found),
            (reply(Some(NOW + 3), None), found),
        ] {
            assert_eq!(hides(LifeCycle, &reply, lives(NOW)), expected, "{reply:?}");
            assert_eq!(hides(Configured, &reply, lives(NOW)), None);
            assert_eq!(hides(LifeCycle, &reply, None), None);
        }
        assert_eq!(hides(Classic, &reply(None, None), None), found);
        let never = |_| Some(Times { lmt: 0, nmt: i64::MAX, shows_lmt: false, expires: Some(i64::MAX) });
        assert!(changed(LifeCycle, &reply(Some(NOW), None), never).is_none(), "HTTP has no such date");
        assert!(hides(LifeCycle, &reply(None, None), never(NOW)).is_none());
    }
}
