//! The proof of a password (MS-NLMP, section 3.3.2):
//!
//! ```text
//! key   = HMAC-MD5( MD4(password), UPPER(user) domain )
//! proof = HMAC-MD5( key, nonce of the server, blob )         blob = time, nonce of the client, names of the server
//! ```

use hmac::{Hmac, KeyInit, Mac};
use md4::Md4;
use md5::{Digest, Md5};

use super::message::utf16;

/// Length of keys in bytes.
pub(super) const KEY_SIZE: usize = 16;

/// HMAC-MD5 (RFC 2104) of all parts.
fn hmac_md5(key: &[u8; KEY_SIZE], parts: &[&[u8]]) -> [u8; 16] {
    // The key is shorter than a block of the hash, so it is always accepted.
    let mut mac = Hmac::<Md5>::new_from_slice(key).expect("16 bytes are a key");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// The key that user, domain and password give (`NTOWFv2`).
pub(super) fn response_key(user: &str, domain: &str, password: &str) -> [u8; KEY_SIZE] {
    let hash: [u8; 16] = Md4::digest(utf16(password)).into();
    hmac_md5(&hash, &[&utf16(&user.to_uppercase()), &utf16(domain)])
}

/// What the client adds to the nonce of the server.
pub(super) struct Blob<'a> {
    /// Time in units of 100 ns since 1601.
    pub(super) time: u64,
    /// The nonce of the client.
    pub(super) nonce: [u8; 8],
    /// The names that the server sent.
    pub(super) info: &'a [u8],
}

impl Blob<'_> {
    /// Length of the part before the names.
    const HEAD: usize = 28;

    pub(super) fn write(&self) -> Vec<u8> {
        let head = [1, 1, 0, 0, 0, 0, 0, 0];
        [&head[..], &self.time.to_le_bytes(), &self.nonce, &[0; 4], self.info, &[0; 4]].concat()
    }

    /// The names in a blob; `None` if the bytes are no blob.
    pub(super) fn info_of(blob: &[u8]) -> Option<&[u8]> {
        blob.strip_prefix(&[1, 1]).and_then(|_| blob.get(Self::HEAD..))
    }
}

/// The proof (`NTProofStr`) for a server with this nonce.
pub(super) fn nt_proof(key: &[u8; KEY_SIZE], server: &[u8; 8], blob: &[u8]) -> [u8; 16] {
    hmac_md5(key, &[server, blob])
}

/// The proof in its older form, for servers that send no time.
pub(super) fn lm_response(key: &[u8; KEY_SIZE], server: &[u8; 8], client: &[u8; 8]) -> Vec<u8> {
    [&hmac_md5(key, &[server, client])[..], client].concat()
}

/// The key of the session, without a key exchange.
pub(super) fn session_key(key: &[u8; KEY_SIZE], nt_proof: &[u8; 16]) -> [u8; KEY_SIZE] {
    hmac_md5(key, &[nt_proof])
}

/// The integrity code of a handshake.
pub(super) fn integrity_code(session_key: &[u8; KEY_SIZE], messages: &[&[u8]; 3]) -> [u8; 16] {
    hmac_md5(session_key, messages)
}

/// The signature of the client for its first message after the handshake (sections 3.4.4.2 and 3.4.5.2).
pub(super) fn client_signature(session_key: &[u8; KEY_SIZE], text: &[u8]) -> [u8; 16] {
    const NUMBER: [u8; 4] = [0; 4];
    let mut hash = Md5::new();
    hash.update(session_key);
    hash.update(b"session key to client-to-server signing key magic constant\0");
    let key: [u8; KEY_SIZE] = hash.finalize().into();
    let sum = hmac_md5(&key, &[&NUMBER, text]);
    let mut signature = [0; 16];
    signature[0] = 1;
    signature[4..12].copy_from_slice(&sum[..8]);
    signature[12..].copy_from_slice(&NUMBER);
    signature
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(|b| *b != b' ').collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    }

    /// The values of MS-NLMP, section 4.2.4.
    #[test]
    fn the_example_of_the_specification() {
        assert_eq!(Md4::digest(utf16("Password")).to_vec(), hex("a4f49c406510bdcab6824ee7c30fd852"));
        let key = response_key("User", "Domain", "Password");
        assert_eq!(key.to_vec(), hex("0c868a403bfd7a93a3001ef22ef02e3f"));
        let names = "02000c0044006f006d00610069006e00 01000c00530065007200760065007200 00000000";
        let blob = Blob { time: 0, nonce: [0xaa; 8], info: &hex(names) }.write();
        let server = hex("0123456789abcdef").try_into().unwrap();
        let proof = nt_proof(&key, &server, &blob);
        assert_eq!(proof.to_vec(), hex("68cd0ab851e51c96aabc927bebef6a1c"));
        assert_eq!(session_key(&key, &proof).to_vec(), hex("8de40ccadbc14a82f15cb0ad0de95ca3"));
        let lm = lm_response(&key, &server, &[0xaa; 8]);
        assert_eq!(lm, hex("86c35097ac9cec102554764a57cccc19 aaaaaaaaaaaaaaaa"));
        assert_eq!(Blob::info_of(&blob).map(|info| &info[..36]), Some(&hex(names)[..]));
    }
}
