//! Decimal numbers in heads, written without the formatting machinery of the standard library.

/// Bytes that [`write()`] appends for `value`, 1 to 20.
pub fn len(value: u64) -> usize {
    value.checked_ilog10().map_or(1, |digits| digits as usize + 1)
}

/// Appends `value` without sign or leading zeros.
pub fn write(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Reads digits only. Numbers too large for 64 bits become the largest one, since all positions beyond the end
/// are equivalent. `None` without digits or with anything else.
pub fn parse_saturating(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |value, &byte| {
        byte.is_ascii_digit().then(|| value.saturating_mul(10).saturating_add(u64::from(byte - b'0')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_too_large_saturate() {
        assert_eq!(parse_saturating(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_saturating(b"18446744073709551616"), Some(u64::MAX));
        assert_eq!(parse_saturating(&[b'9'; 100]), Some(u64::MAX));
        for bad in ["", "-1", "+1", "1x", " 1"] {
            assert_eq!(parse_saturating(bad.as_bytes()), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn round_trips(value in prop_oneof![any::<u64>(), 0..2000u64]) {
            let mut text = Vec::new();
            write(&mut text, value);
            prop_assert_eq!(String::from_utf8_lossy(&text), value.to_string());
            prop_assert_eq!(text.len(), len(value));
            prop_assert_eq!(parse_saturating(&text), Some(value));
        }
    }
}
