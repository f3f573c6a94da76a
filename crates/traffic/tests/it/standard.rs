//! The content types of the standard workloads (`docs/reference/workloads.md`, "Content types").

use polygraph_traffic::content::Embeds;
use polygraph_traffic::life::{Expiry, ExpiryBase, LifeCycle};
use polygraph_traffic::{Catalog, Content, ContentKind, Distr, Oid, Seed, Selector, UniqId};

pub const IMAGE: ContentKind = ContentKind(3);
pub const PAGE: ContentKind = ContentKind(4);
pub const DOWNLOAD: ContentKind = ContentKind(5);
pub const OTHER: ContentKind = ContentKind(6);
pub const REQUEST: ContentKind = ContentKind(7);

pub const KB: f64 = 1024.0;
pub const DAY: f64 = 86_400.0;
pub const YEAR: f64 = 365.0 * DAY;

pub fn world(counter: u32) -> UniqId {
    UniqId { time: 1, mix: 2, counter: counter * 2 }
}

pub fn oid(kind: ContentKind, name: u64) -> Oid {
    Oid { world: world(5), kind, name }
}

/// Changes as a share `variance` of its cycle wants; expires when it changes.
pub fn life(length: Distr, variance: f64) -> LifeCycle {
    let expires = Selector::only(Expiry { base: ExpiryBase::Nmt, gap: Distr::Const(0.0) });
    LifeCycle { length, variance, with_lmt: 1.0, expires }
}

pub fn catalog() -> Catalog {
    let words =
        |pairs: &[(&str, f64)]| Selector::weighted(pairs.iter().map(|&(word, p)| (word.to_owned(), p)));
    let image = Content {
        checksum: 0.01,
        extensions: words(&[(".gif", 1.0), (".jpeg", 1.0), (".png", 1.0)]),
        life: Some(life(Distr::logn(30.0 * DAY, 7.0 * DAY), 0.5)),
        ..Content::plain("image", Distr::Exp { mean: 4.5 * KB }, 0.8)
    };
    let page = Content {
        checksum: 0.01,
        extensions: words(&[(".html", 0.6), (".htm", 0.4)]),
        life: Some(life(Distr::logn(7.0 * DAY, DAY), 0.33)),
        embeds: Some(Embeds { kinds: Selector::only(IMAGE), count: Distr::Zipf { n: 13 } }),
        ..Content::plain("HTML", Distr::Exp { mean: 8.5 * KB }, 0.9)
    };
    let download = Content {
        checksum: 0.0001,
        extensions: words(&[(".exe", 0.4), (".zip", 0.3), (".gz", 0.3)]),
        life: Some(life(Distr::logn(YEAR / 2.0, 30.0 * DAY), 0.33)),
        ..Content::plain("download", Distr::logn(300.0 * KB, 300.0 * KB), 0.95)
    };
    let other = Content {
        checksum: 0.001,
        life: Some(life(Distr::Unif { min: DAY, max: YEAR }, 0.5)),
        ..Content::plain("other", Distr::logn(25.0 * KB, 10.0 * KB), 0.72)
    };
    let request = Content::plain("simple request", Distr::Unif { min: 0.0, max: 8.0 * KB }, 0.0);
    Catalog { seed: Seed(1), contents: vec![image, page, download, other, request] }
}
