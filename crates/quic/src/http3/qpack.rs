//! Field sections (RFC 9204) without the dynamic table: fields of the static table, and literals.
//!
//! This side announces no dynamic table, so peers must not refer to one. It sends literals without Huffman coding, which saves
//! processor time at both ends.

use polygraph_multiplex::literals::{StringLiteral, get_integer, put_integer, put_lower_case, put_string};

use super::static_table::{self, ENTRIES, Found};
use super::{Http3Error, codes};

/// What each field counts besides its name and its value (RFC 9114, section 4.2.2).
pub const OVERHEAD: usize = 32;

/// Appends the start of a field section: no part of it needs the dynamic table.
pub fn put_prefix(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0, 0]);
}

/// Appends a field. Its name is written in lower case.
pub fn put_field(name: &str, value: &[u8], out: &mut Vec<u8>) {
    match static_table::find(name, value) {
        Some(Found::Field(index)) => put_entry(index, out),
        Some(Found::Name(index)) => put_named(index, value, out),
        None => {
            put_lower_case(name, 3, 0x20, out);
            put_string(value, 7, 0, out);
        }
    }
}

/// Appends a field of the static table.
#[inline]
pub fn put_entry(index: u8, out: &mut Vec<u8>) {
    put_integer(usize::from(index), 6, 0xc0, out);
}

/// Appends a field whose name is that of this entry of the static table, and whose value is not in it.
#[inline]
pub fn put_named(index: u8, value: &[u8], out: &mut Vec<u8>) {
    put_integer(usize::from(index), 4, 0x50, out);
    put_string(value, 7, 0, out);
}

/// Appends a field whose name, in lower case, is not in the static table.
#[inline]
pub fn put_unlisted(name: &str, value: &[u8], out: &mut Vec<u8>) {
    put_string(name.as_bytes(), 3, 0x20, out);
    put_string(value, 7, 0, out);
}

/// The fields of a section, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Fields {
    text: Vec<u8>,
    /// For each field, where its name and its value end in `text`.
    ends: Vec<(u32, u32)>,
}

impl Fields {
    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
        let mut start = 0;
        self.ends.iter().map(move |&(name, value)| {
            let field = (&self.text[start..name as usize], &self.text[name as usize..value as usize]);
            start = value as usize;
            field
        })
    }
}

/// Decodes a field section of at most `limit` bytes as RFC 9114, section 4.2.2, counts them.
///
/// # Errors
/// If it is not well-formed, refers to the dynamic table, or is too large.
pub fn decode(section: &[u8], limit: usize) -> Result<Fields, Http3Error> {
    let mut fields = Fields::default();
    read(section, limit, |name, value| {
        fields.text.extend_from_slice(name);
        let end = fields.text.len();
        fields.text.extend_from_slice(value);
        fields.ends.push((end as u32, fields.text.len() as u32));
    })?;
    Ok(fields)
}

/// As [`decode`], but passes the fields on to `each` as they come. It may get some fields before there is an error.
///
/// # Errors
/// As [`decode`].
pub fn read(mut bytes: &[u8], limit: usize, mut each: impl FnMut(&[u8], &[u8])) -> Result<(), Http3Error> {
    let failed = |text| move || Http3Error::new(codes::QPACK_DECOMPRESSION_FAILED, text);
    let cut = failed("a field section ends early, or has an integer that is too large");
    let dynamic = failed("a field section refers to the dynamic table, which was not allowed");
    let no_entry = failed("no such entry of the static table");
    let bad_string = failed("a bad string");
    let entry = |index: usize| ENTRIES.get(index).ok_or_else(no_entry);
    let required = get_integer(&mut bytes, 8).ok_or_else(cut)?;
    get_integer(&mut bytes, 7).ok_or_else(cut)?;
    if required != 0 {
        return Err(dynamic());
    }
    // For strings with Huffman coding.
    let (mut name_memory, mut value_memory) = (Vec::new(), Vec::new());
    let mut left = limit;
    while let Some(&first) = bytes.first() {
        let (name, value) = match first {
            0xc0.. => {
                let (name, value) = entry(get_integer(&mut bytes, 6).ok_or_else(cut)?)?;
                (name.as_bytes(), value.as_bytes())
            }
            0x20..0x40 | 0x50..0x60 | 0x70..0x80 => {
                let name = match first {
                    0x20..0x40 => {
                        let name = StringLiteral::take(&mut bytes, 3).ok_or_else(bad_string)?;
                        name.text(&mut name_memory).ok_or_else(bad_string)?
                    }
                    _ => entry(get_integer(&mut bytes, 4).ok_or_else(cut)?)?.0.as_bytes(),
                };
                let value = StringLiteral::take(&mut bytes, 7).ok_or_else(bad_string)?;
                (name, value.text(&mut value_memory).ok_or_else(bad_string)?)
            }
            _ => return Err(dynamic()),
        };
        let too_large = || Http3Error::new(codes::H3_EXCESSIVE_LOAD, "a field section is too large");
        left = left.checked_sub(name.len() + value.len() + OVERHEAD).ok_or_else(too_large)?;
        each(name, value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(bytes: &[u8]) -> Result<Vec<(String, String)>, u64> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fields = decode(bytes, 1000).map_err(|error| error.code)?;
        Ok(fields.iter().map(|(name, value)| (text(name), text(value))).collect())
    }

    fn field(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    /// RFC 9204, appendix B.1, and the same with Huffman coding as other programs send it.
    #[test]
    fn sections_of_the_standard() {
        let expected = Ok(vec![field(":path", "/index.html")]);
        assert_eq!(decoded(b"\x00\x00\x51\x0b/index.html"), expected);
        assert_eq!(decoded(b"\x00\x00\x51\x88\x60\xd5\x48\x5f\x2b\xce\x9a\x68"), expected);
        let literal = Ok(vec![field("custom-key", "custom-value"), field(":method", "GET")]);
        assert_eq!(
            decoded(b"\x00\x00\x2f\x01\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x89\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf\xd1"),
            literal
        );
        let mut out = Vec::new();
        put_prefix(&mut out);
        put_field("Custom-Key", b"custom-value", &mut out);
        put_field(":method", b"GET", &mut out);
        assert_eq!(decoded(&out), literal);
    }

    #[test]
    fn what_needs_the_dynamic_table_or_is_broken_is_refused() {
        for bytes in [
            &b""[..],
            b"\x00",
            b"\x01\x00",
            b"\x00\x00\x80",
            b"\x00\x00\x10",
            b"\x00\x00\x40\x00",
            b"\x00\x00\x00\x00",
            b"\x00\x00\xff\x24",
            b"\x00\x00\x51\x0b/index",
            b"\x00\x00\x27\x7f",
            b"\x00\x00\x51\x81\x06",
        ] {
            assert_eq!(decoded(bytes), Err(codes::QPACK_DECOMPRESSION_FAILED), "{bytes:?}");
        }
        let mut large = vec![0, 0];
        (0..30).for_each(|_| put_field("a", b"b", &mut large));
        assert_eq!(decoded(&large), Err(codes::H3_EXCESSIVE_LOAD));
    }

    proptest! {
        #[test]
        fn what_is_put_is_decoded(fields in prop::collection::vec(("[a-z:-]{1,40}", "\\PC{0,40}"), 0..8)) {
            let mut out = Vec::new();
            put_prefix(&mut out);
            fields.iter().for_each(|(name, value)| put_field(name, value.as_bytes(), &mut out));
            let fields: Vec<_> = fields.iter().map(|(name, value)| field(name, value)).collect();
            let found = decode(&out, usize::MAX).unwrap();
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let found: Vec<_> = found.iter().map(|(name, value)| (text(name), text(value))).collect();
            prop_assert_eq!(found, fields);
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(fields) = decode(&bytes, 500) {
                let size: usize = fields.iter().map(|(name, value)| name.len() + value.len() + OVERHEAD).sum();
                prop_assert!(size <= 500);
            }
        }
    }
}
