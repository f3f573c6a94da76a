//! The client's part of the schemes `NTLM` and `Negotiate` (RFC 4559), which authenticate a connection.

use base64::prelude::{BASE64_STANDARD, Engine};

use super::ntlm::{self, Account, NtlmError, Uniqueness};
use super::spnego::{self, Message, State, oid};
use super::write_token;

/// How the messages of NTLM are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenFrame {
    /// The scheme `NTLM`.
    Ntlm,
    /// The scheme `Negotiate`, without the frame of SPNEGO.
    Raw,
    /// The scheme `Negotiate`, in SPNEGO.
    Spnego,
}

impl TokenFrame {
    /// The name of the scheme.
    pub fn scheme(self) -> &'static str {
        match self {
            TokenFrame::Ntlm => "NTLM",
            TokenFrame::Raw | TokenFrame::Spnego => "Negotiate",
        }
    }
}

/// Why a client gives up a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// The server closed the connection after the first message.
    #[error("the connection was closed in the middle of the handshake")]
    Closed,
    /// The reply to the first message has no token for the client: the server has forgotten the first message.
    #[error("the server did not continue the handshake")]
    NoToken,
    /// The token is not base64, or not SPNEGO.
    #[error("the token of the server is malformed")]
    Malformed,
    /// The server chose another mechanism.
    #[error("the server chose a mechanism other than NTLM")]
    Mechanism,
    /// The challenge of the server cannot be answered.
    #[error(transparent)]
    Ntlm(#[from] NtlmError),
}

/// The value of the field that shows a ticket of Kerberos, whose token this is, in the scheme `Negotiate`.
pub fn show_ticket(token: &[u8], framing: TokenFrame) -> Vec<u8> {
    let mut field = Vec::new();
    let framed = Message::Init { mechanisms: vec![oid::KERBEROS], token: Some(token) };
    match framing {
        TokenFrame::Spnego => write_token("Negotiate", &framed.write(), &mut field),
        TokenFrame::Raw | TokenFrame::Ntlm => write_token("Negotiate", token, &mut field),
    }
    field
}

/// A handshake whose first message was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientHandshake {
    framing: TokenFrame,
    negotiate: Vec<u8>,
}

impl ClientHandshake {
    /// Begins a handshake. Returns it with the value of the `Authorization` or `Proxy-Authorization` field for the first request.
    pub fn begin(framing: TokenFrame) -> (ClientHandshake, Vec<u8>) {
        let negotiate = ntlm::negotiate();
        let token = match framing {
            TokenFrame::Spnego => {
                Message::Init { mechanisms: vec![oid::NTLM], token: Some(&negotiate) }.write()
            }
            TokenFrame::Ntlm | TokenFrame::Raw => negotiate.clone(),
        };
        let mut field = Vec::new();
        write_token(framing.scheme(), &token, &mut field);
        (ClientHandshake { framing, negotiate }, field)
    }

    /// How the messages are sent.
    pub fn framing(&self) -> TokenFrame {
        self.framing
    }

    /// The value of the field for the second request, after a reply whose challenge has this token.
    ///
    /// # Errors
    /// If the challenge cannot be answered.
    pub fn answer(
        &mut self,
        token: Option<&str>,
        account: Account<'_>,
        unique: Uniqueness,
    ) -> Result<Vec<u8>, HandshakeError> {
        let token = token.ok_or(HandshakeError::NoToken)?;
        let bytes = BASE64_STANDARD.decode(token).map_err(|_| HandshakeError::Malformed)?;
        let challenge = match self.framing {
            TokenFrame::Spnego if !ntlm::is_message(&bytes) => match Message::read(&bytes) {
                Some(Message::Response { mechanism: Some(other), .. }) if other != oid::NTLM => {
                    return Err(HandshakeError::Mechanism);
                }
                Some(Message::Response { state: Some(State::Rejected), .. }) => {
                    return Err(HandshakeError::NoToken);
                }
                Some(Message::Response { token: Some(token), .. }) => token,
                _ => return Err(HandshakeError::Malformed),
            },
            _ => &bytes,
        };
        let answer = ntlm::answer(account, &self.negotiate, challenge, unique)?;
        let token = match self.framing {
            TokenFrame::Spnego => {
                // Servers that demand the integrity code of NTLM demand this one, too.
                let mic = answer.signature(&spnego::mechanism_list(&[oid::NTLM]));
                let token = Some(&*answer.message);
                Message::Response { state: None, mechanism: None, token, mic: Some(&mic) }.write()
            }
            TokenFrame::Ntlm | TokenFrame::Raw => answer.message,
        };
        let mut field = Vec::new();
        write_token(self.framing.scheme(), &token, &mut field);
        Ok(field)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const JOE: Account<'_> = Account { name: "joe", password: "x" };
    const UNIQUE: Uniqueness = Uniqueness { nonce: [1; 8], unix_ms: 1 };

    fn answer(framing: TokenFrame, bytes: &[u8]) -> Result<Vec<u8>, HandshakeError> {
        ClientHandshake::begin(framing).0.answer(Some(&BASE64_STANDARD.encode(bytes)), JOE, UNIQUE)
    }

    #[test]
    fn wrong_challenges_are_refused_for_a_reason() {
        let mut begun = ClientHandshake::begin(TokenFrame::Ntlm).0;
        assert_eq!(begun.answer(None, JOE, UNIQUE), Err(HandshakeError::NoToken));
        assert_eq!(begun.answer(Some("-"), JOE, UNIQUE), Err(HandshakeError::Malformed));
        assert!(matches!(answer(TokenFrame::Ntlm, b"x"), Err(HandshakeError::Ntlm(_))));
        assert_eq!(answer(TokenFrame::Spnego, b"x"), Err(HandshakeError::Malformed));
        let reply = |state, mechanism| {
            let message = Message::Response { state, mechanism, token: Some(b"t"), mic: None };
            answer(TokenFrame::Spnego, &message.write())
        };
        assert_eq!(reply(None, Some(oid::KERBEROS)), Err(HandshakeError::Mechanism));
        assert_eq!(reply(Some(State::Rejected), None), Err(HandshakeError::NoToken));
    }

    proptest! {
        #[test]
        fn random_challenges_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..90), spnego: bool) {
            let framing = if spnego { TokenFrame::Spnego } else { TokenFrame::Ntlm };
            let _ = answer(framing, &bytes);
            let _ = answer(framing, &[b"NTLMSSP\0\x02\0\0\0", &bytes[..]].concat());
        }
    }
}
