//! The head of a request (`docs/reference/models.md`, "Request header fields").

use std::ops::Range;

use polygraph_multiplex::message::request::{FieldName, RequestFields, RequestLine};
use polygraph_traffic::headers::{HeaderRule, draw_headers};
use polygraph_traffic::{AbortCoords, Content, Draw, RequestKind, UniqId};
use polygraph_wire::marks::{X_TARGET, X_XACT, XactMark};
use polygraph_wire::range::write_range;
use polygraph_wire::upload::{UploadMark, X_UPLOAD};
use polygraph_wire::worlds::{
    WorldMark, X_ABORT, X_LOC_WORLD, X_PHASE_SYNC_POS, X_PHASE_SYNC_WAIT, X_REM_WORLD,
};
use polygraph_wire::{date, decimal, field_start, uri};

use crate::request::Request;
use crate::request::universe::SharedWorld;
use crate::settings::{Field, Profile, Server};

/// Flag of `X-Xact`: the robot itself validates.
const VALIDATES: u32 = 1;

/// A field whose name is constant.
macro_rules! field {
    ($name:expr) => {{
        const FIELD: &KnownField<{ $name.len() + 2 }> =
            &KnownField { start: field_start!($name), name: FieldName::new($name) };
        FIELD
    }};
}

/// The fields of a request head that describe its body.
#[derive(Clone, Copy, Debug)]
pub struct BodyFields<'a> {
    /// Size in bytes.
    pub length: u64,
    /// Value of `Content-MD5`, if the request carries one.
    pub digest: Option<&'a str>,
    /// What servers compare the body with.
    pub mark: UploadMark,
    /// Where the robot aborts the transaction, if it does.
    pub abort: AbortCoords,
    /// Whether the robot waits for 100 (continue) before it sends the body.
    pub expects_continue: bool,
}

/// The data on which a request head depends, in addition to the request.
#[derive(Clone, Copy, Debug)]
pub struct HeadContext<'a> {
    /// The settings that all robots share.
    pub field: &'a Field,
    /// The robot's profile.
    pub profile: &'a Profile,
    /// Whether an HTTP proxy sees the request.
    pub via_proxy: bool,
    /// 0 for HTTP/1.0, 1 for HTTP/1.1.
    pub http_minor: u8,
    /// Whether this is the last request on its connection.
    pub last: bool,
    /// Time of day in seconds since 1970.
    pub unix_s: i64,
    /// Id of the process.
    pub group: UniqId,
    /// The worlds that the request reports to its server.
    pub worlds: (Option<SharedWorld>, Option<SharedWorld>),
    /// Position in the schedule of phases, and whether the process waits for others there.
    pub position: Option<(u64, bool)>,
    /// The description of the body, if the request has one.
    pub body: Option<BodyFields<'a>>,
    /// Further header lines, each with its end: credentials and cookies.
    pub lines: &'a [u8],
}

impl HeadContext<'_> {
    /// Whether the head of `request` has no fields but those that [`pass`] passes on, and its target is a path.
    pub fn is_plain(&self, request: &Request) -> bool {
        let is_simple = !self.via_proxy && request.foreign.is_none() && request.sends.is_none();
        is_simple && self.body.is_none() && self.profile.headers.is_empty() && self.lines.is_empty()
    }

    /// The server of `request`, if it is one of the test.
    fn server(&self, request: &Request) -> Option<&Server> {
        self.field.servers.get(request.server)
    }

    /// The line of a request whose head is plain and whose target has the path `path`.
    pub fn line<'a>(&'a self, request: &Request, path: &'a [u8]) -> RequestLine<'a> {
        let authority = self.server(request).map_or("", |server| server.host());
        RequestLine { method: request.method.word(), authority, path }
    }
}

/// Appends the head of `request`. Configured fields come first, and replace others with the same name.
pub fn write(request: &Request, context: &HeadContext<'_>, out: &mut Vec<u8>) {
    let HeadContext { field, profile, via_proxy, .. } = *context;
    let foreign = request.foreign.as_deref().and_then(|url| uri::split(url.as_bytes()));
    let host = match (&foreign, context.server(request)) {
        (Some(split), _) => split.authority.strip_suffix(b":80").unwrap_or(split.authority),
        (None, Some(server)) => server.host().as_bytes(),
        (None, None) => &[][..],
    };
    out.extend_from_slice(request.method.word().as_bytes());
    out.push(b' ');
    if via_proxy {
        out.extend_from_slice(b"http://");
        out.extend_from_slice(host);
    }
    match &foreign {
        Some(split) if split.path.is_empty() => out.push(b'/'),
        Some(split) => out.extend_from_slice(split.path),
        None => field.catalog.write_path(&request.oid, out),
    }
    out.extend_from_slice(if context.http_minor == 0 { b" HTTP/1.0\r\n" } else { b" HTTP/1.1\r\n" });
    let mut head = Head { configured: out.len()..out.len(), out };
    let content = request.sends.and_then(|oid| field.catalog.content(oid.kind));
    // The draw depends on the transaction only, so a retry carries the same fields.
    if let Some(content) = content {
        head.configure(&content.headers, Draw::new(u64::from(request.xact.counter)));
    }
    let mix = u64::from(request.xact.counter) << 32 | u64::from(request.xact.mix);
    head.configure(&profile.headers, Draw::new(mix));
    pass(request, context, host, &mut head);
    out.extend_from_slice(context.lines);
    out.extend_from_slice(b"\r\n");
}

/// Passes on the fields of a request with this host that are not configured.
pub fn pass(request: &Request, context: &HeadContext<'_>, host: &[u8], head: &mut impl Fields) {
    let HeadContext { field, profile, via_proxy, .. } = *context;
    head.text(field!("Accept"), b"*/*");
    if let Some(codings) = &profile.accept_encoding {
        head.text(field!("Accept-Encoding"), codings.as_bytes());
    }
    head.of_connection(field!("Host"), host);
    let mut flags = 0;
    match request.kind {
        RequestKind::Ims200 | RequestKind::Ims304 => {
            let off = if request.kind == RequestKind::Ims200 { -1 } else { 1 };
            if let Some(times) = field.catalog.times(&request.oid, context.unix_s) {
                let since = date::text(u64::try_from(times.lmt + off).unwrap_or(0));
                head.text(field!("If-Modified-Since"), &since);
                flags = VALIDATES;
            }
        }
        RequestKind::Reload => {
            head.text(field!("Cache-Control"), b"no-cache");
            head.text(field!("Pragma"), b"no-cache");
        }
        RequestKind::Range => {
            let specs = request.range_specs();
            if !specs.is_empty() {
                head.add(field!("Range"), |out| write_range(specs.iter().copied(), out));
            }
        }
        RequestKind::Basic | RequestKind::Upload => {}
    }
    head.add(field!(X_XACT), |out| XactMark { group: context.group, id: request.xact, flags }.write(out));
    let is_foreign = request.foreign.as_deref().is_some_and(|url| uri::split(url.as_bytes()).is_some());
    if !is_foreign {
        if let Some(world) = context.worlds.0 {
            head.add(field!(X_LOC_WORLD), |out| world_mark(&world).write(out));
        }
        if let Some(world) = context.worlds.1 {
            head.add(field!(X_REM_WORLD), |out| world_mark(&world).write(out));
        }
        let authority = context.server(request).map_or("", |server| &server.authority);
        head.text(field!(X_TARGET), authority.as_bytes());
    }
    if let Some(BodyFields { abort, .. }) = context.body
        && profile.abort_prob > 0.0
    {
        head.text(field!(X_ABORT), format!("{} {}", abort.whether, abort.place).as_bytes());
    }
    if let Some((position, waits)) = context.position {
        head.add(field!(X_PHASE_SYNC_POS), |out| decimal::write(out, position));
        if waits {
            head.text(field!(X_PHASE_SYNC_WAIT), b"1");
        }
    }
    if let Some(body) = context.body {
        let content = request.sends.and_then(|oid| field.catalog.content(oid.kind));
        body_lines(content, body, head);
    }
    if let Some(value) = connection(context.http_minor, context.last) {
        head.of_connection(field!("Connection"), value);
        // This field is not in any standard, but old proxies read it (docs/classic.md).
        if via_proxy {
            head.of_connection(field!("Proxy-Connection"), value);
        }
    }
}

/// The name of a field.
#[derive(Debug)]
pub struct KnownField<const LEN: usize> {
    /// The start of its line.
    start: &'static [u8; LEN],
    name: FieldName,
}

/// Takes the fields of a head.
pub trait Fields {
    /// Adds a field whose value `write` appends, unless it is configured.
    fn add<const LEN: usize>(&mut self, name: &KnownField<LEN>, write: impl FnOnce(&mut Vec<u8>));

    /// Adds a field with this value, unless it is configured.
    #[inline(always)]
    fn text<const LEN: usize>(&mut self, name: &KnownField<LEN>, value: &[u8]) {
        self.add(name, |out| out.extend_from_slice(value));
    }

    /// As [`Fields::text`], if the field only has a meaning for HTTP/1.
    fn of_connection<const LEN: usize>(&mut self, name: &KnownField<LEN>, value: &[u8]);
}

impl Fields for RequestFields<'_> {
    #[inline(always)]
    fn add<const LEN: usize>(&mut self, name: &KnownField<LEN>, write: impl FnOnce(&mut Vec<u8>)) {
        RequestFields::add(self, &name.name, write);
    }

    fn of_connection<const LEN: usize>(&mut self, name: &KnownField<LEN>, value: &[u8]) {
        self.skip(name.name.text, value.len());
    }
}

/// A head that is being written.
struct Head<'a> {
    out: &'a mut Vec<u8>,
    /// Position of the configured lines.
    configured: Range<usize>,
}

impl Fields for Head<'_> {
    /// The length of the start is constant, so no function is called to copy it.
    #[inline(always)]
    fn add<const LEN: usize>(&mut self, name: &KnownField<LEN>, write: impl FnOnce(&mut Vec<u8>)) {
        // Most workloads configure no fields.
        if self.configured.is_empty() || !self.is_configured(name.start) {
            self.out.extend_from_slice(name.start);
            write(self.out);
            self.out.extend_from_slice(b"\r\n");
        }
    }

    #[inline(always)]
    fn of_connection<const LEN: usize>(&mut self, name: &KnownField<LEN>, value: &[u8]) {
        self.text(name, value);
    }
}

impl Head<'_> {
    /// Adds the fields that `rules` draw. If several have the same name, the first one counts.
    fn configure(&mut self, rules: &[HeaderRule], mut rng: Draw) {
        draw_headers(rules, &mut rng, &mut |name, value: &str| {
            let line = [name, ": ", value, "\r\n"].concat();
            if !self.is_configured(&line.as_bytes()[..name.len() + 2]) {
                self.out.extend_from_slice(line.as_bytes());
                self.configured.end = self.out.len();
            }
        });
    }

    /// Whether a configured line has the same name as the one with this start. Names end with a colon.
    #[inline(never)]
    fn is_configured(&self, start: &[u8]) -> bool {
        let name = start.trim_ascii_end();
        let is_name =
            |line: &[u8]| line.get(..name.len()).is_some_and(|line| line.eq_ignore_ascii_case(name));
        self.out[self.configured.clone()].split(|&b| b == b'\n').any(is_name)
    }
}

fn body_lines(content: Option<&Content>, body: BodyFields<'_>, head: &mut impl Fields) {
    if let Some(digest) = body.digest {
        head.text(field!("Content-MD5"), digest.as_bytes());
    }
    head.add(field!(X_UPLOAD), |out| body.mark.write(out));
    head.add(field!("Content-Length"), |out| decimal::write(out, body.length));
    if let Some(mime) = content.and_then(|content| content.mime_type.as_deref()) {
        head.text(field!("Content-Type"), mime.as_bytes());
    }
    if content.is_some_and(|content| content.encodings.compresses_requests()) {
        head.text(field!("Content-Encoding"), b"gzip");
    }
    if body.expects_continue {
        head.text(field!("Expect"), b"100-continue");
    }
}

/// By default, HTTP/1.0 closes connections and HTTP/1.1 keeps them (RFC 9112, appendix C.2.2).
fn connection(minor: u8, last: bool) -> Option<&'static [u8]> {
    match (minor, last) {
        (0, false) => Some(b"keep-alive"),
        (0, true) | (_, false) => None,
        (_, true) => Some(b"close"),
    }
}

/// The mark of a shared world.
pub fn world_mark(world: &SharedWorld) -> WorldMark {
    let facts = world.facts;
    WorldMark { id: world.id, kind: world.kind, window: facts.window, size: facts.size, hot: facts.hot_end }
}
