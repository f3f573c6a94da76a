//! Working sets in files: a later test goes on with the objects that caches already hold (reference: models.md,
//! section 3.5).
//!
//! ```text
//! file = "polygraph working set" LF version(u8) LF length(u32 LE) crc32(u32 LE) payload(postcard)
//! ```
//!
//! Length and checksum are those of the payload. Reading and writing files is left to who may do I/O.

use crate::content::Catalog;
use crate::id::IdSource;
use crate::rng::Seed;
use crate::world::{Galaxy, World, WorldFacts};

const SIGNATURE: &[u8] = b"polygraph working set\n";
/// Version of the format. A reader takes files of its own version only.
pub const VERSION: u8 = 1;
/// Where the payload begins.
const HEAD: usize = SIGNATURE.len() + 2 + 8;

/// Why a working set cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The bytes do not begin like a working set.
    #[error("this is not a polygraph working set")]
    Foreign,
    /// Another format.
    #[error(
        "the working set has format {found}, this program reads {VERSION}; use the version that stored it"
    )]
    Version {
        /// Version of the file.
        found: u8,
    },
    /// Bytes are missing at the end.
    #[error("the working set is cut short: {found} of {expected} bytes are there; store it again")]
    Truncated {
        /// Bytes that are there.
        found: usize,
        /// Bytes of the whole.
        expected: usize,
    },
    /// The checksum is wrong or the content makes no sense.
    #[error("the working set is damaged; store it again")]
    Damaged,
    /// It was stored under another configuration.
    #[error("the working set belongs to another workload: {0}")]
    Configuration(String),
}

/// How much has been filled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Fill {
    /// Number of fills.
    pub count: u64,
    /// Bytes of fills.
    pub bytes: u64,
}

/// What one loop of a client owns.
#[derive(Clone, Debug)]
pub struct Share {
    /// Where new ids come from: going on with it keeps new ids apart from the stored ones.
    pub ids: IdSource,
    /// Own galaxies by the name of the visible server.
    pub galaxies: Vec<(String, Galaxy)>,
    /// How much has been filled.
    pub fill: Fill,
}

/// A working set.
#[derive(Clone, Debug)]
pub struct WorkingSet {
    /// The seed that all processes of the test share; it wins over the one of the command line.
    pub global_seed: Seed,
    /// The seed of the process, which wins likewise.
    pub local_seed: Seed,
    /// By loop.
    pub shares: Vec<Share>,
}

/// The stored form.
#[derive(serde::Serialize, serde::Deserialize)]
struct Stored {
    /// Content types and what they were like.
    contents: Vec<(String, u64)>,
    global_seed: Seed,
    local_seed: Seed,
    shares: Vec<StoredShare>,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct StoredShare {
    ids: IdSource,
    galaxies: Vec<(String, crate::id::UniqId, Vec<WorldFacts>)>,
    fill: Fill,
}

impl WorkingSet {
    /// The bytes of a file that [`WorkingSet::from_bytes`] reads. Objects whose first reply was still on its way
    /// count as settled: they are, when the file is read.
    ///
    /// # Panics
    /// Never: all parts have a form in bytes, and four gigabytes of worlds fit into no process.
    pub fn to_bytes(&self, catalog: &Catalog) -> Vec<u8> {
        let facts = |galaxy: &Galaxy| galaxy.worlds.iter().map(World::settled).collect();
        let shares = self.shares.iter().map(|share| StoredShare {
            ids: share.ids.clone(),
            galaxies: share.galaxies.iter().map(|(name, g)| (name.clone(), g.id, facts(g))).collect(),
            fill: share.fill,
        });
        let stored = Stored {
            contents: fingerprints(catalog),
            global_seed: self.global_seed,
            local_seed: self.local_seed,
            shares: shares.collect(),
        };
        let mut out = Vec::from(SIGNATURE);
        out.extend_from_slice(&[VERSION, b'\n']);
        out.extend_from_slice(&[0; 8]);
        let mut out = postcard::to_extend(&stored, out).expect("the parts have a form in bytes");
        let length = u32::try_from(out.len() - HEAD).expect("a process holds less");
        let crc = crc32fast::hash(&out[HEAD..]);
        out[HEAD - 8..HEAD - 4].copy_from_slice(&length.to_le_bytes());
        out[HEAD - 4..HEAD].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// The working set in the bytes of a file, for a test whose content types are those of `catalog`.
    ///
    /// # Errors
    /// If the bytes are no whole working set of this version, or belong to other content types.
    pub fn from_bytes(bytes: &[u8], catalog: &Catalog) -> Result<WorkingSet, StoreError> {
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
        let stored: Stored = postcard::from_bytes(payload).map_err(|_| StoreError::Damaged)?;
        agree(&stored.contents, &fingerprints(catalog)).map_err(StoreError::Configuration)?;
        let galaxy = |(name, id, facts): (String, _, Vec<WorldFacts>)| {
            (name, Galaxy { id, worlds: facts.into_iter().map(World::known).collect() })
        };
        let shares = stored.shares.into_iter().map(|share| Share {
            ids: share.ids,
            galaxies: share.galaxies.into_iter().map(galaxy).collect(),
            fill: share.fill,
        });
        Ok(WorkingSet {
            global_seed: stored.global_seed,
            local_seed: stored.local_seed,
            shares: shares.collect(),
        })
    }
}

/// Names and hashes of the content types. Seeds are no part of them, they are stored themselves.
fn fingerprints(catalog: &Catalog) -> Vec<(String, u64)> {
    let hash = |content| {
        let bytes = postcard::to_extend(content, Vec::new()).unwrap_or_default();
        xxhash_rust::xxh3::xxh3_64(&bytes)
    };
    catalog.contents.iter().map(|content| (content.name.clone(), hash(content))).collect()
}

fn agree(stored: &[(String, u64)], now: &[(String, u64)]) -> Result<(), String> {
    let names =
        |list: &[(String, u64)]| list.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    let (was, is) = (names(stored), names(now));
    if was != is {
        return Err(format!("its content types are {was}, here they are {is}"));
    }
    match stored.iter().zip(now).find(|(was, is)| was != is) {
        Some(((name, _), _)) => Err(format!("content type {name} had other settings")),
        None => Ok(()),
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
            galaxy.worlds[0].settle(due, &mut rng);
            galaxy.worlds[0].produce(due + 100);
        }
        galaxy.worlds[0].freeze();
        let share = Share {
            ids,
            galaxies: vec![("w1.example:80".into(), galaxy)],
            fill: Fill { count: 5, bytes: 6_000 },
        };
        WorkingSet { global_seed: Seed(3), local_seed: Seed(4), shares: vec![share] }
    }

    #[test]
    fn a_later_test_goes_on_with_all_objects() {
        let set = working_set();
        let mut back = WorkingSet::from_bytes(&set.to_bytes(&catalog(9.0)), &catalog(9.0)).unwrap();
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
        let bytes = working_set().to_bytes(&catalog(9.0));
        let read = |bytes: &[u8]| WorkingSet::from_bytes(bytes, &catalog(9.0)).unwrap_err();
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
        let other = WorkingSet::from_bytes(&bytes, &catalog(10.0)).unwrap_err();
        assert_eq!(
            other.to_string(),
            "the working set belongs to another workload: content type image had other settings"
        );
        let classic = Catalog::classic(Seed(1), Distr::Const(1.0));
        let other = WorkingSet::from_bytes(&bytes, &classic).unwrap_err();
        assert_eq!(
            other.to_string(),
            "the working set belongs to another workload: its content types are image, page, here they are \
             cachable, uncachable"
        );
    }
}
