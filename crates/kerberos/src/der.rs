//! DER (ITU-T X.690), as far as Kerberos (RFC 4120) and SPNEGO (RFC 4178) use it: elements with tags of one byte and definite
//! lengths. Readers take any bytes.

/// Tags of elements.
pub mod tag {
    /// An INTEGER.
    pub const INTEGER: u8 = 0x02;
    /// BIT STRING.
    pub const BITS: u8 = 0x03;
    /// OCTET STRING.
    pub const OCTETS: u8 = 0x04;
    /// OBJECT IDENTIFIER.
    pub const OID: u8 = 0x06;
    /// An ENUMERATED.
    pub const ENUMERATED: u8 = 0x0a;
    /// A GeneralizedTime.
    pub const TIME: u8 = 0x18;
    /// A GeneralString.
    pub const TEXT: u8 = 0x1b;
    /// SEQUENCE and SEQUENCE OF.
    pub const SEQUENCE: u8 = 0x30;
    /// The first constructed tag of the class "application". Tag 0 is also the frame of the first token of a mechanism (RFC 2743,
    /// section 3.1).
    pub const APPLICATION: u8 = 0x60;
    /// The first constructed tag of the class "context-specific".
    pub const CONTEXT: u8 = 0xa0;
}

/// Reads elements one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Der<'a>(pub &'a [u8]);

impl<'a> Der<'a> {
    /// The next element, as its tag and its value; `Some(None)` at the end, `None` if the bytes are no DER.
    #[expect(clippy::should_implement_trait, reason = "`?` ends a reader at the first fault")]
    pub fn next(&mut self) -> Option<Option<(u8, &'a [u8])>> {
        let Some((&tag, rest)) = self.0.split_first() else { return Some(None) };
        let (&first, rest) = rest.split_first()?;
        let (len, rest) = match first {
            0..0x80 => (usize::from(first), rest),
            _ => {
                let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                if digits.is_empty() || digits.len() > 4 {
                    return None;
                }
                (digits.iter().fold(0, |len, digit| len << 8 | usize::from(*digit)), rest)
            }
        };
        let (value, rest) = rest.split_at_checked(len)?;
        self.0 = rest;
        Some(Some((tag, value)))
    }

    /// The value of the next element, if it has this tag.
    pub fn expect(&mut self, wanted: u8) -> Option<&'a [u8]> {
        self.next()?.filter(|(tag, _)| *tag == wanted).map(|(_, value)| value)
    }

    /// The value of the next element if it has this tag; otherwise nothing is read.
    pub fn optional(&mut self, wanted: u8) -> Option<&'a [u8]> {
        let mut ahead = *self;
        let value = ahead.expect(wanted)?;
        *self = ahead;
        Some(value)
    }

    /// The element within the next one, which has the context-specific tag `number`.
    pub fn field(&mut self, number: u8, wanted: u8) -> Option<&'a [u8]> {
        Der(self.expect(tag::CONTEXT + number)?).expect(wanted)
    }

    /// The element within the next one, if that has the context-specific tag `number`.
    pub fn optional_field(&mut self, number: u8, wanted: u8) -> Option<&'a [u8]> {
        Der(self.optional(tag::CONTEXT + number)?).expect(wanted)
    }

    /// An integer in the next element, which has the context-specific tag `number`.
    pub fn number_field(&mut self, number: u8) -> Option<i64> {
        number_of(self.field(number, tag::INTEGER)?)
    }
}

/// The value of an INTEGER of at most eight bytes.
pub fn number_of(value: &[u8]) -> Option<i64> {
    let (&first, _) = value.split_first().filter(|_| value.len() <= 8)?;
    let sign = if first & 0x80 == 0 { 0 } else { -1 };
    Some(value.iter().fold(sign, |number, byte| number << 8 | i64::from(*byte)))
}

/// An element.
pub fn element(tag: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match value.len() {
        len @ 0..0x80 => out.push(len as u8),
        len => {
            let bytes = len.to_be_bytes();
            let digits = &bytes[(len.leading_zeros() / 8) as usize..];
            out.push(0x80 | digits.len() as u8);
            out.extend_from_slice(digits);
        }
    }
    out.extend_from_slice(value);
    out
}

/// A SEQUENCE of these elements.
pub fn sequence(elements: &[Vec<u8>]) -> Vec<u8> {
    element(tag::SEQUENCE, &elements.concat())
}

/// An element in one with the context-specific tag `number`.
pub fn field(number: u8, inner: &[u8]) -> Vec<u8> {
    element(tag::CONTEXT + number, inner)
}

/// An INTEGER.
pub fn number(value: i64) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    // The first byte is needed if the next one would show another sign.
    let is_needless = |at: usize| bytes[at] == if bytes[at + 1] & 0x80 == 0 { 0 } else { 0xff };
    let start = (0..7).find(|&at| !is_needless(at)).unwrap_or(7);
    element(tag::INTEGER, &bytes[start..])
}

/// A GeneralString.
pub fn text(value: &str) -> Vec<u8> {
    element(tag::TEXT, value.as_bytes())
}

/// An OCTET STRING.
pub fn octets(value: &[u8]) -> Vec<u8> {
    element(tag::OCTETS, value)
}

/// A BIT STRING of 32 bits; bit 0 is the highest.
pub fn flags(value: u32) -> Vec<u8> {
    let [a, b, c, d] = value.to_be_bytes();
    element(tag::BITS, &[0, a, b, c, d])
}

/// The first 32 bits of the value of a BIT STRING.
pub fn flags_of(value: &[u8]) -> Option<u32> {
    let (_, bits) = value.split_first()?;
    let bit = |at: usize| u32::from(bits.get(at).copied().unwrap_or(0));
    Some((0..4).fold(0, |flags, at| flags << 8 | bit(at)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_as_short_as_possible() {
        for (value, bytes) in [
            (0, &[0][..]),
            (127, &[127]),
            (128, &[0, 128]),
            (256, &[1, 0]),
            (-1, &[255]),
            (-129, &[255, 127]),
            (i64::from(u32::MAX), &[0, 255, 255, 255, 255]),
        ] {
            assert_eq!(number(value), element(tag::INTEGER, bytes), "{value}");
            assert_eq!(number_of(bytes), Some(value));
        }
        assert_eq!((number_of(&[]), number_of(&[1; 9])), (None, None));
    }

    #[test]
    fn lengths_have_as_many_bytes_as_needed() {
        assert_eq!(element(4, &[7; 127])[..2], [4, 127]);
        assert_eq!(element(4, &[7; 128])[..3], [4, 0x81, 128]);
        assert_eq!(element(4, &[7; 300])[..4], [4, 0x82, 1, 44]);
        assert_eq!(flags_of(&[0, 0x80]), Some(0x8000_0000));
        assert_eq!(Der(&flags(0x4081_0010)).expect(tag::BITS).and_then(flags_of), Some(0x4081_0010));
    }

    proptest! {
        #[test]
        fn elements_round_trip(tag: u8, value in prop::collection::vec(any::<u8>(), 0..400), signed: i64) {
            let bytes = element(tag, &value);
            let mut reader = Der(&bytes);
            prop_assert_eq!(reader.next(), Some(Some((tag, &value[..]))));
            prop_assert_eq!(reader.next(), Some(None));
            prop_assert_eq!(Der(&number(signed)).expect(tag::INTEGER).and_then(number_of), Some(signed));
        }

        #[test]
        fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut reader = Der(&bytes);
            while let Some(Some(_)) = reader.next() {}
            let _ = (number_of(&bytes), flags_of(&bytes), Der(&bytes).optional_field(0, 2));
        }
    }
}
