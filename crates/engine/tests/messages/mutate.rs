//! Seeded mutation of messages, for fuzzing without coverage: by tests briefly, by the example `fuzz` at length.

use std::path::Path;

use polygraph_traffic::{Random, Seed, Stream};

/// The messages that mutation starts from.
pub fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = entries.filter_map(|entry| entry.ok()).map(|entry| entry.path()).collect();
    // The order of a folder is not the same everywhere; a seed must mean the same.
    files.sort();
    files.iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

/// The choices of a run; a seed makes it repeatable.
pub fn choices(seed: u64) -> Stream {
    Seed(seed).stream("fuzz", 0)
}

/// Texts that mean something to some reader.
const WORDS: &[&str] = &[
    "\r\n",
    "\r\n\r\n",
    "\n",
    "\r",
    " ",
    "\t",
    "\0",
    "\u{e9}",
    "\"",
    "'",
    "\\",
    ",",
    ";",
    ":",
    "=",
    "-",
    "--",
    "/",
    "//",
    "?",
    "#",
    "<",
    ">",
    "*",
    "%",
    "&",
    "_",
    ".",
    "..",
    "[",
    "]",
    "{",
    "}",
    "GET ",
    "HEAD ",
    "POST ",
    "CONNECT ",
    " HTTP/1.0\r\n",
    " HTTP/1.1\r\n",
    "HTTP/1.1 200 OK\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.0 304 x\r\n",
    "HTTP/1.1 206\r\n",
    "Host: a:80\r\n",
    "Content-Length: 5\r\n",
    "Content-Length: 0\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Connection: close\r\n",
    "Proxy-Connection: keep-alive\r\n",
    "Cache-Control: no-cache, private\r\n",
    "Pragma: no-cache\r\n",
    "Expect: 100-continue\r\n",
    "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
    "Range: bytes=0-1,-5\r\n",
    "Content-Range: bytes 0-4/20\r\n",
    "Content-Type: multipart/byteranges; boundary=B\r\n",
    "Set-Cookie: a=\"b;c\"; Max-Age=5\r\n",
    "Cookie: a=b\r\n",
    "Vary: *\r\n",
    "Content-Encoding: gzip\r\n",
    "Accept-Encoding: gzip;q=0.5, *;q=0\r\n",
    "Content-MD5: 1B2M2Y8AsgTpgAmY7PhCfg==\r\n",
    "Location: /w12345678.00abcdef:0000002a/t03/_00000000000001f4\r\n",
    "Date: Sunday, 06-Nov-94 08:49:37 GMT\r\n",
    "Age: 5\r\n",
    "X-Xact: 00000001.00000abc:00000002 00000001.00000abc:00000004 1\r\n",
    "X-Target: 10.0.0.1:80\r\n",
    "X-Abort: 1 -2\r\n",
    "X-Loc-World: 12345678.00abcdef:0000002a t3 -1/500 250\r\n",
    "X-Rem-World: 12345678.00abcdef:0000002a t3 9/500 250\r\n",
    "X-Phase-Sync-Pos: 3\r\n",
    "WWW-Authenticate: Basic realm=\"x\"\r\n",
    "12345678.00abcdef:0000002a",
    " t3 ",
    "-1/",
    "/w12345678.00abcdef:0000002a/t03/_00000000000001f4",
    "http://",
    "https://",
    "ftp://",
    "http://[::1]:80",
    "user@",
    "../",
    "./",
    "0\r\n\r\n",
    "5\r\nhello\r\n",
    "fffffffffffffff\r\n",
    ";ext=1",
    "--B\r\n",
    "--B--",
    "--THIS_STRING_SEPARATES\r\n",
    "--THIS_STRING_SEPARATES--\r\n",
    "bytes=",
    "bytes ",
    "bytes */",
    "0-",
    "-1",
    "0-0,",
    "/*",
    "Max-Age=",
    "Expires=",
    "Discard",
    "Sun, 06-Nov-1994 08:49:37 GMT",
    "Digest ",
    "Basic ",
    "Negotiate",
    "realm=",
    "nonce=\"n\"",
    "qop=\"auth,auth-int\"",
    "nc=00000001",
    "algorithm=SHA-256-sess",
    "algorithm=MD5",
    "opaque=",
    "cnonce=\"c\"",
    "response=",
    "uri=",
    "username=",
    "stale=true",
    "dXNlcjpwYXNz",
    "<embed src=",
    "<a href=",
    "<!--",
    "-->",
    "<script>",
    "</script>",
    "<style",
    "&amp;",
    "&#x26;",
    "<>",
    "gzip",
    "identity",
    ";q=0",
    "${url_number}",
    "${worker}",
    "# ",
];

/// Numbers at the edges.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "255",
    "256",
    "65535",
    "65536",
    "4294967295",
    "4294967296",
    "999999999999999999",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "00000000000000000000001",
    "ffffffffffffffff",
];

/// Another message made from those of the corpus.
pub fn mutate(corpus: &[Vec<u8>], random: &mut impl Random) -> Vec<u8> {
    let mut data = pick(corpus, random).clone();
    for _ in 0..1 + below(random, 6) {
        let at = below(random, data.len() + 1);
        let end = (at + below(random, 30)).min(data.len());
        match below(random, 12) {
            0 => drop(data.drain(at..end)),
            1..=2 => drop(data.splice(at..at, pick(WORDS, random).bytes())),
            3 => drop(data.splice(at..end, pick(WORDS, random).bytes())),
            4 => drop(data.splice(number(&data, at), pick(NUMBERS, random).bytes())),
            5 => {
                let copy = data[at..end].repeat(1 + below(random, 4));
                drop(data.splice(at..at, copy));
            }
            6 => {
                let other = pick(corpus, random);
                let from = below(random, other.len());
                let to = (from + below(random, 80)).min(other.len());
                drop(data.splice(at..at, other[from..to].iter().copied()));
            }
            7..=8 => {
                if let Some(byte) = data.get_mut(at) {
                    *byte =
                        if random.event(0.5) { random.bits() as u8 } else { *byte ^ (1 << below(random, 8)) };
                }
            }
            9 => {
                // A line goes elsewhere, or comes again.
                let (from, to) = line(&data, at);
                let moved = data[from..to].to_vec();
                if random.event(0.5) {
                    data.drain(from..to);
                }
                let (place, _) = line(&data, below(random, data.len() + 1));
                drop(data.splice(place..place, moved));
            }
            10 => data.truncate(at),
            _ => {
                let long = pick(WORDS, random).repeat(1 + below(random, 40));
                drop(data.splice(at..at, long.bytes()));
            }
        }
    }
    data
}

fn below(random: &mut impl Random, bound: usize) -> usize {
    random.below(bound as u64) as usize
}

fn pick<'a, T>(items: &'a [T], random: &mut impl Random) -> &'a T {
    &items[below(random, items.len())]
}

/// The next run of digits from `at`, or nothing at the end.
fn number(data: &[u8], at: usize) -> std::ops::Range<usize> {
    let is_digit = |b: &u8| b.is_ascii_digit();
    let from = data[at..].iter().position(is_digit).map_or(data.len(), |n| at + n);
    let to = data[from..].iter().position(|b| !is_digit(b)).map_or(data.len(), |n| from + n);
    from..to
}

/// The line around `at`, with its end.
fn line(data: &[u8], at: usize) -> (usize, usize) {
    let from = data[..at].iter().rposition(|&b| b == b'\n').map_or(0, |n| n + 1);
    let to = data[at..].iter().position(|&b| b == b'\n').map_or(data.len(), |n| at + n + 1);
    (from, to)
}
