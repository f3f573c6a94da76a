//! Working sets in files: a test stores the objects that may be requested again, and a later test continues with them.

use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use polygraph_plan::Test;
use polygraph_traffic::Seed;
use polygraph_traffic::store::{Fingerprints, SavedShare, WorkingSet};

use crate::{Failure, Notice, Notify, RunSettings};

/// The working set files of a test.
#[derive(Debug, Default)]
pub struct WorkingSetFiles {
    /// The working set that the test continues with.
    pub earlier: Option<WorkingSet>,
    output: Option<OutputFile>,
}

impl WorkingSetFiles {
    /// Reads the working set in `load`, whose seeds replace those of the settings, and checks that one can be stored in
    /// `store`.
    ///
    /// # Errors
    /// If a file cannot be used.
    pub fn open(
        load: Option<&Path>,
        store: Option<&Path>,
        settings: &mut RunSettings,
        notify: Notify,
    ) -> Result<WorkingSetFiles, Failure> {
        let earlier = load.map(read).transpose()?;
        if let Some(set) = &earlier {
            let (global, local) = (set.global_seed.0, set.local_seed.0);
            if (global, local) != (settings.global_seed, settings.local_seed) {
                notify(Notice::Note(format!(
                    "using the seeds of the working set: global {global}, local {local}"
                )));
            }
            (settings.global_seed, settings.local_seed) = (global, local);
        }
        let output = store.map(OutputFile::new).transpose()?;
        Ok(WorkingSetFiles { earlier, output })
    }

    /// Whether the working set is stored at the end.
    pub fn stores(&self) -> bool {
        self.output.is_some()
    }

    /// Checks that a test can continue with the working set that was loaded.
    ///
    /// # Errors
    /// If another workload stored it.
    pub fn check(&self, test: &Test, notify: Notify) -> Result<(), Failure> {
        let Some(set) = &self.earlier else { return Ok(()) };
        set.contents.agree(&fingerprints(test)).map_err(Failure::usage)?;
        let names = set.shares.iter().flat_map(|share| &share.galaxies).map(|(name, _)| name.as_str());
        let here: HashSet<&str> = test.field.servers.iter().map(|server| server.authority.as_str()).collect();
        let (known, unknown): (Vec<&str>, Vec<&str>) = names.partition(|name| here.contains(name));
        match (known.is_empty(), unknown.first()) {
            (_, None) => Ok(()),
            (true, Some(name)) => Err(Failure::usage(format!(
                "the working set contains objects of {name}, but none of the servers of this test"
            ))),
            (false, Some(name)) => {
                let others = unknown.len() - 1;
                notify(Notice::Note(format!(
                    "skipping the objects of {name}{} in the working set: this test has no such server",
                    if others > 0 { format!(" and {others} others") } else { String::new() }
                )));
                Ok(())
            }
        }
    }

    /// Stores the shares that the loops of a test have delivered, if the user requested this.
    ///
    /// # Errors
    /// If the file cannot be written, or a loop did not deliver its share.
    pub fn store(
        self,
        test: &Test,
        settings: &RunSettings,
        shares: Option<Vec<SavedShare>>,
    ) -> Result<(), Failure> {
        let Some(output) = self.output else { return Ok(()) };
        let Some(shares) = shares else {
            return Err(Failure::setup(anyhow::anyhow!(
                "the working set was not stored in {}: a process of the client side ended before it delivered its share",
                output.path.display()
            )));
        };
        let set = match self.earlier {
            Some(earlier) => earlier.followed_by(shares),
            None => WorkingSet {
                contents: fingerprints(test),
                global_seed: Seed(settings.global_seed),
                local_seed: Seed(settings.local_seed),
                shares,
            },
        };
        output.write(&set.to_bytes())
    }
}

fn fingerprints(test: &Test) -> Fingerprints {
    Fingerprints::of(&test.field.catalog, &test.field.direct)
}

fn read(path: &Path) -> Result<WorkingSet, Failure> {
    let wrong = |why: &dyn std::fmt::Display| {
        Failure::data(anyhow::anyhow!("cannot load the working set {}: {why}", path.display()))
    };
    let bytes = std::fs::read(path).map_err(|e| wrong(&e))?;
    WorkingSet::from_bytes(&bytes).map_err(|e| wrong(&e))
}

/// A file that is either complete or absent: it is written beside its place and then renamed. It is created at the start,
/// to find out early whether it can be.
#[derive(Debug)]
struct OutputFile {
    path: PathBuf,
    temporary: PathBuf,
    file: File,
}

impl OutputFile {
    fn new(path: &Path) -> Result<OutputFile, Failure> {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(format!(".{}", std::process::id()));
        let temporary = PathBuf::from(temporary);
        let file = File::create(&temporary).map_err(|e| cannot_store(path, &e))?;
        Ok(OutputFile { path: path.to_owned(), temporary, file })
    }

    fn write(mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.file.write_all(bytes).and_then(|()| self.file.sync_all());
        let moved = written.and_then(|()| std::fs::rename(&self.temporary, &self.path));
        moved.map_err(|e| cannot_store(&self.path, &e))
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        // After `write` has renamed it there is nothing to remove.
        let _ = std::fs::remove_file(&self.temporary);
    }
}

fn cannot_store(path: &Path, e: &std::io::Error) -> Failure {
    Failure::setup(anyhow::anyhow!("cannot store the working set in {}: {e}", path.display()))
}
