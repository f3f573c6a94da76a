//! What a reply says.

use polygraph_stats::ErrorKind;
use polygraph_wire::body::{self, BodyError, BodyReader, Declared, Framing};
use polygraph_wire::date;
use polygraph_wire::head::{self, HeadError, Header, Persistence, ReplyHead, has_token, is_named};
use polygraph_wire::marks::Marks;
use polygraph_wire::range::ContentRange;

/// Heads larger than this are refused.
pub const MAX_HEAD: usize = 64 * 1024;

/// A moment (January 2027) that tells the century of two-digit years.
const CENTURY: u64 = 1_800_000_000;

/// How content is coded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coding {
    /// Not at all.
    #[default]
    Identity,
    /// RFC 1952.
    Gzip,
    /// Otherwise.
    Other,
}

/// What only some replies say.
#[derive(Clone, Debug, Default)]
pub struct Rare {
    /// `Location`.
    pub location: Option<Vec<u8>>,
    /// `Content-Range`.
    pub range: Option<ContentRange>,
    /// A `Content-Range` that is none.
    pub bad_range: bool,
    /// `Content-Type`.
    pub content_type: Option<Vec<u8>>,
    /// `Content-MD5`.
    pub md5: Option<Vec<u8>>,
    /// Values of `Set-Cookie`.
    pub cookies: Vec<Vec<u8>>,
    /// Values of `WWW-Authenticate` and `Proxy-Authenticate`.
    pub challenges: Vec<Vec<u8>>,
    /// `Server`.
    pub server: Option<Vec<u8>>,
}

/// The facts of a reply that matter to a robot.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Status code; 0 before there is a head.
    pub status: u16,
    /// The benchmark's marks.
    pub marks: Marks,
    /// No `no-cache`, `no-store` or `private` in `Cache-Control`, no `no-cache` in `Pragma`.
    pub cachable: bool,
    /// The sender leaves the connection open.
    pub keep_alive: bool,
    /// Bytes of head and framing.
    pub overhead_bytes: u64,
    /// Bytes of content.
    pub body_bytes: u64,
    /// Announced length of the content.
    pub length: Option<u64>,
    /// `Date`, in seconds since 1970.
    pub date: Option<i64>,
    /// `Last-Modified`, in seconds since 1970.
    pub last_modified: Option<i64>,
    /// `Expires`, in seconds since 1970.
    pub expires: Option<i64>,
    /// `Age` in seconds.
    pub age: Option<u64>,
    /// `Content-Encoding`.
    pub coding: Coding,
    /// The rest.
    pub rare: Option<Box<Rare>>,
}

impl Facts {
    /// Bytes of the complete reply.
    pub fn size(&self) -> u64 {
        self.overhead_bytes + self.body_bytes
    }

    /// The reply leads elsewhere (reference: models.md, section 10.3).
    pub fn is_redirect(&self) -> bool {
        matches!(self.status, 300..=303 | 307 | 308)
    }

    /// The reply carries a mark of our servers.
    pub fn is_marked(&self) -> bool {
        self.marks.xact.is_some() || self.marks.target.is_some()
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }
}

/// What is done with the content of a reply while it arrives.
pub trait Content {
    /// The head is complete; the content follows.
    fn begin(&mut self, facts: &Facts);
    /// The next bytes of the content, framing removed.
    fn take(&mut self, bytes: &[u8]);
}

/// Reads one reply.
#[derive(Debug)]
pub struct ReplyReader {
    /// The head so far, if it came in pieces.
    stash: Vec<u8>,
    body: Option<BodyReader>,
    /// What the head says, once it is complete.
    facts: Option<Box<Facts>>,
    received: u64,
    /// The request was a HEAD.
    to_head: bool,
    /// 100 (continue) is awaited: reading stops there.
    awaits_continue: bool,
    /// 100 (continue) has come.
    continued: bool,
}

/// How far reading has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed.
    Partial,
    /// 100 (continue) has come as awaited; so many bytes of the input came behind it.
    Continue {
        /// Bytes that were not used.
        rest: usize,
    },
    /// The reply is complete; so many bytes of the input belong to what follows.
    Complete {
        /// Bytes that were not used.
        rest: usize,
    },
}

impl ReplyReader {
    /// A reader of the reply to a HEAD request or another one. If the request awaits 100 (continue) before its
    /// body, reading stops at that.
    pub fn new(to_head: bool, awaits_continue: bool) -> ReplyReader {
        ReplyReader {
            stash: Vec::new(),
            body: None,
            facts: None,
            received: 0,
            to_head,
            awaits_continue,
            continued: false,
        }
    }

    /// Takes bytes from the connection; none means that the peer has closed it.
    ///
    /// # Errors
    /// The class of what is wrong with the reply.
    pub fn feed(&mut self, data: &[u8], content: &mut impl Content) -> Result<Progress, ErrorKind> {
        if data.is_empty() {
            return self.closed();
        }
        self.received += data.len() as u64;
        if self.body.is_some() {
            return self.feed_body(data, content);
        }
        if self.stash.is_empty() {
            return self.feed_head(data, content);
        }
        let mut head = std::mem::take(&mut self.stash);
        head.extend_from_slice(data);
        self.feed_head(&head, content)
    }

    /// True if nothing of the reply has arrived yet.
    pub fn is_silent(&self) -> bool {
        self.received == 0
    }

    /// The facts so far, if there is a head.
    pub fn facts(&self) -> Option<&Facts> {
        self.facts.as_deref()
    }

    /// The facts of a complete reply.
    pub fn into_facts(self) -> Box<Facts> {
        let mut facts = self.facts.unwrap_or_default();
        facts.overhead_bytes = self.received - facts.body_bytes;
        facts
    }

    /// The body of the request is on its way; whatever is read from now on is the reply.
    pub fn stop_awaiting(&mut self) {
        self.awaits_continue = false;
    }

    fn feed_head(&mut self, data: &[u8], content: &mut impl Content) -> Result<Progress, ErrorKind> {
        let mut rest = data;
        loop {
            match read_head(rest, self.to_head) {
                Err(_) => return Err(ErrorKind::BadHead),
                Ok(None) if rest.len() > MAX_HEAD => return Err(ErrorKind::HeadTooLarge),
                Ok(None) => {
                    self.stash.extend_from_slice(rest);
                    return Ok(Progress::Partial);
                }
                Ok(Some((_, Err(BodyError::Length), _))) => return Err(ErrorKind::NoLength),
                Ok(Some((_, Err(_), _))) => return Err(ErrorKind::BadCoding),
                // Interim replies (RFC 9110, section 15.2) announce the real one.
                Ok(Some((facts, _, len))) if (100..200).contains(&facts.status) => {
                    rest = &rest[len..];
                    if facts.status == 100 && self.awaits_continue && !self.continued {
                        self.continued = true;
                        self.received -= rest.len() as u64;
                        return Ok(Progress::Continue { rest: rest.len() });
                    }
                    if facts.status == 100 && !self.continued {
                        return Err(ErrorKind::UnexpectedContinue);
                    }
                }
                Ok(Some((mut facts, Ok(framing), len))) => {
                    facts.length = match framing {
                        Framing::Length(length) => Some(length),
                        Framing::Chunked | Framing::UntilClose => None,
                    };
                    self.body = Some(BodyReader::new(framing));
                    content.begin(self.facts.insert(facts));
                    return self.feed_body(&rest[len..], content);
                }
            }
        }
    }

    fn feed_body(&mut self, data: &[u8], content: &mut impl Content) -> Result<Progress, ErrorKind> {
        let (Some(body), Some(facts)) = (&mut self.body, &mut self.facts) else {
            return Ok(Progress::Partial);
        };
        let mut bytes = 0;
        let fed = body.feed(data, |piece| {
            bytes += piece.len() as u64;
            content.take(piece);
        });
        facts.body_bytes += bytes;
        let fed = fed.map_err(|_| ErrorKind::BadCoding)?;
        if fed.done {
            // What belongs to the next reply is not this one's.
            let rest = data.len() - fed.consumed;
            self.received -= rest as u64;
            return Ok(Progress::Complete { rest });
        }
        Ok(Progress::Partial)
    }

    /// The peer closed the connection.
    fn closed(&mut self) -> Result<Progress, ErrorKind> {
        match &self.body {
            Some(body) if body.ends_at_close() => {
                if let Some(facts) = &mut self.facts {
                    facts.keep_alive = false;
                }
                Ok(Progress::Complete { rest: 0 })
            }
            Some(_) => Err(ErrorKind::BodyShort),
            None if self.is_silent() => Err(ErrorKind::NoReply),
            None => Err(ErrorKind::HeadShort),
        }
    }
}

/// What a head says, how the body behind it is framed, and its length; `None` if it is not complete.
type Head = (Box<Facts>, Result<Framing, BodyError>, usize);

fn read_head(data: &[u8], to_head: bool) -> Result<Option<Head>, HeadError> {
    head::parse_reply(data, |reply| {
        let (facts, framing) = read_facts(reply, to_head);
        (facts, framing, reply.len)
    })
}

/// What header fields say about the connection.
#[derive(Default)]
struct Hop {
    declared: Declared,
    persistence: Persistence,
}

fn read_facts(reply: &ReplyHead<'_, '_>, to_head: bool) -> (Box<Facts>, Result<Framing, BodyError>) {
    // They go through many hands.
    let mut facts = Box::<Facts>::default();
    let mut hop = Hop::default();
    facts.status = reply.status;
    facts.cachable = true;
    for header in reply.headers {
        if !facts.marks.see(header) {
            read_field(&mut facts, &mut hop, header);
        }
    }
    facts.keep_alive = hop.persistence.keeps_alive(reply.minor_version);
    (facts, hop.declared.reply_framing(reply.status, to_head))
}

fn read_field(facts: &mut Facts, hop: &mut Hop, header: &Header<'_>) {
    let (name, value) = (header.name, header.value);
    let is = |wanted| is_named(name, wanted);
    let has = |token| has_token(value, token);
    let time = || date::parse_any(value, CENTURY).and_then(|at| i64::try_from(at).ok());
    // The length tells most names apart.
    match name.len() {
        3 if is("Age") => facts.age = body::parse_decimal(value),
        4 if is("Date") => facts.date = time(),
        6 if is("Pragma") => facts.cachable &= !has("no-cache"),
        6 if is("Server") => facts.rare().server = Some(value.to_vec()),
        7 if is("Expires") => facts.expires = time(),
        8 if is("Location") => facts.rare().location = Some(value.to_vec()),
        10 if is("Connection") => hop.persistence.see(value),
        10 if is("Set-Cookie") => facts.rare().cookies.push(value.to_vec()),
        11 if is("Content-MD5") => facts.rare().md5 = Some(value.trim_ascii().to_vec()),
        12 if is("Content-Type") => facts.rare().content_type = Some(value.to_vec()),
        13 if is("Last-Modified") => facts.last_modified = time(),
        13 if is("Cache-Control") => {
            facts.cachable &= !head::items(value).any(forbids_copies);
        }
        13 if is("Content-Range") => {
            let range = ContentRange::parse(value);
            facts.rare().bad_range = range.is_none();
            facts.rare().range = range;
        }
        14 if is("Content-Length") => hop.declared.see_length(value),
        16 if is("Content-Encoding") => {
            facts.coding = match value.trim_ascii() {
                coding if coding.eq_ignore_ascii_case(b"identity") => Coding::Identity,
                coding if coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip") => {
                    Coding::Gzip
                }
                _ => Coding::Other,
            };
        }
        16 if is("WWW-Authenticate") => facts.rare().challenges.push(value.to_vec()),
        16 if is("Proxy-Connection") => hop.persistence.see_fallback(value),
        17 if is("Transfer-Encoding") => hop.declared.see_coding(value),
        18 if is("Proxy-Authenticate") => facts.rare().challenges.push(value.to_vec()),
        _ => {}
    }
}

/// A directive of `Cache-Control` that keeps a reply out of shared stores.
fn forbids_copies(directive: &[u8]) -> bool {
    let words: [&[u8]; 3] = [b"no-cache", b"private", b"no-store"];
    words.iter().any(|word| directive.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Count(u64);

    impl Content for Count {
        fn begin(&mut self, _: &Facts) {}
        fn take(&mut self, bytes: &[u8]) {
            self.0 += bytes.len() as u64;
        }
    }

    /// Feeds `text` cut into pieces of `step` bytes, then the end of the connection if `close`. Returns the facts
    /// of a complete reply and what was left over.
    fn read(text: &str, step: usize, close: bool) -> Result<Option<(Box<Facts>, usize)>, ErrorKind> {
        let mut reader = ReplyReader::new(false, false);
        let mut content = Count::default();
        for piece in text.as_bytes().chunks(step) {
            if let Progress::Complete { rest } = reader.feed(piece, &mut content)? {
                assert_eq!(Some(content.0), reader.facts().map(|facts| facts.body_bytes));
                return Ok(Some((reader.into_facts(), rest)));
            }
        }
        if close && let Progress::Complete { rest } = reader.feed(b"", &mut content)? {
            return Ok(Some((reader.into_facts(), rest)));
        }
        Ok(None)
    }

    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nCache-Control: private, no-cache\r\n\r\nhello";

    #[test]
    fn pieces_do_not_matter() {
        for step in 1..OK.len() + 1 {
            let (facts, rest) = read(OK, step, false).unwrap().unwrap();
            assert_eq!((facts.status, facts.cachable, facts.keep_alive), (200, false, true));
            assert_eq!((facts.body_bytes, facts.size(), rest), (5, OK.len() as u64, 0));
        }
        let two = OK.repeat(2);
        let (facts, rest) = read(&two, two.len(), false).unwrap().unwrap();
        assert_eq!((facts.size(), rest), (OK.len() as u64, OK.len()));
    }

    #[test]
    fn endings() {
        #[track_caller]
        fn check(text: &str, expected: Result<Option<u64>, ErrorKind>) {
            let read = read(text, 7, true);
            assert_eq!(read.map(|facts| facts.map(|(f, _)| f.body_bytes)), expected, "{text}");
        }
        check("", Err(ErrorKind::NoReply));
        check("HTTP/1.1 20", Err(ErrorKind::HeadShort));
        check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", Err(ErrorKind::BodyShort));
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", Err(ErrorKind::BadCoding));
        check("SSH-2.0-OpenSSH\r\n\r\n", Err(ErrorKind::BadHead));
        check("HTTP/1.0 200 OK\r\n\r\nhello", Ok(Some(5)));
        check("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", Ok(Some(0)));
        check("HTTP/1.1 100 Continue\r\n\r\n", Err(ErrorKind::UnexpectedContinue));
        let many = "HTTP/1.1 102 Processing\r\n\r\n".repeat(5_000) + "HTTP/1.1 204 No Content\r\n\r\n";
        check(&many, Ok(Some(0)));
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", Ok(Some(3)));
    }

    #[test]
    fn reading_stops_at_an_awaited_continue() {
        let mut reader = ReplyReader::new(false, true);
        let mut content = Count::default();
        let text = format!("HTTP/1.1 100 Continue\r\n\r\n{OK}");
        let progress = reader.feed(text.as_bytes(), &mut content);
        assert_eq!(progress, Ok(Progress::Continue { rest: OK.len() }));
        reader.stop_awaiting();
        assert_eq!(reader.feed(OK.as_bytes(), &mut content), Ok(Progress::Complete { rest: 0 }));
        assert_eq!(reader.into_facts().size(), text.len() as u64);
        let mut refused = ReplyReader::new(false, true);
        let text = "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(refused.feed(text.as_bytes(), &mut content), Ok(Progress::Complete { rest: 0 }));
        assert_eq!(refused.into_facts().status, 417);
    }

    #[test]
    fn fields_by_example() {
        let head = "HTTP/1.1 206 Partial\r\nContent-Length: 2\r\nContent-Range: bytes 3-4/10\r\n\
            Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nLast-Modified: Sun, 06 Nov 1994 08:49:00 GMT\r\nAge: 7\r\n\
            Content-Encoding: gzip\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\nLocation: /x\r\n\r\nab";
        let (facts, _) = read(head, 9, false).unwrap().unwrap();
        assert_eq!((facts.status, facts.date, facts.age), (206, Some(784_111_777), Some(7)));
        assert_eq!(facts.last_modified, Some(784_111_740));
        assert_eq!(facts.coding, Coding::Gzip);
        let rare = facts.rare.unwrap();
        assert_eq!((rare.cookies.len(), rare.location.as_deref()), (2, Some(&b"/x"[..])));
        assert!(rare.range.is_some() && !rare.bad_range);
    }

    #[test]
    fn endless_heads_are_refused() {
        let text = format!("HTTP/1.1 200 OK\r\nX: {}", "y".repeat(MAX_HEAD + 10));
        assert_eq!(read(&text, 1000, false).err(), Some(ErrorKind::HeadTooLarge));
    }
}
