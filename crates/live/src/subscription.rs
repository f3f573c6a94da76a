//! The other end of the stream: attaches to processes and reads their messages.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::net::{TcpStream, ToSocketAddrs};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use polygraph_stats::Side;

use crate::endpoint::SOCKET_SUFFIX;
use crate::notification::{FORWARDED_BYTES, ForwardedNotification};
use crate::statistics::{FORMAT, LONGEST_LINE, LiveCounts, LiveState, LiveStatistics};

/// How long a connection may take to be established.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Higher rates than this in a notification are wrong, and would make sums infinite.
const HIGHEST_RATE: f64 = 1e15;

/// Where messages come from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LiveSource {
    /// The socket of a process on this host.
    Local(PathBuf),
    /// The port of a process, as host and port.
    Tcp(String),
    /// A dispatcher of notifications, as host and port.
    Dispatcher(String),
}

impl fmt::Display for LiveSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LiveSource::Local(path) => write!(f, "{}", path.display()),
            LiveSource::Tcp(place) => write!(f, "{place}"),
            LiveSource::Dispatcher(place) => write!(f, "the dispatcher at {place}"),
        }
    }
}

/// A connection to a source.
#[derive(Debug)]
pub struct Subscription(Stream);

#[derive(Debug)]
enum Stream {
    Local(UnixStream),
    Tcp(TcpStream),
    Dispatcher(TcpStream),
}

impl Subscription {
    /// Attaches to a source.
    ///
    /// # Errors
    /// If nothing listens there.
    pub fn attach(source: &LiveSource) -> io::Result<Subscription> {
        Ok(Subscription(match source {
            LiveSource::Local(path) => Stream::Local(UnixStream::connect(path)?),
            LiveSource::Tcp(place) => Stream::Tcp(connect(place)?),
            LiveSource::Dispatcher(place) => Stream::Dispatcher(connect(place)?),
        }))
    }

    /// Passes messages to `take` until it breaks or the source ends.
    ///
    /// # Errors
    /// If the connection fails, or something else than messages comes.
    pub fn follow(self, take: impl FnMut(LiveStatistics) -> ControlFlow<()>) -> io::Result<()> {
        match self.0 {
            Stream::Local(stream) => lines(stream, take),
            Stream::Tcp(stream) => lines(stream, take),
            Stream::Dispatcher(stream) => notifications(stream, take),
        }
    }
}

fn connect(place: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::other("the name has no address");
    for address in place.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(e) => last = e,
        }
    }
    Err(last)
}

fn lines(stream: impl Read, mut take: impl FnMut(LiveStatistics) -> ControlFlow<()>) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        let most = LONGEST_LINE as u64 + 2;
        if (&mut reader).take(most).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        // A process that dies may leave half a line.
        if line.last() != Some(&b'\n') && line.len() <= LONGEST_LINE {
            return Ok(());
        }
        let message =
            LiveStatistics::read(&line).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        if take(message).is_break() {
            return Ok(());
        }
    }
}

fn notifications(
    mut stream: impl Read,
    mut take: impl FnMut(LiveStatistics) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut bytes = [0; FORWARDED_BYTES];
    loop {
        match stream.read_exact(&mut bytes) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(e) => return Err(e),
        }
        let message = ForwardedNotification::decode(&bytes)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        if take(of_notification(&message)).is_break() {
            return Ok(());
        }
    }
}

/// The statistics that a notification has. Its rates are counts of one second.
pub fn of_notification(message: &ForwardedNotification) -> LiveStatistics {
    let found = &message.notification;
    let count = |value: i64| u64::try_from(value).unwrap_or(0);
    let rate = |value: f64| value.clamp(0.0, HIGHEST_RATE);
    let ok = rate(found.reply_rate);
    let failed =
        found.error_ratio.filter(|ratio| *ratio < 1.0).map_or(0.0, |ratio| ok * ratio / (1.0 - ratio));
    let hits = found.hit_ratio.filter(|_| found.side == Side::Client).map(|ratio| ratio.min(1.0));
    LiveStatistics {
        format: FORMAT,
        host: message.sender.ip().to_string(),
        pid: message.sender.port().into(),
        side: found.side,
        label: found.label.clone(),
        workload: String::new(),
        version: String::new(),
        start_unix_us: count(found.start.0),
        elapsed_s: (found.sent.0.saturating_sub(found.start.0)).max(0) as f64 * 1e-6,
        state: LiveState::Running,
        end: None,
        phase: None,
        planned_rate: None,
        interval: LiveCounts {
            seconds: 1.0,
            started: rate(found.request_rate),
            ok,
            failed,
            rptm_us: found.response_time.map_or(0.0, |time| time.0 as f64) * ok,
            basic: if hits.is_some() { ok } else { 0.0 },
            hits: hits.unwrap_or(0.0) * ok,
            reply_bytes: rate(found.bandwidth),
            ..LiveCounts::default()
        },
        total: LiveCounts {
            ok: count(found.transactions) as f64,
            failed: count(found.errors) as f64,
            ..LiveCounts::default()
        },
        rptm_p95_us: None,
        open_connections: count(found.open_connections),
        transactions: 0,
        agents: 0,
        rss_bytes: 0,
        errors: Vec::new(),
        verdict: None,
    }
}

/// The sockets of processes in a directory; none if it does not exist.
pub fn local_sources(directory: &Path) -> Vec<LiveSource> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let is_socket = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_bytes().ends_with(SOCKET_SUFFIX.as_bytes()))
    };
    entries.map(|entry| entry.path()).filter(is_socket).map(LiveSource::Local).collect()
}
