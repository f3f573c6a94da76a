//! Contents that the catalog of a test can generate, so that a simulated device need not keep them.

use std::sync::Arc;

use polygraph_cache::{ContentGenerator, GeneratedContent};
use polygraph_traffic::{Body, Catalog, Oid};

/// The content of an object of the catalog.
#[derive(Debug)]
struct CatalogContent {
    catalog: Arc<Catalog>,
    oid: Oid,
    size: u64,
}

impl GeneratedContent for CatalogContent {
    fn size(&self) -> u64 {
        self.size
    }

    fn body(&self) -> Body {
        self.catalog.body(&self.oid, b"")
    }
}

/// Recognizes the contents of `catalog` by the paths of their URLs, and compares every byte.
pub fn generator(catalog: Catalog) -> Box<ContentGenerator> {
    let catalog = Arc::new(catalog);
    Box::new(move |path, bytes| {
        let oid = polygraph_wire::url::parse(path)?;
        let content = CatalogContent { catalog: Arc::clone(&catalog), oid, size: bytes.len() as u64 };
        if is_equal(content.body(), bytes) { Some(Arc::new(content)) } else { None }
    })
}

fn is_equal(mut body: Body, mut bytes: &[u8]) -> bool {
    if body.len() != bytes.len() as u64 {
        return false;
    }
    while !body.is_empty() {
        let chunk = body.chunk();
        let (first, rest) = bytes.split_at(chunk.len());
        if first != chunk {
            return false;
        }
        bytes = rest;
        body.advance(first.len() as u64);
    }
    true
}
