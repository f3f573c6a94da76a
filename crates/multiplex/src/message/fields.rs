//! Which fields cross between HTTP/1 and multiplexed protocols, and in which form (RFC 9113, section 8.2).

use polygraph_wire::head::{Header, is_named, items};

use super::MessageError;

/// The fields that have a meaning for one HTTP/1 connection only (RFC 9113, section 8.2.2), in lower case.
const CONNECTION_FIELDS: [&str; 5] =
    ["connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"];

/// Whether a field of this name, in any case, has a meaning for one HTTP/1 connection only.
pub fn is_connection_specific(name: &str) -> bool {
    // The lengths exclude nearly all other names.
    matches!(name.len(), 7 | 10 | 16 | 17)
        && CONNECTION_FIELDS.iter().any(|field| name.eq_ignore_ascii_case(field))
}

/// Whether a field of an HTTP/1 message crosses. `Host` does not: it becomes `:authority`.
pub fn crosses(field: &Header<'_>, headers: &[Header<'_>]) -> bool {
    if field.name.is_empty() || is_connection_specific(field.name) || is_named(field.name, "Host") {
        return false;
    }
    if is_named(field.name, "TE") {
        return field.value.trim_ascii().eq_ignore_ascii_case(b"trailers");
    }
    // Senders that name further fields in `Connection` are rare, and so is `Connection` itself.
    !headers.iter().any(|other| {
        is_named(other.name, "Connection")
            && items(other.value).any(|item| item.eq_ignore_ascii_case(field.name.as_bytes()))
    })
}

/// Whether a field may be in a trailer: none that describes the framing or the routing of the message (RFC 9110, section
/// 6.5.1).
pub fn may_trail(name: &str) -> bool {
    !is_connection_specific(name)
        && !["Host", "Content-Length", "TE", "Trailer"].iter().any(|field| is_named(name, field))
}

/// Checks a field of a multiplexed message.
///
/// # Errors
/// If the name is not a lower-case token, if the value has characters that could end a line of an HTTP/1 message, or if the
/// field is connection-specific.
pub fn check(name: &[u8], value: &[u8]) -> Result<(), MessageError> {
    if !is_token(name) || name.iter().any(u8::is_ascii_uppercase) {
        return Err(MessageError::FieldName);
    }
    check_value(value)?;
    let text = std::str::from_utf8(name).map_err(|_| MessageError::FieldName)?;
    if is_connection_specific(text) || text == "te" && !value.eq_ignore_ascii_case(b"trailers") {
        return Err(MessageError::ConnectionField);
    }
    Ok(())
}

/// Checks the value of a field (RFC 9113, section 8.2.1).
///
/// # Errors
/// If it contains control characters or has white space at an end.
pub fn check_value(value: &[u8]) -> Result<(), MessageError> {
    let is_bad = |b: &u8| (*b < b' ' && *b != b'\t') || *b == 127;
    let is_blank = |b: Option<&u8>| matches!(b, Some(b' ' | b'\t'));
    match value.iter().any(is_bad) || is_blank(value.first()) || is_blank(value.last()) {
        true => Err(MessageError::FieldValue),
        false => Ok(()),
    }
}

/// Whether the bytes are a token (RFC 9110, section 5.6.2).
pub fn is_token(bytes: &[u8]) -> bool {
    let is_allowed = |b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b);
    !bytes.is_empty() && bytes.iter().all(is_allowed)
}
