//! Names that travel in messages and become file names or parts of subjects. They can be built only if they are harmless.

use std::fmt::{self, Display, Formatter};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The longest name of an agent or a run.
const LONGEST: usize = 64;

/// A name that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not the name of {what}: {rule}")]
pub struct BadName {
    text: String,
    what: &'static str,
    rule: &'static str,
}

const PLAIN: &str = "use 1 to 64 letters, digits, `-` and `_`, and start with a letter or a digit";

fn plain(text: String, what: &'static str) -> Result<String, BadName> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let starts = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    match starts && text.len() <= LONGEST && text.chars().all(is_plain) {
        true => Ok(text),
        false => Err(BadName { text, what, rule: PLAIN }),
    }
}

/// The name of an agent, which no other agent of its fleet has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentName(String);

impl AgentName {
    /// The name that a host has by default: its host name up to the first dot, with `-` for what names cannot have.
    pub fn of_host(host: &str) -> AgentName {
        let first = host.split('.').next().unwrap_or_default();
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        let name: String = first.chars().map(plain).take(LONGEST).collect();
        let name = name.trim_start_matches(['-', '_']);
        AgentName(if name.is_empty() { "host".to_owned() } else { name.to_owned() })
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for AgentName {
    type Error = BadName;

    fn try_from(text: String) -> Result<AgentName, BadName> {
        plain(text, "an agent").map(AgentName)
    }
}

impl std::str::FromStr for AgentName {
    type Err = BadName;

    fn from_str(text: &str) -> Result<AgentName, BadName> {
        AgentName::try_from(text.to_owned())
    }
}

impl From<AgentName> for String {
    fn from(name: AgentName) -> String {
        name.0
    }
}

impl Display for AgentName {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The id of a run, by which agents know it after its end, too.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

impl RunId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for RunId {
    type Error = BadName;

    fn try_from(text: String) -> Result<RunId, BadName> {
        plain(text, "a run").map(RunId)
    }
}

impl std::str::FromStr for RunId {
    type Err = BadName;

    fn from_str(text: &str) -> Result<RunId, BadName> {
        RunId::try_from(text.to_owned())
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> String {
        id.0
    }
}

impl Display for RunId {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A path below a directory, which cannot lead out of it. The empty path is the directory itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RelativePath(String);

impl RelativePath {
    /// The place of this path below `directory`.
    pub fn below(&self, directory: &Path) -> PathBuf {
        if self.0.is_empty() { directory.to_owned() } else { directory.join(&self.0) }
    }
}

impl TryFrom<String> for RelativePath {
    type Error = BadName;

    fn try_from(text: String) -> Result<RelativePath, BadName> {
        let inside = Path::new(&text).components().all(|part| matches!(part, Component::Normal(_)));
        match inside && text.len() <= 4096 && !text.contains('\0') {
            true => Ok(RelativePath(text)),
            false => {
                let rule = "it must lead to a place below the directory of the run";
                Err(BadName { text, what: "a file of a run", rule })
            }
        }
    }
}

impl From<RelativePath> for String {
    fn from(path: RelativePath) -> String {
        path.0
    }
}

impl Display for RelativePath {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_harmless() {
        for good in ["a", "clt1", "9-x_Y", &"n".repeat(64)] {
            assert_eq!(good.parse::<AgentName>().unwrap().as_str(), good);
        }
        for bad in ["", "-a", "_a", "a.b", "a b", "a/b", "*", ">", "ä", &"n".repeat(65)] {
            assert!(bad.parse::<AgentName>().is_err() && bad.parse::<RunId>().is_err(), "{bad}");
        }
    }

    #[test]
    fn paths_stay_in_their_directory() {
        let path = |text: &str| RelativePath::try_from(text.to_owned());
        assert_eq!(path("a/b.pg").unwrap().below(Path::new("/x")), Path::new("/x/a/b.pg"));
        assert_eq!(path("").unwrap().below(Path::new("/x")), Path::new("/x"));
        for bad in ["/etc/passwd", "../x", "a/../../x", "..", "a\0b"] {
            assert!(path(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn hosts_have_default_names() {
        for (host, name) in
            [("clt1.lab.example", "clt1"), ("pc_7", "pc_7"), ("-odd-", "odd-"), ("", "host"), ("über", "ber")]
        {
            assert_eq!(AgentName::of_host(host).as_str(), name);
            assert!(name.parse::<AgentName>().is_ok());
        }
    }
}
