//! Regular expressions of access rules, as a program describes them.

use std::sync::Arc;

use crate::value::{ArrayLimit, MAX_DEPTH, MAX_ITEMS};

/// The part of a request that an expression is matched with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatchScope {
    /// The whole URL.
    Url,
    /// The host name.
    UrlHost,
    /// The mapped IPs of the host, separated by commas.
    UrlHostIp,
    /// The path.
    UrlPath,
    /// The group of the user.
    UserGroup,
}

impl MatchScope {
    /// All scopes with their keywords.
    pub const ALL: &'static [(&'static str, MatchScope)] = &[
        ("url", MatchScope::Url),
        ("url_host", MatchScope::UrlHost),
        ("url_host_ip", MatchScope::UrlHostIp),
        ("url_path", MatchScope::UrlPath),
        ("user_group", MatchScope::UserGroup),
    ];

    /// The keyword of this scope.
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(_, scope)| *scope == self).map_or("url", |(word, _)| word)
    }
}

/// One expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// The part of a request that is matched.
    pub scope: MatchScope,
    /// True for `==`: the whole text must match; false for `=~`: a part suffices.
    pub exact: bool,
    /// POSIX extended syntax for searches with any of `| * + ? { [ (`, else plain text.
    pub text: String,
    /// True if letter case does not matter.
    pub ignore_case: bool,
}

/// Expressions combined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matcher {
    /// One expression.
    Pattern(Pattern),
    /// The negation `!x`.
    Not(Arc<Re>),
    /// `x && y`
    All(Vec<Arc<Re>>),
    /// `x || y`, `anyOf(...)`
    Any(Vec<Arc<Re>>),
    /// `x ^^ y`
    Xor(Arc<Re>, Arc<Re>),
}

/// A regular expression, or several combined, with its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Re {
    /// The expression.
    pub matcher: Matcher,
    depth: u32,
    weight: u64,
}

impl Re {
    /// Measures an expression.
    ///
    /// # Errors
    /// If it is too large or nested too deeply.
    pub fn new(matcher: Matcher) -> Result<Self, ArrayLimit> {
        let parts: &[Arc<Re>] = match &matcher {
            Matcher::Pattern(_) => &[],
            Matcher::Not(inner) => std::slice::from_ref(inner),
            Matcher::All(list) | Matcher::Any(list) => list,
            Matcher::Xor(a, b) => &[a.clone(), b.clone()],
        };
        let depth = 1 + parts.iter().map(|part| part.depth).max().unwrap_or(0);
        let weight = parts.iter().fold(1, |n: u64, part| n.saturating_add(part.weight));
        if depth > MAX_DEPTH {
            return Err(ArrayLimit::Depth);
        }
        if weight > MAX_ITEMS {
            return Err(ArrayLimit::Items);
        }
        Ok(Self { matcher, depth, weight })
    }
}

impl std::fmt::Display for Re {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let join = |f: &mut std::fmt::Formatter<'_>, list: &[Arc<Re>], sign: &str| {
            f.write_str("(")?;
            for (index, item) in list.iter().enumerate() {
                if index > 0 {
                    f.write_str(sign)?;
                }
                write!(f, "{item}")?;
            }
            f.write_str(")")
        };
        match &self.matcher {
            Matcher::Pattern(pattern) => {
                let sign = if pattern.exact { "==" } else { "=~" };
                let flags = if pattern.ignore_case { "i" } else { "C" };
                write!(f, "{} {sign}/{}/{flags}", pattern.scope.word(), pattern.text.replace('/', "\\/"))
            }
            Matcher::Not(inner) => write!(f, "!({inner})"),
            Matcher::All(list) => join(f, list, " && "),
            Matcher::Any(list) => join(f, list, " || "),
            Matcher::Xor(a, b) => write!(f, "({a} ^^ {b})"),
        }
    }
}
