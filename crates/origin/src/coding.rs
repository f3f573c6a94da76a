//! Bodies in another form: compressed, or as a digest.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use polygraph_traffic::Body;
use polygraph_wire::checksum::ContentMd5;

/// The level of compression that servers usually have.
const LEVEL: u32 = 6;

/// The body as gzip has it (RFC 1952), the same whenever it is made.
pub fn gzip(mut body: Body) -> Vec<u8> {
    let mut coder = GzEncoder::new(Vec::new(), Compression::new(LEVEL));
    while !body.is_empty() {
        let chunk = body.chunk();
        let n = chunk.len();
        // Memory takes everything.
        if coder.write_all(chunk).is_err() {
            break;
        }
        body.advance(n as u64);
    }
    coder.finish().unwrap_or_default()
}

/// The digest for `Content-MD5`.
pub fn md5(mut body: Body) -> [u8; 16] {
    let mut md5 = ContentMd5::default();
    while !body.is_empty() {
        let n = body.chunk().len();
        md5.update(body.chunk());
        body.advance(n as u64);
    }
    md5.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::classic;
    use polygraph_traffic::{Kind, Oid, UniqId};
    use std::io::Read;

    #[test]
    fn bodies_come_back() {
        let oid = Oid { world: UniqId::default(), kind: Kind::FIRST, name: 7 };
        let body = classic(1_000_000.0).catalog.body(&oid, b"");
        let coded = gzip(body.clone());
        assert_eq!(coded, gzip(body.clone()));
        assert!(coded.len() < 900_000);
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&coded[..]).read_to_end(&mut plain).unwrap();
        assert_eq!(plain, body.to_vec());
        let mut whole = ContentMd5::default();
        whole.update(&plain);
        assert_eq!(md5(body), whole.finish());
    }
}
