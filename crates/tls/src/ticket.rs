//! Session tickets (RFC 5077; RFC 8446, section 4.6.1) under a secret that all processes of a test share.
//!
//! The servers of a test run on several event loops and possibly in several processes, and a resumed connection may arrive at any
//! of them. The secret lives as long as the test, so it is not rolled.

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use rustls::server::ProducesTickets;

/// Lifetime of a ticket in seconds: two hours, as the library has by default.
const LIFETIME_S: u32 = 2 * 60 * 60;

/// Encrypts the state of sessions.
#[derive(Debug)]
pub struct Tickets(RandomizedNonceKey);

impl Tickets {
    /// Tickets under `secret`.
    pub fn new(secret: &[u8; 32]) -> Option<Tickets> {
        RandomizedNonceKey::new(&AES_256_GCM, secret).ok().map(Tickets)
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        LIFETIME_S
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let mut sealed = plain.to_vec();
        let nonce = self.0.seal_in_place_append_tag(Aad::empty(), &mut sealed).ok()?;
        let mut ticket = nonce.as_ref().to_vec();
        ticket.append(&mut sealed);
        Some(ticket)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = cipher.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let plain = self.0.open_in_place(nonce, Aad::empty(), &mut sealed).ok()?;
        Some(plain.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_can_be_read_with_the_same_secret_only() {
        let (secret, other) = ([1; 32], [2; 32]);
        let tickets = Tickets::new(&secret).unwrap();
        let mut ticket = tickets.encrypt(b"state").unwrap();
        assert_eq!(Tickets::new(&secret).unwrap().decrypt(&ticket).as_deref(), Some(&b"state"[..]));
        assert_eq!(Tickets::new(&other).unwrap().decrypt(&ticket), None);
        *ticket.last_mut().unwrap() ^= 1;
        assert_eq!(tickets.decrypt(&ticket), None);
        assert_eq!(tickets.decrypt(b""), None);
    }
}
