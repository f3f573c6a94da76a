//! Field sections (RFC 9204) without the dynamic table: fields of the static table, and literals.
//!
//! This side announces no dynamic table, so peers must not refer to one. It sends literals without Huffman coding, which saves
//! processor time at both ends.

use polygraph_multiplex::literals::{StringLiteral, get_integer, put_integer, put_lower_case, put_string};

use super::static_table::{self, ENTRIES, Found};
use super::{Http3Error, codes};

/// Appends the start of a field section: no part of it needs the dynamic table.
pub fn put_prefix(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0, 0]);
}

/// Appends a field. Its name is written in lower case.
pub fn put_field(name: &str, value: &[u8], out: &mut Vec<u8>) {
    match static_table::find(name, value) {
        Some(Found::Field(index)) => return put_integer(usize::from(index), 6, 0xc0, out),
        Some(Found::Name(index)) => put_integer(usize::from(index), 4, 0x50, out),
        None => put_lower_case(name, 3, 0x20, out),
    }
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

    /// The size of the section as RFC 9114, section 4.2.2, counts it.
    fn size(&self) -> usize {
        self.text.len() + 32 * self.ends.len()
    }
}

/// What a field that is a literal begins with: where its name comes from.
enum Name {
    Static(usize),
    /// A literal, whose length has so many bits in the first byte.
    Literal(u32),
}

/// Decodes a field section of at most `limit` bytes as RFC 9114, section 4.2.2, counts them.
///
/// # Errors
/// If it is not well-formed, refers to the dynamic table, or is too large.
pub fn decode(mut bytes: &[u8], limit: usize) -> Result<Fields, Http3Error> {
    let failed = |text| move || Http3Error::new(codes::QPACK_DECOMPRESSION_FAILED, text);
    let cut = failed("a field section ends early, or has an integer that is too large");
    let dynamic = failed("a field section refers to the dynamic table, which was not allowed");
    let mut fields = Fields::default();
    let required = get_integer(&mut bytes, 8).ok_or_else(cut)?;
    get_integer(&mut bytes, 7).ok_or_else(cut)?;
    if required != 0 {
        return Err(dynamic());
    }
    while let Some(&first) = bytes.first() {
        let name = match first {
            0xc0.. => {
                let index = get_integer(&mut bytes, 6).ok_or_else(cut)?;
                let (name, value) =
                    ENTRIES.get(index).ok_or_else(failed("no such entry of the static table"))?;
                fields.text.extend_from_slice(name.as_bytes());
                let end = fields.text.len();
                fields.text.extend_from_slice(value.as_bytes());
                fields.ends.push((end as u32, fields.text.len() as u32));
                None
            }
            0x50..0x60 | 0x70..0x80 => Some(Name::Static(get_integer(&mut bytes, 4).ok_or_else(cut)?)),
            0x20..0x40 => Some(Name::Literal(3)),
            _ => return Err(dynamic()),
        };
        if let Some(name) = name {
            match name {
                Name::Static(index) => {
                    let (name, _) =
                        ENTRIES.get(index).ok_or_else(failed("no such entry of the static table"))?;
                    fields.text.extend_from_slice(name.as_bytes());
                }
                Name::Literal(prefix) => {
                    append_string(&mut bytes, prefix, &mut fields.text).ok_or_else(failed("a bad string"))?
                }
            }
            let end = fields.text.len();
            append_string(&mut bytes, 7, &mut fields.text).ok_or_else(failed("a bad string"))?;
            fields.ends.push((end as u32, fields.text.len() as u32));
        }
        if fields.size() > limit {
            return Err(Http3Error::new(codes::H3_EXCESSIVE_LOAD, "a field section is too large"));
        }
    }
    Ok(fields)
}

/// Takes a string from the front of `bytes`, and appends it to `out`.
fn append_string(bytes: &mut &[u8], prefix: u32, out: &mut Vec<u8>) -> Option<()> {
    StringLiteral::take(bytes, prefix)?.append(out)
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
                prop_assert!(fields.size() <= 500);
            }
        }
    }
}
