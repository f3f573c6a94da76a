//! What holds for every address range.

use polygraph_addr::{AddrRange, HostRange, NumberRange, TextPart, TextRange, compact, expand};
use proptest::prelude::*;

fn span(max: u32) -> impl Strategy<Value = NumberRange> {
    (0..=max, 0..=max).prop_map(|(a, b)| NumberRange { lo: a.min(b), hi: a.max(b) })
}

fn small_span(max: u32) -> impl Strategy<Value = NumberRange> {
    (0..=max - 3, 0..=3u32).prop_map(|(lo, len)| NumberRange { lo, hi: lo + len })
}

fn name() -> impl Strategy<Value = TextRange> {
    let literal =
        prop_oneof![3 => "[-a-z_.*0-9]{1,6}", 1 => "[a-z]?\\.[0-9]{1,2}-[0-9]{1,2}(\\.[a-z]{0,2})?"];
    let part = prop_oneof![literal.prop_map(TextPart::Lit), small_span(99).prop_map(TextPart::Range)];
    prop::collection::vec(part, 0..4)
        .prop_map(|parts| TextRange::from_parts([TextPart::Lit("h".to_owned())].into_iter().chain(parts)))
}

fn host(one: fn(u32) -> BoxedStrategy<NumberRange>) -> impl Strategy<Value = HostRange> {
    prop_oneof![
        prop::array::uniform4(one(255)).prop_map(HostRange::V4),
        prop::array::uniform8(prop_oneof![Just(NumberRange::one(0)).boxed(), one(0xffff)])
            .prop_map(HostRange::V6),
        name().prop_map(HostRange::Name),
    ]
}

fn ranges(one: fn(u32) -> BoxedStrategy<NumberRange>) -> impl Strategy<Value = AddrRange> {
    let interface = prop::option::of("[a-z]{1,4}[0-9]?".prop_map(|text| text.as_str().into()));
    let port = prop::option::of(small_span(65534).prop_map(|s| NumberRange { lo: s.lo + 1, hi: s.hi + 1 }));
    (interface, host(one), port, prop::option::of(1..=32u8)).prop_map(|(interface, host, port, subnet)| {
        let subnet = if matches!(host, HostRange::Name(_)) { None } else { subnet };
        AddrRange { interface, host, port, subnet }
    })
}

proptest! {
    #[test]
    fn printed_ranges_read_back(range in ranges(|max| span(max).boxed())) {
        prop_assert_eq!(AddrRange::parse(&range.to_string()), Ok(range));
    }

    #[test]
    fn merging_keeps_members_and_order(list in prop::collection::vec(ranges(|_| small_span(9).boxed()), 0..3)) {
        let list: Vec<_> = list.into_iter().filter(|range| range.len() <= 4096).collect();
        let members = expand(&list, 1 << 20).unwrap();
        let compacted = compact(members.clone());
        prop_assert!(compacted.len() <= members.len());
        prop_assert_eq!(expand(&compacted, 1 << 20).unwrap(), members);
    }

    #[test]
    fn random_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        probe(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn random_addresses_do_no_harm(text in "[0-9a-f:./\\[\\]\\\\*-]{0,40}") {
        probe(&text);
    }
}

/// Reads the text as everything it may be and walks the ends of what comes out.
fn probe(text: &str) {
    if let Ok(range) = AddrRange::parse(text) {
        assert_eq!(AddrRange::parse(&range.to_string()).as_ref(), Ok(&range), "{text:?}");
        assert!(range.get(0).is_some() && range.get(range.len() - 1).is_some(), "{text:?}");
        assert_eq!(range.iter().take(100).count() as u64, range.len().min(100), "{text:?}");
    }
    if let Ok(range) = TextRange::parse(text) {
        assert_eq!(TextRange::parse(&range.to_string()).as_ref(), Ok(&range), "{text:?}");
        assert!(range.get(range.len() - 1).is_some(), "{text:?}");
    }
}
