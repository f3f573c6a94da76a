//! Object ids in URLs; [`Oid::path`] is the inverse.

use polygraph_traffic::hex::parse_hex;
use polygraph_traffic::id::{ID_TEXT_LEN, UniqId};
use polygraph_traffic::object::PATH_LEN;
use polygraph_traffic::{ContentKind, Oid};

/// The object that a path or URL names: a `w` followed by a world id, then the next `t` and two hex digits,
/// then the next `_` and 16 hex digits. Text before and after is ignored, so prefixes and extensions are free.
/// `None` if the URL names no object of a test.
pub fn parse(url: &[u8]) -> Option<Oid> {
    // Nearly all URLs begin with a standard path.
    url.first_chunk().and_then(Oid::of_path).or_else(|| search(url))
}

fn search(url: &[u8]) -> Option<Oid> {
    let last = url.len().checked_sub(PATH_LEN - 1)?;
    let (world_at, world) = (0..=last)
        .filter(|&at| url[at] == b'w')
        .find_map(|at| Some((at, UniqId::parse(url.get(at + 1..at + 1 + ID_TEXT_LEN)?)?)))?;
    let world_end = world_at + 1 + ID_TEXT_LEN;
    let kind_at = world_end + url[world_end..].iter().position(|&b| b == b't')? + 1;
    let kind = parse_hex(url.get(kind_at..kind_at + 2)?)? as u8;
    let name_at = kind_at + url[kind_at..].iter().position(|&b| b == b'_')? + 1;
    let name = parse_hex(url.get(name_at..name_at + 16)?)?;
    Some(Oid { world, kind: ContentKind(kind), name })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_grammar_by_example() {
        let world = UniqId { time: 0x1234_5678, mix: 0x00ab_cdef, counter: 42 };
        let oid = Oid { world, kind: ContentKind(3), name: 500 };
        let text = oid.path();
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
            let oid = Oid { world: UniqId { time, mix, counter }, kind: ContentKind(kind), name };
            prop_assert_eq!(parse(&oid.path()), Some(oid));
        }

        #[test]
        fn standard_paths_are_read_like_others(
            time: u32, mix: u32, counter: u32, kind: u8, name: u64,
            at in 0..PATH_LEN, byte in prop::sample::select(b"wt_/.:09afAFg\xff".to_vec()), rest in "[wt_/0-9a-f]{0,60}",
        ) {
            let oid = Oid { world: UniqId { time, mix, counter }, kind: ContentKind(kind), name };
            let mut url = [&oid.path()[..], rest.as_bytes()].concat();
            prop_assert_eq!((parse(&url), search(&url)), (Some(oid), Some(oid)));
            url[at] = byte;
            prop_assert_eq!(parse(&url), search(&url));
        }

        #[test]
        fn random_bytes_never_panic(url in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = parse(&url);
        }
    }
}
