//! Whether a user means a file of this machine or a built-in one.

use std::path::Path;

use crate::entry::{EntryKind, entries, find};
use crate::read::SCHEME;

/// Similarity (Jaro-Winkler, 0 to 1) from which a name may be a misspelling of another.
const SIMILAR: f64 = 0.88;

/// Why a name has no clear meaning.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocateError {
    /// It may be a file of this machine or a built-in one.
    #[error(
        "`{given}` may be the built-in {kind} or {file} in this directory: write `{SCHEME}{given}` or `./{file}`"
    )]
    Ambiguous {
        /// The name as given.
        given: String,
        /// What the built-in file is.
        kind: &'static str,
        /// The file of this machine.
        file: String,
    },
    /// There is no such file, but a built-in one with a similar name.
    #[error("there is no file `{given}`; the built-in {kind} is called `{name}`")]
    NoFile {
        /// The name as given.
        given: String,
        /// What the built-in file is.
        kind: &'static str,
        /// The name of the built-in file.
        name: &'static str,
    },
    /// There is no built-in file with this name.
    #[error("there is no built-in {kind} `{given}`; there are: {known}")]
    Unknown {
        /// The name as given, without the prefix.
        given: String,
        /// What was looked for.
        kind: &'static str,
        /// All names, with commas between them.
        known: String,
    },
}

/// The path of the file that a user means.
///
/// - `builtin:NAME` is the built-in file of this name, which may also be written as its path in the source tree.
/// - Any other text is the path of a file of this machine, if there is one.
/// - If there is no such file, the name of a built-in one means that.
/// - If there is a file with that name in the working directory, with or without its extension, the name is ambiguous.
/// - All other texts are returned unchanged, for the caller to say that there is no such file.
///
/// # Errors
/// If the text has two meanings, or none and a built-in file has a similar name.
pub fn locate(kind: EntryKind, given: &str) -> Result<String, LocateError> {
    let path = |path: &str| format!("{SCHEME}{path}");
    if let Some(name) = given.strip_prefix(SCHEME) {
        if crate::builtin(given).is_some_and(|found| found.is_ok()) {
            return Ok(given.to_owned());
        }
        let unknown =
            || LocateError::Unknown { given: name.to_owned(), kind: kind.word(), known: names(kind) };
        return find(kind, name).map(|entry| path(entry.file.path)).ok_or_else(unknown);
    }
    // A path is a path, even if it looks like one of the source tree.
    let entry = find(kind, given).filter(|entry| entry.name == given);
    let Some(entry) = entry else {
        return match (given == "-" || Path::new(given).exists(), similar(kind, given)) {
            (false, Some(name)) => {
                Err(LocateError::NoFile { given: given.to_owned(), kind: kind.word(), name })
            }
            _ => Ok(given.to_owned()),
        };
    };
    let files = [given.to_owned(), format!("{given}{}", kind.extension())];
    match files.into_iter().find(|file| is_file(kind, file)) {
        Some(file) => Err(LocateError::Ambiguous { given: given.to_owned(), kind: kind.word(), file }),
        None => Ok(path(entry.file.path)),
    }
}

/// Whether there is such a file in the working directory, or such a directory for a device.
fn is_file(kind: EntryKind, path: &str) -> bool {
    match kind {
        EntryKind::Device => Path::new(path).join("device.toml").is_file(),
        _ => Path::new(path).is_file(),
    }
}

/// The name of a built-in file that looks like the file name of a path.
pub fn similar(kind: EntryKind, given: &str) -> Option<&'static str> {
    let stem = given.rsplit('/').next().unwrap_or(given);
    let stem = stem.strip_suffix(kind.extension()).unwrap_or(stem);
    closest(stem, entries().into_iter().filter(|entry| entry.kind == kind).map(|entry| entry.name))
}

/// The name that is most similar to a given one, if this may be a misspelling of it.
pub fn closest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let close = |name: &str| strsim::jaro_winkler(name, given);
    let best = names.max_by(|a, b| close(a).total_cmp(&close(b)))?;
    (close(best) >= SIMILAR).then_some(best)
}

fn names(kind: EntryKind) -> String {
    let names: Vec<&str> =
        entries().iter().filter(|entry| entry.kind == kind).map(|entry| entry.name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Changes the working directory, which all threads share, so there is one test.
    #[test]
    fn what_a_name_means() {
        let place = tempfile::tempdir().unwrap();
        std::env::set_current_dir(place.path()).unwrap();
        let file = |name: &str| std::fs::write(place.path().join(name), "").unwrap();
        let workload = |given: &str| locate(EntryKind::Workload, given).map_err(|error| error.to_string());
        let builtin = |name: &str| Ok(format!("builtin:workloads/{name}.pg"));

        assert_eq!(workload("polymix-4"), builtin("polymix-4"));
        for given in ["builtin:polymix-4", "builtin:polymix-4.pg", "builtin:workloads/polymix-4.pg"] {
            assert_eq!(workload(given), builtin("polymix-4"), "{given}");
        }
        assert_eq!(
            workload("builtin:workloads/include/benches.pg"),
            Ok("builtin:workloads/include/benches.pg".into())
        );
        for given in ["my.pg", "-", "dir/my.pg"] {
            assert_eq!(workload(given), Ok(given.to_owned()));
        }
        // A path never means a built-in file, but the message says how to reach it.
        for given in ["polymix-4.pg", "workloads/polymix-4.pg", "polymix4"] {
            let error = workload(given).unwrap_err();
            assert!(error.contains("there is no file") && error.contains("is called `polymix-4`"), "{error}");
        }
        assert!(workload("builtin:polymix-9").unwrap_err().contains("polymix-1, "));

        file("polymix-4.pg");
        assert_eq!(workload("polymix-4.pg"), Ok("polymix-4.pg".into()));
        let error = workload("polymix-4").unwrap_err();
        assert!(error.contains("write `builtin:polymix-4` or `./polymix-4.pg`"), "{error}");
        assert_eq!(workload("builtin:polymix-4"), builtin("polymix-4"));
        file("polymix-3");
        assert!(workload("polymix-3").unwrap_err().contains("`./polymix-3`"));
        // Other files of this name are of no concern.
        file("five-caches.pg");
        assert_eq!(locate(EntryKind::Bakeoff, "five-caches").unwrap(), "builtin:bakeoffs/five-caches.toml");

        assert_eq!(locate(EntryKind::Device, "squid").unwrap(), "builtin:devices/squid/device.toml");
        std::fs::create_dir(place.path().join("squid")).unwrap();
        assert!(locate(EntryKind::Device, "squid").is_ok());
        file("squid/device.toml");
        assert!(locate(EntryKind::Device, "squid").is_err());
    }
}
