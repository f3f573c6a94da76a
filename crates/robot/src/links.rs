//! Links to embedded objects in the content of replies (reference: models.md, section 9.2).

use std::rc::Rc;

use polygraph_traffic::Catalog;
use polygraph_wire::markup::{Found, MarkupError, Scanner, Tags};
use polygraph_wire::raw_uris::UriScanner;

use crate::order::Order;

/// Links found in one reply.
#[derive(Debug)]
pub struct Links {
    tags: Rc<Tags>,
    /// Replies of servers whose name begins so are searched for any URI.
    raw: Option<Rc<str>>,
    scanner: Scanner,
    uris: Option<UriScanner>,
    /// References that nobody has taken yet.
    pub found: Vec<Vec<u8>>,
    /// What is wrong with the markup.
    pub faults: Vec<MarkupError>,
}

impl Links {
    /// Looks for the values of `tags`, and for any URI in replies of servers whose name begins with `raw`.
    pub fn new(tags: Rc<Tags>, raw: Option<Rc<str>>) -> Links {
        Links { tags, raw, scanner: Scanner::default(), uris: None, found: Vec::new(), faults: Vec::new() }
    }

    /// True if the reply may contain links: it is markup or style by its type, or without a type by its URL,
    /// or its content type is a container.
    pub fn concern(
        &mut self,
        catalog: &Catalog,
        order: &Order,
        content_type: Option<&[u8]>,
        server: Option<&[u8]>,
    ) -> bool {
        let container = catalog.content(order.oid.kind).is_some_and(|content| content.embeds.is_some());
        let markup = match content_type {
            Some(value) => is_markup(value),
            None => order.foreign.as_deref().is_some_and(|url| url.ends_with('/') || url.ends_with("ml")),
        };
        let thrower = self
            .raw
            .as_deref()
            .is_some_and(|raw| raw == "*" || server.is_some_and(|server| server.starts_with(raw.as_bytes())));
        if thrower && markup {
            self.uris = Some(UriScanner::default());
        }
        container || markup
    }

    /// Takes the next bytes of the content.
    pub fn take(&mut self, bytes: &[u8]) {
        let Links { tags, scanner, found, faults, uris, .. } = self;
        match uris {
            Some(uris) => uris.feed(bytes, |uri| found.push(uri.to_vec())),
            None => scanner.feed(tags, bytes, |item| sort(item, found, faults)),
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
