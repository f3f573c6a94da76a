//! Answers preflight requests for servers that do not listen yet.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use polygraph_link::Nanos;
use polygraph_wire::preflight;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::SocketFlags;

use super::http2;
use crate::listen::listen;

/// How often the thread checks whether it must stop while nobody connects.
const LOOK: Duration = Duration::from_millis(20);
/// How long a client may take to send its request.
const PATIENCE: Duration = Duration::from_millis(500);

/// Answers probes at some addresses until it is dropped. Any other request gets an empty reply with status 200,
/// because devices check the health of their servers.
#[derive(Debug)]
pub struct Responder {
    stop: Arc<AtomicBool>,
    seen: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl Responder {
    /// Listens on all these addresses.
    ///
    /// # Errors
    /// If an address cannot be used.
    pub fn start(addresses: &[SocketAddr]) -> io::Result<Responder> {
        let listeners = addresses.iter().map(|address| listen(*address)).collect::<io::Result<Vec<_>>>()?;
        let (stop, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (until, tokens) = (Arc::clone(&stop), Arc::clone(&seen));
        let body = move || {
            while !until.load(Ordering::Relaxed) {
                accept(&listeners, &tokens);
            }
        };
        let thread = std::thread::Builder::new().name("preflight".into()).spawn(body)?;
        Ok(Responder { stop, seen, thread: Some(thread) })
    }

    /// Whether a probe with this token was received.
    pub fn has_seen(&self, token: &str) -> bool {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|seen| seen == token)
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // The panic hook has already reported a panic of the thread.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Accepts the clients that connect within [`LOOK`] and answers each on a thread.
fn accept(listeners: &[OwnedFd], tokens: &Arc<Mutex<Vec<String>>>) {
    let mut waiting: Vec<PollFd<'_>> = listeners.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
    if poll(&mut waiting, Some(&limit)).is_err() {
        return std::thread::sleep(LOOK);
    }
    let ready: Vec<bool> = waiting.iter().map(|fd| !fd.revents().is_empty()).collect();
    for (listener, _) in listeners.iter().zip(ready).filter(|(_, ready)| *ready) {
        if let Ok(fd) = rustix::net::accept_with(listener, SocketFlags::CLOEXEC) {
            let (stream, tokens) = (TcpStream::from(fd), Arc::clone(tokens));
            // A silent client must not delay the others.
            std::thread::spawn(move || answer(stream, &tokens));
        }
    }
}

fn answer(mut stream: TcpStream, tokens: &Mutex<Vec<String>>) {
    let (mut data, mut part) = (Vec::new(), [0; 4096]);
    let _ = stream.set_read_timeout(Some(PATIENCE));
    while !data.windows(4).any(|end| end == b"\r\n\r\n") && data.len() < 64 * 1024 {
        match stream.read(&mut part) {
            Ok(n @ 1..) => data.extend_from_slice(&part[..n]),
            _ => return,
        }
    }
    // If the reply does not arrive, the probe reports that.
    if polygraph_multiplex::may_be_http2(&data) {
        let patience = Nanos::from_millis(PATIENCE.as_millis() as u64);
        let _ = http2::answer(stream, &data, patience, |request| reply_to(request, tokens));
    } else {
        let _ = stream.write_all(&reply_to(&data, tokens));
    }
}

/// The reply to a request, whose token is kept if it is a probe.
fn reply_to(request: &[u8], tokens: &Mutex<Vec<String>>) -> Vec<u8> {
    match preflight::token(request) {
        Some(token) => {
            tokens.lock().unwrap_or_else(PoisonError::into_inner).push(token.to_owned());
            preflight::reply(token)
        }
        None => b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
    }
}
