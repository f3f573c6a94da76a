//! A body is the same bytes, however it is taken apart.

use std::io::IoSlice;

use polygraph_traffic::{Body, ContentKind, Oid};
use proptest::prelude::*;

use crate::robust::{any_catalog, any_world, small_sizes};

fn slices(body: &Body, count: usize) -> Vec<u8> {
    let mut slices = vec![IoSlice::new(&[]); count];
    let used = body.slices(&mut slices);
    slices[..used].iter().flat_map(|slice| slice.to_vec()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn cuts_do_not_change_bodies(
        catalog in any_catalog(small_sizes()),
        world in any_world(),
        kind in 3u8..7,
        name in any::<u64>(),
        steps in proptest::collection::vec((0u64..4, 0u64..6_000), 1..20),
        flip in any::<prop::sample::Index>(),
    ) {
        let oid = Oid { world, kind: ContentKind(kind), name };
        let url = b"http://some.host/of/a/url";
        let mut body = catalog.body(&oid, url);
        let whole = body.to_vec();
        prop_assert_eq!(whole.len() as u64, catalog.size(&oid));
        prop_assert_eq!(catalog.body(&oid, url).to_vec(), whole.clone());
        let mut rest = &whole[..];
        for (what, n) in steps {
            let at = (n as usize).min(rest.len());
            match what {
                0 => {
                    body.advance(n);
                    rest = &rest[at..];
                }
                1 => {
                    // Rarely, or nothing is left soon.
                    let keep = n * 8;
                    body.truncate(keep);
                    rest = &rest[..(keep as usize).min(rest.len())];
                }
                2 => {
                    prop_assert_eq!(body.compare(&rest[..at]), at);
                    rest = &rest[at..];
                }
                _ => {
                    let sent = slices(&body, 1 + n as usize % 8);
                    prop_assert!(rest.starts_with(&sent) && sent.is_empty() == rest.is_empty());
                    prop_assert!(sent.starts_with(body.chunk()));
                }
            }
            prop_assert_eq!(body.len(), rest.len() as u64);
            prop_assert_eq!(body.is_empty(), rest.is_empty());
        }
        prop_assert_eq!(body.to_vec(), rest);
        if !rest.is_empty() {
            let at = flip.index(rest.len());
            let mut wrong = rest.to_vec();
            wrong[at] ^= 0x20;
            prop_assert_eq!(body.clone().compare(&wrong), at);
            let longer = [rest, b"x"].concat();
            prop_assert_eq!(body.clone().compare(&longer), rest.len());
        }
    }
}
