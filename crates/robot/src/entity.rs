//! The content of a reply as it arrives: is it what the server must have sent, and what does it lead to?

use std::io::Write;

use flate2::write::MultiGzDecoder;
use polygraph_stats::ErrorKind;
use polygraph_traffic::ranges::RangeSpec;
use polygraph_traffic::{Body, Catalog, Method};
use polygraph_wire::checksum::{self, ContentMd5};
use polygraph_wire::multipart::{self, MultipartError};
use polygraph_wire::range::ContentRange;

use crate::order::Order;
use crate::reply::{Coding, Content, Facts};
use crate::settings::Verify;

/// What is kept of the bytes at the first difference.
const SAMPLE: usize = 24;

/// Compares content with what it has to be.
#[derive(Debug)]
struct Comparison {
    /// What has to come.
    expected: Body,
    /// Bytes that were compared and equal.
    equal: u64,
    /// The first bytes that were not equal.
    differs: Option<Vec<u8>>,
}

impl Comparison {
    fn new(expected: Body) -> Comparison {
        Comparison { expected, equal: 0, differs: None }
    }

    fn take(&mut self, bytes: &[u8]) {
        if let Some(sample) = &mut self.differs {
            let room = SAMPLE - sample.len().min(SAMPLE);
            sample.extend_from_slice(&bytes[..room.min(bytes.len())]);
            return;
        }
        // What comes after the expected end is a matter of the size, not of the bytes.
        let bytes = &bytes[..bytes.len().min(usize::try_from(self.expected.len()).unwrap_or(usize::MAX))];
        let same = self.expected.compare(bytes);
        self.equal += same as u64;
        if same < bytes.len() {
            self.differs = Some(bytes[same..].iter().take(SAMPLE).copied().collect());
        }
    }

    /// What is wrong, if anything.
    fn verdict(&self) -> Option<(ErrorKind, String)> {
        let sample = self.differs.as_ref()?;
        let shown = String::from_utf8_lossy(sample).into_owned();
        let at = self.equal;
        // An altered byte stands among expected ones; another object's text goes on as its own.
        Some(match polygraph_traffic::body::is_filler(sample) {
            true => (
                ErrorKind::WrongObject,
                format!("from byte {at} on the body is that of another object: {shown:?}"),
            ),
            false => (ErrorKind::AlteredBody, format!("the body differs from byte {at} on: {shown:?}")),
        })
    }
}

/// How content becomes what is compared.
#[derive(Debug)]
enum Way {
    /// It is not looked at.
    Ignored,
    /// Nobody knows what it has to be, but it may lead somewhere.
    Unknown,
    /// As it is.
    Plain(Comparison),
    /// Compressed.
    Gzip(Box<MultiGzDecoder<Sink>>),
    /// Several ranges of the whole object.
    Parts(Box<Parts>),
}

/// Where decompressed bytes go.
#[derive(Debug)]
struct Sink(Comparison, Vec<u8>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.take(bytes);
        self.1.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct Parts {
    reader: multipart::Reader,
    seen: Seen,
}

/// The parts seen so far.
#[derive(Debug)]
struct Seen {
    whole: Body,
    current: Option<Comparison>,
    problem: Option<(ErrorKind, String)>,
    /// Bytes of all parts.
    bytes: u64,
    count: usize,
    equal: u64,
}

/// The content of one reply.
pub struct Entity<'a> {
    catalog: &'a Catalog,
    order: &'a Order,
    url: &'a dyn Fn() -> String,
    verify: Verify,
    way: Way,
    /// Whether the robot accepts compressed content.
    accepts_gzip: bool,
    digest: Option<(ContentMd5, Vec<u8>)>,
    problem: Option<(ErrorKind, String)>,
    /// Looks for links, if the robot follows any.
    pub links: Option<crate::links::Links>,
}

/// What came of verification.
#[derive(Clone, Copy, Debug, Default)]
pub struct Verified {
    /// Bytes that were compared.
    pub bytes: u64,
    /// A digest was checked.
    pub digest: bool,
}

impl<'a> Entity<'a> {
    /// The content of the reply to `order`. `url` tells its URL.
    pub fn new(
        catalog: &'a Catalog,
        order: &'a Order,
        url: &'a dyn Fn() -> String,
        verify: Verify,
        accepts_gzip: bool,
        links: Option<crate::links::Links>,
    ) -> Entity<'a> {
        let way = Way::Ignored;
        Entity { catalog, order, url, verify, way, accepts_gzip, digest: None, problem: None, links }
    }

    fn expected(&self) -> Body {
        self.catalog.body(&self.order.oid, &[])
    }

    /// Size of the object, without any coding.
    fn size(&self) -> u64 {
        self.catalog.size(&self.order.oid)
    }

    fn begin_ranges(&mut self, facts: &Facts) -> Result<(), ErrorKind> {
        let Some(rare) = facts.rare.as_deref() else { return Err(ErrorKind::BadRange) };
        let size = self.size();
        match rare.range {
            // Ranges of the coded bytes: nobody here knows how many there are, nor what they are.
            Some(ContentRange::Part(range, _)) if facts.coding == Coding::Gzip => {
                if facts.length.is_some_and(|length| length != range.len()) {
                    return Err(ErrorKind::BadRange);
                }
            }
            _ if facts.coding == Coding::Gzip => {}
            Some(ContentRange::Part(range, whole)) => {
                if whole.is_some_and(|whole| whole != size) {
                    return Err(ErrorKind::BadInstanceLength);
                }
                if facts.length.is_some_and(|length| length != range.len()) {
                    return Err(ErrorKind::BadRange);
                }
                if !asked_for(self.order, size, range.len(), 1) {
                    return Err(ErrorKind::TooMuchRange);
                }
                let mut body = self.expected();
                body.advance(range.first());
                body.truncate(range.len());
                self.way = Way::Plain(Comparison::new(body));
            }
            _ => {
                let boundary = rare.content_type.as_deref().and_then(multipart::boundary);
                let reader = boundary.and_then(|boundary| multipart::Reader::new(boundary).ok());
                let Some(reader) = reader else { return Err(ErrorKind::MultipartBoundary) };
                let whole = self.expected();
                let seen = Seen { whole, current: None, problem: None, bytes: 0, count: 0, equal: 0 };
                self.way = Way::Parts(Box::new(Parts { reader, seen }));
            }
        }
        Ok(())
    }

    /// What is wrong with the complete content, if anything, and how much of it was compared.
    pub fn finish(self, facts: &Facts) -> (Option<(ErrorKind, String)>, Verified) {
        let size = self.size();
        let (mut verified, mut problem) = (Verified::default(), self.problem);
        let note = |problem: &mut Option<_>, found: Option<_>| {
            if problem.is_none() {
                *problem = found;
            }
        };
        let wrong_size = |seen: u64, size: u64| {
            (seen != size).then(|| (ErrorKind::WrongSize, format!("{seen} body bytes instead of {size}")))
        };
        if let Some((mut digest, announced)) = self.digest {
            verified.digest = true;
            let found = checksum::text(digest.finish());
            if found[..] != announced[..] {
                let found = String::from_utf8_lossy(&found).into_owned();
                let announced = String::from_utf8_lossy(&announced).into_owned();
                let text = format!("the digest of the body is {found}, Content-MD5 says {announced}");
                note(&mut problem, Some((ErrorKind::AlteredBody, text)));
            }
        }
        match self.way {
            Way::Ignored | Way::Unknown => {}
            Way::Plain(comparison) => {
                verified.bytes = comparison.equal;
                note(&mut problem, comparison.verdict());
                if self.verify == Verify::Full && facts.status == 200 {
                    note(&mut problem, wrong_size(facts.body_bytes, size));
                }
            }
            Way::Gzip(mut decoder) => {
                let complete = decoder.try_finish();
                let Sink(comparison, _) = decoder.get_ref();
                verified.bytes = comparison.equal;
                note(&mut problem, comparison.verdict());
                if let Err(e) = complete {
                    note(&mut problem, Some((ErrorKind::BadCoding, format!("broken gzip content: {e}"))));
                } else if self.verify == Verify::Full {
                    note(&mut problem, wrong_size(comparison.equal, size));
                }
            }
            Way::Parts(parts) => {
                let Parts { reader, mut seen } = *parts;
                seen.end_part();
                verified.bytes = seen.equal;
                note(&mut problem, seen.problem);
                if !reader.is_done() {
                    let text = "the last boundary is missing".to_owned();
                    note(&mut problem, Some((ErrorKind::MultipartBoundary, text)));
                }
                if !asked_for(self.order, size, seen.bytes, seen.count) {
                    let text =
                        format!("{} bytes in {} parts are more than asked for", seen.bytes, seen.count);
                    note(&mut problem, Some((ErrorKind::TooMuchRange, text)));
                }
            }
        }
        (problem, verified)
    }
}

/// True if so many bytes in so many parts of an object of `size` bytes are not more than `order` asks for.
fn asked_for(order: &Order, size: u64, bytes: u64, parts: usize) -> bool {
    let Some(ranges) = &order.ranges else { return false };
    let asked = ranges.iter().map(|spec| match *spec {
        RangeSpec::From(first, last) => {
            last.map_or(size, |last| last.saturating_add(1)).min(size).saturating_sub(first)
        }
        RangeSpec::Suffix(length) => length.min(size),
    });
    parts <= ranges.len() && bytes <= asked.sum()
}

impl Seen {
    fn begin_part(&mut self, first: u64, length: u64) {
        self.end_part();
        self.count += 1;
        let mut body = self.whole.clone();
        body.advance(first);
        body.truncate(length);
        self.current = Some(Comparison::new(body));
    }

    fn end_part(&mut self) {
        if let Some(comparison) = self.current.take() {
            self.equal += comparison.equal;
            if self.problem.is_none() {
                self.problem = comparison.verdict();
            }
        }
    }
}

impl Parts {
    fn take(&mut self, bytes: &[u8]) {
        let seen = &mut self.seen;
        let fed = self.reader.feed(bytes, |piece| match piece {
            multipart::Piece::Part(range, _) => seen.begin_part(range.first(), range.len()),
            multipart::Piece::Data(data) => {
                seen.bytes += data.len() as u64;
                if let Some(current) = &mut seen.current {
                    current.take(data);
                }
            }
        });
        if let Err(e) = fed
            && seen.problem.is_none()
        {
            let kind = match e {
                MultipartError::Boundary => ErrorKind::MultipartBoundary,
                MultipartError::Garbage => ErrorKind::MultipartGarbage,
                MultipartError::Long => ErrorKind::MultipartTokenLong,
                MultipartError::Part => ErrorKind::MultipartContent,
            };
            seen.problem = Some((kind, e.to_string()));
        }
    }
}

impl Content for Entity<'_> {
    fn begin(&mut self, facts: &Facts) -> Result<(), ErrorKind> {
        let rare = facts.rare.as_deref();
        let partial = facts.status == 206;
        if !partial && facts.status != 416 && rare.is_some_and(|rare| rare.range.is_some()) {
            return Err(ErrorKind::UnexpectedRange);
        }
        if facts.status != 200 {
            // A part of a page may begin and end within a tag.
            self.links = None;
        }
        if !matches!(facts.status, 200 | 206) {
            return Ok(());
        }
        // Without any Accept-Encoding all codings are acceptable (RFC 9110, section 12.5.3), but a server that has
        // the plain body sends that; who gets the other one got a reply to somebody else's request.
        let content = self.catalog.content(self.order.oid.kind);
        let plain_on_offer = content.is_none_or(|content| content.encodings.identity);
        let unwanted = facts.coding == Coding::Gzip && !self.accepts_gzip && plain_on_offer;
        if facts.coding == Coding::Other || unwanted {
            let text = format!("{:?} content although the request does not accept it", facts.coding);
            self.problem = Some((ErrorKind::UnacceptableCoding, text));
            return Ok(());
        }
        if let Some(links) = &mut self.links
            && !links.concern(
                self.catalog,
                self.order,
                rare.and_then(|rare| rare.content_type.as_deref()),
                rare.and_then(|rare| rare.server.as_deref()),
            )
        {
            self.links = None;
        }
        if self.order.method == Method::Head {
            return Ok(());
        }
        if self.order.foreign.is_some() {
            self.way = Way::Unknown;
            return Ok(());
        }
        if partial {
            return self.begin_ranges(facts);
        }
        if let Some(announced) = rare.and_then(|rare| rare.md5.clone()) {
            self.digest = Some((ContentMd5::default(), announced));
        }
        let url = match self.catalog.content(self.order.oid.kind) {
            Some(content) if content.injection.is_some() => (self.url)(),
            _ => String::new(),
        };
        let comparison = Comparison::new(self.catalog.body(&self.order.oid, url.as_bytes()));
        self.way = match facts.coding {
            Coding::Gzip => Way::Gzip(Box::new(MultiGzDecoder::new(Sink(comparison, Vec::new())))),
            _ => Way::Plain(comparison),
        };
        Ok(())
    }

    fn take(&mut self, bytes: &[u8]) {
        if let Some((digest, _)) = &mut self.digest {
            digest.update(bytes);
        }
        match &mut self.way {
            Way::Ignored => {}
            Way::Unknown => {
                if let Some(links) = &mut self.links {
                    links.take(bytes);
                }
            }
            Way::Plain(comparison) => {
                comparison.take(bytes);
                if let Some(links) = &mut self.links {
                    links.take(bytes);
                }
            }
            Way::Gzip(decoder) => {
                if let Err(e) = decoder.write_all(bytes)
                    && self.problem.is_none()
                {
                    self.problem = Some((ErrorKind::BadCoding, format!("broken gzip content: {e}")));
                }
                let decoded = std::mem::take(&mut decoder.get_mut().1);
                if let Some(links) = &mut self.links {
                    links.take(&decoded);
                }
            }
            Way::Parts(parts) => parts.take(bytes),
        }
    }
}
