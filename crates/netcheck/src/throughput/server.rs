//! The server of throughput tests: it accepts tests until it is dropped.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::io::{self, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::cpu::CpuMeter;
use super::protocol::{ClientMessage, GREETING, ServerMessage, read_line, write_message};
use super::stream::{RunningStream, TestTime};
use super::{Direction, SideResult};

/// Most connections at a time.
const MOST_CONNECTIONS: usize = 2048;
/// How long a client may take to say what it wants, and to open its streams.
const PATIENCE: Duration = Duration::from_secs(10);

/// The streams that tests wait for, by the number of the test.
type Waiting = Mutex<HashMap<u64, Sender<(u32, TcpStream)>>>;

#[derive(Default)]
struct Shared {
    waiting: Waiting,
    connections: AtomicUsize,
    finished: AtomicU64,
    stopped: AtomicBool,
}

impl Shared {
    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Sender<(u32, TcpStream)>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A server. Dropping it ends it; tests that are running go on to their end.
pub struct ThroughputServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl ThroughputServer {
    /// Starts a server.
    ///
    /// # Errors
    /// If the address cannot be used.
    pub fn start(address: SocketAddr) -> io::Result<ThroughputServer> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("throughput server".to_owned())
            .spawn(move || accept(&listener, &own))?;
        Ok(ThroughputServer { address, shared, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many tests were carried out to their end.
    pub fn finished(&self) -> u64 {
        self.shared.finished.load(Ordering::Acquire)
    }
}

impl Drop for ThroughputServer {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
        // The listener wakes up for a connection.
        let mut wake = self.address;
        if wake.ip().is_unspecified() {
            wake.set_ip(if wake.is_ipv4() {
                [127, 0, 0, 1].into()
            } else {
                std::net::Ipv6Addr::LOCALHOST.into()
            });
        }
        if TcpStream::connect_timeout(&wake, Duration::from_secs(1)).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for connection in listener.incoming() {
        if shared.stopped.load(Ordering::Acquire) {
            return;
        }
        let Ok(connection) = connection else {
            // Out of file descriptors: those of other tests come back.
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        if shared.connections.load(Ordering::Acquire) >= MOST_CONNECTIONS {
            let _ = refuse(&connection, "the server has too many connections");
            continue;
        }
        shared.connections.fetch_add(1, Ordering::AcqRel);
        let own = Arc::clone(shared);
        let spawned = thread::Builder::new().name("throughput test".to_owned()).spawn(move || {
            // A client that goes away in the middle ends only its own test.
            let _ = serve(connection, &own);
            own.connections.fetch_sub(1, Ordering::AcqRel);
        });
        if spawned.is_err() {
            shared.connections.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

fn refuse(mut connection: &TcpStream, why: &str) -> io::Result<()> {
    connection.set_write_timeout(Some(PATIENCE))?;
    connection.write_all(format!("{GREETING}\n").as_bytes())?;
    write_message(connection, &ServerMessage::Refused(why.to_owned()))
}

fn serve(connection: TcpStream, shared: &Arc<Shared>) -> io::Result<()> {
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    connection.set_nodelay(true)?;
    (&connection).write_all(format!("{GREETING}\n").as_bytes())?;
    // One octet at a time is read before the data of a stream begins, because the reader must not take any of it. The
    // client waits for the start, so nothing is behind the line.
    let line = read_line(&mut BufReader::new(&connection))?;
    match ClientMessage::read(&line) {
        Err(why) => write_message(&connection, &ServerMessage::Refused(why)),
        Ok(ClientMessage::Stream { test, index }) => {
            let waiting = shared.waiting().get(&test).cloned();
            match waiting.map(|test| test.send((index, connection))) {
                Some(Ok(())) => Ok(()),
                // The connection is closed: there is no such test, or no longer.
                _ => Err(io::ErrorKind::NotFound.into()),
            }
        }
        Ok(ClientMessage::Test { streams, seconds, direction }) => {
            let number = std::collections::hash_map::RandomState::new().hash_one(Instant::now());
            let (sender, receiver) = channel();
            shared.waiting().insert(number, sender);
            write_message(&connection, &ServerMessage::Accepted(number))?;
            let all = wait_for_streams(&receiver, streams as usize);
            shared.waiting().remove(&number);
            let Some(all) = all else {
                let why = "not all streams of the test came".to_owned();
                return write_message(&connection, &ServerMessage::Refused(why));
            };
            write_message(&connection, &ServerMessage::Start)?;
            let result = run(all, direction, Duration::from_secs_f64(seconds))?;
            // It is counted before the client can know that it has ended.
            shared.finished.fetch_add(1, Ordering::AcqRel);
            write_message(&connection, &ServerMessage::Result(Box::new(result)))
        }
    }
}

/// The streams in the order of their numbers.
fn wait_for_streams(come: &Receiver<(u32, TcpStream)>, count: usize) -> Option<Vec<TcpStream>> {
    let deadline = Instant::now() + PATIENCE;
    let mut streams: Vec<Option<TcpStream>> = (0..count).map(|_| None).collect();
    while streams.iter().any(Option::is_none) {
        let (index, stream) = come.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()?;
        *streams.get_mut(index as usize)? = Some(stream);
    }
    streams.into_iter().collect()
}

fn run(streams: Vec<TcpStream>, direction: Direction, duration: Duration) -> io::Result<SideResult> {
    let time = TestTime { start: Instant::now(), duration };
    run_streams(streams, direction.server_sends(), direction.client_sends(), time)
}

/// Runs one side of all streams to the end.
pub fn run_streams(
    streams: Vec<TcpStream>,
    sends: bool,
    receives: bool,
    time: TestTime,
) -> io::Result<SideResult> {
    let meter = CpuMeter::start();
    let running: Vec<RunningStream> = streams
        .into_iter()
        .map(|stream| RunningStream::start(stream, sends, receives, time))
        .collect::<io::Result<_>>()?;
    let (mut result, mut busiest) = (SideResult::default(), 0.0_f64);
    for stream in running {
        let (sent, received, busy) = stream.finish();
        busiest = busiest.max(busy);
        result.sent.extend(sends.then_some(sent));
        result.received.extend(receives.then_some(received));
    }
    result.cpu = meter.stop(busiest);
    Ok(result)
}
