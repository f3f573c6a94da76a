//! Versions of HTTP.

use serde::{Deserialize, Serialize};

/// A version of HTTP that robots and servers speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum HttpVersion {
    /// HTTP/1.0 (RFC 1945).
    Http10,
    /// HTTP/1.1 (RFC 9112).
    #[default]
    Http11,
    /// HTTP/2 (RFC 9113).
    Http2,
    /// HTTP/3 (RFC 9114).
    Http3,
}

impl HttpVersion {
    /// Number of versions.
    pub const COUNT: usize = 4;
    /// All versions, in the order of their age.
    pub const ALL: [HttpVersion; HttpVersion::COUNT] =
        [HttpVersion::Http10, HttpVersion::Http11, HttpVersion::Http2, HttpVersion::Http3];

    /// The version as written in the language and on command lines.
    pub fn word(self) -> &'static str {
        match self {
            HttpVersion::Http10 => "1.0",
            HttpVersion::Http11 => "1.1",
            HttpVersion::Http2 => "2",
            HttpVersion::Http3 => "3",
        }
    }

    /// The version as people write it.
    pub fn title(self) -> &'static str {
        match self {
            HttpVersion::Http10 => "HTTP/1.0",
            HttpVersion::Http11 => "HTTP/1.1",
            HttpVersion::Http2 => "HTTP/2",
            HttpVersion::Http3 => "HTTP/3",
        }
    }

    /// The version with this word.
    pub fn from_word(word: &str) -> Option<HttpVersion> {
        HttpVersion::ALL.into_iter().find(|version| version.word() == word)
    }

    /// The minor version in the HTTP/1 form of messages: 0 for HTTP/1.0, otherwise 1.
    pub fn minor(self) -> u8 {
        u8::from(self != HttpVersion::Http10)
    }

    /// Whether many exchanges share a connection at the same time.
    pub fn is_multiplexed(self) -> bool {
        matches!(self, HttpVersion::Http2 | HttpVersion::Http3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_back() {
        for version in HttpVersion::ALL {
            assert_eq!(HttpVersion::from_word(version.word()), Some(version));
        }
        assert_eq!(HttpVersion::from_word("2.0"), None);
    }
}
