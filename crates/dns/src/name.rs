//! Domain names in canonical form.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use domain::base::name::FlattenInto;
use domain::base::{Name, ParsedName};

/// A domain name in canonical form: labels as on the wire (RFC 1035, section 3.1), without compression, in lower case
/// (RFC 4343). Clones are cheap.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct DomainName(Arc<[u8]>);

/// The error for a text that is not a domain name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{name}' is not a domain name: {reason}")]
pub struct BadName {
    /// The text.
    pub name: String,
    /// The problem.
    pub reason: String,
}

impl DomainName {
    /// Parses `www.example.com`, with or without a dot at its end, in any case; `.` is the root.
    ///
    /// # Errors
    /// If a label is empty or longer than 63 bytes, the name longer than 255, or not ASCII.
    pub fn parse(text: &str) -> Result<DomainName, BadName> {
        let bad = |reason: String| BadName { name: text.to_owned(), reason };
        if text.is_empty() {
            return Err(bad("it is empty".to_owned()));
        }
        let name = Name::<Vec<u8>>::from_str(text).map_err(|error| bad(error.to_string()))?;
        Ok(DomainName::canonical(name))
    }

    fn canonical(mut name: Name<Vec<u8>>) -> DomainName {
        name.make_canonical();
        DomainName(name.as_slice().into())
    }

    /// Converts a name in a message.
    pub(crate) fn from_message(name: ParsedName<&[u8]>) -> DomainName {
        DomainName::canonical(name.flatten_into())
    }

    /// The name in the form of the wire library.
    pub(crate) fn wire(&self) -> &Name<[u8]> {
        Name::from_slice(&self.0).expect("made from a name")
    }

    /// The canonical forms of the name, its parent and so on up to the root.
    pub(crate) fn suffixes(&self) -> impl Iterator<Item = &[u8]> {
        let all: &[u8] = &self.0;
        std::iter::successors(Some(all), |name: &&[u8]| {
            let name: &[u8] = name;
            match name[0] {
                0 => None,
                length => Some(&name[usize::from(length) + 1..]),
            }
        })
    }

    /// Converts a suffix to a name.
    pub(crate) fn of_suffix(suffix: &[u8]) -> DomainName {
        DomainName(suffix.into())
    }
}

impl Borrow<[u8]> for DomainName {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl FromStr for DomainName {
    type Err = BadName;

    fn from_str(text: &str) -> Result<DomainName, BadName> {
        DomainName::parse(text)
    }
}

impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.wire(), f)
    }
}

impl fmt::Debug for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.wire(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_shown() {
        #[track_caller]
        fn check(text: &str, shown: &str) {
            assert_eq!(DomainName::parse(text).unwrap().to_string(), shown);
        }
        check("W1.Bench.TST", "w1.bench.tst");
        check("w1.bench.tst.", "w1.bench.tst");
        check("*.bench.tst", "*.bench.tst");
        check("under_score.x", "under_score.x");
        check(".", ".");
        check(&format!("{}.x", "a".repeat(63)), &format!("{}.x", "a".repeat(63)));
    }

    #[test]
    fn what_is_no_name() {
        for text in ["", "a..b", ".a", "ä.b", &"a".repeat(64), &"abc.".repeat(64)] {
            assert!(DomainName::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn suffixes_end_with_the_root() {
        let name = DomainName::parse("a.bc.d").unwrap();
        let all: Vec<_> = name.suffixes().map(|s| DomainName::of_suffix(s).to_string()).collect();
        assert_eq!(all, ["a.bc.d", "bc.d", "d", "."]);
    }
}
