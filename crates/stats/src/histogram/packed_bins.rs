//! The bins of a histogram as bytes: the form of the log.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Bins with values, in ascending order. Each is two numbers of variable length (little-endian base 128): the difference of
/// its number to that of the bin before it, and its count. Both are below 128 in most bins of a busy interval.
///
/// Reports read millions of bins and need most of them once, so the bytes are kept as they are. Where they are damaged, the
/// bins end.
#[derive(Clone, Default)]
pub(super) struct PackedBins(Box<[u8]>);

impl PackedBins {
    /// Packs bins: number and count, in ascending order.
    pub fn of(bins: impl Iterator<Item = (usize, u32)>) -> PackedBins {
        let (mut bytes, mut before) = (Vec::new(), 0);
        for (index, count) in bins {
            push(&mut bytes, (index - before) as u64);
            push(&mut bytes, u64::from(count));
            before = index;
        }
        PackedBins(bytes.into())
    }

    /// Whether there are no bins.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// An upper limit of the number of bins.
    pub fn most(&self) -> usize {
        self.0.len() / 2
    }

    /// Calls `count` with number and count of each bin: faster than [`PackedBins::iter`], but it cannot end early.
    #[inline]
    pub fn each(&self, mut count: impl FnMut(usize, u32)) {
        let mut bins = self.iter();
        while let Some((block, rest)) = bins.rest.split_first_chunk::<8>() {
            if u64::from_le_bytes(*block) & 0x8080_8080_8080_8080 == 0 {
                for pair in block.as_chunks::<2>().0 {
                    bins.index += usize::from(pair[0]);
                    count(bins.index, u32::from(pair[1]));
                }
                bins.rest = rest;
            } else {
                let Some((index, n)) = bins.next() else { return };
                count(index, n);
            }
        }
        bins.for_each(|(index, n)| count(index, n));
    }

    /// Number and count of each bin.
    pub fn iter(&self) -> Unpacked<'_> {
        Unpacked { rest: &self.0, index: 0 }
    }
}

fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Iterator over packed bins.
pub(super) struct Unpacked<'a> {
    rest: &'a [u8],
    index: usize,
}

impl Unpacked<'_> {
    #[cold]
    fn long_number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..35).step_by(7) {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

impl Iterator for Unpacked<'_> {
    type Item = (usize, u32);

    #[inline]
    fn next(&mut self) -> Option<(usize, u32)> {
        if let &[step @ ..0x80, count @ ..0x80, ref rest @ ..] = self.rest {
            self.rest = rest;
            self.index += usize::from(step);
            return Some((self.index, u32::from(count)));
        }
        let (step, count) = (self.long_number()?, self.long_number()?);
        self.index += step as usize;
        Some((self.index, u32::try_from(count).unwrap_or(u32::MAX)))
    }
}

impl Serialize for PackedBins {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for PackedBins {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Bytes;

        impl de::Visitor<'_> for Bytes {
            type Value = PackedBins;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("packed bins")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<PackedBins, E> {
                Ok(PackedBins(bytes.into()))
            }
        }

        deserializer.deserialize_bytes(Bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bins_survive(steps in prop::collection::vec((prop_oneof![1usize..128, 1usize..40_000], prop_oneof![0u32..128, any::<u32>()]), 0..50)) {
            let mut at = 0;
            let bins: Vec<(usize, u32)> = steps.into_iter().map(|(step, count)| { at += step; (at, count) }).collect();
            let packed = PackedBins::of(bins.iter().copied());
            prop_assert!(packed.most() >= bins.len());
            prop_assert!(packed.iter().eq(bins.iter().copied()));
            let mut each = Vec::new();
            packed.each(|index, count| each.push((index, count)));
            prop_assert_eq!(each, bins);
        }

        #[test]
        fn damaged_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let packed = PackedBins(bytes.into());
            prop_assert!(packed.iter().count() <= packed.most());
            let mut each = Vec::new();
            packed.each(|index, count| each.push((index, count)));
            prop_assert!(packed.iter().eq(each));
        }
    }
}
