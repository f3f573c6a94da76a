//! The head of a request (reference: models.md, section 11.1).

use polygraph_traffic::headers::draw_headers;
use polygraph_traffic::ranges::RangeSpec as Spec;
use polygraph_traffic::{AbortCoords, Draw, RequestKind, UniqId};
use polygraph_wire::marks::{X_TARGET, X_XACT, Xact};
use polygraph_wire::range::{RangeSpec, write_range};
use polygraph_wire::worlds::{WorldMark, X_ABORT, X_LOC_WORLD, X_REM_WORLD};
use polygraph_wire::{date, decimal, uri};

use crate::order::{Order, ToldWorld};
use crate::settings::{Field, Profile};

/// Flag of `X-Xact`: the client itself validates.
const VALIDATES: u32 = 1;

/// What a request head depends on besides its order.
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
    pub told: (Option<ToldWorld>, Option<ToldWorld>),
    /// Body of the request: size, digest if it is told, and coordinates of its abort.
    pub body: Option<(u64, Option<&'a str>, AbortCoords)>,
    /// The peer must agree before the body is sent.
    pub expects: bool,
    /// Further lines, each with its end: credentials and cookies.
    pub lines: &'a [u8],
}

/// Appends the head of the request for `order`.
pub fn write(order: &Order, context: &Context<'_>, out: &mut Vec<u8>) {
    let Context { field, profile, .. } = *context;
    let foreign = order.foreign.as_deref().and_then(|url| uri::split(url.as_bytes()));
    let authority: &[u8] = match &foreign {
        Some(split) => split.authority,
        None => field.servers[order.server].authority.as_bytes(),
    };
    let host = authority.strip_suffix(b":80").unwrap_or(authority);
    out.extend_from_slice(order.method.word().as_bytes());
    out.push(b' ');
    if context.via_proxy {
        out.extend_from_slice(b"http://");
        out.extend_from_slice(host);
    }
    match &foreign {
        Some(split) if split.path.is_empty() => out.push(b'/'),
        Some(split) => out.extend_from_slice(split.path),
        None => field.catalog.write_path(&order.oid, out),
    }
    out.extend_from_slice(if context.http_minor == 0 { b" HTTP/1.0\r\n" } else { b" HTTP/1.1\r\n" });
    if !profile.headers.is_empty() {
        // Drawn for the transaction, so a retry carries the same fields.
        let mut rng = Draw::new(u64::from(order.xact.counter) << 32 | u64::from(order.xact.mix));
        draw_headers(&profile.headers, &mut rng, &mut |name, value| line(out, name, value.as_bytes()));
    }
    out.extend_from_slice(b"Accept: */*\r\n");
    if let Some(codings) = &profile.accept_encoding {
        line(out, "Accept-Encoding", codings.as_bytes());
    }
    line(out, "Host", host);
    let mut flags = 0;
    match order.kind {
        RequestKind::Ims200 | RequestKind::Ims304 => {
            let off = if order.kind == RequestKind::Ims200 { -1 } else { 1 };
            if let Some(times) = field.catalog.times(&order.oid, context.unix_s) {
                let since = date::format(u64::try_from(times.lmt + off).unwrap_or(0));
                line(out, "If-Modified-Since", since.as_bytes());
                flags = VALIDATES;
            }
        }
        RequestKind::Reload => {
            out.extend_from_slice(b"Cache-Control: no-cache\r\nPragma: no-cache\r\n");
        }
        RequestKind::Range => {
            if let Some(ranges) = &order.ranges {
                out.extend_from_slice(b"Range: ");
                write_range(ranges.iter().map(|spec| spec_of(*spec)), out);
                out.extend_from_slice(b"\r\n");
            }
        }
        RequestKind::Basic | RequestKind::Upload => {}
    }
    out.extend_from_slice(X_XACT.as_bytes());
    out.extend_from_slice(b": ");
    Xact { group: context.group, id: order.xact, flags }.write(out);
    out.extend_from_slice(b"\r\n");
    if foreign.is_none() {
        for (name, told) in [(X_LOC_WORLD, context.told.0), (X_REM_WORLD, context.told.1)] {
            let Some(told) = told else { continue };
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            world_mark(&told).write(out);
            out.extend_from_slice(b"\r\n");
        }
        line(out, X_TARGET, authority);
    }
    if let Some((size, digest, abort)) = context.body {
        body_lines(context, order, size, digest, abort, out);
    }
    out.extend_from_slice(connection(context.http_minor, context.via_proxy, context.last));
    out.extend_from_slice(context.lines);
    out.extend_from_slice(b"\r\n");
}

fn body_lines(
    context: &Context<'_>,
    order: &Order,
    size: u64,
    digest: Option<&str>,
    abort: AbortCoords,
    out: &mut Vec<u8>,
) {
    if context.profile.abort_prob > 0.0 {
        line(out, X_ABORT, format!("{} {}", abort.whether, abort.place).as_bytes());
    }
    if let Some(digest) = digest {
        line(out, "Content-MD5", digest.as_bytes());
    }
    out.extend_from_slice(b"Content-Length: ");
    decimal::write(out, size);
    out.extend_from_slice(b"\r\n");
    if let Some(content) = order.sends.and_then(|oid| context.field.catalog.content(oid.kind)) {
        if let Some(mime) = &content.mime_type {
            line(out, "Content-Type", mime.as_bytes());
        }
        let mut rng = Draw::new(u64::from(order.xact.counter));
        draw_headers(&content.headers, &mut rng, &mut |name, value| line(out, name, value.as_bytes()));
    }
    if context.expects {
        out.extend_from_slice(b"Expect: 100-continue\r\n");
    }
}

/// HTTP/1.0 closes and HTTP/1.1 keeps connections unless told otherwise (RFC 9112, appendix C.2.2).
fn connection(minor: u8, via_proxy: bool, last: bool) -> &'static [u8] {
    match (minor, via_proxy, last) {
        (0, true, false) => b"Connection: keep-alive\r\nProxy-Connection: keep-alive\r\n",
        (0, false, false) => b"Connection: keep-alive\r\n",
        (0, _, true) | (_, _, false) => b"",
        (_, true, true) => b"Connection: close\r\nProxy-Connection: close\r\n",
        (_, false, true) => b"Connection: close\r\n",
    }
}

fn line(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

fn spec_of(spec: Spec) -> RangeSpec {
    match spec {
        Spec::From(first, None) => RangeSpec::From(first),
        Spec::From(first, Some(last)) => RangeSpec::FromTo(first, last),
        Spec::Suffix(length) => RangeSpec::Suffix(length),
    }
}

/// The mark of a world that is told of.
pub fn world_mark(told: &ToldWorld) -> WorldMark {
    let facts = told.facts;
    WorldMark { id: told.id, kind: told.kind, window: facts.window, size: facts.size, hot: facts.hot_end }
}
