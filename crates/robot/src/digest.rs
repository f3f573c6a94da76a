//! Digests of bodies (RFC 1864).

use base64::Engine;
use md5::{Digest, Md5};
use polygraph_traffic::Body;

/// A digest as it stands in `Content-MD5`.
pub fn base64(digest: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(digest)
}

/// The digest of a body as it stands in `Content-MD5`.
pub fn of_body(body: &Body) -> String {
    let (mut body, mut digest) = (body.clone(), Md5::new());
    while !body.is_empty() {
        let n = body.chunk().len();
        digest.update(body.chunk());
        body.advance(n as u64);
    }
    base64(&digest.finalize())
}
