//! Text that is inserted into bodies, for filters and virus scanners (reference: models.md, section 5.2).

use crate::body::Body;
use crate::content::{Catalog, Injected};
use crate::object::Oid;

/// The body of `oid` with what its content type injects; its size stays as it is.
pub fn inject(body: Body, catalog: &Catalog, oid: &Oid, url: &[u8]) -> Body {
    let Some((injection, mut rng)) = catalog.injection(oid) else { return body };
    let mut bytes = body.to_vec();
    match &injection.what {
        Injected::RequestUri => {
            let at = bytes.len().saturating_sub(url.len());
            let room = bytes.len() - at;
            bytes[at..].copy_from_slice(&url[url.len() - room..]);
        }
        Injected::Texts { texts, gap } => {
            let mut at = 0usize;
            loop {
                at = at.saturating_add(gap.sample(&mut rng).max(1.0) as usize);
                let Some(text) = texts.of_name(1 + crate::rng::Random::below(&mut rng, texts.0.len() as u64))
                else {
                    break;
                };
                // Between tags, never inside one: a tag that is open here ends first.
                let inside = |at: usize| {
                    let before = &bytes[..at.min(bytes.len())];
                    before.iter().rposition(|&b| b == b'<') > before.iter().rposition(|&b| b == b'>')
                };
                while at < bytes.len() && inside(at) {
                    at += 1;
                }
                let end = at + text.bytes.len();
                if end > bytes.len() || bytes[at..end].contains(&b'<') {
                    break;
                }
                bytes[at..end].copy_from_slice(&text.bytes);
                at = end;
            }
        }
    }
    Body::from_bytes(bytes)
}
