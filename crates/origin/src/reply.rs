//! The replies of a server: decisions (docs/reference/models.md, "Reply header fields"), heads, bodies.

use polygraph_traffic::coding::gzip;
use polygraph_traffic::life::Times;
use polygraph_traffic::{AbortCoords, Body, Content, Fingerprint, Method, Oid, Random, Stream, UniqId};
use polygraph_wire::coding::{CodingChoice, CodingOffer, negotiate};
use polygraph_wire::cookie::{Lifetime, SetCookie};
use polygraph_wire::marks::{ContentsMark, X_TARGET, XactMark};
use polygraph_wire::multipart;
use polygraph_wire::range::{ByteRange, ContentRange, RangeSet};
use polygraph_wire::worlds::{AbortMark, WorldMark};
use polygraph_wire::{checksum, date, decimal};

use crate::digest::md5;
use crate::reply_head::{Field, ReplyHead, random_text};
use crate::request::{Expectation, Request, RequestFault};
use crate::settings::{OriginConfig, ServerProfile, ServerSpec};

/// `Last-Modified` of every object of generation 1.x: Wed, 18 Feb 1998 17:53:58 GMT. Some caches store no reply
/// without this field.
pub const CLASSIC_LAST_MODIFIED: i64 = 887_824_438;

/// Objects of generation 1.x are fresh for a year.
const CLASSIC_CACHABLE: &[u8] = b"Cache-Control: public,max-age=31536000\r\n";
const CLASSIC_MODIFIED: &[u8] = b"Last-Modified: Wed, 18 Feb 1998 17:53:58 GMT\r\n";
const CACHABLE: &[u8] = b"Cache-Control: public\r\n";
const UNCACHABLE: &[u8] = b"Cache-Control: private,no-cache\r\n";
const PRAGMA: &[u8] = b"Pragma: no-cache\r\n";

/// The boundary between the parts of a multipart reply.
pub const BOUNDARY: &str = "THIS_STRING_SEPARATES";

/// The type of parts if the content has none.
const NO_TYPE: &str = "application/octet-stream";

/// What all replies of a server have in common.
#[derive(Debug)]
pub struct ServerIdentity {
    minor_version: u8,
    target: Vec<u8>,
    /// The announcement of HTTP/3, if there is one.
    alt_svc: Option<Vec<u8>>,
    contents: Fingerprint,
    sets_cookies: bool,
}

impl ServerIdentity {
    /// Makes the random choices that are fixed for `server`; `contents` is the fingerprint of the catalog.
    pub fn new(config: &OriginConfig, server: &ServerSpec, contents: Fingerprint) -> ServerIdentity {
        let profile = &config.profiles[server.profile];
        let mut rng = config.seed.stream("sticky", server.number);
        let minor_version = profile.http_minors.draw(&mut rng).copied().unwrap_or(1);
        let senders = profile.cookies.as_ref().map_or(0.0, |cookies| cookies.senders);
        ServerIdentity {
            minor_version,
            target: format!("{X_TARGET}: {}\r\n", server.address).into_bytes(),
            alt_svc: alt_svc(profile, server),
            contents,
            sets_cookies: rng.event(senders),
        }
    }
}

/// The value of `Alt-Svc`: HTTP/3 at the port of the server.
fn alt_svc(profile: &ServerProfile, server: &ServerSpec) -> Option<Vec<u8>> {
    let max_age = profile.alt_svc.filter(|_| profile.http3.is_some())?;
    let (_, port) = server.address.rsplit_once(':')?;
    Some(format!("h3=\":{port}\"; ma={max_age}").into_bytes())
}

/// What a reply depends on besides the request.
#[derive(Clone, Copy, Debug)]
pub struct ReplyContext<'a> {
    /// The time of day as an HTTP date.
    pub date: &'a [u8; 29],
    /// The time of day in seconds since 1970, for objects with a life cycle.
    pub now: i64,
    /// Whether the connection closes after this reply.
    pub last: bool,
    /// Whether the client must not send its body.
    pub refuse_body: bool,
    /// The object to which the client is redirected.
    pub redirect: Option<Oid>,
    /// A world that the client may not know.
    pub remote_world: Option<WorldMark>,
    /// The least known position in the schedule of phases, and a group of processes that was given up.
    pub phases: Option<(u64, Option<UniqId>)>,
}

/// A reply without its head.
#[derive(Debug)]
pub struct Reply {
    /// Status code.
    pub status: u16,
    /// The part of the body that is sent.
    pub body: Body,
    /// Whether the body is cut on purpose; the connection must then be closed.
    pub is_cut: bool,
    /// Number of cookies that the reply sets.
    pub cookies: u64,
}

impl Reply {
    fn new(status: u16, body: Body) -> Reply {
        Reply { status, body, is_cut: false, cookies: 0 }
    }
}

/// Writes the reply to one request.
#[derive(Clone, Copy, Debug)]
pub struct ReplyWriter<'a> {
    /// The configuration that all servers share.
    pub config: &'a OriginConfig,
    /// The profile of the server.
    pub profile: &'a ServerProfile,
    /// The fixed choices of the server.
    pub identity: &'a ServerIdentity,
    /// The request.
    pub request: &'a Request,
    /// What else the reply depends on.
    pub about: ReplyContext<'a>,
}

/// An object at the time of a reply.
struct Subject<'a> {
    oid: Oid,
    /// Bytes of the body without content coding, if a body is made.
    size: Option<u64>,
    content: Option<&'a Content>,
    cachable: bool,
    times: Option<Times>,
    /// Whether its header fields are those of generation 1.x.
    classic: bool,
}

impl Subject<'_> {
    /// When the object was modified, whether replies show that or not.
    fn modified(&self) -> Option<i64> {
        if self.classic { Some(CLASSIC_LAST_MODIFIED) } else { self.times.map(|times| times.lmt) }
    }

    /// The modification time in replies.
    fn shown_modification(&self) -> Option<i64> {
        match self.times {
            Some(times) => (self.cachable && times.shows_lmt).then_some(times.lmt),
            None => self.modified(),
        }
    }
}

impl ReplyWriter<'_> {
    /// Appends the head of the reply to `out` and returns the rest.
    pub fn write(&self, rng: &mut Stream, out: &mut Vec<u8>) -> Reply {
        if let Some(fault) = self.request.fault {
            let (status, line): (_, &[u8]) = match fault {
                RequestFault::NoHost | RequestFault::SeveralHosts | RequestFault::ForbiddenLength => {
                    (400, b"400 Bad Request")
                }
                RequestFault::Foreign | RequestFault::Misdirected => (404, b"404 Not Found"),
                RequestFault::Method => (405, b"405 Method Not Allowed\r\nAllow: GET, HEAD, POST, PUT"),
                RequestFault::NoLength => (411, b"411 Length Required"),
            };
            return self.bare(status, line, rng, out);
        }
        if let Some(denial) = &self.request.denial {
            let mut line = b"401 Unauthorized".to_vec();
            for challenge in &denial.challenges {
                line.extend_from_slice(b"\r\nWWW-Authenticate: ");
                line.extend_from_slice(challenge);
            }
            return self.bare(401, &line, rng, out);
        }
        if self.about.refuse_body || self.request.expectation == Expectation::Other {
            return self.bare(417, b"417 Expectation Failed", rng, out);
        }
        match self.request.oid {
            Some(oid) => self.object(oid, rng, out),
            None => self.bare(404, b"404 Not Found", rng, out),
        }
    }

    /// A reply without an object and without a body.
    fn bare(&self, status: u16, line: &[u8], rng: &mut Stream, out: &mut Vec<u8>) -> Reply {
        let mut head = ReplyHead::new(out, self.identity.minor_version, line);
        head.configured([&[], &self.profile.headers], rng);
        self.general(&mut head);
        head.text(Field::ContentLength, b"0");
        self.contents(&mut head, None);
        self.marks(&mut head);
        head.end();
        Reply::new(status, Body::empty())
    }

    fn subject(&self, oid: Oid, now: i64) -> Subject<'_> {
        let catalog = &self.config.catalog;
        let content = catalog.content(oid.kind);
        let times = catalog.times(&oid, now);
        let classic = self.config.classic && times.is_none();
        Subject { oid, size: None, content, cachable: self.request.cachable, times, classic }
    }

    fn object(&self, oid: Oid, rng: &mut Stream, out: &mut Vec<u8>) -> Reply {
        let mut subject = self.subject(oid, self.about.now);
        let coding = coding(&subject, self.request);
        if coding == CodingChoice::NotAcceptable {
            return self.bare(406, b"406 Not Acceptable", rng, out);
        }
        if let Some(to) = self.about.redirect {
            return self.redirect(&to, rng, out);
        }
        let conditional = matches!(self.request.method, Method::Get | Method::Head);
        let since = self.request.if_modified_since.filter(|_| conditional);
        if since.zip(subject.modified()).is_some_and(|(since, modified)| since as i64 >= modified) {
            return self.not_modified(&subject, rng, out);
        }
        let url = self.request.url.as_deref().unwrap_or_default().as_bytes();
        let size = self.config.catalog.size(&oid);
        let mut body = self.config.catalog.body_of(&oid, url, size);
        subject.size = Some(size);
        if coding == CodingChoice::Gzip {
            body = gzip(body);
        }
        match ranges(&subject, self.request, body.len()) {
            None => self.whole(&subject, body, coding, rng, out),
            Some(ranges) => self.parts(&subject, body, &ranges, coding, rng, out),
        }
    }

    fn redirect(&self, to: &Oid, rng: &mut Stream, out: &mut Vec<u8>) -> Reply {
        // The location is on the same visible server, under the name that the client used.
        let url = self.request.url.as_deref().unwrap_or_default().as_bytes();
        let authority = polygraph_wire::uri::split(url).map_or(b"".as_slice(), |parts| parts.authority);
        let scheme: &[u8] = if self.profile.tls.is_empty() { b"http://" } else { b"https://" };
        let mut location = [scheme, authority].concat();
        self.config.catalog.write_path(to, &mut location);
        let page = [b"<html><body><a href=\"", &location[..], b"\">moved</a></body></html>\n"].concat();
        let mut head = ReplyHead::new(out, self.identity.minor_version, b"302 Found");
        head.configured([&[], &self.profile.headers], rng);
        self.general(&mut head);
        head.text(Field::Location, &location);
        head.add(Field::ContentLength, |out| decimal::write(out, page.len() as u64));
        head.text(Field::ContentType, b"text/html");
        self.contents(&mut head, None);
        self.marks(&mut head);
        head.end();
        Reply::new(
            302,
            if self.request.method == Method::Head { Body::empty() } else { Body::from_bytes(page) },
        )
    }

    fn not_modified(&self, subject: &Subject<'_>, rng: &mut Stream, out: &mut Vec<u8>) -> Reply {
        let mut head = ReplyHead::new(out, self.identity.minor_version, b"304 Not Modified");
        self.freshness(&mut head, subject, rng);
        // A stored reply takes over the fields of the 304 that confirms it (RFC 9111, section 4.3.4). Without a mark in it, the copy still
        // shows for which request it was made: it is a hit, whether a cache follows that rule or not. A robot that reloads wants to
        // know that the reply is not what the device had.
        let confirms_copy = self.request.is_validation_by_device() && !self.request.reload;
        self.marks_with(&mut head, self.request.marks.xact.filter(|_| !confirms_copy));
        head.end();
        Reply::new(304, Body::empty())
    }

    fn whole(
        &self,
        subject: &Subject<'_>,
        body: Body,
        coding: CodingChoice,
        rng: &mut Stream,
        out: &mut Vec<u8>,
    ) -> Reply {
        let mut head = ReplyHead::new(out, self.identity.minor_version, b"200 OK");
        self.freshness(&mut head, subject, rng);
        if self.config.catalog.has_checksum(&subject.oid) {
            head.text(Field::ContentMd5, &checksum::text(md5(body.clone())));
        }
        let cookies = self.cookies(&mut head, &subject.oid);
        head.add(Field::ContentLength, |out| decimal::write(out, body.len()));
        if let Some(mime_type) = subject.content.and_then(|content| content.mime_type.as_deref()) {
            head.text(Field::ContentType, mime_type.as_bytes());
        }
        encoding(&mut head, coding);
        self.contents(&mut head, subject.size);
        self.marks(&mut head);
        self.finish(200, head, body, cookies, rng)
    }

    fn parts(
        &self,
        subject: &Subject<'_>,
        body: Body,
        ranges: &[ByteRange],
        coding: CodingChoice,
        rng: &mut Stream,
        out: &mut Vec<u8>,
    ) -> Reply {
        let size = body.len();
        if ranges.is_empty() {
            let mut head = ReplyHead::new(out, self.identity.minor_version, b"416 Range Not Satisfiable");
            head.configured([&[], &self.profile.headers], rng);
            self.general(&mut head);
            head.add(Field::ContentRange, |out| ContentRange::Unsatisfied(size).write(out));
            head.text(Field::ContentLength, b"0");
            self.contents(&mut head, subject.size);
            self.marks(&mut head);
            head.end();
            return Reply::new(416, Body::empty());
        }
        let mime_type = subject.content.and_then(|content| content.mime_type.as_deref());
        let mut head = ReplyHead::new(out, self.identity.minor_version, b"206 Partial Content");
        self.freshness(&mut head, subject, rng);
        let cookies = self.cookies(&mut head, &subject.oid);
        let body = match ranges {
            [range] => {
                head.add(Field::ContentRange, |out| ContentRange::Part(*range, Some(size)).write(out));
                head.add(Field::ContentLength, |out| decimal::write(out, range.len()));
                if let Some(mime_type) = mime_type {
                    head.text(Field::ContentType, mime_type.as_bytes());
                }
                part(&body, *range)
            }
            ranges => {
                let writer = multipart::MultipartWriter {
                    boundary: BOUNDARY,
                    content_type: mime_type.unwrap_or(NO_TYPE),
                    size,
                };
                let body = multipart_body(&writer, &body, ranges);
                head.add(Field::ContentLength, |out| decimal::write(out, body.len()));
                head.add(Field::ContentType, |out| {
                    out.extend_from_slice(b"multipart/byteranges; boundary=");
                    out.extend_from_slice(BOUNDARY.as_bytes());
                });
                body
            }
        };
        encoding(&mut head, coding);
        self.contents(&mut head, subject.size);
        self.marks(&mut head);
        self.finish(206, head, body, cookies, rng)
    }

    /// Completes the head and decides whether the body is cut.
    fn finish(
        &self,
        status: u16,
        mut head: ReplyHead<'_>,
        mut body: Body,
        cookies: u64,
        rng: &mut Stream,
    ) -> Reply {
        let mut is_cut = false;
        if self.request.method == Method::Head {
            body = Body::empty();
        } else if self.profile.abort_prob > 0.0 && !body.is_empty() {
            let coords = AbortCoords::draw(self.profile.abort_prob, rng);
            if let Some(mark) = mark_of(coords) {
                head.add(Field::XAbort, |out| mark.write(out));
                if let Some(cut) = coords.cut(body.len()) {
                    body.truncate(cut);
                    is_cut = true;
                }
            }
        }
        head.end();
        Reply { status, body, is_cut, cookies }
    }

    /// Writes the configured fields and those that determine freshness.
    fn freshness(&self, head: &mut ReplyHead<'_>, subject: &Subject<'_>, rng: &mut Stream) {
        let content_headers = subject.content.map_or(&[][..], |content| &content.headers);
        head.configured([content_headers, &self.profile.headers], rng);
        if subject.cachable {
            head.line(Field::CacheControl, if subject.classic { CLASSIC_CACHABLE } else { CACHABLE });
        } else {
            head.line(Field::CacheControl, UNCACHABLE);
            head.line(Field::Pragma, PRAGMA);
        }
        if subject.classic {
            head.line(Field::LastModified, CLASSIC_MODIFIED);
        }
        self.general(head);
        if !subject.classic {
            let expires = subject.times.and_then(|times| times.expires).filter(|_| subject.cachable);
            moment(head, Field::Expires, expires);
            moment(head, Field::LastModified, subject.shown_modification());
        }
        if subject.content.is_some_and(|content| content.encodings.varies()) {
            head.text(Field::Vary, b"Accept-Encoding");
        }
    }

    /// Writes the fields of all replies.
    fn general(&self, head: &mut ReplyHead<'_>) {
        head.text(Field::Date, self.about.date);
        if let Some(proof) = &self.request.proof {
            head.text(Field::WwwAuthenticate, proof);
        }
        if let Some(value) = &self.identity.alt_svc {
            head.text(Field::AltSvc, value);
        }
        if self.about.last {
            // An HTTP/1.0 reply without `keep-alive` is the last one of its connection (RFC 9112, section 9.3).
            if self.identity.minor_version > 0 {
                head.text(Field::Connection, b"close");
            }
        } else if self.identity.minor_version == 0 || self.request.minor_version == 0 {
            head.text(Field::Connection, b"keep-alive");
        }
    }

    fn cookies(&self, head: &mut ReplyHead<'_>, oid: &Oid) -> u64 {
        let Some(cookies) = self.profile.cookies.as_ref().filter(|_| self.identity.sets_cookies) else {
            return 0;
        };
        let mut rng = self.config.catalog.cookie_draws(oid);
        if !rng.event(cookies.prob) {
            return 0;
        }
        // Cookies that do not fit in a head that clients accept are omitted.
        let count = (cookies.count.sample(&mut rng).ceil() as u64).clamp(1, MAX_COOKIES);
        let mut set = 0;
        for index in 0..count {
            let mut value = vec![b'"'];
            let size = cookies.size.sample(&mut rng) as u64;
            random_text(size.min(MAX_COOKIE_VALUE), &mut rng, &mut value);
            value.push(b'"');
            let name = format!("sess{index}");
            let cookie = SetCookie { name: name.as_bytes(), value: &value, lifetime: Lifetime::Session };
            head.add(Field::SetCookie, |out| {
                set += u64::from(cookie.write(0, out));
            });
        }
        set
    }

    /// Writes the fingerprint of the server's contents. A 304 has none, because a stored reply keeps fields that a
    /// 304 omits.
    fn contents(&self, head: &mut ReplyHead<'_>, size: Option<u64>) {
        let mark = ContentsMark { fingerprint: self.identity.contents, size };
        head.add(Field::XContents, |out| mark.write(out));
    }

    /// Writes the header fields of the benchmark.
    fn marks(&self, head: &mut ReplyHead<'_>) {
        self.marks_with(head, self.request.marks.xact);
    }

    /// Writes the header fields of the benchmark, with the answer to this mark.
    fn marks_with(&self, head: &mut ReplyHead<'_>, xact: Option<XactMark>) {
        head.line(Field::XTarget, &self.identity.target);
        if let Some(xact) = xact {
            let mark = XactMark { group: self.config.group, id: xact.id.mutant(), flags: 0 };
            head.add(Field::XXact, |out| mark.write(out));
        }
        if let Some(world) = &self.about.remote_world {
            head.add(Field::XRemWorld, |out| world.write(out));
        }
        if let Some((position, gone)) = self.about.phases {
            head.add(Field::XPhaseSyncPos, |out| decimal::write(out, position));
            if let Some(gone) = gone {
                head.text(Field::XPhaseSyncGone, &gone.text());
            }
        }
    }
}

/// The most cookies of a reply, which keeps the head small enough for clients.
const MAX_COOKIES: u64 = 50;
/// The most bytes of a cookie's value: name and value may have 4096 bytes (RFC 6265, section 6.1).
const MAX_COOKIE_VALUE: u64 = 4000;

fn coding(subject: &Subject<'_>, request: &Request) -> CodingChoice {
    match subject.content.map(|content| content.encodings) {
        Some(offer) if offer.gzip => {
            let offer = CodingOffer { identity: offer.identity, gzip: offer.gzip };
            negotiate(request.accept_encoding.as_deref(), offer)
        }
        _ => CodingChoice::Identity,
    }
}

fn encoding(head: &mut ReplyHead<'_>, coding: CodingChoice) {
    if coding == CodingChoice::Gzip {
        head.text(Field::ContentEncoding, b"gzip");
    }
}

/// The ranges of a body of `size` bytes that the client requests and that exist; `None` if it requests the whole
/// body.
fn ranges(subject: &Subject<'_>, request: &Request, size: u64) -> Option<Vec<ByteRange>> {
    let parts = request.parts.as_deref()?;
    if let Some(moment) = parts.only_if
        && moment.map(|moment| moment as i64) != subject.shown_modification()
    {
        return None;
    }
    Some(RangeSet::parse(&parts.range)?.resolve(size).collect())
}

fn part(body: &Body, range: ByteRange) -> Body {
    let mut part = body.clone();
    part.advance(range.first());
    part.truncate(range.len());
    part
}

fn multipart_body(writer: &multipart::MultipartWriter<'_>, body: &Body, ranges: &[ByteRange]) -> Body {
    let parts = ranges.iter().flat_map(|&range| {
        let mut head = Vec::new();
        writer.part(range, &mut head);
        [Body::from_bytes(head), part(body, range)]
    });
    let mut end = Vec::new();
    writer.end(&mut end);
    Body::chain(parts.chain([Body::from_bytes(end)]))
}

fn moment(head: &mut ReplyHead<'_>, field: Field, seconds: Option<i64>) {
    if let Some(seconds) = seconds {
        head.text(field, &date::text(seconds.max(0) as u64));
    }
}

fn mark_of(coords: AbortCoords) -> Option<AbortMark> {
    Some(AbortMark { whether: coords.whether.try_into().ok()?, place: coords.place.try_into().ok()? })
}
