//! Requests that follow from a reply: for embedded objects and for the targets of redirects.

use std::rc::Rc;

use polygraph_link::Link;
use polygraph_stats::ErrorKind;
use polygraph_traffic::{ContentKind, Oid, RequestKind};
use polygraph_wire::uri::{self, UrlParts};

use crate::connections::hop::Hop;
use crate::context::{GroupContext, RobotContext};
use crate::exchange::reply::ReplyMeta;
use crate::group::RobotGroup;
use crate::record;
use crate::request::{Cause, Request};

/// Number of redirects in a row that a robot follows. It does not follow the next one and notes it (`c208`); the transaction with
/// this redirect is successful. Browsers give up after about as many (WHATWG Fetch, section 4.4), and a device that redirects in
/// circles must not turn robots into a flood.
const MAX_REDIRECTS: u32 = 20;

impl<L: Link> RobotGroup<L> {
    /// Requests the embedded object to which `link` in the reply to `container` refers, if the robot wants it. The reply comes from
    /// `hop`.
    pub(super) fn request_embedded(&self, robot: usize, container: &Request, hop: Hop, link: &[u8]) {
        let cx = self.context.of(robot);
        let request = match container.foreign.is_some() {
            true => foreign_part(cx, container, link),
            false => match embedded_object(cx.group, container, link) {
                Ok(oid) => self.part(robot, container, oid, hop),
                Err(kind) => return record::bad_link(cx, kind, container, link),
            },
        };
        let Some(request) = request else { return };
        // If the robot has not skipped a launch for this object in advance, it skips the next one
        // (`docs/reference/models.md`, "Load compensation").
        let launched = container.launched.get() + 1;
        container.launched.set(launched);
        if launched > container.planned {
            self.skip_launch(robot);
        }
        if let Some(page) = &request.page {
            page.enter();
        }
        self.launch(robot, request);
    }

    /// The request for an object that is embedded in the reply to `container`, if the robot wants it.
    fn part(&self, robot: usize, container: &Request, oid: Oid, hop: Hop) -> Option<Request> {
        let cx = self.context.of(robot);
        let profile = cx.profile();
        if !container.wants_embedded(oid.name & 0xff, profile.embed_recur) {
            return None;
        }
        // The private cache answers basic requests only.
        let has = profile.private_cache > 0 && self.rare(robot).received.contains(&oid);
        if has && container.kind == RequestKind::Basic || !container.leads_to(oid) {
            return None;
        }
        let request = cx.generator.borrow_mut().follow_up(container, Cause::Embedded, oid, cx.now());
        let kind = cx.settings.field.kind_for(request.kind, &oid);
        Some(Request { kind, hop: Some(hop), ..request })
    }

    /// Requests the target of a redirect, unless there were too many of them in a row.
    pub(super) fn follow_redirect(&self, robot: usize, from: &Request, reply: &ReplyMeta) {
        let cx = self.context.of(robot);
        let Some(location) = reply.rare.as_deref().and_then(|rare| rare.location.as_deref()) else {
            return record::no_location(cx, from);
        };
        match redirected(cx.group, from, location) {
            Ok(request) => {
                self.skip_launch(robot);
                self.launch(robot, request);
            }
            Err(kind) => record::bad_link(cx, kind, from, location),
        }
    }

    /// The robot's next launch is skipped. Robots of a closed loop ignore this.
    fn skip_launch(&self, robot: usize) {
        let to_skip = &mut self.robot(robot).to_skip;
        *to_skip = to_skip.saturating_add(1);
    }
}

/// The request to which a redirect of `from` leads.
///
/// # Errors
/// If there were too many redirects in a row, or if the location is not a URL that a robot can request.
fn redirected<L: Link>(
    group: &GroupContext<L>,
    from: &Request,
    location: &[u8],
) -> Result<Request, ErrorKind> {
    if from.redirects >= MAX_REDIRECTS {
        return Err(ErrorKind::RedirectLoop);
    }
    let mut url = Vec::new();
    if !uri::resolve(group.url(from).as_bytes(), location, &mut url) {
        return Err(ErrorKind::BadLocation);
    }
    let follow_up = |oid| group.generator.borrow_mut().follow_up(from, Cause::Redirected, oid, group.now());
    let request = match polygraph_wire::url::parse(&url) {
        Some(oid) if !leaves(group, from, &url) => {
            Request { repeat: true, kind: RequestKind::Basic, ..follow_up(oid) }
        }
        Some(_) => return Err(ErrorKind::ForeignLink),
        None => {
            let url = String::from_utf8(url).map_err(|_| ErrorKind::BadLocation)?;
            let request = follow_up(Oid { kind: ContentKind::FOREIGN, ..from.oid });
            Request { foreign: Some(Rc::from(url)), repeat: false, hop: None, ..request }
        }
    };
    Ok(Request { page: None, ..request })
}

/// The request for a URL in the reply to a foreign `container`, if the robot wants it.
fn foreign_part<L: Link>(cx: RobotContext<'_, L>, container: &Request, link: &[u8]) -> Option<Request> {
    let base = container.foreign.as_deref().unwrap_or_default();
    let mut url = Vec::new();
    if !cx.draw_event(cx.profile().embed_recur) || !uri::resolve(base.as_bytes(), link, &mut url) {
        return None;
    }
    let url = String::from_utf8(url).ok()?;
    let oid = Oid { name: container.oid.name << 8, ..container.oid };
    let request = cx.generator.borrow_mut().follow_up(container, Cause::Embedded, oid, cx.now());
    Some(Request { foreign: Some(Rc::from(url)), ..request })
}

/// The object to which `link` in the reply to `container` refers, on the same server.
///
/// # Errors
/// If the link leads to another server, or to no object.
fn embedded_object<L: Link>(
    group: &GroupContext<L>,
    container: &Request,
    link: &[u8],
) -> Result<Oid, ErrorKind> {
    if uri::split(link).is_some() && leaves(group, container, link) {
        return Err(ErrorKind::ForeignLink);
    }
    if let Some(oid) = polygraph_wire::url::parse(link) {
        return Ok(oid);
    }
    // Files of a document root have their own names, which may be relative.
    let mut url = Vec::new();
    let path = match uri::resolve(group.url(container).as_bytes(), link, &mut url) {
        true if uri::split(&url).is_some() && leaves(group, container, &url) => {
            return Err(ErrorKind::ForeignLink);
        }
        true => uri::split(&url).map(|parts| parts.path),
        false => None,
    };
    let found = path.and_then(|path| file(group, container, path));
    found.ok_or(ErrorKind::ForeignTag)
}

/// The file that `path` in the reply to `container` names. Several document roots may have a file with that name: the roots that
/// are likely to be meant come first.
fn file<L: Link>(group: &GroupContext<L>, container: &Request, path: &[u8]) -> Option<Oid> {
    let field = &group.settings.field;
    let kind = container.oid.kind;
    let embeds = field.catalog.content(kind).and_then(|content| content.embeds.as_ref());
    let embedded = embeds.map_or(&[][..], |embeds| embeds.kinds.items());
    let direct = field.direct[field.servers[container.server].direct].items();
    let all = (0..field.catalog.contents.len()).map(ContentKind::of_index);
    let likely = embedded.iter().chain([&kind]).chain(direct).copied();
    field.catalog.file_at(path, likely.chain(all))
}

/// Whether `url` does not lead to the server of `request`.
fn leaves<L: Link>(group: &GroupContext<L>, request: &Request, url: &[u8]) -> bool {
    let Some(UrlParts { authority, .. }) = uri::split(url) else { return true };
    let Some(own) = group.settings.field.servers.get(request.server) else { return true };
    authority != own.authority.as_bytes() && authority != own.host().as_bytes()
}
