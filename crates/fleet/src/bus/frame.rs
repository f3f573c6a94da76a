//! Frames: what controllers and agents send each other over ssh. A frame is a line of JSON and the bytes that it announces.

use std::io;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

use crate::protocol::LONGEST;

/// No line is longer than this.
const LONGEST_LINE: u64 = 64 << 10;
/// How much of a file a frame carries.
pub const PIECE: usize = 128 << 10;

/// What a frame is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FrameKind {
    /// An agent receives messages of this subject from now on.
    Subscribe {
        /// The subject.
        subject: String,
    },
    /// A message.
    Message {
        /// Its subject.
        subject: String,
        /// Where an answer goes, if one is expected.
        reply: Option<String>,
    },
    /// An agent wants a file.
    Want {
        /// The number of the file on this connection.
        file: u64,
        /// Its bucket.
        bucket: String,
        /// Its name there.
        object: String,
    },
    /// An agent stores a file.
    Store {
        /// The number of the file on this connection.
        file: u64,
        /// Its bucket.
        bucket: String,
        /// Its name there.
        object: String,
    },
    /// A part of a file.
    Piece {
        /// The number of the file on this connection.
        file: u64,
        /// Whether it is the last one.
        is_last: bool,
    },
    /// A file that an agent wants is not there.
    Missing {
        /// The number of the file on this connection.
        file: u64,
        /// Why it cannot be had.
        reason: String,
    },
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshFrame {
    /// What it is.
    pub kind: FrameKind,
    /// The message, or the part of a file.
    pub bytes: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    kind: FrameKind,
    bytes: usize,
}

impl SshFrame {
    /// A frame without bytes.
    pub fn bare(kind: FrameKind) -> SshFrame {
        SshFrame { kind, bytes: Vec::new() }
    }

    /// The frame as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let head = Head { kind: self.kind.clone(), bytes: self.bytes.len() };
        // Maps with keys that are not text, the only values that JSON cannot have, do not occur in frames.
        let mut all = serde_json::to_vec(&head).unwrap_or_default();
        all.push(b'\n');
        all.extend_from_slice(&self.bytes);
        all
    }

    /// Reads the next frame; `None` at the end.
    ///
    /// # Errors
    /// If the connection fails, or what comes is no frame.
    pub async fn read<R: AsyncBufRead + Unpin>(input: &mut R) -> io::Result<Option<SshFrame>> {
        let mut line = Vec::new();
        if (&mut *input).take(LONGEST_LINE).read_until(b'\n', &mut line).await? == 0 {
            return Ok(None);
        }
        let shown = || String::from_utf8_lossy(&line).trim_end().chars().take(200).collect::<String>();
        let odd = |why: &str| io::Error::new(io::ErrorKind::InvalidData, format!("{why}: `{}`", shown()));
        let head: Head = serde_json::from_slice(&line)
            .map_err(|_| odd("this is not what an agent of this version says"))?;
        if head.bytes > LONGEST {
            return Err(odd("this announces too many bytes"));
        }
        let mut bytes = vec![0; head.bytes];
        input.read_exact(&mut bytes).await?;
        Ok(Some(SshFrame { kind: head.kind, bytes }))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8]) -> io::Result<Vec<SshFrame>> {
        crate::block_on(async {
            let (mut input, mut all) = (bytes, Vec::new());
            while let Some(frame) = SshFrame::read(&mut input).await? {
                all.push(frame);
            }
            Ok(all)
        })
        .unwrap()
    }

    #[test]
    fn frames_come_back_one_by_one() {
        let frames = [
            SshFrame::bare(FrameKind::Subscribe { subject: "a.*".to_owned() }),
            SshFrame {
                kind: FrameKind::Message { subject: "a.b".to_owned(), reply: Some("c".to_owned()) },
                bytes: b"{\n}\0".to_vec(),
            },
            SshFrame { kind: FrameKind::Piece { file: 7, is_last: true }, bytes: vec![b'\n'; 3] },
        ];
        let bytes: Vec<u8> = frames.iter().flat_map(SshFrame::encode).collect();
        assert_eq!(read(&bytes).unwrap(), frames);
        assert_eq!(read(&bytes[..bytes.len() - 1]).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn what_a_shell_prints_is_no_frame() {
        let error = read(b"Welcome to clt1!\n").unwrap_err().to_string();
        assert_eq!(error, "this is not what an agent of this version says: `Welcome to clt1!`");
        let endless =
            format!("{{\"kind\":{{\"piece\":{{\"file\":1,\"is_last\":true}}}},\"bytes\":{}}}\n", usize::MAX);
        assert!(read(endless.as_bytes()).unwrap_err().to_string().contains("too many bytes"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }
}
