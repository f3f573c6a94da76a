//! Shares of properties among objects.

use polygraph_traffic::{AbortCoords, Seed, Selector};

use crate::standard::{DOWNLOAD, IMAGE, OTHER, PAGE, catalog, oid, world};
use crate::stat::{assert_counts, assert_follows, assert_mean, assert_share};

#[test]
fn cachable_shares_of_direct_and_embedded_objects() {
    // 20,000 names in one world: even spreading makes the share exact within 0.1 points (independent draws would
    // have a standard error of 0.3).
    let catalog = catalog();
    for (kind, share) in [(IMAGE, 0.8), (PAGE, 0.9), (DOWNLOAD, 0.95), (OTHER, 0.72)] {
        let found = (1..=20_000).filter(|&name| catalog.cachable(&oid(kind, name))).count();
        assert!((found as f64 / 20_000.0 - share).abs() < 0.001, "{kind:?}: {found}");
    }
    // About 43,000 images in 10,000 pages; five standard errors of independent draws.
    let images: Vec<_> = (1..=10_000).flat_map(|name| catalog.embedded(&oid(PAGE, name))).collect();
    let cachable = images.iter().filter(|oid| catalog.cachable(oid)).count();
    assert_share(cachable, images.len(), 0.8, "embedded");
    // Pages and what is in them are not cachable together.
    let both = |name: &u64| {
        let page = oid(PAGE, *name);
        catalog.cachable(&page)
            && catalog.embedded(&page).next().is_some_and(|image| catalog.cachable(&image))
    };
    assert_share((1..=10_000).filter(both).count(), 10_000, 0.9 * 0.8, "pages with their first image");
}

#[test]
fn embedded_counts_follow_zipf() {
    // 20,000 pages; zipf(13) has a mean of 4.3.
    let catalog = catalog();
    let counts: Vec<f64> = (1..=20_000).map(|name| catalog.embedded_count(&oid(PAGE, name)) as f64).collect();
    let share = |k: usize| (1.0 + 1.0 / k as f64).ln() / 14f64.ln();
    assert_mean(&counts, (1..=13).map(|k| k as f64 * share(k)).sum(), "embedded count");
    let cells: Vec<usize> = (1..=13).map(|k| counts.iter().filter(|&&c| c == k as f64).count()).collect();
    assert_eq!(cells.iter().sum::<usize>(), 20_000);
    assert_counts(&cells, &(1..=13).map(share).collect::<Vec<_>>(), "embedded count");
    // Types are drawn one by one.
    let mut mixed = catalog;
    mixed.contents[1].embeds.as_mut().unwrap().kinds = Selector::weighted([(IMAGE, 0.7), (OTHER, 0.3)]);
    let kinds: Vec<_> = (1..=10_000).flat_map(|name| mixed.embedded(&oid(PAGE, name))).collect();
    assert_share(kinds.iter().filter(|oid| oid.kind == OTHER).count(), kinds.len(), 0.3, "embedded kind");
}

#[test]
fn checksums_and_marks_have_their_shares() {
    // 100,000 objects.
    let n = 100_000;
    let mut catalog = catalog();
    for (kind, share) in [(IMAGE, 0.01), (OTHER, 0.001), (DOWNLOAD, 0.0001)] {
        let found = (1..=n).filter(|&name| catalog.has_checksum(&oid(kind, name))).count();
        assert_share(found, n as usize, share, "checksum");
    }
    catalog.contents[0].unique = Some(0.3);
    let marked = |name: &u64| catalog.is_marked(&oid(IMAGE, *name), &catalog.contents[0]);
    assert_share((1..=n).filter(marked).count(), n as usize, 0.3, "unique");
    // Unique bodies name their object, all others are one.
    let common = (1..=n).find(|name| !marked(name)).map(|name| catalog.body(&oid(IMAGE, name), b"").to_vec());
    for name in 1..=500 {
        let body = catalog.body(&oid(IMAGE, name), b"").to_vec();
        assert_eq!(body.len() as u64, catalog.size(&oid(IMAGE, name)));
        match marked(&name) {
            true => assert!(body.starts_with(format!("http:1:{}:03:{name:016x}\n", world(5)).as_bytes())),
            false => assert_eq!(Some(body), common),
        }
    }
}

#[test]
fn affixes_have_their_shares_and_paths_repeat() {
    let mut catalog = catalog();
    catalog.contents[0].prefixes = Selector::weighted([("cgi/".to_owned(), 0.1), (String::new(), 0.9)]);
    let n = 30_000;
    let affixes = |kind| (1..=n as u64).map(move |name| oid(kind, name));
    for (kind, shares) in [
        (IMAGE, vec![(".gif", 1.0 / 3.0), (".jpeg", 1.0 / 3.0), (".png", 1.0 / 3.0)]),
        (PAGE, vec![(".html", 0.6), (".htm", 0.4)]),
        (DOWNLOAD, vec![(".exe", 0.4), (".zip", 0.3), (".gz", 0.3)]),
        (OTHER, vec![("", 1.0)]),
    ] {
        for (extension, share) in shares {
            let found = affixes(kind).filter(|oid| catalog.affixes(oid).1 == extension).count();
            assert_share(found, n, share, extension);
        }
    }
    assert_share(affixes(IMAGE).filter(|oid| catalog.affixes(oid).0 == "cgi/").count(), n, 0.1, "prefix");
    let path = |name| {
        let mut out = Vec::new();
        catalog.write_path(&oid(IMAGE, name), &mut out);
        String::from_utf8(out).unwrap()
    };
    for name in 1..100 {
        let (prefix, extension) = catalog.affixes(&oid(IMAGE, name));
        let standard = String::from_utf8(oid(IMAGE, name).path().to_vec()).unwrap();
        assert_eq!(path(name), format!("/{prefix}{}{extension}", &standard[1..]));
        assert_eq!(path(name), path(name));
    }
}

#[test]
fn aborts_have_their_share_and_are_anywhere() {
    // 100,000 messages of 10,000 bytes, a tenth cut, uniformly over the body.
    let mut rng = Seed(41).stream("abort", 0);
    let (n, size) = (100_000, 10_000u64);
    let mut cuts: Vec<f64> =
        (0..n).filter_map(|_| Some(AbortCoords::draw(0.1, &mut rng).cut(size)? as f64 + 1.0)).collect();
    assert_share(cuts.len(), n, 0.1, "abort");
    assert_follows(&mut cuts, |x| x / size as f64, "place of the cut");
}
