//! The part of a service: whether a token comes from somebody to whom the KDC gave a ticket (RFC 4120, section 3.2).

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::MECHANISM;
use crate::der::{self, Der, element, field, tag};
use crate::etype::{CipherError, CipherKey, Usage};
use crate::message::{
    Encrypted, Moment, Principal, TicketFrame, VERSION, message, number, read_key, read_time, write_message,
};
use crate::ticket::{TOKEN_REPLY, TOKEN_REQUEST, write_token};

/// How far clocks may differ, in seconds (RFC 4120, section 8.2).
const CLOCK_TOLERANCE: u64 = 300;
/// The option of a request that wants the service to prove itself, bit 2.
const MUTUAL: u32 = 0x2000_0000;

/// A key of a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceKey {
    /// The service, with its realm: `HTTP/a.example.com@EXAMPLE.COM`.
    pub name: String,
    /// The version of the key.
    pub version: u32,
    /// The key.
    pub key: CipherKey,
}

/// Which keys of a service have opened a ticket, by their places: those are the keys that the KDC has, too.
#[derive(Debug, Default)]
pub struct ProvenKeys(RefCell<BTreeSet<usize>>);

/// Why a token is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It is no token of Kerberos.
    #[error("the token is malformed")]
    Malformed,
    /// The key that the ticket names does not open it, but has opened others: this ticket is not as the KDC made it.
    #[error("the ticket was altered")]
    Altered,
    /// The key that the ticket names does not open it, and has opened no other: the KDC has another key.
    #[error("the key of {0} opens no ticket")]
    WrongKey(String),
    /// There is no key of the name, version and type that the ticket names, and no other key opens it.
    #[error("there is no key of {0}")]
    NoKey(String),
    /// The authenticator is not that of the owner of the ticket.
    #[error("the ticket belongs to somebody else")]
    Owner,
    /// The ticket has ended, or does not hold yet.
    #[error("the ticket is not valid at this time")]
    Expired,
    /// The clocks differ by more than five minutes.
    #[error("the clock of the client differs by more than five minutes")]
    Clock,
    /// Encryption is impossible.
    #[error(transparent)]
    Cipher(CipherError),
}

impl From<CipherError> for TokenError {
    fn from(error: CipherError) -> TokenError {
        match error {
            CipherError::Missing => TokenError::Cipher(error),
            _ => TokenError::Owner,
        }
    }
}

/// A client whose token is good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its name, without the realm.
    pub client: Principal,
    /// The token that proves the service to the client, if it asked for that.
    pub reply: Option<Vec<u8>>,
}

/// Whether `bytes` are a token of Kerberos.
pub fn is_token(bytes: &[u8]) -> bool {
    request_in(bytes).is_some()
}

/// The request in a token.
fn request_in(token: &[u8]) -> Option<&[u8]> {
    let mut frame = Der(Der(token).expect(tag::APPLICATION)?);
    frame.expect(tag::OID).filter(|mechanism| *mechanism == MECHANISM)?;
    frame.0.strip_prefix(&TOKEN_REQUEST)
}

/// The contents of a ticket.
struct TicketPart {
    key: CipherKey,
    client: Principal,
    starts: u64,
    ends: u64,
}

impl TicketPart {
    fn read(bytes: &[u8]) -> Option<TicketPart> {
        let mut fields = message(bytes, number::TICKET_PART)?;
        let (mut key, mut client, mut authenticated, mut starts, mut ends) = (None, None, None, None, None);
        while let Some((found, value)) = fields.next()? {
            let time = || read_time(Der(value).expect(tag::TIME)?);
            match found.checked_sub(tag::CONTEXT)? {
                1 => key = Some(read_key(Der(value).expect(tag::SEQUENCE)?)?),
                3 => client = Some(Principal::read(Der(value).expect(tag::SEQUENCE)?)?),
                5 => authenticated = Some(time()?),
                6 => starts = Some(time()?),
                7 => ends = Some(time()?),
                _ => {}
            }
        }
        Some(TicketPart { key: key?, client: client?, starts: starts.or(authenticated)?, ends: ends? })
    }
}

/// Checks a token with the keys of the service, at the time of `random` and `now`. `proven` is what earlier tokens told about these keys.
///
/// # Errors
/// If the token does not prove who the client is.
pub fn check(
    token: &[u8],
    keys: &[ServiceKey],
    proven: &ProvenKeys,
    random: [u8; 16],
    now: Moment,
) -> Result<Known, TokenError> {
    let request = request_in(token).ok_or(TokenError::Malformed)?;
    let (options, ticket, secret) = read_request(request).ok_or(TokenError::Malformed)?;
    let part = open_ticket(&ticket, keys, proven)?;
    let authenticator = secret.open(&part.key, Usage::Authenticator)?;
    let (client, made, micros) = read_authenticator(&authenticator).ok_or(TokenError::Malformed)?;
    if !client.is(&part.client) {
        return Err(TokenError::Owner);
    }
    let seconds = now.seconds();
    if seconds + CLOCK_TOLERANCE < part.starts || seconds > part.ends + CLOCK_TOLERANCE {
        return Err(TokenError::Expired);
    }
    if made.abs_diff(seconds) > CLOCK_TOLERANCE {
        return Err(TokenError::Clock);
    }
    let reply = match options & MUTUAL {
        0 => None,
        _ => Some(prove(&part.key, made, micros, random)?),
    };
    Ok(Known { client, reply })
}

/// The options, the ticket and the encrypted authenticator of a request.
fn read_request(bytes: &[u8]) -> Option<(u32, TicketFrame, Encrypted)> {
    let mut fields = message(bytes, number::SERVICE_REQUEST)?;
    fields.number_field(0).filter(|version| *version == VERSION)?;
    fields.number_field(1)?;
    let options = der::flags_of(fields.field(2, tag::BITS)?)?;
    let ticket = TicketFrame::read(fields.expect(tag::CONTEXT + 3)?)?;
    Some((options, ticket, Encrypted::read(fields.field(4, tag::SEQUENCE)?)?))
}

/// The client, and the time in seconds and microseconds, of an authenticator.
fn read_authenticator(bytes: &[u8]) -> Option<(Principal, u64, i64)> {
    let mut fields = message(bytes, number::AUTHENTICATOR)?;
    let (mut client, mut micros, mut seconds) = (None, None, None);
    while let Some((found, value)) = fields.next()? {
        match found.checked_sub(tag::CONTEXT)? {
            2 => client = Some(Principal::read(Der(value).expect(tag::SEQUENCE)?)?),
            4 => micros = Some(der::number_of(Der(value).expect(tag::INTEGER)?)?),
            5 => seconds = Some(read_time(Der(value).expect(tag::TIME)?)?),
            _ => {}
        }
    }
    Some((client?, seconds?, micros?))
}

/// Opens a ticket with whichever key does: names and versions of keys are often wrong, and a wrong key never opens it.
fn open_ticket(
    ticket: &TicketFrame,
    keys: &[ServiceKey],
    proven: &ProvenKeys,
) -> Result<TicketPart, TokenError> {
    let mut proven = proven.0.borrow_mut();
    for (place, key) in keys.iter().enumerate() {
        match ticket.secret.open(&key.key, Usage::OfTicket) {
            Ok(part) => {
                proven.insert(place);
                return TicketPart::read(&part).ok_or(TokenError::Malformed);
            }
            Err(missing @ CipherError::Missing) => return Err(TokenError::Cipher(missing)),
            Err(_) => {}
        }
    }
    let (name, Encrypted { kind, version, .. }) =
        (format!("{}@{}", ticket.service, ticket.realm), &ticket.secret);
    let is_named = |key: &ServiceKey| {
        key.name == name
            && *kind == i64::from(key.key.kind().number())
            && version.is_none_or(|version| version == i64::from(key.version))
    };
    let mut named =
        keys.iter().enumerate().filter(|(_, key)| is_named(key)).map(|(place, _)| place).peekable();
    let is_known = named.peek().is_some();
    if named.any(|place| proven.contains(&place)) {
        return Err(TokenError::Altered);
    }
    let version = version.map_or_else(String::new, |version| format!(", version {version}"));
    let text = format!("{name}{version}, encryption type {kind}");
    Err(if is_known { TokenError::WrongKey(text) } else { TokenError::NoKey(text) })
}

/// The reply that shows that the service could read the request (AP-REP).
fn prove(key: &CipherKey, made: u64, micros: i64, random: [u8; 16]) -> Result<Vec<u8>, TokenError> {
    let time = element(tag::CONTEXT, &crate::message::write_time(made));
    let part = write_message(number::SERVICE_REPLY_PART, &[time, field(1, &der::number(micros))]);
    let secret = Encrypted::new(key, Usage::ServiceReply, random, &part)?;
    let reply = write_message(
        number::SERVICE_REPLY,
        &[
            field(0, &der::number(VERSION)),
            field(1, &der::number(i64::from(number::SERVICE_REPLY))),
            field(2, &secret.write()),
        ],
    );
    Ok(write_token(TOKEN_REPLY, &reply))
}

#[cfg(all(test, feature = "ciphers"))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Fresh;
    use crate::der::sequence;
    use crate::etype::EncryptionType;
    use crate::login::Login;
    use crate::message::write_time;
    use crate::ticket::KerberosTicket;

    const NOW: u64 = 1_700_000_000;

    fn key(byte: u8) -> CipherKey {
        CipherKey::new(EncryptionType::Aes256Sha1, &[byte; 32]).unwrap()
    }

    fn service_key(byte: u8) -> ServiceKey {
        ServiceKey { name: "HTTP/a.tst@R".to_owned(), version: 1, key: key(byte) }
    }

    /// A ticket of `owner` for a service with the key 1, with the session key 2, shown by `user`.
    fn ticket(owner: &str, user: &str) -> KerberosTicket {
        let (kind, bytes) = (i64::from(key(2).kind().number()), der::octets(key(2).bytes()));
        let part = write_message(
            number::TICKET_PART,
            &[
                field(0, &der::flags(0)),
                field(1, &sequence(&[field(0, &der::number(kind)), field(1, &bytes)])),
                field(2, &der::text("R")),
                field(3, &Principal::user(owner).write()),
                field(4, &sequence(&[field(0, &der::number(0)), field(1, &der::octets(b""))])),
                field(5, &write_time(NOW)),
                field(7, &write_time(NOW + 3600)),
            ],
        );
        let secret = Encrypted::new(&key(1), Usage::OfTicket, [1; 16], &part).unwrap();
        let service = Principal::service("HTTP/a.tst");
        let fields = [field(0, &der::number(VERSION)), field(1, &der::text("R"))];
        let rest = [field(2, &service.write()), field(3, &secret.write())];
        let ticket = write_message(number::TICKET, &[fields, rest].concat());
        KerberosTicket {
            ticket,
            key: key(2),
            ends: NOW + 3600,
            user: Principal::user(user),
            realm: "R".to_owned(),
        }
    }

    fn fresh(seconds: u64) -> Fresh {
        Fresh { random: [9; 16], now: Moment::of_millis(seconds * 1000, 7) }
    }

    fn checked(token: &[u8], byte: u8, seconds: u64) -> Result<Known, TokenError> {
        let (proven, now) = (ProvenKeys::default(), Moment::of_millis(seconds * 1000, 0));
        check(token, &[service_key(3), service_key(byte)], &proven, [4; 16], now)
    }

    #[test]
    fn a_ticket_proves_its_owner() {
        let token = ticket("joe", "joe").token(fresh(NOW + 5)).unwrap();
        assert!(is_token(&token));
        let known = Known { client: Principal::user("joe"), reply: None };
        assert_eq!(checked(&token, 1, NOW + 9), Ok(known));
        let wrong = TokenError::WrongKey("HTTP/a.tst@R, encryption type 18".to_owned());
        assert_eq!(checked(&token, 2, NOW + 9), Err(wrong));
        let other = [ServiceKey { name: "HTTP/b.tst@R".to_owned(), ..service_key(2) }];
        let named = TokenError::NoKey("HTTP/a.tst@R, encryption type 18".to_owned());
        let now = Moment::of_millis(NOW * 1000, 0);
        assert_eq!(check(&token, &other, &ProvenKeys::default(), [4; 16], now), Err(named));
        assert_eq!(checked(&token, 1, NOW + 306), Err(TokenError::Clock));
        assert_eq!(checked(&token, 1, NOW + 4000), Err(TokenError::Expired));
        assert_eq!(checked(&token, 1, NOW - 301), Err(TokenError::Expired));
        let stolen = ticket("ann", "joe").token(fresh(NOW)).unwrap();
        assert_eq!(checked(&stolen, 1, NOW), Err(TokenError::Owner));
        assert_eq!(checked(b"x", 1, NOW), Err(TokenError::Malformed));
    }

    /// A keytab with a wrong key opens no ticket; one with the right key opens those that nobody altered.
    #[test]
    fn a_key_that_has_opened_a_ticket_is_right() {
        let (keys, proven) = ([service_key(1)], ProvenKeys::default());
        let opens = |keys: &[ServiceKey], token: &[u8]| {
            check(token, keys, &proven, [4; 16], Moment::of_millis(NOW * 1000, 0)).map(drop)
        };
        let token = ticket("joe", "joe").token(fresh(NOW)).unwrap();
        let mut altered = token.clone();
        altered[token.len() / 2] ^= 1;
        assert!(matches!(opens(&keys, &altered), Err(TokenError::WrongKey(_))), "nothing speaks for the key");
        assert_eq!(opens(&keys, &token), Ok(()));
        assert_eq!(opens(&keys, &altered), Err(TokenError::Altered));
        let renewed = [service_key(1), ServiceKey { name: "HTTP/a.tst@R".to_owned(), ..service_key(2) }];
        assert_eq!(opens(&renewed, &altered), Err(TokenError::Altered), "no version tells which key");
    }

    #[test]
    fn tickets_are_used_until_a_minute_before_their_end() {
        let ticket = ticket("joe", "joe");
        assert!(ticket.is_valid(NOW + 3539) && !ticket.is_valid(NOW + 3540));
    }

    proptest! {
        #[test]
        fn altered_tokens_are_refused(at: prop::sample::Index, flip in 1..=255_u8, cut: bool) {
            let mut token = ticket("joe", "joe").token(fresh(NOW)).unwrap();
            let at = at.index(token.len());
            match cut {
                true => token.truncate(at),
                false => token[at] ^= flip,
            }
            // Names and versions outside of what is encrypted do not matter.
            let known = checked(&token, 1, NOW).map(|known| known.client);
            prop_assert!(known.is_err() || known == Ok(Principal::user("joe")));
        }

        #[test]
        fn random_replies_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..90), tag in 0x60..0x7f_u8) {
            let (login, first) = Login::begin(Principal::user("joe"), "R", fresh(NOW));
            prop_assert!(crate::login::is_request(&first));
            let (request, _) = ticket("joe", "joe").request(&Principal::service("HTTP/a.tst"), fresh(NOW)).unwrap();
            for bytes in [bytes.clone(), element(tag, &element(0x30, &bytes))] {
                let _ = (login.read(&bytes), crate::error_code(&bytes), checked(&bytes, 1, NOW));
                prop_assert!(login.finish(&bytes, &key(1)).is_err());
                prop_assert!(request.finish(&bytes, &ticket("joe", "joe")).is_err());
            }
        }
    }
}
