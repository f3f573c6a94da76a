//! Reads a reply: its head, its framing, and the meaning of the head.

mod violations;

use polygraph_stats::ErrorKind;
use polygraph_wire::body::{self, BodyReader, DeclaredFraming, Framing};
use polygraph_wire::date::{self, DATE_LEN};
use polygraph_wire::head::{self, HeadError, HeadIndex, Header, Persistence, ReplyHead, has_token, is_named};
use polygraph_wire::marks::Marks;
use polygraph_wire::range::ContentRange;

use crate::violation::Violation;

/// The largest head that is accepted, in bytes.
pub const MAX_HEAD: usize = 64 * 1024;

/// Maximum number of interim replies before a reply. Servers send one or two (RFC 9110, section 15.2).
const MAX_INTERIM: u32 = 32;

/// A time (January 2027, in seconds since 1970) that decides the century of two-digit years.
const CENTURY: u64 = 1_800_000_000;

/// The content coding of a reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coding {
    /// No coding.
    #[default]
    Identity,
    /// `gzip` (RFC 1952).
    Gzip,
    /// Any other coding.
    Other,
}

/// Facts that only some replies have: header fields, and findings about their framing.
#[derive(Clone, Debug, Default)]
pub struct RareFields {
    /// Value of `Location`.
    pub location: Option<Vec<u8>>,
    /// Value of `Content-Range`.
    pub range: Option<ContentRange>,
    /// Whether there is a `Content-Range` that cannot be read.
    pub bad_range: bool,
    /// Value of `Content-Type`, if it is one of several parts.
    pub multipart: Option<Vec<u8>>,
    /// Value of `Content-MD5`.
    pub md5: Option<Vec<u8>>,
    /// Value of `Alt-Svc`.
    pub alt_svc: Option<Vec<u8>>,
    /// Values of `Set-Cookie`.
    pub cookies: Vec<Vec<u8>>,
    /// Values of `WWW-Authenticate` and `Proxy-Authenticate`.
    pub challenges: Vec<Vec<u8>>,
    /// Value of `Server`; empty if there is none.
    pub server: Vec<u8>,
    /// Whether there is a `Content-Length` beside `Transfer-Encoding: chunked`.
    pub length_ignored: bool,
    /// Whether fields follow the last chunk.
    pub trailer: bool,
}

/// What `Content-Type` says, as far as it matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MediaType {
    /// There is no such field.
    #[default]
    Unknown,
    /// Markup or style, which may contain links.
    Markup,
    /// Any other type.
    Other,
}

impl MediaType {
    /// The type with this name: markup and style are `text/*ml`, style sheets and XHTML.
    pub(crate) fn of(value: &[u8]) -> MediaType {
        let essence = value.split(|&b| b == b';').next().unwrap_or_default().trim_ascii();
        let ends = |end: &[u8]| {
            essence.len() >= end.len() && essence[essence.len() - end.len()..].eq_ignore_ascii_case(end)
        };
        let is_text = starts_with(essence, b"text/");
        let is = is_text && (ends(b"ml") || essence.eq_ignore_ascii_case(b"text/css"))
            || essence.eq_ignore_ascii_case(b"application/xhtml+xml");
        if is { MediaType::Markup } else { MediaType::Other }
    }
}

/// Whether `value` starts with `start`, ignoring case.
fn starts_with(value: &[u8], start: &[u8]) -> bool {
    value.get(..start.len()).is_some_and(|value| value.eq_ignore_ascii_case(start))
}

/// The facts about a reply that a robot needs. A header field that is missing or unreadable is `None`.
#[derive(Clone, Debug, Default)]
pub struct ReplyMeta {
    /// Status code; 0 before there is a head.
    pub status: u16,
    /// The header fields of the benchmark.
    pub marks: Marks,
    /// Whether a shared cache may store the reply: `Cache-Control` has none of the bare directives `no-cache`, `no-store` and
    /// `private`, and `Pragma` has no `no-cache`. Other fields and directives do not matter (`docs/reference/models.md`, "Hit
    /// detection").
    pub may_be_stored: bool,
    /// Whether `Cache-Control` has one of these directives. `Pragma` means nothing in a reply (RFC 9111, section 5.4).
    pub forbids_storing: bool,
    /// Whether the sender leaves the connection open.
    pub keep_alive: bool,
    /// Size of head and framing in bytes.
    pub overhead_bytes: u64,
    /// Size of the content in bytes.
    pub body_bytes: u64,
    /// Announced length of the content in bytes.
    pub length: Option<u64>,
    /// `Content-Length` of a reply to HEAD: the length that the content would have.
    pub length_of_get: Option<u64>,
    /// `Date`, in seconds since 1970.
    pub date: Option<i64>,
    /// `Last-Modified`, in seconds since 1970.
    pub last_modified: Option<i64>,
    /// `Expires`, in seconds since 1970.
    pub expires: Option<i64>,
    /// `s-maxage` or `max-age` of `Cache-Control` in seconds, whichever comes last.
    pub max_age: Option<u64>,
    /// `Age` in seconds.
    pub age: Option<u64>,
    /// The content coding.
    pub coding: Coding,
    /// The type of the content.
    pub media: MediaType,
    /// Fields that only some replies have.
    pub rare: Option<Box<RareFields>>,
    /// The text of a `Date` that was read, and what it means: the next reply often has the same.
    pub recent_date: ([u8; DATE_LEN], Option<i64>),
}

impl ReplyMeta {
    /// Size of the complete reply in bytes.
    pub fn size(&self) -> u64 {
        self.overhead_bytes + self.body_bytes
    }

    /// Whether the reply is a redirect (`docs/reference/models.md`, "Redirects").
    pub fn is_redirect(&self) -> bool {
        matches!(self.status, 300..=303 | 307 | 308)
    }

    /// Whether the reply carries a mark of the servers of the test.
    pub fn is_marked(&self) -> bool {
        self.marks.xact.is_some() || self.marks.target().is_some()
    }

    fn rare_mut(&mut self) -> &mut RareFields {
        self.rare.get_or_insert_default()
    }

    /// Forgets everything, but keeps memory.
    fn clear(&mut self) {
        let ReplyMeta {
            status,
            marks,
            may_be_stored,
            forbids_storing,
            keep_alive,
            overhead_bytes,
            body_bytes,
            length,
            length_of_get,
            date,
            last_modified,
            expires,
            max_age,
            age,
            coding,
            media,
            rare,
            recent_date: _,
        } = self;
        marks.clear();
        (*may_be_stored, *forbids_storing, *keep_alive) = (false, false, false);
        (*status, *overhead_bytes, *body_bytes) = (0, 0, 0);
        (*length, *length_of_get, *max_age, *age) = (None, None, None, None);
        (*date, *last_modified, *expires) = (None, None, None);
        (*coding, *media) = (Coding::default(), MediaType::default());
        if let Some(rare) = rare {
            let mut server = std::mem::take(&mut rare.server);
            server.clear();
            **rare = RareFields { server, ..RareFields::default() };
        }
    }

    fn see_date(&mut self, value: &[u8]) {
        if value != self.recent_date.0 {
            let date = read_date(value);
            let Ok(text) = value.try_into() else {
                self.date = date;
                return;
            };
            self.recent_date = (text, date);
        }
        self.date = self.recent_date.1;
    }
}

/// Receives the content of a reply while it arrives.
pub trait ContentSink {
    /// The head is complete; the content follows.
    fn begin(&mut self, meta: &ReplyMeta);
    /// The next bytes of the content, framing removed.
    fn take(&mut self, bytes: &[u8]);
}

/// Reads one reply.
#[derive(Debug)]
pub struct ReplyReader {
    /// The start of a head that arrived in pieces.
    stash: Vec<u8>,
    body: Option<BodyReader>,
    /// The facts in the head, if it is complete.
    meta: Option<Box<ReplyMeta>>,
    /// Memory for the facts.
    spare: Option<Box<ReplyMeta>>,
    received: u64,
    /// Whether the request is a HEAD.
    to_head: bool,
    /// Whether the request expects 100 (continue).
    expects_continue: bool,
    /// Whether reading stops at 100 (continue).
    awaits_continue: bool,
    /// Whether the connection is to stay open although only its end would end the reply.
    endless: bool,
    /// Number of interim replies so far.
    interim: u32,
}

/// How much of a reply has been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed.
    Partial,
    /// 100 (continue) has arrived.
    Continue {
        /// Bytes that were not used.
        rest: usize,
    },
    /// The reply is complete.
    Complete {
        /// Bytes that were not used.
        rest: usize,
    },
}

impl ReplyReader {
    /// A reader of the reply to a HEAD request or another one. If the request asks for 100 (continue) before its
    /// body, reading stops at that.
    pub fn new(to_head: bool, expects_continue: bool) -> ReplyReader {
        ReplyReader {
            stash: Vec::new(),
            body: None,
            meta: None,
            spare: None,
            received: 0,
            to_head,
            expects_continue,
            awaits_continue: expects_continue,
            endless: false,
            interim: 0,
        }
    }

    /// Takes the facts of an earlier reply, whose memory it uses, if a head is still to come.
    pub fn reuse(&mut self, spare: impl FnOnce() -> Option<Box<ReplyMeta>>) {
        if self.meta.is_none() && self.spare.is_none() {
            self.spare = spare();
        }
    }

    /// Takes bytes from the connection. An empty slice means that the peer has closed it.
    ///
    /// # Errors
    /// If the reply violates HTTP.
    pub fn feed(&mut self, data: &[u8], content: &mut impl ContentSink) -> Result<Progress, Box<Violation>> {
        self.feed_indexed(data, None, content)
    }

    /// As [`ReplyReader::feed`], with an index of the head with which the bytes begin, if there is one.
    ///
    /// # Errors
    /// As [`ReplyReader::feed`].
    pub fn feed_indexed(
        &mut self,
        data: &[u8],
        index: Option<&HeadIndex>,
        content: &mut impl ContentSink,
    ) -> Result<Progress, Box<Violation>> {
        if data.is_empty() {
            return self.closed();
        }
        self.received += data.len() as u64;
        if self.body.is_some() {
            return self.feed_body(data, content);
        }
        if self.stash.is_empty() {
            return self.feed_head(data, index, content);
        }
        let mut head = std::mem::take(&mut self.stash);
        head.extend_from_slice(data);
        self.feed_head(&head, None, content)
    }

    /// Whether nothing of the reply has arrived yet.
    pub fn is_silent(&self) -> bool {
        self.received == 0
    }

    /// Number of bytes of the reply so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Whether the connection is to stay open although the reply has no length, so that it ends only if the peer closes
    /// the connection after all.
    pub fn is_endless(&self) -> bool {
        self.endless
    }

    /// The facts in the head, if it is complete.
    pub fn meta(&self) -> Option<&ReplyMeta> {
        self.meta.as_deref()
    }

    /// The facts in a complete reply. Nothing more can be read.
    pub fn take_meta(&mut self) -> Box<ReplyMeta> {
        let mut meta = self.meta.take().unwrap_or_default();
        meta.overhead_bytes = self.received - meta.body_bytes;
        meta
    }

    /// The body of the request is being sent; the following bytes are the reply, possibly after a late 100 (continue).
    pub fn stop_awaiting(&mut self) {
        self.awaits_continue = false;
    }

    fn feed_head(
        &mut self,
        data: &[u8],
        mut index: Option<&HeadIndex>,
        content: &mut impl ContentSink,
    ) -> Result<Progress, Box<Violation>> {
        let mut rest = data;
        loop {
            let head = read_head(rest, index.take(), self.to_head, &mut self.spare)
                .map_err(|error| violations::bad_head(error, rest))?;
            let Some((mut meta, framing, len)) = head else {
                if rest.len() > MAX_HEAD {
                    return Err(violations::oversized(rest));
                }
                self.stash.extend_from_slice(rest);
                return Ok(Progress::Partial);
            };
            if len > MAX_HEAD {
                return self.refuse(meta, violations::oversized(rest));
            }
            // Interim replies precede the final one, and may arrive at any time (RFC 9110, section 15.2).
            if (100..200).contains(&meta.status) {
                let asked_for = meta.status != 100 || self.expects_continue;
                self.interim += 1;
                if meta.status == 101 || !asked_for || self.interim > MAX_INTERIM {
                    let violation = violations::interim(meta.status, rest);
                    return self.refuse(meta, violation);
                }
                rest = &rest[len..];
                let status = meta.status;
                self.spare = Some(meta);
                if status == 100 && self.awaits_continue {
                    self.received -= rest.len() as u64;
                    return Ok(Progress::Continue { rest: rest.len() });
                }
                continue;
            }
            let framing = match framing {
                Ok(framing) => framing,
                Err(violation) => return self.refuse(meta, violation),
            };
            match framing {
                Framing::Length(length) => meta.length = Some(length),
                Framing::Chunked => {}
                Framing::UntilClose => self.endless = meta.keep_alive,
            }
            self.body = Some(BodyReader::new(framing));
            content.begin(self.meta.insert(meta));
            return self.feed_body(&rest[len..], content);
        }
    }

    /// The head is complete, but has an error.
    fn refuse(
        &mut self,
        meta: Box<ReplyMeta>,
        violation: Box<Violation>,
    ) -> Result<Progress, Box<Violation>> {
        self.meta = Some(meta);
        Err(violation)
    }

    fn feed_body(&mut self, data: &[u8], content: &mut impl ContentSink) -> Result<Progress, Box<Violation>> {
        let (Some(body), Some(meta)) = (&mut self.body, &mut self.meta) else {
            return Ok(Progress::Partial);
        };
        let mut bytes = 0;
        let fed = body.feed(data, |piece| {
            bytes += piece.len() as u64;
            content.take(piece);
        });
        meta.body_bytes += bytes;
        let fed = fed.map_err(violations::broken)?;
        if fed.done {
            if body.has_trailer() {
                meta.rare_mut().trailer = true;
            }
            // Bytes of the next reply are not part of this one.
            let rest = data.len() - fed.consumed;
            self.received -= rest as u64;
            return Ok(Progress::Complete { rest });
        }
        Ok(Progress::Partial)
    }

    /// The peer closed the connection.
    fn closed(&mut self) -> Result<Progress, Box<Violation>> {
        let kind = match &self.body {
            Some(body) if body.ends_at_close() => {
                if let Some(meta) = &mut self.meta {
                    meta.keep_alive = false;
                }
                return Ok(Progress::Complete { rest: 0 });
            }
            Some(_) => ErrorKind::BodyShort,
            None if self.is_silent() => ErrorKind::NoReply,
            None => ErrorKind::HeadShort,
        };
        Err(Box::new(Violation::new(kind, "")))
    }
}

/// The facts in a head, the framing of its body, and the length of the head; `None` if the head is not complete.
type Head = (Box<ReplyMeta>, Result<Framing, Box<Violation>>, usize);

fn read_head(
    data: &[u8],
    index: Option<&HeadIndex>,
    to_head: bool,
    spare: &mut Option<Box<ReplyMeta>>,
) -> Result<Option<Head>, HeadError> {
    const NO_INDEX: &HeadIndex = &HeadIndex::NONE;
    head::parse_reply_of(data, index.unwrap_or(NO_INDEX), |reply| {
        // The fields are moved often, so they are boxed.
        let mut meta = spare.take().unwrap_or_default();
        meta.clear();
        let framing = read_meta(reply, to_head, &mut meta);
        (meta, framing, reply.len)
    })
}

/// Header fields about the connection.
#[derive(Default)]
struct ConnectionFields {
    declared: DeclaredFraming,
    persistence: Persistence,
}

/// Reads the facts in a head to `meta`, which is empty. Returns the framing of the body.
fn read_meta(
    reply: &ReplyHead<'_, '_>,
    to_head: bool,
    meta: &mut ReplyMeta,
) -> Result<Framing, Box<Violation>> {
    let mut connection = ConnectionFields::default();
    meta.status = reply.status;
    meta.may_be_stored = true;
    for header in reply.headers {
        if !meta.marks.see(header) {
            read_field(meta, &mut connection, header);
        }
    }
    meta.may_be_stored &= !meta.forbids_storing;
    meta.keep_alive = connection.persistence.keeps_alive(reply.minor_version);
    if connection.declared.is_length_ignored() {
        meta.rare_mut().length_ignored = true;
    }
    meta.length_of_get = connection.declared.length().filter(|_| to_head);
    let framing = connection.declared.reply_framing(reply.status, to_head);
    framing.map_err(|error| violations::unframed(error, reply.headers))
}

fn read_field(meta: &mut ReplyMeta, connection: &mut ConnectionFields, header: &Header<'_>) {
    let (name, value) = (header.name, header.value);
    let is = |wanted| is_named(name, wanted);
    let has = |token| has_token(value, token);
    let time = || read_date(value);
    // The length distinguishes most names.
    match name.len() {
        3 if is("Age") => meta.age = body::parse_decimal(value),
        4 if is("Date") => meta.see_date(value),
        6 if is("Pragma") => meta.may_be_stored &= !has("no-cache"),
        6 if is("Server") => {
            let server = &mut meta.rare_mut().server;
            server.clear();
            server.extend_from_slice(value);
        }
        7 if is("Alt-Svc") => {
            // Several fields are one list (RFC 9110, section 5.3).
            let all = meta.rare_mut().alt_svc.get_or_insert_default();
            all.extend_from_slice(b", ");
            all.extend_from_slice(value);
        }
        7 if is("Expires") => meta.expires = time(),
        8 if is("Location") => meta.rare_mut().location = Some(value.to_vec()),
        10 if is("Connection") => connection.persistence.see(value),
        10 if is("Set-Cookie") => meta.rare_mut().cookies.push(value.to_vec()),
        11 if is("Content-MD5") => meta.rare_mut().md5 = Some(value.trim_ascii().to_vec()),
        12 if is("Content-Type") => {
            meta.media = MediaType::of(value);
            if starts_with(value, b"multipart/") {
                meta.rare_mut().multipart = Some(value.to_vec());
            }
        }
        13 if is("Last-Modified") => meta.last_modified = time(),
        13 if is("Cache-Control") => {
            for directive in head::items(value) {
                meta.forbids_storing |= forbids_storing(directive);
                meta.max_age = lifetime_in(directive).or(meta.max_age);
            }
        }
        13 if is("Content-Range") => {
            let range = ContentRange::parse(value);
            meta.rare_mut().bad_range = range.is_none();
            meta.rare_mut().range = range;
        }
        14 if is("Content-Length") => connection.declared.see_length(value),
        16 if is("Content-Encoding") => {
            meta.coding = match value.trim_ascii() {
                coding if coding.eq_ignore_ascii_case(b"identity") => Coding::Identity,
                coding if coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip") => {
                    Coding::Gzip
                }
                _ => Coding::Other,
            };
        }
        16 if is("WWW-Authenticate") => meta.rare_mut().challenges.push(value.to_vec()),
        16 if is("Proxy-Connection") => connection.persistence.see_fallback(value),
        17 if is("Transfer-Encoding") => connection.declared.see_coding(value),
        18 if is("Proxy-Authenticate") => meta.rare_mut().challenges.push(value.to_vec()),
        _ => {}
    }
}

/// Seconds since 1970.
fn read_date(value: &[u8]) -> Option<i64> {
    date::parse_any(value, CENTURY).and_then(|at| i64::try_from(at).ok())
}

/// Whether a directive of `Cache-Control` forbids shared caches to store the reply.
fn forbids_storing(directive: &[u8]) -> bool {
    let words: [&[u8]; 3] = [b"no-cache", b"private", b"no-store"];
    words.iter().any(|word| directive.eq_ignore_ascii_case(word))
}

/// The lifetime in seconds that a directive of `Cache-Control` gives copies in shared caches; `None` if it is about something else.
fn lifetime_in(directive: &[u8]) -> Option<u64> {
    let at = directive.iter().position(|&b| b == b'=')?;
    let (name, value) = (&directive[..at], &directive[at + 1..]);
    let is = |word: &[u8]| name.eq_ignore_ascii_case(word);
    (is(b"max-age") || is(b"s-maxage")).then(|| body::parse_decimal(value))?
}

#[cfg(test)]
mod tests;
