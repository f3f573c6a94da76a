//! Links to embedded objects in the content of replies (`docs/reference/models.md`, "Recognition of embedded objects").

use std::rc::Rc;

use polygraph_traffic::Catalog;
use polygraph_wire::entities;
use polygraph_wire::markup::{LinkTags, MarkupError, MarkupEvent, Scanner};
use polygraph_wire::raw_uris::UriScanner;
use rustc_hash::FxHashSet;

use crate::exchange::reply::{MediaType, ReplyMeta};
use crate::request::Request;

/// The links that robots with a profile follow.
#[derive(Debug)]
pub struct LinkFilter {
    /// The tags and attributes that are links.
    pub tags: LinkTags,
    /// Replies of servers whose name starts with one of these texts are searched for any URI; `*`: all replies.
    pub raw: Option<String>,
}

impl LinkFilter {
    /// A search of the reply to `request`, if it may contain links: it is markup or style by its type, or without a type
    /// by its URL, or its content type is a container.
    pub fn search(
        self: &Rc<Self>,
        catalog: &Catalog,
        request: &Request,
        reply: &ReplyMeta,
    ) -> Option<Box<LinkSearch>> {
        let server = reply.rare.as_deref().map_or(&[][..], |rare| &rare.server);
        let container = catalog.content(request.oid.kind).is_some_and(|content| content.embeds.is_some());
        let markup = match reply.media {
            MediaType::Markup => true,
            MediaType::Other => false,
            MediaType::Unknown => {
                request.foreign.as_deref().is_some_and(|url| url.ends_with('/') || url.ends_with("ml"))
            }
        };
        let thrower = self
            .raw
            .as_deref()
            .is_some_and(|raw| raw == "*" || !server.is_empty() && server.starts_with(raw.as_bytes()));
        (container || markup).then(|| {
            Box::new(LinkSearch {
                filter: Rc::clone(self),
                scanner: Scanner::default(),
                raw: (thrower && markup).then(Box::default),
                found: Vec::new(),
                errors: Vec::new(),
            })
        })
    }
}

/// The search for links in one reply.
#[derive(Debug)]
pub struct LinkSearch {
    filter: Rc<LinkFilter>,
    scanner: Scanner,
    raw: Option<Box<Raw>>,
    /// Links that were found but not taken yet.
    pub found: Vec<Vec<u8>>,
    /// Errors in the markup.
    pub errors: Vec<MarkupError>,
}

/// The search for URIs anywhere in the text.
#[derive(Debug, Default)]
struct Raw {
    scanner: UriScanner,
    /// The links that any of the searches found.
    known: FxHashSet<Vec<u8>>,
}

impl LinkSearch {
    /// Takes the next bytes of the content.
    pub fn take(&mut self, bytes: &[u8]) {
        let LinkSearch { filter, scanner, found, errors, raw } = self;
        let before = found.len();
        scanner.feed(&filter.tags, bytes, |item| sort(item, found, errors));
        if let Some(raw) = raw {
            raw.scanner.feed(bytes, |uri| found.push(meant(uri)));
            raw.drop_known(found, before);
        }
    }

    /// Finishes the search: the content is complete.
    pub fn finish(&mut self) {
        let LinkSearch { scanner, found, errors, raw, .. } = self;
        let before = found.len();
        scanner.finish(|item| sort(item, found, errors));
        if let Some(raw) = raw {
            raw.scanner.finish(|uri| found.push(meant(uri)));
            raw.drop_known(found, before);
        }
    }
}

impl Raw {
    /// Removes links from `found`, from `before` on, that were found before: in a tag and in the text, or more than once.
    fn drop_known(&mut self, found: &mut Vec<Vec<u8>>, before: usize) {
        let mut new = found.split_off(before);
        new.retain(|link| self.known.insert(link.clone()));
        found.append(&mut new);
    }
}

/// The URI that this text in markup means.
fn meant(uri: &[u8]) -> Vec<u8> {
    let mut uri = uri.to_vec();
    entities::decode(&mut uri);
    uri
}

fn sort(item: MarkupEvent<'_>, found: &mut Vec<Vec<u8>>, errors: &mut Vec<MarkupError>) {
    match item {
        MarkupEvent::Link(link) => found.push(link.to_vec()),
        MarkupEvent::Fault(fault) => errors.push(fault),
    }
}

#[cfg(test)]
mod tests {
    use polygraph_link::Nanos;
    use polygraph_traffic::{ContentKind, Oid, Seed, UniqId};

    use super::*;

    #[test]
    fn links_in_tags_and_elsewhere_are_found_once() {
        let text = b"<embed src=/a><embed src='http://b/?c&amp;d'><a href='http://b/?c&amp;d'><script>'http://e/'</script>\
            <embed src=/a> http://e/, http://f/";
        let catalog = Catalog { seed: Seed(1), contents: Vec::new() };
        let request = Request::basic(
            0,
            Oid { world: UniqId::default(), kind: ContentKind::FIRST, name: 1 },
            UniqId::default(),
            Nanos::ZERO,
        );
        let reply = ReplyMeta { media: MediaType::Markup, ..ReplyMeta::default() };
        let find = |raw: Option<&str>, step: usize| {
            let filter = Rc::new(LinkFilter { tags: LinkTags::default(), raw: raw.map(str::to_owned) });
            let mut links = filter.search(&catalog, &request, &reply).unwrap();
            text.chunks(step).for_each(|piece| links.take(piece));
            links.finish();
            assert_eq!(links.errors, []);
            links.found.iter().map(|link| String::from_utf8_lossy(link).into_owned()).collect::<Vec<_>>()
        };
        for step in [1, 7] {
            assert_eq!(find(None, step), ["/a", "http://b/?c&d", "/a"]);
            assert_eq!(find(Some("*"), step), ["/a", "http://b/?c&d", "http://e/", "http://f/"]);
        }
    }
}
