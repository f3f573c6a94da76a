//! Fingerprints of what both sides must agree on: they show a client whether a server makes the contents that
//! it expects.

use crate::content::{Catalog, Content};
use crate::hex::{hex_sixteen, parse_sixteen};

/// Digits of each half.
const HALF: usize = 6;

/// Two hashes of a catalog: one of what a client must share, one of what it may learn from the server.
///
/// Names, further header fields and the behaviour of robots are left out: they may differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// Hash of the seed and of all properties of contents except sizes; 24 bits.
    pub contents: u32,
    /// Hash of the sizes; 24 bits.
    pub sizes: u32,
}

impl Fingerprint {
    /// Bytes of the text form.
    pub const LEN: usize = 2 * HALF;

    /// The fingerprint of a catalog.
    pub fn of(catalog: &Catalog) -> Fingerprint {
        let (mut contents, mut sizes) = (Hasher::default(), Hasher::default());
        contents.see(&catalog.seed);
        for content in &catalog.contents {
            see(content, &mut contents, &mut sizes);
        }
        Fingerprint { contents: contents.finish(), sizes: sizes.finish() }
    }

    /// Appends the text form: twelve hex digits.
    #[inline]
    pub fn write(self, out: &mut Vec<u8>) {
        let digits = u64::from(self.contents) << (4 * HALF) | u64::from(self.sizes);
        out.extend_from_slice(&hex_sixteen(digits)[16 - Fingerprint::LEN..]);
    }

    /// Reads the text form; `None` if it is anything else.
    #[inline]
    pub fn parse(text: &[u8]) -> Option<Fingerprint> {
        let text: &[u8; Fingerprint::LEN] = text.try_into().ok()?;
        let digit = |at: usize| if at < 4 { b'0' } else { text[at - 4] };
        let digits = parse_sixteen([std::array::from_fn(digit), std::array::from_fn(|i| text[i + 4])])?;
        let half = |shift: usize| (digits >> shift) as u32 & ((1 << (4 * HALF)) - 1);
        Some(Fingerprint { contents: half(4 * HALF), sizes: half(0) })
    }
}

/// Hashes every property. A new property of contents does not compile until it is handled here.
fn see(content: &Content, contents: &mut Hasher, sizes: &mut Hasher) {
    let Content {
        name: _,
        size,
        cachable,
        checksum,
        unique,
        source,
        life,
        embeds,
        mime_type,
        prefixes,
        extensions,
        encodings,
        injection,
        headers: _,
        behavior: _,
    } = content;
    sizes.see(size);
    contents.see(&(cachable, checksum, unique, source, life, embeds, mime_type));
    contents.see(&(prefixes, extensions, encodings, injection));
}

#[derive(Default)]
struct Hasher(xxhash_rust::xxh3::Xxh3Default);

impl Hasher {
    fn see(&mut self, property: &impl serde::Serialize) {
        // The format of logs and stored working sets is exact and the same on every machine. Properties without
        // a form there do not exist.
        let bytes = postcard::to_stdvec(property).unwrap_or_default();
        self.0.update(&bytes);
    }

    fn finish(self) -> u32 {
        (self.0.digest() >> (64 - 4 * HALF)) as u32
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::distr::Distr;
    use crate::rng::Seed;

    fn classic(seed: u64, mean: f64) -> Fingerprint {
        Fingerprint::of(&Catalog::classic(Seed(seed), Distr::Exp { mean }))
    }

    #[test]
    fn sizes_are_told_from_all_else() {
        let own = classic(1, 13_312.0);
        assert_eq!(own, classic(1, 13_312.0));
        let (sizes, seed) = (classic(1, 13_313.0), classic(2, 13_312.0));
        assert!(sizes.contents == own.contents && sizes.sizes != own.sizes);
        assert!(seed.contents != own.contents && seed.sizes == own.sizes);
    }

    #[test]
    fn what_only_one_side_sees_makes_no_difference() {
        let catalog = Catalog::classic(Seed(1), Distr::Const(10.0));
        let change = |change: fn(&mut Content)| {
            let mut catalog = catalog.clone();
            change(&mut catalog.contents[0]);
            Fingerprint::of(&catalog) == Fingerprint::of(&Catalog::classic(Seed(1), Distr::Const(10.0)))
        };
        assert!(change(|content| content.name = "another".into()));
        assert!(!change(|content| content.cachable = 0.5));
        assert!(!change(|content| content.unique = Some(1.0)));
        assert!(!change(|content| content.mime_type = Some("text/html".into())));
    }

    #[test]
    fn is_the_same_in_every_version_that_makes_the_same_bodies() {
        let mut text = Vec::new();
        classic(1, 13_312.0).write(&mut text);
        assert_eq!(String::from_utf8(text).unwrap(), "deb1f6385b5e");
    }

    proptest! {
        #[test]
        fn round_trips(contents in 0u32..1 << 24, sizes in 0u32..1 << 24) {
            let (fingerprint, mut text) = (Fingerprint { contents, sizes }, Vec::new());
            fingerprint.write(&mut text);
            prop_assert_eq!(text.len(), Fingerprint::LEN);
            prop_assert_eq!(Fingerprint::parse(&text), Some(fingerprint));
        }

        #[test]
        fn foreign_text_is_refused(text in prop::collection::vec(any::<u8>(), 0..16)) {
            let hex = text.len() == Fingerprint::LEN && text.iter().all(u8::is_ascii_hexdigit);
            prop_assert_eq!(Fingerprint::parse(&text).is_some(), hex);
        }
    }
}
