//! The benchmark's own headers, by which both sides know from first hand what happened.
//!
//! | field | in a request | in a reply |
//! |---|---|---|
//! | `X-Xact` | sender's group id, this transaction's id, hex flags | server's group id, the *mutant* of the request's transaction id, flags |
//! | `X-Target` | the server the client believes it talks to | the actual address of the server that replied |

use polygraph_traffic::UniqId;
use polygraph_traffic::id::ID_TEXT_LEN;

use crate::head::Header;

/// Name of the transaction mark.
pub const X_XACT: &str = "X-Xact";
/// Name of the server mark.
pub const X_TARGET: &str = "X-Target";

/// Bytes of an `X-Xact` value written by [`Xact::write`].
pub const XACT_LEN: usize = ID_TEXT_LEN + 1 + ID_TEXT_LEN + 2;

/// The value of `X-Xact`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Xact {
    /// Process group of the sender.
    pub group: UniqId,
    /// Transaction id in a request, its mutant in a reply.
    pub id: UniqId,
    /// Bit 0: the request is a validation made by the client itself.
    pub flags: u32,
}

impl Xact {
    /// Appends the text form: two ids and the flags in hex.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.group.text());
        out.push(b' ');
        out.extend_from_slice(&self.id.text());
        out.push(b' ');
        out.push(b"0123456789abcdef"[(self.flags & 15) as usize]);
    }

    /// Reads the text form; `None` if it is anything else.
    pub fn parse(value: &[u8]) -> Option<Xact> {
        let mut parts = value.trim_ascii().split(|&b| b == b' ');
        let group = UniqId::parse(parts.next()?)?;
        let id = UniqId::parse(parts.next()?)?;
        let flags = polygraph_traffic::id::parse_hex(parts.next()?)? as u32;
        if parts.next().is_some() {
            return None;
        }
        Some(Xact { group, id, flags })
    }
}

/// The marks found among header fields; a malformed mark counts as absent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marks {
    /// The transaction mark.
    pub xact: Option<Xact>,
    /// Whether a server mark is there.
    pub target: bool,
}

impl Marks {
    /// Looks at one header field; true if it was a mark.
    pub fn see(&mut self, header: &Header<'_>) -> bool {
        if header.name.eq_ignore_ascii_case(X_XACT) {
            self.xact = Xact::parse(header.value);
        } else if header.name.eq_ignore_ascii_case(X_TARGET) {
            self.target = true;
        } else {
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn round_trips() {
        let id = |counter| UniqId { time: 1, mix: 0xabc, counter };
        let xact = Xact { group: id(2), id: id(4), flags: 1 };
        let mut text = Vec::new();
        xact.write(&mut text);
        assert_eq!(text, b"00000001.00000abc:00000002 00000001.00000abc:00000004 1");
        assert_eq!(text.len(), XACT_LEN);
        assert_eq!(Xact::parse(&text), Some(xact));
        assert_eq!(Xact::parse(b"00000001.00000abc:00000002 00000001.00000abc:00000004"), None);
        assert_eq!(Xact::parse(b"00000001.00000abc:00000002 00000001.00000abc:00000004 1 2"), None);
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(value in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Xact::parse(&value);
        }
    }
}
