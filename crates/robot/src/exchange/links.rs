//! Links to embedded objects in the content of replies (`docs/reference/models.md`, "Recognition of embedded objects").

use std::cell::RefCell;
use std::rc::Rc;

use polygraph_traffic::Catalog;
use polygraph_traffic::body::Equal;
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
    /// Memory for the links of the next search.
    spare: RefCell<LinkList>,
}

impl LinkFilter {
    /// A filter for links in these tags, and in any text of servers whose name starts with `raw`.
    pub fn new(tags: LinkTags, raw: Option<String>) -> LinkFilter {
        LinkFilter { tags, raw, spare: RefCell::default() }
    }

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
                found: self.spare.take(),
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
    pub found: LinkList,
    /// Errors in the markup.
    pub errors: Vec<MarkupError>,
}

impl Drop for LinkSearch {
    fn drop(&mut self) {
        self.found.clear();
        self.filter.spare.replace(std::mem::take(&mut self.found));
    }
}

/// Links, one behind the other in the same memory.
#[derive(Debug, Default)]
pub struct LinkList {
    text: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
}

impl LinkList {
    fn push(&mut self, link: &[u8]) {
        self.text.extend_from_slice(link);
        self.ends.push(self.text.len());
    }

    /// The links, in the order in which they were found.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.text[start..end])
    }

    /// Forgets all of them, but keeps their memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }
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
        let Some(raw) = raw else {
            return scanner.feed(&filter.tags, bytes, |item| sort(item, |link| found.push(link), errors));
        };
        let Raw { scanner: uris, known } = &mut **raw;
        let mut push = |link: &[u8]| push_unknown(link, known, found);
        scanner.feed(&filter.tags, bytes, |item| sort(item, &mut push, errors));
        uris.feed(bytes, |uri| push(&meant(uri)));
    }

    /// Whether URIs count that are not in tags, so that all bytes are searched.
    pub fn reads_text(&self) -> bool {
        self.raw.is_some()
    }

    /// Takes the next bytes of the content, which are known to be those of the object; not for searches that read text.
    pub fn take_known(&mut self, bytes: Equal<'_>) {
        match bytes {
            Equal::Text(_) | Equal::PageEnd(_) if self.scanner.is_between_tags() => {}
            Equal::Text(bytes) | Equal::PageEnd(bytes) | Equal::Other(bytes) => self.take(bytes),
        }
    }

    /// Finishes the search: the content is complete.
    pub fn finish(&mut self) {
        let LinkSearch { scanner, found, errors, raw, .. } = self;
        scanner.finish(|item| sort(item, |link| found.push(link), errors));
        if let Some(raw) = raw {
            let Raw { scanner: uris, known } = &mut **raw;
            uris.finish(|uri| push_unknown(&meant(uri), known, found));
        }
    }
}

/// Adds a link unless it was found before: in a tag and in the text, or more than once.
fn push_unknown(link: &[u8], known: &mut FxHashSet<Vec<u8>>, found: &mut LinkList) {
    if known.insert(link.to_vec()) {
        found.push(link);
    }
}

/// The URI that this text in markup means.
fn meant(uri: &[u8]) -> Vec<u8> {
    let mut uri = uri.to_vec();
    entities::decode(&mut uri);
    uri
}

fn sort(item: MarkupEvent<'_>, push: impl FnOnce(&[u8]), errors: &mut Vec<MarkupError>) {
    match item {
        MarkupEvent::Link(link) => push(link),
        MarkupEvent::Fault(fault) => errors.push(fault),
    }
}

#[cfg(test)]
mod tests {
    use polygraph_link::Nanos;
    use polygraph_traffic::content::{BodySource, Embeds};
    use polygraph_traffic::{Body, Content, ContentKind, Distr, Oid, Seed, Selector, UniqId};

    use super::*;

    /// The search in bytes that are known finds the same as one in all bytes, wherever they are cut or end.
    #[test]
    fn known_pages_are_searched_like_others() {
        let page = |extension: &str, source: BodySource| Content {
            extensions: Selector::only(extension.to_owned()),
            embeds: Some(Embeds {
                kinds: Selector::only(ContentKind::FIRST),
                count: Distr::Unif { min: 0.0, max: 9.0 },
            }),
            source,
            ..Content::plain("page", Distr::Unif { min: 1.0, max: 3000.0 }, 1.0)
        };
        let find = |body: &Body, bytes: &[u8], step: usize, is_known: bool| {
            let filter = Rc::new(LinkFilter::new(LinkTags::default(), None));
            let oid = Oid { world: UniqId::default(), kind: ContentKind::FIRST, name: 1 };
            let request = Request::basic(0, oid, UniqId::default(), Nanos::ZERO);
            let reply = ReplyMeta { media: MediaType::Markup, ..ReplyMeta::default() };
            let catalog = Catalog { seed: Seed(1), contents: Vec::new() };
            let mut links = filter.search(&catalog, &request, &reply).unwrap();
            let mut expected = body.clone();
            for piece in bytes.chunks(step) {
                match is_known {
                    true => expected.compare_noting(piece, |equal| links.take_known(equal)),
                    false => {
                        let same = expected.compare(piece);
                        links.take(&piece[..same]);
                        same
                    }
                };
            }
            links.finish();
            let found: Vec<Vec<u8>> = links.found.iter().map(<[u8]>::to_vec).collect();
            (found, std::mem::take(&mut links.errors))
        };
        let mut links = 0;
        for extension in [".gif", "\"", "\">", "&amp;x", " x", "'<script>", "http://x/"] {
            for source in [BodySource::Text, BodySource::Data] {
                let catalog = Catalog { seed: Seed(7), contents: vec![page(extension, source)] };
                for name in 1..40 {
                    let oid = Oid { world: UniqId::default(), kind: ContentKind::FIRST, name };
                    let body = catalog.body(&oid, b"");
                    let whole = body.to_vec();
                    let cut = name as usize * whole.len() / 40;
                    let mut altered = whole.clone();
                    altered[cut] ^= 1;
                    for bytes in [&whole, &whole[..cut], &altered] {
                        for step in [1, 10, 61, 1000, 5000] {
                            let of_all = find(&body, bytes, step, false);
                            links += of_all.0.len();
                            assert_eq!(find(&body, bytes, step, true), of_all, "{extension:?} by {step}");
                        }
                    }
                }
            }
        }
        assert!(links > 1_000, "{links}");
    }

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
            let filter = Rc::new(LinkFilter::new(LinkTags::default(), raw.map(str::to_owned)));
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
