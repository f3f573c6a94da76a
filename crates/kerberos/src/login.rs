//! A login: the exchange that turns a password into a ticket-granting ticket (RFC 4120, section 3.1).
//!
//! ```text
//! client                         KDC
//!   AS-REQ, without proof ──>
//!          <── PREAUTH_REQUIRED, with the salt of the password
//!   AS-REQ, with the time, encrypted with the key of the password ──>
//!          <── AS-REP: ticket, and its session key, encrypted with the key of the password
//! ```

use crate::der::{self, Der, field, number_of, sequence, tag};
use crate::etype::{CipherError, CipherKey, EncryptionType, Usage};
use crate::message::{
    Encrypted, ErrorMessage, KdcError, Moment, Principal, Reply, VERSION, code, number, read_padata, refusal,
    write_padata,
};
use crate::request::{Fresh, RequestBody, write_request};
use crate::ticket::{KerberosTicket, ticket_of};

/// How long tickets are wanted, in seconds. KDCs give shorter ones if their policy says so.
const LIFETIME: u64 = 24 * 3600;

/// Types of data for preauthentication.
mod padata {
    pub(super) const TIMESTAMP: i64 = 2;
    pub(super) const ETYPE_INFO2: i64 = 19;
}

/// How the key of a password is computed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyRecipe {
    /// The encryption type.
    pub kind: EncryptionType,
    /// What is mixed into the password.
    pub salt: Vec<u8>,
    /// The parameters of the KDC, if it named any.
    pub parameters: Option<Vec<u8>>,
}

impl KeyRecipe {
    /// The key of `password`. This takes milliseconds, so callers keep keys.
    ///
    /// # Errors
    /// If the parameters are unreasonable, or this build has no ciphers.
    pub fn key(&self, password: &str) -> Result<CipherKey, CipherError> {
        CipherKey::of_password(self.kind, password, &self.salt, self.parameters.as_deref())
    }
}

/// What follows from a reply.
#[derive(Clone, Debug)]
pub enum LoginStep {
    /// The KDC wants a proof: the key is needed for [`Login::prove`].
    Prove(KeyRecipe),
    /// The reply has a ticket: the key is needed for [`Login::finish`].
    Granted(KeyRecipe),
}

/// A login in progress.
#[derive(Clone, Debug)]
pub struct Login {
    user: Principal,
    realm: String,
    nonce: i64,
    proved: bool,
}

impl Login {
    /// Begins the login of a user. Returns it with the first message for the KDC.
    pub fn begin(user: Principal, realm: &str, fresh: Fresh) -> (Login, Vec<u8>) {
        let login = Login { user, realm: realm.to_owned(), nonce: fresh.nonce(), proved: false };
        let message = login.request(fresh.now, None);
        (login, message)
    }

    fn request(&self, now: Moment, proof: Option<&Encrypted>) -> Vec<u8> {
        let padata = proof.map(|proof| write_padata(padata::TIMESTAMP, &proof.write()));
        let body = RequestBody {
            user: Some(&self.user),
            realm: &self.realm,
            service: &Principal::granter(&self.realm),
            till: now.seconds() + LIFETIME,
            nonce: self.nonce,
        };
        write_request(number::LOGIN, padata.as_deref(), &body.write())
    }

    /// What the reply of the KDC means.
    ///
    /// # Errors
    /// If the KDC refuses, or its reply is none.
    pub fn read(&self, reply: &[u8]) -> Result<LoginStep, KdcError> {
        let recipe = |list: &[(i64, &[u8])]| {
            let infos = list.iter().find(|(kind, _)| *kind == padata::ETYPE_INFO2);
            match infos {
                Some((_, infos)) => self.recipe(infos),
                None => Ok(None),
            }
        };
        if let Some(error) = ErrorMessage::read(reply) {
            if error.code != code::PASSWORD_NEEDED || self.proved {
                return Err(error.refusal());
            }
            let data = error.data.and_then(|data| Der(data).expect(tag::SEQUENCE)).and_then(read_padata);
            let list = data.ok_or(KdcError::Malformed("no list of what proves the password"))?;
            return Ok(LoginStep::Prove(recipe(&list)?.ok_or(KdcError::NothingInCommon)?));
        }
        let granted = Reply::read(reply, number::LOGIN_REPLY).ok_or_else(|| refusal(reply))?;
        let kind = EncryptionType::of_number(granted.secret.kind).ok_or(KdcError::NothingInCommon)?;
        let usual = KeyRecipe { kind, salt: self.user.salt(&self.realm), parameters: None };
        let told = recipe(&granted.padata)?.filter(|recipe| recipe.kind == kind);
        Ok(LoginStep::Granted(told.unwrap_or(usual)))
    }

    /// The recipe of the first encryption type in a list that this program has.
    fn recipe(&self, infos: &[u8]) -> Result<Option<KeyRecipe>, KdcError> {
        let read = || {
            let (mut list, mut found) = (Der(Der(infos).expect(tag::SEQUENCE)?), None);
            while let Some((item_tag, item)) = list.next()? {
                let mut fields = Der(Some(item).filter(|_| item_tag == tag::SEQUENCE)?);
                let number = fields.number_field(0)?;
                let salt = fields.optional_field(1, tag::TEXT).map(<[u8]>::to_vec);
                let parameters = fields.optional_field(2, tag::OCTETS).map(<[u8]>::to_vec);
                if let (None, Some(kind)) = (&found, EncryptionType::of_number(number)) {
                    let salt = salt.unwrap_or_else(|| self.user.salt(&self.realm));
                    found = Some(KeyRecipe { kind, salt, parameters });
                }
            }
            Some(found)
        };
        read().ok_or(KdcError::Malformed("unreadable encryption types"))
    }

    /// The second message, which proves the password.
    ///
    /// # Errors
    /// If this build has no ciphers.
    pub fn prove(&mut self, key: &CipherKey, fresh: Fresh) -> Result<Vec<u8>, KdcError> {
        let time = sequence(&[field(0, &fresh.now.write()), field(1, &der::number(fresh.now.micros()))]);
        let proof = Encrypted::new(key, Usage::Timestamp, fresh.random, &time)?;
        (self.proved, self.nonce) = (true, fresh.nonce());
        Ok(self.request(fresh.now, Some(&proof)))
    }

    /// The ticket-granting ticket in a reply.
    ///
    /// # Errors
    /// If the reply is not encrypted with the key, or belongs to another request.
    pub fn finish(&self, reply: &[u8], key: &CipherKey) -> Result<KerberosTicket, KdcError> {
        let reply = Reply::read(reply, number::LOGIN_REPLY).ok_or_else(|| refusal(reply))?;
        let part = reply.secret.open(key, Usage::LoginReply).map_err(|error| match error {
            CipherError::Integrity if !self.proved => KdcError::Password,
            other => other.into(),
        })?;
        ticket_of(
            &part,
            reply.ticket,
            self.nonce,
            &Principal::granter(&self.realm),
            (&self.user, &self.realm),
        )
    }
}

/// Whether the bytes are a request to a KDC.
pub fn is_request(bytes: &[u8]) -> bool {
    let read = || {
        let mut fields = crate::message::message(bytes, number::LOGIN)
            .or_else(|| crate::message::message(bytes, number::TICKET_REQUEST))?;
        number_of(fields.field(1, tag::INTEGER)?)
    };
    read() == Some(VERSION)
}
