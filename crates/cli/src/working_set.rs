//! Working sets in files: a test writes down what it has left in caches, and a later one goes on with that.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use polygraph_plan::Test;
use polygraph_traffic::Seed;
use polygraph_traffic::store::{Fingerprints, SavedShare, WorkingSet};

use crate::options::{CommonOptions, WorkingSetOptions};
use crate::{Failure, console};

/// The files of a test.
#[derive(Debug, Default)]
pub struct Files {
    /// What the test goes on with.
    pub earlier: Option<WorkingSet>,
    store: Option<Target>,
}

impl Files {
    /// Reads the working set that is to be loaded, whose seeds win over those of the command line, and makes sure
    /// that the one that is to be stored can be.
    ///
    /// # Errors
    /// If a file cannot be used.
    pub fn open(options: &WorkingSetOptions, common: &mut CommonOptions) -> Result<Files, Failure> {
        let earlier = options.load_working_set.as_deref().map(load).transpose()?;
        if let Some(set) = &earlier {
            let seeds = (set.global_seed.0, set.local_seed.0);
            if seeds != (common.global_rng_seed, common.local_rng_seed) {
                console::note(&format!(
                    "the seeds of the working set are used: global {}, local {}",
                    seeds.0, seeds.1
                ));
            }
            (common.global_rng_seed, common.local_rng_seed) = seeds;
        }
        let store = options.store_working_set.as_deref().map(Target::new).transpose()?;
        Ok(Files { earlier, store })
    }

    /// True if the working set is wanted at the end.
    pub fn stores(&self) -> bool {
        self.store.is_some()
    }

    /// Makes sure that a test can go on with the working set that was loaded.
    ///
    /// # Errors
    /// If it was stored by another workload.
    pub fn check(&self, test: &Test) -> Result<(), Failure> {
        let Some(set) = &self.earlier else { return Ok(()) };
        set.contents.agree(&fingerprints(test)).map_err(Failure::usage)?;
        let names = set.shares.iter().flat_map(|share| &share.galaxies).map(|(name, _)| name.as_str());
        let here: std::collections::HashSet<&str> =
            test.field.servers.iter().map(|server| server.authority.as_str()).collect();
        let (there, gone): (Vec<&str>, Vec<&str>) = names.partition(|name| here.contains(name));
        match (there.is_empty(), gone.first()) {
            (_, None) => Ok(()),
            (true, Some(name)) => Err(Failure::usage(format!(
                "the working set has no objects of the servers of this test; it has such of {name}"
            ))),
            (false, Some(name)) => {
                console::note(&format!(
                    "objects of {name}{} in the working set are left out: this test has no such server",
                    if gone.len() > 1 { format!(" and {} others", gone.len() - 1) } else { String::new() }
                ));
                Ok(())
            }
        }
    }

    /// Writes down what the loops of a test have delivered, if that is wanted.
    ///
    /// # Errors
    /// If the file cannot be written, or a loop did not deliver its share.
    pub fn store(
        self,
        test: &Test,
        common: &CommonOptions,
        shares: Option<Vec<SavedShare>>,
    ) -> Result<(), Failure> {
        let Some(target) = self.store else { return Ok(()) };
        let Some(shares) = shares else {
            return Err(Failure::setup(anyhow::anyhow!(
                "the working set was not stored in {}: a part of the client side broke off before it could tell \
                 its share",
                target.path.display()
            )));
        };
        let set = match self.earlier {
            Some(earlier) => earlier.followed_by(shares),
            None => WorkingSet {
                contents: fingerprints(test),
                global_seed: Seed(common.global_rng_seed),
                local_seed: Seed(common.local_rng_seed),
                shares,
            },
        };
        target.write(&set.to_bytes())
    }
}

fn fingerprints(test: &Test) -> Fingerprints {
    Fingerprints::of(&test.field.catalog, &test.field.direct)
}

fn load(path: &Path) -> Result<WorkingSet, Failure> {
    let wrong = |why: &dyn std::fmt::Display| {
        Failure::data(anyhow::anyhow!("cannot load the working set {}: {why}", path.display()))
    };
    let bytes = std::fs::read(path).map_err(|e| wrong(&e))?;
    WorkingSet::from_bytes(&bytes).map_err(|e| wrong(&e))
}

/// A file that is there as a whole, or not at all: it is written beside its place and then moved there.
#[derive(Debug)]
struct Target {
    path: PathBuf,
    beside: PathBuf,
    file: File,
}

impl Target {
    fn new(path: &Path) -> Result<Target, Failure> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}", std::process::id()));
        let beside = PathBuf::from(beside);
        let file = File::create(&beside).map_err(|e| cannot_store(path, &e))?;
        Ok(Target { path: path.to_owned(), beside, file })
    }

    fn write(mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.file.write_all(bytes).and_then(|()| self.file.sync_all());
        let moved = written.and_then(|()| std::fs::rename(&self.beside, &self.path));
        moved.map_err(|e| cannot_store(&self.path, &e))
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // Only a file that did not get to its place is still there.
        let _ = std::fs::remove_file(&self.beside);
    }
}

fn cannot_store(path: &Path, e: &std::io::Error) -> Failure {
    Failure::setup(anyhow::anyhow!("cannot store the working set in {}: {e}", path.display()))
}
