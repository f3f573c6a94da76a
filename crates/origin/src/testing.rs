//! What tests of this crate share.

use std::sync::Arc;

use polygraph_traffic::{Catalog, Content, Distr, Kind, Seed, UniqId};

use crate::settings::{Farm, House};

/// The standard path of object 500 of the first content type.
pub const PATH: &str = "/w12345678.00abcdef:0000002a/t03/_00000000000001f4";

/// A house with one farm that serves all of `contents`.
pub fn house(contents: Vec<Content>) -> House {
    let kinds = (0..contents.len()).map(Kind::of_index).collect();
    House {
        catalog: Arc::new(Catalog { seed: Seed(1), contents }),
        farms: vec![Farm::plain("test", kinds)],
        seed: Seed(1),
        group: UniqId { time: 7, mix: 7, counter: 8 },
        classic: false,
        ignore_urls: false,
        accept_foreign_msgs: false,
        share_worlds: false,
    }
}

/// A house of generation 1.x whose objects have `size` bytes; kind 3 is cachable, kind 4 is not.
pub fn classic(size: f64) -> House {
    let catalog = Catalog::classic(Seed(1), Distr::Const(size));
    House { classic: true, ..house(catalog.contents) }
}
