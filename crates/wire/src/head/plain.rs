//! Heads in the form that nearly all senders write, read in one pass. Everything else is left to `httparse`, so this module decides
//! nothing: what it reads, `httparse` reads in the same way, and a test compares them.
//!
//! A plain head has lines that end in CR LF, names of letters, digits and `-`, exactly one space after each colon, values that
//! are not empty and have no tabs.

use super::block;
use super::{HeadIndex, Header, Headers, ReplyHead, RequestHead};

/// Reads a plain request head at the start of `buf`; `None` if there is none.
#[inline]
pub fn request<'h, 'b>(buf: &'b [u8], headers: &'h mut Headers<'b>) -> Option<RequestHead<'h, 'b>> {
    let (method, behind) = buf.split_at_checked(block::name_len(buf, buf))?;
    let [b' ', behind @ ..] = behind else { return None };
    let (target, behind) = behind.split_at_checked(block::target_len(buf, behind))?;
    if method.is_empty() || target.is_empty() {
        return None;
    }
    let (version, fields) = behind.split_first_chunk()?;
    let minor_version = match version {
        b" HTTP/1.1\r\n" => 1,
        b" HTTP/1.0\r\n" => 0,
        _ => return None,
    };
    let (headers, len) = read_fields(buf, fields, headers)?;
    Some(RequestHead { method: text(method), target: text(target), minor_version, headers, len })
}

/// Reads a plain reply head at the start of `buf`; `None` if there is none. The fields are taken from the index, to `known`, if it is
/// complete; otherwise they are read, to `headers`.
#[inline]
pub fn reply<'h, 'b>(
    buf: &'b [u8],
    index: &HeadIndex,
    known: &'h mut Headers<'b>,
    headers: &'h mut Headers<'b>,
) -> Option<ReplyHead<'h, 'b>> {
    let (status, reason, minor_version, behind) = status_line(buf)?;
    let (headers, len) = match index.fields(buf, known) {
        Some(fields) => fields,
        None => read_fields(buf, behind, headers)?,
    };
    Some(ReplyHead { status, reason, minor_version, headers, len })
}

/// Status, reason and minor version, and what follows the line.
#[inline(always)]
fn status_line(buf: &[u8]) -> Option<(u16, &str, u8, &[u8])> {
    let (start, rest) = buf.split_first_chunk::<13>()?;
    let minor_version = match start.first_chunk()? {
        b"HTTP/1.1 " => 1,
        b"HTTP/1.0 " => 0,
        _ => return None,
    };
    let [.., hundreds, tens, ones, b' '] = *start else { return None };
    let digits = [hundreds, tens, ones].map(|digit| u16::from(digit.wrapping_sub(b'0')));
    if digits.iter().any(|digit| *digit > 9) {
        return None;
    }
    let status = digits[0] * 100 + digits[1] * 10 + digits[2];
    let (reason, behind) = match rest {
        [b'O', b'K', b'\r', b'\n', behind @ ..] => ("OK", behind),
        // Multiplexed protocols have no reasons.
        [b'\r', b'\n', behind @ ..] => ("", behind),
        _ => {
            let (reason, behind) = rest.split_at_checked(block::value_len(buf, rest))?;
            // A reason in another charset is no text.
            let reason = std::str::from_utf8(reason).ok().filter(|reason| reason.is_ascii())?;
            (reason, behind.strip_prefix(b"\r\n")?)
        }
    };
    Some((status, reason, minor_version, behind))
}

/// Reads the fields at the start of `rest`, which `buf` ends with. Returns them and the position after the empty line.
#[inline]
fn read_fields<'h, 'b>(
    buf: &'b [u8],
    mut rest: &'b [u8],
    headers: &'h mut Headers<'b>,
) -> Option<(&'h [Header<'b>], usize)> {
    let mut count = 0;
    loop {
        let (name, behind) = rest.split_at_checked(block::name_len(buf, rest))?;
        if name.is_empty() {
            let len = buf.len() - behind.strip_prefix(b"\r\n")?.len();
            // SAFETY: this many were written.
            return Some((unsafe { headers[..count].assume_init_ref() }, len));
        }
        let [b':', b' ', behind @ ..] = behind else { return None };
        let (value, behind) = behind.split_at_checked(block::value_len(buf, behind))?;
        // Blanks around a value are no part of it.
        if matches!(value, [] | [b' ', ..] | [.., b' ']) {
            return None;
        }
        headers.get_mut(count)?.write(Header { name: text(name), value });
        count += 1;
        let [b'\r', b'\n', behind @ ..] = behind else { return None };
        rest = behind;
    }
}

/// Bytes that are known to be ASCII. A check of every name would take as long as reading it.
#[inline]
fn text(ascii: &[u8]) -> &str {
    debug_assert!(ascii.is_ascii());
    // SAFETY: `block::name_len` and `block::target_len` count ASCII only.
    unsafe { std::str::from_utf8_unchecked(ascii) }
}

#[cfg(test)]
mod tests;
