//! The rules by which robots choose requests.

use std::str::FromStr;

/// Sets of rules (`docs/compat.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compat {
    /// The rules of this program, which are made for judging devices.
    None,
    /// The rules of Web Polygraph 4.9, for comparison with its results.
    V4_9,
}

impl Compat {
    /// The name of the set in workloads and on command lines.
    pub fn word(self) -> &'static str {
        match self {
            Compat::None => "none",
            Compat::V4_9 => "4.9",
        }
    }
}

impl FromStr for Compat {
    type Err = String;

    fn from_str(text: &str) -> Result<Compat, String> {
        let known = [Compat::None, Compat::V4_9].into_iter().find(|compat| compat.word() == text);
        known.ok_or_else(|| format!("there are no rules of `{text}`: write 4.9 or none"))
    }
}
