//! Byte ranges (RFC 9110, section 14): ranges in requests, their bytes in an entity, and ranges in replies.

use polygraph_traffic::ranges::RangeSpec;

use crate::body::parse_decimal;
use crate::decimal;

/// The largest number of ranges in a set; a reply to more would have more framing than content.
pub const MAX_SPECS: usize = 1000;

/// The bytes of an entity of `size` bytes that an item selects; `None` if it selects none, so that it cannot be
/// satisfied (RFC 9110, section 14.1.2).
fn resolve(spec: RangeSpec, size: u64) -> Option<ByteRange> {
    let (first, end) = spec.within(size);
    ByteRange::new(first, end.checked_sub(1)?)
}

fn write_spec(spec: RangeSpec, out: &mut Vec<u8>) {
    match spec {
        RangeSpec::FromTo(first, last) => ByteRange { first, last }.write(out),
        RangeSpec::From(first) => {
            decimal::write(out, first);
            out.push(b'-');
        }
        RangeSpec::Suffix(n) => {
            out.push(b'-');
            decimal::write(out, n);
        }
    }
}

fn parse_spec(item: &[u8]) -> Option<RangeSpec> {
    let dash = item.iter().position(|&b| b == b'-')?;
    let (first, last) = (&item[..dash], &item[dash + 1..]);
    if first.is_empty() {
        return decimal::parse_saturating(last).map(RangeSpec::Suffix);
    }
    let first = decimal::parse_saturating(first)?;
    if last.is_empty() {
        return Some(RangeSpec::From(first));
    }
    let last = decimal::parse_saturating(last)?;
    (first <= last).then_some(RangeSpec::FromTo(first, last))
}

/// The valid set of a `Range` field: at least one item, in the order of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeSet<'a> {
    items: &'a [u8],
}

impl<'a> RangeSet<'a> {
    /// Reads the value of a `Range` field. `None` for other units and for sets that are not valid as a whole:
    /// such a field is to be ignored (RFC 9110, section 14.2).
    pub fn parse(value: &'a [u8]) -> Option<RangeSet<'a>> {
        let value = value.trim_ascii();
        let (unit, items) = value.split_at_checked(6)?;
        if !unit.eq_ignore_ascii_case(b"bytes=") {
            return None;
        }
        let mut count = 0;
        for item in list(items) {
            parse_spec(item)?;
            count += 1;
        }
        (1..=MAX_SPECS).contains(&count).then_some(RangeSet { items })
    }

    /// The items.
    pub fn specs(self) -> impl Iterator<Item = RangeSpec> + 'a {
        list(self.items).filter_map(parse_spec)
    }

    /// The selected bytes of an entity of `size` bytes, item by item, without items that cannot be satisfied.
    /// If no item can, the status is 416.
    pub fn resolve(self, size: u64) -> impl Iterator<Item = ByteRange> + 'a {
        self.specs().filter_map(move |spec| resolve(spec, size))
    }
}

/// Items of a comma-separated list without empty ones (RFC 9110, section 5.6.1.2).
fn list(items: &[u8]) -> impl Iterator<Item = &[u8]> {
    items.split(|&b| b == b',').map(<[u8]>::trim_ascii).filter(|item| !item.is_empty())
}

/// Appends the value of a `Range` field: `bytes=0-9,20-,-5`.
pub fn write_range(specs: impl IntoIterator<Item = RangeSpec>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"bytes=");
    for (index, spec) in specs.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_spec(spec, out);
    }
}

/// Bytes `first` to `last` of an entity, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteRange {
    first: u64,
    last: u64,
}

impl ByteRange {
    /// `None` if `last < first`, or for the one range whose length would not fit in 64 bits.
    pub fn new(first: u64, last: u64) -> Option<ByteRange> {
        (first <= last && last - first < u64::MAX).then_some(ByteRange { first, last })
    }

    /// Position of the first byte.
    pub fn first(self) -> u64 {
        self.first
    }

    /// Position of the last byte.
    pub fn last(self) -> u64 {
        self.last
    }

    /// Number of bytes, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "a range is never empty")]
    pub fn len(self) -> u64 {
        self.last - self.first + 1
    }

    fn write(self, out: &mut Vec<u8>) {
        decimal::write(out, self.first);
        out.push(b'-');
        decimal::write(out, self.last);
    }
}

/// The value of `Content-Range` (RFC 9110, section 14.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentRange {
    /// `bytes 0-9/100`, or `bytes 0-9/*` if the size of the entity is not given.
    Part(ByteRange, Option<u64>),
    /// `bytes */100` of a reply with status 416.
    Unsatisfied(u64),
}

impl ContentRange {
    /// Appends the text form.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"bytes ");
        let size = match *self {
            ContentRange::Part(range, size) => {
                range.write(out);
                size
            }
            ContentRange::Unsatisfied(size) => {
                out.push(b'*');
                Some(size)
            }
        };
        out.push(b'/');
        match size {
            Some(size) => decimal::write(out, size),
            None => out.push(b'*'),
        }
    }

    /// Bytes that [`ContentRange::write`] appends.
    pub fn text_len(&self) -> usize {
        let (range, size) = match *self {
            ContentRange::Part(range, size) => {
                (decimal::len(range.first) + 1 + decimal::len(range.last), size.map_or(1, decimal::len))
            }
            ContentRange::Unsatisfied(size) => (1, decimal::len(size)),
        };
        "bytes ".len() + range + 1 + size
    }

    /// Reads the text form. `None` for anything else, for a range beyond the entity's end, and for numbers of
    /// more than 18 digits.
    pub fn parse(value: &[u8]) -> Option<ContentRange> {
        let (unit, rest) = value.trim_ascii().split_at_checked(6)?;
        if !unit.eq_ignore_ascii_case(b"bytes ") {
            return None;
        }
        let rest = rest.trim_ascii_start();
        let slash = rest.iter().position(|&b| b == b'/')?;
        let (range, size) = (&rest[..slash], &rest[slash + 1..]);
        let size = if size == b"*" { None } else { Some(parse_decimal(size)?) };
        if range == b"*" {
            return size.map(ContentRange::Unsatisfied);
        }
        let dash = range.iter().position(|&b| b == b'-')?;
        let range = ByteRange::new(parse_decimal(&range[..dash])?, parse_decimal(&range[dash + 1..])?)?;
        size.is_none_or(|size| range.last < size).then_some(ContentRange::Part(range, size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RangeSpec::{From, FromTo, Suffix};
    use proptest::prelude::*;

    #[test]
    fn sets_by_example() {
        #[track_caller]
        fn check(value: &str, expected: Option<&[RangeSpec]>) {
            let got = RangeSet::parse(value.as_bytes()).map(|set| set.specs().collect::<Vec<_>>());
            assert_eq!(got.as_deref(), expected, "{value}");
        }
        check("bytes=0-499", Some(&[FromTo(0, 499)]));
        check("bytes=9500-", Some(&[From(9500)]));
        check("bytes=-500", Some(&[Suffix(500)]));
        check("Bytes= 0-999, 4500-5499 ,, -1000 ", Some(&[FromTo(0, 999), FromTo(4500, 5499), Suffix(1000)]));
        check("bytes=0-99999999999999999999999", Some(&[FromTo(0, u64::MAX)]));
        for bad in ["", "bytes", "bytes=", "bytes=,", "bytes=-", "bytes=5-4", "bytes=0-1,x", "lines=0-1"] {
            check(bad, None);
        }
        for bad in ["bytes=0-1,5-4", "bytes=1 - 2", "bytes 0-1", "bytes=0-1-2", "bytes=+1-2", "bytes=0x1-2"] {
            check(bad, None);
        }
        check(&format!("bytes={}", "0-,".repeat(MAX_SPECS + 1)), None);
    }

    #[test]
    fn resolution_by_example() {
        #[track_caller]
        fn check(spec: RangeSpec, size: u64, expected: Option<(u64, u64)>) {
            assert_eq!(resolve(spec, size).map(|r| (r.first(), r.last())), expected, "{spec:?} of {size}");
        }
        check(FromTo(0, 499), 10_000, Some((0, 499)));
        check(FromTo(9500, 20_000), 10_000, Some((9500, 9999)));
        check(FromTo(10_000, 10_001), 10_000, None);
        check(From(9999), 10_000, Some((9999, 9999)));
        check(From(10_000), 10_000, None);
        check(Suffix(1), 10_000, Some((9999, 9999)));
        check(Suffix(20_000), 10_000, Some((0, 9999)));
        check(Suffix(0), 10_000, None);
        check(From(0), 0, None);
        check(Suffix(5), 0, None);
    }

    #[test]
    fn content_ranges_by_example() {
        let part = |first, last, size| Some(ContentRange::Part(ByteRange { first, last }, size));
        for (value, expected) in [
            ("bytes 42-1233/1234", part(42, 1233, Some(1234))),
            ("bytes 42-1233/*", part(42, 1233, None)),
            ("Bytes 0-0/1", part(0, 0, Some(1))),
            ("bytes */1234", Some(ContentRange::Unsatisfied(1234))),
            ("bytes */*", None),
            ("bytes 5-4/10", None),
            ("bytes 0-10/10", None),
            ("bytes 0-/10", None),
            ("bytes -4/10", None),
            ("bytes 0-4", None),
            ("bytes=0-4/10", None),
            ("items 0-4/10", None),
            ("bytes 0-4/1234567890123456789", None),
            ("", None),
        ] {
            assert_eq!(ContentRange::parse(value.as_bytes()), expected, "{value}");
        }
    }

    fn spec() -> impl Strategy<Value = RangeSpec> {
        prop_oneof![
            (any::<u64>(), any::<u64>()).prop_map(|(a, b)| FromTo(a.min(b), a.max(b))),
            any::<u64>().prop_map(From),
            any::<u64>().prop_map(Suffix),
        ]
    }

    proptest! {
        #[test]
        fn sets_round_trip(specs in prop::collection::vec(spec(), 1..20)) {
            let mut text = Vec::new();
            write_range(specs.iter().copied(), &mut text);
            prop_assert_eq!(RangeSet::parse(&text).unwrap().specs().collect::<Vec<_>>(), specs);
        }

        #[test]
        fn resolved_ranges_lie_inside(spec in spec(), size: u64) {
            if let Some(range) = resolve(spec, size) {
                prop_assert!(range.first() <= range.last() && range.last() < size);
                prop_assert!((1..=size).contains(&range.len()));
            }
        }

        #[test]
        fn content_ranges_round_trip(a in 0..1u64 << 59, b in 0..1u64 << 59, more in 1..1u64 << 50, form in 0..3) {
            let range = ByteRange { first: a.min(b), last: a.max(b) };
            let value = match form {
                0 => ContentRange::Part(range, Some(range.last + more)),
                1 => ContentRange::Part(range, None),
                _ => ContentRange::Unsatisfied(a),
            };
            let mut text = Vec::new();
            value.write(&mut text);
            prop_assert_eq!(text.len(), value.text_len());
            prop_assert_eq!(ContentRange::parse(&text), Some(value));
        }

        #[test]
        fn random_text_never_panics(text in "(bytes[= ])?[-0-9,*/ x]{0,40}", size: u64) {
            if let Some(set) = RangeSet::parse(text.as_bytes()) {
                set.resolve(size).for_each(drop);
            }
            let _ = ContentRange::parse(text.as_bytes());
        }
    }
}
