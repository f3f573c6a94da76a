//! Tickets: the exchange that turns a ticket-granting ticket into one for a service (RFC 4120, section 3.3), and the token with which
//! a client shows it to the service (RFC 4121).

use crate::MECHANISM;
use crate::der::{self, element, field, sequence, tag};
use crate::etype::{self, CipherKey, Usage};
use crate::message::{
    Encrypted, KdcError, Principal, Reply, ReplyPart, VERSION, number, refusal, write_message, write_padata,
};
use crate::request::{Fresh, RequestBody, write_request};

/// A ticket, and what its owner needs to use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KerberosTicket {
    /// The ticket as the KDC sent it.
    pub(crate) ticket: Vec<u8>,
    /// The session key.
    pub(crate) key: CipherKey,
    /// When it ends, in seconds since 1970.
    pub(crate) ends: u64,
    /// Its owner.
    pub(crate) user: Principal,
    /// The realm of the owner.
    pub(crate) realm: String,
}

/// The type of data for preauthentication that carries a ticket.
const TICKET_REQUEST: i64 = 1;
/// The type of the checksum that stands for the options of GSSAPI (RFC 4121, section 4.1.1).
const GSS_CHECKSUM: i64 = 0x8003;
/// The options that clients ask for: that messages of the same context can be distinguished (GSS_C_REPLAY_FLAG), and that they could be
/// protected (GSS_C_INTEG_FLAG). HTTP uses neither; services expect them.
const GSS_FLAGS: u32 = 0x04 | 0x20;
/// The frame of the token of a request in GSSAPI.
pub(crate) const TOKEN_REQUEST: [u8; 2] = [1, 0];
/// The frame of the token of a reply in GSSAPI.
pub(crate) const TOKEN_REPLY: [u8; 2] = [2, 0];

impl KerberosTicket {
    /// Whether it can still be used at `now`, in seconds since 1970. A minute is left for differences of clocks.
    pub fn is_valid(&self, now: u64) -> bool {
        now + 60 < self.ends
    }

    /// The request for a ticket for `service` of the same realm, with this ticket-granting ticket.
    ///
    /// # Errors
    /// If this build has no ciphers.
    pub fn request(&self, service: &Principal, fresh: Fresh) -> Result<(TicketRequest, Vec<u8>), KdcError> {
        let nonce = fresh.nonce();
        let body = RequestBody { user: None, realm: &self.realm, service, till: self.ends, nonce }.write();
        let code = etype::checksum(&self.key, Usage::RequestChecksum, &body)?;
        let checksum = (i64::from(self.key.kind().checksum_number()), &code[..]);
        let shown = self.show(checksum, Usage::RequestAuthenticator, fresh)?;
        let message =
            write_request(number::TICKET_REQUEST, Some(&write_padata(TICKET_REQUEST, &shown)), &body);
        Ok((TicketRequest { service: service.clone(), nonce }, message))
    }

    /// The token of GSSAPI for the service whose ticket this is.
    ///
    /// # Errors
    /// If this build has no ciphers.
    pub fn token(&self, fresh: Fresh) -> Result<Vec<u8>, KdcError> {
        // Length of the channel bindings, which are none, and the options.
        let options = [&16_u32.to_le_bytes()[..], &[0; 16], &GSS_FLAGS.to_le_bytes()].concat();
        let shown = self.show((GSS_CHECKSUM, &options), Usage::Authenticator, fresh)?;
        Ok(write_token(TOKEN_REQUEST, &shown))
    }

    /// The ticket with an authenticator, which proves that the sender knows the session key (AP-REQ).
    fn show(&self, checksum: (i64, &[u8]), usage: Usage, fresh: Fresh) -> Result<Vec<u8>, KdcError> {
        let (kind, code) = checksum;
        let authenticator = write_message(
            number::AUTHENTICATOR,
            &[
                field(0, &der::number(VERSION)),
                field(1, &der::text(&self.realm)),
                field(2, &self.user.write()),
                field(3, &sequence(&[field(0, &der::number(kind)), field(1, &der::octets(code))])),
                field(4, &der::number(fresh.now.micros())),
                field(5, &fresh.now.write()),
                field(7, &der::number(fresh.nonce())),
            ],
        );
        let authenticator = Encrypted::new(&self.key, usage, fresh.random, &authenticator)?;
        Ok(write_message(
            number::SERVICE_REQUEST,
            &[
                field(0, &der::number(VERSION)),
                field(1, &der::number(i64::from(number::SERVICE_REQUEST))),
                field(2, &der::flags(0)),
                field(3, &self.ticket),
                field(4, &authenticator.write()),
            ],
        ))
    }
}

/// The ticket that a reply describes, if the reply is that to the request.
pub(crate) fn ticket_of(
    part: &[u8],
    ticket: &[u8],
    nonce: i64,
    service: &Principal,
    (user, realm): (&Principal, &str),
) -> Result<KerberosTicket, KdcError> {
    let part = ReplyPart::read(part).ok_or(KdcError::Malformed("an unreadable secret part"))?;
    if part.nonce != nonce {
        return Err(KdcError::Malformed("it belongs to another request"));
    }
    if !part.service.is(service) {
        return Err(KdcError::Malformed("the ticket is for another service"));
    }
    let (ticket, user, realm) = (ticket.to_vec(), user.clone(), realm.to_owned());
    Ok(KerberosTicket { ticket, key: part.key, ends: part.ends, user, realm })
}

/// A token of GSSAPI.
pub(crate) fn write_token(kind: [u8; 2], message: &[u8]) -> Vec<u8> {
    element(tag::APPLICATION, &[&element(tag::OID, MECHANISM), &kind[..], message].concat())
}

/// A request for a ticket.
#[derive(Clone, Debug)]
pub struct TicketRequest {
    service: Principal,
    nonce: i64,
}

impl TicketRequest {
    /// The ticket in the reply to a request with `granting`.
    ///
    /// # Errors
    /// If the KDC refuses, or the reply belongs to another request.
    pub fn finish(&self, reply: &[u8], granting: &KerberosTicket) -> Result<KerberosTicket, KdcError> {
        let reply = Reply::read(reply, number::TICKET_REPLY).ok_or_else(|| refusal(reply))?;
        let part = reply.secret.open(&granting.key, Usage::TicketReply)?;
        ticket_of(&part, reply.ticket, self.nonce, &self.service, (&granting.user, &granting.realm))
    }
}
