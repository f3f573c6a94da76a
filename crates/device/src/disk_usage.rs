//! The disk usage of a store.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes of a block in stat(2).
const BLOCK: u64 = 512;

/// The allocated blocks of all files under a directory, in bytes. Holes in files do not count, and files that
/// disappear meanwhile are ignored.
pub(crate) fn occupied(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| {
        let data = entry.metadata().ok()?;
        Some(if data.is_dir() { occupied(&entry.path()) } else { data.blocks() * BLOCK })
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_do_not_count() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(occupied(&place.path().join("none")), 0);
        let below = place.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        fs::write(below.join("full"), vec![1; 100_000]).unwrap();
        let sparse = fs::File::create(place.path().join("sparse")).unwrap();
        sparse.set_len(100 << 20).unwrap();
        let bytes = occupied(place.path());
        assert!((100_000..1 << 20).contains(&bytes), "{bytes}");
    }
}
