//! MD5 digests of bodies.

use polygraph_traffic::Body;
use polygraph_wire::checksum::ContentMd5;

/// The digest of `body`, for `Content-MD5`.
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
    use polygraph_traffic::{ContentKind, Oid, UniqId};

    #[test]
    fn pieces_have_the_digest_of_the_whole() {
        let oid = Oid { world: UniqId::default(), kind: ContentKind::FIRST, name: 7 };
        let body = classic(1_000_000.0).catalog.body(&oid, b"");
        let mut whole = ContentMd5::default();
        whole.update(&body.to_vec());
        assert_eq!(md5(body), whole.finish());
    }
}
