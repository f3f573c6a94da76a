//! Content from files. The caller loads it, because this crate does no I/O.

use std::sync::Arc;

/// A file or database entry.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct File {
    /// Name relative to its directory as it appears in URLs, with `/` between directories (RFC 3986); empty for
    /// entries of databases.
    pub name: String,
    /// The bytes of the file.
    pub bytes: Vec<u8>,
}

/// A list of files or database entries. Lookup by name is faster in lists that are sorted by name.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Files(pub Vec<File>);

impl Files {
    /// The file of object number `name` (from 1); objects use the files in turn.
    pub fn of_name(&self, name: u64) -> Option<&File> {
        self.0.get(self.index_of(name)?)
    }

    /// The index of the file of object number `name` (from 1).
    pub fn index_of(&self, name: u64) -> Option<usize> {
        (!self.0.is_empty()).then(|| (name.wrapping_sub(1) % self.0.len() as u64) as usize)
    }

    /// The index of the file with this name.
    pub fn find(&self, name: &str) -> Option<usize> {
        // In an unsorted list the binary search may miss the name, but a name that it finds is right.
        let quick = self.0.binary_search_by(|file| file.name.as_str().cmp(name)).ok();
        quick.or_else(|| self.0.iter().position(|file| file.name == name))
    }
}

/// The number of bytes in which the start of a tag is searched backwards; longer tags are not recognised.
const TAG_REACH: u64 = 64 * 1024;

/// A position in content from files, from which a body continues.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    files: Arc<Files>,
    /// The index of a file that is not empty.
    index: usize,
    /// The offset in the file, less than its length.
    at: usize,
    /// The same file follows its end, not the next one.
    repeats: bool,
}

impl Reading {
    /// One file, repeated; `None` if it is empty or does not exist.
    pub fn repeated(files: &Arc<Files>, index: usize) -> Option<Reading> {
        let there = files.0.get(index).is_some_and(|file| !file.bytes.is_empty());
        there.then(|| Reading { files: Arc::clone(files), index, at: 0, repeats: true })
    }

    /// The files from `index` on, starting again after the last one; `None` if all are empty.
    pub fn onward(files: &Arc<Files>, index: usize) -> Option<Reading> {
        let count = files.0.len();
        let index = (0..count).map(|step| (index + step) % count).find(|&i| !files.0[i].bytes.is_empty())?;
        Some(Reading { files: Arc::clone(files), index, at: 0, repeats: false })
    }

    /// The next contiguous bytes, at least one.
    pub fn chunk(&self) -> &[u8] {
        &self.files.0[self.index].bytes[self.at..]
    }

    /// Skips `n` bytes.
    pub fn skip(&mut self, n: u64) {
        let mut n = n;
        loop {
            let rest = self.chunk().len() as u64;
            if n < rest {
                self.at += n as usize;
                return;
            }
            (self.at, n) = (0, n - rest);
            if self.repeats {
                n %= self.chunk().len() as u64;
                continue;
            }
            loop {
                self.index = (self.index + 1) % self.files.0.len();
                if !self.chunk().is_empty() {
                    break;
                }
            }
        }
    }

    /// The position where the tag starts that is open after `n` bytes, if any. Every file starts outside of
    /// tags.
    pub fn open_tag(&self, n: u64) -> Option<u64> {
        self.markup(n).0
    }

    /// The first position after at least `n` bytes where no tag is open.
    pub fn after_tag(&self, n: u64) -> u64 {
        let (Some(_), mut markup, reading) = self.markup(n) else { return n };
        let chunk = reading.chunk();
        let closes = |at: usize| {
            markup.step(chunk[at], chunk.get(at + 1).copied());
            !markup.open
        };
        n + (0..chunk.len()).position(closes).map_or(chunk.len(), |at| at + 1) as u64
    }

    /// The start of the tag that is open after `n` bytes, with the markup state and the reading at that
    /// position.
    fn markup(&self, n: u64) -> (Option<u64>, Markup, Reading) {
        let mut reading = self.clone();
        let mut done = n.saturating_sub(TAG_REACH);
        reading.skip(done);
        let (mut markup, mut begin) = (Markup::default(), 0);
        while done < n {
            let chunk = reading.chunk();
            let len = chunk.len().min((n - done) as usize);
            for at in 0..len {
                let was_open = markup.open;
                markup.step(chunk[at], chunk.get(at + 1).copied());
                if markup.open && !was_open {
                    begin = done + at as u64;
                }
            }
            done += len as u64;
            reading.skip(len as u64);
            if reading.at == 0 {
                markup = Markup::default();
            }
        }
        (markup.open.then_some(begin), markup, reading)
    }
}

/// The state needed to find the ends of tags (HTML standard, section 13.2.5): a `>` in a quoted value does not
/// end a tag.
#[derive(Clone, Copy, Debug, Default)]
struct Markup {
    open: bool,
    /// The quote that started a value of the open tag.
    quote: Option<u8>,
    /// The byte before was an `=`, so a quote starts a value.
    value: bool,
}

impl Markup {
    fn step(&mut self, byte: u8, next: Option<u8>) {
        match (self.open, self.quote) {
            (false, _) => {
                // The start of a tag, a comment or a declaration.
                self.open = byte == b'<'
                    && next.is_some_and(|next| next.is_ascii_alphabetic() || b"/!?".contains(&next));
            }
            (true, Some(quote)) if byte == quote => self.quote = None,
            (true, Some(_)) => {}
            (true, None) if byte == b'>' => *self = Markup::default(),
            (true, None) if self.value && b"\"'".contains(&byte) => self.quote = Some(byte),
            (true, None) => self.value = byte == b'=',
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(contents: &[&str]) -> Arc<Files> {
        let file =
            |(at, text): (usize, &&str)| File { name: format!("f{at}"), bytes: text.as_bytes().into() };
        Arc::new(Files(contents.iter().enumerate().map(file).collect()))
    }

    #[test]
    fn files_are_found_by_number_and_by_name() {
        let mut list = Files::clone(&files(&["a", "b", "c"]));
        assert_eq!([1, 3, 4].map(|name| list.index_of(name)), [Some(0), Some(2), Some(0)]);
        assert_eq!(list.find("f1"), Some(1));
        list.0.reverse();
        assert_eq!((list.find("f0"), list.find("f2"), list.find("f9")), (Some(2), Some(0), None));
        assert_eq!(Files(Vec::new()).index_of(7), None);
    }

    #[test]
    fn reading_goes_on_with_the_same_or_the_next_file() {
        let files = files(&["abc", "", "de"]);
        let read = |reading: Option<Reading>, steps: &[u64]| -> String {
            let mut reading = reading.unwrap();
            let mut out = String::new();
            for &step in steps {
                reading.skip(step);
                out.push(reading.chunk()[0] as char);
            }
            out
        };
        assert_eq!(read(Reading::onward(&files, 1), &[0, 1, 1, 1, 1, 1, 1_000_000]), "deabcdd");
        assert_eq!(read(Reading::repeated(&files, 0), &[0, 1, 1, 1, 3, 3_000_000_001]), "abcaab");
        assert!(Reading::repeated(&files, 1).is_none() && Reading::repeated(&files, 9).is_none());
        assert!(Reading::onward(&self::files(&["", ""]), 0).is_none());
    }

    #[test]
    fn tags_are_known_from_text() {
        let reading = Reading::onward(&files(&["a < b <i>c</i><br", "x>y<!-- z"]), 0).unwrap();
        // Position in the text, start of the open tag, first position outside.
        for (at, open, after) in [
            (3, None, 3),
            (6, None, 6),
            (7, Some(6), 9),
            (8, Some(6), 9),
            (9, None, 9),
            (12, Some(10), 14),
            (16, Some(14), 17),
            (17, None, 17),
            (19, None, 19),
            (21, Some(20), 26),
        ] {
            assert_eq!((reading.open_tag(at), reading.after_tag(at)), (open, after), "{at}");
        }
        let quoted = Reading::onward(&files(&["<a b=\"x>y\" c='>' d=e'>f"]), 0).unwrap();
        assert!((1..22).all(|at| quoted.after_tag(at) == 22 && quoted.open_tag(at) == Some(0)));
        assert_eq!(quoted.open_tag(22), None);
    }
}
