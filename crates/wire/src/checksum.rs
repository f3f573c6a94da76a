//! `Content-MD5`: the digest of a body, in base64 (RFC 1864; HTTP dropped the field with RFC 7231).

use base64::prelude::{BASE64_STANDARD, Engine};
use md5::{Digest, Md5};

/// Length of its value in bytes.
pub const TEXT_LEN: usize = 24;

/// Computes the digest of a body that arrives in pieces.
#[derive(Clone, Debug, Default)]
pub struct ContentMd5(Md5);

impl ContentMd5 {
    /// Takes the next bytes of the body.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all bytes so far. Afterwards the object is in its initial state.
    pub fn finish(&mut self) -> [u8; 16] {
        self.0.finalize_reset().into()
    }
}

/// The value of the field for a digest.
pub fn text(digest: [u8; 16]) -> [u8; TEXT_LEN] {
    let mut out = [0; TEXT_LEN];
    // 16 bytes are 24 characters, so they always fit.
    let written = BASE64_STANDARD.encode_slice(digest, &mut out);
    debug_assert_eq!(written, Ok(TEXT_LEN));
    out
}

/// The digest in the value of a field; `None` if it is not one.
pub fn parse(value: &[u8]) -> Option<[u8; 16]> {
    let value = value.trim_ascii();
    let mut digest = [0; 18];
    if value.len() != TEXT_LEN || BASE64_STANDARD.decode_slice(value, &mut digest).ok()? != 16 {
        return None;
    }
    digest.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fields_by_example() {
        let mut md5 = ContentMd5::default();
        assert_eq!(&text(md5.finish()), b"1B2M2Y8AsgTpgAmY7PhCfg==");
        md5.update(b"mess");
        md5.update(b"age digest");
        // RFC 1321: f96b697d7cb7938d525a2f31aaf161d0
        assert_eq!(&text(md5.finish()), b"+WtpfXy3k41SWi8xqvFh0A==");
        for bad in ["", "1B2M2Y8AsgTpgAmY7PhCfg=", "1B2M2Y8AsgTpgAmY7PhCfgAA", "1B2M2Y8AsgTpgAmY7PhC!g=="] {
            assert_eq!(parse(bad.as_bytes()), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn round_trips(digest: [u8; 16]) {
            prop_assert_eq!(parse(&text(digest)), Some(digest));
        }

        #[test]
        fn pieces_do_not_matter(body in prop::collection::vec(any::<u8>(), 0..300), step in 1usize..300) {
            let (mut whole, mut pieces) = (ContentMd5::default(), ContentMd5::default());
            whole.update(&body);
            body.chunks(step).for_each(|piece| pieces.update(piece));
            prop_assert_eq!(whole.finish(), pieces.finish());
        }

        #[test]
        fn random_bytes_never_panic(value in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = parse(&value);
        }
    }
}
