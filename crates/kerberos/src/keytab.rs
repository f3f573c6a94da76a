//! Keytabs: files with the keys of services, in the format that MIT Kerberos and Heimdal share.
//!
//! ```text
//! file  = 05 02 entry*
//! entry = length(i32; negative: a hole) count(u16) realm part* type(u32) time(u32) version(u8) kind(u16) key [version(u32)]
//! realm, part, key = length(u16) bytes                 all numbers big-endian
//! ```

use crate::etype::{CipherKey, EncryptionType};
use crate::service::ServiceKey;

/// Why a file has no keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeytabError {
    /// It is no keytab of version 2.
    #[error("not a keytab")]
    Foreign,
    /// It ends in the middle of an entry, or an entry is broken.
    #[error("the keytab is damaged")]
    Damaged,
    /// None of its keys is of a type that this program has.
    #[error("the keytab has no key of AES (ktadd with -e aes256-cts-hmac-sha1-96:normal)")]
    NoKeys,
}

/// Takes numbers and texts from the front of bytes.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, length: usize) -> Option<u32> {
        Some(self.take(length)?.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }

    fn counted(&mut self) -> Option<&'a [u8]> {
        let length = self.number(2)?;
        self.take(length as usize)
    }
}

/// The keys in a keytab, of types that this program has.
///
/// # Errors
/// If the bytes are no keytab, or there is no such key.
pub fn read(bytes: &[u8]) -> Result<Vec<ServiceKey>, KeytabError> {
    let mut rest = Cursor(bytes.strip_prefix(&[5, 2]).ok_or(KeytabError::Foreign)?);
    let mut keys = Vec::new();
    while !rest.0.is_empty() {
        let length = rest.number(4).ok_or(KeytabError::Damaged)? as i32;
        let entry = rest.take(length.unsigned_abs() as usize).ok_or(KeytabError::Damaged)?;
        // Holes are what remains of deleted entries.
        if length > 0 {
            keys.extend(read_entry(entry).ok_or(KeytabError::Damaged)?);
        }
    }
    if keys.is_empty() { Err(KeytabError::NoKeys) } else { Ok(keys) }
}

/// The key of an entry; `Some(None)` if it is of another type.
fn read_entry(entry: &[u8]) -> Option<Option<ServiceKey>> {
    let mut entry = Cursor(entry);
    let count = entry.number(2)?;
    let realm = String::from_utf8_lossy(entry.counted()?);
    let mut parts = Vec::new();
    for _ in 0..count {
        parts.push(String::from_utf8_lossy(entry.counted()?));
    }
    entry.take(8)?;
    let version = entry.number(1)?;
    let kind = entry.number(2)?;
    let bytes = entry.counted()?;
    let version = entry.number(4).filter(|long| *long > 0).unwrap_or(version);
    let Some(kind) = EncryptionType::of_number(i64::from(kind)) else { return Some(None) };
    let name = format!("{}@{realm}", parts.join("/"));
    Some(Some(ServiceKey { name, version, key: CipherKey::new(kind, bytes).ok()? }))
}

/// A keytab with these keys.
pub fn write(keys: &[ServiceKey]) -> Vec<u8> {
    let counted = |bytes: &[u8]| [&(bytes.len() as u16).to_be_bytes(), bytes].concat();
    let mut out = vec![5, 2];
    for key in keys {
        let (name, realm) = key.name.rsplit_once('@').unwrap_or((&key.name, ""));
        let parts: Vec<&str> = name.split('/').collect();
        let mut entry = (parts.len() as u16).to_be_bytes().to_vec();
        entry.extend(counted(realm.as_bytes()));
        parts.iter().for_each(|part| entry.extend(counted(part.as_bytes())));
        // The type of name of a service on a host, and no time.
        entry.extend_from_slice(&[0, 0, 0, 3, 0, 0, 0, 0, key.version as u8]);
        entry.extend_from_slice(&(key.key.kind().number() as u16).to_be_bytes());
        entry.extend(counted(key.key.bytes()));
        entry.extend_from_slice(&key.version.to_be_bytes());
        out.extend_from_slice(&(entry.len() as u32).to_be_bytes());
        out.extend(entry);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(name: &str, version: u32) -> ServiceKey {
        let key = CipherKey::new(EncryptionType::Aes256Sha1, &[7; 32]).unwrap();
        ServiceKey { name: name.to_owned(), version, key }
    }

    #[test]
    fn keytabs_round_trip() {
        let keys = vec![key("HTTP/a.tst@EXAMPLE.COM", 3), key("host/b@R", 700)];
        let mut bytes = write(&keys);
        assert_eq!(read(&bytes).as_ref(), Ok(&keys));
        // A hole of two bytes, and nothing behind it.
        bytes.extend_from_slice(&[255, 255, 255, 254, 1, 1]);
        assert_eq!(read(&bytes), Ok(keys));
        bytes.pop();
        assert_eq!(read(&bytes), Err(KeytabError::Damaged));
        assert_eq!(read(&[5, 1]), Err(KeytabError::Foreign));
        assert_eq!(read(&[5, 2]), Err(KeytabError::NoKeys));
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = read(&bytes);
            let _ = read(&[&[5, 2, 0, 0, 0, bytes.len() as u8], &bytes[..]].concat());
        }
    }
}
