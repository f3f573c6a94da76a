//! Which object a request asks for, and under which transaction id.

use polygraph_link::{Nanos, nanos};
use polygraph_traffic::{IdSource, Kind, Oid, Random, Stream, UniqId, World};
use polygraph_wire::marks::{X_TARGET, X_XACT, Xact};
use polygraph_wire::url;

use crate::settings::{Origin, Settings};

/// A request that is decided but not yet sent.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// Number of the origin server.
    pub origin: usize,
    /// The object.
    pub oid: Oid,
    /// The object was asked for before: if it is cachable, a hit is offered.
    pub repeat: bool,
    /// Transaction id.
    pub xact: UniqId,
    /// When the request was due.
    pub due: Nanos,
}

impl Order {
    /// A perfect cache would have a hit.
    pub fn offers_hit(&self) -> bool {
        self.repeat && self.oid.kind == Kind::CACHABLE
    }
}

/// Decides orders: the objects known to this loop and its source of ids.
#[derive(Debug)]
pub struct Chooser {
    /// One for each origin server.
    worlds: Vec<World>,
    ids: IdSource,
}

impl Chooser {
    /// A chooser with empty worlds.
    pub fn new(settings: &Settings, mut ids: IdSource) -> Chooser {
        let worlds =
            settings.origins.iter().map(|_| World::new(ids.fresh(), nanos(settings.settle))).collect();
        Chooser { worlds, ids }
    }

    /// The order of a robot, whose stream is `rng`, for a request due at `due`.
    pub fn order(&mut self, settings: &Settings, due: Nanos, rng: &mut Stream) -> Order {
        let origin = match self.worlds.len() {
            1 => 0,
            n => rng.below(n as u64) as usize,
        };
        let choice = self.worlds[origin].choose(due, settings.recurrence, settings.popularity, rng);
        let world = self.worlds[origin].id();
        let kind = settings.properties.classic_kind(world, choice.name, settings.cachable);
        let oid = Oid { world, kind, name: choice.name };
        Order { origin, oid, repeat: choice.repeat, xact: self.ids.fresh(), due }
    }
}

/// Number of requests on a new connection.
pub fn connection_uses(settings: &Settings, rng: &mut impl Random) -> u32 {
    settings.requests_per_connection.sample(rng).trunc().clamp(1.0, f64::from(u32::MAX)) as u32
}

/// Writes the request line and header fields, of which only path and transaction id change for an origin.
#[derive(Clone, Debug)]
pub struct RequestWriter {
    /// The fixed parts, one set for each origin server.
    fixed: Vec<Fixed>,
    /// End of a head after which the connection is kept, and of one after which it is closed.
    keeping: &'static [u8],
    closing: &'static [u8],
    group: UniqId,
}

#[derive(Clone, Debug)]
struct Fixed {
    before_path: Vec<u8>,
    before_xact: Vec<u8>,
    after_xact: Vec<u8>,
}

impl RequestWriter {
    /// A writer for requests to `settings.origins`, through `settings.proxy` if there is one.
    pub fn new(settings: &Settings) -> RequestWriter {
        let via_proxy = settings.proxy.is_some();
        let minor = settings.http_minor;
        let fixed = |origin: &Origin| {
            let authority = &origin.authority;
            let host = authority.strip_suffix(":80").unwrap_or(authority);
            let base = if via_proxy { format!("http://{host}") } else { String::new() };
            Fixed {
                before_path: format!("GET {base}").into_bytes(),
                before_xact: format!(" HTTP/1.{minor}\r\nAccept: */*\r\nHost: {host}\r\n{X_XACT}: ")
                    .into_bytes(),
                after_xact: format!("\r\n{X_TARGET}: {authority}\r\n").into_bytes(),
            }
        };
        RequestWriter {
            fixed: settings.origins.iter().map(fixed).collect(),
            // HTTP/1.0 closes and HTTP/1.1 keeps connections unless told otherwise (RFC 9112, appendix C.2.2).
            keeping: match (minor, via_proxy) {
                (0, true) => b"Connection: keep-alive\r\nProxy-Connection: keep-alive\r\n\r\n",
                (0, false) => b"Connection: keep-alive\r\n\r\n",
                _ => b"\r\n",
            },
            closing: match (minor, via_proxy) {
                (0, _) => b"\r\n",
                (_, true) => b"Connection: close\r\nProxy-Connection: close\r\n\r\n",
                (_, false) => b"Connection: close\r\n\r\n",
            },
            group: settings.group,
        }
    }

    /// Appends the head of the request for `order`; `last` asks the peer to close the connection afterwards.
    pub fn write(&self, order: &Order, last: bool, out: &mut Vec<u8>) {
        let fixed = &self.fixed[order.origin];
        out.extend_from_slice(&fixed.before_path);
        out.extend_from_slice(&url::path(&order.oid));
        out.extend_from_slice(&fixed.before_xact);
        Xact { group: self.group, id: order.xact, flags: 0 }.write(out);
        out.extend_from_slice(&fixed.after_xact);
        out.extend_from_slice(if last { self.closing } else { self.keeping });
    }
}
