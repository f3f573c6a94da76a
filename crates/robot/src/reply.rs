//! What a reply says: reads head and body from a connection, piece by piece.

use polygraph_stats::ErrorKind;
use polygraph_wire::body::{self, BodyError, BodyReader, Framing};
use polygraph_wire::head::{self, HeadError, has_token};
use polygraph_wire::marks::Marks;

/// Heads larger than this are refused.
const MAX_HEAD: usize = 32 * 1024;

/// The facts of a reply that matter to a robot.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    /// Status code.
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
}

impl Facts {
    /// Bytes of the complete reply.
    pub fn size(&self) -> u64 {
        self.overhead_bytes + self.body_bytes
    }
}

/// Reads one reply.
#[derive(Debug, Default)]
pub struct ReplyReader {
    /// The head so far, if it came in pieces.
    stash: Vec<u8>,
    body: Option<BodyReader>,
    facts: Facts,
    received: u64,
}

impl ReplyReader {
    /// Takes bytes from the connection; `Ok(true)` once the reply is complete.
    ///
    /// # Errors
    /// The class of what is wrong with the reply.
    pub fn feed(&mut self, data: &[u8]) -> Result<bool, ErrorKind> {
        if data.is_empty() {
            return self.closed();
        }
        self.received += data.len() as u64;
        if self.body.is_some() {
            return self.feed_body(data);
        }
        if self.stash.is_empty() {
            return self.feed_head(data);
        }
        let mut head = std::mem::take(&mut self.stash);
        head.extend_from_slice(data);
        self.feed_head(&head)
    }

    /// True if nothing of the reply has arrived yet.
    pub fn is_silent(&self) -> bool {
        self.received == 0
    }

    /// The facts of a complete reply.
    pub fn facts(&self) -> Facts {
        let overhead_bytes = self.received - self.facts.body_bytes;
        Facts { overhead_bytes, ..self.facts }
    }

    fn feed_head(&mut self, data: &[u8]) -> Result<bool, ErrorKind> {
        let mut rest = data;
        loop {
            match read_head(rest) {
                Err(_) => return Err(ErrorKind::BadHead),
                Ok(None) if rest.len() > MAX_HEAD => return Err(ErrorKind::HeadTooLarge),
                Ok(None) => {
                    self.stash.extend_from_slice(rest);
                    return Ok(false);
                }
                Ok(Some((_, Err(_), _))) => return Err(ErrorKind::BadCoding),
                // Interim replies (RFC 9110, section 15.2) announce the real one.
                Ok(Some((facts, _, len))) if (100..200).contains(&facts.status) => rest = &rest[len..],
                Ok(Some((facts, Ok(framing), len))) => {
                    self.facts = facts;
                    self.body = Some(BodyReader::new(framing));
                    return self.feed_body(&rest[len..]);
                }
            }
        }
    }

    fn feed_body(&mut self, data: &[u8]) -> Result<bool, ErrorKind> {
        let Some(body) = &mut self.body else { return Ok(false) };
        let mut content = 0;
        let fed = body.feed(data, |bytes| content += bytes.len() as u64).map_err(|_| ErrorKind::BadCoding)?;
        self.facts.body_bytes += content;
        // Nothing was pipelined, so nothing may follow.
        if fed.consumed < data.len() { Err(ErrorKind::BodyLong) } else { Ok(fed.done) }
    }

    /// The peer closed the connection.
    fn closed(&mut self) -> Result<bool, ErrorKind> {
        match &self.body {
            Some(body) if body.ends_at_close() => {
                self.facts.keep_alive = false;
                Ok(true)
            }
            Some(_) => Err(ErrorKind::BodyShort),
            None if self.is_silent() => Err(ErrorKind::NoReply),
            None => Err(ErrorKind::HeadShort),
        }
    }
}

/// What a head says, how the body behind it is framed, and its length; `None` if it is not complete.
type Head = (Facts, Result<Framing, BodyError>, usize);

fn read_head(data: &[u8]) -> Result<Option<Head>, HeadError> {
    head::parse_reply(data, |reply| {
        let mut facts = Facts {
            status: reply.status,
            cachable: true,
            keep_alive: head::keeps_alive(reply.minor_version, reply.headers),
            ..Facts::default()
        };
        for header in reply.headers {
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            let has = |token| has_token(header.value, token);
            if facts.marks.see(header) {
                continue;
            }
            let forbids = is("Cache-Control") && (has("no-cache") || has("private") || has("no-store"))
                || is("Pragma") && has("no-cache");
            facts.cachable &= !forbids;
        }
        (facts, body::reply_framing(reply, false), reply.len)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `text` cut into pieces of `step` bytes, then the end of the connection if `close`.
    fn read(text: &str, step: usize, close: bool) -> Result<Option<Facts>, ErrorKind> {
        let mut reader = ReplyReader::default();
        for piece in text.as_bytes().chunks(step) {
            if reader.feed(piece)? {
                return Ok(Some(reader.facts()));
            }
        }
        if close && reader.feed(b"")? {
            return Ok(Some(reader.facts()));
        }
        Ok(None)
    }

    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nCache-Control: private, no-cache\r\n\r\nhello";

    #[test]
    fn pieces_do_not_matter() {
        for step in 1..OK.len() + 1 {
            let facts = read(OK, step, false).unwrap().unwrap();
            assert_eq!((facts.status, facts.cachable, facts.keep_alive), (200, false, true));
            assert_eq!((facts.body_bytes, facts.size()), (5, OK.len() as u64));
        }
    }

    #[test]
    fn endings() {
        #[track_caller]
        fn check(text: &str, expected: Result<Option<u64>, ErrorKind>) {
            assert_eq!(read(text, 7, true).map(|facts| facts.map(|f| f.body_bytes)), expected, "{text}");
        }
        check("", Err(ErrorKind::NoReply));
        check("HTTP/1.1 20", Err(ErrorKind::HeadShort));
        check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", Err(ErrorKind::BodyShort));
        check("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhello", Err(ErrorKind::BodyLong));
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", Err(ErrorKind::BadCoding));
        check("SSH-2.0-OpenSSH\r\n\r\n", Err(ErrorKind::BadHead));
        check("HTTP/1.0 200 OK\r\n\r\nhello", Ok(Some(5)));
        check("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", Ok(Some(0)));
        let many = "HTTP/1.1 102 Processing\r\n\r\n".repeat(5_000) + "HTTP/1.1 204 No Content\r\n\r\n";
        let mut reader = ReplyReader::default();
        assert_eq!(reader.feed(many.as_bytes()), Ok(true));
        check("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", Ok(Some(3)));
    }

    #[test]
    fn endless_heads_are_refused() {
        let text = format!("HTTP/1.1 200 OK\r\nX: {}", "y".repeat(MAX_HEAD + 10));
        assert_eq!(read(&text, 1000, false).err(), Some(ErrorKind::HeadTooLarge));
    }
}
