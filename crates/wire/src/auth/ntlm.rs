//! NTLM (MS-NLMP): the client proves that it knows the password by a hash of two nonces, in a handshake of three messages that
//! authenticates the connection, not a request.
//!
//! ```text
//! client                                           server
//!   │ NTLM <NEGOTIATE: what the client supports>      │
//!   │ ──────────────────────────────────────────────> │
//!   │ 401 NTLM <CHALLENGE: nonce, names, time>        │
//!   │ <────────────────────────────────────────────── │
//!   │ NTLM <AUTHENTICATE: user, proof>                │
//!   │ ──────────────────────────────────────────────> │
//! ```
//!
//! The proof is that of version 2 of the protocol. Version 1, which relies on DES, is neither sent nor accepted. Signing and
//! sealing of messages after the handshake do not occur in HTTP.

mod message;
mod proof;

pub use message::{Authenticate, Challenge, Negotiate, Version};
use message::{Fields, av};
use proof::{Blob, KEY_SIZE};

/// The flags of a handshake (MS-NLMP, section 2.2.2.5).
pub mod flag {
    /// Strings are UTF-16.
    pub const UNICODE: u32 = 0x0000_0001;
    /// Strings may be in the encoding of the system.
    pub const OEM: u32 = 0x0000_0002;
    /// The client wants the name of the server's domain.
    pub const REQUEST_TARGET: u32 = 0x0000_0004;
    /// Messages after the handshake can be signed.
    pub const SIGN: u32 = 0x0000_0010;
    /// NTLM is in use.
    pub const NTLM: u32 = 0x0000_0200;
    /// The user is anonymous.
    pub const ANONYMOUS: u32 = 0x0000_0800;
    /// A signature block is in all messages.
    pub const ALWAYS_SIGN: u32 = 0x0000_8000;
    /// The name in the challenge is that of a domain.
    pub const TARGET_TYPE_DOMAIN: u32 = 0x0001_0000;
    /// The second form of session keys.
    pub const EXTENDED_SESSION_SECURITY: u32 = 0x0008_0000;
    /// The challenge contains a list of names.
    pub const TARGET_INFO: u32 = 0x0080_0000;
    /// Messages contain the version of the software.
    pub const VERSION: u32 = 0x0200_0000;
    /// Session keys have 128 bits.
    pub const KEY_128: u32 = 0x2000_0000;
    /// The client sends a session key of its choice, encrypted.
    pub const KEY_EXCHANGE: u32 = 0x4000_0000;
    /// Session keys have 56 bits.
    pub const KEY_56: u32 = 0x8000_0000;
}

/// What this program supports. Session keys are needed only for the integrity code of the handshake itself.
const SUPPORTED: u32 = flag::UNICODE
    | flag::REQUEST_TARGET
    | flag::SIGN
    | flag::NTLM
    | flag::ALWAYS_SIGN
    | flag::EXTENDED_SESSION_SECURITY
    | flag::TARGET_INFO
    | flag::VERSION
    | flag::KEY_128
    | flag::KEY_56;

/// Why a handshake fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NtlmError {
    /// The bytes are not the expected message.
    #[error("not the expected message of NTLM: {0}")]
    Malformed(&'static str),
    /// The server does not support the version 2 of the protocol or UTF-16.
    #[error("the challenge offers neither UTF-16 nor names")]
    Unsupported,
    /// The client sent a proof of version 1 of the protocol, or none.
    #[error("the proof is not of NTLM version 2")]
    OldVersion,
    /// There is no such user.
    #[error("unknown user")]
    UnknownUser,
    /// The password is wrong, or the messages were altered on their way.
    #[error("wrong password")]
    WrongProof,
}

/// Name and password of a user.
#[derive(Clone, Copy, Debug)]
pub struct Account<'a> {
    /// `user`, `DOMAIN\user` or `user@domain`.
    pub name: &'a str,
    /// The password in clear.
    pub password: &'a str,
}

impl<'a> Account<'a> {
    /// Domain and user. A name in the form of an e-mail address belongs to the empty domain.
    fn parts(self) -> (&'a str, &'a str) {
        self.name.split_once('\\').unwrap_or(("", self.name))
    }
}

/// What makes each handshake different. A benchmark derives it from its seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uniqueness {
    /// A nonce.
    pub nonce: [u8; 8],
    /// The time of day in milliseconds since 1970.
    pub unix_ms: u64,
}

impl Uniqueness {
    /// The time in units of 100 ns since 1601, as Windows counts it.
    fn file_time(self) -> u64 {
        const FROM_1601_MS: u64 = 11_644_473_600_000;
        (self.unix_ms.saturating_add(FROM_1601_MS)).saturating_mul(10_000)
    }
}

/// The first message of a client. That a challenge contains a list of names is for the server to say; Squid's `ntlm_fake_auth` repeats
/// the flags of the client and has no such list.
pub fn negotiate() -> Vec<u8> {
    Negotiate { flags: SUPPORTED & !flag::TARGET_INFO }.write()
}

/// The answer of a client to a challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NtlmAnswer {
    /// The last message of the handshake.
    pub message: Vec<u8>,
    key: [u8; KEY_SIZE],
}

impl NtlmAnswer {
    /// The signature of the client for `text` as the first signed message (MS-NLMP, section 3.4.4.2), which SPNEGO sends to
    /// protect its list of mechanisms.
    pub fn signature(&self, text: &[u8]) -> [u8; 16] {
        proof::client_signature(&self.key, text)
    }
}

/// The answer to the message `challenge` of a server after `negotiate` was sent.
///
/// # Errors
/// If the challenge is malformed or does not support what the proof needs.
pub fn answer(
    account: Account<'_>,
    negotiate: &[u8],
    challenge: &[u8],
    unique: Uniqueness,
) -> Result<NtlmAnswer, NtlmError> {
    let asked = Challenge::read(challenge)?;
    if asked.flags & flag::UNICODE == 0 {
        return Err(NtlmError::Unsupported);
    }
    let (domain, user) = account.parts();
    let key = proof::response_key(user, domain, account.password);
    // A server that sends its time expects an integrity code over the whole handshake (section 3.1.5.1.2).
    let time = asked.time();
    let mut info = asked.info.clone();
    if time.is_some() {
        av::set_flag(&mut info, av::HAS_MIC);
    }
    let blob = Blob { time: time.unwrap_or(unique.file_time()), nonce: unique.nonce, info: &info };
    let blob = blob.write();
    let nt_proof = proof::nt_proof(&key, &asked.nonce, &blob);
    let lm = match time {
        Some(_) => vec![0; 24],
        None => proof::lm_response(&key, &asked.nonce, &unique.nonce),
    };
    let session_key = proof::session_key(&key, &nt_proof);
    let reply = Authenticate {
        flags: asked.flags & SUPPORTED,
        domain: domain.to_owned(),
        user: user.to_owned(),
        workstation: String::new(),
        lm,
        nt: [&nt_proof[..], &blob].concat(),
        mic: Some([0; 16]),
    };
    let mut message = reply.write();
    if time.is_some() {
        let mic = proof::integrity_code(&session_key, &[negotiate, challenge, &message]);
        message[Authenticate::MIC].copy_from_slice(&mic);
    }
    Ok(NtlmAnswer { message, key: session_key })
}

/// The challenge of a server in the domain `domain` to a client that sent `negotiate`.
///
/// # Errors
/// If the message of the client is malformed.
pub fn challenge(
    negotiate: &[u8],
    domain: &str,
    host: &str,
    unique: Uniqueness,
) -> Result<Vec<u8>, NtlmError> {
    let offer = Negotiate::read(negotiate)?;
    let mut info = Vec::new();
    av::push(&mut info, av::DOMAIN, &message::utf16(domain));
    av::push(&mut info, av::COMPUTER, &message::utf16(host));
    av::push(&mut info, av::TIME, &unique.file_time().to_le_bytes());
    av::push(&mut info, av::END, &[]);
    let both = offer.flags & SUPPORTED;
    let own = flag::UNICODE | flag::TARGET_TYPE_DOMAIN | flag::TARGET_INFO | flag::NTLM;
    Ok(Challenge { flags: both | own, nonce: unique.nonce, target: domain.to_owned(), info }.write())
}

/// The verified user of a handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The domain that the client named, possibly empty.
    pub domain: String,
    /// The name.
    pub name: String,
}

/// Verifies the last message of a handshake: the client knows the password of the user that it names. `password` returns the
/// password of a user in a domain.
///
/// # Errors
/// If the message is malformed, the user is unknown, or the proof is wrong.
pub fn verify<'p>(
    [negotiate, challenge, authenticate]: [&[u8]; 3],
    password: impl FnOnce(&str, &str) -> Option<&'p str>,
) -> Result<User, NtlmError> {
    let asked = Challenge::read(challenge)?;
    let answer = Authenticate::read(authenticate)?;
    let (given, blob) = answer.nt.split_at_checked(16).ok_or(NtlmError::OldVersion)?;
    let info = Blob::info_of(blob).ok_or(NtlmError::OldVersion)?;
    let password = password(&answer.domain, &answer.user).ok_or(NtlmError::UnknownUser)?;
    let key = proof::response_key(&answer.user, &answer.domain, password);
    let expected = proof::nt_proof(&key, &asked.nonce, blob);
    if given != expected {
        return Err(NtlmError::WrongProof);
    }
    // The integrity code needs the session key, which a client may have chosen itself; then only the proof counts.
    if av::has_flag(info, av::HAS_MIC) && answer.flags & flag::KEY_EXCHANGE == 0 {
        let session_key = proof::session_key(&key, &expected);
        let given = authenticate.get(Authenticate::MIC).ok_or(NtlmError::Malformed("integrity code"))?;
        let mut cleared = authenticate.to_vec();
        cleared[Authenticate::MIC].fill(0);
        if proof::integrity_code(&session_key, &[negotiate, challenge, &cleared]) != *given {
            return Err(NtlmError::WrongProof);
        }
    }
    Ok(User { domain: answer.domain, name: answer.user })
}

/// Whether the bytes begin like a message of NTLM.
pub fn is_message(bytes: &[u8]) -> bool {
    bytes.starts_with(message::SIGNATURE)
}

/// The number of a message: 1, 2 or 3; `None` if the bytes are no message.
pub fn message_type(bytes: &[u8]) -> Option<u32> {
    Fields::new(bytes).and_then(|fields| fields.u32(8)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const JOE: Account<'_> = Account { name: "DOM\\joe", password: "SecREt01" };

    fn unique(byte: u8) -> Uniqueness {
        Uniqueness { nonce: [byte; 8], unix_ms: 1_700_000_000_000 }
    }

    fn accounts(domain: &str, user: &str) -> Option<&'static str> {
        (domain == "DOM" && user == "joe").then_some("SecREt01")
    }

    fn handshake(account: Account<'_>) -> [Vec<u8>; 3] {
        let first = negotiate();
        let asked = challenge(&first, "DOM", "host", unique(7)).unwrap();
        let answer = answer(account, &first, &asked, unique(9)).unwrap().message;
        [first, asked, answer]
    }

    fn verdict(messages: &[Vec<u8>; 3]) -> Result<User, NtlmError> {
        verify(messages.each_ref().map(Vec::as_slice), accounts)
    }

    #[test]
    fn a_client_with_the_password_is_accepted() {
        let user = verdict(&handshake(JOE)).unwrap();
        assert_eq!((&*user.domain, &*user.name), ("DOM", "joe"));
    }

    #[test]
    fn others_are_refused_for_a_reason() {
        let other = |name, password| verdict(&handshake(Account { name, password }));
        assert_eq!(other("DOM\\joe", "SecREt01-"), Err(NtlmError::WrongProof));
        assert_eq!(other("DOM\\eve", "SecREt01"), Err(NtlmError::UnknownUser));
        assert_eq!(other("joe", "SecREt01"), Err(NtlmError::UnknownUser));
        let good = handshake(JOE);
        // Each message is protected by the integrity code of the last one.
        for at in 0..3 {
            let mut altered = good.clone();
            let last = altered[at].len() - 1;
            altered[at][last] ^= 1;
            assert_ne!(verdict(&altered).map(|user| user.name), Ok("joe".to_owned()), "message {at}");
        }
        let old = Authenticate { nt: vec![1; 24], ..Authenticate::read(&good[2]).unwrap() };
        assert_eq!(verdict(&[good[0].clone(), good[1].clone(), old.write()]), Err(NtlmError::OldVersion));
    }

    #[test]
    fn a_server_without_time_gets_no_integrity_code() {
        let first = negotiate();
        let asked = Challenge {
            flags: flag::UNICODE | flag::NTLM,
            nonce: [1; 8],
            target: String::new(),
            info: vec![0; 4],
        };
        let asked = asked.write();
        let last = answer(JOE, &first, &asked, unique(9)).unwrap().message;
        assert_eq!(last[Authenticate::MIC], [0; 16]);
        assert!(verify([&first, &asked, &last], accounts).is_ok());
        let plain = Challenge { flags: flag::OEM, ..Challenge::read(&asked).unwrap() }.write();
        assert_eq!(answer(JOE, &first, &plain, unique(9)), Err(NtlmError::Unsupported));
    }

    proptest! {
        #[test]
        fn what_a_client_answers_a_server_accepts(
            domain in "[A-Za-zé]{0,9}", user in "[A-Za-z0-9é.@-]{1,12}", password in ".{0,20}", nonces: [u8; 2], time: u32,
        ) {
            let name = if domain.is_empty() { user.clone() } else { format!("{domain}\\{user}") };
            let first = negotiate();
            let at = |byte| Uniqueness { nonce: [byte; 8], unix_ms: u64::from(time) * 1000 };
            let asked = challenge(&first, "D", "h", at(nonces[0])).unwrap();
            let account = Account { name: &name, password: &password };
            let last = answer(account, &first, &asked, at(nonces[1])).unwrap().message;
            let wrong = format!("{password}-");
            let with = |word: &str| verify([&first, &asked, &last], |_, _| Some(word)).map(|user| user.name);
            prop_assert_eq!(with(&password), Ok(user));
            prop_assert_eq!(with(&wrong), Err(NtlmError::WrongProof));
        }

        #[test]
        fn random_bytes_never_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200), at in 0..3_usize, change in 0..400_usize, byte: u8,
        ) {
            let mut messages = handshake(JOE);
            if let Some(old) = messages[at].get_mut(change) {
                *old = byte;
            }
            let _ = verdict(&messages);
            let _ = answer(JOE, &messages[0], &messages[1], unique(1));
            messages[at] = [&message::SIGNATURE[..], &(at as u32 + 1).to_le_bytes(), &bytes].concat();
            let _ = verdict(&messages);
            let _ = answer(JOE, &messages[0], &messages[1], unique(1));
            let _ = challenge(&messages[0], "D", "h", unique(1));
        }
    }
}
