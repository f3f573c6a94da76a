//! The names by which clients know a server.

use std::collections::BTreeMap;

/// The names of one server, prepared for lookups.
#[derive(Debug, Default)]
pub struct ServerNames {
    /// Position in the list of names, by authority: `host:port`, and `host` alone for the default port. Most servers have one name.
    exact: BTreeMap<Box<[u8]>, usize>,
    /// Suffixes of authorities, `.suffix:port`, with the position of the name.
    suffixes: Vec<(Vec<u8>, usize)>,
    any: bool,
    tls: bool,
}

impl ServerNames {
    /// Prepares the names in `list`, see [`ServerSpec::names`](crate::ServerSpec::names). `tls` says whether the scheme of the
    /// server is `https`.
    pub fn new(list: &[String], tls: bool) -> ServerNames {
        let mut names = ServerNames { any: list.is_empty(), tls, ..ServerNames::default() };
        for (index, name) in list.iter().enumerate() {
            let name = names.normal(name.as_bytes());
            let short = name.strip_suffix(names.default_port()).map(<[u8]>::to_vec);
            for name in short.into_iter().chain([name]) {
                match name.strip_prefix(b"*") {
                    Some(suffix) => names.suffixes.push((suffix.to_vec(), index)),
                    None => drop(names.exact.insert(name.into_boxed_slice(), index)),
                }
            }
        }
        names
    }

    /// The position of the name that matches `authority`; 0 if the server accepts any name.
    pub fn find(&self, authority: &[u8]) -> Option<usize> {
        if self.any {
            return Some(0);
        }
        if let Some(&index) = self.exact.get(authority) {
            return Some(index);
        }
        let name = self.normal(authority);
        let suffixes = || self.suffixes.iter().find(|(suffix, _)| name.ends_with(suffix));
        self.exact.get(name.as_slice()).copied().or_else(|| suffixes().map(|(_, index)| *index))
    }

    /// Whether `authority` is one of the names in the list, of which there may be none.
    pub fn lists(&self, authority: &[u8]) -> bool {
        !self.any && self.find(authority).is_some()
    }

    /// Whether the list of names was empty, so that every name is one of the server.
    pub fn is_any(&self) -> bool {
        self.any
    }

    /// The default port of the scheme, after a colon.
    fn default_port(&self) -> &'static [u8] {
        if self.tls { b":443" } else { b":80" }
    }

    /// Converts an authority to lower case and adds a missing port (RFC 9110, section 4.2.3).
    fn normal(&self, authority: &[u8]) -> Vec<u8> {
        let mut name = authority.to_ascii_lowercase();
        let digits = name.iter().rev().take_while(|b| b.is_ascii_digit()).count();
        if digits == 0 || !name[..name.len() - digits].ends_with(b":") {
            let port = self.default_port();
            name.extend_from_slice(if name.ends_with(b":") { &port[1..] } else { port });
        }
        name
    }
}

/// Whether an authority as received is this `host:port`; the default port of HTTP or HTTPS may be missing.
pub(crate) fn is_same(authority: &[u8], name: &str) -> bool {
    let name = name.as_bytes();
    let short = name.strip_suffix(b":80").or_else(|| name.strip_suffix(b":443"));
    authority.eq_ignore_ascii_case(name) || short.is_some_and(|short| authority.eq_ignore_ascii_case(short))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authorities_by_example() {
        for (authority, name, same) in [
            ("www:80", "www:80", true),
            ("WWW", "www:80", true),
            ("www", "www:443", true),
            ("www", "www:8080", false),
            ("www:80", "www:443", false),
            ("", "www:80", false),
        ] {
            assert_eq!(is_same(authority.as_bytes(), name), same, "{authority} {name}");
        }
    }

    #[test]
    fn names_by_example() {
        let list = ["www.Example.com:80", "10.0.0.1:8080", "*.dyn.example:90", "[::1]:80"].map(String::from);
        let names = ServerNames::new(&list, false);
        for (authority, expected) in [
            ("www.example.com", Some(0)),
            ("WWW.example.com:80", Some(0)),
            ("www.example.com:", Some(0)),
            ("www.example.com:81", None),
            ("10.0.0.1:8080", Some(1)),
            ("10.0.0.1", None),
            ("w0000000000000001.dyn.example:90", Some(2)),
            ("dyn.example:90", None),
            ("w0000000000000001.dyn.example", None),
            ("[::1]", Some(3)),
            ("", None),
        ] {
            assert_eq!(names.find(authority.as_bytes()), expected, "{authority}");
        }
        let any = ServerNames::new(&[], false);
        assert_eq!((any.find(b"anything"), any.lists(b"anything")), (Some(0), false));
        assert!(names.lists(b"www.example.com") && !names.lists(b"other"));
    }
}
