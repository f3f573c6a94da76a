//! Files that are written completely or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes a file atomically: the data is written under another name in the same directory, and the file is then
/// renamed. If this fails, an existing file is unchanged, and no other file is left. Targets that are not regular
/// files, such as terminals and pipes, are written directly.
///
/// # Errors
/// If the file cannot be written, for example because the disk is full.
pub fn write_whole(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    write_whole_with(path, |out| out.write_all(content.as_ref()))
}

/// The same for content that `write` produces piece by piece.
///
/// # Errors
/// If the file cannot be written, or `write` fails.
pub fn write_whole_with<T>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<T>,
) -> io::Result<T> {
    // A symbolic link keeps its target.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if target.metadata().is_ok_and(|there| !there.is_file()) {
        return write_to(File::options().write(true).open(target)?, write);
    }
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let beside = target.with_file_name(name);
    let written = File::create(&beside)
        .and_then(|file| write_to(file, write))
        .and_then(|done| fs::rename(&beside, &target).map(|()| done));
    if written.is_err() {
        // If this fails as well, nothing more can be done.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn write_to<T>(file: File, write: impl FnOnce(&mut dyn Write) -> io::Result<T>) -> io::Result<T> {
    let mut out = BufWriter::new(file);
    let done = write(&mut out)?;
    out.flush()?;
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("report.html");
        write_whole(&path, "one").unwrap();
        write_whole(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "nothing lies beside it");
        let link = place.path().join("latest.html");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write_whole(&link, "three").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "three");
        assert!(link.is_symlink());
    }

    #[test]
    fn what_cannot_be_written_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        assert!(write_whole(&place.path().join("no/such/place.html"), "x").is_err());
        // What is no file is not replaced by one.
        assert!(write_whole(Path::new("/dev/full"), "x").is_err());
        assert!(!Path::new("/dev/full").metadata().unwrap().is_file());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
