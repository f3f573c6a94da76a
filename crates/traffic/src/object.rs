//! Object ids, which URLs name.
//!
//! Every property of an object is a pure function of its id, its content type and the global seed. Client and
//! server never exchange properties; each computes them (see [`crate::Catalog`]).

use crate::hex::{hex, hex_sixteen, parse_hex};
use crate::id::{ID_TEXT_LEN, UniqId};
use crate::rng::mix;

/// Content kind of an object: the two hex digits after `t` in its URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct ContentKind(pub u8);

impl ContentKind {
    /// An object that does not belong to the test.
    pub const FOREIGN: ContentKind = ContentKind(0);
    /// A message without a body.
    pub const BODILESS: ContentKind = ContentKind(1);
    /// An unknown kind.
    pub const UNKNOWN: ContentKind = ContentKind(2);
    /// The first content type of a workload; the others follow in order of configuration.
    pub const FIRST: ContentKind = ContentKind(3);

    /// The kind of the content type at `index`.
    pub fn of_index(index: usize) -> ContentKind {
        ContentKind(u8::try_from(index + 3).unwrap_or(u8::MAX))
    }

    /// The index among the content types of the workload; `None` for the reserved kinds.
    #[inline]
    pub fn index(self) -> Option<usize> {
        usize::from(self.0).checked_sub(3)
    }
}

/// An object id: the object that a URL names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Oid {
    /// The world (URL name space) of the object.
    pub world: UniqId,
    /// Content kind.
    pub kind: ContentKind,
    /// Serial number within the world, from 1 in order of creation.
    pub name: u64,
}

/// Length of a standard path in bytes.
pub const PATH_LEN: usize = 50;
/// Where its parts begin.
const WORLD_AT: usize = 2;
const KIND_AT: usize = WORLD_AT + ID_TEXT_LEN + 2;
const NAME_AT: usize = PATH_LEN - 16;

impl Oid {
    /// The number that represents the object in seeded draws. The kind does not contribute.
    #[inline]
    pub fn hash(&self) -> u64 {
        mix(self.world.hash() ^ self.name)
    }

    /// True if the object is part of a container: its world is a mutant.
    pub fn is_embedded(&self) -> bool {
        self.world.counter % 2 == 1
    }

    /// The standard path (`docs/reference/models.md`, "Standard URLs"), `/w<world>/t<kind>/_<name>`:
    ///
    /// ```text
    /// /w12345678.00abcdef:0000002a/t03/_00000000000001f4
    ///   └── world id (26) ───────┘  └kind └── name (16 hex digits)
    /// ```
    pub fn path(&self) -> [u8; PATH_LEN] {
        let mut out = *b"/w00000000.00000000:00000000/t00/_0000000000000000";
        out[WORLD_AT..WORLD_AT + ID_TEXT_LEN].copy_from_slice(&self.world.text());
        out[KIND_AT..KIND_AT + 2].copy_from_slice(&hex(u32::from(self.kind.0))[6..]);
        out[NAME_AT..].copy_from_slice(&hex_sixteen(self.name));
        out
    }

    /// The object with this standard path; `None` if it is none.
    pub fn of_path(path: &[u8; PATH_LEN]) -> Option<Oid> {
        let before = |at: usize| [path[at - 2], path[at - 1]];
        if [before(WORLD_AT), before(KIND_AT), before(NAME_AT)] != [*b"/w", *b"/t", *b"/_"] {
            return None;
        }
        let world = UniqId::parse(&path[WORLD_AT..WORLD_AT + ID_TEXT_LEN])?;
        let kind = parse_hex(&path[KIND_AT..KIND_AT + 2])? as u8;
        Some(Oid { world, kind: ContentKind(kind), name: parse_hex(&path[NAME_AT..])? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_standard_library() {
        let world = UniqId { time: 0x1234_5678, mix: 0x00ab_cdef, counter: 42 };
        for name in (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit]).chain([0xf00d, u64::MAX]) {
            for kind in [0, 3, 0x7f, 0xff].map(ContentKind) {
                let path = Oid { world, kind, name }.path();
                assert_eq!(path.as_slice(), format!("/w{world}/t{:02x}/_{name:016x}", kind.0).as_bytes());
            }
        }
    }
}
