//! Protection of records once the handshake is complete (RFC 8446, section 5; RFC 5246, section 6.2): they are encrypted where they are,
//! and decrypted there or on their way to whoever reads, without copies.

use std::ops::Range;

use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey,
};
use rustls::{ConnectionTrafficSecrets, Error, InvalidMessage, ProtocolVersion};

/// Size of the header of a record.
pub const HEADER: usize = 5;
/// The most plaintext in a record.
pub const MAX_PLAINTEXT: usize = 16_384;
/// The most bytes behind the header, in all versions.
pub const MAX_PAYLOAD: usize = MAX_PLAINTEXT + 2048;
/// Once so many encrypted bytes wait to be sent, nothing more is encrypted.
pub const MOST_UNSENT: usize = 64 * 1024;
/// Size of the tag of all ciphers.
const TAG: usize = 16;
/// Size of the part of the nonce that records with AES-GCM carry in TLS 1.2 (RFC 5288, section 3).
const EXPLICIT: usize = 8;
/// Number of records after which a key is given up (RFC 8446, section 5.5, rounded down). Tests do that more often.
const MOST_RECORDS: u64 = if cfg!(test) { 16 } else { (1 << 24) - 1 };

/// The types of records (RFC 8446, section 5.1).
pub mod kind {
    /// An alert.
    pub const ALERT: u8 = 21;
    /// A message of the handshake.
    pub const HANDSHAKE: u8 = 22;
    /// Data of the application.
    pub const DATA: u8 = 23;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Tls13,
    /// TLS 1.2 with AES-GCM.
    Tls12Explicit,
    /// TLS 1.2 with ChaCha20-Poly1305 (RFC 7905).
    Tls12,
}

/// The key of one direction.
pub struct RecordKey {
    key: LessSafeKey,
    iv: [u8; NONCE_LEN],
    form: Form,
    /// The number of the next record.
    number: u64,
}

impl RecordKey {
    /// The key for records from number `number` on.
    ///
    /// # Errors
    /// If the cipher is unknown.
    pub fn new(
        version: ProtocolVersion,
        number: u64,
        secrets: &ConnectionTrafficSecrets,
    ) -> Result<RecordKey, Error> {
        let (algorithm, key, iv) = match secrets {
            ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (&AES_128_GCM, key, iv),
            ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (&AES_256_GCM, key, iv),
            ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (&CHACHA20_POLY1305, key, iv),
            _ => return Err(Error::General("unknown cipher".to_owned())),
        };
        let form = match (version, secrets) {
            (ProtocolVersion::TLSv1_3, _) => Form::Tls13,
            (_, ConnectionTrafficSecrets::Chacha20Poly1305 { .. }) => Form::Tls12,
            _ => Form::Tls12Explicit,
        };
        let unusable = || Error::General("unusable key".to_owned());
        let key = UnboundKey::new(algorithm, key.as_ref()).map_err(|_| unusable())?;
        let iv = iv.as_ref().try_into().map_err(|_| unusable())?;
        Ok(RecordKey { key: LessSafeKey::new(key), iv, form, number })
    }

    /// Whether the key has protected as many records as it should.
    pub fn is_used_up(&self) -> bool {
        self.form == Form::Tls13 && self.number >= MOST_RECORDS
    }

    fn nonce(&self) -> [u8; NONCE_LEN] {
        let mut nonce = self.iv;
        for (byte, of_number) in nonce[NONCE_LEN - 8..].iter_mut().zip(self.number.to_be_bytes()) {
            *byte ^= of_number;
        }
        nonce
    }

    /// The data that the tag of a record protects as well: the header in TLS 1.3, and in TLS 1.2 the number of the record and the header
    /// with the size of the plaintext.
    fn associated(&self, header: [u8; HEADER], plaintext: usize) -> ([u8; 13], Range<usize>) {
        let mut data = [0; 13];
        data[..8].copy_from_slice(&self.number.to_be_bytes());
        data[8..].copy_from_slice(&header);
        if self.form == Form::Tls13 {
            return (data, 8..13);
        }
        data[11..].copy_from_slice(&(plaintext as u16).to_be_bytes());
        (data, 0..13)
    }

    /// Appends a record of type `kind` with `plaintext`, at most [`MAX_PLAINTEXT`] bytes in several pieces, to `out`.
    ///
    /// # Errors
    /// If the cryptographic library refuses.
    pub fn seal<'a>(
        &mut self,
        kind: u8,
        plaintext: impl Iterator<Item = &'a [u8]>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let (start, nonce) = (out.len(), self.nonce());
        out.extend_from_slice(&[kind, 3, 3, 0, 0]);
        if self.form == Form::Tls12Explicit {
            out.extend_from_slice(&nonce[NONCE_LEN - EXPLICIT..]);
        }
        let begin = out.len();
        plaintext.for_each(|piece| out.extend_from_slice(piece));
        let size = out.len() - begin;
        if self.form == Form::Tls13 {
            // The type is encrypted; outside, all records look like data.
            out.push(kind);
            out[start] = kind::DATA;
        }
        let length = out.len() + TAG - start - HEADER;
        out[start + 3..start + HEADER].copy_from_slice(&(length as u16).to_be_bytes());
        let header = [out[start], 3, 3, out[start + 3], out[start + 4]];
        let (data, range) = self.associated(header, size);
        let (nonce, data) = (Nonce::assume_unique_for_key(nonce), Aad::from(&data[range]));
        let tag = self.key.seal_in_place_separate_tag(nonce, data, &mut out[begin..]);
        out.extend_from_slice(tag.map_err(|_| Error::EncryptError)?.as_ref());
        self.number += 1;
        Ok(())
    }

    /// Decrypts a whole record in place. Returns its type, and where in it the plaintext is.
    ///
    /// # Errors
    /// If the record is not authentic, or too large.
    pub fn open(&mut self, record: &mut [u8]) -> Result<(u8, Range<usize>), Error> {
        let (&mut header, payload) = record.split_first_chunk_mut::<HEADER>().ok_or(Error::DecryptError)?;
        let (of_nonce, sealed) = payload.split_at_mut_checked(self.explicit()).ok_or(Error::DecryptError)?;
        let size = sealed.len().checked_sub(TAG).ok_or(Error::DecryptError)?;
        let begin = HEADER + of_nonce.len();
        let (nonce, (data, range)) = (self.nonce_of(of_nonce), self.associated(header, size));
        let opened = self.key.open_in_place(nonce, Aad::from(&data[range]), sealed);
        let (kind, length) = self.opened(header, opened.map_err(|_| Error::DecryptError)?)?;
        Ok((kind, begin..begin + length))
    }

    /// Decrypts a whole record to the start of `out`, which must be as long as all records fit. Returns its type, and the size of the
    /// plaintext.
    ///
    /// # Errors
    /// If the record is not authentic, or too large.
    pub fn open_to(&mut self, record: &[u8], out: &mut [u8]) -> Result<(u8, usize), Error> {
        let (&header, payload) = record.split_first_chunk::<HEADER>().ok_or(Error::DecryptError)?;
        let (of_nonce, sealed) = payload.split_at_checked(self.explicit()).ok_or(Error::DecryptError)?;
        let (sealed, tag) = sealed.split_last_chunk::<TAG>().ok_or(Error::DecryptError)?;
        let plain = out.get_mut(..sealed.len()).ok_or(Error::PeerSentOversizedRecord)?;
        let (nonce, (data, range)) = (self.nonce_of(of_nonce), self.associated(header, sealed.len()));
        let opened = self.key.open_separate_gather(nonce, Aad::from(&data[range]), sealed, tag, plain);
        opened.map_err(|_| Error::DecryptError)?;
        self.opened(header, plain)
    }

    /// The size of the part of the nonce that records carry.
    fn explicit(&self) -> usize {
        if self.form == Form::Tls12Explicit { EXPLICIT } else { 0 }
    }

    /// The nonce of a record that carries this part of it.
    fn nonce_of(&self, explicit: &[u8]) -> Nonce {
        let mut nonce = self.nonce();
        nonce[NONCE_LEN - explicit.len()..].copy_from_slice(explicit);
        Nonce::assume_unique_for_key(nonce)
    }

    /// Counts a record that was decrypted. Returns its type, and the size of the plaintext without what is behind it.
    fn opened(&mut self, header: [u8; HEADER], plain: &[u8]) -> Result<(u8, usize), Error> {
        self.number += 1;
        let (mut kind, mut length) = (header[0], plain.len());
        if self.form == Form::Tls13 {
            // Zeros behind the type are padding (RFC 8446, section 5.4).
            let last = plain.iter().rposition(|byte| *byte != 0);
            length = last.ok_or(Error::InvalidMessage(InvalidMessage::InvalidContentType))?;
            kind = plain[length];
        }
        if length > MAX_PLAINTEXT { Err(Error::PeerSentOversizedRecord) } else { Ok((kind, length)) }
    }
}

/// The size of the record at the start of `bytes` with its header; `None` if the header is incomplete.
///
/// # Errors
/// If it is not the header of a record.
pub fn size(bytes: &[u8]) -> Result<Option<usize>, Error> {
    let Some(&[kind, major, _, high, low]) = bytes.first_chunk::<HEADER>() else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([high, low]));
    let problem = match (kind, major) {
        (20..=24, 3) if length > MAX_PAYLOAD => InvalidMessage::MessageTooLarge,
        (20..=24, 3) => return Ok(Some(HEADER + length)),
        (20..=24, _) => InvalidMessage::UnknownProtocolVersion,
        _ => InvalidMessage::InvalidContentType,
    };
    Err(Error::InvalidMessage(problem))
}
