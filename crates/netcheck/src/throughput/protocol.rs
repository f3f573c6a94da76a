//! The messages between client and server: one JSON object per line.
//!
//! The server greets every connection with [`GREETING`], so that a client knows whom it met. The first message of the
//! client says what the connection is for. Over a control connection the server replies [`ServerMessage::Accepted`]; when all
//! streams have come it says [`ServerMessage::Start`], and at the end [`ServerMessage::Result`]. Streams carry a line and then data.

use std::io::{self, BufRead, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Direction, SideResult};

/// The first line of a server.
pub const GREETING: &str = "polygraph throughput 1";
/// Most streams of one test.
pub const MOST_STREAMS: u32 = 128;
/// The longest test in seconds.
pub const LONGEST: f64 = 86_400.0;
/// The longest line in bytes. A result has some hundred bytes per stream.
const LONGEST_LINE: u64 = 128 * 1024;

/// The first message of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ClientMessage {
    /// Asks for a test.
    Test {
        /// The number of streams.
        streams: u32,
        /// How long both sides send, in seconds.
        seconds: f64,
        /// Which sides send.
        direction: Direction,
    },
    /// Opens a stream of a test.
    Stream {
        /// The test, as the server named it.
        test: u64,
        /// The number of the stream, from 0.
        index: u32,
    },
}

impl ClientMessage {
    /// Reads a message.
    ///
    /// # Errors
    /// If it is not one, or asks for more than a server gives.
    pub fn read(line: &str) -> Result<ClientMessage, String> {
        let request =
            serde_json::from_str(line).map_err(|error| format!("the request is not understood: {error}"))?;
        if let ClientMessage::Test { streams, seconds, .. } = request {
            if !(1..=MOST_STREAMS).contains(&streams) {
                return Err(format!("{streams} streams were asked for; 1 to {MOST_STREAMS} are possible"));
            }
            if !(seconds > 0.0 && seconds <= LONGEST) {
                return Err(format!("{seconds} s were asked for; the longest test is {LONGEST} s"));
            }
        }
        Ok(request)
    }
}

/// A message of the server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerMessage {
    /// The test may begin; its streams give this number.
    Accepted(u64),
    /// The server does not do this.
    Refused(String),
    /// All streams have come: both sides begin to send.
    Start,
    /// The test is over.
    Result(Box<SideResult>),
}

/// Writes a message.
///
/// # Errors
/// If the connection is broken.
pub fn write_message(mut to: impl Write, message: &impl Serialize) -> io::Result<()> {
    let line = serde_json::to_string(message)? + "\n";
    to.write_all(line.as_bytes())
}

/// Reads a line without its end.
///
/// # Errors
/// If the connection ends or is silent, or the line is too long or no text.
pub fn read_line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    from.take(LONGEST_LINE).read_line(&mut line)?;
    match line.pop() {
        Some('\n') => Ok(line),
        None => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed")),
        Some(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "a line is too long or has no end")),
    }
}

/// Reads a message.
///
/// # Errors
/// If there is none, or it is not understood.
pub fn read_message<M: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<M> {
    Ok(serde_json::from_str(&read_line(from)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_checked() {
        let test = |streams, seconds| ClientMessage::Test { streams, seconds, direction: Direction::Both };
        let read = |request: &ClientMessage| ClientMessage::read(&serde_json::to_string(request).unwrap());
        for good in [test(1, 0.5), test(128, LONGEST), ClientMessage::Stream { test: u64::MAX, index: 3 }] {
            assert_eq!(read(&good), Ok(good));
        }
        for (bad, why) in [
            (test(0, 1.0), "0 streams"),
            (test(129, 1.0), "129 streams"),
            (test(1, 0.0), "0 s were"),
            (test(1, 1e6), "longest"),
        ] {
            assert!(read(&bad).unwrap_err().contains(why), "{bad:?}");
        }
        for text in [
            "",
            "GET / HTTP/1.0",
            "{}",
            r#"{"test":{"streams":1}}"#,
            r#"{"test":{"streams":1,"seconds":null,"direction":"both"}}"#,
        ] {
            assert!(ClientMessage::read(text).unwrap_err().contains("not understood"), "{text}");
        }
    }

    #[test]
    fn lines_have_an_end_and_a_limit() {
        let kind = |text: &[u8]| read_line(&mut &text[..]).map_err(|error| error.kind());
        assert_eq!(kind(b"a\nb"), Ok("a".to_owned()));
        assert_eq!(kind(b""), Err(io::ErrorKind::UnexpectedEof));
        assert_eq!(kind(b"a"), Err(io::ErrorKind::InvalidData));
        assert_eq!(kind(b"\xff\n"), Err(io::ErrorKind::InvalidData));
        assert_eq!(kind(&vec![b'x'; LONGEST_LINE as usize + 9]), Err(io::ErrorKind::InvalidData));
    }
}
