//! The messages between a coordinator and its worker processes, on the worker's standard input and output. A frame is
//! a length of four bytes, least significant byte first, and a message of that length in postcard format.

use std::io::{self, Read, Write};

use polygraph_link::Nanos;
use polygraph_plan::Schedule;
use polygraph_stats::Window;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::channels::Delivery;
use crate::event_loop::Engine;
use crate::live_counters::Counts;
use crate::loop_spec::LoopSpec;

/// The first frame that a worker process reads: the loops that it runs. All later frames are
/// [`Decisions`](crate::timeline::Decisions).
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct Assignment {
    /// The phases.
    pub schedule: Schedule,
    /// Length of a statistics interval in nanoseconds.
    pub interval: Nanos,
    /// Timers that are less than this apart, in nanoseconds, share a wake-up.
    pub quantum: Nanos,
    /// What event loops wait with.
    pub engine: Engine,
    /// The loops, each with its number on its side.
    pub loops: Vec<(usize, LoopSpec)>,
}

/// A message from a worker process.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub enum WorkerMessage {
    /// All loops are ready, and servers listen.
    Ready,
    /// The counts of each loop since the start.
    Counts(Vec<Counts>),
    /// What has happened on each loop since the last message.
    Deltas(Vec<Window>),
    /// A delivery of a loop.
    Delivery(Box<Delivery>),
    /// The run is over and everything was sent. This is the last message; the process still closes its connections.
    Done,
    /// A loop could not start or has failed. This is the last message.
    Failed(String),
}

/// The most bytes of a frame. A longer one shows that the stream is out of step.
const LONGEST: usize = 1 << 30;

/// Writes a frame.
///
/// # Errors
/// If the other end is closed, or the message is too long.
pub fn write_frame(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut frame = postcard::to_extend(message, vec![0; 4]).map_err(io::Error::other)?;
    let length = u32::try_from(frame.len() - 4).map_err(io::Error::other)?;
    frame[..4].copy_from_slice(&length.to_le_bytes());
    to.write_all(&frame)?;
    to.flush()
}

/// Reads a frame; `None` at the end of the stream.
///
/// # Errors
/// If the stream ends inside a frame, or the frame is not a valid message.
pub fn read_frame<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match from.read(&mut length)? {
        0 => return Ok(None),
        n => from.read_exact(&mut length[n..])?,
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of {length} bytes")));
    }
    let mut frame = vec![0; length];
    from.read_exact(&mut frame)?;
    let message = postcard::from_bytes(&frame);
    message.map(Some).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_and_broken_ones_are_errors() {
        let counts = |ok| Counts { ok, fill_bytes: u64::MAX, ..Counts::default() };
        let sent = [
            WorkerMessage::Ready,
            WorkerMessage::Counts(vec![counts(1), counts(2)]),
            WorkerMessage::Failed("why".into()),
        ];
        let mut stream = Vec::new();
        sent.iter().for_each(|report| write_frame(&mut stream, report).unwrap());
        let mut from = &stream[..];
        let read = |from: &mut &[u8]| read_frame::<WorkerMessage>(from);
        for report in &sent {
            assert_eq!(format!("{:?}", read(&mut from).unwrap().unwrap()), format!("{report:?}"));
        }
        assert!(read(&mut from).unwrap().is_none());
        // Cut inside the second frame, which begins after the five bytes of the first.
        for end in 6..stream.len().min(12) {
            let mut from = &stream[..end];
            assert!(matches!(read(&mut from), Ok(Some(WorkerMessage::Ready))));
            assert!(read(&mut from).is_err(), "{end}");
        }
        assert!(read_frame::<WorkerMessage>(&mut &[0xff; 40][..]).is_err());
        assert!(read_frame::<WorkerMessage>(&mut &[1, 0, 0, 0, 99][..]).is_err());
    }
}
