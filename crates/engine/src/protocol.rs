//! What a coordinator and its worker processes tell each other, as frames on the worker's standard input and
//! output: a length of four bytes, least significant first, and so many bytes of postcard.

use std::io::{self, Read, Write};

use polygraph_link::Nanos;
use polygraph_plan::Schedule;
use polygraph_stats::Window;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::live_counters::Counts;
use crate::loop_driver::Delivery;
use crate::loop_spec::LoopSpec;

/// What a worker process is for: the first frame that it reads. All others are [`Decisions`](crate::timeline::Decisions).
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct Assignment {
    /// The phases.
    pub schedule: Schedule,
    /// Length of statistics intervals.
    pub interval: Nanos,
    /// Timers that are closer than this share a wake-up.
    pub quantum: Nanos,
    /// The loops: their number among those of their side, and what they do.
    pub loops: Vec<(usize, LoopSpec)>,
}

/// What a worker process tells.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub enum WorkerMessage {
    /// All loops are there and listen.
    Ready,
    /// What each of its loops has counted so far.
    Counts(Vec<Counts>),
    /// What is new on each of its loops.
    Deltas(Vec<Window>),
    /// A loop has ended an interval, or the run.
    Delivery(Box<Delivery>),
    /// The run is over, everything was told; what is left is to close connections. Nothing follows.
    Done,
    /// A loop could not start or go on; nothing follows.
    Failed(String),
}

/// Longer frames are a sign of a stream that is out of step.
const LONGEST: usize = 1 << 30;

/// Writes a frame.
///
/// # Errors
/// If the other end is gone.
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
/// If the stream breaks off inside a frame, or the frame is none.
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
