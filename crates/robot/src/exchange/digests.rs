//! Digests of objects that a robot has computed: few objects have `Content-MD5`, and those are often requested again.

use polygraph_traffic::Oid;

/// Number of digests that are kept: of a hundred times as many objects, if one in a hundred has one.
const KEPT: usize = 1024;

/// An object, and its size in bytes.
type Whole = (Oid, u64);

/// The digests of some objects with their sizes, each in the only place that it can have. Without any, it takes no memory.
#[derive(Debug, Default)]
pub struct KnownDigests(Vec<Option<(Whole, [u8; 16])>>);

impl KnownDigests {
    fn place(oid: Oid) -> usize {
        oid.hash() as usize % KEPT
    }

    /// The digest of the object, if it is known.
    pub fn get(&self, whole: Whole) -> Option<[u8; 16]> {
        let kept = self.0.get(KnownDigests::place(whole.0)).copied().flatten();
        kept.filter(|(known, _)| *known == whole).map(|(_, digest)| digest)
    }

    /// Keeps the digest of an object, in place of another.
    pub fn keep(&mut self, whole: Whole, digest: [u8; 16]) {
        self.0.resize(KEPT, None);
        self.0[KnownDigests::place(whole.0)] = Some((whole, digest));
    }
}

#[cfg(test)]
mod tests {
    use polygraph_traffic::{ContentKind, UniqId};

    use super::*;

    #[test]
    fn digests_are_those_of_their_objects_and_the_newest_stay() {
        let whole = |kind, name| (Oid { world: UniqId::default(), kind: ContentKind(kind), name }, 9);
        let mut known = KnownDigests::default();
        assert_eq!(known.get(whole(3, 1)), None);
        let (count, digest) = (4 * KEPT as u64, |name: u64| [(name % 251) as u8; 16]);
        for name in 1..=count {
            known.keep(whole(3, name), digest(name));
            assert_eq!(known.get(whole(3, name)), Some(digest(name)));
            assert_eq!(known.get(whole(4, name)), None, "of an object with the same name");
            assert_eq!(known.get((whole(3, name).0, 8)), None, "of an object with another size");
        }
        let kept = (1..=count).filter(|&name| known.get(whole(3, name)).is_some()).count();
        assert!((KEPT / 2..=KEPT).contains(&kept), "{kept}");
        assert!((1..=count).all(|name| known.get(whole(3, name)).is_none_or(|kept| kept == digest(name))));
    }
}
