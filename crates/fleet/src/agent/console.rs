//! What a process has printed, read from the file that it prints to.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// How many lines are remembered.
const REMEMBERED: usize = 24;
/// How many characters of a line are remembered.
const LONGEST_LINE: usize = 300;
/// How much is read at a time.
const PIECE: u64 = 1 << 20;

/// The end of a file that grows.
#[derive(Debug)]
pub(super) struct Console {
    path: PathBuf,
    read: u64,
    unfinished: Vec<u8>,
    /// Number of lines so far.
    pub lines: u64,
    /// The last of them.
    pub last: VecDeque<String>,
}

impl Console {
    pub fn new(path: &Path) -> Console {
        Console { path: path.to_owned(), read: 0, unfinished: Vec::new(), lines: 0, last: VecDeque::new() }
    }

    /// Reads what is new, and returns the new lines. A file that cannot be read has none.
    pub fn new_lines(&mut self) -> Vec<String> {
        let mut bytes = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.read))?;
            file.take(PIECE).read_to_end(&mut bytes)
        });
        self.read += read.unwrap_or(0) as u64;
        let mut new = Vec::new();
        for byte in bytes {
            if byte == b'\n' {
                let line = String::from_utf8_lossy(&self.unfinished).trim_end().to_owned();
                new.push(line.chars().take(LONGEST_LINE).collect::<String>());
                self.unfinished.clear();
            } else {
                self.unfinished.push(byte);
            }
        }
        self.lines += new.len() as u64;
        self.last.extend(new.iter().cloned());
        let surplus = self.last.len().saturating_sub(REMEMBERED);
        self.last.drain(..surplus);
        new
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn lines_come_once_and_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("console.txt");
        let mut console = Console::new(&path);
        assert!(console.new_lines().is_empty());
        let mut file = File::create(&path).unwrap();
        write!(file, "one\ntw").unwrap();
        assert_eq!(console.new_lines(), ["one"]);
        write!(file, "o\n{}\n", "x".repeat(400)).unwrap();
        assert_eq!(console.new_lines(), ["two".to_owned(), "x".repeat(300)]);
        for number in 0..30 {
            writeln!(file, "{number}").unwrap();
        }
        assert_eq!(console.new_lines().len(), 30);
        assert_eq!((console.lines, console.last.len(), console.last[0].as_str()), (33, 24, "6"));
    }
}
