//! The static table of HPACK (RFC 7541, appendix A).

/// The entries: names and values. The first has number 1.
pub const ENTRIES: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// The numbers of some entries.
pub mod number {
    /// `:authority`.
    pub const AUTHORITY: usize = 1;
    /// `:method`, with the value `GET`; `POST` is the next.
    pub const METHOD: usize = 2;
    /// `:path`, with the value `/`.
    pub const PATH: usize = 4;
    /// `:scheme`, with the value `http`; `https` is the next.
    pub const SCHEME: usize = 6;
    /// `:status`, with the value 200. Six others follow.
    pub const STATUS: usize = 8;
    /// `accept-encoding`, the only one of the other fields that has a value.
    pub const ACCEPT_ENCODING: usize = 16;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some positions of the standard, which shift if an entry is missing.
    #[test]
    fn entries_are_where_the_standard_has_them() {
        for (place, name, value) in [
            (number::AUTHORITY, ":authority", ""),
            (number::METHOD, ":method", "GET"),
            (number::PATH, ":path", "/"),
            (number::SCHEME, ":scheme", "http"),
            (number::STATUS, ":status", "200"),
            (14, ":status", "500"),
            (number::ACCEPT_ENCODING, "accept-encoding", "gzip, deflate"),
            (24, "cache-control", ""),
            (33, "date", ""),
            (44, "last-modified", ""),
            (54, "server", ""),
            (58, "user-agent", ""),
            (61, "www-authenticate", ""),
        ] {
            assert_eq!(ENTRIES[place - 1], (name, value));
        }
    }
}
