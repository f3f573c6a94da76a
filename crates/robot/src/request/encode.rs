//! The head of a request (reference: models.md, section 11.1).

use std::ops::Range;

use polygraph_traffic::headers::{HeaderRule, draw_headers};
use polygraph_traffic::{AbortCoords, Content, Draw, RequestKind, UniqId};
use polygraph_wire::marks::{X_TARGET, X_XACT, XactMark};
use polygraph_wire::range::write_range;
use polygraph_wire::worlds::{
    WorldMark, X_ABORT, X_LOC_WORLD, X_PHASE_SYNC_POS, X_PHASE_SYNC_WAIT, X_REM_WORLD,
};
use polygraph_wire::{date, decimal, uri};

use crate::request::generator::{Request, SharedWorld};
use crate::settings::{Field, Profile};

/// Flag of `X-XactMark`: the client itself validates.
const VALIDATES: u32 = 1;

/// What a request head depends on besides its request.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// What all robots have in common.
    pub field: &'a Field,
    /// The robot's kind.
    pub profile: &'a Profile,
    /// 0 for HTTP/1.0, 1 for HTTP/1.1.
    pub http_minor: u8,
    /// The request goes to a proxy.
    pub via_proxy: bool,
    /// The connection is closed afterwards.
    pub last: bool,
    /// Time of day in seconds since 1970.
    pub unix_s: i64,
    /// Id of the process.
    pub group: UniqId,
    /// What is told of worlds.
    pub told: (Option<SharedWorld>, Option<SharedWorld>),
    /// Position in the schedule of phases, if it is told, and whether others are waited for there.
    pub position: Option<(u64, bool)>,
    /// Body of the request: size, digest if it is told, and coordinates of its abort.
    pub body: Option<(u64, Option<&'a str>, AbortCoords)>,
    /// The peer must agree before the body is sent.
    pub expects: bool,
    /// Further lines, each with its end: credentials and cookies.
    pub lines: &'a [u8],
}

/// Appends the head of the request for `request`. Configured fields come first, and win over others of their name.
pub fn write(request: &Request, context: &Context<'_>, out: &mut Vec<u8>) {
    let Context { field, profile, .. } = *context;
    let foreign = request.foreign.as_deref().and_then(|url| uri::split(url.as_bytes()));
    let authority: &[u8] = match &foreign {
        Some(split) => split.authority,
        None => field.servers[request.server].authority.as_bytes(),
    };
    let host = authority.strip_suffix(b":80").unwrap_or(authority);
    out.extend_from_slice(request.method.word().as_bytes());
    out.push(b' ');
    if context.via_proxy {
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
    // Drawn for the transaction, so a retry carries the same fields.
    if let Some(content) = content {
        head.configure(&content.headers, Draw::new(u64::from(request.xact.counter)));
    }
    let mix = u64::from(request.xact.counter) << 32 | u64::from(request.xact.mix);
    head.configure(&profile.headers, Draw::new(mix));
    head.text("Accept", b"*/*");
    if let Some(codings) = &profile.accept_encoding {
        head.text("Accept-Encoding", codings.as_bytes());
    }
    head.text("Host", host);
    let mut flags = 0;
    match request.kind {
        RequestKind::Ims200 | RequestKind::Ims304 => {
            let off = if request.kind == RequestKind::Ims200 { -1 } else { 1 };
            if let Some(times) = field.catalog.times(&request.oid, context.unix_s) {
                let since = date::format(u64::try_from(times.lmt + off).unwrap_or(0));
                head.text("If-Modified-Since", since.as_bytes());
                flags = VALIDATES;
            }
        }
        RequestKind::Reload => {
            head.text("Cache-Control", b"no-cache");
            head.text("Pragma", b"no-cache");
        }
        RequestKind::Range => {
            let specs = request.range_specs();
            if !specs.is_empty() {
                head.add("Range", |out| write_range(specs.iter().copied(), out));
            }
        }
        RequestKind::Basic | RequestKind::Upload => {}
    }
    head.add(X_XACT, |out| XactMark { group: context.group, id: request.xact, flags }.write(out));
    if foreign.is_none() {
        for (name, told) in [(X_LOC_WORLD, context.told.0), (X_REM_WORLD, context.told.1)] {
            let Some(told) = told else { continue };
            head.add(name, |out| world_mark(&told).write(out));
        }
        head.text(X_TARGET, authority);
    }
    if let Some((.., abort)) = context.body
        && profile.abort_prob > 0.0
    {
        head.text(X_ABORT, format!("{} {}", abort.whether, abort.place).as_bytes());
    }
    if let Some((position, waits)) = context.position {
        head.add(X_PHASE_SYNC_POS, |out| decimal::write(out, position));
        if waits {
            head.text(X_PHASE_SYNC_WAIT, b"1");
        }
    }
    if let Some((size, digest, _)) = context.body {
        body_lines(content, size, digest, context.expects, &mut head);
    }
    if let Some(value) = connection(context.http_minor, context.last) {
        head.text("Connection", value);
        // No standard, but what old proxies look at instead (docs/classic.md).
        if context.via_proxy {
            head.text("Proxy-Connection", value);
        }
    }
    out.extend_from_slice(context.lines);
    out.extend_from_slice(b"\r\n");
}

/// A head that is being written.
struct Head<'a> {
    out: &'a mut Vec<u8>,
    /// Where the configured lines are.
    configured: Range<usize>,
}

impl Head<'_> {
    /// Adds the fields that `rules` draw; of several with the same name the first one counts.
    fn configure(&mut self, rules: &[HeaderRule], mut rng: Draw) {
        draw_headers(rules, &mut rng, &mut |name, value: &str| {
            self.text(name, value.as_bytes());
            self.configured.end = self.out.len();
        });
    }

    /// Adds a field whose value `write` appends, unless it is configured.
    fn add(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
        if self.is_free(name) {
            self.out.extend_from_slice(name.as_bytes());
            self.out.extend_from_slice(b": ");
            write(self.out);
            self.out.extend_from_slice(b"\r\n");
        }
    }

    /// Adds a field with a ready value, unless it is configured.
    fn text(&mut self, name: &str, value: &[u8]) {
        self.add(name, |out| out.extend_from_slice(value));
    }

    fn is_free(&self, name: &str) -> bool {
        let is_name = |line: &[u8]| {
            line.split_at_checked(name.len()).is_some_and(|(start, rest)| {
                start.eq_ignore_ascii_case(name.as_bytes()) && rest.starts_with(b":")
            })
        };
        // Nearly always nothing is configured.
        self.configured.is_empty() || !self.out[self.configured.clone()].split(|&b| b == b'\n').any(is_name)
    }
}

fn body_lines(
    content: Option<&Content>,
    size: u64,
    digest: Option<&str>,
    expects: bool,
    head: &mut Head<'_>,
) {
    if let Some(digest) = digest {
        head.text("Content-MD5", digest.as_bytes());
    }
    head.add("Content-Length", |out| decimal::write(out, size));
    if let Some(mime) = content.and_then(|content| content.mime_type.as_deref()) {
        head.text("Content-Type", mime.as_bytes());
    }
    if content.is_some_and(|content| content.encodings.compresses_requests()) {
        head.text("Content-Encoding", b"gzip");
    }
    if expects {
        head.text("Expect", b"100-continue");
    }
}

/// HTTP/1.0 closes and HTTP/1.1 keeps connections unless told otherwise (RFC 9112, appendix C.2.2).
fn connection(minor: u8, last: bool) -> Option<&'static [u8]> {
    match (minor, last) {
        (0, false) => Some(b"keep-alive"),
        (0, true) | (_, false) => None,
        (_, true) => Some(b"close"),
    }
}

/// The mark of a world that is told of.
pub fn world_mark(told: &SharedWorld) -> WorldMark {
    let facts = told.facts;
    WorldMark { id: told.id, kind: told.kind, window: facts.window, size: facts.size, hot: facts.hot_end }
}
