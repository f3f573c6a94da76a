//! The client of throughput tests.

use std::io::{self, BufReader};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::protocol::{ClientMessage, GREETING, ServerMessage, read_line, read_message, write_message};
use super::server::run_streams;
use super::stream::{TestTime, is_wait};
use super::{Direction, GRACE, Received, SideResult, rate};
use crate::error::{CheckResult, Error};

/// A test.
#[derive(Clone, Debug)]
pub struct ThroughputTest {
    /// The server.
    pub server: SocketAddr,
    /// Addresses of this host, which streams use in turn. Empty: the system chooses.
    pub sources: Vec<IpAddr>,
    /// The number of streams.
    pub streams: u32,
    /// How long both sides send.
    pub duration: Duration,
    /// Which sides send.
    pub direction: Direction,
    /// How long the server may take to answer.
    pub patience: Duration,
}

/// The result of a test.
#[derive(Clone, Debug)]
pub struct ThroughputResult {
    /// The addresses of the two ends of each stream: this host, the server.
    pub ends: Vec<(SocketAddr, SocketAddr)>,
    /// What this side saw.
    pub client: SideResult,
    /// What the server saw.
    pub server: SideResult,
}

impl ThroughputResult {
    /// The rate from this host to the server in bits per second, measured there; `None` if the test has no such direction.
    pub fn sent_rate(&self) -> Option<f64> {
        (!self.server.received.is_empty()).then(|| rate(&self.server.received))
    }

    /// The rate from the server to this host in bits per second.
    pub fn received_rate(&self) -> Option<f64> {
        (!self.client.received.is_empty()).then(|| rate(&self.client.received))
    }

    /// Streams that broke or stood still, in any direction.
    pub fn broken(&self) -> usize {
        let all = self.client.received.iter().chain(&self.server.received);
        all.filter(|stream: &&Received| !stream.complete).count()
    }
}

/// Whether a server of throughput tests is at an address: `Some(false)` if something else listens there.
pub fn find_server(server: SocketAddr, patience: Duration) -> Option<bool> {
    let connection = TcpStream::connect_timeout(&server, patience).ok()?;
    let greeting =
        connection.set_read_timeout(Some(patience)).and_then(|()| read_line(&mut BufReader::new(connection)));
    Some(greeting.is_ok_and(|line| line == GREETING))
}

/// Carries out a test.
///
/// # Errors
/// If the server cannot be reached or refuses, or if a source is not an address of this host.
pub fn measure(test: &ThroughputTest) -> CheckResult<ThroughputResult> {
    let broken = |error: io::Error| Error::Peer(format!("the test with {} broke off: {error}", test.server));
    let source = |index: usize| test.sources.get(index % test.sources.len().max(1)).copied();
    let (control, mut replies) = greet(test, source(0))?;
    let (streams, seconds, direction) = (test.streams, test.duration.as_secs_f64(), test.direction);
    write_message(&control, &ClientMessage::Test { streams, seconds, direction }).map_err(broken)?;
    let number = match read_message(&mut replies).map_err(broken)? {
        ServerMessage::Accepted(number) => number,
        other => return Err(unexpected(test.server, other)),
    };
    let (mut all, mut ends) = (Vec::new(), Vec::new());
    for index in 0..streams {
        let (stream, _) = greet(test, source(index as usize))?;
        write_message(&stream, &ClientMessage::Stream { test: number, index }).map_err(broken)?;
        ends.push((stream.local_addr().map_err(broken)?, stream.peer_addr().map_err(broken)?));
        all.push(stream);
    }
    match read_message(&mut replies).map_err(broken)? {
        ServerMessage::Start => {}
        other => return Err(unexpected(test.server, other)),
    }
    let time = TestTime { start: Instant::now(), duration: test.duration };
    let client = run_streams(all, direction.client_sends(), direction.server_sends(), time)
        .map_err(|error| Error::host("cannot run the streams", error))?;
    control.set_read_timeout(Some(GRACE + test.patience)).map_err(broken)?;
    match read_message(&mut replies).map_err(broken)? {
        ServerMessage::Result(server) => Ok(ThroughputResult { ends, client, server: *server }),
        other => Err(unexpected(test.server, other)),
    }
}

fn unexpected(server: SocketAddr, reply: ServerMessage) -> Error {
    match reply {
        ServerMessage::Refused(why) => Error::Peer(format!("{server} refuses the test: {why}")),
        _ => Error::Peer(format!("{server} sent a message out of turn; are both sides of the same version?")),
    }
}

/// Opens a connection and reads the greeting.
fn greet(test: &ThroughputTest, source: Option<IpAddr>) -> CheckResult<(TcpStream, BufReader<TcpStream>)> {
    let connection = connect(test.server, source, test.patience)?;
    let ready = connection
        .set_read_timeout(Some(test.patience))
        .and_then(|()| connection.set_nodelay(true))
        .and_then(|()| connection.try_clone());
    let mut reader =
        ready.map(BufReader::new).map_err(|error| Error::host("cannot use a connection", error))?;
    match read_line(&mut reader) {
        Ok(line) if line == GREETING => Ok((connection, reader)),
        Err(error) if is_wait(&error) => Err(Error::Peer(format!(
            "{} accepts connections and then says nothing for {} s: what listens there hangs, or is not a server of \
             throughput tests",
            test.server,
            test.patience.as_secs_f64()
        ))),
        _ => Err(Error::Peer(format!(
            "what listens at {} is not a server of throughput tests: start `polygraph net throughput --listen` there",
            test.server
        ))),
    }
}

/// Opens a connection from an address.
fn connect(server: SocketAddr, source: Option<IpAddr>, patience: Duration) -> CheckResult<TcpStream> {
    let socket = Socket::new(Domain::for_address(server), Type::STREAM, Some(Protocol::TCP))
        .map_err(|error| Error::host("cannot open a socket", error))?;
    if let Some(source) = source {
        socket
            .bind(&SockAddr::from(SocketAddr::new(source, 0)))
            .map_err(|error| cannot_use(source, error))?;
    }
    let connected = socket.connect_timeout(&server.into(), patience);
    connected.map_err(|error| match error.kind() {
        io::ErrorKind::NetworkUnreachable => Error::host(format!("there is no route to {}", server.ip()), error),
        io::ErrorKind::ConnectionRefused => Error::Peer(format!(
            "{server} does not accept a connection: nothing listens there; start `polygraph net throughput --listen`"
        )),
        _ => Error::Peer(format!(
            "{server} does not answer ({error}): check that the host is up, and that no firewall drops the packets"
        )),
    })?;
    Ok(socket.into())
}

fn cannot_use(source: IpAddr, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::AddrNotAvailable => {
            Error::host(format!("{source} is not an address of this host"), error)
        }
        _ => Error::host(format!("cannot use the address {source}"), error),
    }
}
