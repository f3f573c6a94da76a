//! Requests to a KDC: for a login, and for a ticket (RFC 4120, section 5.4.1).

use crate::der::{self, element, field, sequence, tag};
use crate::etype::EncryptionType;
use crate::message::{Moment, Principal, VERSION, write_message, write_time};

/// What makes a message different from all others.
#[derive(Clone, Copy, Debug)]
pub struct Fresh {
    /// Random bytes, also for what is encrypted.
    pub random: [u8; 16],
    /// The time of day.
    pub now: Moment,
}

impl Fresh {
    /// A number that the reply must repeat.
    pub(crate) fn nonce(&self) -> i64 {
        let [a, b, c, d, ..] = self.random;
        i64::from(u32::from_be_bytes([a, b, c, d]) & 0x7fff_ffff)
    }
}

/// The body of a request.
pub(crate) struct RequestBody<'a> {
    pub(crate) user: Option<&'a Principal>,
    pub(crate) realm: &'a str,
    pub(crate) service: &'a Principal,
    pub(crate) till: u64,
    pub(crate) nonce: i64,
}

impl RequestBody<'_> {
    pub(crate) fn write(&self) -> Vec<u8> {
        let kinds: Vec<Vec<u8>> =
            EncryptionType::ALL.iter().map(|kind| der::number(i64::from(kind.number()))).collect();
        sequence(&[
            field(0, &der::flags(0)),
            self.user.map(|user| field(1, &user.write())).unwrap_or_default(),
            field(2, &der::text(self.realm)),
            field(3, &self.service.write()),
            field(5, &write_time(self.till)),
            field(7, &der::number(self.nonce)),
            field(8, &sequence(&kinds)),
        ])
    }
}

/// A request with one item of preauthentication, if any.
pub(crate) fn write_request(number: u8, padata: Option<&[u8]>, body: &[u8]) -> Vec<u8> {
    let padata = padata.map(|item| field(3, &element(tag::SEQUENCE, item))).unwrap_or_default();
    write_message(
        number,
        &[field(1, &der::number(VERSION)), field(2, &der::number(i64::from(number))), padata, field(4, body)],
    )
}
