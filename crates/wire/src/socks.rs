//! The client's part of SOCKS version 5 (RFC 1928): the proxy is asked for a connection to an address or name, and from then on passes
//! bytes in both directions. Clients need no authentication, or a name and a password (RFC 1929).
//!
//! ```text
//! client                                     proxy
//!   │ 5, methods                               │
//!   │ ───────────────────────────────────────> │
//!   │ 5, chosen method                         │
//!   │ <─────────────────────────────────────── │
//!   │ 1, name, password          if it demands │
//!   │ ───────────────────────────────────────> │
//!   │ 1, status                                │
//!   │ <─────────────────────────────────────── │
//!   │ 5, connect, address, port                │
//!   │ ───────────────────────────────────────> │
//!   │ 5, reply code, its own address, port     │
//!   │ <─────────────────────────────────────── │
//! ```

use std::net::{IpAddr, SocketAddr};

/// The version of the protocol.
const VERSION: u8 = 5;
/// The version of the negotiation of name and password.
const PASSWORD_VERSION: u8 = 1;
/// The method without authentication.
const NO_AUTHENTICATION: u8 = 0;
/// The method of name and password.
const PASSWORD: u8 = 2;
/// The answer of a proxy that accepts none of the methods.
const NO_METHOD: u8 = 0xff;
/// The command that opens a connection.
const CONNECT: u8 = 1;
/// Types of addresses.
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;
/// The largest size of a name or password in bytes.
pub const MAX_TEXT: usize = 255;

/// Where the proxy has to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// An address.
    Address(SocketAddr),
    /// A name that the proxy looks up, and a port.
    Name(String, u16),
}

impl std::fmt::Display for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Destination::Address(address) => address.fmt(f),
            Destination::Name(name, port) => write!(f, "{name}:{port}"),
        }
    }
}

/// Name and password of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocksCredentials {
    /// The name, of 1 to [`MAX_TEXT`] bytes.
    pub user: String,
    /// The password, of 1 to [`MAX_TEXT`] bytes.
    pub password: String,
}

/// The reply codes of proxies that did not connect (RFC 1928, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyCode(pub u8);

impl ReplyCode {
    /// The meaning of the code, and what to check.
    pub fn meaning(self) -> &'static str {
        match self.0 {
            1 => "general failure: see the log of the proxy",
            2 => "not allowed: its rules must admit this client and this destination",
            3 => "network unreachable: the host of the proxy has no route to the destination",
            4 => "host unreachable: the destination does not answer the proxy, or the name is unknown to it",
            5 => "connection refused: nothing listens at the destination, or its queue is full",
            6 => "TTL expired: the route from the proxy to the destination is a loop",
            7 => "command not supported: the proxy opens no connections for clients",
            8 => "address type not supported: the proxy does not support IPv6, or no names",
            _ => "unknown code",
        }
    }
}

impl std::fmt::Display for ReplyCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "reply code {}, {}", self.0, self.meaning())
    }
}

/// Why a proxy opens no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SocksError {
    /// The first byte is not the version of the protocol.
    #[error("the peer speaks no SOCKS version 5: its first byte is {0:#04x}")]
    Version(u8),
    /// The first byte of the answer to name and password is not the version of that negotiation.
    #[error("the answer to name and password has version {0}")]
    PasswordVersion(u8),
    /// The proxy chose the method of name and password, which the client did not offer.
    #[error("the proxy demands name and password")]
    NoCredentials,
    /// The proxy chose a method that the client does not know.
    #[error("the proxy chose the method {0:#04x}, which was not offered")]
    Method(u8),
    /// The proxy accepts none of the methods.
    #[error("the proxy accepts none of the offered methods of authentication")]
    NoMethod,
    /// The proxy refuses name and password.
    #[error("the proxy refuses name and password, status {0}")]
    Denied(u8),
    /// The proxy did not connect.
    #[error("{0}")]
    Refused(ReplyCode),
    /// The proxy's own address in its reply is of an unknown type.
    #[error("the address in the reply has the unknown type {0}")]
    AddressType(u8),
}

/// What follows after bytes of the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DialogueStep {
    /// More bytes are needed.
    More,
    /// The client has used this many bytes and sends these.
    Send(usize, Vec<u8>),
    /// The client has used this many bytes, and the connection is open. Bytes after them come from the destination.
    Open(usize),
}

/// A dialogue of a client with a proxy.
#[derive(Clone, Debug)]
pub struct Dialogue {
    to: Destination,
    credentials: Option<SocksCredentials>,
    awaits: Awaits,
}

/// The answer for which a client waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaits {
    Method,
    Status,
    Reply,
}

impl Dialogue {
    /// Begins a dialogue. Returns it with the first bytes for the proxy. Names and passwords that the protocol cannot carry are cut.
    pub fn begin(to: Destination, credentials: Option<SocksCredentials>) -> (Dialogue, Vec<u8>) {
        let methods: &[u8] = match credentials {
            Some(_) => &[NO_AUTHENTICATION, PASSWORD],
            None => &[NO_AUTHENTICATION],
        };
        let hello = [&[VERSION, methods.len() as u8], methods].concat();
        (Dialogue { to, credentials, awaits: Awaits::Method }, hello)
    }

    /// The destination.
    pub fn destination(&self) -> &Destination {
        &self.to
    }

    /// Whether the proxy has demanded name and password.
    pub fn is_authenticated(&self) -> bool {
        self.credentials.is_some()
    }

    /// Continues with the bytes of the proxy that have not been used yet.
    ///
    /// # Errors
    /// If the proxy does not open the connection.
    pub fn advance(&mut self, bytes: &[u8]) -> Result<DialogueStep, SocksError> {
        match self.awaits {
            Awaits::Method => self.read_method(bytes),
            Awaits::Status => self.read_status(bytes),
            Awaits::Reply => read_reply(bytes),
        }
    }

    fn read_method(&mut self, bytes: &[u8]) -> Result<DialogueStep, SocksError> {
        check_version(bytes)?;
        let Some(&[_, method]) = bytes.first_chunk::<2>() else { return Ok(DialogueStep::More) };
        match (method, &self.credentials) {
            (NO_AUTHENTICATION, _) => {
                self.credentials = None;
                Ok(DialogueStep::Send(2, self.request()))
            }
            (PASSWORD, Some(SocksCredentials { user, password })) => {
                self.awaits = Awaits::Status;
                let mut bytes = vec![PASSWORD_VERSION];
                [user, password].into_iter().for_each(|text| push_text(&mut bytes, text));
                Ok(DialogueStep::Send(2, bytes))
            }
            (PASSWORD, None) => Err(SocksError::NoCredentials),
            (NO_METHOD, _) => Err(SocksError::NoMethod),
            (method, _) => Err(SocksError::Method(method)),
        }
    }

    fn read_status(&mut self, bytes: &[u8]) -> Result<DialogueStep, SocksError> {
        match bytes {
            [] => Ok(DialogueStep::More),
            // Some proxies answer with the version of SOCKS.
            [version, ..] if ![PASSWORD_VERSION, VERSION].contains(version) => {
                Err(SocksError::PasswordVersion(*version))
            }
            [_] => Ok(DialogueStep::More),
            [_, 0, ..] => Ok(DialogueStep::Send(2, self.request())),
            [_, status, ..] => Err(SocksError::Denied(*status)),
        }
    }

    /// The request for a connection.
    fn request(&mut self) -> Vec<u8> {
        self.awaits = Awaits::Reply;
        let mut bytes = vec![VERSION, CONNECT, 0];
        let port = match &self.to {
            Destination::Address(address) => {
                match address.ip() {
                    IpAddr::V4(ip) => bytes.extend_from_slice(&[&[IPV4][..], &ip.octets()].concat()),
                    IpAddr::V6(ip) => bytes.extend_from_slice(&[&[IPV6][..], &ip.octets()].concat()),
                }
                address.port()
            }
            Destination::Name(name, port) => {
                bytes.push(NAME);
                push_text(&mut bytes, name);
                *port
            }
        };
        bytes.extend_from_slice(&port.to_be_bytes());
        bytes
    }
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    let bytes = &text.as_bytes()[..text.len().min(MAX_TEXT)];
    out.push(bytes.len() as u8);
    out.extend_from_slice(bytes);
}

fn check_version(bytes: &[u8]) -> Result<(), SocksError> {
    match bytes.first() {
        Some(&version) if version != VERSION => Err(SocksError::Version(version)),
        _ => Ok(()),
    }
}

fn read_reply(bytes: &[u8]) -> Result<DialogueStep, SocksError> {
    check_version(bytes)?;
    // A proxy that refuses may close the connection before the rest.
    if let Some(&code) = bytes.get(1).filter(|code| **code != 0) {
        return Err(SocksError::Refused(ReplyCode(code)));
    }
    let address = match bytes.get(3) {
        None => return Ok(DialogueStep::More),
        Some(&IPV4) => 4,
        Some(&IPV6) => 16,
        Some(&NAME) => match bytes.get(4) {
            Some(len) => 1 + usize::from(*len),
            None => return Ok(DialogueStep::More),
        },
        Some(&other) => return Err(SocksError::AddressType(other)),
    };
    let len = 4 + address + 2;
    Ok(if bytes.len() < len { DialogueStep::More } else { DialogueStep::Open(len) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TO: &str = "10.0.0.9:8080";

    fn dialogue(with_password: bool) -> Dialogue {
        let credentials = SocksCredentials { user: "joe".into(), password: "pw".into() };
        let to = Destination::Address(TO.parse().unwrap());
        let (dialogue, hello) = Dialogue::begin(to, with_password.then_some(credentials));
        assert_eq!(hello, if with_password { &[5, 2, 0, 2][..] } else { &[5, 1, 0] });
        dialogue
    }

    const REQUEST: [u8; 10] = [5, 1, 0, 1, 10, 0, 0, 9, 0x1f, 0x90];

    #[test]
    fn a_dialogue_without_authentication() {
        let mut dialogue = dialogue(true);
        assert_eq!(dialogue.advance(&[5]), Ok(DialogueStep::More));
        assert_eq!(dialogue.advance(&[5, 0]), Ok(DialogueStep::Send(2, REQUEST.to_vec())));
        let reply = [5, 0, 0, 1, 1, 2, 3, 4, 5, 6, b'H'];
        for len in 0..10 {
            assert_eq!(dialogue.advance(&reply[..len]), Ok(DialogueStep::More));
        }
        assert_eq!(dialogue.advance(&reply), Ok(DialogueStep::Open(10)));
        assert!(!dialogue.is_authenticated());
    }

    #[test]
    fn a_dialogue_with_a_password() {
        let mut dialogue = dialogue(true);
        let asked = [&[1, 3][..], b"joe", &[2], b"pw"].concat();
        assert_eq!(dialogue.advance(&[5, 2]), Ok(DialogueStep::Send(2, asked)));
        assert_eq!(dialogue.advance(&[1]), Ok(DialogueStep::More));
        assert_eq!(dialogue.advance(&[1, 0]), Ok(DialogueStep::Send(2, REQUEST.to_vec())));
        assert!(dialogue.is_authenticated());
        assert_eq!(dialogue.advance(&[&[5, 0, 0, 4][..], &[0; 18]].concat()), Ok(DialogueStep::Open(22)));
        assert_eq!(dialogue.advance(&[5, 0, 0, 3, 1, b'x', 0, 0]), Ok(DialogueStep::Open(8)));
    }

    #[test]
    fn names_are_passed_on() {
        let (mut dialogue, _) = Dialogue::begin(Destination::Name("a.tst".into(), 80), None);
        let request = [&[5, 1, 0, 3, 5][..], b"a.tst", &[0, 80]].concat();
        assert_eq!(dialogue.advance(&[5, 0]), Ok(DialogueStep::Send(2, request)));
        let to = Destination::Address("[2001:db8::1]:80".parse().unwrap());
        let (mut dialogue, _) = Dialogue::begin(to, None);
        assert!(matches!(dialogue.advance(&[5, 0]), Ok(DialogueStep::Send(2, bytes)) if bytes.len() == 22));
    }

    #[test]
    fn refusals_have_reasons() {
        let first = |bytes: &[u8], with_password| dialogue(with_password).advance(bytes).unwrap_err();
        assert_eq!(first(b"HTTP/1.1 400", false), SocksError::Version(b'H'));
        assert_eq!(first(&[4, 0], false), SocksError::Version(4));
        assert_eq!(first(&[5, 2], false), SocksError::NoCredentials);
        assert_eq!(first(&[5, 1], true), SocksError::Method(1));
        assert_eq!(first(&[5, 255], true), SocksError::NoMethod);
        let second = |bytes: &[u8]| {
            let mut dialogue = dialogue(true);
            dialogue.advance(&[5, 2]).unwrap();
            dialogue.advance(bytes).unwrap_err()
        };
        assert_eq!(second(&[1, 7]), SocksError::Denied(7));
        assert_eq!(second(&[9]), SocksError::PasswordVersion(9));
        let last = |bytes: &[u8]| {
            let mut dialogue = dialogue(false);
            dialogue.advance(&[5, 0]).unwrap();
            dialogue.advance(bytes).unwrap_err()
        };
        for code in 1..=9 {
            assert_eq!(last(&[5, code]), SocksError::Refused(ReplyCode(code)));
            assert_eq!(ReplyCode(code).meaning() == "unknown code", code == 9, "{code}");
        }
        assert_eq!(last(&[5, 0, 0, 2]), SocksError::AddressType(2));
        assert_eq!(last(&[0]), SocksError::Version(0));
    }

    proptest! {
        /// The client never uses more bytes than there are, whatever a proxy says, and however its bytes are divided.
        #[test]
        fn random_proxies_never_panic(
            pieces in prop::collection::vec(prop::collection::vec(prop::sample::select(vec![0, 1, 2, 3, 4, 5, 255]), 0..12), 0..6),
            with_password: bool,
        ) {
            let (mut dialogue, mut inbox) = (dialogue(with_password), Vec::new());
            'all: for piece in pieces {
                inbox.extend_from_slice(&piece);
                loop {
                    match dialogue.advance(&inbox) {
                        Ok(DialogueStep::More) => break,
                        Ok(DialogueStep::Send(used, bytes)) => {
                            prop_assert!(!bytes.is_empty());
                            inbox.drain(..used);
                        }
                        Ok(DialogueStep::Open(used)) => {
                            prop_assert!(used <= inbox.len());
                            break 'all;
                        }
                        Err(_) => break 'all,
                    }
                }
            }
        }
    }
}
