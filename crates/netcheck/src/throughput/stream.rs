//! The two halves of a stream: one thread sends, another one receives.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::cpu::ThreadMeter;
use super::{GRACE, Received, Sent, tcp_info};

/// Octets that are written or read at once.
const BLOCK: usize = 128 * 1024;
/// A call that waits longer than this looks at the clock.
const PATIENCE: Duration = Duration::from_millis(200);

/// When a test starts, and how long its sides send.
#[derive(Clone, Copy)]
pub struct TestTime {
    /// The start at this side.
    pub start: Instant,
    /// How long both sides send.
    pub duration: Duration,
}

impl TestTime {
    fn send_until(self) -> Instant {
        self.start + self.duration
    }

    /// When a side no longer waits for the other one.
    fn give_up(self) -> Instant {
        self.send_until() + GRACE
    }
}

/// A stream in use: what it does in each direction, and the share of a processor that this takes.
pub struct RunningStream {
    sender: Option<JoinHandle<(Sent, f64)>>,
    receiver: Option<JoinHandle<(Received, f64)>>,
}

impl RunningStream {
    /// Starts the halves that a side has in a test. A side that does not send says so at once.
    ///
    /// # Errors
    /// If the system has no room for threads or sockets.
    pub fn start(
        stream: TcpStream,
        sends: bool,
        receives: bool,
        time: TestTime,
    ) -> io::Result<RunningStream> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let other = stream.try_clone()?;
        let name = |half: &str| thread::Builder::new().name(format!("stream {half}"));
        let receiver =
            if receives { Some(name("receive").spawn(move || receive(&other, time))?) } else { None };
        let sender = if sends {
            Some(name("send").spawn(move || send(&stream, time))?)
        } else {
            stream.shutdown(Shutdown::Write)?;
            None
        };
        Ok(RunningStream { sender, receiver })
    }

    /// Waits for the end. Halves that a side does not have are zeros.
    pub fn finish(self) -> (Sent, Received, f64) {
        let (sent, busy) = self.sender.and_then(|half| half.join().ok()).unwrap_or_default();
        let (received, also_busy) = self.receiver.and_then(|half| half.join().ok()).unwrap_or_default();
        (sent, received, busy.max(also_busy))
    }
}

/// Whether a call only waited.
pub(super) fn is_wait(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

/// Sends zeros as fast as TCP takes them.
fn send(mut stream: &TcpStream, time: TestTime) -> (Sent, f64) {
    let meter = ThreadMeter::start();
    let block = vec![0; BLOCK];
    let (mut bytes, end) = (0, time.send_until());
    while Instant::now() < end {
        match stream.write(&block) {
            Ok(0) => break,
            Ok(written) => bytes += written as u64,
            Err(error) if is_wait(&error) => {}
            // The other side is gone, as its half will say.
            Err(_) => break,
        }
    }
    let sent = tcp_info::sent(stream, bytes);
    let _ = stream.shutdown(Shutdown::Write);
    (sent, meter.stop())
}

/// Receives until the other side ends the stream.
fn receive(mut stream: &TcpStream, time: TestTime) -> (Received, f64) {
    let meter = ThreadMeter::start();
    let mut block = vec![0; BLOCK];
    let mut received = Received::default();
    let give_up = time.give_up();
    loop {
        let result = stream.read(&mut block);
        let now = Instant::now();
        received.end_s = now.saturating_duration_since(time.start).as_secs_f64();
        match result {
            Ok(0) => {
                received.complete = true;
                break;
            }
            Ok(read) => {
                if received.bytes == 0 {
                    received.first_s = received.end_s;
                }
                received.bytes += read as u64;
            }
            Err(error) if is_wait(&error) => {}
            Err(_) => break,
        }
        if now >= give_up {
            break;
        }
    }
    (received, meter.stop())
}
