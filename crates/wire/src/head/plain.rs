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
    let blank = block::name_end(buf, 0);
    let target = blank + 1;
    let end = block::target_end(buf, target);
    if blank == 0 || end == target || buf.get(blank) != Some(&b' ') {
        return None;
    }
    let minor_version = match buf.get(end..end + 11)? {
        b" HTTP/1.1\r\n" => 1,
        b" HTTP/1.0\r\n" => 0,
        _ => return None,
    };
    let (headers, len) = read_fields(buf, end + 11, headers)?;
    Some(RequestHead {
        method: text(&buf[..blank]),
        target: text(&buf[target..end]),
        minor_version,
        headers,
        len,
    })
}

/// Reads a plain reply head at the start of `buf`; `None` if there is none.
#[inline]
pub fn reply<'h, 'b>(buf: &'b [u8], headers: &'h mut Headers<'b>) -> Option<ReplyHead<'h, 'b>> {
    let (status, reason, minor_version, fields_at) = status_line(buf)?;
    let (headers, len) = read_fields(buf, fields_at, headers)?;
    Some(ReplyHead { status, reason, minor_version, headers, len })
}

/// Reads a plain status line at the start of `buf`, and takes the fields from an index; `None` if there are none.
#[inline]
pub fn reply_of<'h, 'b>(
    buf: &'b [u8],
    index: &HeadIndex,
    headers: &'h mut Headers<'b>,
) -> Option<ReplyHead<'h, 'b>> {
    if !index.is_complete() {
        return None;
    }
    let (status, reason, minor_version, _) = status_line(buf)?;
    let (headers, len) = index.fields(buf, headers)?;
    Some(ReplyHead { status, reason, minor_version, headers, len })
}

/// Status, reason and minor version, and where the fields begin.
#[inline]
fn status_line(buf: &[u8]) -> Option<(u16, &str, u8, usize)> {
    let (start, rest) = buf.split_first_chunk::<13>()?;
    let minor_version = match start.first_chunk()? {
        b"HTTP/1.1 " => 1,
        b"HTTP/1.0 " => 0,
        _ => return None,
    };
    let [.., hundreds, tens, ones, b' '] = *start else { return None };
    let status = [hundreds, tens, ones]
        .iter()
        .try_fold(0, |status, digit| digit.is_ascii_digit().then(|| status * 10 + u16::from(digit - b'0')))?;
    let (reason, fields_at) = match rest {
        [b'O', b'K', b'\r', b'\n', ..] => ("OK", start.len() + 4),
        // Multiplexed protocols have no reasons.
        [b'\r', b'\n', ..] => ("", start.len() + 2),
        _ => {
            let end = block::value_end(buf, start.len());
            // A reason in another charset is no text.
            let reason =
                std::str::from_utf8(&buf[start.len()..end]).ok().filter(|reason| reason.is_ascii())?;
            (reason, line_end(buf, end)?)
        }
    };
    Some((status, reason, minor_version, fields_at))
}

/// Reads fields from position `at` on. Returns them and the position after the empty line.
#[inline]
fn read_fields<'h, 'b>(
    buf: &'b [u8],
    mut at: usize,
    headers: &'h mut Headers<'b>,
) -> Option<(&'h [Header<'b>], usize)> {
    let mut count = 0;
    loop {
        let colon = block::name_end(buf, at);
        let name = &buf[at..colon];
        if name.is_empty() {
            let len = line_end(buf, at)?;
            // SAFETY: this many were written.
            return Some((unsafe { headers[..count].assume_init_ref() }, len));
        }
        let value_at = colon + 2;
        if buf.get(colon..value_at) != Some(b": ") {
            return None;
        }
        let end = block::value_end(buf, value_at);
        let value = &buf[value_at..end];
        // Blanks around a value are no part of it.
        if matches!(value, [] | [b' ', ..] | [.., b' ']) {
            return None;
        }
        headers.get_mut(count)?.write(Header { name: text(name), value });
        count += 1;
        at = line_end(buf, end)?;
    }
}

/// The position after a CR LF at position `at`.
#[inline]
fn line_end(buf: &[u8], at: usize) -> Option<usize> {
    (buf.get(at..at + 2) == Some(b"\r\n")).then_some(at + 2)
}

/// Bytes that are known to be ASCII. A check of every name would take as long as reading it.
#[inline]
fn text(ascii: &[u8]) -> &str {
    debug_assert!(ascii.is_ascii());
    // SAFETY: `block::name_end` and `block::target_end` pass over ASCII only.
    unsafe { std::str::from_utf8_unchecked(ascii) }
}

#[cfg(test)]
mod tests;
