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

/// The contents of `catalog`, recognized by the paths of their URLs.
pub fn generator(catalog: Catalog) -> Box<ContentGenerator> {
    let catalog = Arc::new(catalog);
    Box::new(move |path| {
        let oid = polygraph_wire::url::parse(path)?;
        Some(Arc::new(CatalogContent { catalog: Arc::clone(&catalog), oid, size: catalog.size(&oid) }))
    })
}
