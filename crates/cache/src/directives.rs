//! `Cache-Control` (RFC 9111, section 5.2): the directives that a shared cache obeys.

/// The directives of one message; several `Cache-Control` fields are combined.
///
/// Ages are in seconds. If a directive is repeated with different arguments, the more cautious value wins,
/// and an argument that is not a number counts as "already stale" (RFC 9111, section 4.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    /// Whether there is a `Cache-Control` field, so that `Pragma` has no effect.
    pub present: bool,
    /// Whether `no-store` is present.
    pub no_store: bool,
    /// Whether `no-cache` is present, with or without field names.
    pub no_cache: bool,
    /// Whether `private` is present, with or without field names.
    pub private: bool,
    /// Whether `public` is present.
    pub public: bool,
    /// Whether `must-revalidate` is present.
    pub must_revalidate: bool,
    /// Whether `proxy-revalidate` is present.
    pub proxy_revalidate: bool,
    /// Whether `only-if-cached` is present (requests).
    pub only_if_cached: bool,
    /// The argument of `max-age`.
    pub max_age: Option<u64>,
    /// The argument of `s-maxage` (replies).
    pub s_maxage: Option<u64>,
    /// The argument of `min-fresh` (requests).
    pub min_fresh: Option<u64>,
    /// The argument of `max-stale` (requests); without an argument, any staleness is acceptable.
    pub max_stale: Option<u64>,
}

/// Larger numbers of seconds are reduced to this (RFC 9111, section 1.2.2).
const MAX_SECONDS: u64 = 1 << 31;

impl Directives {
    /// Adds the directives of one field value.
    pub fn read(&mut self, value: &[u8]) {
        self.present = true;
        for_each_item(value, |item| self.directive(item));
    }

    fn directive(&mut self, item: &[u8]) {
        let (name, argument) = match item.iter().position(|&b| b == b'=') {
            Some(at) => (item[..at].trim_ascii(), Some(unquote(item[at + 1..].trim_ascii()))),
            None => (item, None),
        };
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted.as_bytes());
        match name.len() {
            6 if is("public") => self.public = true,
            7 if is("max-age") => lower(&mut self.max_age, seconds(argument).unwrap_or(0)),
            7 if is("private") => self.private = true,
            8 if is("no-store") => self.no_store = true,
            8 if is("no-cache") => self.no_cache = true,
            8 if is("s-maxage") => lower(&mut self.s_maxage, seconds(argument).unwrap_or(0)),
            9 if is("min-fresh") => {
                let value = seconds(argument).unwrap_or(MAX_SECONDS);
                self.min_fresh = Some(self.min_fresh.map_or(value, |seen| seen.max(value)));
            }
            9 if is("max-stale") => {
                let value = argument.map_or(MAX_SECONDS, |_| seconds(argument).unwrap_or(0));
                lower(&mut self.max_stale, value);
            }
            14 if is("only-if-cached") => self.only_if_cached = true,
            15 if is("must-revalidate") => self.must_revalidate = true,
            16 if is("proxy-revalidate") => self.proxy_revalidate = true,
            _ => {}
        }
    }
}

fn lower(slot: &mut Option<u64>, value: u64) {
    *slot = Some(slot.map_or(value, |seen| seen.min(value)));
}

/// A number of seconds; too many digits mean "very long", and text other than digits is `None`.
pub fn seconds(argument: Option<&[u8]>) -> Option<u64> {
    let digits = argument?;
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(polygraph_wire::body::parse_decimal(digits).map_or(MAX_SECONDS, |n| n.min(MAX_SECONDS)))
}

fn unquote(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\"").and_then(|t| t.strip_suffix(b"\"")).unwrap_or(text)
}

/// Passes the trimmed, non-empty items of a comma-separated list to `each`; commas in quoted strings do not separate (RFC 9110,
/// sections 5.6.1 and 5.6.4).
pub fn for_each_item<'a>(list: &'a [u8], mut each: impl FnMut(&'a [u8])) {
    let (mut from, mut at, mut quoted) = (0, 0, false);
    while at <= list.len() {
        match list.get(at) {
            Some(b'\\') if quoted => at += 1,
            Some(b'"') => quoted = !quoted,
            Some(b',') if quoted => {}
            Some(b',') | None => {
                let item = list[from..at].trim_ascii();
                if !item.is_empty() {
                    each(item);
                }
                from = at + 1;
            }
            Some(_) => {}
        }
        at += 1;
    }
    // After a backslash as the last byte, the index is beyond the end; the bytes so far are still an item.
    if from < list.len() {
        each(list[from..].trim_ascii());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn directives_by_example() {
        #[track_caller]
        fn check(value: &str, expected: Directives) {
            let mut got = Directives::default();
            got.read(value.as_bytes());
            assert_eq!(got, Directives { present: true, ..expected }, "{value}");
        }
        let none = Directives::default();
        check("", none);
        check("public", Directives { public: true, ..none });
        check("Public, MAX-AGE=60", Directives { public: true, max_age: Some(60), ..none });
        check("private,no-cache", Directives { private: true, no_cache: true, ..none });
        check("private=\"a, no-store\"", Directives { private: true, ..none });
        check("no-cache=\"x\\\", no-store\"", Directives { no_cache: true, ..none });
        check("max-age=\"5\" , s-maxage = 7", Directives { max_age: Some(5), s_maxage: Some(7), ..none });
        check("max-age=x", Directives { max_age: Some(0), ..none });
        check("max-age=-1", Directives { max_age: Some(0), ..none });
        check("max-age", Directives { max_age: Some(0), ..none });
        check("max-age=9, max-age=3", Directives { max_age: Some(3), ..none });
        check("max-age=99999999999999999999999", Directives { max_age: Some(MAX_SECONDS), ..none });
        check("max-stale", Directives { max_stale: Some(MAX_SECONDS), ..none });
        check("max-stale=10, min-fresh=4", Directives { max_stale: Some(10), min_fresh: Some(4), ..none });
        check("only-if-cached", Directives { only_if_cached: true, ..none });
        check(
            "must-revalidate,proxy-revalidate",
            Directives { must_revalidate: true, proxy_revalidate: true, ..none },
        );
        check("no-storex, xpublic, ,,=,=5", none);
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(value in prop::collection::vec(any::<u8>(), 0..60)) {
            Directives::default().read(&value);
        }

        #[test]
        fn plain_lists_split_at_every_comma(items in prop::collection::vec("[a-z=0-9]{1,8}", 0..6)) {
            let list = items.join(" , ");
            let mut seen = Vec::new();
            for_each_item(list.as_bytes(), |item| seen.push(String::from_utf8_lossy(item).into_owned()));
            prop_assert_eq!(seen, items);
        }
    }
}
