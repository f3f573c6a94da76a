//! Bodies with a content coding.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::body::Body;

/// The compression level that most servers use.
const LEVEL: u32 = 6;

/// The body compressed with gzip (RFC 1952), always to the same bytes.
pub fn gzip(mut body: Body) -> Body {
    let mut coder = GzEncoder::new(Vec::new(), Compression::new(LEVEL));
    while !body.is_empty() {
        let chunk = body.chunk();
        let n = chunk.len();
        // Writing to memory cannot fail.
        if coder.write_all(chunk).is_err() {
            break;
        }
        body.advance(n as u64);
    }
    Body::from_bytes(coder.finish().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::{Catalog, Content, ContentKind, Distr, Oid, Seed, UniqId};

    #[test]
    fn bodies_come_back() {
        let contents = vec![Content::plain("x", Distr::Const(1_000_000.0), 1.0)];
        let oid = Oid { world: UniqId::default(), kind: ContentKind::FIRST, name: 7 };
        let body = Catalog { seed: Seed(3), contents }.body(&oid, b"");
        let coded = gzip(body.clone()).to_vec();
        assert_eq!(coded, gzip(body.clone()).to_vec());
        assert!(coded.len() < 900_000);
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&coded[..]).read_to_end(&mut plain).unwrap();
        assert_eq!(plain, body.to_vec());
    }
}
