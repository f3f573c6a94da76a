//! Files of a host below a root directory, which tests choose.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The files of a host.
#[derive(Clone, Debug)]
pub(crate) struct HostFiles {
    root: PathBuf,
}

impl HostFiles {
    pub fn at(root: &Path) -> HostFiles {
        HostFiles { root: root.to_owned() }
    }

    /// Whether these are the files of the host that this process runs on.
    pub fn are_real(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Where a file is.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The text of a file; empty if it cannot be read.
    pub fn text(&self, path: &str) -> String {
        self.known_text(path).unwrap_or_default()
    }

    /// The text of a file without white space at its ends.
    pub fn known_text(&self, path: &str) -> Option<String> {
        let bytes = fs::read(self.path(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The only value in a file.
    pub fn value<T: FromStr>(&self, path: &str) -> Option<T> {
        self.known_text(path)?.parse().ok()
    }

    /// The value at a position of a file with several.
    pub fn value_at<T: FromStr>(&self, path: &str, position: usize) -> Option<T> {
        self.known_text(path)?.split_whitespace().nth(position)?.parse().ok()
    }

    /// The names in a directory, sorted.
    pub fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(path)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}
