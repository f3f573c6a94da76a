//! Which fields cross between HTTP/1 and multiplexed protocols, and in which form (RFC 9113, section 8.2).

use polygraph_wire::head::{Header, is_lower_case_name, is_named, is_value, items};

use super::MessageError;

/// The fields that have a meaning for one HTTP/1 connection only (RFC 9113, section 8.2.2), in lower case.
const CONNECTION_FIELDS: [&str; 5] =
    ["connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"];

/// Whether a field of this name, in any case, has a meaning for one HTTP/1 connection only.
#[inline]
pub fn is_connection_specific(name: &str) -> bool {
    // The lengths exclude nearly all other names.
    matches!(name.len(), 7 | 10 | 16 | 17) && CONNECTION_FIELDS.iter().any(|field| is_named(name, field))
}

/// The fields of an HTTP/1 message that cross. `Host` does not: it becomes `:authority`.
pub fn crossing<'a, 'b>(headers: &'b [Header<'a>]) -> impl Iterator<Item = &'b Header<'a>> {
    // Senders that name further fields in `Connection` are rare, and so is `Connection` itself.
    let has_connection = headers.iter().any(|field| is_named(field.name, "Connection"));
    headers.iter().filter(move |field| {
        let crosses = match field.name.len() {
            0 => false,
            2 if is_named(field.name, "TE") => field.value.trim_ascii().eq_ignore_ascii_case(b"trailers"),
            4 => !is_named(field.name, "Host"),
            _ => !is_connection_specific(field.name),
        };
        crosses && !(has_connection && is_named_in_connection(field.name, headers))
    })
}

fn is_named_in_connection(name: &str, headers: &[Header<'_>]) -> bool {
    headers.iter().any(|other| {
        is_named(other.name, "Connection")
            && items(other.value).any(|item| item.eq_ignore_ascii_case(name.as_bytes()))
    })
}

/// Whether a field may be in a trailer: none that describes the framing or the routing of the message (RFC 9110, section
/// 6.5.1).
pub fn may_trail(name: &str) -> bool {
    !is_connection_specific(name)
        && !["Host", "Content-Length", "TE", "Trailer"].iter().any(|field| is_named(name, field))
}

/// What the name of a field of a multiplexed message says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// The field crosses as it is.
    Plain,
    /// A pseudo-header field.
    Pseudo,
    /// `content-length`.
    Length,
    /// `cookie`.
    Cookie,
    /// `host`.
    Host,
    /// `te`, which may only have the value `trailers`.
    Te,
    /// The field has a meaning for one HTTP/1 connection only.
    ConnectionSpecific,
    /// The name is not a token in lower case.
    Bad,
}

impl NameKind {
    /// The kind of any name.
    #[inline]
    pub fn of(name: &[u8]) -> NameKind {
        match name {
            [b':', ..] => NameKind::Pseudo,
            _ if is_lower_case_token(name) => NameKind::of_good(name),
            _ => NameKind::Bad,
        }
    }

    /// The kind of a name that is a token in lower case, or begins with a colon.
    pub const fn of_good(name: &[u8]) -> NameKind {
        match name {
            [b':', ..] => NameKind::Pseudo,
            b"content-length" => NameKind::Length,
            b"cookie" => NameKind::Cookie,
            b"host" => NameKind::Host,
            b"te" => NameKind::Te,
            b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade" => {
                NameKind::ConnectionSpecific
            }
            _ => NameKind::Plain,
        }
    }
}

/// A field of a multiplexed message that has arrived, with what is known about it: names and values that come from a table need not be
/// looked at again.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedField<'a> {
    /// The name.
    pub name: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// The kind of the name.
    pub kind: NameKind,
    /// Whether [`check_value`] is known to accept the value.
    pub is_checked: bool,
}

impl<'a> ReceivedField<'a> {
    /// A field of which nothing is known.
    #[inline]
    pub fn new(name: &'a [u8], value: &'a [u8]) -> ReceivedField<'a> {
        ReceivedField { name, value, kind: NameKind::of(name), is_checked: false }
    }

    /// Whether it crosses as it is, and passes [`ReceivedField::check`]: nearly all fields do.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.kind == NameKind::Plain && (self.is_checked || check_value(self.value).is_ok())
    }

    /// As [`check`].
    ///
    /// # Errors
    /// As [`check`].
    pub fn check(&self) -> Result<(), MessageError> {
        if matches!(self.kind, NameKind::Pseudo | NameKind::Bad) {
            return Err(MessageError::FieldName);
        }
        if !self.is_checked {
            check_value(self.value)?;
        }
        match self.kind {
            NameKind::ConnectionSpecific => Err(MessageError::ConnectionField),
            NameKind::Te if !self.value.eq_ignore_ascii_case(b"trailers") => {
                Err(MessageError::ConnectionField)
            }
            _ => Ok(()),
        }
    }
}

/// Checks a field of a multiplexed message.
///
/// # Errors
/// If the name is not a lower-case token, if the value has characters that could end a line of an HTTP/1 message, or if the
/// field is connection-specific.
pub fn check(name: &[u8], value: &[u8]) -> Result<(), MessageError> {
    ReceivedField::new(name, value).check()
}

/// Whether a name is a token without capital letters.
#[inline]
fn is_lower_case_token(name: &[u8]) -> bool {
    let is_allowed = |byte: &u8| TOKEN[usize::from(*byte)] && !byte.is_ascii_uppercase();
    // Nearly all names have letters, digits and `-` only.
    !name.is_empty() && (is_lower_case_name(name) || name.iter().all(is_allowed))
}

/// Checks the value of a field (RFC 9113, section 8.2.1).
///
/// # Errors
/// If it contains control characters or has white space at an end.
#[inline]
pub fn check_value(value: &[u8]) -> Result<(), MessageError> {
    // Nearly all values have no tabs either.
    if is_value(value) && !matches!(value, [b' ', ..] | [.., b' ']) {
        return Ok(());
    }
    check_odd_value(value)
}

#[cold]
fn check_odd_value(value: &[u8]) -> Result<(), MessageError> {
    let is_good = value.iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control());
    match !is_good || matches!(value, [b' ' | b'\t', ..] | [.., b' ' | b'\t']) {
        true => Err(MessageError::FieldValue),
        false => Ok(()),
    }
}

/// The characters of tokens (RFC 9110, section 5.6.2).
static TOKEN: [bool; 256] = {
    let mut allowed = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        allowed[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let (others, mut at) = (b"!#$%&'*+-.^_`|~", 0);
    while at < others.len() {
        allowed[others[at] as usize] = true;
        at += 1;
    }
    allowed
};

/// Whether the bytes are a token (RFC 9110, section 5.6.2).
pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|byte| TOKEN[usize::from(*byte)])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 9113, section 8.2.1, byte by byte.
    fn is_good(value: &[u8]) -> bool {
        let is_blank = |byte: &u8| [b' ', b'\t'].contains(byte);
        let has_control = value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t');
        !has_control && !value.first().is_some_and(is_blank) && !value.last().is_some_and(is_blank)
    }

    #[test]
    fn connection_specific_names_have_their_kind() {
        for name in CONNECTION_FIELDS {
            assert_eq!(NameKind::of_good(name.as_bytes()), NameKind::ConnectionSpecific, "{name}");
        }
    }

    proptest! {
        #[test]
        fn values_are_checked_at_every_place(
            mut value in prop::collection::vec(0x20u8.., 0..40),
            odd in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
        ) {
            if let Some((at, byte)) = odd.filter(|_| !value.is_empty()) {
                let at = at.index(value.len());
                value[at] = byte;
            }
            prop_assert_eq!(check_value(&value).is_ok(), is_good(&value), "{:?}", value);
        }
    }
}
