//! Working sets in files: a later test continues with the objects that caches already have
//! (`docs/reference/models.md`, "Working set files").
//!
//! ```text
//! file = "polygraph working set" LF version(u8) LF length(u32 LE) crc32(u32 LE) payload(postcard)
//! ```
//!
//! Length and checksum are those of the payload. The caller reads and writes the files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::content::Catalog;
use crate::id::{IdSource, UniqId};
use crate::object::ContentKind;
use crate::rng::Seed;
use crate::selector::Selector;
use crate::world::{Galaxy, World, WorldFacts};

const SIGNATURE: &[u8] = b"polygraph working set\n";
/// Version of the format. A reader accepts files of its own version only.
pub const VERSION: u8 = 1;
/// Offset of the payload.
const HEAD: usize = SIGNATURE.len() + 2 + 8;

/// Why a working set cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The bytes do not start like a working set.
    #[error("this is not a polygraph working set")]
    Foreign,
    /// The file has another version of the format.
    #[error(
        "the working set has format {found}, this program reads {VERSION}; use the version that stored it"
    )]
    Version {
        /// Version of the file.
        found: u8,
    },
    /// Bytes are missing at the end.
    #[error("the working set is truncated: {found} of {expected} bytes exist; store it again")]
    Truncated {
        /// The number of bytes in the file.
        found: usize,
        /// The number of bytes that the file should have.
        expected: usize,
    },
    /// The checksum is wrong or the content is invalid.
    #[error("the working set is damaged; store it again")]
    Damaged,
    /// The working set was stored under another configuration.
    #[error("the working set belongs to another workload: {0}")]
    Configuration(String),
}

/// The amount of data filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Fill {
    /// Number of fills.
    pub count: u64,
    /// Bytes of fills.
    pub bytes: u64,
}

/// Galaxies by the name of their visible server.
pub type Galaxies = Vec<(String, Galaxy)>;

/// The part of a working set that one loop of a client owns. Once stored, objects whose first reply was still
/// on its way are repeatable: the reply has arrived by the time the file is read.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedShare {
    /// The source of new ids; a later test continues it, so that new ids differ from the stored ones.
    pub ids: IdSource,
    /// Galaxies of the loop. There may be several of a server; new objects are created in the first.
    #[serde(with = "galaxies")]
    pub galaxies: Galaxies,
    /// The amount of data filled.
    pub fill: Fill,
}

/// The part of a stored working set that one loop continues with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RestoredShare {
    /// Galaxies that the loop owns from now on. There may be several of a server; new objects are created in
    /// the first.
    #[serde(with = "galaxies")]
    pub own: Galaxies,
    /// Galaxies of other loops, whose objects the loop may request again. It has them only of servers of which
    /// it owns no galaxy.
    #[serde(with = "galaxies")]
    pub known: Galaxies,
}

/// Hashes of the content types that a working set depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fingerprints {
    /// Names and hashes.
    contents: Vec<(String, u64)>,
    /// The content types of the worlds of each galaxy, by kind of server.
    direct: Vec<Vec<ContentKind>>,
}

/// A working set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WorkingSet {
    /// The content types of its objects.
    pub contents: Fingerprints,
    /// The seed that all processes of the test share; it overrides the one of the command line.
    pub global_seed: Seed,
    /// The local seed of the process; it overrides the one of the command line, too.
    pub local_seed: Seed,
    /// The shares in the order of the loops. Shares that were left over when a test had fewer loops come last,
    /// without galaxies.
    pub shares: Vec<SavedShare>,
}

impl WorkingSet {
    /// The bytes of a file that [`WorkingSet::from_bytes`] reads.
    ///
    /// # Panics
    /// Never: all parts have a form in bytes, and four gigabytes of worlds fit into no process.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::from(SIGNATURE);
        out.extend_from_slice(&[VERSION, b'\n']);
        out.extend_from_slice(&[0; 8]);
        let mut out = postcard::to_extend(self, out).expect("the parts have a form in bytes");
        let length = u32::try_from(out.len() - HEAD).expect("a process holds less");
        let crc = crc32fast::hash(&out[HEAD..]);
        out[HEAD - 8..HEAD - 4].copy_from_slice(&length.to_le_bytes());
        out[HEAD - 4..HEAD].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Reads a working set from the bytes of a file.
    ///
    /// # Errors
    /// If the bytes are not a complete working set of this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<WorkingSet, StoreError> {
        let rest = bytes.strip_prefix(SIGNATURE).ok_or(StoreError::Foreign)?;
        match rest.first() {
            Some(&VERSION) | None => {}
            Some(&found) => return Err(StoreError::Version { found }),
        }
        let number = |at: usize| -> Option<usize> {
            let bytes: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
            usize::try_from(u32::from_le_bytes(bytes)).ok()
        };
        let truncated = |expected| StoreError::Truncated { found: bytes.len(), expected };
        let (Some(length), Some(crc)) = (number(HEAD - 8), number(HEAD - 4)) else {
            return Err(truncated(HEAD));
        };
        let expected = HEAD.saturating_add(length);
        let payload = bytes.get(HEAD..expected).ok_or(truncated(expected))?;
        if bytes.len() > expected || crc32fast::hash(payload) as usize != crc {
            return Err(StoreError::Damaged);
        }
        postcard::from_bytes(payload).map_err(|_| StoreError::Damaged)
    }

    /// True if the working set is frozen: only that many of the newest objects are requested again.
    pub fn is_frozen(&self) -> bool {
        let mut galaxies = self.shares.iter().flat_map(|share| &share.galaxies);
        galaxies.any(|(_, galaxy)| galaxy.worlds.iter().any(|world| world.facts().window.is_some()))
    }

    /// The amount of data filled in all tests so far.
    pub fn fill(&self) -> Fill {
        self.shares.iter().fold(Fill::default(), |all, share| Fill {
            count: all.count.saturating_add(share.fill.count),
            bytes: all.bytes.saturating_add(share.fill.bytes),
        })
    }

    /// The working set at the end of a test that continued with this one, whose loops delivered `shares`. It
    /// keeps the amount filled before, and the ids that loops of this one gave out that the later test did not
    /// have.
    #[must_use]
    pub fn followed_by(self, mut shares: Vec<SavedShare>) -> WorkingSet {
        let before = self.fill();
        if let Some(first) = shares.first_mut() {
            first.fill.count = first.fill.count.saturating_add(before.count);
            first.fill.bytes = first.fill.bytes.saturating_add(before.bytes);
        }
        let spare = self.shares.into_iter().skip(shares.len());
        let empty = |share| SavedShare { galaxies: Vec::new(), fill: Fill::default(), ..share };
        shares.extend(spare.map(empty).collect::<Vec<_>>());
        WorkingSet { shares, ..self }
    }

    /// Deals the galaxies to `loops` loops, so that each has one owner and every loop owns or knows one of each
    /// server.
    pub fn deal(&self, loops: usize) -> Vec<RestoredShare> {
        let mut of_servers: BTreeMap<&str, Vec<&Galaxy>> = BTreeMap::new();
        for (name, galaxy) in self.shares.iter().flat_map(|share| &share.galaxies) {
            of_servers.entry(name).or_default().push(galaxy);
        }
        let mut dealt = vec![RestoredShare { own: Vec::new(), known: Vec::new() }; loops];
        for (name, galaxies) in of_servers {
            let named = |galaxy: &&Galaxy| (name.to_owned(), (*galaxy).clone());
            for (at, legacy) in dealt.iter_mut().enumerate() {
                match at < galaxies.len() {
                    true => legacy.own.extend(galaxies.iter().skip(at).step_by(loops).map(named)),
                    false => legacy.known.extend(galaxies.iter().map(named)),
                }
            }
        }
        dealt
    }
}

impl Fingerprints {
    /// The fingerprints of a test whose robots request these kinds directly from servers. Seeds are not part of
    /// them.
    pub fn of(catalog: &Catalog, direct: &[Selector<ContentKind>]) -> Fingerprints {
        let hash = |content| {
            let bytes = postcard::to_extend(content, Vec::new()).unwrap_or_default();
            xxhash_rust::xxh3::xxh3_64(&bytes)
        };
        Fingerprints {
            contents: catalog.contents.iter().map(|content| (content.name.clone(), hash(content))).collect(),
            direct: direct.iter().map(|kinds| kinds.items().to_vec()).collect(),
        }
    }

    /// Checks that a test with the content types `now` can continue with a working set of these.
    ///
    /// # Errors
    /// If the content types differ.
    pub fn agree(&self, now: &Fingerprints) -> Result<(), StoreError> {
        let names = |list: &Fingerprints| {
            list.contents.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
        };
        let (was, is) = (names(self), names(now));
        let other = |text| Err(StoreError::Configuration(text));
        if was != is {
            return other(format!("its content types are {was}, here they are {is}"));
        }
        match self.contents.iter().zip(&now.contents).find(|(was, is)| was != is) {
            Some(((name, _), _)) => other(format!("content type {name} had other settings")),
            None if self.direct != now.direct => {
                other("the contents that robots request directly (direct_access) were different".to_owned())
            }
            None => Ok(()),
        }
    }
}

/// Serialization of galaxies.
mod galaxies {
    use serde::{Deserializer, Serializer};

    use super::*;

    pub fn serialize<S: Serializer>(galaxies: &Galaxies, to: S) -> Result<S::Ok, S::Error> {
        let facts = |galaxy: &Galaxy| galaxy.worlds.iter().map(World::settled).collect::<Vec<_>>();
        to.collect_seq(galaxies.iter().map(|(name, galaxy)| (name, galaxy.id, facts(galaxy))))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Galaxies, D::Error> {
        let stored = Vec::<(String, UniqId, Vec<WorldFacts>)>::deserialize(from)?;
        let galaxy = |(name, id, facts): (String, _, Vec<WorldFacts>)| {
            (name, Galaxy { id, worlds: facts.into_iter().map(World::known).collect() })
        };
        Ok(stored.into_iter().map(galaxy).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, Distr, PopModel};

    fn catalog(size: f64) -> Catalog {
        let contents = ["image", "page"].map(|name| Content::plain(name, Distr::Const(size), 0.5));
        Catalog { seed: Seed(3), contents: contents.into() }
    }

    fn working_set() -> WorkingSet {
        let mut ids = IdSource::unique(1_800_000_000, 7, 8, 9);
        let mut rng = Seed(5).stream("store", 0);
        let mut galaxy = Galaxy::new(ids.fresh(), 2);
        for due in 0..1_000 {
            galaxy.worlds[0].make_repeatable(due, &mut rng);
            galaxy.worlds[0].produce(due + 100);
        }
        galaxy.worlds[0].freeze();
        let share = SavedShare {
            ids,
            galaxies: vec![("w1.example:80".into(), galaxy)],
            fill: Fill { count: 5, bytes: 6_000 },
        };
        let contents = Fingerprints::of(&catalog(9.0), &[]);
        WorkingSet { contents, global_seed: Seed(3), local_seed: Seed(4), shares: vec![share] }
    }

    #[test]
    fn a_later_test_goes_on_with_all_objects() {
        let set = working_set();
        let mut back = WorkingSet::from_bytes(&set.to_bytes()).unwrap();
        assert_eq!((back.global_seed, back.local_seed), (Seed(3), Seed(4)));
        let (old, new) = (&set.shares[0], &mut back.shares[0]);
        assert_eq!(new.fill, old.fill);
        assert_eq!(new.ids.fresh(), old.ids.clone().fresh());
        let (name, galaxy) = &mut new.galaxies[0];
        assert_eq!((name.as_str(), galaxy.id), ("w1.example:80", old.galaxies[0].1.id));
        let world = &mut galaxy.worlds[0];
        assert_eq!((world.size(), world.facts().size, world.facts().window), (1_000, 1_000, Some(1_000)));
        let mut rng = Seed(6).stream("store", 0);
        let last = (0..10_000).map(|_| world.repeat(&PopModel::default(), &mut rng, |_| None).name).max();
        assert!(last > Some(900), "objects that were settling can be repeated: {last:?}");
        assert_eq!(world.produce(0), 1_001);
        assert!(!galaxy.worlds[1].can_repeat());
    }

    #[test]
    fn what_cannot_be_used_says_why() {
        let bytes = working_set().to_bytes();
        let read = |bytes: &[u8]| WorkingSet::from_bytes(bytes).unwrap_err();
        assert_eq!(read(b""), StoreError::Foreign);
        assert_eq!(read(b"polygraph log\n\x01\n"), StoreError::Foreign);
        let mut newer = bytes.clone();
        newer[SIGNATURE.len()] = 9;
        assert_eq!(read(&newer), StoreError::Version { found: 9 });
        for end in SIGNATURE.len()..bytes.len() {
            assert!(
                matches!(read(&bytes[..end]), StoreError::Truncated { found, .. } if found == end),
                "{end}"
            );
        }
        assert_eq!(read(&[&bytes[..], b"x"].concat()), StoreError::Damaged);
        for at in HEAD..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert_eq!(read(&damaged), StoreError::Damaged);
        }
        let agree = |now: &Catalog| working_set().contents.agree(&Fingerprints::of(now, &[]));
        assert_eq!(agree(&catalog(9.0)), Ok(()));
        let other = agree(&catalog(10.0)).unwrap_err();
        assert_eq!(
            other.to_string(),
            "the working set belongs to another workload: content type image had other settings"
        );
        let classic = Catalog::classic(Seed(1), Distr::Const(1.0));
        let other = agree(&classic).unwrap_err();
        assert_eq!(
            other.to_string(),
            "the working set belongs to another workload: its content types are image, page, here they are \
             cachable, uncachable"
        );
    }

    #[test]
    fn galaxies_are_dealt_so_that_each_has_one_owner() {
        let mut ids = IdSource::reproducible(1, 0);
        let mut galaxy = |name: &str| (name.to_owned(), Galaxy::new(ids.fresh(), 1));
        let share =
            |galaxies| SavedShare { ids: IdSource::reproducible(1, 0), galaxies, fill: Fill::default() };
        let shares = vec![share(vec![galaxy("a"), galaxy("b")]), share(vec![galaxy("a")]), share(vec![])];
        let all = shares.iter().flat_map(|share| &share.galaxies);
        let all: Vec<UniqId> = all.map(|(_, galaxy)| galaxy.id).collect();
        let set = WorkingSet { shares, ..working_set() };
        let ids = |galaxies: &Galaxies| galaxies.iter().map(|(_, galaxy)| galaxy.id).collect::<Vec<_>>();
        for loops in 1..5 {
            let dealt = set.deal(loops);
            let mut owned: Vec<UniqId> = dealt.iter().flat_map(|legacy| ids(&legacy.own)).collect();
            owned.sort();
            assert_eq!(owned, all, "{loops}");
            for legacy in &dealt {
                let both = [ids(&legacy.own), ids(&legacy.known)].concat();
                let has = |server: &str| {
                    let mut names = legacy.own.iter().chain(&legacy.known).map(|(name, _)| name);
                    names.any(|name| name == server)
                };
                assert!(has("a") && has("b"), "{loops}: {both:?}");
            }
        }
        assert!(!set.is_frozen() && working_set().is_frozen());
    }

    #[test]
    fn what_was_filled_and_named_before_is_not_forgotten() {
        let set = working_set();
        let [first, second] = [0, 1].map(|index| SavedShare {
            ids: IdSource::reproducible(1, index),
            galaxies: Vec::new(),
            fill: Fill { count: 1, bytes: 10 },
        });
        let earlier = WorkingSet { shares: vec![first, second.clone()], ..set.clone() };
        let later = earlier.followed_by(set.shares);
        assert_eq!(later.fill(), Fill { count: 7, bytes: 6_020 });
        assert_eq!((later.shares.len(), later.shares[0].galaxies.len()), (2, 1));
        assert_eq!(later.shares[1].ids.clone().fresh(), second.ids.clone().fresh());
    }
}
