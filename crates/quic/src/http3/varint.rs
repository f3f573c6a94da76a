//! Integers of variable length (RFC 9000, section 16).

/// Appends an integer, which must be below 2^62.
pub fn put(value: u64, out: &mut Vec<u8>) {
    match value {
        0..0x40 => out.push(value as u8),
        0x40..0x4000 => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..0x4000_0000 => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// An integer at the start of `bytes`, and its length in bytes; `None` if it is not complete.
pub fn get(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let length = 1 << (first >> 6);
    let value = bytes
        .get(1..length)?
        .iter()
        .fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte));
    Some((value, length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 9000, appendix A.1.
    #[test]
    fn examples_of_the_standard() {
        for (bytes, value) in [
            (&b"\xc2\x19\x7c\x5e\xff\x14\xe8\x8c"[..], 151_288_809_941_952_652),
            (b"\x9d\x7f\x3e\x7d", 494_878_333),
            (b"\x7b\xbd", 15_293),
            (b"\x25", 37),
        ] {
            assert_eq!(get(bytes), Some((value, bytes.len())));
            assert_eq!(get(&bytes[..bytes.len() - 1]), None);
            let mut out = Vec::new();
            put(value, &mut out);
            assert_eq!(out, bytes);
        }
        assert_eq!(get(b"\x40\x25"), Some((37, 2)), "longer than necessary");
    }

    proptest! {
        #[test]
        fn what_is_put_is_got(value in 0u64..1 << 62, shift in 0u32..62) {
            let (value, mut out) = (value >> shift, Vec::new());
            put(value, &mut out);
            prop_assert_eq!(get(&out), Some((value, out.len())));
        }
    }
}
