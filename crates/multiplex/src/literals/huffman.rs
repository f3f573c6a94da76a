//! The Huffman code of HPACK (RFC 7541, appendix B), which QPACK shares.
//!
//! The code is canonical: the lengths of the symbols determine it. Among symbols of the same length, codes are in the order of the
//! symbols, and shorter codes are numerically smaller when both are filled up with zeros.

/// The lengths in bits of the codes of all bytes.
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28,
    28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6,
    6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7,
    8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7,
    15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24,
    23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23,
    23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26,
    26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20,
    21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27,
    27, 27, 26,
];

/// The longest code in bits, that of the end of the string, which must not occur.
const LONGEST: usize = 30;

struct Code {
    /// For each length, the first number of [`LONGEST`] bits that is beyond all codes up to this length.
    limit: [u32; LONGEST + 1],
    /// For each length, the first code, and its place in `symbols`.
    first: [(u32, usize); LONGEST + 1],
    /// The bytes in the order of their codes.
    symbols: [u8; 256],
}

const fn code() -> Code {
    let mut code = Code { limit: [0; LONGEST + 1], first: [(0, 0); LONGEST + 1], symbols: [0; 256] };
    let (mut length, mut next, mut place) = (1, 0u32, 0);
    while length <= LONGEST {
        next <<= 1;
        code.first[length] = (next, place);
        let mut symbol = 0;
        while symbol < 256 {
            if LENGTHS[symbol] as usize == length {
                code.symbols[place] = symbol as u8;
                place += 1;
                next += 1;
            }
            symbol += 1;
        }
        code.limit[length] = next << (LONGEST - length);
        length += 1;
    }
    code
}

const CODE_VALUE: Code = code();
static CODE: Code = CODE_VALUE;

/// The bits with which short codes are looked up at once. All printable characters but a few have codes that are shorter.
const SHORT: usize = 10;

/// For each number of [`SHORT`] bits, the byte whose code they begin with, and the length of the code; 0 for longer codes.
static BY_START: [(u8, u8); 1 << SHORT] = by_start();

const fn by_start() -> [(u8, u8); 1 << SHORT] {
    let mut table = [(0, 0); 1 << SHORT];
    let (mut length, mut at) = (1, 0);
    while length <= SHORT {
        let beyond = CODE_VALUE.limit[length] >> (LONGEST - SHORT);
        let (first, place) = CODE_VALUE.first[length];
        while at < beyond as usize {
            let code = (at >> (SHORT - length)) as u32;
            table[at] = (CODE_VALUE.symbols[place + (code - first) as usize], length as u8);
            at += 1;
        }
        length += 1;
    }
    table
}

/// Appends the decoded `bytes` to `out`; false if they are not a coded string.
pub fn decode(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    let (mut bits, mut count) = (0u64, 0usize);
    let mut rest = bytes.iter();
    loop {
        while count <= 56 - 8
            && let Some(byte) = rest.next()
        {
            bits = bits << 8 | u64::from(*byte);
            count += 8;
        }
        if count == 0 {
            return true;
        }
        // The next bits, filled up with ones as the padding is.
        let next = match count.checked_sub(LONGEST) {
            Some(more) => (bits >> more) as u32,
            None => (bits << (LONGEST - count)) as u32 | ((1 << (LONGEST - count)) - 1),
        } & ((1 << LONGEST) - 1);
        let (symbol, length) = BY_START[(next >> (LONGEST - SHORT)) as usize];
        let length = usize::from(length);
        if length > 0 && length <= count {
            out.push(symbol);
            count -= length;
            continue;
        }
        match (SHORT + 1..=LONGEST).find(|&length| next < CODE.limit[length]) {
            Some(length) if length <= count => {
                let (first, place) = CODE.first[length];
                out.push(CODE.symbols[place + ((next >> (LONGEST - length)) - first) as usize]);
                count -= length;
            }
            // What remains is padding: fewer than eight ones.
            _ => {
                let padding = bits & ((1 << count) - 1);
                return rest.len() == 0 && count < 8 && padding == (1 << count) - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encode(bytes: &[u8]) -> Vec<u8> {
        let (mut bits, mut count, mut out) = (0u64, 0, Vec::new());
        for &byte in bytes {
            let length = usize::from(LENGTHS[usize::from(byte)]);
            let (first, place) = CODE.first[length];
            let at = CODE.symbols[place..].iter().position(|&symbol| symbol == byte).unwrap();
            bits = bits << length | u64::from(first + at as u32);
            count += length;
            while count >= 8 {
                count -= 8;
                out.push((bits >> count) as u8);
            }
        }
        if count > 0 {
            out.push((bits << (8 - count)) as u8 | ((1u16 << (8 - count)) - 1) as u8);
        }
        out
    }

    fn decoded(bytes: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        decode(bytes, &mut out).then_some(out)
    }

    /// RFC 7541, appendix C.4 and C.6.
    #[test]
    fn examples_of_the_standard() {
        for (coded, text) in [
            (&b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff"[..], "www.example.com"),
            (b"\xa8\xeb\x10\x64\x9c\xbf", "no-cache"),
            (b"\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f", "custom-key"),
            (b"\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf", "custom-value"),
            (b"\x64\x02", "302"),
            (
                b"\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff",
                "Mon, 21 Oct 2013 20:13:21 GMT",
            ),
        ] {
            assert_eq!(decoded(coded).as_deref(), Some(text.as_bytes()));
            assert_eq!(encode(text.as_bytes()), coded);
        }
    }

    #[test]
    fn wrong_padding_and_the_end_of_the_string_are_refused() {
        assert_eq!(decoded(b""), Some(Vec::new()));
        // "0" is 00000, which three ones follow.
        assert_eq!(decoded(b"\x07"), Some(b"0".to_vec()));
        assert_eq!(decoded(b"\x06"), None, "padding with a zero");
        assert_eq!(decoded(b"\x07\xff"), None, "more than seven bits of padding");
        assert_eq!(decoded(b"\xff\xff\xff\xff"), None, "the end of the string");
        assert_eq!(decoded(b"\xff"), None, "nothing but padding of a whole byte");
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(bytes in prop::collection::vec(any::<u8>(), 0..99)) {
            prop_assert_eq!(decoded(&encode(&bytes)), Some(bytes));
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..99)) {
            if let Some(text) = decoded(&bytes) {
                prop_assert_eq!(encode(&text), bytes);
            }
        }
    }
}
