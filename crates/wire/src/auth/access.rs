//! Access control of a server or proxy. This is for tests of authentication and protects nothing: the names and passwords are those
//! of a workload.

use std::collections::BTreeMap;

use base64::prelude::{BASE64_STANDARD, Engine};
use md5::{Digest as _, Md5};
use polygraph_kerberos::Moment;
pub use polygraph_kerberos::service::ProvenKeys;
use polygraph_kerberos::service::{self, ServiceKey, TokenError};
use serde::{Deserialize, Serialize};

use super::challenge::{Challenge, challenges};
use super::digest::{Digest, DigestRejection, DigestResponse, Hash};
use super::ntlm::{self, Uniqueness};
use super::spnego::{self, Message, State};
use super::{basic, write_token};
use crate::uri;

/// A scheme of authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scheme {
    /// Clients send name and password.
    Basic,
    /// Clients prove with each request that they know the password.
    Digest(Hash),
    /// Clients prove once for each connection that they know the password.
    Ntlm,
    /// Clients negotiate the mechanism: NTLM, and Kerberos if there are [keys](Access::keys).
    Negotiate,
}

impl Scheme {
    /// All schemes, each with its name in options and workloads.
    pub const NAMES: [(&str, Scheme); 5] = [
        ("basic", Scheme::Basic),
        ("digest", Scheme::Digest(Hash::Md5)),
        ("digest-sha256", Scheme::Digest(Hash::Sha256)),
        ("ntlm", Scheme::Ntlm),
        ("negotiate", Scheme::Negotiate),
    ];

    /// The scheme with this name, in capital or small letters.
    pub fn named(name: &str) -> Option<Scheme> {
        Self::NAMES.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, scheme)| scheme)
    }

    /// The name of the scheme on the wire.
    fn word(self) -> &'static str {
        match self {
            Scheme::Basic => "Basic",
            Scheme::Digest(_) => "Digest",
            Scheme::Ntlm => "NTLM",
            Scheme::Negotiate => "Negotiate",
        }
    }
}

/// Access control.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// The offered schemes.
    pub schemes: Vec<Scheme>,
    /// The realm: the name of the protected space, shown to users; for NTLM the name of the domain.
    pub realm: String,
    /// Passwords by user name.
    pub users: BTreeMap<String, String>,
    /// Answers to a challenge that is older than this many seconds are refused with a new challenge that is marked
    /// `stale`. Only `Digest` uses this limit.
    pub nonce_lifetime: u64,
    /// The keys of the service in Kerberos. Whoever has a ticket for it may pass. Empty: there is no Kerberos.
    pub keys: Vec<ServiceKey>,
}

/// What a server knows about the user of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ConnectionAccess {
    /// Nothing; the schemes that authenticate each request leave it so.
    #[default]
    Unknown,
    /// A handshake has begun.
    Begun(Box<Handshake>),
    /// A handshake has succeeded: all requests on the connection are those of a known user.
    Granted,
}

/// A handshake that waits for its last message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Handshake {
    negotiate: Vec<u8>,
    challenge: Vec<u8>,
}

/// The facts about a request that decide on access, besides its credentials.
#[derive(Clone, Copy, Debug)]
pub struct AccessRequest<'a> {
    /// Method as sent.
    pub method: &'a str,
    /// Request target as sent.
    pub target: &'a str,
    /// The time of day in milliseconds since 1970.
    pub unix_ms: u64,
    /// Makes nonces unpredictable for others.
    pub secret: u64,
    /// What earlier requests told about the [keys](Access::keys).
    pub proven: &'a ProvenKeys,
}

/// Why a request may not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessDenied {
    /// The values of `WWW-Authenticate` or `Proxy-Authenticate` for the reply.
    pub challenges: Vec<Vec<u8>>,
    /// The request had credentials that prove nothing, neither the first message of a handshake nor those for an old challenge.
    pub refused: Option<Refused>,
}

/// Credentials that prove nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Their scheme and user, as far as they can be read.
    Credentials(String),
    /// A ticket that the [keys](Access::keys) do not open, because they are not those of the KDC: what is wrong with them.
    Keys(String),
}

impl Access {
    /// Access for these users, with fresh challenges every five minutes.
    pub fn new(
        schemes: Vec<Scheme>,
        realm: &str,
        users: impl IntoIterator<Item = (String, String)>,
    ) -> Access {
        let (realm, users) = (realm.to_owned(), users.into_iter().collect());
        Access { schemes, realm, users, nonce_lifetime: 300, keys: Vec::new() }
    }

    /// Whether a request with these values of `Authorization` or `Proxy-Authorization` may pass. A client of Kerberos may have
    /// asked this side to prove itself, too; then the result is the value of `WWW-Authenticate` or `Proxy-Authenticate` for the reply that
    /// grants access.
    ///
    /// # Errors
    /// If the request does not prove that it comes from one of the users.
    pub fn check<'v>(
        &self,
        connection: &mut ConnectionAccess,
        mut fields: impl Iterator<Item = &'v [u8]>,
        request: &AccessRequest<'_>,
    ) -> Result<Option<Vec<u8>>, AccessDenied> {
        let (field, more) = (fields.next(), fields.next());
        if field.is_none() && *connection == ConnectionAccess::Granted {
            return Ok(None);
        }
        let answers = field.map(challenges).unwrap_or_default();
        let answer = answers.first().filter(|_| more.is_none());
        let chosen = answer.and_then(|answer| {
            let offered = self.schemes.iter().copied().find(|scheme| answer.is(scheme.word()))?;
            Some((offered, answer))
        });
        // A digest that is right but old leads to a challenge that says so.
        let mut stale = false;
        let mut unopened = None;
        match chosen {
            Some((Scheme::Basic, answer)) => {
                let known = |(user, password)| self.users.get(&user) == Some(&password);
                if basic::read(answer).is_some_and(known) {
                    return Ok(None);
                }
            }
            Some((Scheme::Digest(hash), answer)) => match self.check_digest(hash, answer, request) {
                Some(Ok(())) => return Ok(None),
                other => stale = other == Some(Err(DigestRejection::Stale)),
            },
            Some((scheme @ (Scheme::Ntlm | Scheme::Negotiate), answer)) => {
                match self.step(connection, answer, request) {
                    Step::Granted(token) => {
                        *connection = ConnectionAccess::Granted;
                        return Ok(token.map(|token| field_with(scheme, &token)));
                    }
                    Step::Ask(token) => {
                        return Err(AccessDenied {
                            challenges: vec![field_with(scheme, &token)],
                            refused: None,
                        });
                    }
                    Step::Unopened(why) => unopened = Some(Refused::Keys(why)),
                    Step::Refused => {}
                }
            }
            None => {}
        }
        *connection = ConnectionAccess::Unknown;
        let credentials = || (field.is_some() && !stale).then(|| Refused::Credentials(account_in(answer)));
        Err(AccessDenied {
            challenges: self.schemes.iter().map(|scheme| self.challenge(*scheme, stale, request)).collect(),
            refused: unopened.or_else(credentials),
        })
    }

    /// The first challenge of a scheme.
    fn challenge(&self, scheme: Scheme, stale: bool, request: &AccessRequest<'_>) -> Vec<u8> {
        let mut challenge = Vec::new();
        match scheme {
            Scheme::Basic => basic::write_challenge(&self.realm, &mut challenge),
            Scheme::Digest(hash) => {
                let nonce = nonce_of(request.unix_ms / 1000, request.secret);
                Digest { stale, ..self.digest(hash, nonce) }.write_challenge(&mut challenge);
            }
            Scheme::Ntlm | Scheme::Negotiate => challenge.extend_from_slice(scheme.word().as_bytes()),
        }
        challenge
    }

    fn digest(&self, hash: Hash, nonce: String) -> Digest {
        let realm = self.realm.clone();
        Digest { realm, nonce, opaque: None, hash, session: false, qop: true, stale: false }
    }

    /// The verdict on a digest; `None` if it is not for this request or of an unknown user.
    fn check_digest(
        &self,
        hash: Hash,
        answer: &Challenge<'_>,
        request: &AccessRequest<'_>,
    ) -> Option<Result<(), DigestRejection>> {
        // Some clients of proxies name only the path of the absolute target, and others the absolute target of a request that reaches
        // the server with its path (RFC 7616, section 3.4.6).
        let is_path_of = |path: &str, uri: &str| {
            uri::split(uri.as_bytes()).is_some_and(|parts| parts.path == path.as_bytes())
        };
        let is_target = |uri: &str| {
            uri == request.target || is_path_of(uri, request.target) || is_path_of(request.target, uri)
        };
        let answer = DigestResponse::read(answer).filter(|answer| is_target(answer.uri))?;
        let password = self.users.get(answer.user)?;
        let now = request.unix_ms / 1000;
        let valid = self.is_valid(answer.nonce, now, request.secret);
        let nonce = if valid { answer.nonce.to_owned() } else { nonce_of(now, request.secret) };
        Some(self.digest(hash, nonce).verify(&answer, password, request.method))
    }

    /// Whether this server made the nonce, and it is not too old.
    fn is_valid(&self, nonce: &str, now: u64, secret: u64) -> bool {
        let made = nonce.get(..16).and_then(|digits| u64::from_str_radix(digits, 16).ok());
        made.is_some_and(|made| {
            now.saturating_sub(made) <= self.nonce_lifetime && nonce == nonce_of(made, secret)
        })
    }

    /// Continues the handshake of a connection with a message of the client.
    fn step(
        &self,
        connection: &mut ConnectionAccess,
        answer: &Challenge<'_>,
        request: &AccessRequest<'_>,
    ) -> Step {
        let Some(bytes) = answer.token.and_then(|token| BASE64_STANDARD.decode(token).ok()) else {
            return Step::Refused;
        };
        // Negotiate may carry tokens without the frame of SPNEGO.
        if ntlm::is_message(&bytes) {
            return self.step_ntlm(connection, &bytes, request);
        }
        if answer.is("Negotiate") && service::is_token(&bytes) {
            return self.check_ticket(&bytes, request);
        }
        let Some(message) = Message::read(&bytes).filter(|_| answer.is("Negotiate")) else {
            return Step::Refused;
        };
        let reply = |token: Option<&[u8]>| {
            let (state, mechanism) = (Some(State::Incomplete), Some(spnego::oid::NTLM));
            Step::Ask(Message::Response { state, mechanism, token, mic: None }.write())
        };
        match message {
            Message::Init { ref mechanisms, token: Some(token) }
                if !self.keys.is_empty() && mechanisms.first().is_some_and(|first| is_kerberos(first)) =>
            {
                let (state, mechanism) = (Some(State::Completed), mechanisms.first().copied());
                match self.check_ticket(token, request) {
                    Step::Granted(Some(token)) => {
                        let token = Some(&*token);
                        Step::Granted(Some(Message::Response { state, mechanism, token, mic: None }.write()))
                    }
                    other => other,
                }
            }
            // The client prefers another mechanism, and has to start again with NTLM.
            Message::Init { mechanisms, .. } if mechanisms.first() != Some(&spnego::oid::NTLM) => {
                match mechanisms.contains(&spnego::oid::NTLM) {
                    true => reply(None),
                    false => Step::Refused,
                }
            }
            message => match message.token().map(|token| self.step_ntlm(connection, token, request)) {
                Some(Step::Ask(token)) => reply(Some(&token)),
                Some(other) => other,
                None => Step::Refused,
            },
        }
    }

    /// Decides by a token of Kerberos alone.
    fn check_ticket(&self, token: &[u8], request: &AccessRequest<'_>) -> Step {
        let random = hash(&[&request.secret.to_be_bytes(), &request.unix_ms.to_be_bytes(), token]);
        let now = Moment::of_millis(request.unix_ms, 0);
        match service::check(token, &self.keys, request.proven, random, now) {
            Ok(known) => Step::Granted(known.reply),
            Err(error @ (TokenError::NoKey(_) | TokenError::WrongKey(_))) => {
                Step::Unopened(error.to_string())
            }
            Err(_) => Step::Refused,
        }
    }

    fn step_ntlm(
        &self,
        connection: &mut ConnectionAccess,
        message: &[u8],
        request: &AccessRequest<'_>,
    ) -> Step {
        match (ntlm::message_type(message), &*connection) {
            (Some(1), _) => {
                let random = hash(&[&request.secret.to_be_bytes(), &request.unix_ms.to_be_bytes(), message]);
                let nonce = std::array::from_fn(|at| random[at]);
                let unique = Uniqueness { nonce, unix_ms: request.unix_ms };
                match ntlm::challenge(message, &self.realm, &self.realm, unique) {
                    Ok(challenge) => {
                        let negotiate = message.to_vec();
                        let begun = Handshake { negotiate, challenge: challenge.clone() };
                        *connection = ConnectionAccess::Begun(Box::new(begun));
                        Step::Ask(challenge)
                    }
                    Err(_) => Step::Refused,
                }
            }
            (Some(3), ConnectionAccess::Begun(begun)) => {
                let messages = [&*begun.negotiate, &*begun.challenge, message];
                match ntlm::verify(messages, |domain, user| self.password(domain, user)) {
                    Ok(_) => Step::Granted(None),
                    Err(_) => Step::Refused,
                }
            }
            _ => Step::Refused,
        }
    }

    /// The password of a user, whose name may include the domain.
    fn password(&self, domain: &str, user: &str) -> Option<&str> {
        let full = || self.users.get(&format!("{domain}\\{user}"));
        self.users.get(user).or_else(full).map(String::as_str)
    }
}

/// The outcome of one step of a handshake.
enum Step {
    /// The user is known. The token, if there is one, proves this side to the client.
    Granted(Option<Vec<u8>>),
    /// The client has to answer this token.
    Ask(Vec<u8>),
    /// The ticket is for a key that this side does not have; what is wrong with its keys.
    Unopened(String),
    Refused,
}

/// The scheme of credentials, and the user whom they name in clear, for people.
fn account_in(answer: Option<&Challenge<'_>>) -> String {
    let Some(answer) = answer else { return "unreadable credentials".to_owned() };
    let user =
        basic::read(answer).map(|(user, _)| user).or_else(|| answer.get("username").map(str::to_owned));
    let user = user.map_or_else(String::new, |user| format!(" of user `{user}`"));
    format!("{} credentials{user}", answer.scheme).chars().take(200).collect()
}

/// The value of a field with a token.
fn field_with(scheme: Scheme, token: &[u8]) -> Vec<u8> {
    let mut field = Vec::new();
    write_token(scheme.word(), token, &mut field);
    field
}

fn is_kerberos(mechanism: &[u8]) -> bool {
    mechanism == spnego::oid::KERBEROS || mechanism == spnego::oid::KERBEROS_OF_WINDOWS
}

/// Bytes that others cannot guess, because they do not know one of the parts.
fn hash(parts: &[&[u8]]) -> [u8; 16] {
    let mut hash = Md5::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

/// A nonce: the time, and a mark that distinguishes our nonces from others.
fn nonce_of(now: u64, secret: u64) -> String {
    let random = hash(&[&secret.to_be_bytes(), &now.to_be_bytes()]);
    let mark = random.iter().take(8).fold(0, |mark, byte| mark << 8 | u64::from(*byte));
    format!("{now:016x}{mark:016x}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::digest::{Credentials, DigestRequest};
    use super::super::handshake::{ClientHandshake, TokenFrame};
    use super::super::ntlm::Account;
    use super::*;

    const TARGET: &str = "http://a.tst/x";

    fn access(schemes: &[Scheme]) -> Access {
        let users = [("joe", "a:b"), ("ann", ""), ("D\\eve", "x")];
        let users = users.map(|(user, password)| (user.to_owned(), password.to_owned()));
        Access::new(schemes.to_vec(), "bench", users)
    }

    /// The outcome for a `GET` with this field at `now`, in seconds: `None` if it may pass, else the challenges.
    fn asked_on(
        connection: &mut ConnectionAccess,
        access: &Access,
        field: Option<&[u8]>,
        now: u64,
    ) -> Option<String> {
        let (proven, unix_ms) = (&ProvenKeys::default(), now * 1000);
        let request = AccessRequest { method: "GET", target: TARGET, unix_ms, secret: 7, proven };
        let checked = access.check(connection, field.into_iter(), &request);
        checked.err().map(|denial| String::from_utf8(denial.challenges.join(&b", "[..])).unwrap())
    }

    fn asked(access: &Access, field: Option<&[u8]>, now: u64) -> Option<String> {
        asked_on(&mut ConnectionAccess::default(), access, field, now)
    }

    #[test]
    fn basic_lets_known_users_in() {
        let access = access(&[Scheme::Basic]);
        for (user, password, passes) in [
            ("joe", "a:b", true),
            ("ann", "", true),
            ("ann", "a:b", false),
            ("joe", "a:b-", false),
            ("x", "", false),
        ] {
            let mut field = Vec::new();
            basic::write(user, password, &mut field);
            assert_eq!(asked(&access, Some(&field), 0).is_none(), passes, "{user}:{password}");
        }
        for bad in [None, Some(&b"Basic"[..]), Some(b"Digest username=\"joe\""), Some(b"\xff"), Some(b"NTLM")]
        {
            assert_eq!(asked(&access, bad, 0).as_deref(), Some("Basic realm=\"bench\""));
        }
    }

    fn answer(challenge: &str, user: &str, password: &str, uri: &str) -> Vec<u8> {
        let digest = challenges(challenge.as_bytes()).iter().find_map(Digest::read).unwrap();
        let mut field = Vec::new();
        let who = Credentials { user, password };
        digest.write_answer(who, DigestRequest { method: "GET", uri }, 1, "c", &mut field);
        field
    }

    #[test]
    fn digest_lets_known_users_in_until_the_nonce_is_old() {
        for hash in [Hash::Md5, Hash::Sha256] {
            let access = access(&[Scheme::Digest(hash)]);
            let first = asked(&access, None, 1_000).unwrap();
            assert!(!first.contains("stale"), "{first}");
            let good = answer(&first, "joe", "a:b", TARGET);
            assert_eq!(asked(&access, Some(&good), 1_000), None);
            assert_eq!(asked(&access, Some(&good), 1_300), None);
            assert_eq!(asked(&access, Some(&answer(&first, "joe", "a:b", "/x")), 1_000), None);
            // Behind a proxy, the target is a path.
            let (proven, unix_ms) = (&ProvenKeys::default(), 1_000_000);
            let here = AccessRequest { method: "GET", target: "/x", unix_ms, secret: 7, proven };
            let mut fields = [good.as_slice()].into_iter();
            assert!(access.check(&mut ConnectionAccess::default(), &mut fields, &here).is_ok());
            let again = asked(&access, Some(&good), 1_301).unwrap();
            assert!(again.contains("stale=true") && again != first, "{again}");
            assert_eq!(asked(&access, Some(&answer(&again, "joe", "a:b", TARGET)), 1_301), None);
            for wrong in [
                answer(&first, "joe", "a:b-", TARGET),
                answer(&first, "eve", "a:b", TARGET),
                answer(&first, "joe", "a:b", "http://a.tst/y"),
                b"Basic am9lOmE6Yg==".to_vec(),
            ] {
                let challenge = asked(&access, Some(&wrong), 1_000).unwrap();
                assert!(!challenge.contains("stale"), "{challenge}");
            }
            // A nonce that somebody made up is answered like an old one: with ours.
            let foreign = first.replace("00000000000003e8", "00000000000003e9");
            let challenge = asked(&access, Some(&answer(&foreign, "joe", "a:b", TARGET)), 1_001).unwrap();
            assert!(challenge.contains("stale=true"), "{challenge}");
        }
    }

    /// Carries out the handshake of a client; true if it is let in.
    fn shakes_hands(
        connection: &mut ConnectionAccess,
        access: &Access,
        account: Account<'_>,
        framing: TokenFrame,
    ) -> bool {
        let (mut client, first) = ClientHandshake::begin(framing);
        let unique = Uniqueness { nonce: [3; 8], unix_ms: 5 };
        let challenge = asked_on(connection, access, Some(&first), 1).unwrap();
        let token = challenges(challenge.as_bytes())[0].token.map(str::to_owned);
        let last = client.answer(token.as_deref(), account, unique).unwrap();
        asked_on(connection, access, Some(&last), 1).is_none()
    }

    #[test]
    fn handshakes_authenticate_their_connection() {
        let access = access(&[Scheme::Negotiate, Scheme::Ntlm, Scheme::Basic]);
        assert_eq!(asked(&access, None, 0).as_deref(), Some("Negotiate, NTLM, Basic realm=\"bench\""));
        for framing in [TokenFrame::Ntlm, TokenFrame::Raw, TokenFrame::Spnego] {
            for (name, password, passes) in [
                ("joe", "a:b", true),
                ("ELSEWHERE\\joe", "a:b", true),
                ("ann", "", true),
                ("D\\eve", "x", true),
                ("E\\eve", "x", false),
                ("joe", "a:b-", false),
                ("x", "", false),
            ] {
                let connection = &mut ConnectionAccess::default();
                let account = Account { name, password };
                assert_eq!(shakes_hands(connection, &access, account, framing), passes, "{name} {framing:?}");
                assert_eq!(asked_on(connection, &access, None, 2).is_none(), passes);
            }
        }
        // The last message is worth nothing on another connection.
        let (mut client, first) = ClientHandshake::begin(TokenFrame::Ntlm);
        let challenge = asked(&access, Some(&first), 1).unwrap();
        let token = challenges(challenge.as_bytes())[0].token.map(str::to_owned);
        let joe = Account { name: "joe", password: "a:b" };
        let unique = Uniqueness { nonce: [3; 8], unix_ms: 5 };
        let last = client.answer(token.as_deref(), joe, unique).unwrap();
        assert!(asked(&access, Some(&last), 1).is_some());
    }

    #[test]
    fn a_client_that_prefers_kerberos_is_led_to_ntlm() {
        let access = access(&[Scheme::Negotiate]);
        let connection = &mut ConnectionAccess::default();
        let field = |message: Message<'_>| {
            let mut field = Vec::new();
            write_token("Negotiate", &message.write(), &mut field);
            field
        };
        let both = vec![spnego::oid::KERBEROS, spnego::oid::NTLM];
        let init = field(Message::Init { mechanisms: both, token: Some(b"ticket") });
        let challenge = asked_on(connection, &access, Some(&init), 1).unwrap();
        let token = BASE64_STANDARD.decode(challenge.strip_prefix("Negotiate ").unwrap()).unwrap();
        let expected = Message::Response {
            state: Some(State::Incomplete),
            mechanism: Some(spnego::oid::NTLM),
            token: None,
            mic: None,
        };
        assert_eq!(Message::read(&token), Some(expected));
        let negotiate = ntlm::negotiate();
        let first = Message::Response { state: None, mechanism: None, token: Some(&negotiate), mic: None };
        assert!(asked_on(connection, &access, Some(&field(first)), 1).unwrap().len() > 60);
        let only = vec![spnego::oid::KERBEROS];
        let init = field(Message::Init { mechanisms: only, token: Some(b"ticket") });
        assert_eq!(asked_on(connection, &access, Some(&init), 1).as_deref(), Some("Negotiate"));
    }

    proptest! {
        #[test]
        fn random_credentials_never_panic(
            scheme in "(NTLM|Negotiate|Basic|Digest)", bytes in prop::collection::vec(any::<u8>(), 0..90), begun: bool,
        ) {
            let access = access(&Scheme::NAMES.map(|(_, scheme)| scheme));
            let connection = &mut ConnectionAccess::default();
            if begun {
                let (_, first) = ClientHandshake::begin(TokenFrame::Ntlm);
                asked_on(connection, &access, Some(&first), 1);
            }
            let mut field = Vec::new();
            write_token(&scheme, &bytes, &mut field);
            prop_assert!(asked_on(connection, &access, Some(&field), 1).is_some());
        }
    }
}
