//! The mark of request bodies, by which servers know what robots sent: `X-Upload`, the size in bytes and the CRC-32 of the body as it is
//! on the wire, without transfer coding.

use polygraph_traffic::hex::{parse_hex, write_hex};

use crate::body::parse_decimal;
use crate::decimal;

/// Name of the mark of request bodies.
pub const X_UPLOAD: &str = "X-Upload";

/// The value of `X-Upload`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UploadMark {
    /// Size in bytes.
    pub size: u64,
    /// CRC-32 (ISO-HDLC).
    pub crc: u32,
}

impl UploadMark {
    /// Appends the text form: `3072 1a2b3c4d`.
    pub fn write(&self, out: &mut Vec<u8>) {
        decimal::write(out, self.size);
        let mut text = *b" 00000000";
        write_hex(&mut text[1..], u64::from(self.crc));
        out.extend_from_slice(&text);
    }

    /// Reads the text form; `None` if it is anything else.
    pub fn parse(value: &[u8]) -> Option<UploadMark> {
        let value = value.trim_ascii();
        let space = value.iter().position(|byte| *byte == b' ')?;
        let (size, crc) = (parse_decimal(&value[..space])?, &value[space + 1..]);
        (crc.len() == 8).then_some(())?;
        Some(UploadMark { size, crc: u32::try_from(parse_hex(crc)?).ok()? })
    }
}

/// The mark of a body that is sent or arrives piece by piece.
#[derive(Clone, Debug, Default)]
pub struct UploadDigest {
    size: u64,
    crc: crc32fast::Hasher,
}

impl UploadDigest {
    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.size += bytes.len() as u64;
        self.crc.update(bytes);
    }

    /// The mark of all bytes so far.
    pub fn mark(&self) -> UploadMark {
        UploadMark { size: self.size, crc: self.crc.clone().finalize() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_those_of_the_bytes() {
        let mut digest = UploadDigest::default();
        [&b"1234"[..], b"", b"56789"].into_iter().for_each(|part| digest.update(part));
        // The check value of the catalogue of CRC algorithms (CRC-32/ISO-HDLC).
        let mark = UploadMark { size: 9, crc: 0xcbf4_3926 };
        assert_eq!(digest.mark(), mark);
        let mut text = Vec::new();
        mark.write(&mut text);
        assert_eq!(text, b"9 cbf43926");
        assert_eq!(UploadMark::parse(&text), Some(mark));
        for wrong in ["", "9", "9 ", "9 cbf4392", "9 cbf439266", "x cbf43926", "9 cbf4392g", "-9 cbf43926"] {
            assert_eq!(UploadMark::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
