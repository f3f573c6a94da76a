//! The content of a reply while it arrives: whether the server must have sent it, and which objects it embeds.

use std::cell::RefCell;
use std::io::Write;

use flate2::write::GzDecoder;
use polygraph_link::Link;
use polygraph_stats::ErrorKind;
use polygraph_traffic::content::{BodySource, MAX_BODY};
use polygraph_traffic::{Body, Catalog, Fingerprint, Method, Oid};
use polygraph_wire::checksum::{self, ContentMd5};
use polygraph_wire::marks::ContentsMark;
use polygraph_wire::multipart::{self, MultipartError};
use polygraph_wire::range::{ByteRange, ContentRange};

use crate::context::{ProfileContext, RobotContext};
use crate::exchange::comparison::Comparison;
use crate::exchange::digests::KnownDigests;
use crate::exchange::links::LinkSearch;
use crate::exchange::reply::{Coding, ContentSink, ReplyMeta};
use crate::request::Request;
use crate::settings::{Settings, Verify};
use crate::violation::Violation;

/// How content is compared.
#[derive(Debug)]
enum Way {
    /// The content is not compared.
    Ignored,
    /// The robot does not know the content, which may have links.
    Unknown,
    /// The content has no coding.
    Plain(Comparison),
    /// The content is compressed.
    Gzip(Box<GzDecoder<Sink>>),
    /// The content is several ranges of the object.
    Parts(Box<Parts>),
}

/// Receives decompressed bytes, compares all of them, and keeps the correct ones for the search for links.
#[derive(Debug)]
struct Sink(Comparison, Vec<u8>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let right = self.0.take(bytes);
        self.1.extend_from_slice(&bytes[..right]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[derive(Debug)]
struct Parts {
    reader: multipart::MultipartReader,
    seen: Seen,
}

/// The parts that have arrived so far.
#[derive(Debug)]
struct Seen {
    whole: Body,
    current: Option<Comparison>,
    /// Whether objects are real content.
    real: bool,
    problem: Option<Violation>,
    /// Bytes of all parts.
    bytes: u64,
    count: usize,
    equal: u64,
}

/// The digest that a reply announces, and that of its content.
struct Digest {
    /// The value of `Content-MD5`.
    announced: Vec<u8>,
    /// The digest of all of the object, if it is known.
    known: Option<[u8; 16]>,
    /// The digest of what arrived so far, if that of the object is not known.
    so_far: ContentMd5,
}

/// The content of one reply.
pub struct Entity<'a> {
    settings: &'a Settings,
    /// The contents that the robot expects of servers.
    expected_contents: Fingerprint,
    /// What is prepared for the robot's profile.
    prepared: &'a ProfileContext,
    request: &'a Request,
    url: &'a dyn Fn() -> String,
    /// Size of the object in bytes, without any coding, if it is known.
    size: Option<u64>,
    way: Way,
    known_digests: &'a RefCell<KnownDigests>,
    digest: Option<Box<Digest>>,
    problem: Option<Violation>,
    /// Finds links to embedded objects, if the content may have any.
    pub links: Option<Box<LinkSearch>>,
}

/// The amount of verified content.
#[derive(Clone, Copy, Debug, Default)]
pub struct Verified {
    /// Number of bytes that were equal to the expected ones.
    pub bytes: u64,
    /// Number of bytes that were not compared.
    pub uncompared: u64,
    /// Whether a digest was checked.
    pub digest: bool,
    /// Whether object and body are empty.
    pub empty: bool,
    /// Whether the size of the object was known: correct bytes may otherwise be only the first ones of the body.
    pub sized: bool,
    /// Whether nothing of the content is that of a server of the test.
    pub foreign: bool,
}

impl Verified {
    /// Whether the whole reply was checked. A digest does not replace the size, because whoever cuts a body can make another digest.
    pub fn is_whole(&self) -> bool {
        self.sized && (self.bytes > 0 || self.digest || self.empty)
    }
}

impl<'a> Entity<'a> {
    /// The content of the reply to `request`, whose URL is `url()`.
    pub fn new<L: Link>(
        cx: RobotContext<'a, L>,
        request: &'a Request,
        url: &'a dyn Fn() -> String,
    ) -> Entity<'a> {
        Entity {
            settings: &cx.group.settings,
            expected_contents: cx.contents,
            prepared: cx.prepared(),
            request,
            url,
            size: None,
            way: Way::Ignored,
            known_digests: &cx.group.known_digests,
            digest: None,
            problem: None,
            links: None,
        }
    }

    fn catalog(&self) -> &'a Catalog {
        &self.settings.field.catalog
    }

    /// The violation if the server has other contents than the robots. Bodies then prove nothing.
    fn disagreement(&self, told: ContentsMark) -> Option<Violation> {
        let (own, theirs) = (self.expected_contents, told.fingerprint);
        let same_sizes = self.settings.field.verify == Verify::Bytes || own.sizes == theirs.sizes;
        let what = match (own.contents == theirs.contents, same_sizes) {
            _ if self.request.foreign.is_some() => return None,
            (true, true) => return None,
            (true, false) => "the server was started with other reply sizes than the client",
            (false, _) => "the server was started with another seed or other contents than the client",
        };
        let show = |fingerprint: Fingerprint| {
            let mut text = b"X-Contents: ".to_vec();
            fingerprint.write(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        };
        Some(Violation::new(ErrorKind::OtherContents, what).expected(show(own), show(theirs)))
    }

    /// The body of the object, without any coding. Only text that is inserted may quote the URL.
    fn expected(&self) -> Body {
        let catalog = self.catalog();
        let url = match catalog.content(self.request.oid.kind) {
            Some(content) if content.injection.is_some() => (self.url)(),
            _ => String::new(),
        };
        catalog.body_of(&self.request.oid, url.as_bytes(), self.size())
    }

    /// Size of the object, without any coding. An unknown size does not limit the comparison.
    fn size(&self) -> u64 {
        self.size.unwrap_or(MAX_BODY as u64)
    }

    /// The violation in the length that a reply to HEAD announces. It may announce none (RFC 9110, section 8.6), and only the server
    /// knows the length of a compressed object.
    fn head_length(&self, meta: &ReplyMeta) -> Option<Violation> {
        let told = meta.length_of_get.filter(|_| self.size.is_some() && meta.is_marked())?;
        if self.request.foreign.is_some() || meta.status != 200 || meta.coding != Coding::Identity {
            return None;
        }
        let size = self.expected().len();
        let violation =
            || Violation::new(ErrorKind::HeadLength, format!("Content-Length: {told} instead of {size}"));
        (told != size).then(|| violation().expected(format!("{size} bytes"), format!("{told} bytes")))
    }

    /// Whether the object is real content: bytes that differ then do not show where they come from.
    fn is_real(&self) -> bool {
        let source = self.catalog().content(self.request.oid.kind).map(|content| &content.source);
        matches!(source, Some(BodySource::Database(_) | BodySource::Root(_)))
    }

    fn begin_ranges(&mut self, meta: &ReplyMeta) -> Result<(), Violation> {
        let size = self.size();
        let rare = meta.rare.as_deref();
        let coded = meta.coding == Coding::Gzip;
        match rare.and_then(|rare| rare.range) {
            // Positions count in the compressed object (RFC 9110, section 14.1.2), which only the server has.
            Some(ContentRange::Part(range, whole)) if coded => {
                let violation = whole.and_then(|whole| not_asked_for(self.request, whole, range));
                return violation.map_or(Ok(()), Err);
            }
            Some(ContentRange::Part(range, whole)) => {
                let problem = another_size(size, range, whole);
                if let Some(violation) = problem.or_else(|| not_asked_for(self.request, size, range)) {
                    return Err(violation);
                }
                if !asked_for(self.request, size, range.len(), 1) {
                    let violation =
                        Violation::new(ErrorKind::TooMuchRange, "more bytes than the robot requested");
                    return Err(violation.expected(wanted(self.request, size), text(range, whole)));
                }
                self.way = Way::Plain(Comparison::part(&self.expected(), range.first(), range.len()));
            }
            _ => {
                let boundary = rare.and_then(|rare| rare.multipart.as_deref()).and_then(multipart::boundary);
                let unreadable = rare.is_some_and(|rare| rare.bad_range);
                let reader = boundary.and_then(|boundary| multipart::MultipartReader::new(boundary).ok());
                let Some(reader) = reader.filter(|_| !unreadable) else {
                    let seen = if unreadable { "a Content-Range that cannot be read" } else { "neither" };
                    let violation = Violation::new(
                        ErrorKind::BadRange,
                        "a partial reply that does not say which part it is",
                    );
                    return Err(violation.expected("Content-Range, or a boundary of parts", seen));
                };
                if coded {
                    return Ok(());
                }
                let whole = self.expected();
                let real = self.is_real();
                let seen = Seen { whole, current: None, real, problem: None, bytes: 0, count: 0, equal: 0 };
                self.way = Way::Parts(Box::new(Parts { reader, seen }));
            }
        }
        Ok(())
    }

    /// The violation in a reply that denies that the object has any of the requested bytes. Only the server knows the bytes of a
    /// compressed object, and it may refuse several ranges for their number (RFC 9110, section 15.5.17).
    fn refused(&self) -> Option<Violation> {
        let (request, size) = (self.request, self.size());
        let encodings = self.catalog().content(request.oid.kind).map(|content| content.encodings);
        let plain = encodings
            .is_none_or(|on_offer| !on_offer.gzip || on_offer.identity && !self.prepared.accepts_gzip);
        let alone = request.range_specs().len() == 1;
        let known = alone && plain && request.foreign.is_none() && self.size.is_some();
        let violation = || Violation::new(ErrorKind::BadStatus, "the object has some of the requested bytes");
        (known && asked(request, size).next().is_some())
            .then(|| violation().expected(format!("status 206, {}", wanted(request, size)), "status 416"))
    }

    /// The violation in the complete content, if there is one, and how much content was compared. Bytes prove more than sizes,
    /// and sizes more than digests, so the first violation in this order counts.
    pub fn finish(&mut self, meta: &ReplyMeta) -> (Option<Violation>, Verified) {
        let real = self.is_real();
        let sized = self.size.is_some();
        let mut verified = Verified { sized, ..Verified::default() };
        let wrong_size = |seen: u64, size: u64| {
            let violation =
                || Violation::new(ErrorKind::WrongSize, format!("{seen} body bytes instead of {size}"));
            (seen != size).then(|| violation().expected(format!("{size} bytes"), format!("{seen} bytes")))
        };
        let problem = self.problem.take();
        let of_content = match &mut self.way {
            Way::Unknown => {
                verified.uncompared = meta.body_bytes;
                problem
            }
            Way::Ignored => {
                verified.uncompared = meta.body_bytes;
                problem.or_else(|| wrong_length(self.request, meta))
            }
            Way::Plain(comparison) => {
                verified.bytes = comparison.equal;
                let is_too_much = comparison.size == 0 && meta.body_bytes > 0;
                verified.foreign = is_too_much || comparison.is_foreign(real);
                verified.empty = comparison.size == 0 && meta.body_bytes == 0;
                let size = || match meta.status {
                    206 => wrong_length(self.request, meta),
                    _ if sized => wrong_size(meta.body_bytes, comparison.size),
                    _ => None,
                };
                problem.or_else(|| comparison.violation(real)).or_else(size)
            }
            Way::Gzip(decoder) => {
                let end = decoder.try_finish();
                let Sink(comparison, _) = decoder.get_ref();
                verified.bytes = comparison.equal;
                verified.foreign = comparison.is_foreign(real);
                let coding = problem.or_else(|| end.err().map(|error| broken(&error)));
                let size = || if sized { wrong_size(comparison.equal, comparison.size) } else { None };
                match (comparison.violation(real), coding) {
                    // One wrong bit can change all text that is decompressed after it.
                    (Some(text), Some(coding)) if coding.kind == ErrorKind::AlteredBody => {
                        Some(Violation { comparison: text.comparison, ..coding })
                    }
                    (text, coding) => text.or(coding).or_else(size),
                }
            }
            Way::Parts(parts) => {
                let Parts { reader, seen } = &mut **parts;
                let size = seen.whole.len();
                seen.end_part();
                verified.bytes = seen.equal;
                let open = || {
                    let violation =
                        Violation::new(ErrorKind::MultipartBoundary, "the last boundary is missing");
                    (!reader.is_done()).then_some(violation)
                };
                let much = || {
                    let text = format!("{} bytes in {} parts", seen.bytes, seen.count);
                    let violation =
                        Violation::new(ErrorKind::TooMuchRange, "more bytes than the robot requested");
                    let more = !asked_for(self.request, size, seen.bytes, seen.count);
                    more.then(|| violation.expected(wanted(self.request, size), text))
                };
                problem.or(seen.problem.take()).or_else(open).or_else(much)
            }
        };
        let digest = self.digest.take();
        verified.digest = digest.is_some();
        let of_digest = || digest.and_then(|digest| self.wrong_digest(*digest));
        (of_content.or_else(of_digest), verified)
    }
}

impl Entity<'_> {
    /// The violation in the digest that a reply with the right content announces, if there is one. Content whose size is not known
    /// is right as far as it goes, so the digest may be the only sign that the device cut it.
    fn wrong_digest(&self, digest: Digest) -> Option<Violation> {
        let Digest { announced, known, mut so_far } = digest;
        let found = known.unwrap_or_else(|| {
            let found = so_far.finish();
            if let Some(whole) = self.whole_object() {
                self.known_digests.borrow_mut().keep(whole, found);
            }
            found
        });
        let found = checksum::text(found);
        let differs = || {
            let [announced, found] =
                [&announced[..], &found[..]].map(|text| String::from_utf8_lossy(text).into_owned());
            let (kind, detail) = match self.size {
                Some(_) => {
                    (ErrorKind::WrongDigest, "Content-MD5 is not the digest of the body, which is right")
                }
                None => (ErrorKind::AlteredBody, "the digest of the body is not that of Content-MD5"),
            };
            Violation::new(kind, detail).expected(announced, found)
        };
        (announced != found).then(differs)
    }

    /// The object and its size, if the right content is all of it without coding and does not depend on the URL.
    fn whole_object(&self) -> Option<(Oid, u64)> {
        let content = self.catalog().content(self.request.oid.kind)?;
        let is_plain = matches!(self.way, Way::Plain(_)) && content.injection.is_none();
        Some((self.request.oid, self.size.filter(|_| is_plain)?))
    }
}

/// The violation in compressed content that cannot be decompressed.
fn broken(error: &std::io::Error) -> Violation {
    let (kind, text) = match error.kind() {
        std::io::ErrorKind::UnexpectedEof => (ErrorKind::WrongSize, "the compressed content ends early"),
        std::io::ErrorKind::WriteZero => (ErrorKind::WrongSize, "bytes follow the compressed content"),
        _ => (ErrorKind::AlteredBody, "the compressed content is broken"),
    };
    Violation::new(kind, text).expected("one gzip member (RFC 1952)", error.to_string())
}

fn text(range: ByteRange, whole: Option<u64>) -> String {
    field(ContentRange::Part(range, whole))
}

fn field(range: ContentRange) -> String {
    let mut text = Vec::new();
    range.write(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// First and last byte of each requested range, as far as an object of `size` bytes has them.
fn asked(request: &Request, size: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
    let ends = request.range_specs().iter().map(move |spec| spec.within(size));
    ends.filter(|(first, end)| first < end).map(|(first, end)| (first, end - 1))
}

fn wanted(request: &Request, size: u64) -> String {
    let ranges: Vec<String> = asked(request, size).map(|(first, last)| format!("{first}-{last}")).collect();
    format!("bytes {}", ranges.join(","))
}

/// The violation in the length of a single part, if there is one.
fn wrong_length(request: &Request, meta: &ReplyMeta) -> Option<Violation> {
    let Some(ContentRange::Part(range, whole)) = meta.rare.as_deref()?.range else { return None };
    let (seen, size) = (meta.body_bytes, range.len());
    let wrong = meta.status == 206 && request.method != Method::Head && seen != size;
    let violation =
        || Violation::new(ErrorKind::BadRange, format!("{seen} body bytes of {}", text(range, whole)));
    wrong.then(|| violation().expected(format!("{size} bytes"), format!("{seen} bytes")))
}

/// The violation in a part whose object does not have the size that the part states.
fn another_size(size: u64, range: ByteRange, whole: Option<u64>) -> Option<Violation> {
    let violation = || Violation::new(ErrorKind::BadInstanceLength, "the object has another size");
    whole
        .is_some_and(|whole| whole != size)
        .then(|| violation().expected(format!("{size} bytes"), text(range, whole)))
}

/// The violation in a part that the robot did not request. A server may combine neighbouring ranges (RFC 9110, section 15.3.7.2).
fn not_asked_for(request: &Request, size: u64, range: ByteRange) -> Option<Violation> {
    let begin = asked(request, size).map(|(first, _)| first).min()?;
    let end = asked(request, size).map(|(_, last)| last).max()?;
    let meets = asked(request, size).any(|(first, last)| first <= range.last() && range.first() <= last);
    let fits = begin <= range.first() && range.last() <= end && meets;
    let violation = || Violation::new(ErrorKind::BadRange, "the range is not the requested one");
    (!fits).then(|| violation().expected(wanted(request, size), text(range, None)))
}

/// Whether this number of bytes and parts of an object of `size` bytes does not exceed what `request` selects.
fn asked_for(request: &Request, size: u64, bytes: u64, parts: usize) -> bool {
    parts <= request.range_specs().len()
        && bytes <= asked(request, size).map(|(first, last)| last - first + 1).sum()
}

impl Seen {
    fn begin_part(&mut self, request: &Request, range: ByteRange, told: Option<u64>) {
        self.end_part();
        self.count += 1;
        if self.problem.is_none() {
            let size = self.whole.len();
            self.problem = another_size(size, range, told).or_else(|| not_asked_for(request, size, range));
        }
        self.current = Some(Comparison::part(&self.whole, range.first(), range.len()));
    }

    fn end_part(&mut self) {
        if let Some(comparison) = self.current.take() {
            self.equal += comparison.equal;
            if self.problem.is_none() {
                self.problem = comparison.violation(self.real);
            }
        }
    }
}

impl Parts {
    fn take(&mut self, request: &Request, bytes: &[u8]) {
        let seen = &mut self.seen;
        let fed = self.reader.feed(bytes, |piece| match piece {
            multipart::MultipartPiece::Part(range, told) => seen.begin_part(request, range, told),
            multipart::MultipartPiece::Data(data) => {
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
            seen.problem = Some(Violation::new(kind, e.to_string()));
        }
    }
}

impl ContentSink for Entity<'_> {
    fn begin(&mut self, meta: &ReplyMeta) {
        let told = meta.marks.contents;
        self.problem = told.and_then(|told| self.disagreement(told));
        if self.problem.is_some() {
            return;
        }
        self.size = match self.settings.field.verify {
            Verify::Full => Some(self.catalog().size(&self.request.oid)),
            Verify::Bytes => told.and_then(|told| told.size),
        };
        let rare = meta.rare.as_deref();
        let partial = meta.status == 206;
        let told = rare.and_then(|rare| rare.range);
        let expected = match meta.status {
            206 => !self.request.range_specs().is_empty(),
            416 => true,
            _ => told.is_none(),
        };
        if !expected {
            let violation = Violation::new(ErrorKind::UnexpectedRange, "a part instead of the whole object");
            let field = told.map_or_else(String::new, |range| format!(", Content-Range: {}", field(range)));
            let seen = format!("status {}{field}", meta.status);
            self.problem = Some(violation.expected("status 200 without Content-Range", seen));
            return;
        }
        if meta.status == 416 {
            self.problem = self.refused();
        }
        if !matches!(meta.status, 200 | 206) {
            return;
        }
        // Without Accept-Encoding all codings are acceptable (RFC 9110, section 12.5.3), but a server that has the plain body
        // sends it; a robot that receives the compressed body received the reply to another request.
        let content = self.catalog().content(self.request.oid.kind);
        let plain_on_offer = content.is_none_or(|content| content.encodings.identity);
        let unwanted = meta.coding == Coding::Gzip && !self.prepared.accepts_gzip && plain_on_offer;
        if meta.coding == Coding::Other || unwanted {
            let text = format!("{:?} content although the request does not accept it", meta.coding);
            let violation = Violation::new(ErrorKind::UnacceptableCoding, text);
            let accepted = if self.prepared.accepts_gzip { "gzip or no coding" } else { "no coding" };
            self.problem = Some(violation.expected(accepted, format!("{:?}", meta.coding)));
            return;
        }
        if self.request.method == Method::Head {
            self.problem = self.head_length(meta);
            return;
        }
        let may_be_anything = self.settings.tolerance.foreign_replies && !meta.is_marked();
        // A part of a page may begin and end within a tag.
        if !partial && !may_be_anything {
            self.links = self
                .prepared
                .links
                .as_ref()
                .and_then(|filter| filter.search(self.catalog(), self.request, meta));
        }
        if self.request.foreign.is_some() || may_be_anything {
            self.way = Way::Unknown;
            return;
        }
        if partial {
            self.problem = self.begin_ranges(meta).err();
            return;
        }
        let comparison = Comparison::new(self.expected());
        self.way = match meta.coding {
            Coding::Gzip => Way::Gzip(Box::new(GzDecoder::new(Sink(comparison, Vec::new())))),
            _ => Way::Plain(comparison),
        };
        if let Some(announced) = rare.and_then(|rare| rare.md5.clone()) {
            let known = self.whole_object().and_then(|whole| self.known_digests.borrow().get(whole));
            self.digest = Some(Box::new(Digest { announced, known, so_far: ContentMd5::default() }));
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        if let Some(digest) = &mut self.digest
            && digest.known.is_none()
        {
            digest.so_far.update(bytes);
        }
        match &mut self.way {
            Way::Ignored => {}
            Way::Unknown => {
                if let Some(links) = &mut self.links {
                    links.take(bytes);
                }
            }
            Way::Plain(comparison) => {
                // Inserted content that is not ours has no links to follow.
                match &mut self.links {
                    Some(links) if links.reads_text() => {
                        let right = comparison.take(bytes);
                        links.take(&bytes[..right]);
                    }
                    Some(links) => {
                        comparison.take_noting(bytes, |right| links.take_known(right));
                    }
                    None => {
                        comparison.take(bytes);
                    }
                }
            }
            Way::Gzip(decoder) => {
                // The decoder holds back up to 32 KB until it receives more or is flushed; the robot follows links at once.
                let fed = decoder.write_all(bytes).and_then(|()| decoder.flush());
                if let Err(e) = fed
                    && self.problem.is_none()
                {
                    self.problem = Some(broken(&e));
                }
                let decoded = std::mem::take(&mut decoder.get_mut().1);
                if let Some(links) = &mut self.links {
                    links.take(&decoded);
                }
            }
            Way::Parts(parts) => parts.take(self.request, bytes),
        }
    }
}
