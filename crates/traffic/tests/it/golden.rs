//! The whole catalog in one number: whoever changes what a seed means has to notice.

use polygraph_traffic::content::{BodySource, Injected, Injection};
use polygraph_traffic::files::{File, Files};
use polygraph_traffic::{Catalog, ContentKind, Distr, Oid};
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

use crate::standard::{catalog, world};

/// Everything that both sides compute, over 5 or 6 types, 3 worlds and 200 names.
fn hash(catalog: &Catalog) -> u64 {
    let mut all = Xxh3::new();
    for kind in 0..catalog.contents.len() {
        for (world, name) in (1..=3).flat_map(|w| (1..=200).map(move |name| (world(w), name))) {
            let oid = Oid { world, kind: ContentKind::of_index(kind), name };
            let mut bytes = Vec::new();
            catalog.write_path(&oid, &mut bytes);
            let size = catalog.size(&oid);
            let flags = u64::from(catalog.cachable(&oid)) + 2 * u64::from(catalog.has_checksum(&oid));
            bytes.extend([size, flags].map(u64::to_le_bytes).concat());
            if let Some(times) = catalog.times(&oid, 1_800_000_000) {
                let numbers = [times.lmt, times.nmt, times.expires.unwrap_or(-1), times.shows_lmt.into()];
                bytes.extend(numbers.map(i64::to_le_bytes).concat());
            }
            catalog.embedded(&oid).for_each(|embedded| catalog.write_path(&embedded, &mut bytes));
            let mut body = catalog.body(&oid, b"http://host/path");
            body.truncate(20_000);
            all.update(&bytes);
            all.update(&body.to_vec());
        }
    }
    all.digest()
}

#[test]
fn the_same_seed_gives_the_same_catalog() {
    let mut catalog = catalog();
    catalog.contents[3].unique = Some(0.5);
    let file = |text: &str| File { name: text.replace(' ', "-"), bytes: text.repeat(50).into_bytes() };
    let files = Arc::new(Files(["some text", "<p>more text</p>", "x"].map(file).into()));
    let mut database = catalog.contents[1].clone();
    database.source = BodySource::Database(Arc::clone(&files));
    let gap = Distr::Exp { mean: 200.0 };
    database.injection = Some(Injection { prob: 0.5, what: Injected::Texts { texts: files, gap } });
    catalog.contents.push(database);
    assert_eq!(hash(&catalog), hash(&catalog.clone()));
    let mut other = catalog.clone();
    other.seed.0 += 1;
    assert_ne!(hash(&catalog), hash(&other));
    // A change here is a change of every result with a given seed: say so in the release notes.
    assert_eq!(hash(&catalog), 7_048_328_538_842_626_645);
}
