//! Encryption types, keys and encryption (RFC 3961): AES with SHA-1 (RFC 3962) and with SHA-2 (RFC 8009). Those of earlier times, with
//! DES or RC4, are neither sent nor accepted.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why bytes could not be encrypted or decrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CipherError {
    /// The program was built without ciphers.
    #[error("{}", crate::MISSING)]
    Missing,
    /// The key has another length than those of its type.
    #[error("the key has a wrong length")]
    KeyLength,
    /// The bytes were not encrypted with this key, or they were altered.
    #[error("the integrity check failed")]
    Integrity,
    /// The parameters ask for more iterations than any administrator would.
    #[error("the KDC asks for {0} iterations of the hash of a password")]
    Iterations(u32),
}

/// An encryption type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum EncryptionType {
    /// AES-256 with HMAC-SHA1-96, number 18.
    Aes256Sha1,
    /// AES-128 with HMAC-SHA1-96, number 17.
    Aes128Sha1,
    /// AES-256 with HMAC-SHA384-192, number 20.
    Aes256Sha384,
    /// AES-128 with HMAC-SHA256-128, number 19.
    Aes128Sha256,
}

impl EncryptionType {
    /// All types, in the order in which clients prefer them.
    pub const ALL: [EncryptionType; 4] = [
        EncryptionType::Aes256Sha1,
        EncryptionType::Aes128Sha1,
        EncryptionType::Aes256Sha384,
        EncryptionType::Aes128Sha256,
    ];

    /// The assigned number.
    pub fn number(self) -> i32 {
        match self {
            EncryptionType::Aes128Sha1 => 17,
            EncryptionType::Aes256Sha1 => 18,
            EncryptionType::Aes128Sha256 => 19,
            EncryptionType::Aes256Sha384 => 20,
        }
    }

    /// The type with this number.
    pub fn of_number(number: i64) -> Option<EncryptionType> {
        Self::ALL.into_iter().find(|kind| i64::from(kind.number()) == number)
    }

    /// The number of the type of its checksums.
    pub(crate) fn checksum_number(self) -> i32 {
        match self {
            EncryptionType::Aes128Sha1 => 15,
            EncryptionType::Aes256Sha1 => 16,
            EncryptionType::Aes128Sha256 => 19,
            EncryptionType::Aes256Sha384 => 20,
        }
    }

    /// The length of a key in bytes.
    pub fn key_length(self) -> usize {
        match self {
            EncryptionType::Aes128Sha1 | EncryptionType::Aes128Sha256 => 16,
            EncryptionType::Aes256Sha1 | EncryptionType::Aes256Sha384 => 32,
        }
    }
}

/// A key.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CipherKey {
    kind: EncryptionType,
    bytes: Vec<u8>,
}

impl fmt::Debug for CipherKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({:?})", self.kind)
    }
}

/// What a key is used for (RFC 4120, section 7.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Usage {
    /// The time in a request for a ticket-granting ticket.
    Timestamp = 1,
    /// A ticket.
    OfTicket = 2,
    /// The reply to a login, with the key of the user.
    LoginReply = 3,
    /// The checksum of a request for a ticket.
    RequestChecksum = 6,
    /// The authenticator in a request for a ticket.
    RequestAuthenticator = 7,
    /// The reply to a request for a ticket, with the session key.
    TicketReply = 8,
    /// The authenticator for a service.
    Authenticator = 11,
    /// The reply of a service.
    ServiceReply = 12,
}

impl CipherKey {
    /// A key of these bytes.
    ///
    /// # Errors
    /// If the length is not that of the type.
    pub fn new(kind: EncryptionType, bytes: &[u8]) -> Result<CipherKey, CipherError> {
        match bytes.len() == kind.key_length() {
            true => Ok(CipherKey { kind, bytes: bytes.to_vec() }),
            false => Err(CipherError::KeyLength),
        }
    }

    /// Its type.
    pub fn kind(&self) -> EncryptionType {
        self.kind
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(feature = "ciphers")]
pub(crate) use self::ciphers::{checksum, decrypt, encrypt};

#[cfg(feature = "ciphers")]
mod ciphers {
    use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit as _};
    use aes::{Aes128, Aes256};
    use hmac::{Hmac, Mac};
    use sha1::Sha1;
    use sha2::{Sha256, Sha384};

    use super::{CipherError, CipherKey, EncryptionType, Usage};

    const BLOCK: usize = 16;
    type Block = [u8; BLOCK];

    /// The purpose of a derived key (RFC 3961, section 5.3), as the last byte of its constant.
    #[derive(Clone, Copy)]
    enum Purpose {
        Checksum = 0x99,
        Encryption = 0xaa,
        Integrity = 0x55,
    }

    enum Aes {
        With128(Box<Aes128>),
        With256(Box<Aes256>),
    }

    impl Aes {
        /// The cipher with a key of 16 or 32 bytes.
        fn new(key: &[u8]) -> Aes {
            match <[u8; 16]>::try_from(key) {
                Ok(key) => Aes::With128(Box::new(Aes128::new(&Array::from(key)))),
                Err(_) => {
                    let mut long = [0; 32];
                    long.iter_mut().zip(key).for_each(|(byte, from)| *byte = *from);
                    Aes::With256(Box::new(Aes256::new(&Array::from(long))))
                }
            }
        }

        fn encrypt(&self, block: Block) -> Block {
            let mut block = Array::from(block);
            match self {
                Aes::With128(aes) => aes.encrypt_block(&mut block),
                Aes::With256(aes) => aes.encrypt_block(&mut block),
            }
            block.into()
        }

        fn decrypt(&self, block: Block) -> Block {
            let mut block = Array::from(block);
            match self {
                Aes::With128(aes) => aes.decrypt_block(&mut block),
                Aes::With256(aes) => aes.decrypt_block(&mut block),
            }
            block.into()
        }
    }

    fn xor(a: Block, b: Block) -> Block {
        std::array::from_fn(|at| a[at] ^ b[at])
    }

    /// A block of the first 16 bytes of `bytes`, filled up with zeros.
    fn block(bytes: &[u8]) -> Block {
        std::array::from_fn(|at| bytes.get(at).copied().unwrap_or(0))
    }

    /// CBC with ciphertext stealing, from an initial vector of zeros (RFC 3962, section 5). There is at least one whole block.
    fn encrypt_cts(key: &[u8], plain: &[u8]) -> Vec<u8> {
        let (aes, mut last) = (Aes::new(key), [0; BLOCK]);
        let mut blocks = Vec::new();
        for chunk in plain.chunks(BLOCK) {
            last = aes.encrypt(xor(block(chunk), last));
            blocks.push(last);
        }
        // The last two blocks change places, and the one that is then the last is cut.
        let count = blocks.len();
        if count > 1 {
            blocks.swap(count - 1, count - 2);
        }
        let mut out = blocks.concat();
        out.truncate(plain.len());
        out
    }

    /// The reverse of [`encrypt_cts`]; `None` if there is no whole block.
    fn decrypt_cts(key: &[u8], secret: &[u8]) -> Option<Vec<u8>> {
        if secret.len() < BLOCK {
            return None;
        }
        let (aes, mut last, mut out) = (Aes::new(key), [0; BLOCK], Vec::new());
        let tail = match secret.len() % BLOCK {
            0 => BLOCK,
            rest => rest,
        };
        let whole = secret.len().saturating_sub(tail + BLOCK);
        for chunk in secret[..whole].chunks(BLOCK) {
            out.extend_from_slice(&xor(aes.decrypt(block(chunk)), last));
            last = block(chunk);
        }
        let rest = &secret[whole..];
        if rest.len() <= BLOCK {
            out.extend_from_slice(&xor(aes.decrypt(block(rest)), last));
            return Some(out);
        }
        let (first, end) = rest.split_at(BLOCK);
        let opened = aes.decrypt(block(first));
        let end_plain: Vec<u8> = end.iter().zip(opened).map(|(a, b)| a ^ b).collect();
        let mut stolen = opened;
        stolen[..end.len()].copy_from_slice(end);
        out.extend_from_slice(&xor(aes.decrypt(stolen), last));
        out.extend_from_slice(&end_plain);
        Some(out)
    }

    /// The HMAC of all parts, cut to the length of the encryption type.
    fn hmac(kind: EncryptionType, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        macro_rules! mac {
            ($hash:ty, $length:literal) => {{
                let mut mac = Hmac::<$hash>::new_from_slice(key).expect("HMAC takes keys of any length");
                parts.iter().for_each(|part| mac.update(part));
                mac.finalize().into_bytes()[..$length].to_vec()
            }};
        }
        match kind {
            EncryptionType::Aes128Sha1 | EncryptionType::Aes256Sha1 => mac!(Sha1, 12),
            EncryptionType::Aes128Sha256 => mac!(Sha256, 16),
            EncryptionType::Aes256Sha384 => mac!(Sha384, 24),
        }
    }

    /// Stretches or folds `input` to a block (RFC 3961, section 5.1): copies of the input, each rotated by 13 bits more, are added
    /// with end-around carry.
    fn fold(input: &[u8]) -> Block {
        let gcd = |mut a: usize, mut b: usize| {
            while b > 0 {
                (a, b) = (b, a % b);
            }
            a
        };
        let length = input.len() * BLOCK / gcd(input.len(), BLOCK);
        let bits = input.len() * 8;
        // Bit number `at` of the sequence of copies.
        let bit = |at: usize| {
            let from = (at % bits + bits - 13 * (at / bits) % bits) % bits;
            input[from / 8] >> (7 - from % 8) & 1
        };
        let byte = |at: usize| (0..8).fold(0, |byte, n| byte << 1 | bit(at * 8 + n));
        let mut sums = [0_u32; BLOCK];
        (0..length).for_each(|at| sums[at % BLOCK] += u32::from(byte(at)));
        let mut carry = 0;
        for _ in 0..3 {
            for sum in sums.iter_mut().rev() {
                let total = *sum + carry;
                (*sum, carry) = (total & 0xff, total >> 8);
            }
        }
        sums.map(|sum| sum as u8)
    }

    /// A key derived from `base`, for AES with SHA-1 (RFC 3961, section 5.1).
    fn derive_sha1(base: &[u8], constant: &[u8]) -> Vec<u8> {
        let aes = Aes::new(base);
        let mut last = if constant.len() == BLOCK { block(constant) } else { fold(constant) };
        let mut out = Vec::new();
        while out.len() < base.len() {
            last = aes.encrypt(last);
            out.extend_from_slice(&last);
        }
        out
    }

    /// A key derived from `base`, for AES with SHA-2 (RFC 8009, section 3).
    fn derive_sha2(kind: EncryptionType, base: &[u8], label: &[u8], length: usize) -> Vec<u8> {
        let bits = (length as u32 * 8).to_be_bytes();
        let parts = [&[0, 0, 0, 1], label, &[0], &bits];
        macro_rules! mac {
            ($hash:ty) => {{
                let mut mac = Hmac::<$hash>::new_from_slice(base).expect("HMAC takes keys of any length");
                parts.iter().for_each(|part| mac.update(part));
                mac.finalize().into_bytes()[..length].to_vec()
            }};
        }
        match kind {
            EncryptionType::Aes256Sha384 => mac!(Sha384),
            _ => mac!(Sha256),
        }
    }

    fn derive(key: &CipherKey, usage: Usage, purpose: Purpose) -> Vec<u8> {
        let [a, b, c, d] = (usage as u32).to_be_bytes();
        let constant = [a, b, c, d, purpose as u8];
        match (key.kind, purpose) {
            (EncryptionType::Aes128Sha1 | EncryptionType::Aes256Sha1, _) => {
                derive_sha1(&key.bytes, &constant)
            }
            (EncryptionType::Aes128Sha256, _) => derive_sha2(key.kind, &key.bytes, &constant, 16),
            (EncryptionType::Aes256Sha384, Purpose::Encryption) => {
                derive_sha2(key.kind, &key.bytes, &constant, 32)
            }
            (EncryptionType::Aes256Sha384, _) => derive_sha2(key.kind, &key.bytes, &constant, 24),
        }
    }

    fn integrity(key: &CipherKey, usage: Usage, plain: &[u8], secret: &[u8]) -> Vec<u8> {
        let mac_key = derive(key, usage, Purpose::Integrity);
        match key.kind {
            EncryptionType::Aes128Sha1 | EncryptionType::Aes256Sha1 => hmac(key.kind, &mac_key, &[plain]),
            // The initial vector is protected, too.
            EncryptionType::Aes128Sha256 | EncryptionType::Aes256Sha384 => {
                hmac(key.kind, &mac_key, &[&[0; BLOCK], secret])
            }
        }
    }

    pub(crate) fn encrypt(
        key: &CipherKey,
        usage: Usage,
        random: Block,
        plain: &[u8],
    ) -> Result<Vec<u8>, CipherError> {
        let plain = [&random[..], plain].concat();
        let mut out = encrypt_cts(&derive(key, usage, Purpose::Encryption), &plain);
        let code = integrity(key, usage, &plain, &out);
        out.extend_from_slice(&code);
        Ok(out)
    }

    pub(crate) fn decrypt(key: &CipherKey, usage: Usage, secret: &[u8]) -> Result<Vec<u8>, CipherError> {
        let code_length = match key.kind {
            EncryptionType::Aes128Sha1 | EncryptionType::Aes256Sha1 => 12,
            EncryptionType::Aes128Sha256 => 16,
            EncryptionType::Aes256Sha384 => 24,
        };
        let end = secret.len().checked_sub(code_length).ok_or(CipherError::Integrity)?;
        let (secret, code) = secret.split_at(end);
        let plain =
            decrypt_cts(&derive(key, usage, Purpose::Encryption), secret).ok_or(CipherError::Integrity)?;
        match integrity(key, usage, &plain, secret) == code {
            true => Ok(plain[BLOCK..].to_vec()),
            false => Err(CipherError::Integrity),
        }
    }

    pub(crate) fn checksum(key: &CipherKey, usage: Usage, bytes: &[u8]) -> Result<Vec<u8>, CipherError> {
        Ok(hmac(key.kind, &derive(key, usage, Purpose::Checksum), &[bytes]))
    }

    /// The most iterations that are carried out, because a program that waits for a hash sends nothing. Administrators choose up to
    /// some ten thousands.
    const MAX_ITERATIONS: u32 = 500_000;

    impl CipherKey {
        /// The key of a password (RFC 3962, section 4; RFC 8009, section 4). `parameters` are those of the KDC; if there are none,
        /// the type has its usual number of iterations.
        ///
        /// # Errors
        /// If the parameters ask for far too many iterations.
        pub fn of_password(
            kind: EncryptionType,
            password: &str,
            salt: &[u8],
            parameters: Option<&[u8]>,
        ) -> Result<CipherKey, CipherError> {
            let given = parameters.and_then(|bytes| Some(u32::from_be_bytes(bytes.try_into().ok()?)));
            let usual = match kind {
                EncryptionType::Aes128Sha1 | EncryptionType::Aes256Sha1 => 4096,
                EncryptionType::Aes128Sha256 | EncryptionType::Aes256Sha384 => 32_768,
            };
            let rounds = given.unwrap_or(usual);
            if rounds > MAX_ITERATIONS || rounds == 0 {
                return Err(CipherError::Iterations(rounds));
            }
            let (mut bytes, password) = (vec![0; kind.key_length()], password.as_bytes());
            let bytes = match kind {
                EncryptionType::Aes128Sha1 | EncryptionType::Aes256Sha1 => {
                    pbkdf2::pbkdf2_hmac::<Sha1>(password, salt, rounds, &mut bytes);
                    derive_sha1(&bytes, b"kerberos")
                }
                EncryptionType::Aes128Sha256 => {
                    let salt = [&b"aes128-cts-hmac-sha256-128\0"[..], salt].concat();
                    pbkdf2::pbkdf2_hmac::<Sha256>(password, &salt, rounds, &mut bytes);
                    derive_sha2(kind, &bytes, b"kerberos", bytes.len())
                }
                EncryptionType::Aes256Sha384 => {
                    let salt = [&b"aes256-cts-hmac-sha384-192\0"[..], salt].concat();
                    pbkdf2::pbkdf2_hmac::<Sha384>(password, &salt, rounds, &mut bytes);
                    derive_sha2(kind, &bytes, b"kerberos", bytes.len())
                }
            };
            Ok(CipherKey { kind, bytes })
        }
    }

    #[cfg(test)]
    mod tests {
        use proptest::prelude::*;

        use super::*;

        fn hex(text: &str) -> Vec<u8> {
            let digits: Vec<u8> =
                text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
            digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
        }

        /// RFC 3962, appendix B: the intermediate keys and results for one iteration and for 1200.
        #[test]
        fn keys_of_passwords_are_those_of_the_standard() {
            let salt = b"ATHENA.MIT.EDUraeburn";
            let of = |kind, rounds: u32| {
                CipherKey::of_password(kind, "password", salt, Some(&rounds.to_be_bytes())).unwrap().bytes
            };
            assert_eq!(of(EncryptionType::Aes128Sha1, 1), hex("42263c6e89f4fc28b8df68ee09799f15"));
            assert_eq!(
                of(EncryptionType::Aes256Sha1, 1),
                hex("fe697b52bc0d3ce14432ba036a92e65bbb52280990a2fa27883998d72af30161")
            );
            assert_eq!(of(EncryptionType::Aes128Sha1, 1200), hex("4c01cd46d632d01e6dbe230a01ed642a"));
            let many = CipherKey::of_password(EncryptionType::Aes128Sha1, "x", salt, Some(&[255; 4]));
            assert_eq!(many, Err(CipherError::Iterations(u32::MAX)));
        }

        /// RFC 3962, appendix B: ciphertext stealing with the key "chicken teriyaki".
        #[test]
        fn ciphertext_is_stolen_as_in_the_standard() {
            let key = b"chicken teriyaki";
            let text = b"I would like the General Gau's Chicken, please, and wonton soup.";
            for (length, end) in [
                (17, "c6353568f2bf8cb4d8a580362da7ff7f97"),
                (31, "fc00783e0efdb2c1d445d4c8eff7ed2297687268d6ecccc0c07b25e25ecfe5"),
                (32, "39312523a78662d5be7fcbcc98ebf5a897687268d6ecccc0c07b25e25ecfe584"),
            ] {
                let secret = encrypt_cts(key, &text[..length]);
                assert_eq!(secret, hex(end), "{length}");
                assert_eq!(decrypt_cts(key, &secret).as_deref(), Some(&text[..length]));
            }
        }

        /// RFC 8009, appendix A.
        #[test]
        fn keys_with_sha2_are_those_of_the_standard() {
            let salt = [&hex("10DF9DD783E5BC8ACEA1730E74355F61")[..], b"ATHENA.MIT.EDUraeburn"].concat();
            let of = |kind| CipherKey::of_password(kind, "password", &salt, None).unwrap().bytes;
            assert_eq!(of(EncryptionType::Aes128Sha256), hex("089BCA48B105EA6EA77CA5D2F39DC5E7"));
            assert_eq!(
                of(EncryptionType::Aes256Sha384),
                hex("45BD806DBF6A833A9CFFC1C94589A222367A79BC21C413718906E9F578A78467")
            );
        }

        /// RFC 3961, appendix A.1; the results there for other lengths need not be those of a block.
        #[test]
        fn constants_are_folded() {
            assert_eq!(fold(b"kerberos").to_vec(), hex("6b65726265726f737b9b5b2b93132b93"));
        }

        proptest! {
            #[test]
            fn encryption_round_trips_and_protects(
                kind in prop::sample::select(EncryptionType::ALL.to_vec()), seed: u8, random: [u8; 16],
                plain in prop::collection::vec(any::<u8>(), 0..80), at: prop::sample::Index, flip in 1..=255_u8,
            ) {
                let key = CipherKey::new(kind, &vec![seed; kind.key_length()]).unwrap();
                let mut secret = encrypt(&key, Usage::OfTicket, random, &plain).unwrap();
                prop_assert_eq!(decrypt(&key, Usage::OfTicket, &secret), Ok(plain));
                prop_assert_eq!(decrypt(&key, Usage::Timestamp, &secret), Err(CipherError::Integrity));
                let at = at.index(secret.len());
                secret[at] ^= flip;
                prop_assert_eq!(decrypt(&key, Usage::OfTicket, &secret), Err(CipherError::Integrity));
                secret.truncate(at);
                prop_assert_eq!(decrypt(&key, Usage::OfTicket, &secret), Err(CipherError::Integrity));
            }
        }
    }
}

/// What a build without ciphers has in their place.
#[cfg(not(feature = "ciphers"))]
mod without {
    use super::{CipherError, CipherKey, EncryptionType, Usage};

    pub(crate) fn encrypt(_: &CipherKey, _: Usage, _: [u8; 16], _: &[u8]) -> Result<Vec<u8>, CipherError> {
        Err(CipherError::Missing)
    }

    pub(crate) fn decrypt(_: &CipherKey, _: Usage, _: &[u8]) -> Result<Vec<u8>, CipherError> {
        Err(CipherError::Missing)
    }

    pub(crate) fn checksum(_: &CipherKey, _: Usage, _: &[u8]) -> Result<Vec<u8>, CipherError> {
        Err(CipherError::Missing)
    }

    impl CipherKey {
        /// Refuses: this build has no ciphers.
        ///
        /// # Errors
        /// Always, because this build has no ciphers.
        pub fn of_password(
            _: EncryptionType,
            _: &str,
            _: &[u8],
            _: Option<&[u8]>,
        ) -> Result<CipherKey, CipherError> {
            Err(CipherError::Missing)
        }
    }
}
#[cfg(not(feature = "ciphers"))]
pub(crate) use self::without::{checksum, decrypt, encrypt};
