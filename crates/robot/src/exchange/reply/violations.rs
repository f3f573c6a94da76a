//! Violations in the framing of messages, in words.

use polygraph_stats::ErrorKind;
use polygraph_wire::body::BodyError;
use polygraph_wire::head::{HeadError, Header, is_named};

use super::MAX_HEAD;
use crate::violation::Violation;

/// Number of received bytes that the text of a finding shows.
const SHOWN: usize = 60;

/// The first line of the received bytes.
fn first_line(data: &[u8]) -> String {
    let line = data.split(|&b| b == b'\r' || b == b'\n').next().unwrap_or_default();
    format!("`{}`", line[..line.len().min(SHOWN)].escape_ascii())
}

/// The bytes are not a head.
#[cold]
pub fn bad_head(error: HeadError, data: &[u8]) -> Box<Violation> {
    let kind = match error {
        HeadError::Malformed => ErrorKind::BadHead,
        HeadError::TooManyHeaders => ErrorKind::HeadTooLarge,
    };
    Box::new(Violation::new(kind, format!("{error}: {}", first_line(data))))
}

/// The head is too large.
#[cold]
pub fn oversized(data: &[u8]) -> Box<Violation> {
    let detail = format!("more than {MAX_HEAD} bytes of a head: {}", first_line(data));
    Box::new(Violation::new(ErrorKind::HeadTooLarge, detail))
}

/// An interim reply that no robot requested, or one too many.
#[cold]
pub fn interim(status: u16, data: &[u8]) -> Box<Violation> {
    let kind = match status {
        100 => ErrorKind::UnexpectedContinue,
        _ => ErrorKind::UnexpectedInterim,
    };
    Box::new(Violation::new(kind, first_line(data)))
}

/// The end of the body is unknown.
#[cold]
pub fn unframed(error: BodyError, headers: &[Header<'_>]) -> Box<Violation> {
    let of_framing = |name| is_named(name, "Content-Length") || is_named(name, "Transfer-Encoding");
    let fields: Vec<String> = headers
        .iter()
        .filter(|header| of_framing(header.name))
        .map(|header| {
            format!("{}: {}", header.name, header.value[..header.value.len().min(SHOWN)].escape_ascii())
        })
        .collect();
    Box::new(Violation::new(class_of(error), format!("{error} (`{}`)", fields.join("`, `"))))
}

/// The framing of the body is broken.
#[cold]
pub fn broken(error: BodyError) -> Box<Violation> {
    Box::new(Violation::new(class_of(error), error.to_string()))
}

fn class_of(error: BodyError) -> ErrorKind {
    match error {
        BodyError::Length => ErrorKind::BadLength,
        BodyError::Coding => ErrorKind::BadCoding,
        BodyError::ChunkSize => ErrorKind::ChunkSize,
        BodyError::ChunkNegative => ErrorKind::ChunkNegative,
        BodyError::ChunkLong => ErrorKind::ChunkTokenLong,
        BodyError::ChunkEnd => ErrorKind::ChunkEnd,
    }
}
