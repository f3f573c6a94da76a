//! What follows from transactions: embedded objects and redirects.

use std::net::SocketAddr;
use std::rc::Rc;

use polygraph_link::Link;
use polygraph_stats::ErrorKind;
use polygraph_traffic::{ContentKind, Oid, Random, RequestKind};
use polygraph_wire::uri::{self, UrlParts};

use crate::group::RobotGroup;
use crate::request::generator::{Cause, Request};
use crate::settings::Profile;

/// Redirects in a row that are followed. Browsers give up after about as many (WHATWG Fetch, section 4.4), and a
/// device that sends its visitors in circles must not turn robots into a flood.
const MAX_REDIRECTS: u32 = 20;

impl<L: Link> RobotGroup<L> {
    /// Begins a transaction that follows from another one.
    pub(crate) fn follow(&self, robot: usize, request: Request) {
        if let Some(page) = &request.page {
            page.enter();
        }
        self.begin(robot, request);
    }

    /// Asks for an embedded object that `link` in the reply to `container` refers to.
    pub fn follow_link(self: &Rc<Self>, robot: usize, container: &Request, hop: SocketAddr, link: &[u8]) {
        let profile = self.profile(robot);
        if container.foreign.is_some() {
            return self.follow_foreign(robot, container, link, profile);
        }
        let oid = match self.embedded(container, link) {
            Ok(oid) => oid,
            Err(kind) => return self.note_link(kind, container, link),
        };
        if !container.wants_embedded(oid.name & 0xff, profile.embed_recur) {
            return;
        }
        // Only basic requests are satisfied with what the robot has.
        let has = profile.private_cache > 0 && self.private(robot).received.contains(&oid);
        if has && container.kind == RequestKind::Basic || !container.leads_to(oid) {
            return;
        }
        let now = self.now();
        let mut request = self.generator.borrow_mut().follow_up(container, Cause::Embedded, oid, now);
        request.hop = Some(hop);
        self.count_launched(robot, container);
        self.follow(robot, request);
    }

    /// The object that `link` in the reply to `container` refers to, on the same server.
    fn embedded(&self, container: &Request, link: &[u8]) -> Result<Oid, ErrorKind> {
        let leaves = |url| uri::split(url).is_some_and(|parts| !self.is_at(container, parts));
        if leaves(link) {
            return Err(ErrorKind::ForeignLink);
        }
        if let Some(oid) = polygraph_wire::url::parse(link) {
            return Ok(oid);
        }
        // Files of a document root have names of their own, which may be relative.
        let mut url = Vec::new();
        let path = match uri::resolve(self.url(container).as_bytes(), link, &mut url) {
            true if leaves(&url) => return Err(ErrorKind::ForeignLink),
            true => uri::split(&url).map(|parts| parts.path),
            false => None,
        };
        let found = path.and_then(|path| self.file(container, path));
        found.ok_or(ErrorKind::ForeignTag)
    }

    /// The file that `path` in the reply to `container` names. Several document roots may have one of that name: those
    /// that are likely to be meant come first.
    fn file(&self, container: &Request, path: &[u8]) -> Option<Oid> {
        let field = &self.settings.field;
        let kind = container.oid.kind;
        let embeds = field.catalog.content(kind).and_then(|content| content.embeds.as_ref());
        let embedded = embeds.map_or(&[][..], |embeds| embeds.kinds.items());
        let direct = field.direct[field.servers[container.server].direct].items();
        let all = (0..field.catalog.contents.len()).map(ContentKind::of_index);
        let likely = embedded.iter().chain([&kind]).chain(direct).copied();
        field.catalog.file_at(path, likely.chain(all))
    }

    /// Whether a URL with these parts leads to the server of `request`.
    fn is_at(&self, request: &Request, parts: UrlParts<'_>) -> bool {
        let server = self.settings.field.servers.get(request.server);
        let authority = server.map_or("", |server| &server.authority);
        parts.authority == authority.as_bytes()
            || parts.authority == authority.strip_suffix(":80").unwrap_or(authority).as_bytes()
    }

    /// An embedded object of `container` is asked for. If no launch was left out for it in advance, the next one
    /// is (reference: models.md, section 9.3).
    pub(crate) fn count_launched(&self, robot: usize, container: &Request) {
        let launched = container.launched.get() + 1;
        container.launched.set(launched);
        if launched > container.planned {
            self.leave_out(robot, 1);
        }
    }

    /// So many of the robot's next launches are left out.
    pub(crate) fn leave_out(&self, robot: usize, launches: u32) {
        let extra = &mut self.robots()[robot].extra;
        // Robots of a closed loop never make up for them.
        *extra = extra.saturating_add(launches);
    }

    pub(crate) fn follow_foreign(
        self: &Rc<Self>,
        robot: usize,
        container: &Request,
        link: &[u8],
        profile: &Profile,
    ) {
        let base = container.foreign.as_deref().unwrap_or_default();
        let mut url = Vec::new();
        let now = self.now();
        let wanted = self.connection_rng().event(profile.embed_recur);
        if !wanted || !uri::resolve(base.as_bytes(), link, &mut url) {
            return;
        }
        let Ok(url) = String::from_utf8(url) else { return };
        let oid = Oid { name: container.oid.name << 8, ..container.oid };
        let mut request = self.generator.borrow_mut().follow_up(container, Cause::Embedded, oid, now);
        request.foreign = Some(Rc::from(url));
        self.count_launched(robot, container);
        self.follow(robot, request);
    }

    pub(crate) fn note_link(&self, kind: ErrorKind, container: &Request, link: &[u8]) {
        let now = self.now();
        self.recorder
            .error(kind, now, || format!("{} in {}", String::from_utf8_lossy(link), self.url(container)));
    }

    /// Goes where a redirect leads, unless that goes on for ever.
    pub fn follow_redirect(self: &Rc<Self>, robot: usize, from: &Request, location: &[u8]) {
        if from.redirects >= MAX_REDIRECTS {
            return self.note_link(ErrorKind::RedirectLoop, from, location);
        }
        let now = self.now();
        let base = self.url(from);
        let mut url = Vec::new();
        if !uri::resolve(base.as_bytes(), location, &mut url) {
            return self.note_link(ErrorKind::BadLocation, from, location);
        }
        let oid = polygraph_wire::url::parse(&url);
        let same = uri::split(&url).is_some_and(|parts| self.is_at(from, parts));
        let mut request = match oid {
            Some(oid) if same => {
                let request = self.generator.borrow_mut().follow_up(from, Cause::Redirected, oid, now);
                Request { repeat: true, kind: RequestKind::Basic, ..request }
            }
            Some(_) => return self.note_link(ErrorKind::ForeignLink, from, location),
            None => {
                let Ok(url) = String::from_utf8(url) else {
                    return self.note_link(ErrorKind::BadLocation, from, location);
                };
                let oid = Oid { kind: ContentKind::FOREIGN, ..from.oid };
                let request = self.generator.borrow_mut().follow_up(from, Cause::Redirected, oid, now);
                Request { foreign: Some(Rc::from(url)), repeat: false, hop: None, ..request }
            }
        };
        request.page = None;
        self.leave_out(robot, 1);
        self.follow(robot, request);
    }
}
