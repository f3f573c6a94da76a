//! Header fields of replies. Configured fields come first and replace generated ones of the same name.

use polygraph_traffic::headers::{HeaderRule, draw_headers};
use polygraph_traffic::{Random, Stream};

macro_rules! fields {
    ($($name:ident $text:literal)+) => {
        /// The fields that the server generates.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Field {
            $(#[doc = concat!("`", $text, "`.")] $name,)+
        }

        impl Field {
            const ALL: &[Field] = &[$(Field::$name,)+];

            /// The field name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Field::$name => $text,)+
                }
            }

            /// The start of the field line.
            #[inline(always)]
            fn start(self) -> &'static [u8] {
                match self {
                    $(Field::$name => concat!($text, ": ").as_bytes(),)+
                }
            }
        }
    };
}

fields! {
    CacheControl "Cache-Control"
    Pragma "Pragma"
    Date "Date"
    Connection "Connection"
    Expires "Expires"
    LastModified "Last-Modified"
    Vary "Vary"
    ContentMd5 "Content-MD5"
    SetCookie "Set-Cookie"
    ContentLength "Content-Length"
    ContentType "Content-Type"
    ContentEncoding "Content-Encoding"
    ContentRange "Content-Range"
    Location "Location"
    WwwAuthenticate "WWW-Authenticate"
    AltSvc "Alt-Svc"
    XTarget "X-Target"
    XXact "X-Xact"
    XContents "X-Contents"
    XRemWorld "X-Rem-World"
    XAbort "X-Abort"
    XPhaseSyncPos "X-Phase-Sync-Pos"
    XPhaseSyncGone "X-Phase-Sync-Gone"
}

/// The head of a reply while it is written.
#[derive(Debug)]
pub struct ReplyHead<'a> {
    out: &'a mut Vec<u8>,
    /// A bit for each [`Field`] that is configured.
    configured: u32,
}

impl<'a> ReplyHead<'a> {
    /// Starts a head with the given status line.
    #[inline(always)]
    pub fn new(out: &'a mut Vec<u8>, minor_version: u8, status: &[u8]) -> ReplyHead<'a> {
        out.extend_from_slice(if minor_version == 0 { b"HTTP/1.0 " } else { b"HTTP/1.1 " });
        out.extend_from_slice(status);
        out.extend_from_slice(b"\r\n");
        ReplyHead { out, configured: 0 }
    }

    /// Draws and adds the configured fields of `rules`; of several with the same name the first one counts.
    pub fn configured(&mut self, rules: [&[HeaderRule]; 2], rng: &mut Stream) {
        if rules.iter().all(|rules| rules.is_empty()) {
            return;
        }
        let mut seen: Vec<&str> = Vec::new();
        let mut add = |name, value: &str| {
            if seen.iter().any(|seen| seen.eq_ignore_ascii_case(name)) {
                return;
            }
            seen.push(name);
            let known = Field::ALL.iter().find(|field| field.name().eq_ignore_ascii_case(name));
            self.configured |= known.map_or(0, |&field| bit(field));
            [name, ": ", value, "\r\n"].iter().for_each(|text| self.out.extend_from_slice(text.as_bytes()));
        };
        rules.into_iter().for_each(|rules| draw_headers(rules, rng, &mut add));
    }

    fn is_free(&self, field: Field) -> bool {
        self.configured & bit(field) == 0
    }

    /// Adds a field whose value `write` appends, unless the field is configured. Callers pass constant fields, so no function is called
    /// to copy their names.
    #[inline(always)]
    pub fn add(&mut self, field: Field, write: impl FnOnce(&mut Vec<u8>)) {
        if self.is_free(field) {
            self.out.extend_from_slice(field.start());
            write(self.out);
            self.out.extend_from_slice(b"\r\n");
        }
    }

    /// Adds a field with this value, unless the field is configured.
    #[inline(always)]
    pub fn text(&mut self, field: Field, value: &[u8]) {
        self.add(field, |out| out.extend_from_slice(value));
    }

    /// Adds a complete field line, unless the field is configured.
    #[inline(always)]
    pub fn line(&mut self, field: Field, line: &[u8]) {
        if self.is_free(field) {
            self.out.extend_from_slice(line);
        }
    }

    /// Completes the head.
    pub fn end(self) {
        self.out.extend_from_slice(b"\r\n");
    }
}

fn bit(field: Field) -> u32 {
    1 << field as u32
}

/// Appends `size` random characters that are allowed in a quoted value.
pub fn random_text(size: u64, rng: &mut impl Random, out: &mut Vec<u8>) {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for _ in 0..size {
        out.push(LETTERS[rng.below(64) as usize]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polygraph_traffic::Seed;
    use polygraph_traffic::headers::HeaderChoice;

    fn rule(prob: f64, name: &str, value: &str) -> HeaderRule {
        HeaderRule { prob, what: HeaderChoice::One { name: name.into(), value: value.into() } }
    }

    #[test]
    fn configured_fields_come_first_and_win() {
        let content = [rule(1.0, "X-A", "1"), rule(1.0, "pragma", "mine"), rule(0.0, "Date", "never")];
        let agent = [rule(1.0, "x-a", "2"), rule(1.0, "X-B", "3")];
        let mut out = Vec::new();
        let mut head = ReplyHead::new(&mut out, 1, b"200 OK");
        head.configured([&content, &agent], &mut Seed(1).stream("headers", 0));
        head.text(Field::Date, b"today");
        head.text(Field::Pragma, b"generated");
        head.line(Field::Pragma, b"Pragma: generated\r\n");
        head.end();
        let expected = "HTTP/1.1 200 OK\r\nX-A: 1\r\npragma: mine\r\nX-B: 3\r\nDate: today\r\n\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn every_field_has_its_bit() {
        let all = Field::ALL.iter().fold(0, |all, &field| all | bit(field));
        assert_eq!(all.count_ones() as usize, Field::ALL.len());
    }
}
