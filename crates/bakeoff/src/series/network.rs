//! Throughput of the bench's network, measured as with netperf: one steady TCP stream between the two sides.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use polygraph_engine::signals::StopPoller;

/// Size of a write in bytes.
const PIECE: usize = 64 << 10;
/// A side that receives nothing for this time gives up.
const SILENCE: Duration = Duration::from_secs(10);

/// Throughput of one stream over this time in million bits per second; `None` if the user stopped the process.
/// Robots and servers of a series are on this machine, so the stream goes over loopback.
///
/// # Errors
/// If the connection fails.
pub fn throughput(time: Duration, stop: &mut StopPoller) -> io::Result<Option<f64>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut sender = TcpStream::connect(listener.local_addr()?)?;
    let (mut receiver, _) = listener.accept()?;
    sender.set_write_timeout(Some(SILENCE))?;
    receiver.set_read_timeout(Some(SILENCE))?;
    let begin = Instant::now();
    let writing = thread::spawn(move || {
        let piece = vec![0; PIECE];
        while begin.elapsed() < time && sender.write_all(&piece).is_ok() {}
    });
    let reading = thread::spawn(move || {
        let (mut piece, mut bytes) = (vec![0; PIECE], 0_u64);
        while let Ok(count @ 1..) = receiver.read(&mut piece) {
            bytes += count as u64;
        }
        bytes
    });
    while begin.elapsed() < time {
        if stop.pause(Duration::from_millis(100).min(time)) {
            return Ok(None);
        }
    }
    let failed = |_| io::Error::other("a thread of the measurement failed");
    writing.join().map_err(failed)?;
    let bytes = reading.join().map_err(failed)?;
    Ok(Some(bytes as f64 * 8e-6 / begin.elapsed().as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_flows() {
        let mut stop = StopPoller::new().unwrap();
        let begin = Instant::now();
        let mbit_s = throughput(Duration::from_millis(300), &mut stop).unwrap().unwrap();
        assert!(mbit_s > 10.0, "{mbit_s} Mbit/s");
        assert!(begin.elapsed() < Duration::from_secs(30));
    }
}
