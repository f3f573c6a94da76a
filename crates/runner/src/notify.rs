//! Messages for the user before the end of a run.

/// A message for the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A fact that is useful to know.
    Note(String),
    /// Something that may spoil the run.
    Warning(String),
}

/// Shows a message.
pub type Notify = fn(Notice);
