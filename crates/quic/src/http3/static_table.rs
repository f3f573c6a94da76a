//! The static table of QPACK (RFC 9204, appendix A).

use polygraph_multiplex::name_index::NameIndex;

/// The entries: names and values.
pub const ENTRIES: [(&str, &str); 99] = [
    (":authority", ""),
    (":path", "/"),
    ("age", "0"),
    ("content-disposition", ""),
    ("content-length", "0"),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("referer", ""),
    ("set-cookie", ""),
    (":method", "CONNECT"),
    (":method", "DELETE"),
    (":method", "GET"),
    (":method", "HEAD"),
    (":method", "OPTIONS"),
    (":method", "POST"),
    (":method", "PUT"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "103"),
    (":status", "200"),
    (":status", "304"),
    (":status", "404"),
    (":status", "503"),
    ("accept", "*/*"),
    ("accept", "application/dns-message"),
    ("accept-encoding", "gzip, deflate, br"),
    ("accept-ranges", "bytes"),
    ("access-control-allow-headers", "cache-control"),
    ("access-control-allow-headers", "content-type"),
    ("access-control-allow-origin", "*"),
    ("cache-control", "max-age=0"),
    ("cache-control", "max-age=2592000"),
    ("cache-control", "max-age=604800"),
    ("cache-control", "no-cache"),
    ("cache-control", "no-store"),
    ("cache-control", "public, max-age=31536000"),
    ("content-encoding", "br"),
    ("content-encoding", "gzip"),
    ("content-type", "application/dns-message"),
    ("content-type", "application/javascript"),
    ("content-type", "application/json"),
    ("content-type", "application/x-www-form-urlencoded"),
    ("content-type", "image/gif"),
    ("content-type", "image/jpeg"),
    ("content-type", "image/png"),
    ("content-type", "text/css"),
    ("content-type", "text/html; charset=utf-8"),
    ("content-type", "text/plain"),
    ("content-type", "text/plain;charset=utf-8"),
    ("range", "bytes=0-"),
    ("strict-transport-security", "max-age=31536000"),
    ("strict-transport-security", "max-age=31536000; includesubdomains"),
    ("strict-transport-security", "max-age=31536000; includesubdomains; preload"),
    ("vary", "accept-encoding"),
    ("vary", "origin"),
    ("x-content-type-options", "nosniff"),
    ("x-xss-protection", "1; mode=block"),
    (":status", "100"),
    (":status", "204"),
    (":status", "206"),
    (":status", "302"),
    (":status", "400"),
    (":status", "403"),
    (":status", "421"),
    (":status", "425"),
    (":status", "500"),
    ("accept-language", ""),
    ("access-control-allow-credentials", "FALSE"),
    ("access-control-allow-credentials", "TRUE"),
    ("access-control-allow-headers", "*"),
    ("access-control-allow-methods", "get"),
    ("access-control-allow-methods", "get, post, options"),
    ("access-control-allow-methods", "options"),
    ("access-control-expose-headers", "content-length"),
    ("access-control-request-headers", "content-type"),
    ("access-control-request-method", "get"),
    ("access-control-request-method", "post"),
    ("alt-svc", "clear"),
    ("authorization", ""),
    ("content-security-policy", "script-src 'none'; object-src 'none'; base-uri 'none'"),
    ("early-data", "1"),
    ("expect-ct", ""),
    ("forwarded", ""),
    ("if-range", ""),
    ("origin", ""),
    ("purpose", "prefetch"),
    ("server", ""),
    ("timing-allow-origin", "*"),
    ("upgrade-insecure-requests", "1"),
    ("user-agent", ""),
    ("x-forwarded-for", ""),
    ("x-frame-options", "deny"),
    ("x-frame-options", "sameorigin"),
];

/// Entries for what each request has.
pub mod usual {
    /// `:authority`, with another value.
    pub const AUTHORITY: u8 = 0;
    /// `:path`, with another value.
    pub const PATH: u8 = 1;
    /// `:method: GET`.
    pub const GET: u8 = 17;
    /// `:scheme: https`.
    pub const HTTPS: u8 = 23;
}

/// For each entry, the first one with its name.
const FIRST_OF: [u8; ENTRIES.len()] = {
    let mut first_of = [0; ENTRIES.len()];
    let mut at = 0;
    while at < ENTRIES.len() {
        let mut first = 0;
        while !ENTRIES[first].0.eq_ignore_ascii_case(ENTRIES[at].0) {
            first += 1;
        }
        first_of[at] = first as u8;
        at += 1;
    }
    first_of
};

/// The number of different names.
const NAMES: usize = {
    let (mut count, mut at) = (0, 0);
    while at < ENTRIES.len() {
        count += (FIRST_OF[at] as usize == at) as usize;
        at += 1;
    }
    count
};

/// The first entry of each name.
const FIRST: [u8; NAMES] = {
    let mut first = [0; NAMES];
    let (mut count, mut at) = (0, 0);
    while at < ENTRIES.len() {
        if FIRST_OF[at] as usize == at {
            first[count] = at as u8;
            count += 1;
        }
        at += 1;
    }
    first
};

/// For each entry, the next one with its name; 0 if there is none.
static NEXT: [u8; ENTRIES.len()] = {
    let mut next = [0; ENTRIES.len()];
    let mut at = ENTRIES.len();
    // The last one of each name that was seen.
    let mut seen = [0; ENTRIES.len()];
    while at > 0 {
        at -= 1;
        let first = FIRST_OF[at] as usize;
        (next[at], seen[first]) = (seen[first], at as u8);
    }
    next
};

static INDEX: NameIndex = {
    const TEXTS: [&str; NAMES] = {
        let mut texts = [""; NAMES];
        let mut at = 0;
        while at < NAMES {
            texts[at] = ENTRIES[FIRST[at] as usize].0;
            at += 1;
        }
        texts
    };
    NameIndex::new(&TEXTS)
};

/// An entry that serves to encode a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Name and value are those of this entry.
    Field(u8),
    /// The name is that of this entry.
    Name(u8),
}

/// The entry for a field with this name, in any case, and value.
pub fn find(name: &str, value: &[u8]) -> Option<Found> {
    let first = FIRST[INDEX.find(name).next()?];
    let mut index = first;
    loop {
        if ENTRIES[usize::from(index)].1.as_bytes() == value {
            return Some(Found::Field(index));
        }
        index = NEXT[usize::from(index)];
        if index == 0 {
            return Some(Found::Name(first));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_found() {
        for (index, (name, value)) in ENTRIES.iter().enumerate() {
            let found = find(&name.to_ascii_uppercase(), value.as_bytes());
            assert_eq!(found, Some(Found::Field(index as u8)), "{name}");
        }
        assert_eq!(find("accept", b"text/css"), Some(Found::Name(29)));
        assert_eq!(find("x-xact", b""), None);
        assert_eq!(find(&"x".repeat(99), b""), None);
    }

    /// Some positions of the standard, which shift if an entry is missing.
    #[test]
    fn entries_are_where_the_standard_has_them() {
        for (index, name, value) in [
            (usual::AUTHORITY, ":authority", ""),
            (usual::PATH, ":path", "/"),
            (usual::GET, ":method", "GET"),
            (usual::HTTPS, ":scheme", "https"),
            (25, ":status", "200"),
            (52, "content-type", "text/html; charset=utf-8"),
            (63, ":status", "100"),
            (71, ":status", "500"),
            (85, "content-security-policy", "script-src 'none'; object-src 'none'; base-uri 'none'"),
            (92, "server", ""),
            (98, "x-frame-options", "sameorigin"),
        ] {
            assert_eq!(ENTRIES[usize::from(index)], (name, value));
        }
    }
}
