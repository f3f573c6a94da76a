//! The body of a request.

use polygraph_traffic::AbortCoords;
use polygraph_wire::checksum::{self, ContentMd5};
use polygraph_wire::upload::{UploadDigest, UploadMark};
use polygraph_wire::{BodyError, BodyReader, Framing};

/// Reads the body of a request. The body is counted and its digest computed; its bytes are not kept.
#[derive(Clone, Debug)]
pub struct Upload {
    reader: BodyReader,
    /// The announced size in bytes.
    size: Option<u64>,
    /// The method of the request has no body.
    must_be_empty: bool,
    received: u64,
    /// The digest so far, and the one that the client sent; the inner `None` is a value that is not a digest.
    md5: Option<(ContentMd5, Option<[u8; 16]>)>,
    /// The mark so far, and that of the body that the client sent.
    mark: Option<(UploadDigest, UploadMark)>,
}

impl Upload {
    /// A body of which nothing has arrived; `digest` is the value of `Content-MD5`, and `mark` what robots sent.
    ///
    /// `must_be_empty` is for methods without a body: clients of HTTP/2 and HTTP/3 may end any request in its own frame, so that its
    /// head does not say that there is nothing (RFC 9113, section 8.1), and devices pass this on as an empty body in chunks.
    pub fn new(
        framing: Framing,
        digest: Option<&[u8]>,
        mark: Option<UploadMark>,
        must_be_empty: bool,
    ) -> Upload {
        let size = match framing {
            Framing::Length(size) => Some(size),
            Framing::Chunked | Framing::UntilClose => None,
        };
        let md5 = digest.map(|digest| (ContentMd5::default(), checksum::parse(digest)));
        let mark = mark.map(|mark| (UploadDigest::default(), mark));
        Upload { reader: BodyReader::new(framing), size, must_be_empty, received: 0, md5, mark }
    }

    /// Reads the next bytes of the connection and returns how many of them belong to the body.
    ///
    /// # Errors
    /// If the chunked coding is broken.
    pub fn feed(&mut self, data: &[u8]) -> Result<usize, BodyError> {
        let Upload { reader, received, md5, mark, .. } = self;
        let fed = reader.feed(data, |bytes| {
            *received += bytes.len() as u64;
            if let Some((md5, _)) = md5 {
                md5.update(bytes);
            }
            if let Some((digest, _)) = mark {
                digest.update(bytes);
            }
        })?;
        Ok(fed.consumed)
    }

    /// True once the body is complete.
    pub fn is_done(&self) -> bool {
        self.reader.is_done()
    }

    /// Whether there is content, although the method has none.
    pub fn is_forbidden(&self) -> bool {
        self.must_be_empty && self.received > 0
    }

    /// Bytes of content so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Whether the client meant to stop here: its coordinates cut a body of the announced size at or after the bytes
    /// that have arrived. (Bytes may have been lost when the client closed the connection.)
    pub fn is_cut(&self, coords: Option<AbortCoords>) -> bool {
        let cut = coords.and_then(|coords| coords.cut(self.size?));
        cut.is_some_and(|cut| self.received <= cut)
    }

    /// Why the complete body is not the one that the client sent; `None` if it is, or if nothing tells.
    pub fn alteration(&mut self) -> Option<String> {
        if self.md5.as_mut().is_some_and(|(md5, expected)| Some(md5.finish()) != *expected) {
            return Some("the request body does not match its Content-MD5".to_owned());
        }
        let (digest, sent) = self.mark.as_ref()?;
        alteration(digest.mark(), *sent)
    }
}

/// Why a body that arrived is not the one that a robot sent.
pub fn alteration(arrived: UploadMark, sent: UploadMark) -> Option<String> {
    match arrived {
        arrived if arrived == sent => None,
        UploadMark { size, .. } if size == sent.size => {
            Some(format!("other bytes arrived than the {size} of the request body"))
        }
        UploadMark { size, .. } => Some(format!("{size} bytes arrived of a request body of {}", sent.size)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polygraph_traffic::Seed;

    #[test]
    fn digests_are_compared() {
        // RFC 1321, section A.5.
        for (digest, altered) in [
            (Some("kAFQmDzST7DWlj99KOF/cg=="), false),
            (Some("kAFQmDzST7DWlj99KOF/cQ=="), true),
            (Some("nonsense"), true),
            (None, false),
        ] {
            let mut upload = Upload::new(Framing::Length(3), digest.map(str::as_bytes), None, false);
            assert_eq!(upload.feed(b"ab"), Ok(2));
            assert!(!upload.is_done());
            assert_eq!(upload.feed(b"cNEXT"), Ok(1));
            assert!(upload.is_done() && upload.received() == 3);
            assert_eq!(upload.alteration().is_some(), altered, "{digest:?}");
        }
    }

    #[test]
    fn bodies_are_those_that_robots_sent() {
        let mark = |bytes: &[u8]| {
            let mut digest = UploadDigest::default();
            digest.update(bytes);
            digest.mark()
        };
        for (sent, says) in [(&b"abc"[..], ""), (b"abd", "other bytes"), (b"abcd", "3 bytes arrived")] {
            let mut upload = Upload::new(Framing::Length(3), None, Some(mark(sent)), false);
            assert_eq!(upload.feed(b"abc"), Ok(3));
            let found = upload.alteration().unwrap_or_default();
            assert!(found.is_empty() == says.is_empty() && found.contains(says), "{found}");
        }
    }

    #[test]
    fn cuts_are_where_the_coordinates_say() {
        let mut rng = Seed(1).stream("abort", 0);
        let coords = AbortCoords::draw(1.0, &mut rng);
        let cut = coords.cut(1000).unwrap();
        let after = |bytes: u64| {
            let mut upload = Upload::new(Framing::Length(1000), None, None, false);
            assert_eq!(upload.feed(&vec![b'x'; bytes as usize]), Ok(bytes as usize));
            upload
        };
        assert!(after(cut).is_cut(Some(coords)));
        assert!(!after(cut + 1).is_cut(Some(coords)));
        assert!(!after(cut).is_cut(None));
        assert!(!after(cut).is_cut(Some(AbortCoords::draw(0.0, &mut rng))));
        assert!(!Upload::new(Framing::Chunked, None, None, false).is_cut(Some(coords)));
    }
}
