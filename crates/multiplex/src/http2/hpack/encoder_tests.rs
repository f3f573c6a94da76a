use proptest::prelude::*;

use super::super::Decoder;
use super::*;

fn block(encoder: &mut Encoder, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    encoder.begin(&mut out);
    for (name, value) in fields {
        match *name {
            ":method" => encoder.method(value, &mut out),
            ":scheme" => encoder.scheme(value, &mut out),
            ":authority" => encoder.authority(value, &mut out),
            ":path" => encoder.path(value.as_bytes(), &mut out),
            ":status" => encoder.status(value.parse().unwrap(), &mut out),
            name => encoder.field(name, value.as_bytes(), &mut out),
        }
    }
    out
}

fn decoded(decoder: &mut Decoder, block: &[u8]) -> Vec<(String, String)> {
    let (mut fields, text) = (Vec::new(), |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned());
    assert_eq!(
        decoder.decode(block, 1 << 20, |field| fields.push((text(field.name), text(field.value)))),
        Ok(true)
    );
    fields
}

/// RFC 7541, appendix C.3: fields that this side encodes as the standard does.
#[test]
fn requests_of_the_standard() {
    let mut encoder = Encoder::default();
    let start = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")];
    assert_eq!(block(&mut encoder, &start), b"\x82\x86\x84\x41\x0fwww.example.com");
    let second = [&start[..], &[("cache-control", "no-cache")]].concat();
    assert_eq!(block(&mut encoder, &second), b"\x82\x86\x84\xbe\x58\x08no-cache");
    let third = [(":method", "GET"), (":authority", "www.example.com"), ("Custom-Key", "custom-value")];
    assert_eq!(block(&mut encoder, &third), b"\x82\xbf\x40\x0acustom-key\x0ccustom-value");
}

#[test]
fn fields_that_change_are_not_indexed() {
    let fields =
        [(":path", "/x"), ("X-Xact", "1"), ("Content-Length", "9"), ("Date", "d"), ("Content-MD5", "m")];
    let expected = b"\x04\x02/x\x00\x06x-xact\x011\x0f\x0d\x019\x0f\x12\x01d\x00\x0bcontent-md5\x01m";
    let mut encoder = Encoder::default();
    for _ in 0..2 {
        assert_eq!(block(&mut encoder, &fields), expected);
    }
    assert!(encoder.table.is_empty());
}

#[test]
fn values_that_the_static_table_has_are_one_byte() {
    let mut encoder = Encoder::default();
    for (field, byte) in [
        ((":method", "POST"), 0x83),
        ((":scheme", "https"), 0x87),
        ((":path", "/"), 0x84),
        ((":status", "200"), 0x88),
        ((":status", "204"), 0x89),
        ((":status", "500"), 0x8e),
        (("Accept-Encoding", "gzip, deflate"), 0x90),
    ] {
        assert_eq!(block(&mut encoder, &[field]), [byte]);
    }
    assert_eq!(block(&mut encoder, &[(":status", "302")]), b"\x48\x03302");
    assert_eq!(block(&mut encoder, &[(":status", "302"), (":method", "PUT")]), b"\xbe\x42\x03PUT");
}

#[test]
fn a_new_value_is_indexed_with_the_name_of_an_earlier_one() {
    let mut encoder = Encoder::default();
    let first = block(&mut encoder, &[("X-Other", "1"), ("X-Other", "2")]);
    assert_eq!(first, b"\x40\x07x-other\x011\x7e\x012");
    assert_eq!(block(&mut encoder, &[("x-other", "1"), ("X-OTHER", "2")]), b"\xbf\xbe");
    // A large value pushes out nothing.
    let large = "x".repeat(2000);
    assert_eq!(block(&mut encoder, &[("Via", &large)])[..3], [0x0f, 60 - 15, 0x7f]);
    assert_eq!(block(&mut encoder, &[("Other", &large)])[..3], *b"\x00\x05o");
    assert_eq!(encoder.table.len(), 2);
}

#[test]
fn the_peer_is_told_the_size_of_its_table() {
    let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
    let field = [("Server", "s")];
    for (sizes, expected) in [
        (&[][..], &b"\x76\x01s"[..]),
        (&[], b"\xbe"),
        // More than the size at the start is not used.
        (&[9999], b"\xbe"),
        (&[100, 200], b"\x3f\x45\x3f\xa9\x01\xbe"),
        (&[0], b"\x20\x0f\x27\x01s"),
        (&[300, 200], b"\x3f\xa9\x01\x76\x01s"),
        (&[0, 400], b"\x20\x3f\xf1\x02\x76\x01s"),
        (&[], b"\xbe"),
    ] {
        sizes.iter().for_each(|size| encoder.resize(*size));
        let block = block(&mut encoder, &field);
        assert_eq!(block, expected, "{sizes:?}");
        assert_eq!(decoded(&mut decoder, &block), [("server".to_owned(), "s".to_owned())]);
    }
    // The peer never sees a block that was given up.
    block(&mut encoder, &[("A", "b"), ("C", "d")]);
    encoder.give_up();
    let next = block(&mut encoder, &field);
    assert_eq!(next, b"\x20\x3f\xf1\x02\x76\x01s");
    assert_eq!(decoded(&mut decoder, &next).len(), 1);
}

proptest! {
    #[test]
    fn what_is_put_is_decoded(
        blocks in prop::collection::vec(
            (prop::collection::vec(("[a-zA-C-]{1,6}|Server|Cookie|X-Xact", "\\PC{0,40}|a|b"), 0..8), 0usize..6000, 0u8..6),
            0..9,
        ),
    ) {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        for (fields, size, kind) in blocks {
            let borrowed: Vec<_> = fields.iter().map(|(name, value)| (&name[..], &value[..])).collect();
            let out = block(&mut encoder, &borrowed);
            match kind {
                0 => encoder.resize(size),
                1 => encoder.give_up(),
                _ => {
                    let expected: Vec<_> =
                        fields.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect();
                    prop_assert_eq!(decoded(&mut decoder, &out), expected);
                    prop_assert!(encoder.table.size() <= TABLE_SIZE);
                }
            }
            if kind == 0 {
                // This block is not sent either.
                encoder.give_up();
            }
        }
    }
}
