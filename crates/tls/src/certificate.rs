//! Reads names and serial numbers from certificates (RFC 5280). Only what this program needs is read, and nothing is verified here.

/// Type of a name attribute, as the content of its object identifier.
const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const ORGANIZATION: &[u8] = &[0x55, 4, 10];

/// The tag of a DER element, its content, and the bytes after it.
pub(crate) type Element<'a> = (u8, &'a [u8], &'a [u8]);

/// An attribute of a distinguished name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// The content of the object identifier of its type.
    pub oid: &'a [u8],
    /// The tag of its value.
    pub tag: u8,
    /// The value.
    pub value: &'a [u8],
}

/// Splits the first DER element off. Lengths beyond four bytes are refused.
pub(crate) fn element(bytes: &[u8]) -> Option<Element<'_>> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let length = match first {
        0..=0x7f => usize::from(first),
        0x81..=0x84 => {
            let (digits, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
            rest = after;
            digits.iter().fold(0, |length, &digit| length << 8 | usize::from(digit))
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// The content of the first element, which must have this tag, and the bytes after it.
pub(crate) fn expect(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    element(bytes).filter(|found| found.0 == tag).map(|(_, content, rest)| (content, rest))
}

const SEQUENCE: u8 = 0x30;

/// The serial number, as the content of its element, and the bytes after it.
fn serial_and_rest(certificate: &[u8]) -> Option<(&[u8], &[u8])> {
    let (certificate, _) = expect(SEQUENCE, certificate)?;
    let (mut rest, _) = expect(SEQUENCE, certificate)?;
    if let Some((_, after)) = expect(0xa0, rest) {
        // The version is explicit except in version 1.
        rest = after;
    }
    expect(0x02, rest)
}

/// The serial number of a certificate in DER, as the bytes of its integer; `None` if it cannot be read.
pub(crate) fn serial(certificate: &[u8]) -> Option<&[u8]> {
    Some(serial_and_rest(certificate)?.0)
}

/// The names of issuer and subject, each as the content of its sequence.
fn names(certificate: &[u8]) -> Option<(&[u8], &[u8])> {
    let (_, rest) = serial_and_rest(certificate)?;
    let (_, rest) = expect(SEQUENCE, rest)?;
    let (issuer, rest) = expect(SEQUENCE, rest)?;
    let (_, rest) = expect(SEQUENCE, rest)?;
    let (subject, _) = expect(SEQUENCE, rest)?;
    Some((issuer, subject))
}

/// The attributes of a distinguished name.
fn attributes(mut name: &[u8]) -> Option<Vec<Attribute<'_>>> {
    let mut all = Vec::new();
    while !name.is_empty() {
        let (mut set, rest) = expect(0x31, name)?;
        name = rest;
        while !set.is_empty() {
            let (pair, rest) = expect(0x30, set)?;
            set = rest;
            let (oid, value) = expect(0x06, pair)?;
            let (tag, value, _) = element(value)?;
            all.push(Attribute { oid, tag, value });
        }
    }
    Some(all)
}

/// The attributes of the subject of a certificate in DER; `None` if it cannot be read.
pub fn subject(certificate: &[u8]) -> Option<Vec<Attribute<'_>>> {
    attributes(names(certificate)?.1)
}

/// The issuer of a certificate in DER for people: its common name, otherwise its organization, at most 80 characters; `None` if
/// it has neither or cannot be read.
pub fn issuer(certificate: &[u8]) -> Option<String> {
    let all = attributes(names(certificate)?.0)?;
    let of = |oid: &[u8]| all.iter().find(|attribute| attribute.oid == oid);
    let found = of(COMMON_NAME).or_else(|| of(ORGANIZATION))?;
    let text = String::from_utf8_lossy(found.value);
    Some(text.chars().filter(|c| !c.is_control()).take(80).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (issuer(&bytes), subject(&bytes));
        }
    }

    #[test]
    fn lengths_beyond_the_end_are_refused() {
        assert_eq!(element(&[0x30, 0x84, 0xff, 0xff, 0xff, 0xff, 1]), None);
        assert_eq!(element(&[0x30, 0x80, 0, 0]), None);
        assert_eq!(element(&[2, 1, 7, 9]), Some((2, &[7][..], &[9][..])));
    }
}
