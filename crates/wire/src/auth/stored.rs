//! The forms in which servers store passwords: a password can be compared with them but not read from them.
//!
//! These forms are old and cheap to compute, so they do not protect secrets. All proxies, servers and
//! directories understand them, and accounts of a benchmark are no secrets: the workload has them in clear.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};

/// The alphabet of salts and hashes of crypt(3).
const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const MAGIC: &str = "$apr1$";

/// A salt that depends only on these bytes, so that a list of accounts is always the same.
pub fn salt(of: &[u8]) -> String {
    let hash = Md5::digest(of);
    hash.iter().take(8).map(|byte| char::from(ALPHABET[usize::from(byte & 63)])).collect()
}

/// The form `$apr1$` of Apache's `htpasswd`: a thousand rounds of MD5.
pub fn apr1(password: &[u8], salt: &str) -> String {
    let salt_bytes = &salt.as_bytes()[..salt.len().min(8)];
    let mut start = Md5::new();
    start.update(password);
    start.update(MAGIC);
    start.update(salt_bytes);
    let mut sum = digest(&[password, salt_bytes, password]);
    for rest in password.chunks(16) {
        start.update(&sum[..rest.len()]);
    }
    let mut bits = password.len();
    while bits != 0 {
        start.update(if bits & 1 == 1 { &[0] } else { &password[..1] });
        bits >>= 1;
    }
    sum = start.finalize().into();
    for round in 0..1000 {
        let (first, last): (&[u8], &[u8]) = if round % 2 == 1 { (password, &sum) } else { (&sum, password) };
        let salt = if round % 3 != 0 { salt_bytes } else { &[] };
        let again = if round % 7 != 0 { password } else { &[] };
        sum = digest(&[first, salt, again, last]);
    }
    let mut text = format!("{MAGIC}{}$", String::from_utf8_lossy(salt_bytes));
    for [a, b, c] in [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]] {
        push(&mut text, u32::from(sum[a]) << 16 | u32::from(sum[b]) << 8 | u32::from(sum[c]), 4);
    }
    push(&mut text, u32::from(sum[11]), 2);
    text
}

/// The form `{SMD5}` of directories: salted MD5.
pub fn smd5(password: &[u8], salt: &str) -> String {
    let mut bytes = digest(&[password, salt.as_bytes()]).to_vec();
    bytes.extend_from_slice(salt.as_bytes());
    format!("{{SMD5}}{}", STANDARD.encode(bytes))
}

fn digest(parts: &[&[u8]]) -> [u8; 16] {
    let mut md5 = Md5::new();
    parts.iter().for_each(|part| md5.update(part));
    md5.finalize().into()
}

fn push(text: &mut String, mut value: u32, count: usize) {
    for _ in 0..count {
        text.push(char::from(ALPHABET[(value & 63) as usize]));
        value >>= 6;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `openssl passwd -apr1 -salt SALT PASSWORD` gives the same hash.
    #[test]
    fn apr1_is_what_openssl_makes() {
        for (password, salt, expected) in [
            ("password", "xxxxxxxx", "$apr1$xxxxxxxx$dxHfLAsjHkDRmG83UXe8K0"),
            ("", "abcdefgh", "$apr1$abcdefgh$L.PT565ESX4Tp2bqNs7Ie."),
            ("pw12345678x", "./0Az9Zz", "$apr1$./0Az9Zz$fT/Whs9sX.OL8uPf5hreD/"),
            ("a password of more than sixteen characters", "S4lt", "$apr1$S4lt$5LwDWuZFq1PP7KL.9knnM."),
            ("0123456789abcdef", "12345678", "$apr1$12345678$vc38ZupyU1KkWqFuFfTA/."),
        ] {
            assert_eq!(apr1(password.as_bytes(), salt), expected, "{password}");
        }
    }

    #[test]
    fn smd5_is_salted_md5() {
        // MD5 of "password" + "salt1234", in base64 with the salt behind it.
        assert_eq!(smd5(b"password", "salt1234"), "{SMD5}PiJaXAe55/u76Asb383wV3NhbHQxMjM0");
    }

    #[test]
    fn salts_are_reproducible_and_differ() {
        assert_eq!(salt(b"a"), salt(b"a"));
        assert_ne!(salt(b"a"), salt(b"b"));
        assert_eq!(salt(b"a").len(), 8);
    }
}
