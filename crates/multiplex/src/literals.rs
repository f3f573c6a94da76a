//! Integers and strings of HPACK (RFC 7541, section 5), which QPACK shares.
//!
//! This side sends strings without Huffman coding, which saves processor time at both ends.

pub mod huffman;

/// Appends an integer whose first byte has `prefix` low bits for it, and `flags` above them.
#[inline]
pub fn put_integer(value: usize, prefix: u32, flags: u8, out: &mut Vec<u8>) {
    // Nearly all integers fit their first byte.
    match (1usize << prefix) - 1 {
        most if value < most => out.push(flags | value as u8),
        most => put_long_integer(value - most, flags | most as u8, out),
    }
}

#[inline(never)]
fn put_long_integer(mut rest: usize, first: u8, out: &mut Vec<u8>) {
    out.push(first);
    while rest >= 128 {
        out.push(0x80 | rest as u8);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// The largest integer that is read: no length or index in a field section that fits its limit is larger.
const MAX_INTEGER: u64 = 1 << 24;

/// Takes an integer from the front of `bytes`; `None` if it is not complete, or too large.
#[inline]
pub fn get_integer(bytes: &mut &[u8], prefix: u32) -> Option<usize> {
    let (&first, rest) = bytes.split_first()?;
    let most = (1u64 << prefix) - 1;
    match (u64::from(first) & most, rest) {
        (value, _) if value < most => {
            *bytes = rest;
            Some(value as usize)
        }
        // Most of the others fit the second byte.
        (value, [second @ ..0x80, rest @ ..]) => {
            *bytes = rest;
            Some(value as usize + usize::from(*second))
        }
        (value, _) => get_long_integer(value, bytes),
    }
}

#[inline(never)]
fn get_long_integer(mut value: u64, bytes: &mut &[u8]) -> Option<usize> {
    let (mut rest, mut shift) = (bytes.get(1..)?, 0);
    loop {
        let (&byte, more) = rest.split_first()?;
        rest = more;
        value += u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if value > MAX_INTEGER || shift > 28 {
            return None;
        }
        if byte & 0x80 == 0 {
            *bytes = rest;
            return Some(value as usize);
        }
    }
}

/// Appends a string whose length has `prefix` bits in the first byte, below `flags`.
pub fn put_string(string: &[u8], prefix: u32, flags: u8, out: &mut Vec<u8>) {
    put_integer(string.len(), prefix, flags, out);
    out.extend_from_slice(string);
}

/// Appends a string in lower case. Its length has `prefix` bits in the first byte, below `flags`.
pub fn put_lower_case(string: &str, prefix: u32, flags: u8, out: &mut Vec<u8>) {
    put_integer(string.len(), prefix, flags, out);
    let start = out.len();
    out.extend_from_slice(string.as_bytes());
    out[start..].make_ascii_lowercase();
}

/// A string as it was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StringLiteral<'a> {
    bytes: &'a [u8],
    is_coded: bool,
}

impl<'a> StringLiteral<'a> {
    /// Takes a string from the front of `bytes`. Its first byte has `prefix` bits for its length, and above them a bit that tells whether
    /// it is Huffman-coded.
    #[inline]
    pub fn take(bytes: &mut &'a [u8], prefix: u32) -> Option<StringLiteral<'a>> {
        let is_coded = bytes.first()? & 1 << prefix != 0;
        let length = get_integer(bytes, prefix)?;
        let (string, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        Some(StringLiteral { bytes: string, is_coded })
    }

    /// Appends the string to `out`; `None` if its coding is broken.
    pub fn append(self, out: &mut Vec<u8>) -> Option<()> {
        match self.is_coded {
            true => huffman::decode(self.bytes, out).then_some(()),
            false => {
                out.extend_from_slice(self.bytes);
                Some(())
            }
        }
    }

    /// The string, which is decoded to `scratch` if necessary; `None` if its coding is broken.
    #[inline]
    pub fn text<'b>(self, scratch: &'b mut Vec<u8>) -> Option<&'b [u8]>
    where
        'a: 'b,
    {
        if !self.is_coded {
            return Some(self.bytes);
        }
        scratch.clear();
        huffman::decode(self.bytes, scratch).then_some(&scratch[..])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 7541, appendix C.1.
    #[test]
    fn integers_of_the_standard() {
        for (value, prefix, bytes) in
            [(10, 5, &[0x0a][..]), (1337, 5, &[0x1f, 0x9a, 0x0a]), (42, 8, &[0x2a]), (31, 5, &[0x1f, 0])]
        {
            let mut out = Vec::new();
            put_integer(value, prefix, 0, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(get_integer(&mut &out[..], prefix), Some(value));
            assert_eq!(get_integer(&mut &out[..out.len() - 1], prefix), None);
        }
        assert_eq!(
            get_integer(&mut &[0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f][..], 5),
            None
        );
        assert_eq!(get_integer(&mut &[0x1f, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0][..], 5), None);
    }

    #[test]
    fn broken_strings_are_refused() {
        for bytes in [&b""[..], b"\x01", b"\x7f", b"\x7f\x80", b"\x82a"] {
            assert_eq!(StringLiteral::take(&mut &bytes[..], 7), None, "{bytes:?}");
        }
        let coded = StringLiteral::take(&mut &b"\x81\x06"[..], 7).unwrap();
        assert_eq!((coded.append(&mut Vec::new()), coded.text(&mut Vec::new())), (None, None));
    }

    proptest! {
        #[test]
        fn what_is_put_is_taken(text in "[ -~]{0,300}", prefix in 1u32..8, rest in "[ -~]{0,3}") {
            let mut out = Vec::new();
            put_string(text.as_bytes(), prefix, 0, &mut out);
            let middle = out.len();
            put_lower_case(&text, prefix, 0, &mut out);
            out.extend_from_slice(rest.as_bytes());
            let (mut bytes, mut scratch) = (&out[..], b"something else".to_vec());
            let first = StringLiteral::take(&mut bytes, prefix).unwrap();
            prop_assert_eq!(bytes.len(), out.len() - middle);
            prop_assert_eq!(first.text(&mut scratch), Some(text.as_bytes()));
            let mut taken = b"!".to_vec();
            StringLiteral::take(&mut bytes, prefix).unwrap().append(&mut taken).unwrap();
            prop_assert_eq!(taken, format!("!{}", text.to_ascii_lowercase()).into_bytes());
            prop_assert_eq!(bytes, rest.as_bytes());
        }
    }
}
