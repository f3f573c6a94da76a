//! The files of the source tree.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace has a root")
}

/// The files that git tracks, and new ones that it does not ignore, relative to [`root`]. Without git or outside a
/// checkout, as in a source package, all files except build results.
pub fn files() -> Vec<PathBuf> {
    let root = root();
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(&root)
        .output();
    let mut found = match listed {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8(output.stdout).expect("file names of the tree are UTF-8");
            text.split_terminator('\0').map(PathBuf::from).filter(|path| root.join(path).is_file()).collect()
        }
        _ => {
            let mut found = Vec::new();
            walk(&root, &root, &mut found);
            found
        }
    };
    found.sort();
    found
}

fn walk(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("folders of the tree are readable").flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() {
            if name != "target" && name != ".git" {
                walk(root, &path, found);
            }
        } else {
            found.push(path.strip_prefix(root).expect("the walk stays below the root").to_path_buf());
        }
    }
}

/// The folders of the workspace's crates, in order of their names.
pub fn crates() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join("crates")).expect("crates/ is readable");
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join("Cargo.toml").is_file())
        .collect();
    found.sort();
    found
}
