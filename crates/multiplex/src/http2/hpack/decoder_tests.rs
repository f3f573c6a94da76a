use proptest::prelude::*;

use super::*;
use crate::literals::{put_integer, put_string};
use crate::message::fields::check as check_field;

/// Bytes as the standard writes them.
fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let text = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(text).collect()
}

fn decoded(decoder: &mut Decoder, block: &[u8]) -> Result<String, HpackError> {
    let mut lines = String::new();
    let fits = decoder.decode(block, 1000, |field| {
        let [name, value] = [field.name, field.value].map(String::from_utf8_lossy);
        lines += &format!("{name}: {value}\n");
        // What a table knows about a field is what a look at it would find.
        assert_eq!(field.check(), check_field(field.name, field.value), "{name}: {value}");
    })?;
    assert!(fits);
    Ok(lines)
}

/// Decodes blocks one after the other; after each, the table has this size.
fn check(most: usize, blocks: &[(&str, &str, usize)]) {
    let mut decoder = Decoder::new(most);
    for (hex, expected, size) in blocks {
        let lines = decoded(&mut decoder, &bytes(hex)).unwrap();
        assert_eq!(lines.lines().collect::<Vec<_>>(), expected.split('|').collect::<Vec<_>>());
        assert_eq!(decoder.table.size(), *size, "{hex}");
    }
}

/// RFC 7541, appendix C.2.
#[test]
fn single_fields_of_the_standard() {
    check(
        4096,
        &[(
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            "custom-key: custom-header",
            55,
        )],
    );
    check(4096, &[("040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path", 0)]);
    check(4096, &[("1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret", 0)]);
    check(4096, &[("82", ":method: GET", 0)]);
}

/// RFC 7541, appendix C.3 and C.4.
#[test]
fn requests_of_the_standard() {
    let first = ":method: GET|:scheme: http|:path: /|:authority: www.example.com";
    let second = ":method: GET|:scheme: http|:path: /|:authority: www.example.com|cache-control: no-cache";
    let third =
        ":method: GET|:scheme: https|:path: /index.html|:authority: www.example.com|custom-key: custom-value";
    check(
        4096,
        &[
            ("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", first, 57),
            ("8286 84be 5808 6e6f 2d63 6163 6865", second, 110),
            ("8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65", third, 164),
        ],
    );
    check(
        4096,
        &[
            ("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", first, 57),
            ("8286 84be 5886 a8eb 1064 9cbf", second, 110),
            ("8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", third, 164),
        ],
    );
}

/// RFC 7541, appendix C.5 and C.6: the table is so small that entries have to go.
#[test]
fn replies_of_the_standard() {
    let date = "date: Mon, 21 Oct 2013 20:13:21 GMT";
    let location = "location: https://www.example.com";
    let first = format!(":status: 302|cache-control: private|{date}|{location}");
    let second = format!(":status: 307|cache-control: private|{date}|{location}");
    let third = format!(
        ":status: 200|cache-control: private|date: Mon, 21 Oct 2013 20:13:22 GMT|{location}|content-encoding: gzip|\
         set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"
    );
    check(
        256,
        &[
            (
                "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 \
                 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
                &first,
                222,
            ),
            ("4803 3330 37c1 c0bf", &second, 222),
            (
                "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 \
                 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 \
                 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
                &third,
                215,
            ),
        ],
    );
    check(
        256,
        &[
            (
                "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad \
                 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
                &first,
                222,
            ),
            ("4883 640e ffc1 c0bf", &second, 222),
            (
                "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 \
                 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
                &third,
                215,
            ),
        ],
    );
}

#[test]
fn broken_blocks_are_refused() {
    for (block, error) in [
        (&b"\x80"[..], HpackError::Index),
        (b"\xbe", HpackError::Index),
        (b"\x7f\x00\x01a", HpackError::Index),
        (b"\x0f\x2f\x01a", HpackError::Index),
        (b"\xff", HpackError::Cut),
        (b"\xff\xff\xff\xff\xff\xff\xff\x00", HpackError::Cut),
        (b"\x40", HpackError::Cut),
        (b"\x40\x01", HpackError::Cut),
        (b"\x40\x01a", HpackError::Cut),
        (b"\x40\x01a\x02b", HpackError::Cut),
        (b"\x04\x81\x06", HpackError::Coding),
        (b"\x00\x81\x06\x01b", HpackError::Coding),
        (b"\x3f\xe2\x1f", HpackError::Resize),
        (b"\x82\x20", HpackError::Resize),
    ] {
        assert_eq!(decoded(&mut Decoder::default(), block), Err(error), "{block:?}");
    }
}

#[test]
fn the_table_may_be_resized_at_the_start_of_a_block() {
    let mut decoder = Decoder::default();
    decoded(&mut decoder, b"\x40\x01a\x01b\x40\x01c\x01d").unwrap();
    assert_eq!(decoded(&mut decoder, b"\xbe\xbf"), Ok("c: d\na: b\n".into()));
    assert_eq!(decoded(&mut decoder, b"\x3f\x0a\xbe"), Ok("c: d\n".into()), "room for one field");
    assert_eq!(decoded(&mut decoder, b"\xbf"), Err(HpackError::Index));
    assert_eq!(decoded(&mut decoder, b"\x20\x3f\xe1\x1f\x88"), Ok(":status: 200\n".into()));
    assert_eq!(decoder.table.most(), 4096);
    assert_eq!(decoded(&mut decoder, b""), Ok(String::new()));
}

#[test]
fn a_section_that_is_too_large_is_decoded_without_being_passed_on() {
    let (mut decoder, mut count) = (Decoder::default(), 0);
    let block = b"\x40\x01a\x01b\x40\x01c\x01d\x40\x01e\x01f";
    assert_eq!(decoder.decode(block, 70, |_| count += 1), Ok(false));
    assert_eq!((count, decoder.table.len()), (2, 3));
    assert_eq!(decoder.decode(b"\xbe", 34, |_| count += 1), Ok(true));
}

proptest! {
    #[test]
    fn any_bytes_are_decoded_or_refused(blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..9)) {
        let mut decoder = Decoder::new(200);
        for block in blocks {
            let mut size = 0;
            let _ = decoder.decode(&block, 500, |field| size += field.name.len() + field.value.len() + OVERHEAD);
            prop_assert!(size <= 500 && decoder.table.size() <= 200);
        }
    }

    /// Whatever is in a table when a field is named by its index.
    #[test]
    fn what_a_table_knows_is_what_a_look_would_find(
        fields in prop::collection::vec(("[a-c:C ]{0,2}|te|cookie|host|upgrade|content-length", "[ -~\\x00\t]{0,3}|trailers"), 1..9),
        other in "[ -~]{0,3}",
    ) {
        let mut decoder = Decoder::default();
        for (name, value) in &fields {
            let mut block = vec![0x40];
            put_string(name.as_bytes(), 7, 0, &mut block);
            put_string(value.as_bytes(), 7, 0, &mut block);
            // The field of the table, its name with another value, and the latter from the table.
            block.extend(b"\xbe\x7e");
            put_string(other.as_bytes(), 7, 0, &mut block);
            block.push(0xbe);
            let line = |value: &str| format!("{name}: {value}\n");
            prop_assert_eq!(decoded(&mut decoder, &block), Ok([line(value).repeat(2), line(&other).repeat(2)].concat()));
        }
    }

    #[test]
    fn names_of_the_static_table_are_known(index in 1usize..=ENTRIES.len(), value in "[ -~\\x00]{0,3}|trailers") {
        let mut block = Vec::new();
        put_integer(index, 7, 0x80, &mut block);
        put_integer(index, 4, 0, &mut block);
        put_string(value.as_bytes(), 7, 0, &mut block);
        let (name, known) = ENTRIES[index - 1];
        prop_assert_eq!(decoded(&mut Decoder::default(), &block), Ok(format!("{name}: {known}\n{name}: {value}\n")));
    }
}
