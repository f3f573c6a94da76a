//! The bytes of bodies: both sides can make them, the server to send, the client to compare.

use std::io::IoSlice;
use std::sync::{Arc, OnceLock};

use crate::content::{Catalog, Source};
use crate::files::Files;
use crate::object::Oid;
use crate::rng::{Random, Seed};

/// The filler repeats after so many bytes; bodies start anywhere in it.
pub const PERIOD: usize = 16 * 1024;
/// Length of the filler in memory: a multiple of the period, so that most bodies are one stretch of it.
const LENGTH: usize = 32 * PERIOD;

/// Fillers that bodies are stretches of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filler {
    /// Printable bytes without `<` and `"`, so that it never looks like markup.
    Text,
    /// Bytes 0 to 254.
    Data,
}

impl Filler {
    /// The filler: random, so that it does not compress to nothing, and the same in every run and on every
    /// machine, because bodies are part of an object's identity.
    fn bytes(self) -> &'static [u8] {
        static TEXT: OnceLock<Vec<u8>> = OnceLock::new();
        static DATA: OnceLock<Vec<u8>> = OnceLock::new();
        let printable = |bits: u64| match 33 + bits as u8 {
            b'<' | b'"' => b' ',
            byte => byte,
        };
        match self {
            Filler::Text => TEXT.get_or_init(|| repeated("filler", 94, printable)),
            Filler::Data => DATA.get_or_init(|| repeated("data filler", 255, |bits| bits as u8)),
        }
    }
}

fn repeated(purpose: &str, values: u64, byte: impl Fn(u64) -> u8) -> Vec<u8> {
    let mut rng = Seed(0).stream(purpose, 0);
    let period: Vec<u8> = (0..PERIOD).map(|_| byte(rng.below(values))).collect();
    period.repeat(LENGTH / PERIOD)
}

/// A part of a body.
#[derive(Clone, Debug)]
enum Piece {
    /// A stretch of filler.
    Filler(Filler, usize),
    /// Bytes made for this body.
    Bytes(Vec<u8>),
    /// A file, from an offset on, again and again.
    File(Arc<Files>, usize, usize),
}

impl Piece {
    /// The piece without its first `n` bytes.
    fn skip(self, n: u64) -> Piece {
        let around = |offset: usize, period: usize| ((offset as u64 + n) % period as u64) as usize;
        match self {
            Piece::Filler(filler, offset) => Piece::Filler(filler, around(offset, PERIOD)),
            Piece::Bytes(mut bytes) => {
                bytes.drain(..n as usize);
                Piece::Bytes(bytes)
            }
            Piece::File(files, index, offset) => {
                let period = files.0[index].bytes.len();
                Piece::File(files, index, around(offset, period))
            }
        }
    }

    /// Bytes from `at` on, as many as lie together, at least one.
    fn from(&self, at: u64) -> &[u8] {
        match self {
            Piece::Filler(filler, offset) => {
                &filler.bytes()[(*offset + (at % PERIOD as u64) as usize) % PERIOD..]
            }
            Piece::Bytes(bytes) => &bytes[at as usize..],
            Piece::File(files, index, offset) => {
                let bytes = &files.0[*index].bytes;
                &bytes[((*offset as u64 + at) % bytes.len() as u64) as usize..]
            }
        }
    }
}

/// The body of an object, or what is left of it.
#[derive(Clone, Debug)]
pub struct Body {
    /// The piece that comes next, what of it is used already, and what is left of it.
    current: (Piece, u64, u64),
    /// Pieces after it with their lengths, the next one last.
    rest: Vec<(Piece, u64)>,
    left: u64,
}

/// Builds a body of a given size from front to back; what does not fit is cut.
struct Builder {
    pieces: Vec<(Piece, u64)>,
    left: u64,
}

impl Builder {
    fn add(&mut self, piece: Piece, len: u64) {
        let len = len.min(self.left);
        if len > 0 {
            self.left -= len;
            self.pieces.push((piece, len));
        }
    }

    fn text(&mut self, bytes: Vec<u8>) {
        let len = bytes.len() as u64;
        self.add(Piece::Bytes(bytes), len);
    }

    fn build(mut self) -> Body {
        self.pieces.reverse();
        let left = self.pieces.iter().map(|(_, len)| len).sum();
        let (piece, len) = self.pieces.pop().unwrap_or((Piece::Bytes(Vec::new()), 0));
        Body { current: (piece, 0, len), rest: self.pieces, left }
    }
}

/// Begin and end of containers, so that browsers take them for pages.
const PAGE_HEAD: &[u8] = b"<!DOCTYPE html><html><head><title>page</title></head><body>\n";
const PAGE_TAIL: &[u8] = b"\n</body></html>\n";

impl Body {
    /// The body of `oid` as `catalog` has it.
    pub fn of(catalog: &Catalog, oid: &Oid, url: &[u8]) -> Body {
        let Some(content) = catalog.content(oid.kind) else { return Body::empty() };
        let size = catalog.size(oid);
        let offset = catalog.body_offset(oid, PERIOD);
        let plain = content.unique.is_none() && content.embeds.is_none() && content.injection.is_none();
        let filler = match &content.source {
            Source::Text => Filler::Text,
            Source::Data => Filler::Data,
            Source::Database(files) | Source::Root(files) => {
                return Body::of_files(files, &content.source, oid, offset, size);
            }
        };
        if plain {
            // Nearly all bodies: nothing to allocate.
            return Body { current: (Piece::Filler(filler, offset), 0, size), rest: Vec::new(), left: size };
        }
        let mut builder = Builder { pieces: Vec::new(), left: size };
        if content.unique.is_some() {
            builder.text(mark(catalog, oid));
        }
        if content.embeds.is_some() {
            container(&mut builder, catalog, oid, filler, offset);
        }
        let at = size - builder.left;
        builder.add(Piece::Filler(filler, (offset + at as usize) % PERIOD), u64::MAX);
        crate::inject::inject(builder.build(), catalog, oid, url)
    }

    fn of_files(files: &Arc<Files>, source: &Source, oid: &Oid, offset: usize, size: u64) -> Body {
        let count = files.0.len();
        let index = match source {
            Source::Root(_) => (oid.name.wrapping_sub(1) % count.max(1) as u64) as usize,
            _ => offset % count.max(1),
        };
        if files.0.get(index).is_none_or(|file| file.bytes.is_empty()) {
            return Body::empty();
        }
        Body { current: (Piece::File(Arc::clone(files), index, 0), 0, size), rest: Vec::new(), left: size }
    }

    /// A body of ready bytes.
    pub fn from_bytes(bytes: Vec<u8>) -> Body {
        let left = bytes.len() as u64;
        Body { current: (Piece::Bytes(bytes), 0, left), rest: Vec::new(), left }
    }

    /// What is left of several bodies, one after the other.
    pub fn chain(bodies: impl IntoIterator<Item = Body>) -> Body {
        let mut builder = Builder { pieces: Vec::new(), left: u64::MAX };
        for body in bodies {
            let (piece, at, left) = body.current;
            if left > 0 {
                builder.add(piece.skip(at), left);
            }
            for (piece, len) in body.rest.into_iter().rev() {
                builder.add(piece, len);
            }
        }
        builder.build()
    }

    /// A message without a body.
    pub fn empty() -> Body {
        Body::from_bytes(Vec::new())
    }

    /// Bytes left.
    pub fn len(&self) -> u64 {
        self.left
    }

    /// True if nothing is left.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// The next bytes, as many as lie together.
    pub fn chunk(&self) -> &[u8] {
        let (piece, at, left) = &self.current;
        if *left == 0 {
            return &[];
        }
        let bytes = piece.from(*at);
        &bytes[..bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX))]
    }

    /// Fills `slices` with the next bytes and returns how many of them are used.
    pub fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let first = self.chunk();
        if first.is_empty() || slices.is_empty() {
            return 0;
        }
        slices[0] = IoSlice::new(first);
        let mut used = 1;
        // What follows the first chunk is only known if that is all of its piece.
        if first.len() as u64 == self.current.2 {
            for (piece, len) in self.rest.iter().rev().take(slices.len() - 1) {
                let bytes = piece.from(0);
                let bytes = &bytes[..bytes.len().min(usize::try_from(*len).unwrap_or(usize::MAX))];
                slices[used] = IoSlice::new(bytes);
                used += 1;
                if (bytes.len() as u64) < *len {
                    break;
                }
            }
        }
        used
    }

    /// Goes `n` bytes ahead, at most to the end.
    pub fn advance(&mut self, n: u64) {
        let mut n = n.min(self.left);
        self.left -= n;
        loop {
            let (_, at, left) = &mut self.current;
            let step = n.min(*left);
            *at += step;
            *left -= step;
            n -= step;
            if *left > 0 {
                return;
            }
            match self.rest.pop() {
                Some((piece, len)) => self.current = (piece, 0, len),
                None => return,
            }
        }
    }

    /// Only the first `n` bytes of what is left.
    pub fn truncate(&mut self, n: u64) {
        if n >= self.left {
            return;
        }
        let mut room = n;
        self.left = n;
        self.current.2 = self.current.2.min(room);
        room -= self.current.2;
        let mut kept = self.rest.len();
        while kept > 0 && room > 0 {
            kept -= 1;
            self.rest[kept].1 = self.rest[kept].1.min(room);
            room -= self.rest[kept].1;
        }
        self.rest.drain(..kept);
    }

    /// Compares the next bytes with `data` and goes ahead of what is equal. Returns the number of equal bytes:
    /// all of `data` if it is what the body says.
    pub fn compare(&mut self, data: &[u8]) -> usize {
        let mut same = 0;
        while same < data.len() {
            let chunk = self.chunk();
            let n = chunk.len().min(data.len() - same);
            let theirs = &data[same..same + n];
            if n == 0 {
                break;
            }
            if chunk[..n] != *theirs {
                let equal = chunk.iter().zip(theirs).take_while(|(a, b)| a == b).count();
                self.advance(equal as u64);
                return same + equal;
            }
            self.advance(n as u64);
            same += n;
        }
        same
    }

    /// All that is left, for bodies that are known to be small.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut body = self.clone();
        let mut out = Vec::with_capacity(usize::try_from(body.left).unwrap_or(0));
        while !body.is_empty() {
            let n = body.chunk().len();
            out.extend_from_slice(body.chunk());
            body.advance(n as u64);
        }
        out
    }
}

/// The beginning of bodies of content with `unique`: a unique one names its object, a common one its type.
fn mark(catalog: &Catalog, oid: &Oid) -> Vec<u8> {
    let unique = catalog.content(oid.kind).is_some_and(|content| catalog.is_marked(oid, content));
    match unique {
        true => format!("http:1:{}:{:02x}:{:016x}\n", oid.world, oid.kind.0, oid.name).into_bytes(),
        false => format!("common content of kind {:02x}\n", oid.kind.0).into_bytes(),
    }
}

/// A page with its tags at even distances. A tag that no longer fits is left out.
fn container(builder: &mut Builder, catalog: &Catalog, oid: &Oid, filler: Filler, offset: usize) {
    let size = builder.left;
    let count = catalog.embedded_count(oid);
    let step = size / (count + 1);
    let stretch = |builder: &mut Builder, until: u64| {
        let at = size - builder.left;
        let start = (offset + at as usize) % PERIOD;
        builder.add(Piece::Filler(filler, start), until.saturating_sub(at));
    };
    let framed = size >= (PAGE_HEAD.len() + PAGE_TAIL.len()) as u64;
    let end = size - if framed { PAGE_TAIL.len() as u64 } else { 0 };
    if framed {
        builder.text(PAGE_HEAD.to_vec());
    }
    for (index, embedded) in catalog.embedded(oid).enumerate() {
        stretch(builder, step * (index as u64 + 1));
        let mut tag = b"<embed src=\"".to_vec();
        catalog.write_path(&embedded, &mut tag);
        tag.extend_from_slice(b"\">");
        if size - builder.left + tag.len() as u64 > end {
            break;
        }
        builder.text(tag);
    }
    stretch(builder, end);
    if framed {
        builder.text(PAGE_TAIL.to_vec());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::{Content, Embeds};
    use crate::id::IdSource;
    use crate::{Distr, Kind, Selector, UniqId};

    fn oid(name: u64) -> Oid {
        Oid { world: UniqId::default(), kind: Kind::FIRST, name }
    }

    fn in_steps(body: &Body, step: usize) -> Vec<u8> {
        let mut body = body.clone();
        let mut out = Vec::new();
        while !body.is_empty() {
            let n = body.chunk().len().min(step);
            out.extend_from_slice(&body.chunk()[..n]);
            body.advance(n as u64);
        }
        out
    }

    #[test]
    fn a_body_is_the_same_however_it_is_cut() {
        let catalog = Catalog::classic(Seed(1), Distr::Const(2_000_000.0));
        let body = catalog.body(&oid(7), b"");
        assert_eq!(body.len(), 2_000_000);
        let whole = body.to_vec();
        assert_eq!(whole.len(), 2_000_000);
        assert_eq!(whole, in_steps(&body, 1_000));
        assert_ne!(whole[..100], catalog.body(&oid(8), b"").to_vec()[..100]);
        assert!(whole.iter().all(|b| (32..127).contains(b) && *b != b'<' && *b != b'"'));
    }

    fn pages() -> Catalog {
        let image = Content {
            extensions: Selector::even(vec![".gif".into(), ".png".into()]),
            ..Content::plain("image", Distr::Const(4000.0), 0.8)
        };
        let page = Content {
            embeds: Some(Embeds { kinds: Selector::only(Kind::of_index(1)), count: Distr::Zipf { n: 13 } }),
            ..Content::plain("page", Distr::Exp { mean: 8500.0 }, 0.9)
        };
        Catalog { seed: Seed(3), contents: vec![page, image] }
    }

    #[test]
    fn containers_hold_the_tags_of_their_objects() {
        let catalog = pages();
        let world = IdSource::unique(1, 2, 3, 4).fresh();
        let (mut tags, mut announced) = (0, 0);
        for name in 1..=2_000 {
            let page = Oid { world, kind: Kind::FIRST, name };
            let body = catalog.body(&page, b"");
            let text = String::from_utf8(body.to_vec()).unwrap();
            assert_eq!(text.len() as u64, catalog.size(&page));
            assert_eq!(in_steps(&body, 7), text.as_bytes());
            let found: Vec<&str> = text
                .match_indices("src=\"")
                .map(|(at, _)| text[at + 5..].split('"').next().unwrap())
                .collect();
            let paths: Vec<String> = catalog
                .embedded(&page)
                .map(|oid| {
                    assert!(oid.is_embedded());
                    let mut path = Vec::new();
                    catalog.write_path(&oid, &mut path);
                    String::from_utf8(path).unwrap()
                })
                .collect();
            assert_eq!(found, paths[..found.len()]);
            tags += found.len();
            announced += paths.len();
        }
        // Only pages of a few hundred bytes have no room for their tags.
        assert!(tags * 100 > announced * 95, "{tags} of {announced}");
        // Reference: zipf(13) has a mean of 4.3; standard deviation 3.3, five standard errors.
        let mean = announced as f64 / 2_000.0;
        assert!((mean - Distr::Zipf { n: 13 }.mean()).abs() < 5.0 * 3.4 / 2_000f64.sqrt(), "{mean}");
    }

    #[test]
    fn comparing_finds_the_first_difference() {
        let catalog = pages();
        for name in 1..200 {
            let body = catalog.body(&oid(name), b"");
            let bytes = body.to_vec();
            for step in [1, 13, 4096] {
                let mut expected = body.clone();
                assert!(bytes.chunks(step).all(|piece| expected.compare(piece) == piece.len()));
                assert!(expected.is_empty());
            }
            let at = bytes.len() / 2;
            let mut wrong = bytes.clone();
            wrong[at] ^= 1;
            assert_eq!(body.clone().compare(&wrong), at);
            let mut part = body.clone();
            part.advance(at as u64 / 2);
            part.truncate(at as u64 / 3);
            assert_eq!(part.to_vec(), bytes[at / 2..at / 2 + at / 3]);
            let rest = |from: usize| {
                let mut rest = body.clone();
                rest.advance(from as u64);
                rest
            };
            let chain =
                Body::chain([rest(at), Body::from_bytes(b"--".to_vec()), rest(at / 2), Body::empty()]);
            assert_eq!(chain.to_vec(), [&bytes[at..], b"--", &bytes[at / 2..]].concat());
            let mut slices = [IoSlice::new(&[]); 64];
            let used = body.slices(&mut slices);
            let sent: Vec<u8> = slices[..used].iter().flat_map(|slice| slice.to_vec()).collect();
            assert!(bytes.starts_with(&sent));
        }
    }
}
