//! Field names that the encoder looks up at once.

use super::static_table::ENTRIES;
use crate::name_index::NameIndex;

/// What is known about a field name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name in lower case.
    pub text: &'static str,
    /// Its first entry of the static table, from 1; 0 if there is none.
    pub number: u8,
    /// Whether values repeat. Those of the others are new nearly each time, or secret.
    pub repeats: bool,
}

/// Names of the static table whose values do not repeat: they depend on the message or on the time, or they are secret.
const CHANGING: [&str; 20] = [
    "age",
    "authorization",
    "content-length",
    "content-location",
    "content-range",
    "cookie",
    "date",
    "etag",
    "expires",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "proxy-authorization",
    "range",
    "referer",
    "set-cookie",
];

/// Other names whose values do not repeat: the fields of the benchmark, and digests.
const OTHERS: [&str; 12] = [
    "content-digest",
    "content-md5",
    "digest",
    "x-abort",
    "x-contents",
    "x-loc-world",
    "x-phase-sync-gone",
    "x-phase-sync-pos",
    "x-phase-sync-wait",
    "x-rem-world",
    "x-target",
    "x-xact",
];

/// The number of entries of the static table before the first that is not of a pseudo-header field.
const PSEUDO: usize = 14;

const COUNT: usize = ENTRIES.len() - PSEUDO + OTHERS.len();

const NAMES: [Name; COUNT] = {
    let mut names = [Name { text: "", number: 0, repeats: false }; COUNT];
    let mut at = 0;
    while at < COUNT {
        let place = PSEUDO + at;
        names[at] = match place < ENTRIES.len() {
            true => {
                let text = ENTRIES[place].0;
                Name { text, number: place as u8 + 1, repeats: !is_changing(text) }
            }
            false => Name { text: OTHERS[place - ENTRIES.len()], number: 0, repeats: false },
        };
        at += 1;
    }
    names
};

const fn is_changing(name: &str) -> bool {
    let mut at = 0;
    while at < CHANGING.len() {
        if is_same(CHANGING[at].as_bytes(), name.as_bytes()) {
            return true;
        }
        at += 1;
    }
    false
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let (mut at, same_length) = (0, one.len() == other.len());
    while same_length && at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    same_length
}

static ALL: [Name; COUNT] = NAMES;

static INDEX: NameIndex = {
    const TEXTS: [&str; COUNT] = {
        let mut texts = [""; COUNT];
        let mut at = 0;
        while at < COUNT {
            texts[at] = NAMES[at].text;
            at += 1;
        }
        texts
    };
    NameIndex::new(&TEXTS)
};

/// What is known about a field name, in any case. Names of pseudo-header fields are not known.
pub fn find(name: &str) -> Option<&'static Name> {
    INDEX.find(name).next().map(|number| &ALL[number])
}

/// As [`find`], for constants.
pub const fn search(name: &str) -> Option<Name> {
    let mut at = 0;
    while at < COUNT {
        if NAMES[at].text.eq_ignore_ascii_case(name) {
            return Some(NAMES[at]);
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found() {
        for (at, (name, _)) in ENTRIES.iter().enumerate().skip(PSEUDO) {
            let found = find(&name.to_ascii_uppercase()).unwrap();
            assert_eq!(search(&name.to_ascii_uppercase()), Some(*found));
            assert_eq!((found.text, usize::from(found.number)), (*name, at + 1));
        }
        for name in OTHERS {
            assert_eq!(find(name).map(|found| (found.number, found.repeats)), Some((0, false)), "{name}");
        }
        for name in CHANGING {
            assert!(!find(name).unwrap().repeats, "{name}");
        }
        assert!(find("Accept").unwrap().repeats && find("server").unwrap().repeats);
        for name in ["", "x", "x-other", ":path", "accepu", "\u{e9}\u{e9}"] {
            assert_eq!((find(name), search(name)), (None, None), "{name}");
        }
    }

    #[test]
    fn searches_are_short() {
        assert!(INDEX.longest() <= 12, "{}", INDEX.longest());
    }
}
