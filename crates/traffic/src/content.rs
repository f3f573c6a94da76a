//! Content types: how object ids turn into properties (reference: models.md, section 5).

use std::sync::Arc;

use crate::distr::Distr;
use crate::files::{File, Files};
use crate::headers::HeaderRule;
use crate::id::{ID_TEXT_LEN, UniqId};
use crate::life::{LifeCycle, Times};
use crate::object::{ContentKind, Oid};
use crate::request::BehaviorChange;
use crate::rng::{Draw, Random, Seed, mix};
use crate::selector::Selector;

/// What bodies are made of.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum BodySource {
    /// Printable text without markup.
    #[default]
    Text,
    /// Bytes that do not compress.
    Data,
    /// Real content: entries one after the other, from one on that belongs to the object, again from the first.
    Database(Arc<Files>),
    /// The files of a directory, again and again if the size wants more; the path of a URL is the name of the file.
    Root(Arc<Files>),
}

/// The objects inside a container.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Embeds {
    /// Their content types.
    pub kinds: Selector<ContentKind>,
    /// How many there are in a container; draws are truncated.
    pub count: Distr,
}

/// Codings that servers offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Encodings {
    /// The body as it is.
    pub identity: bool,
    /// Compressed (RFC 1952).
    pub gzip: bool,
}

impl Encodings {
    /// Only the body as it is.
    pub const IDENTITY: Encodings = Encodings { identity: true, gzip: false };

    /// Bodies of requests are compressed: nobody was asked what the server takes, so only what has no other form is.
    pub fn compresses_requests(self) -> bool {
        self.gzip && !self.identity
    }

    /// Replies depend on what the request accepts.
    pub fn varies(self) -> bool {
        self.identity && self.gzip
    }
}

/// Text that is inserted into bodies.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Injection {
    /// Share of objects that are injected (0 to 1).
    pub prob: f64,
    /// What is inserted.
    pub what: Injected,
}

/// What is inserted into bodies.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Injected {
    /// Entries of a text database, `gap` bytes apart.
    Texts {
        /// The entries.
        texts: Arc<Files>,
        /// Distances between insertions in bytes.
        gap: Distr,
    },
    /// The URL of the request, at the end.
    RequestUri,
}

/// A content type.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Content {
    /// Label.
    pub name: String,
    /// Size of bodies in bytes; `None`: as the source has it.
    pub size: Option<Distr>,
    /// Share of cachable objects (0 to 1).
    pub cachable: f64,
    /// Share of objects whose replies carry `Content-MD5` (0 to 1).
    pub checksum: f64,
    /// Share of objects whose bodies are marked as unique (0 to 1), all others being the same; `None`: bodies
    /// differ by chance.
    pub unique: Option<f64>,
    /// What bodies are made of.
    pub source: BodySource,
    /// Modification and expiration; `None`: replies have no such times.
    pub life: Option<LifeCycle>,
    /// Embedded objects, if this is a container.
    pub embeds: Option<Embeds>,
    /// `Content-Type`.
    pub mime_type: Option<String>,
    /// Beginnings of paths.
    pub prefixes: Selector<String>,
    /// Endings of paths.
    pub extensions: Selector<String>,
    /// Codings on offer.
    pub encodings: Encodings,
    /// Text insertion.
    pub injection: Option<Injection>,
    /// Further header fields of messages with this content.
    pub headers: Vec<HeaderRule>,
    /// What robots do differently with this content.
    pub behavior: Option<BehaviorChange>,
}

impl Content {
    /// A content type with nothing but sizes and a share of cachable objects.
    pub fn plain(name: &str, size: Distr, cachable: f64) -> Content {
        Content {
            name: name.to_owned(),
            size: Some(size),
            cachable,
            checksum: 0.0,
            unique: None,
            source: BodySource::Text,
            life: None,
            embeds: None,
            mime_type: None,
            prefixes: Selector::default(),
            extensions: Selector::default(),
            encodings: Encodings::IDENTITY,
            injection: None,
            headers: Vec::new(),
            behavior: None,
        }
    }
}

/// The property constants: each property of an object has a draw of its own.
mod property {
    pub const SIZE: u64 = 1;
    pub const CACHABLE: u64 = 2;
    pub const BODY: u64 = 3;
    pub const CHECKSUM: u64 = 4;
    pub const UNIQUE: u64 = 5;
    pub const LIFE: u64 = 6;
    pub const PREFIX: u64 = 7;
    pub const EXTENSION: u64 = 8;
    pub const EMBED_COUNT: u64 = 9;
    pub const EMBED_KIND: u64 = 10;
    pub const INJECT: u64 = 11;
    pub const COOKIES: u64 = 12;
    pub const ENTRY: u64 = 13;
}

/// No body is larger: keeps sizes within what every HTTP implementation accepts.
pub const MAX_BODY: f64 = (i32::MAX - 100 * 1024) as f64;

/// Objects in one container, at most: their names must differ in the last byte.
pub const MAX_EMBEDDED: u64 = 255;

/// The content types of a workload; equal on both sides of a test.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Catalog {
    /// The seed that all processes of the test share.
    pub seed: Seed,
    /// In order of configuration: kind 3 is the first.
    pub contents: Vec<Content>,
}

impl Catalog {
    /// The content types of generation 1.x, whose command lines tell only the *client* the share of cachable
    /// replies and only the *server* their sizes. There the client marks cachability in the object id: the
    /// first kind is cachable, the second is not, and both have the same sizes.
    pub fn classic(seed: Seed, size: Distr) -> Catalog {
        let content = |name, cachable| Content::plain(name, size.clone(), cachable);
        Catalog { seed, contents: vec![content("cachable", 1.0), content("uncachable", 0.0)] }
    }

    /// The kind of object number `name` of `world` in a classic test where a share `cachable` is cachable.
    pub fn classic_kind(&self, world: UniqId, name: u64, cachable: f64) -> ContentKind {
        ContentKind::of_index(usize::from(
            !self.is_spread(&Oid { world, kind: ContentKind::FIRST, name }, cachable),
        ))
    }

    /// The content type of an object, `None` for kinds that the workload has not.
    pub fn content(&self, kind: ContentKind) -> Option<&Content> {
        self.contents.get(kind.index()?)
    }

    fn draw(&self, hash: u64, property: u64) -> Draw {
        Draw::new(hash ^ mix(self.seed.0 ^ (property << 56)))
    }

    /// The number that decides size and body: objects of one type that are not unique share it.
    fn content_hash(&self, oid: &Oid, content: &Content) -> u64 {
        match content.unique {
            Some(_) if !self.is_marked(oid, content) => mix(u64::from(oid.kind.0)),
            _ => oid.hash(),
        }
    }

    /// The body begins with a mark that no other body has.
    pub fn is_marked(&self, oid: &Oid, content: &Content) -> bool {
        content.unique.is_some_and(|share| self.draw(oid.hash(), property::UNIQUE).event(share))
    }

    /// True for a share `share` of all names, spread evenly.
    ///
    /// The multiples of the golden ratio, shifted by a number that belongs to the world, fill the unit interval
    /// with the least possible gaps (Weyl's sequence), so the share is right in every stretch of names.
    /// Independent draws would let the few old objects that gather most repeats shift the offered hit ratio of
    /// a short run by a point or more.
    fn is_spread(&self, oid: &Oid, share: f64) -> bool {
        const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
        let shift = self.draw(Oid { name: 0, ..*oid }.hash(), property::CACHABLE).bits();
        let place = oid.name.wrapping_mul(GOLDEN).wrapping_add(shift) >> 11;
        (place as f64) < share * (1u64 << 53) as f64
    }

    /// Body size in bytes: at least 1, and no less than the mark of content with `unique`. 0 if the kind is
    /// unknown or the file empty.
    pub fn size(&self, oid: &Oid) -> u64 {
        let Some(content) = self.content(oid.kind) else { return 0 };
        let Some(size) = &content.size else {
            return self.file(oid).map_or(0, |file| file.bytes.len() as u64);
        };
        let (hash, index, least) = match content.unique {
            None => (oid.hash(), Self::index(oid), 1),
            Some(_) => {
                let marked = self.is_marked(oid, content);
                let index = if marked { Self::index(oid) } else { 0 };
                (self.content_hash(oid, content), index, mark_len(marked))
            }
        };
        let drawn = size.sample_at(index, &mut self.draw(hash, property::SIZE));
        (drawn.ceil().min(MAX_BODY) as u64).max(least)
    }

    /// Position of an object among all draws for objects of its type.
    fn index(oid: &Oid) -> u64 {
        oid.name.saturating_sub(1)
    }

    /// Position of the object's file in its directory, or of the first entry of its body in the database.
    pub fn entry(&self, oid: &Oid) -> Option<usize> {
        let content = self.content(oid.kind)?;
        match &content.source {
            BodySource::Text | BodySource::Data => None,
            BodySource::Root(files) => files.index_of(oid.name),
            BodySource::Database(files) if files.0.is_empty() => None,
            BodySource::Database(files) => {
                let mut rng = self.draw(self.content_hash(oid, content), property::ENTRY);
                Some(rng.below(files.0.len() as u64) as usize)
            }
        }
    }

    fn file(&self, oid: &Oid) -> Option<&File> {
        match &self.content(oid.kind)?.source {
            BodySource::Text | BodySource::Data => None,
            BodySource::Root(files) | BodySource::Database(files) => files.0.get(self.entry(oid)?),
        }
    }

    /// Whether caches may store the object.
    pub fn cachable(&self, oid: &Oid) -> bool {
        match self.content(oid.kind).map(|content| content.cachable) {
            Some(share) if share >= 1.0 => true,
            Some(share) if share > 0.0 => self.is_spread(oid, share),
            _ => false,
        }
    }

    /// Whether replies carry a digest of the body.
    pub fn has_checksum(&self, oid: &Oid) -> bool {
        let share = self.content(oid.kind).map_or(0.0, |content| content.checksum);
        share > 0.0 && self.draw(oid.hash(), property::CHECKSUM).event(share)
    }

    /// Modification and expiration at `now` (seconds since 1970), if the content type has a life cycle.
    pub fn times(&self, oid: &Oid, now: i64) -> Option<Times> {
        let life = self.content(oid.kind)?.life.as_ref()?;
        Some(life.times(self.draw(oid.hash(), property::LIFE).bits(), now))
    }

    /// What stands before and after the standard path of the object.
    pub fn affixes(&self, oid: &Oid) -> (&str, &str) {
        let Some(content) = self.content(oid.kind) else { return ("", "") };
        let pick =
            |words: &'_ Selector<String>, property| words.draw_index(&mut self.draw(oid.hash(), property));
        let prefix = pick(&content.prefixes, property::PREFIX);
        let extension = pick(&content.extensions, property::EXTENSION);
        (
            prefix.map_or("", |at| content.prefixes.items()[at].as_str()),
            extension.map_or("", |at| content.extensions.items()[at].as_str()),
        )
    }

    /// Appends the path of the object's URL.
    pub fn write_path(&self, oid: &Oid, out: &mut Vec<u8>) {
        if let Some(BodySource::Root(files)) = self.content(oid.kind).map(|content| &content.source)
            && let Some(file) = files.of_name(oid.name)
        {
            out.push(b'/');
            out.extend_from_slice(file.name.as_bytes());
            return;
        }
        let (prefix, extension) = self.affixes(oid);
        let path = oid.path();
        if prefix.is_empty() {
            out.extend_from_slice(&path);
        } else {
            out.push(b'/');
            out.extend_from_slice(prefix.trim_start_matches('/').as_bytes());
            out.extend_from_slice(&path[1..]);
        }
        out.extend_from_slice(extension.as_bytes());
    }

    /// The object whose body is the file that a path names, without its query, if it belongs to one of `kinds`: to the
    /// first that has such a file. All worlds share the files.
    pub fn file_at(&self, path: &[u8], kinds: impl IntoIterator<Item = ContentKind>) -> Option<Oid> {
        let path = path.split(|&b| b == b'?').next()?;
        let name = std::str::from_utf8(path.strip_prefix(b"/")?).ok()?;
        kinds.into_iter().find_map(|kind| {
            let BodySource::Root(files) = &self.content(kind)?.source else { return None };
            Some(Oid { world: UniqId::default(), kind, name: files.find(name)? as u64 + 1 })
        })
    }

    /// Number of objects embedded in a container.
    pub fn embedded_count(&self, oid: &Oid) -> u64 {
        let Some(content) = self.content(oid.kind) else { return 0 };
        let Some(embeds) = &content.embeds else { return 0 };
        let hash = self.content_hash(oid, content);
        let index = if hash == oid.hash() { Self::index(oid) } else { 0 };
        let drawn = embeds.count.sample_at(index, &mut self.draw(hash, property::EMBED_COUNT));
        (drawn as u64).min(MAX_EMBEDDED)
    }

    /// The objects embedded in a container, in their order.
    pub fn embedded<'a>(&'a self, container: &Oid) -> impl Iterator<Item = Oid> + use<'a> {
        self.first_embedded(container, self.embedded_count(container))
    }

    /// The first `count` objects embedded in a container.
    pub(crate) fn first_embedded<'a>(
        &'a self,
        container: &Oid,
        count: u64,
    ) -> impl Iterator<Item = Oid> + use<'a> {
        let embeds = self.content(container.kind).and_then(|content| content.embeds.as_ref());
        let (world, name, hash) = (container.world.mutant(), container.name << 8, container.hash());
        (1..=count).filter_map(move |index| {
            let mut rng = self.draw(hash ^ mix(index), property::EMBED_KIND);
            let kind = *embeds?.kinds.draw(&mut rng)?;
            Some(Oid { world, kind, name: name | index })
        })
    }

    /// Where in the filler the object's body starts, below `modulus`.
    pub fn body_offset(&self, oid: &Oid, modulus: usize) -> usize {
        let hash = self.content(oid.kind).map_or(0, |content| self.content_hash(oid, content));
        self.draw(hash, property::BODY).below(modulus as u64) as usize
    }

    /// Draws for the insertion of text, or `None` if the object is not injected.
    pub fn injection(&self, oid: &Oid) -> Option<(&Injection, Draw)> {
        let injection = self.content(oid.kind)?.injection.as_ref()?;
        let mut rng = self.draw(oid.hash(), property::INJECT);
        rng.event(injection.prob).then_some((injection, rng))
    }

    /// Draws for the cookies of replies to the object.
    pub fn cookie_draws(&self, oid: &Oid) -> Draw {
        self.draw(oid.hash(), property::COOKIES)
    }
}

/// Lengths of the marks of unique and of common bodies.
const UNIQUE_MARK: u64 = 7 + ID_TEXT_LEN as u64 + 1 + 2 + 1 + 16 + 1;
const COMMON_MARK: u64 = 26;

/// Length of the beginning that bodies of content with `unique` cannot do without.
pub(crate) fn mark_len(unique: bool) -> u64 {
    if unique { UNIQUE_MARK } else { COMMON_MARK }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::IdSource;

    fn catalog() -> Catalog {
        Catalog::classic(Seed(1), Distr::Exp { mean: 13.0 * 1024.0 })
    }

    #[test]
    fn sizes_follow_the_distribution_and_repeat() {
        let world = IdSource::unique(1_800_000_000, 1, 1, 1).fresh();
        let n = 100_000u64;
        let oid = |name| Oid { world, kind: ContentKind::FIRST, name };
        let mut sizes: Vec<u64> = (1..=n).map(|name| catalog().size(&oid(name))).collect();
        assert_eq!(catalog().size(&oid(77)), sizes[76]);
        let mean = sizes.iter().sum::<u64>() as f64 / n as f64;
        sizes.sort_unstable();
        // Reference values of PolyMix-1: mean 13,312 and median 9,227 bytes; five standard errors.
        assert!((mean - 13_312.5).abs() < 5.0 * 13_312.0 / (n as f64).sqrt(), "mean {mean}");
        let median = sizes[n as usize / 2] as f64;
        assert!((median - 9_227.0).abs() < 5.0 * 13_312.0 / (n as f64).sqrt(), "median {median}");
    }

    #[test]
    fn cachable_share_is_as_asked_in_every_stretch_of_names() {
        let mut ids = IdSource::unique(1_800_000_000, 1, 2, 2);
        let cachable = |world, name, share| catalog().classic_kind(world, name, share) == ContentKind::FIRST;
        for _ in 0..20 {
            let world = ids.fresh();
            for (from, to) in [(1u64, 100u64), (500, 700), (10_000, 20_000)] {
                let found = (from..to).filter(|&name| cachable(world, name, 0.8)).count();
                let off = found as f64 - 0.8 * (to - from) as f64;
                assert!(off.abs() < 5.0, "names {from} to {to}: {found}");
            }
        }
        let world = ids.fresh();
        assert!((1..1000).all(|name| cachable(world, name, 1.0)));
        assert!((1..1000).all(|name| !cachable(world, name, 0.0)));
    }

    #[test]
    fn kind_does_not_change_the_size_of_classic_objects() {
        let world = UniqId { time: 1, mix: 2, counter: 2 };
        let size = |index| catalog().size(&Oid { world, kind: ContentKind::of_index(index), name: 5 });
        assert_eq!(size(0), size(1));
    }
}
