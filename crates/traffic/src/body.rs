//! The bytes of bodies. Both sides can make them: the server to send them, the client to compare them.

use std::io::IoSlice;
use std::sync::OnceLock;
use std::vec;

use crate::content::{BodySource, Catalog, Content, Injected};
use crate::files::Reading;
use crate::inject::Insertions;
use crate::object::{Oid, PATH_LEN};
use crate::rng::{Random, Seed};

/// The period of the filler in bytes; bodies start anywhere in it.
pub const PERIOD: usize = 16 * 1024;
/// Length of the filler in memory: a multiple of the period, so that most bodies are one contiguous part of it. A longer one
/// would not stay in the second cache of a processor: large bodies, each of which is read several times, would displace it.
const LENGTH: usize = 4 * PERIOD;

/// The fillers that bodies are cut from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filler {
    /// Printable bytes without `<` and `"`, which never look like markup.
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

/// True if `sample`, of at least eight bytes, occurs in one of the fillers, so that it belongs to some object.
pub fn is_filler(sample: &[u8]) -> bool {
    let occurs = |filler: Filler| {
        let period = &filler.bytes()[..PERIOD + sample.len()];
        period.windows(sample.len()).any(|window| window == sample)
    };
    sample.len() >= 8 && (occurs(Filler::Text) || occurs(Filler::Data))
}

fn repeated(purpose: &str, values: u64, byte: impl Fn(u64) -> u8) -> Vec<u8> {
    let mut rng = Seed(0).stream(purpose, 0);
    let period: Vec<u8> = (0..PERIOD).map(|_| byte(rng.below(values))).collect();
    period.repeat(LENGTH / PERIOD)
}

/// A part of a body: the source of its next bytes.
#[derive(Clone, Debug)]
pub(crate) enum BodyPiece {
    /// Part of a filler, from an offset on.
    Filler(Filler, usize),
    /// The bytes that were made for the body, from an offset on.
    Made(usize),
    /// The start or the end of pages, from an offset on.
    PageEnd(&'static [u8], usize),
    /// Content from files.
    Content(Reading),
}

impl BodyPiece {
    /// Skips `n` bytes.
    fn skip(&mut self, n: u64) {
        match self {
            BodyPiece::Filler(_, offset) => *offset = filler_place(*offset, n),
            BodyPiece::Made(offset) | BodyPiece::PageEnd(_, offset) => *offset += n as usize,
            BodyPiece::Content(reading) => reading.skip(n),
        }
    }

    /// What the next bytes of the piece, `bytes`, can contain.
    fn describe<'a>(&self, bytes: &'a [u8]) -> Equal<'a> {
        match self {
            BodyPiece::Filler(Filler::Text, _) => Equal::Text(bytes),
            BodyPiece::PageEnd(all, 0) if all.len() == bytes.len() => Equal::PageEnd(bytes),
            _ => Equal::Other(bytes),
        }
    }
}

/// Bytes that are those of a body, by what they can contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Equal<'a> {
    /// Filler of text, which never looks like markup.
    Text(&'a [u8]),
    /// All of the start or of the end of a page: whole tags without attributes.
    PageEnd(&'a [u8]),
    /// Anything else: a tag with a link, a part of one, or content of any kind.
    Other(&'a [u8]),
}

/// The position in the filler `n` bytes after `offset`.
fn filler_place(offset: usize, n: u64) -> usize {
    (offset + (n % PERIOD as u64) as usize) % PERIOD
}

impl Catalog {
    /// The object's body without content coding. `url` is the URL that injected text may quote.
    pub fn body(&self, oid: &Oid, url: &[u8]) -> Body {
        self.body_of(oid, url, self.size(oid))
    }

    /// The object's body with another size than the catalog gives, for callers that learned the size from
    /// elsewhere.
    pub fn body_of(&self, oid: &Oid, url: &[u8], size: u64) -> Body {
        Body::of(self, oid, url, size)
    }
}

/// The body of an object, or the rest of it.
#[derive(Clone, Debug)]
pub struct Body {
    /// The current piece, and the number of its bytes that are left.
    current: (BodyPiece, u64),
    left: u64,
    /// What nearly all bodies do without. Bodies are moved and dropped often.
    more: Option<Box<More>>,
}

/// What bodies of several pieces, and those that are made, have besides.
#[derive(Clone, Debug)]
struct More {
    /// Pieces after the current one with their lengths.
    rest: vec::IntoIter<(BodyPiece, u64)>,
    /// Bytes that were made for the body: everything except filler, ends of pages and content from files, such as the tags
    /// of a page.
    made: Vec<u8>,
}

/// The material of a body between insertions.
enum Material {
    /// Filler; insertions replace some of it.
    Filler(Filler, usize),
    /// Content from files; insertions move it back, and its end is cut.
    Content(Reading),
}

impl Material {
    fn of(catalog: &Catalog, oid: &Oid, content: &Content) -> Material {
        let start = || catalog.body_offset(oid, content, PERIOD);
        let reading = match &content.source {
            BodySource::Text => return Material::Filler(Filler::Text, start()),
            BodySource::Data => return Material::Filler(Filler::Data, start()),
            BodySource::Database(files) => catalog.entry(oid).and_then(|at| Reading::onward(files, at)),
            BodySource::Root(files) => catalog.entry(oid).and_then(|at| Reading::repeated(files, at)),
        };
        // Empty files cannot fill a body with its own size.
        reading.map_or_else(|| Material::Filler(Filler::Text, start()), Material::Content)
    }
}

/// Builds a body of a given size from front to back and cuts the rest.
struct Builder<'a> {
    pieces: Vec<(BodyPiece, u64)>,
    made: Vec<u8>,
    /// Bytes so far.
    at: u64,
    /// Length of the whole body.
    end: u64,
    material: Material,
    insertions: Option<Insertions<'a>>,
}

impl Builder<'_> {
    fn add(&mut self, piece: BodyPiece, len: u64) {
        let len = len.min(self.end - self.at);
        if len > 0 {
            self.at += len;
            self.pieces.push((piece, len));
        }
    }

    fn text(&mut self, bytes: &[u8]) {
        self.add(BodyPiece::Made(self.made.len()), bytes.len() as u64);
        self.made.extend_from_slice(bytes);
    }

    fn page_end(&mut self, bytes: &'static [u8]) {
        self.add(BodyPiece::PageEnd(bytes, 0), bytes.len() as u64);
    }

    /// Adds material up to `until`.
    fn fill(&mut self, until: u64) {
        let len = until.min(self.end).saturating_sub(self.at);
        match &mut self.material {
            Material::Filler(filler, offset) => {
                let piece = BodyPiece::Filler(*filler, filler_place(*offset, self.at));
                self.add(piece, len);
            }
            Material::Content(reading) => {
                let piece = BodyPiece::Content(reading.clone());
                reading.skip(len);
                self.add(piece, len);
            }
        }
    }

    /// Adds material up to the last insertion before `until`.
    fn insert(&mut self, until: u64) {
        let until = until.min(self.end);
        while let Some(insertions) = &mut self.insertions {
            let start = self.at;
            let between = |at: u64| match &self.material {
                Material::Filler(..) => at,
                Material::Content(reading) => start + reading.after_tag(at - start),
            };
            let Some((at, text, len)) = insertions.next(start, until, between) else { break };
            self.fill(at);
            self.add(BodyPiece::Content(text), len);
        }
    }

    /// Adds material up to `until`, with insertions.
    fn stretch(&mut self, until: u64) {
        self.insert(until);
        self.fill(until);
    }

    /// Adds material up to `until`, or up to an earlier position if a tag would be open there.
    fn stretch_between_tags(&mut self, until: u64) {
        self.insert(until);
        let until = until.min(self.end).max(self.at);
        let open = match &self.material {
            Material::Filler(..) => None,
            Material::Content(reading) => reading.open_tag(until - self.at),
        };
        self.fill(open.map_or(until, |open| self.at + open));
    }

    fn build(self) -> Body {
        from_pieces(self.pieces, self.made)
    }
}

fn from_pieces(pieces: Vec<(BodyPiece, u64)>, made: Vec<u8>) -> Body {
    let left = pieces.iter().map(|(_, len)| len).sum();
    let mut rest = pieces.into_iter();
    let current = rest.next().unwrap_or((BodyPiece::Made(0), 0));
    let more = (!(rest.as_slice().is_empty() && made.is_empty())).then(|| Box::new(More { rest, made }));
    Body { current, left, more }
}

/// Start and end of containers, so that browsers treat them as pages.
const PAGE_HEAD: &[u8] = b"<!DOCTYPE html><html><head><title>page</title></head><body>\n";
const PAGE_TAIL: &[u8] = b"\n</body></html>\n";

impl Body {
    /// The first `size` bytes of the body of `oid` in `catalog`. `url` is the URL that injected text may quote.
    pub fn of(catalog: &Catalog, oid: &Oid, url: &[u8], size: u64) -> Body {
        let Some(content) = catalog.content(oid.kind) else { return Body::empty() };
        let material = Material::of(catalog, oid, content);
        let (insertions, quote) = match catalog.injection(oid, content) {
            None => (None, &url[..0]),
            Some((injection, rng)) => match &injection.what {
                Injected::Texts { texts, gap } => (Insertions::new(texts, gap, rng), &url[..0]),
                Injected::RequestUri => (None, url),
            },
        };
        if content.unique.is_none() && content.embeds.is_none() && insertions.is_none() && quote.is_empty() {
            // Nearly all bodies need no allocation.
            let piece = match material {
                Material::Filler(filler, offset) => BodyPiece::Filler(filler, offset),
                Material::Content(reading) => BodyPiece::Content(reading),
            };
            return Body { current: (piece, size), left: size, more: None };
        }
        let quote = &quote[quote.len() - quote.len().min(usize::try_from(size).unwrap_or(usize::MAX))..];
        let end = size - quote.len() as u64;
        let mut builder = Builder { pieces: Vec::new(), made: Vec::new(), at: 0, end, material, insertions };
        if content.unique.is_some() {
            builder.text(mark(catalog.is_marked(oid, content), oid).as_bytes());
        }
        if content.embeds.is_some() {
            container(&mut builder, catalog, oid);
        }
        if quote.is_empty() {
            builder.stretch(end);
        } else {
            builder.stretch_between_tags(end);
            builder.add(BodyPiece::Filler(Filler::Text, 0), u64::MAX);
            builder.end = size;
            builder.text(quote);
        }
        builder.build()
    }

    /// A body with the given bytes.
    pub fn from_bytes(bytes: Vec<u8>) -> Body {
        let left = bytes.len() as u64;
        let more = (left > 0).then(|| Box::new(More { rest: vec::IntoIter::default(), made: bytes }));
        Body { current: (BodyPiece::Made(0), left), left, more }
    }

    /// The rests of several bodies, one after the other.
    pub fn chain(bodies: impl IntoIterator<Item = Body>) -> Body {
        let (mut pieces, mut made) = (Vec::new(), Vec::new());
        for body in bodies {
            let before = made.len();
            let (rest, of_body) = body.more.map_or_else(Default::default, |more| (more.rest, more.made));
            let all = std::iter::once(body.current).chain(rest).filter(|(_, len)| *len > 0);
            pieces.extend(all.map(|(piece, len)| match piece {
                BodyPiece::Made(offset) => (BodyPiece::Made(before + offset), len),
                piece => (piece, len),
            }));
            made.extend_from_slice(&of_body);
        }
        from_pieces(pieces, made)
    }

    /// A message without a body.
    pub fn empty() -> Body {
        Body::from_bytes(Vec::new())
    }

    /// The number of bytes left.
    pub fn len(&self) -> u64 {
        self.left
    }

    /// True if no bytes are left.
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// The next contiguous bytes.
    pub fn chunk(&self) -> &[u8] {
        self.part(&self.current, 0)
    }

    /// Fills `slices` with the next bytes and returns how many of them are used.
    pub fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut used = 0;
        let rest = self.more.as_ref().map_or(&[][..], |more| more.rest.as_slice());
        for piece in std::iter::once(&self.current).chain(rest) {
            let mut done = 0;
            while done < piece.1 {
                let bytes = self.part(piece, done);
                match slices.get_mut(used) {
                    Some(slice) if !bytes.is_empty() => *slice = IoSlice::new(bytes),
                    _ => return used,
                }
                used += 1;
                done += bytes.len() as u64;
            }
        }
        used
    }

    /// Skips `n` bytes, at most to the end.
    pub fn advance(&mut self, n: u64) {
        let mut n = n.min(self.left);
        self.left -= n;
        loop {
            let (piece, left) = &mut self.current;
            if n < *left {
                if n > 0 {
                    piece.skip(n);
                    *left -= n;
                }
                return;
            }
            // Most pieces are skipped at once, whatever their bytes are.
            n -= std::mem::take(left);
            match self.more.as_mut().and_then(|more| more.rest.next()) {
                Some(next) => self.current = next,
                None => return,
            }
        }
    }

    /// Keeps only the next `n` bytes.
    pub fn truncate(&mut self, n: u64) {
        if n >= self.left {
            return;
        }
        let mut excess = self.left - n;
        self.left = n;
        let mut rest = self.more.as_mut().map(|more| &mut more.rest);
        while let Some(rest) = &mut rest
            && let Some((_, len)) = rest.as_mut_slice().last_mut()
        {
            if *len > excess {
                *len -= excess;
                return;
            }
            excess -= *len;
            rest.next_back();
        }
        self.current.1 -= excess;
    }

    /// Compares the next bytes with `data` and skips the equal ones. Returns the number of equal bytes: the
    /// length of `data` if all of it is as expected.
    pub fn compare(&mut self, data: &[u8]) -> usize {
        self.compare_noting(data, |_| ())
    }

    /// As [`Body::compare`]; passes the equal bytes to `note`, in their order.
    pub fn compare_noting<'a>(&mut self, data: &'a [u8], mut note: impl FnMut(Equal<'a>)) -> usize {
        let mut same = 0;
        while same < data.len() {
            let chunk = self.chunk();
            let n = chunk.len().min(data.len() - same);
            let theirs = &data[same..same + n];
            if n == 0 {
                break;
            }
            let equal = match chunk[..n] == *theirs {
                true => n,
                false => chunk.iter().zip(theirs).take_while(|(a, b)| a == b).count(),
            };
            note(self.current.0.describe(&theirs[..equal]));
            self.advance(equal as u64);
            same += equal;
            if equal < n {
                break;
            }
        }
        same
    }

    /// The contiguous bytes behind the first `done` bytes of a piece with its length. There may be none behind the first part of
    /// content from files: what follows is known only when it is reached.
    fn part<'a>(&'a self, (piece, len): &'a (BodyPiece, u64), done: u64) -> &'a [u8] {
        let bytes = match piece {
            BodyPiece::Filler(filler, offset) => &filler.bytes()[filler_place(*offset, done)..],
            _ if done > 0 => &[],
            BodyPiece::PageEnd(all, offset) => &all[*offset..],
            BodyPiece::Made(offset) => self.more.as_ref().map_or(&[][..], |more| &more.made[*offset..]),
            BodyPiece::Content(reading) => reading.chunk(),
        };
        &bytes[..bytes.len().min(usize::try_from(len - done).unwrap_or(usize::MAX))]
    }

    /// All bytes that are left, for bodies that are known to be small.
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

/// The start of bodies of content with `unique`: a unique one names its object, a common one its type.
fn mark(unique: bool, oid: &Oid) -> String {
    match unique {
        true => format!("http:1:{}:{:02x}:{:016x}\n", oid.world, oid.kind.0, oid.name),
        false => format!("common content of kind {:02x}\n", oid.kind.0),
    }
}

/// The number of bytes that suffices for most tags: the text around the URL, its path and an extension.
const TAG_ROOM: usize = 24 + PATH_LEN;

/// A page with its tags at even distances. A tag that no longer fits is left out.
fn container(builder: &mut Builder<'_>, catalog: &Catalog, oid: &Oid) {
    let (start, size) = (builder.at, builder.end - builder.at);
    let count = catalog.embedded_count(oid);
    let step = size / (count + 1);
    // Content from files needs no frame.
    let framed = matches!(builder.material, Material::Filler(..))
        && size >= (PAGE_HEAD.len() + PAGE_TAIL.len()) as u64;
    let end = builder.end - if framed { PAGE_TAIL.len() as u64 } else { 0 };
    // Tags are made in one go.
    builder.made.reserve(count as usize * TAG_ROOM);
    builder.pieces.reserve(3 + 2 * count as usize);
    if framed {
        builder.page_end(PAGE_HEAD);
    }
    for (index, embedded) in catalog.first_embedded(oid, count).enumerate() {
        builder.stretch_between_tags((start + step * (index as u64 + 1)).min(end));
        let tag = builder.made.len();
        builder.made.extend_from_slice(b"<embed src=\"");
        catalog.write_path(&embedded, &mut builder.made);
        builder.made.extend_from_slice(b"\">");
        let len = (builder.made.len() - tag) as u64;
        if builder.at + len > end {
            break;
        }
        builder.add(BodyPiece::Made(tag), len);
    }
    if framed {
        builder.stretch(end);
        builder.page_end(PAGE_TAIL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::Embeds;
    use crate::id::IdSource;
    use crate::{ContentKind, Distr, Selector, UniqId};

    fn oid(name: u64) -> Oid {
        Oid { world: UniqId::default(), kind: ContentKind::FIRST, name }
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
            embeds: Some(Embeds {
                kinds: Selector::only(ContentKind::of_index(1)),
                count: Distr::Zipf { n: 13 },
            }),
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
            let page = Oid { world, kind: ContentKind::FIRST, name };
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
        // zipf(13) has a mean of 4.3 and a standard deviation of 3.3; the tolerance is five standard errors.
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
