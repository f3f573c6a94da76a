//! HTTP/2 in the check before a test: its start with the peer of the robots, and answers to devices that speak it to servers.

use std::future::Future;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use polygraph_link::{Conn, Link, Nanos, send_all};
use polygraph_multiplex::http2::connection::PREFACE;
use polygraph_multiplex::message::incoming::TargetForm;
use polygraph_multiplex::{Http2Settings, ServerPolicy, Stream, serve};

use super::{ProbeError, ProbeStep};
use crate::net::Net;

/// The head of a frame (RFC 9113, section 4.1).
const FRAME_HEAD: usize = 9;
/// A SETTINGS frame without settings, which follows the preface.
const SETTINGS: [u8; FRAME_HEAD] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
/// A GOAWAY frame without an error.
const GOAWAY: [u8; FRAME_HEAD + 8] = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Begins a connection of HTTP/2 with prior knowledge, and ends it when the SETTINGS of the peer have begun.
///
/// # Errors
/// If the peer sends something else, or nothing until `deadline`.
pub fn begin(stream: &mut TcpStream, deadline: Instant) -> Result<(), ProbeError> {
    let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    stream.set_write_timeout(Some(left)).map_err(ProbeError::Unreachable)?;
    stream.set_read_timeout(Some(left)).map_err(ProbeError::Unreachable)?;
    stream.write_all(&[PREFACE, &SETTINGS].concat()).map_err(|_| ProbeError::Closed(ProbeStep::Request))?;
    let (mut data, mut part) = (Vec::new(), [0; 4096]);
    while data.len() < FRAME_HEAD {
        match stream.read(&mut part) {
            Ok(0) if data.is_empty() => return Err(ProbeError::Closed(ProbeStep::Request)),
            Ok(0) => return Err(ProbeError::NotHttp2(data)),
            Ok(n) => data.extend_from_slice(&part[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                return Err(ProbeError::Silent(ProbeStep::Request));
            }
            Err(_) => return Err(ProbeError::Closed(ProbeStep::Request)),
        }
    }
    // The first frame of a server is SETTINGS of the connection (RFC 9113, section 3.4).
    if !matches!(data[..FRAME_HEAD], [_, _, _, 4, _, 0, 0, 0, 0]) {
        return Err(ProbeError::NotHttp2(data));
    }
    // A peer that misses the farewell sees the connection end.
    let _ = stream.write_all(&GOAWAY);
    Ok(())
}

/// Serves one request: later ones are for the servers of the test, which listen at the same address.
pub fn policy(patience: Nanos) -> ServerPolicy {
    ServerPolicy {
        settings: Http2Settings::default(),
        form: TargetForm::Origin,
        use_limit: 1,
        idle_timeout: Some(patience),
    }
}

/// Serves a request on a connection that starts with the bytes `received`, or waits for it for `patience`. `reply_to` makes the
/// reply to the request in its HTTP/1 form.
pub async fn answer<C: Conn + 'static>(
    net: &Net,
    conn: C,
    received: &[u8],
    patience: Nanos,
    reply_to: impl Fn(&[u8]) -> Vec<u8>,
) {
    serve(net, conn, received, &policy(patience), |mut stream: Stream| {
        let mut head = Vec::new();
        // The head of a request is there when its stream is.
        let taken = std::pin::pin!(stream.recv(|data| head.extend_from_slice(data)))
            .poll(&mut std::task::Context::from_waker(std::task::Waker::noop()));
        if taken.is_ready() {
            let reply = reply_to(&head);
            net.spawn(async move {
                // If the reply does not arrive, the probe reports that.
                let _ = send_all(&mut stream, &reply).await;
            });
        }
    })
    .await;
}
