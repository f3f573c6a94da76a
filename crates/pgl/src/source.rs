//! Source texts: files, their names and positions, and the loader that reads them.

use std::io::{self, Read};

use serde::Serialize;

/// Index of one source text in a [`SourceMap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct FileId(pub u32);

/// A range of bytes in one source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Span {
    /// The text this range belongs to.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// A range of bytes in `file`.
    pub fn new(file: FileId, start: usize, end: usize) -> Self {
        Self { file, start: start as u32, end: end as u32 }
    }

    /// The smallest range that covers both; `self` alone if the two come from different texts.
    pub fn to(self, other: Span) -> Span {
        if self.file != other.file {
            return self;
        }
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The empty range after this one, where something is missing.
    pub fn after(self) -> Span {
        Span { start: self.end, ..self }
    }

    /// A part of this range, `from..to` counted from its start and clipped to it.
    pub fn part(self, from: usize, to: usize) -> Span {
        let start = self.start.saturating_add(from as u32).min(self.end);
        let end = self.start.saturating_add(to as u32).clamp(start, self.end);
        Span { file: self.file, start, end }
    }
}

/// One text that took part in a compilation.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// The path of the file, for messages.
    pub name: String,
    /// The whole text. Bytes that are not UTF-8 were replaced.
    pub text: String,
    /// The directive or back-quoted command that included this text; `None` for the main file.
    pub included_from: Option<Span>,
    line_starts: Vec<u32>,
}

impl SourceFile {
    /// Line and column of a byte, both from 1; columns count characters.
    pub fn line_col(&self, offset: u32) -> (usize, usize) {
        let line = self.line(offset);
        let start = self.line_starts[line] as usize;
        let end = (offset as usize).min(self.text.len());
        let column = self.text.get(start..end).map_or(0, |text| text.chars().count());
        (line + 1, column + 1)
    }

    /// The line of a byte, from 0.
    pub fn line(&self, offset: u32) -> usize {
        self.line_starts.partition_point(|&start| start <= offset).max(1) - 1
    }

    /// First byte of a line counted from 0.
    pub fn line_start(&self, line: usize) -> Option<u32> {
        self.line_starts.get(line).copied()
    }
}

/// All texts of one compilation.
#[derive(Debug, Clone, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

impl SourceMap {
    /// Adds a text and gives its index.
    pub fn add(&mut self, name: &str, text: String, included_from: Option<Span>) -> FileId {
        let line_starts =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at as u32 + 1)).collect();
        self.files.push(SourceFile { name: name.to_owned(), text, included_from, line_starts });
        FileId(self.files.len() as u32 - 1)
    }

    /// The text with this index.
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    pub(crate) fn text_mut(&mut self, id: FileId) -> &mut SourceFile {
        &mut self.files[id.0 as usize]
    }

    /// All texts in the order they were read.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// All texts as one, each under a comment with its name unless it is the only one. Logs keep it, for
    /// readers and for comparison with the program of another process.
    pub fn listing(&self) -> String {
        let mut out = String::new();
        for file in &self.files {
            if self.files.len() > 1 {
                out.push_str(&format!("// ---- {}\n", file.name));
            }
            out.push_str(file.text.trim_end());
            out.push('\n');
        }
        out
    }

    /// The text of a range.
    pub fn slice(&self, span: Span) -> &str {
        self.file(span.file).text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// `file:line:column` of the start of a range.
    pub fn place(&self, span: Span) -> String {
        let file = self.file(span.file);
        let (line, column) = file.line_col(span.start);
        format!("{}:{line}:{column}", file.name)
    }
}

/// The kinds of files that a workload names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A database of contents.
    ContentDb,
    /// A directory whose files are contents.
    DocumentRoot,
    /// Texts to insert.
    TextDb,
    /// A trace with URLs of foreign servers.
    Trace,
}

/// Reads files and, if the caller allows it, runs commands. The command line uses [`DiskLoader`]; tests and the
/// language server keep their files in memory.
pub trait Loader {
    /// The bytes of the file at `path`.
    ///
    /// # Errors
    /// If the file cannot be read.
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;

    /// The names in a directory, those of directories with a `/` at their end; empty if the directory cannot be
    /// read.
    fn list(&self, _directory: &str) -> Vec<String> {
        Vec::new()
    }

    /// The directory of files that every workload may include by their bare names. It is searched last.
    fn library(&self) -> Option<&str> {
        None
    }

    /// Whether a file belongs to the library. Such files do not include files of the working directory, which may
    /// have the same names.
    fn is_library(&self, _path: &str) -> bool {
        false
    }

    /// Checks that a file or directory that a workload names exists and is of this kind. By default nothing is
    /// checked.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    fn look(&self, _kind: FileKind, _path: &str) -> Result<(), String> {
        Ok(())
    }

    /// Standard output of a shell command. It is called only if [`crate::Options::allow_exec`] is set.
    ///
    /// # Errors
    /// If commands are not supported, or the command fails.
    fn run(&self, _command: &str) -> io::Result<String> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this loader runs no commands"))
    }
}

/// The largest number of bytes read of a file: one more than a program may have, so that exceeding the limit is
/// noticed.
const MOST: u64 = (64 << 20) + 1;

/// The largest number of directory entries that are listed.
const MOST_LISTED: usize = 10_000;

/// Reads from the file system; `-` is standard input.
#[derive(Debug, Default, Clone, Copy)]
pub struct DiskLoader;

impl Loader for DiskLoader {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        if path == "-" {
            let mut bytes = Vec::new();
            io::stdin().take(MOST).read_to_end(&mut bytes)?;
            return Ok(bytes);
        }
        // A device or a pipe could deliver bytes for ever, so only plain files and standard input are read.
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a plain file"));
        }
        let mut bytes = Vec::new();
        std::fs::File::open(path)?.take(MOST).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn list(&self, directory: &str) -> Vec<String> {
        let name = |entry: io::Result<std::fs::DirEntry>| {
            let entry = entry.ok()?;
            let folder = if entry.file_type().ok()?.is_dir() { "/" } else { "" };
            Some(entry.file_name().into_string().ok()? + folder)
        };
        std::fs::read_dir(directory)
            .map_or(Vec::new(), |all| all.take(MOST_LISTED).filter_map(name).collect())
    }

    #[expect(clippy::disallowed_methods, reason = "workloads may contain commands; the caller allows them")]
    fn run(&self, command: &str) -> io::Result<String> {
        let output = std::process::Command::new("/bin/sh").arg("-c").arg(command).output()?;
        if !output.status.success() {
            return Err(io::Error::other(format!("the command ended with {}", output.status)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Files kept in memory, by name.
#[derive(Debug, Default, Clone)]
pub struct MemoryLoader {
    files: std::collections::BTreeMap<String, Vec<u8>>,
}

impl MemoryLoader {
    /// Adds or replaces a file.
    pub fn with(mut self, name: &str, text: impl Into<Vec<u8>>) -> Self {
        self.files.insert(name.to_owned(), text.into());
        self
    }
}

impl Loader for MemoryLoader {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.files.get(path).cloned().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such file"))
    }
}
