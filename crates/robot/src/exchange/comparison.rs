//! Comparison of content with the content that the robot expects.

use polygraph_stats::ErrorKind;
use polygraph_traffic::Body;
use polygraph_traffic::body::{Equal, PERIOD, is_filler};

use crate::violation::Violation;

/// Number of bytes kept from the first difference on: more than marks and page headers have, so that some of them are text.
const SAMPLE: usize = 128;
/// Number of these bytes that are shown and searched for elsewhere.
const SHOWN: usize = 24;
/// Largest removed or replaced part of a body that is recognized.
const NEAR: usize = 4 * 1024;

/// Compares content with the expected content.
#[derive(Debug)]
pub(crate) struct Comparison {
    /// The rest of the expected content; it no longer advances after the first difference.
    expected: Body,
    /// Bytes that were compared and equal.
    pub equal: u64,
    /// The first bytes that were not equal.
    differs: Option<Vec<u8>>,
    /// Whether text of objects follows somewhere after the first difference.
    has_filler: bool,
    /// Position of the first byte in the object, and the object, if this is only a part of it.
    part: Option<Box<(u64, Body)>>,
    /// Bytes of the object, or of the part.
    pub size: u64,
}

impl Comparison {
    /// A comparison with a whole body.
    pub fn new(expected: Body) -> Comparison {
        Comparison { size: expected.len(), expected, equal: 0, differs: None, has_filler: false, part: None }
    }

    /// A comparison with `length` bytes of `whole`, from `first` on.
    pub fn part(whole: &Body, first: u64, length: u64) -> Comparison {
        let mut body = whole.clone();
        body.advance(first.min(body.len()));
        body.truncate(length);
        Comparison { part: Some(Box::new((first, whole.clone()))), ..Comparison::new(body) }
    }

    /// Compares the next bytes. Returns how many of them are correct.
    pub fn take(&mut self, bytes: &[u8]) -> usize {
        self.take_noting(bytes, |_| ())
    }

    /// As [`Comparison::take`]; passes the correct bytes to `note`.
    pub fn take_noting(&mut self, bytes: &[u8], note: impl FnMut(Equal<'_>)) -> usize {
        if let Some(sample) = &mut self.differs {
            let room = SAMPLE - sample.len().min(SAMPLE);
            sample.extend_from_slice(&bytes[..room.min(bytes.len())]);
            self.look_for_filler(bytes);
            return 0;
        }
        // Bytes after the expected end are a size error, not a content error.
        let bytes = &bytes[..bytes.len().min(usize::try_from(self.expected.len()).unwrap_or(usize::MAX))];
        let same = self.expected.compare_noting(bytes, note);
        self.equal += same as u64;
        if same < bytes.len() {
            self.differs = Some(bytes[same..].iter().take(SAMPLE).copied().collect());
            self.look_for_filler(&bytes[same..]);
        }
        same
    }

    /// Looks at two places of what arrived together: a search everywhere would cost too much.
    fn look_for_filler(&mut self, bytes: &[u8]) {
        let places = [bytes.len() / 2, bytes.len().saturating_sub(SHOWN)];
        let mut texts = places.into_iter().filter_map(|place| bytes.get(place..place + SHOWN));
        self.has_filler = self.has_filler || texts.any(is_filler);
    }

    /// Whether nothing of the object arrived, nor of any other: somebody else made the content. `real`: the objects are real content,
    /// which cannot be told from that.
    pub fn is_foreign(&self, real: bool) -> bool {
        let Some(seen) = self.differs.as_deref() else { return false };
        // Of an object of few bytes, nothing looks like its text.
        let is_tiny = self.size < SHOWN as u64 && self.equal == 0;
        let few = self.equal < SAMPLE as u64 && !self.has_filler;
        few && (is_tiny || matches!(self.origin_of(seen, &self.near(), real), Origin::Invented))
    }

    /// The expected bytes from the first difference on.
    fn near(&self) -> Vec<u8> {
        let mut expected = self.expected.clone();
        expected.truncate(NEAR as u64);
        expected.to_vec()
    }

    /// The violation, if there is one. `real`: the objects are real content, not filler.
    pub fn violation(&self, real: bool) -> Option<Violation> {
        let seen = self.differs.as_deref()?;
        let expected = self.near();
        let at = self.equal + self.part.as_deref().map_or(0, |(first, _)| *first);
        let violation = match self.origin_of(seen, &expected, real) {
            Origin::Altered | Origin::Invented => {
                Violation::new(ErrorKind::AlteredBody, format!("the body differs from byte {at} onwards"))
            }
            Origin::Elsewhere(place) => {
                let detail = format!("the bytes from {at} onwards are those from {place} onwards");
                Violation::new(ErrorKind::BadRange, detail)
            }
            Origin::Another => Violation::new(
                ErrorKind::WrongObject,
                format!("from byte {at} onwards, the body is that of another object"),
            ),
        };
        let show = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]).into_owned();
            format!("from byte {at} onwards: {text:?}")
        };
        Some(violation.expected(show(&expected), show(seen)))
    }

    /// The origin of bytes that differ from the `expected` bytes.
    fn origin_of(&self, seen: &[u8], expected: &[u8], real: bool) -> Origin {
        // Around an altered byte are expected bytes; foreign text continues as foreign text.
        let different = seen.iter().zip(expected).filter(|(a, b)| a != b).count();
        if seen.len() < 8 || different * 4 < seen.len().min(expected.len()) {
            return Origin::Altered;
        }
        if let Some((_, whole)) = self.part.as_deref()
            && let Some(place) = place_in(whole, &seen[..seen.len().min(SHOWN)])
        {
            return Origin::Elsewhere(place);
        }
        if self.goes_on(seen, expected) {
            return Origin::Altered;
        }
        if real || seen.chunks(SHOWN).any(is_filler) { Origin::Another } else { Origin::Invented }
    }

    /// Whether the expected bytes continue after an insertion or a gap.
    fn goes_on(&self, seen: &[u8], expected: &[u8]) -> bool {
        let inserted = |len| expected.starts_with(&seen[len..]);
        // Other objects have the same filler from another position on, perhaps a near one.
        if !is_filler(seen) && (1..=seen.len() - 8).any(inserted) {
            return true;
        }
        // Other objects differ from the start, except for page headers.
        let tail = &seen[seen.len().saturating_sub(SHOWN)..];
        self.equal >= SAMPLE as u64 && expected.windows(tail.len()).any(|window| window == tail)
    }
}

/// The origin of unexpected bytes.
enum Origin {
    /// The bytes were altered in transit.
    Altered,
    /// The bytes are those of no server.
    Invented,
    /// The bytes are from this position of the same object.
    Elsewhere(usize),
    /// The bytes are from another object.
    Another,
}

/// The first position of `text` in `body`.
fn place_in(body: &Body, text: &[u8]) -> Option<usize> {
    let mut body = body.clone();
    // Filler repeats itself after one period.
    body.truncate((PERIOD + 2 * SAMPLE) as u64);
    body.to_vec().windows(text.len()).position(|window| window == text)
}

#[cfg(test)]
mod tests {
    use polygraph_traffic::{Catalog, Content, ContentKind, Distr, Oid, Seed, UniqId};

    use super::*;

    fn catalog(unique: bool) -> Catalog {
        let plain = Content::plain("any", Distr::Const(3000.0), 1.0);
        let content = Content { unique: unique.then_some(1.0), ..plain };
        Catalog { seed: Seed(1), contents: vec![content] }
    }

    fn body(catalog: &Catalog, name: u64) -> Body {
        catalog.body(&Oid { world: UniqId::default(), kind: ContentKind::FIRST, name }, b"")
    }

    fn violation(comparison: &mut Comparison, bytes: &[u8], step: usize) -> Option<ErrorKind> {
        bytes.chunks(step).for_each(|piece| {
            comparison.take(piece);
        });
        comparison.violation(false).map(|violation| violation.kind)
    }

    #[test]
    fn altered_bytes_are_told_from_other_objects() {
        for unique in [false, true] {
            let catalog = catalog(unique);
            let right = body(&catalog, 0x12).to_vec();
            for step in [1, 7, 1000, 5000] {
                let check = |bytes: &[u8]| violation(&mut Comparison::new(body(&catalog, 0x12)), bytes, step);
                assert_eq!(check(&right), None);
                assert_eq!(check(&right[..2000]), None, "the size is another matter");
                for at in [0, 40, 1234, 2900, 2999] {
                    let mut altered = right.clone();
                    altered[at] ^= 1;
                    assert_eq!(check(&altered), Some(ErrorKind::AlteredBody), "byte {at}");
                }
                assert_eq!(check(&[b'?'; 3000]), Some(ErrorKind::AlteredBody));
                let is_foreign = |bytes: &[u8]| {
                    let mut comparison = Comparison::new(body(&catalog, 0x12));
                    bytes.chunks(step).for_each(|piece| {
                        comparison.take(piece);
                    });
                    comparison.is_foreign(false)
                };
                assert!(is_foreign(&[b'?'; 3000]));
                let page = "<html><title>Blocked</title><p>This site is not what it claims to be.</p></html>";
                assert!(is_foreign(page.as_bytes()));
                let mut tiny = body(&catalog, 0x12);
                tiny.truncate(5);
                let mut of_tiny = Comparison::new(tiny);
                of_tiny.take(page.as_bytes());
                assert!(of_tiny.is_foreign(false));
                let other = body(&catalog, 0x13).to_vec();
                let inserted = [page.repeat(3).as_bytes(), &right].concat();
                let whole = if step < 1000 { &right } else { &inserted };
                for content in [&right, &other, &right[..100].to_vec(), whole] {
                    assert!(!is_foreign(content), "content of a server arrived");
                }
                for name in [0x13, 0x7f00_0000_0000_0012] {
                    let other = body(&catalog, name).to_vec();
                    assert_eq!(check(&other), Some(ErrorKind::WrongObject), "{name:x}, steps of {step}");
                }
            }
        }
    }

    #[test]
    fn text_that_was_put_in_or_taken_out_does_not_make_another_object() {
        for unique in [false, true] {
            let catalog = catalog(unique);
            let right = body(&catalog, 0x12).to_vec();
            let check = |bytes: &[u8]| violation(&mut Comparison::new(body(&catalog, 0x12)), bytes, 1000);
            for at in [0, 5, 50, 127, 128, 1000, 2000] {
                for len in [1, 2, 7, 25, 100, 115, 127, 128, 1000] {
                    let text = "<script>x</script>".repeat(60);
                    let injected = [&right[..at], &text.as_bytes()[..len], &right[at..]].concat();
                    assert_eq!(check(&injected), Some(ErrorKind::AlteredBody), "{len} bytes at {at}");
                }
                if at >= SAMPLE {
                    let cut = [&right[..at], &right[at + 700..]].concat();
                    assert_eq!(check(&cut), Some(ErrorKind::AlteredBody), "at {at}");
                    let replaced = [&right[..at], &[b'?'; 50], &right[at + 700..]].concat();
                    assert_eq!(check(&replaced), Some(ErrorKind::AlteredBody), "at {at}");
                }
            }
        }
        // Objects begin anywhere in the filler, some of them near to each other.
        let catalog = catalog(false);
        let right = body(&catalog, 0x12);
        for name in 0x13..0x400 {
            let other = body(&catalog, name).to_vec();
            let kind = violation(&mut Comparison::new(right.clone()), &other, 1000);
            assert_eq!(kind, Some(ErrorKind::WrongObject), "{name:x}");
        }
    }

    #[test]
    fn ranges_may_come_from_elsewhere() {
        let catalog = catalog(false);
        let (whole, other) = (body(&catalog, 1), body(&catalog, 2));
        let bytes = whole.to_vec();
        let check = |bytes: &[u8]| violation(&mut Comparison::part(&whole, 1000, 200), bytes, 64);
        assert_eq!(check(&bytes[1000..1200]), None);
        for at in [500, 900, 999, 1001, 1100] {
            assert_eq!(check(&bytes[at..at + 200]), Some(ErrorKind::BadRange), "{at}");
        }
        let injected = [&bytes[1000..1020], b"<script></script>", &bytes[1020..1183]].concat();
        assert_eq!(check(&injected), Some(ErrorKind::AlteredBody));
        assert_eq!(check(&other.to_vec()[1000..1200]), Some(ErrorKind::WrongObject));
    }
}
