//! The requirements of RFC 9111 for a shared cache, as pure decisions on header fields and times.
//!
//! Wall-clock times are arguments, in milliseconds since 1970; this module does not read a clock. Ages and lifetimes
//! are also in milliseconds, because rounding to seconds matters for objects with lifetimes of a few seconds.

use polygraph_wire::date;
use polygraph_wire::head::Header;

use crate::directives::{Directives, for_each_item, seconds};

/// A reply without any explicit lifetime is fresh for this share of its age since `Last-Modified`
/// (RFC 9111, section 4.2.2) ...
const HEURISTIC_SHARE: u64 = 10;
/// ... but not for longer than a day.
const HEURISTIC_MAX_MS: u64 = 86_400_000;

/// The relevant fields of a request, collected in one pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestFacts<'b> {
    /// `Cache-Control`; `Pragma: no-cache` is used if there is none.
    pub control: Directives,
    /// The value of the last `If-None-Match` field.
    pub if_none_match: Option<&'b [u8]>,
    /// The date of `If-Modified-Since` in seconds since 1970, if it is a date.
    pub if_modified_since: Option<u64>,
    /// `If-Match`, `If-Unmodified-Since`, `If-Range` or `Range` is present, so the origin must answer.
    pub for_origin: bool,
    /// `Authorization` is present.
    pub authorization: bool,
}

impl<'b> RequestFacts<'b> {
    /// The facts that matter after the reply, of a request with this method.
    pub fn for_reply(&self, method: &str) -> ReplyRules {
        ReplyRules {
            is_get: method == "GET",
            is_head: method == "HEAD",
            is_safe: is_safe(method),
            is_idempotent: is_idempotent(method),
            no_store: self.control.no_store,
            authorization: self.authorization,
        }
    }

    /// Reads the fields of a request; `now_ms` resolves two-digit years.
    pub fn read(headers: &[Header<'b>], now_ms: u64) -> RequestFacts<'b> {
        let mut facts = RequestFacts::default();
        let mut pragma_no_cache = false;
        for header in headers {
            let is = |wanted: &str| header.name.eq_ignore_ascii_case(wanted);
            match header.name.len() {
                5 if is("range") => facts.for_origin = true,
                6 if is("pragma") => {
                    pragma_no_cache |= polygraph_wire::head::has_token(header.value, "no-cache")
                }
                8 if is("if-match") || is("if-range") => facts.for_origin = true,
                13 if is("cache-control") => facts.control.read(header.value),
                13 if is("authorization") => facts.authorization = true,
                13 if is("if-none-match") => facts.if_none_match = Some(header.value.trim_ascii()),
                17 if is("if-modified-since") => {
                    facts.if_modified_since = date::parse_any(header.value, now_ms / 1000);
                }
                19 if is("if-unmodified-since") => facts.for_origin = true,
                _ => {}
            }
        }
        if !facts.control.present {
            facts.control.no_cache = pragma_no_cache;
        }
        facts
    }
}

/// What a request says about the use of its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyRules {
    /// The method is `GET`.
    pub is_get: bool,
    /// The method is `HEAD`, so the reply has no body.
    pub is_head: bool,
    /// See [`is_safe`].
    pub is_safe: bool,
    /// See [`is_idempotent`].
    pub is_idempotent: bool,
    /// `Cache-Control` forbids to store the reply.
    pub no_store: bool,
    /// `Authorization` is present.
    pub authorization: bool,
}

/// The relevant fields of a reply, collected in one pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplyFacts<'b> {
    /// `Cache-Control`; `Pragma: no-cache` is used if there is none, as HTTP/1.0 origins expect.
    pub control: Directives,
    /// `Date` in seconds since 1970.
    pub date: Option<u64>,
    /// `Expires` in seconds since 1970; `Some(0)` if it is not a date, which means "expired".
    pub expires: Option<u64>,
    /// `Last-Modified` in seconds since 1970.
    pub last_modified: Option<u64>,
    /// `Age` in seconds.
    pub age: u64,
    /// `ETag` as sent.
    pub etag: Option<&'b [u8]>,
    /// `Vary` names `*`, so no other request can match.
    pub vary_any: bool,
    /// `Vary` is present.
    pub varies: bool,
}

impl<'b> ReplyFacts<'b> {
    /// Reads the fields of a reply; `now_ms` resolves two-digit years.
    pub fn read(headers: &[Header<'b>], now_ms: u64) -> ReplyFacts<'b> {
        let mut facts = ReplyFacts::default();
        let mut pragma_no_cache = false;
        let now = now_ms / 1000;
        for header in headers {
            let is = |wanted: &str| header.name.eq_ignore_ascii_case(wanted);
            match header.name.len() {
                3 if is("age") => facts.age = seconds(Some(header.value.trim_ascii())).unwrap_or(0),
                4 if is("date") => facts.date = date::parse_any(header.value, now),
                4 if is("etag") => facts.etag = Some(header.value.trim_ascii()),
                4 if is("vary") => {
                    facts.varies = true;
                    for_each_item(header.value, |item| facts.vary_any |= item == b"*");
                }
                6 if is("pragma") => {
                    pragma_no_cache |= polygraph_wire::head::has_token(header.value, "no-cache")
                }
                7 if is("expires") => {
                    let date = date::parse_any(header.value, now).unwrap_or(0);
                    facts.expires = Some(facts.expires.map_or(date, |seen| seen.min(date)));
                }
                13 if is("cache-control") => facts.control.read(header.value),
                13 if is("last-modified") => facts.last_modified = date::parse_any(header.value, now),
                _ => {}
            }
        }
        if !facts.control.present {
            facts.control.no_cache = pragma_no_cache;
        }
        facts
    }

    /// Whether the reply states its lifetime explicitly.
    fn explicit_lifetime(&self) -> bool {
        self.control.s_maxage.is_some() || self.control.max_age.is_some() || self.expires.is_some()
    }
}

/// Whether a complete reply to this request may be stored, and storing it is useful (RFC 9111, section 3).
///
/// This is stricter than necessary: `no-cache` replies are not stored, although they could be stored for validation,
/// and neither are replies that are immediately stale and cannot be validated.
pub fn may_store(request: &ReplyRules, status: u16, reply: &ReplyFacts<'_>, now_ms: u64) -> bool {
    let control = &reply.control;
    let understood = match status {
        // Cachable by default (RFC 9110, section 15.1), except 206, which is never stored here.
        200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501 => true,
        206 | 304 => false,
        200.. => reply.explicit_lifetime() || control.public,
        _ => false,
    };
    let authorized =
        !request.authorization || control.public || control.must_revalidate || control.s_maxage.is_some();
    let forbidden = request.no_store || control.no_store || control.private || control.no_cache;
    request.is_get
        && understood
        && authorized
        && !forbidden
        && !reply.vary_any
        && (lifetime_ms(status, reply, now_ms) > 0 || reply.etag.is_some() || reply.last_modified.is_some())
}

/// The freshness lifetime of a reply, from its generation (RFC 9111, section 4.2.1).
fn lifetime_ms(status: u16, reply: &ReplyFacts<'_>, response_ms: u64) -> u64 {
    let date = reply.date.unwrap_or(response_ms / 1000);
    let explicit = reply
        .control
        .s_maxage
        .or(reply.control.max_age)
        .or(reply.expires.map(|expires| expires.saturating_sub(date)));
    match (explicit, reply.last_modified) {
        (Some(seconds), _) => seconds * 1000,
        // Heuristics apply to statuses that are cachable by default or marked public; 302 and the like are stored
        // only with `public` or a lifetime, so no further check is necessary.
        (None, Some(modified)) if status != 302 && status != 307 => {
            (date.saturating_sub(modified) * 1000 / HEURISTIC_SHARE).min(HEURISTIC_MAX_MS)
        }
        (None, _) => 0,
    }
}

/// Age and freshness of a stored reply, which depend on the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Freshness {
    lifetime_ms: u64,
    /// The age on arrival (`corrected_initial_age`).
    initial_age_ms: u64,
    response_ms: u64,
    /// Whether it must not be used when stale, even if the client permits it.
    strict: bool,
}

/// Whether a stored reply may answer a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// The reply may be used without validation.
    Fresh,
    /// The reply may be used only after the origin has confirmed it.
    Validate,
}

impl Freshness {
    /// The freshness of a reply to a request sent at `request_ms` whose head arrived at `response_ms` (RFC 9111,
    /// section 4.2.3).
    pub fn new(status: u16, reply: &ReplyFacts<'_>, request_ms: u64, response_ms: u64) -> Freshness {
        let delay_ms = response_ms.saturating_sub(request_ms);
        let apparent = reply.date.map_or(0, |date| (response_ms / 1000).saturating_sub(date));
        let control = &reply.control;
        Freshness {
            lifetime_ms: lifetime_ms(status, reply, response_ms),
            initial_age_ms: (apparent * 1000).max(reply.age * 1000 + delay_ms),
            response_ms,
            strict: control.must_revalidate || control.proxy_revalidate || control.s_maxage.is_some(),
        }
    }

    /// The current age.
    pub fn age_ms(&self, now_ms: u64) -> u64 {
        self.initial_age_ms + now_ms.saturating_sub(self.response_ms)
    }

    /// Decides for a request with these directives (RFC 9111, sections 4.2 and 5.2.1).
    pub fn reuse(&self, request: &Directives, now_ms: u64) -> Reuse {
        let age = self.age_ms(now_ms);
        // `max-age=0` requests validation in practice, even if the reply has arrived in this millisecond.
        let too_old = request.max_age.is_some_and(|limit| limit == 0 || age > limit * 1000);
        let horizon = age + request.min_fresh.unwrap_or(0) * 1000;
        let allowance = match request.max_stale {
            Some(seconds) if !self.strict => seconds * 1000,
            _ => 0,
        };
        // "Fresh" is a lifetime *greater* than the age, so a lifetime of 0 is never fresh.
        if request.no_cache || too_old || horizon >= self.lifetime_ms + allowance {
            Reuse::Validate
        } else {
            Reuse::Fresh
        }
    }
}

/// The validators of a stored reply (RFC 9111, section 4.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validators {
    /// The value of `ETag`.
    pub etag: Option<Box<[u8]>>,
    /// `Last-Modified` in seconds since 1970.
    pub last_modified: Option<u64>,
    /// `Date`, or the time of arrival without it, in seconds since 1970.
    pub date: u64,
}

impl Validators {
    /// The validators of a reply that arrived at `response_ms`.
    pub fn of(facts: &ReplyFacts<'_>, response_ms: u64) -> Validators {
        Validators {
            etag: facts.etag.map(Box::from),
            last_modified: facts.last_modified,
            date: facts.date.unwrap_or(response_ms / 1000),
        }
    }

    /// True if the reply can be validated with the origin.
    pub fn can_validate(&self) -> bool {
        self.etag.is_some() || self.last_modified.is_some()
    }

    /// True if a `304` with these fields cannot refer to the stored reply, because it names another entity tag.
    pub fn contradict(&self, fresh: &ReplyFacts<'_>) -> bool {
        matches!((&self.etag, fresh.etag), (Some(ours), Some(theirs)) if !weakly_equal(ours, theirs))
    }

    /// Whether the client's own copy is equivalent to the stored reply, so that `304` is the answer (RFC 9110,
    /// section 13.2.2). `Date` replaces a missing `Last-Modified` (RFC 9111, section 4.3.2).
    pub fn not_modified(&self, request: &RequestFacts<'_>) -> bool {
        if let Some(list) = request.if_none_match {
            if list == b"*" {
                return true;
            }
            let mut found = false;
            for_each_item(list, |item| {
                found |= self.etag.as_ref().is_some_and(|etag| weakly_equal(item, etag));
            });
            return found;
        }
        request.if_modified_since.is_some_and(|since| self.last_modified.unwrap_or(self.date) <= since)
    }
}

/// Weak comparison of entity tags (RFC 9110, section 8.8.3.2).
pub fn weakly_equal(a: &[u8], b: &[u8]) -> bool {
    let opaque = |tag: &[u8]| if tag.starts_with(b"W/") { 2 } else { 0 };
    a[opaque(a)..] == b[opaque(b)..]
}

/// Methods that change nothing at the origin (RFC 9110, section 9.2.1).
pub fn is_safe(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE")
}

/// Methods that may be sent again when a connection broke (RFC 9110, section 9.2.2).
pub fn is_idempotent(method: &str) -> bool {
    is_safe(method) || matches!(method, "PUT" | "DELETE")
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
