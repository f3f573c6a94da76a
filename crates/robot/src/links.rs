//! Links to embedded objects in the content of replies (reference: models.md, section 9.2).

use std::rc::Rc;

use polygraph_traffic::Catalog;
use polygraph_wire::markup::{Found, MarkupError, Scanner, Tags};
use polygraph_wire::raw_uris::UriScanner;

use crate::order::Order;
use crate::reply::Rare;

/// The links that robots of a kind follow.
#[derive(Debug)]
pub struct Wanted {
    /// In these tags.
    pub tags: Tags,
    /// Replies of servers whose name begins so are searched for any URI; `*`: all replies.
    pub raw: Option<String>,
}

impl Wanted {
    /// A search of the reply to `order`, if it may contain links: it is markup or style by its type, or without a type
    /// by its URL, or its content type is a container.
    pub fn search(
        self: &Rc<Self>,
        catalog: &Catalog,
        order: &Order,
        rare: Option<&Rare>,
    ) -> Option<Box<Links>> {
        let content_type = rare.and_then(|rare| rare.content_type.as_deref());
        let server = rare.and_then(|rare| rare.server.as_deref());
        let container = catalog.content(order.oid.kind).is_some_and(|content| content.embeds.is_some());
        let markup = match content_type {
            Some(value) => is_markup(value),
            None => order.foreign.as_deref().is_some_and(|url| url.ends_with('/') || url.ends_with("ml")),
        };
        let thrower = self
            .raw
            .as_deref()
            .is_some_and(|raw| raw == "*" || server.is_some_and(|server| server.starts_with(raw.as_bytes())));
        (container || markup).then(|| {
            Box::new(Links {
                wanted: Rc::clone(self),
                scanner: Scanner::default(),
                uris: (thrower && markup).then(UriScanner::default),
                found: Vec::new(),
                faults: Vec::new(),
            })
        })
    }
}

/// Links found in one reply.
#[derive(Debug)]
pub struct Links {
    wanted: Rc<Wanted>,
    scanner: Scanner,
    uris: Option<UriScanner>,
    /// References that nobody has taken yet.
    pub found: Vec<Vec<u8>>,
    /// What is wrong with the markup.
    pub faults: Vec<MarkupError>,
}

impl Links {
    /// Takes the next bytes of the content.
    pub fn take(&mut self, bytes: &[u8]) {
        let Links { wanted, scanner, found, faults, uris } = self;
        match uris {
            Some(uris) => uris.feed(bytes, |uri| found.push(uri.to_vec())),
            None => scanner.feed(&wanted.tags, bytes, |item| sort(item, found, faults)),
        }
    }

    /// The content is complete.
    pub fn finish(&mut self) {
        let Links { scanner, found, faults, uris, .. } = self;
        match uris {
            Some(uris) => uris.finish(|uri| found.push(uri.to_vec())),
            None => scanner.finish(|item| sort(item, found, faults)),
        }
    }
}

fn sort(item: Found<'_>, found: &mut Vec<Vec<u8>>, faults: &mut Vec<MarkupError>) {
    match item {
        Found::Link(link) => found.push(link.to_vec()),
        Found::Fault(fault) => faults.push(fault),
    }
}

/// `text/*ml`, style sheets, XHTML.
fn is_markup(content_type: &[u8]) -> bool {
    let essence = content_type.split(|&b| b == b';').next().unwrap_or_default().trim_ascii();
    let essence = essence.to_ascii_lowercase();
    essence.starts_with(b"text/") && (essence.ends_with(b"ml") || essence == b"text/css")
        || essence == b"application/xhtml+xml"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_markup() {
        for (value, expected) in [
            ("text/html", true),
            ("Text/HTML; charset=utf-8", true),
            ("text/css", true),
            ("text/plain", false),
            ("image/png", false),
            ("application/xhtml+xml", true),
        ] {
            assert_eq!(is_markup(value.as_bytes()), expected, "{value}");
        }
    }
}
