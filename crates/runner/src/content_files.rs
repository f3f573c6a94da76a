//! Real content from files: document roots, content databases and texts to insert.
//!
//! A content database is a directory, each file of which is an entry, or one file:
//!
//! ```text
//! database = "polygraph cdb 1" LF entry*
//! entry    = length(decimal, in bytes) LF content LF
//! ```

use std::fs;
use std::io;
use std::path::Path;

use polygraph_traffic::files::{File, Files};

const SIGNATURE: &[u8] = b"polygraph cdb 1\n";

/// The regular files below the directory `root`, sorted by name. Links are not followed, so that the tree is finite.
///
/// # Errors
/// If a file or directory cannot be read, or there is no regular file.
pub fn document_root(root: &Path) -> io::Result<Files> {
    let mut files = Vec::new();
    collect(root, "", &mut files)?;
    files.sort_by(|a, b| a.name.cmp(&b.name));
    some(Files(files), root)
}

/// The entries of the content database at `path`, in their order.
///
/// # Errors
/// If the file cannot be read, is not a database, is damaged or has no entries.
pub fn content_database(path: &Path) -> io::Result<Files> {
    if path.is_dir() {
        let mut files = document_root(path)?;
        files.0.iter_mut().for_each(|file| file.name.clear());
        return Ok(files);
    }
    let bytes = read(path)?;
    let entries = bytes.strip_prefix(SIGNATURE).ok_or_else(|| wrong(path, "is not a content database"))?;
    some(parse(entries).ok_or_else(|| wrong(path, "is damaged or cut short"))?, path)
}

/// The texts to insert: `path` is a content database, or a text file with one entry per line. Empty lines are skipped.
///
/// # Errors
/// If the file cannot be read or has no entry.
pub fn texts(path: &Path) -> io::Result<Files> {
    if path.is_dir() {
        return content_database(path);
    }
    let bytes = read(path)?;
    if bytes.starts_with(SIGNATURE) {
        return content_database(path);
    }
    let lines = bytes.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    some(Files(lines.filter(|line| !line.is_empty()).map(entry).collect()), path)
}

/// The bytes of a database file with these entries.
#[cfg(test)]
pub fn database_bytes<'a>(entries: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut out = SIGNATURE.to_vec();
    for entry in entries {
        out.extend_from_slice(format!("{}\n", entry.len()).as_bytes());
        out.extend_from_slice(entry);
        out.push(b'\n');
    }
    out
}

fn parse(mut rest: &[u8]) -> Option<Files> {
    let mut files = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().take(20).position(|&byte| byte == b'\n')?;
        let length: usize = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
        let after = &rest[end + 1..];
        if after.get(length) != Some(&b'\n') {
            return None;
        }
        files.push(entry(&after[..length]));
        rest = &after[length + 1..];
    }
    Some(Files(files))
}

fn entry(bytes: &[u8]) -> File {
    File { name: String::new(), bytes: bytes.to_vec() }
}

fn collect(directory: &Path, prefix: &str, files: &mut Vec<File>) -> io::Result<()> {
    for item in fs::read_dir(directory).map_err(|error| about(directory, &error))? {
        let item = item.map_err(|error| about(directory, &error))?;
        let path = item.path();
        let name = format!("{prefix}{}", in_url(item.file_name().as_encoded_bytes()));
        let kind = item.file_type().map_err(|error| about(&path, &error))?;
        if kind.is_dir() {
            collect(&path, &format!("{name}/"), files)?;
        } else if kind.is_file() {
            files.push(File { name, bytes: read(&path)? });
        }
    }
    Ok(())
}

/// A file name as part of a URL path: characters that are not unreserved are percent-encoded (RFC 3986, section 2.1).
fn in_url(name: &[u8]) -> String {
    name.iter().fold(String::new(), |text, &byte| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            text + &char::from(byte).to_string()
        }
        _ => text + &format!("%{byte:02X}"),
    })
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path).map_err(|error| about(path, &error))
}

fn some(files: Files, path: &Path) -> io::Result<Files> {
    if files.0.is_empty() { Err(wrong(path, "has no entries")) } else { Ok(files) }
}

fn about(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot read {}: {error}", path.display()))
}

fn wrong(path: &Path, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} {what}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_become_files_sorted_by_name_in_urls() {
        let root = tempfile::tempdir().unwrap();
        assert!(document_root(root.path()).unwrap_err().to_string().ends_with("has no entries"));
        fs::create_dir_all(root.path().join("b/c d")).unwrap();
        for (name, content) in [("z.html", "1"), ("b/c d/ä&.gif", "22"), ("a", "")] {
            fs::write(root.path().join(name), content).unwrap();
        }
        std::os::unix::fs::symlink(root.path(), root.path().join("loop")).unwrap();
        let files = document_root(root.path()).unwrap();
        let found: Vec<(&str, usize)> = files.0.iter().map(|f| (f.name.as_str(), f.bytes.len())).collect();
        assert_eq!(found, [("a", 0), ("b/c%20d/%C3%A4%26.gif", 2), ("z.html", 1)]);
        assert_eq!(files.find("z.html"), Some(2));
        assert_eq!(content_database(root.path()).unwrap().0[1], entry(b"22"));
        assert_eq!(document_root(Path::new("/nowhere")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn databases_round_trip_and_damage_is_noticed() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let entries: [&[u8]; 4] = [b"<p>one</p>", b"", b"two\n3\nabc\n", &[0, 255, 10]];
        let bytes = database_bytes(entries);
        fs::write(file.path(), &bytes).unwrap();
        let files = content_database(file.path()).unwrap();
        assert_eq!(files, Files(entries.iter().map(|e| entry(e)).collect()));
        assert_eq!(texts(file.path()).unwrap(), files);
        for damaged in [
            &bytes[..bytes.len() - 1],
            b"polygraph cdb 1\n-1\n\n",
            b"polygraph cdb 1\n99999999999999999999999\n",
        ] {
            fs::write(file.path(), damaged).unwrap();
            assert!(content_database(file.path()).unwrap_err().to_string().ends_with("cut short"));
        }
        fs::write(file.path(), "polygraph log\n").unwrap();
        assert!(content_database(file.path()).unwrap_err().to_string().ends_with("not a content database"));
    }

    #[test]
    fn texts_are_lines() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "EVIL\r\n\n<!-- two -->\nlast").unwrap();
        let expected: [&[u8]; 3] = [b"EVIL", b"<!-- two -->", b"last"];
        assert_eq!(texts(file.path()).unwrap(), Files(expected.map(entry).into()));
        fs::write(file.path(), "\n\n").unwrap();
        assert!(texts(file.path()).is_err());
    }
}
