//! How long a run of bytes of one kind is, found in blocks of 16 bytes.

const SIZE: usize = 16;

/// The number of letters, digits and `-` at the start of `rest`, which `buf` ends with.
#[inline]
pub fn name_len(buf: &[u8], rest: &[u8]) -> usize {
    len(buf, rest, classify::name)
}

/// The number of visible ASCII characters at the start of `rest`, which `buf` ends with.
#[inline]
pub fn target_len(buf: &[u8], rest: &[u8]) -> usize {
    len(buf, rest, classify::target)
}

/// The number of bytes at the start of `rest` that are no control characters. `buf` ends with `rest`.
#[inline]
pub fn value_len(buf: &[u8], rest: &[u8]) -> usize {
    len(buf, rest, classify::value)
}

/// Whether the bytes are lower-case letters, digits and `-`.
#[inline]
pub fn is_lower_case_name(bytes: &[u8]) -> bool {
    is_all(bytes, classify::lower_case_name)
}

/// Whether the bytes are visible ASCII characters.
#[inline]
pub fn is_target(bytes: &[u8]) -> bool {
    is_all(bytes, classify::target)
}

/// Whether the bytes are no control characters.
#[inline]
pub fn is_value(bytes: &[u8]) -> bool {
    is_all(bytes, classify::value)
}

/// Whether the bytes are one run, if `run` returns the length of the run at the start of a block. No run contains 0.
#[inline(always)]
fn is_all(bytes: &[u8], run: impl Fn(&[u8; SIZE]) -> usize) -> bool {
    match bytes.last_chunk() {
        // The last block may overlap the one before.
        Some(last) => run(last) == SIZE && bytes.as_chunks().0.iter().all(|block| run(block) == SIZE),
        None => run(&padded(bytes, bytes)) == bytes.len(),
    }
}

/// The length of the run at the start of `rest`, which `buf` ends with, if `run` returns that of the run at the start of a block. No run
/// contains 0.
#[inline(always)]
fn len(buf: &[u8], rest: &[u8], run: impl Fn(&[u8; SIZE]) -> usize) -> usize {
    // Most runs end in the first block.
    match rest.split_first_chunk() {
        Some((block, behind)) => match run(block) {
            SIZE => SIZE + len_of_more(buf, behind, run),
            length => length,
        },
        None => len_of_more(buf, rest, run),
    }
}

/// As [`len()`], for long runs and at the end.
#[inline(never)]
fn len_of_more(buf: &[u8], rest: &[u8], run: impl Fn(&[u8; SIZE]) -> usize) -> usize {
    let mut left = rest;
    while let Some((block, behind)) = left.split_first_chunk() {
        let length = run(block);
        if length < SIZE {
            return rest.len() - left.len() + length;
        }
        left = behind;
    }
    let length = if left.is_empty() { 0 } else { run(&padded(buf, left)) };
    rest.len() - left.len() + length
}

/// The last bytes of `buf`, of which there are 1 to 15, and zeros.
#[inline(always)]
fn padded(buf: &[u8], rest: &[u8]) -> [u8; SIZE] {
    if let Some(last) = buf.last_chunk() {
        return (u128::from_le_bytes(*last) >> (8 * (SIZE - rest.len()))).to_le_bytes();
    }
    // The two halves may overlap.
    match (rest.first_chunk(), rest.last_chunk(), rest.first_chunk(), rest.last_chunk()) {
        (Some(first), Some(last), ..) => {
            let [first, last] = [first, last].map(|half| u128::from(u64::from_le_bytes(*half)));
            (first | last << (8 * (rest.len() - 8))).to_le_bytes()
        }
        (_, _, Some(first), Some(last)) => {
            let [first, last] = [first, last].map(|half| u64::from(u32::from_le_bytes(*half)));
            u128::from(first | last << (8 * (rest.len() - 4))).to_le_bytes()
        }
        _ => {
            let mut padded = [0; SIZE];
            padded.iter_mut().zip(rest).take(3).for_each(|(to, byte)| *to = *byte);
            padded
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod classify {
    use std::arch::x86_64::{
        __m128i, _mm_andnot_si128, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_max_epu8, _mm_min_epu8,
        _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8, _mm_sub_epi8,
    };

    use super::SIZE;

    #[inline(always)]
    pub fn name(block: &[u8; SIZE]) -> usize {
        // SAFETY: all processors of this architecture have SSE2.
        unsafe { run(names(load(block))) }
    }

    #[inline(always)]
    pub fn lower_case_name(block: &[u8; SIZE]) -> usize {
        // SAFETY: all processors of this architecture have SSE2.
        unsafe { run(lower_case_names(load(block))) }
    }

    #[inline(always)]
    pub fn target(block: &[u8; SIZE]) -> usize {
        // SAFETY: all processors of this architecture have SSE2.
        unsafe { run(in_range(load(block), 0x21, 0x7e)) }
    }

    #[inline(always)]
    pub fn value(block: &[u8; SIZE]) -> usize {
        // SAFETY: all processors of this architecture have SSE2.
        unsafe { run(values(load(block))) }
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn names(bytes: __m128i) -> __m128i {
        _mm_or_si128(in_range(_mm_or_si128(bytes, all(0x20)), b'a', b'z'), digits(bytes))
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn lower_case_names(bytes: __m128i) -> __m128i {
        _mm_or_si128(in_range(bytes, b'a', b'z'), digits(bytes))
    }

    /// Digits and `-`.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn digits(bytes: __m128i) -> __m128i {
        _mm_or_si128(in_range(bytes, b'0', b'9'), _mm_cmpeq_epi8(bytes, all(b'-')))
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn values(bytes: __m128i) -> __m128i {
        let above = _mm_cmpeq_epi8(_mm_max_epu8(bytes, all(b' ')), bytes);
        _mm_andnot_si128(_mm_cmpeq_epi8(bytes, all(0x7f)), above)
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn load(block: &[u8; SIZE]) -> __m128i {
        // SAFETY: it reads the 16 bytes of the block, which need not be aligned.
        unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn all(byte: u8) -> __m128i {
        _mm_set1_epi8(byte as i8)
    }

    /// Which bytes are `first` to `last`.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn in_range(bytes: __m128i, first: u8, last: u8) -> __m128i {
        let above = _mm_sub_epi8(bytes, all(first));
        _mm_cmpeq_epi8(_mm_min_epu8(above, all(last - first)), above)
    }

    /// The number of bytes before the first one that is not a member.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn run(members: __m128i) -> usize {
        (!_mm_movemask_epi8(members)).trailing_zeros() as usize
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod classify {
    use super::SIZE;

    #[inline(always)]
    pub fn name(block: &[u8; SIZE]) -> usize {
        run(block, |byte| byte.is_ascii_alphanumeric() || byte == b'-')
    }

    #[inline(always)]
    pub fn lower_case_name(block: &[u8; SIZE]) -> usize {
        run(block, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    }

    #[inline(always)]
    pub fn target(block: &[u8; SIZE]) -> usize {
        run(block, |byte| byte.is_ascii_graphic())
    }

    #[inline(always)]
    pub fn value(block: &[u8; SIZE]) -> usize {
        run(block, |byte| byte >= b' ' && byte != 0x7f)
    }

    /// The number of bytes before the first one that is not a member.
    #[inline(always)]
    fn run(block: &[u8; SIZE], is_member: impl Fn(u8) -> bool) -> usize {
        block.iter().position(|&byte| !is_member(byte)).unwrap_or(SIZE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_end_at_the_first_other_byte() {
        type Len = fn(&[u8], &[u8]) -> usize;
        type Belongs = fn(u8) -> bool;
        let kinds: [(u8, Len, Belongs); 3] = [
            (b'x', name_len, |byte| byte.is_ascii_alphanumeric() || byte == b'-'),
            (b'/', target_len, |byte| byte.is_ascii_graphic()),
            (b' ', value_len, |byte| !byte.is_ascii_control()),
        ];
        for (member, len, belongs) in kinds {
            let end = |bytes: &[u8], at: usize| at + len(bytes, &bytes[at..]);
            for (length, byte) in (0..40).flat_map(|length| (0..=u8::MAX).map(move |byte| (length, byte))) {
                let mut bytes = vec![member; length];
                assert_eq!(end(&bytes, 0), length);
                assert_eq!(end(&bytes, length), length);
                bytes.extend([byte, member]);
                let expected = if belongs(byte) { length + 2 } else { length };
                assert_eq!(end(&bytes, 0), expected, "{byte:#x} after {length}");
                assert_eq!(end(&bytes, length.min(1)), expected);
            }
        }
    }

    #[test]
    fn one_other_byte_is_found_at_every_place() {
        type IsAll = fn(&[u8]) -> bool;
        type Belongs = fn(u8) -> bool;
        let kinds: [(u8, IsAll, Belongs); 3] = [
            (b'x', is_lower_case_name, |byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
            }),
            (b'/', is_target, |byte| byte.is_ascii_graphic()),
            (b' ', is_value, |byte| !byte.is_ascii_control()),
        ];
        for (member, is_all, belongs) in kinds {
            for length in 0..40 {
                assert!(is_all(&vec![member; length]));
                for (at, byte) in (0..length).flat_map(|at| (0..=u8::MAX).map(move |byte| (at, byte))) {
                    let mut bytes = vec![member; length];
                    bytes[at] = byte;
                    assert_eq!(is_all(&bytes), belongs(byte), "{byte:#x} at {at} of {length}");
                }
            }
        }
    }
}
