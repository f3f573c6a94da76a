//! SPNEGO (RFC 4178): client and server agree on a mechanism and exchange its tokens. The scheme `Negotiate` (RFC 4559) carries
//! the messages in base64.
//!
//! ```text
//! NegTokenInit = 60 len { OID of SPNEGO, a0 { 30 { a0 { list of mechanisms }, a2 { token of the first one } } } }
//! NegTokenResp = a1 { 30 { a0 { state }, a1 { chosen mechanism }, a2 { token }, a3 { integrity code of the list } } }
//! ```

use polygraph_kerberos::der::{Der, element as tlv, tag};

/// Object identifiers in DER, without tag and length.
pub mod oid {
    /// SPNEGO itself: 1.3.6.1.5.5.2.
    pub const SPNEGO: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x02];
    /// NTLM: 1.3.6.1.4.1.311.2.2.10.
    pub const NTLM: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x82, 0x37, 0x02, 0x02, 0x0a];
    /// Kerberos: 1.2.840.113554.1.2.2.
    pub const KERBEROS: &[u8] = polygraph_kerberos::MECHANISM;
    /// Kerberos as old versions of Windows write it: 1.2.840.48018.1.2.2.
    pub const KERBEROS_OF_WINDOWS: &[u8] = &[0x2a, 0x86, 0x48, 0x82, 0xf7, 0x12, 0x01, 0x02, 0x02];
}

/// The state of a negotiation as the server sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The client is authenticated.
    Completed,
    /// More tokens are needed.
    Incomplete,
    /// The server refuses the client.
    Rejected,
    /// More tokens are needed, and an integrity code of the list of mechanisms.
    RequestMic,
}

/// A message of a negotiation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// The first message of the client.
    Init {
        /// The mechanisms of the client, in order of preference.
        mechanisms: Vec<&'a [u8]>,
        /// The first token of the first mechanism.
        token: Option<&'a [u8]>,
    },
    /// All other messages.
    Response {
        /// The state; only servers send it.
        state: Option<State>,
        /// The mechanism that the server chose.
        mechanism: Option<&'a [u8]>,
        /// A token of the mechanism.
        token: Option<&'a [u8]>,
        /// The integrity code of the list of mechanisms.
        mic: Option<&'a [u8]>,
    },
}

impl<'a> Message<'a> {
    /// Reads a message; `None` if the bytes are none.
    pub fn read(bytes: &'a [u8]) -> Option<Message<'a>> {
        match *bytes.first()? {
            tag::APPLICATION => {
                let mut frame = Der(Der(bytes).expect(tag::APPLICATION)?);
                if frame.expect(tag::OID)? != oid::SPNEGO {
                    return None;
                }
                read_init(frame.expect(tag::CONTEXT)?)
            }
            tag::CONTEXT => read_init(Der(bytes).expect(tag::CONTEXT)?),
            _ => read_response(Der(bytes).expect(tag::CONTEXT + 1)?),
        }
    }

    /// The token of the mechanism in the message.
    pub fn token(&self) -> Option<&'a [u8]> {
        match self {
            Message::Init { token, .. } | Message::Response { token, .. } => *token,
        }
    }

    /// The message in DER.
    pub fn write(&self) -> Vec<u8> {
        match self {
            Message::Init { mechanisms, token } => {
                let list = tlv(tag::CONTEXT, &mechanism_list(mechanisms));
                let token = token.map(|token| tlv(tag::CONTEXT + 2, &tlv(tag::OCTETS, token)));
                let all = [list, token.unwrap_or_default()].concat();
                let init = tlv(tag::CONTEXT, &tlv(tag::SEQUENCE, &all));
                tlv(tag::APPLICATION, &[tlv(tag::OID, oid::SPNEGO), init].concat())
            }
            Message::Response { state, mechanism, token, mic } => {
                let number = |state: &State| match state {
                    State::Completed => 0,
                    State::Incomplete => 1,
                    State::Rejected => 2,
                    State::RequestMic => 3,
                };
                let item = |n: u8, tag: u8, value: &[u8]| tlv(tag::CONTEXT + n, &tlv(tag, value));
                let all = [
                    state.as_ref().map(|state| item(0, tag::ENUMERATED, &[number(state)])),
                    mechanism.map(|mechanism| item(1, tag::OID, mechanism)),
                    token.map(|token| item(2, tag::OCTETS, token)),
                    mic.map(|mic| item(3, tag::OCTETS, mic)),
                ];
                let all: Vec<u8> = all.into_iter().flatten().flatten().collect();
                tlv(tag::CONTEXT + 1, &tlv(tag::SEQUENCE, &all))
            }
        }
    }
}

/// The list of mechanisms as the client sends it, which its integrity code protects.
pub fn mechanism_list(mechanisms: &[&[u8]]) -> Vec<u8> {
    let all: Vec<u8> = mechanisms.iter().flat_map(|mechanism| tlv(tag::OID, mechanism)).collect();
    tlv(tag::SEQUENCE, &all)
}

fn read_init(bytes: &[u8]) -> Option<Message<'_>> {
    let mut fields = Der(Der(bytes).expect(tag::SEQUENCE)?);
    let (mut mechanisms, mut token) = (Vec::new(), None);
    while let Some((tag, value)) = fields.next()? {
        match tag.checked_sub(tag::CONTEXT)? {
            0 => {
                let mut list = Der(Der(value).expect(tag::SEQUENCE)?);
                while let Some((tag, value)) = list.next()? {
                    mechanisms.push(Some(value).filter(|_| tag == tag::OID)?);
                }
            }
            2 => token = Some(Der(value).expect(tag::OCTETS)?),
            // Flags, hints and integrity codes do not matter here.
            _ => {}
        }
    }
    Some(Message::Init { mechanisms, token })
}

fn read_response(bytes: &[u8]) -> Option<Message<'_>> {
    let mut fields = Der(Der(bytes).expect(tag::SEQUENCE)?);
    let (mut state, mut mechanism, mut token, mut mic) = (None, None, None, None);
    while let Some((tag, value)) = fields.next()? {
        match tag.checked_sub(tag::CONTEXT)? {
            0 => {
                state = Some(match Der(value).expect(tag::ENUMERATED)? {
                    [0] => State::Completed,
                    [1] => State::Incomplete,
                    [2] => State::Rejected,
                    [3] => State::RequestMic,
                    _ => return None,
                });
            }
            1 => mechanism = Some(Der(value).expect(tag::OID)?),
            2 => token = Some(Der(value).expect(tag::OCTETS)?),
            3 => mic = Some(Der(value).expect(tag::OCTETS)?),
            _ => {}
        }
    }
    Some(Message::Response { state, mechanism, token, mic })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_frame_is_that_of_the_standards() {
        let init = Message::Init { mechanisms: vec![oid::NTLM], token: Some(b"t") };
        let bytes = init.write();
        let head =
            [0x60, 33, 0x06, 6, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x02, 0xa0, 23, 0x30, 21, 0xa0, 14, 0x30, 12];
        assert_eq!(bytes[..head.len()], head);
        assert_eq!(bytes[bytes.len() - 5..], [0xa2, 3, 0x04, 1, b't']);
        let done =
            Message::Response { state: Some(State::Completed), mechanism: None, token: None, mic: None };
        assert_eq!(done.write(), [0xa1, 7, 0x30, 5, 0xa0, 3, 0x0a, 1, 0]);
    }

    #[test]
    fn other_frames_are_refused() {
        let mut other = Message::Init { mechanisms: vec![oid::NTLM], token: None }.write();
        other[5] ^= 1;
        assert_eq!(Message::read(&other), None);
        for bad in
            [&[][..], &[0x60], &[0x60, 0x80], &[0xa1, 0x85, 1, 1, 1, 1, 1], &[0xa1, 2, 0x30, 1], b"NTLMSSP\0"]
        {
            assert_eq!(Message::read(bad), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn messages_round_trip(
            first: bool, state in 0..5_usize, parts in prop::array::uniform3(prop::option::of(prop::collection::vec(any::<u8>(), 0..400))),
            count in 0..4_usize,
        ) {
            let [mechanism, token, mic] = parts.each_ref().map(Option::as_deref);
            let message = if first {
                Message::Init { mechanisms: vec![oid::KERBEROS; count], token }
            } else {
                let states = [State::Completed, State::Incomplete, State::Rejected, State::RequestMic];
                Message::Response { state: states.get(state).copied(), mechanism, token, mic }
            };
            let bytes = message.write();
            prop_assert_eq!(Message::read(&bytes), Some(message));
        }

        #[test]
        fn random_bytes_never_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..60), at in 0..80_usize, byte: u8,
        ) {
            let _ = Message::read(&bytes);
            let mut mangled = Message::Init { mechanisms: vec![oid::NTLM, oid::KERBEROS], token: Some(b"token") }.write();
            if let Some(old) = mangled.get_mut(at) {
                *old = byte;
            }
            let _ = Message::read(&mangled);
        }
    }
}
