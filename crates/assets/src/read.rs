//! Reading built-in files and files of this machine by path.

use std::io;
use std::path::{Path, PathBuf};

use crate::files::all;

/// The start of the path of a built-in file. The rest is its path in the source tree.
pub const SCHEME: &str = "builtin:";

/// Whether a path is that of a built-in file, which may not exist.
pub fn is_builtin(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.starts_with(SCHEME))
}

/// The text of a built-in file; `None` if the path is one of this machine.
///
/// # Errors
/// If there is no built-in file with this path.
pub fn builtin(path: &str) -> Option<io::Result<&'static str>> {
    let path = normal(path.strip_prefix(SCHEME)?);
    let asset = path.and_then(|path| all().iter().find(|asset| asset.path == path));
    Some(
        asset
            .map(|asset| asset.text)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such built-in file")),
    )
}

/// The text of a file, built-in or of this machine.
///
/// # Errors
/// If there is no such file, or it cannot be read.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    match path.to_str().and_then(builtin) {
        Some(text) => text.map(str::to_owned),
        None => std::fs::read_to_string(path),
    }
}

/// Whether there is such a file, built-in or of this machine.
pub fn is_file(path: &Path) -> bool {
    match path.to_str().and_then(builtin) {
        Some(text) => text.is_ok(),
        None => path.is_file(),
    }
}

/// Copies a file, built-in or of this machine.
///
/// # Errors
/// If there is no such file, or it cannot be copied.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    match from.to_str().and_then(builtin) {
        Some(text) => std::fs::write(to, text?),
        None => std::fs::copy(from, to).map(drop),
    }
}

/// The path that a file in `directory` refers to as `path`, which may be a built-in file by its own full path.
pub fn join(directory: &Path, path: &Path) -> PathBuf {
    if is_builtin(path) { path.to_owned() } else { directory.join(path) }
}

/// The names in a directory of built-in files, those of directories with a `/` at their end; `None` if the path is one
/// of this machine.
pub fn names_in(directory: &str) -> Option<Vec<String>> {
    let directory = normal(directory.strip_prefix(SCHEME)?).unwrap_or_default();
    let mut names = Vec::new();
    for asset in crate::files::below(&directory) {
        let rest = &asset.path[directory.len() + 1..];
        let name = rest.split_once('/').map_or_else(|| rest.to_owned(), |(folder, _)| format!("{folder}/"));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Some(names)
}

/// A relative path without `.` and `..`; `None` if it leaves the tree.
pub(crate) fn normal(path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let plain = builtin("builtin:workloads/simple.pg").unwrap().unwrap();
        assert_eq!(builtin("builtin:labs/../workloads//./simple.pg").unwrap().unwrap(), plain);
        assert!(builtin("workloads/simple.pg").is_none());
        for path in ["builtin:", "builtin:workloads", "builtin:../x", "builtin:workloads/no.pg"] {
            assert_eq!(builtin(path).unwrap().unwrap_err().kind(), io::ErrorKind::NotFound, "{path}");
        }
        let lab = Path::new("builtin:labs");
        assert_eq!(read_to_string(&join(lab, Path::new("../workloads/simple.pg"))).unwrap(), plain);
        assert_eq!(
            join(Path::new("/x"), Path::new("builtin:workloads/simple.pg")),
            Path::new("builtin:workloads/simple.pg")
        );
        assert_eq!(read_to_string(Path::new("no such file")).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(
            names_in("builtin:devices/trafficserver").unwrap(),
            ["device.toml", "runroot.yaml", "etc/"]
        );
        assert_eq!(names_in("/etc"), None);
    }
}
