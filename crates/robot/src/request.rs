//! Requests: the choice of objects, and the form of requests on the wire.

pub mod auth;
pub mod backlog;
pub mod cookies;
pub mod encode;
pub mod generator;
pub mod page;
pub mod trace;
pub mod universe;

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use polygraph_link::Nanos;
use polygraph_stats::TransactionHandle;
use polygraph_traffic::ranges::{RangeSet, RangeSpec};
use polygraph_traffic::{Draw, Method, Oid, Random, RequestKind, UniqId};
use rustc_hash::FxHashSet;

use self::page::Page;
use crate::connections::hop::Hop;

/// Why a robot makes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The request was launched by the robot's load.
    Direct,
    /// The object is embedded in another one.
    Embedded,
    /// A reply redirected the robot.
    Redirected,
}

/// A request that a robot has decided to send.
#[derive(Clone, Debug)]
pub struct Request {
    /// Number of the visible server.
    pub server: usize,
    /// The requested object.
    pub oid: Oid,
    /// Whether the object was requested before.
    pub repeat: bool,
    /// Whether the robot wanted an object that was requested before; there may have been none.
    pub repeat_wanted: bool,
    /// Whether the object was chosen from the hot set.
    pub hot: bool,
    /// The kind of request.
    pub kind: RequestKind,
    /// The HTTP method.
    pub method: Method,
    /// Why the robot makes the request.
    pub cause: Cause,
    /// Id of the transaction.
    pub xact: UniqId,
    /// The scheduled time.
    pub due: Nanos,
    /// Seed of all further random decisions about this request.
    pub seed: u64,
    /// The object in the body of the request.
    pub sends: Option<Oid>,
    /// The ranges of a range request.
    pub ranges: Option<Rc<RangeSet>>,
    /// The URL, if it is not one of a server of the test.
    pub foreign: Option<Rc<str>>,
    /// Number of redirects in a row that led to this request.
    pub redirects: u32,
    /// Number of launches that the robot skips in advance to make room for embedded objects.
    pub planned: u32,
    /// When the robot can expect to request these embedded objects; it skips launches from then on. For a copy that a cache can
    /// have this is at once, otherwise after the mean time of a server. The robot does not wait for the reply, so equal seeds
    /// give equal requests.
    pub parts_from: Nanos,
    /// Number of its embedded objects that were requested so far.
    pub launched: Cell<u32>,
    /// The destination of the request, if it is known: embedded objects come from the same peer as their container.
    pub hop: Option<Hop>,
    /// The page to which the request belongs.
    pub page: Option<Rc<Page>>,
    /// Its handle among the unfinished transactions, once it has started.
    pub handle: TransactionHandle,
    /// Files of a document root that were requested because a file embeds them, directly or indirectly.
    pub trail: OnceCell<Rc<RefCell<FxHashSet<Oid>>>>,
}

impl Request {
    /// A basic GET for an object that was not requested before.
    pub fn basic(server: usize, oid: Oid, xact: UniqId, due: Nanos) -> Request {
        Request {
            server,
            oid,
            repeat: false,
            repeat_wanted: false,
            hot: false,
            kind: RequestKind::Basic,
            method: Method::Get,
            cause: Cause::Direct,
            xact,
            due,
            seed: 0,
            sends: None,
            ranges: None,
            foreign: None,
            redirects: 0,
            planned: 0,
            parts_from: due,
            launched: Cell::new(0),
            hop: None,
            page: None,
            handle: TransactionHandle::default(),
            trail: OnceCell::new(),
        }
    }

    /// The requested ranges.
    pub fn range_specs(&self) -> &[RangeSpec] {
        self.ranges.as_deref().map_or(&[], |set| &set.specs)
    }

    /// Whether this is a GET for the object as it is. Only these count in hit ratios (`docs/reference/models.md`, "Request
    /// properties").
    pub fn is_basic(&self) -> bool {
        self.method == Method::Get && self.kind == RequestKind::Basic && self.cause != Cause::Redirected
    }

    /// Whether the object belongs to a world. Worlds belong to one loop of one test, but all loops request the same files of a
    /// document root.
    pub fn is_of_a_world(&self) -> bool {
        self.foreign.is_none() && self.oid.world != UniqId::default()
    }

    /// Whether the robot requests embedded object number `index` of this container, if it requests a share `embed_recur` of them.
    pub fn wants_embedded(&self, index: u64, embed_recur: f64) -> bool {
        embed_recur >= 1.0 || Draw::new(self.seed ^ polygraph_traffic::rng::mix(index)).event(embed_recur)
    }

    /// Whether the embedded object `oid` of this container has not been requested yet. The files of a site embed each other in
    /// circles, so each file is requested once, wherever in the page it is embedded.
    pub fn leads_to(&self, oid: Oid) -> bool {
        let embeds_files = self.oid.world == UniqId::default() && oid.world == UniqId::default();
        let trail = || Rc::new(RefCell::new(FxHashSet::from_iter([self.oid])));
        oid != self.oid && (!embeds_files || self.trail.get_or_init(trail).borrow_mut().insert(oid))
    }
}
