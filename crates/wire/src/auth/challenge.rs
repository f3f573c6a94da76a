//! The grammar that challenges and answers share (RFC 9110, sections 11.2 to 11.6).
//!
//! ```text
//! WWW-Authenticate: Basic realm="a", Digest realm="b", nonce="c"
//!                   └── challenge ─┘ └── challenge ─────────────┘
//! Authorization: Basic dXNlcjpwYXNz
//!                └scheme  └ token68
//! ```

use std::borrow::Cow;

/// A scheme with its token or parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge<'a> {
    /// Name of the scheme as sent; names are compared without regard to case.
    pub scheme: &'a str,
    /// The token68 that some schemes have instead of parameters.
    pub token: Option<&'a str>,
    /// Names as sent, values without quotes, in order.
    pub params: Vec<(&'a str, Cow<'a, str>)>,
}

impl Challenge<'_> {
    /// True if this is the scheme `name`.
    pub fn is(&self, name: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(name)
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.params.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_ref())
    }
}

/// All challenges of one field, or the credentials of an `Authorization` field. Of a malformed field, the
/// challenges before the error are returned. Several fields are read one after the other.
pub fn challenges(field: &[u8]) -> Vec<Challenge<'_>> {
    let mut found = Vec::new();
    if let Ok(text) = std::str::from_utf8(field) {
        Reader { rest: text }.read(&mut found);
    }
    found
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    /// Reads list items up to the end or to an error.
    fn read(&mut self, found: &mut Vec<Challenge<'a>>) {
        loop {
            self.skip(|c| matches!(c, ' ' | '\t' | ','));
            let word = self.word();
            if word.is_empty() {
                return;
            }
            // `name =` is a parameter of the challenge before; anything else starts a new challenge.
            let parameter = self.parameter(word);
            match (parameter, found.last_mut()) {
                (Parameter::Is(value), Some(challenge)) => challenge.params.push((word, value)),
                (Parameter::No, _) => {
                    self.skip(|c| c == ' ');
                    let token = self.token68();
                    found.push(Challenge { scheme: word, token, params: Vec::new() });
                    if token.is_none() && !self.first_parameter(found) {
                        return;
                    }
                }
                _ => return,
            }
            self.skip(|c| matches!(c, ' ' | '\t'));
            if !self.rest.is_empty() && !self.rest.starts_with(',') {
                return;
            }
        }
    }

    /// Reads the parameter that follows a scheme without a comma; false if something else follows.
    fn first_parameter(&mut self, found: &mut [Challenge<'a>]) -> bool {
        let word = self.word();
        if word.is_empty() {
            return true;
        }
        match (self.parameter(word), found.last_mut()) {
            (Parameter::Is(value), Some(challenge)) => challenge.params.push((word, value)),
            _ => return false,
        }
        true
    }

    fn skip(&mut self, skipped: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(skipped);
    }

    /// A token (RFC 9110, section 5.6.2), possibly empty.
    fn word(&mut self) -> &'a str {
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        let end = self.rest.bytes().position(|b| !is_token(b)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    /// Reads what follows a word: `= value`, or something else, which is left in place.
    fn parameter(&mut self, word: &str) -> Parameter<'a> {
        let Some(value) = self.rest.trim_start_matches([' ', '\t']).strip_prefix('=') else {
            return Parameter::No;
        };
        debug_assert!(!word.is_empty());
        self.rest = value.trim_start_matches([' ', '\t']);
        if let Some(inner) = self.rest.strip_prefix('"') {
            let Some((value, rest)) = quoted(inner) else { return Parameter::Broken };
            self.rest = rest;
            return Parameter::Is(value);
        }
        match self.word() {
            "" => Parameter::Broken,
            value => Parameter::Is(Cow::Borrowed(value)),
        }
    }

    /// Reads a token68 up to the end of the item; `None` without reading if there is none.
    fn token68(&mut self) -> Option<&'a str> {
        let is_char = |b: u8| b.is_ascii_alphanumeric() || b"-._~+/".contains(&b);
        let text = self.rest;
        let chars = text.bytes().position(|b| !is_char(b)).unwrap_or(text.len());
        let padding = text[chars..].bytes().take_while(|&b| b == b'=').count();
        let (token, rest) = text.split_at(chars + padding);
        let after = rest.trim_start_matches([' ', '\t']);
        if chars == 0 || !(after.is_empty() || after.starts_with(',')) {
            return None;
        }
        self.rest = rest;
        Some(token)
    }
}

enum Parameter<'a> {
    Is(Cow<'a, str>),
    No,
    Broken,
}

/// The text up to the closing quote, and the text after it.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let end = text.find(['"', '\\'])?;
    if text[end..].starts_with('"') {
        return Some((Cow::Borrowed(&text[..end]), &text[end + 1..]));
    }
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((Cow::Owned(value), &text[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            _ => value.push(c),
        }
    }
    None
}

/// Appends `value` in quotes, with the necessary escapes.
pub fn write_quoted(value: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in value.bytes() {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Challenges in a form that is easy to compare.
    fn shown(field: &str) -> String {
        let item = |challenge: &Challenge<'_>| {
            let params: Vec<_> =
                challenge.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("{}[{}]({})", challenge.scheme, challenge.token.unwrap_or(""), params.join("|"))
        };
        challenges(field.as_bytes()).iter().map(item).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn fields_by_example() {
        for (field, expected) in [
            ("Basic realm=\"a b\"", "Basic[](realm=a b)"),
            ("Basic realm=\"a\", Digest realm=\"b\", nonce=c", "Basic[](realm=a) Digest[](realm=b|nonce=c)"),
            (
                "Newauth realm=\"apps\", type=1, title=\"Login to \\\"apps\\\"\", Basic realm=\"simple\"",
                "Newauth[](realm=apps|type=1|title=Login to \"apps\") Basic[](realm=simple)",
            ),
            ("Negotiate, NTLM", "Negotiate[]() NTLM[]()"),
            ("Negotiate YII=, Basic realm=x", "Negotiate[YII=]() Basic[](realm=x)"),
            ("Basic dXNlcjpwYXNz", "Basic[dXNlcjpwYXNz]()"),
            (" , Digest  a = b ,, c=\"\" ,", "Digest[](a=b|c=)"),
            ("Digest a=b c=d, Basic", "Digest[](a=b)"),
            ("Digest a=\"open", "Digest[]()"),
            ("Digest a=, b=c", "Digest[a=](b=c)"),
            ("a=b", ""),
            ("", ""),
            ("\"x\"", ""),
        ] {
            assert_eq!(shown(field), expected, "{field}");
        }
        assert!(challenges(b"Basic realm=\"\xff\"").is_empty());
    }

    proptest! {
        #[test]
        fn quoted_values_round_trip(value in "[ -~\u{e9}]{0,30}", other in "[a-z]{1,5}") {
            let mut field = b"Digest x=".to_vec();
            write_quoted(&value, &mut field);
            field.extend_from_slice(format!(", y={other}").as_bytes());
            let found = challenges(&field);
            prop_assert_eq!(found.len(), 1);
            prop_assert_eq!(found[0].get("X"), Some(value.as_str()));
            prop_assert_eq!(found[0].get("y"), Some(other.as_str()));
        }

        #[test]
        fn random_text_never_panics(field in "[A-Za\u{e9}=,\" \\\\]{0,60}", bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = challenges(field.as_bytes());
            let _ = challenges(&bytes);
        }
    }
}
