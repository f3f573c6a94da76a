//! The benchmark's URL grammar: `/w<world>/t<kind>/_<name>`, exactly 50 characters.
//!
//! ```text
//! /w12345678.00abcdef:0000002a/t03/_00000000000001f4
//!   └── world id (26) ───────┘  └kind └── name (16 hex digits)
//! ```

use polygraph_traffic::id::{ID_TEXT_LEN, UniqId, parse_hex, write_hex};
use polygraph_traffic::{Kind, Oid};

/// Length of a standard path.
pub const PATH_LEN: usize = 50;

const WORLD_AT: usize = 2;
const KIND_AT: usize = WORLD_AT + ID_TEXT_LEN + 2;
const NAME_AT: usize = KIND_AT + 2 + 2;

/// The path of an object.
pub fn path(oid: &Oid) -> [u8; PATH_LEN] {
    let mut out = *b"/w00000000.00000000:00000000/t00/_0000000000000000";
    out[WORLD_AT..WORLD_AT + ID_TEXT_LEN].copy_from_slice(&oid.world.text());
    write_hex(&mut out[KIND_AT..KIND_AT + 2], u64::from(oid.kind.0));
    write_hex(&mut out[NAME_AT..], oid.name);
    out
}

/// The object a path or URL names: a `w` followed by a world id, then the next `t` and two hex digits, then
/// the next `_` and 16 hex digits. What stands before and after is ignored, so prefixes and extensions are
/// free. `None` if the URL is not ours.
pub fn parse(url: &[u8]) -> Option<Oid> {
    let last = url.len().checked_sub(PATH_LEN - 1)?;
    let (world_at, world) = (0..=last)
        .filter(|&at| url[at] == b'w')
        .find_map(|at| Some((at, UniqId::parse(url.get(at + 1..at + 1 + ID_TEXT_LEN)?)?)))?;
    let world_end = world_at + 1 + ID_TEXT_LEN;
    let kind_at = world_end + url[world_end..].iter().position(|&b| b == b't')? + 1;
    let kind = parse_hex(url.get(kind_at..kind_at + 2)?)? as u8;
    let name_at = kind_at + url[kind_at..].iter().position(|&b| b == b'_')? + 1;
    let name = parse_hex(url.get(name_at..name_at + 16)?)?;
    Some(Oid { world, kind: Kind(kind), name })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_grammar_by_example() {
        let world = UniqId { time: 0x1234_5678, mix: 0x00ab_cdef, counter: 42 };
        let oid = Oid { world, kind: Kind(3), name: 500 };
        let text = path(&oid);
        assert_eq!(&text[..], b"/w12345678.00abcdef:0000002a/t03/_00000000000001f4");
        assert_eq!(parse(&text), Some(oid));
        let dressed = [b"http://www:80/images" as &[u8], &text, b".gif?x=1"].concat();
        assert_eq!(parse(&dressed), Some(oid));
        let look_alike = [b"http://webserver.internal:8080" as &[u8], &text].concat();
        assert_eq!(parse(&look_alike), Some(oid));
        for bad in ["", "/", "/index.html", "/w12345678.00abcdef:0000002a/t03/", "/w/t/_"] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(parse(&text[..49]), None);
    }

    proptest! {
        #[test]
        fn round_trips(time: u32, mix: u32, counter: u32, kind: u8, name: u64) {
            let oid = Oid { world: UniqId { time, mix, counter }, kind: Kind(kind), name };
            prop_assert_eq!(parse(&path(&oid)), Some(oid));
        }

        #[test]
        fn random_bytes_never_panic(url in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = parse(&url);
        }
    }
}
