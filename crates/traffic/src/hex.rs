//! Numbers as hex digits, written and read many digits at once.

/// The digits of `value` as lower-case hex, all of them at once: every transaction writes about ten numbers.
#[inline]
pub fn hex(value: u32) -> [u8; 8] {
    // One digit per byte, the highest first in memory.
    let mut digits = u64::from(value);
    digits = (digits << 16 | digits) & 0x0000_ffff_0000_ffff;
    digits = (digits << 8 | digits) & 0x00ff_00ff_00ff_00ff;
    digits = (digits << 4 | digits) & LOW_HALVES;
    text_of(digits).to_be_bytes()
}

const LOW_HALVES: u64 = 0x0f0f_0f0f_0f0f_0f0f;
const ONES: u64 = 0x0101_0101_0101_0101;

/// Eight digits as text: the lower-case hex digit for each byte, 0 to 15.
#[inline]
fn text_of(digits: u64) -> u64 {
    let letters = (digits + 6 * ONES) >> 4 & ONES;
    digits + u64::from(b'0') * ONES + letters * u64::from(b'a' - b'9' - 1)
}

/// The digits of `value` as lower-case hex, all of them at once.
#[inline]
#[cfg(target_arch = "x86_64")]
pub fn hex_sixteen(value: u64) -> [u8; 16] {
    // SAFETY: all processors of this architecture have SSE2.
    unsafe { vector::hex_sixteen(value) }
}

/// The digits of `value` as lower-case hex, all of them at once.
#[inline]
#[cfg(not(target_arch = "x86_64"))]
pub fn hex_sixteen(value: u64) -> [u8; 16] {
    let mut text = [0; 16];
    text[..8].copy_from_slice(&hex((value >> 32) as u32));
    text[8..].copy_from_slice(&hex(value as u32));
    text
}

/// Reads eight hex digits, either case, all of them at once; `None` for anything else.
#[inline]
pub fn parse_eight(text: &[u8; 8]) -> Option<u32> {
    let text = u64::from_be_bytes(*text);
    // Letters have a bit that digits lack, and count from 1.
    let letters = text >> 6 & ONES;
    let digits = (text & LOW_HALVES) + 9 * letters;
    // Bytes that are not digits were read as digits with another spelling, or as too large values.
    let lower_case = text | letters << 5;
    if (text_of(digits) ^ lower_case) | (digits & !LOW_HALVES) != 0 {
        return None;
    }
    let pairs = (digits | digits >> 4) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
    Some((fours | fours >> 16) as u32)
}

/// Reads sixteen hex digits, either case, in two parts; `None` for anything else.
#[inline]
#[cfg(target_arch = "x86_64")]
pub fn parse_sixteen(text: [[u8; 8]; 2]) -> Option<u64> {
    // SAFETY: all processors of this architecture have SSE2.
    unsafe { vector::parse_sixteen(text) }
}

/// Reads sixteen hex digits, either case, in two parts; `None` for anything else.
#[inline]
#[cfg(not(target_arch = "x86_64"))]
pub fn parse_sixteen([first, second]: [[u8; 8]; 2]) -> Option<u64> {
    Some(u64::from(parse_eight(&first)?) << 32 | u64::from(parse_eight(&second)?))
}

#[cfg(target_arch = "x86_64")]
mod vector {
    use std::arch::x86_64::{
        __m128i, _mm_add_epi8, _mm_and_si128, _mm_cmpeq_epi8, _mm_cmpgt_epi8, _mm_cvtsi64_si128,
        _mm_cvtsi128_si64, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_packus_epi16, _mm_set_epi64x,
        _mm_set1_epi8, _mm_set1_epi16, _mm_slli_epi16, _mm_srli_epi16, _mm_storeu_si128, _mm_sub_epi8,
        _mm_unpacklo_epi8,
    };

    #[inline]
    #[target_feature(enable = "sse2")]
    pub fn hex_sixteen(value: u64) -> [u8; 16] {
        let bytes = _mm_cvtsi64_si128(value.swap_bytes() as i64);
        let low_halves = _mm_set1_epi8(0x0f);
        let halves = [_mm_srli_epi16(bytes, 4), bytes].map(|bytes| _mm_and_si128(bytes, low_halves));
        let digits = _mm_unpacklo_epi8(halves[0], halves[1]);
        let letters = _mm_cmpgt_epi8(digits, _mm_set1_epi8(9));
        let offsets = _mm_add_epi8(
            _mm_set1_epi8(b'0' as i8),
            _mm_and_si128(letters, _mm_set1_epi8((b'a' - b'9' - 1) as i8)),
        );
        let mut text = [0; 16];
        // SAFETY: it writes the 16 bytes of the text, which need not be aligned.
        unsafe { _mm_storeu_si128(text.as_mut_ptr().cast(), _mm_add_epi8(digits, offsets)) };
        text
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    pub fn parse_sixteen([first, second]: [[u8; 8]; 2]) -> Option<u64> {
        let text = _mm_set_epi64x(i64::from_le_bytes(second), i64::from_le_bytes(first));
        let letters = in_range(_mm_or_si128(text, _mm_set1_epi8(0x20)), b'a', b'f');
        let digits = _mm_or_si128(letters, in_range(text, b'0', b'9'));
        if _mm_movemask_epi8(digits) != 0xffff {
            return None;
        }
        // The lower halves of letters count from 1.
        let nines = _mm_and_si128(letters, _mm_set1_epi8(9));
        let values = _mm_add_epi8(_mm_and_si128(text, _mm_set1_epi8(0x0f)), nines);
        // Of two neighbours, the first one in memory is the higher half of a byte.
        let pairs = _mm_or_si128(_mm_slli_epi16(values, 4), _mm_srli_epi16(values, 8));
        let bytes = _mm_packus_epi16(_mm_and_si128(pairs, _mm_set1_epi16(0xff)), _mm_set1_epi8(0));
        Some((_mm_cvtsi128_si64(bytes) as u64).swap_bytes())
    }

    /// Which bytes are `first` to `last`.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn in_range(bytes: __m128i, first: u8, last: u8) -> __m128i {
        let above = _mm_sub_epi8(bytes, _mm_set1_epi8(first as i8));
        _mm_cmpeq_epi8(_mm_min_epu8(above, _mm_set1_epi8((last - first) as i8)), above)
    }
}

/// Writes `value` as lower-case hex, zero padded to the whole of `out`.
pub fn write_hex(out: &mut [u8], mut value: u64) {
    for byte in out.iter_mut().rev() {
        *byte = b"0123456789abcdef"[(value & 15) as usize];
        value >>= 4;
    }
}

/// Reads up to 16 hex digits, either case; `None` for anything else.
#[inline]
pub fn parse_hex(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 16 {
        return None;
    }
    if let Some((first, second)) = text.split_first_chunk()
        && let Ok(second) = second.try_into()
    {
        return parse_sixteen([*first, second]);
    }
    let (first, eights) = text.as_rchunks();
    // All bytes are read before any is checked, to avoid branches.
    let (value, seen) = first.iter().fold((0u64, 0u8), |(value, seen), &byte| {
        let digit = DIGIT[usize::from(byte)];
        (value << 4 | u64::from(digit & 15), seen | digit)
    });
    let value = (seen < 16).then_some(value)?;
    eights.iter().try_fold(value, |value, eight| Some(value << 32 | u64::from(parse_eight(eight)?)))
}

/// The value of a byte as a hex digit; 255 if it is not one.
const DIGIT: [u8; 256] = {
    let mut digits = [u8::MAX; 256];
    let mut value = 0;
    while value < 16 {
        let digit = b"0123456789abcdef"[value];
        digits[digit as usize] = value as u8;
        digits[digit.to_ascii_uppercase() as usize] = value as u8;
        value += 1;
    }
    digits
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_is_that_of_the_standard_library() {
        let numbers =
            (0..32).flat_map(|bit| [1u32 << bit, (1 << bit) - 1, 0x9abc_def0 >> bit, 0x90a1_f8e7 << bit]);
        for number in numbers.chain([u32::MAX]) {
            let text = format!("{number:08x}");
            assert_eq!(hex(number), text.as_bytes(), "{text}");
            assert_eq!(parse_hex(text.as_bytes()), Some(u64::from(number)));
            let long = u64::from(number).rotate_left(number & 63) | 0x1000_0000_0000_0000;
            assert_eq!(hex_sixteen(long), format!("{long:x}").as_bytes());
            assert_eq!(parse_hex(text.to_uppercase().as_bytes()), Some(u64::from(number)));
        }
        for byte in 0..=u8::MAX {
            let digit = char::from(byte).to_digit(16).map(u64::from);
            assert_eq!(parse_hex(&[byte]), digit, "{byte}");
            assert_eq!(parse_hex(&[b'1', byte, b'2']), digit.map(|digit| 0x102 | digit << 4), "{byte}");
        }
        for (at, byte) in (0..16).flat_map(|at| (0..=u8::MAX).map(move |byte| (at, byte))) {
            let mut text = *b"0a9F1c3E5b7d2A4f";
            text[at] = byte;
            for text in [&text[..8], &text[..9], &text] {
                let digits = text.iter().map(|&byte| char::from(byte).to_digit(16).map(u64::from));
                let expected = digits.reduce(|value, digit| Some(value? << 4 | digit?)).flatten();
                assert_eq!(parse_hex(text), expected, "{byte} at {at}");
            }
        }
        assert_eq!(parse_hex(b"fedcba9876543210"), Some(0xfedc_ba98_7654_3210));
        assert_eq!((parse_hex(b""), parse_hex(b"00000000000000001")), (None, None));
    }
}
