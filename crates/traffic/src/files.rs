//! Real content, loaded by whoever may do I/O.

/// A file or database entry.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct File {
    /// Name relative to its directory; empty for entries of databases.
    pub name: String,
    /// Content.
    pub bytes: Vec<u8>,
}

/// A non-empty list of files or database entries.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Files(pub Vec<File>);

impl Files {
    /// The file of object number `name` (from 1): files are used in turn.
    pub fn of_name(&self, name: u64) -> Option<&File> {
        let index = name.wrapping_sub(1) % (self.0.len() as u64).max(1);
        self.0.get(index as usize)
    }

    /// Position of the file with this name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.0.iter().position(|file| file.name == name)
    }
}
