//! A name server on its own thread: one event loop for UDP and TCP.

use std::cell::Cell;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::counters::{Counters, NameServerCounts};
use crate::reply::{STREAM_LIMIT, Transport, reply};
use crate::zone::Zone;

/// The receive buffer of each address in bytes, enough for some thousand queries.
const RECEIVE_BUFFER: usize = 1 << 20;
/// The most open TCP connections; further ones are closed at once (RFC 7766, section 6.2.2).
const MAX_CONNECTIONS: usize = 256;
/// The most connections that wait to be accepted.
const BACKLOG: i32 = 128;
/// How long a connection may be idle or take for a message (RFC 7766, section 6.2.3: a few seconds).
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// How often another port is tried if the port that the system chose for UDP is in use for TCP.
const PORT_TRIES: usize = 20;

/// Settings of a [`NameServer`].
#[derive(Debug)]
pub struct NameServerConfig {
    /// The addresses to listen on, at least one. With port 0 the system chooses a port for both UDP and TCP. Clients
    /// check the source of a reply, which is the address that they queried only if that is listed here.
    pub listen: Vec<SocketAddr>,
    /// The time to live of answers and of negative answers, in seconds.
    pub ttl: u32,
    /// The names and their addresses.
    pub zone: Zone,
}

impl NameServerConfig {
    /// Settings for the loopback address, a port that the system chooses, and a time to live of an hour.
    pub fn local(zone: Zone) -> NameServerConfig {
        NameServerConfig { listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))], ttl: 3600, zone }
    }
}

/// A running name server. Dropping it stops it.
#[derive(Debug)]
pub struct NameServer {
    addresses: Vec<SocketAddr>,
    counters: Arc<Counters>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl NameServer {
    /// Binds the sockets and starts the thread. The server answers queries when this function returns.
    ///
    /// # Errors
    /// If there is no address (`InvalidInput`), an address cannot be bound (ports below 1024 need a privilege), or
    /// the system cannot start a thread or event queue.
    pub fn start(config: NameServerConfig) -> io::Result<NameServer> {
        if config.listen.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name server needs an address"));
        }
        let sockets: Vec<Sockets> =
            config.listen.iter().map(|&address| Sockets::bind(address)).collect::<io::Result<_>>()?;
        let addresses = sockets.iter().map(|sockets| sockets.address).collect();
        let counters = Arc::new(Counters::default());
        let (stop, stopped) = watch::channel(false);
        let (ready, started) = mpsc::sync_channel(1);
        let written = Arc::clone(&counters);
        #[expect(
            clippy::disallowed_methods,
            reason = "a name server has a thread of its own, outside of all event loops"
        )]
        let thread = std::thread::Builder::new().name("dns".to_owned()).spawn(move || {
            let service = QueryService {
                zone: config.zone,
                ttl: config.ttl,
                counters: written,
                connections: Cell::new(0),
            };
            match set_up(sockets) {
                Ok((runtime, sockets)) => {
                    // A failed send means that the starting thread is gone, and then nobody needs the message.
                    let _ = ready.send(Ok(()));
                    runtime.block_on(run(Rc::new(service), sockets, stopped));
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                }
            }
        })?;
        let server = NameServer { addresses, counters, stop, thread: Some(thread) };
        started
            .recv()
            .unwrap_or_else(|_| Err(io::Error::other("the name server ended while it was starting")))?;
        Ok(server)
    }

    /// The addresses on which it listens, in the order of the settings and with actual ports, which are the same for
    /// UDP and TCP.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The counts since its start.
    pub fn snapshot(&self) -> NameServerCounts {
        self.counters.snapshot()
    }

    /// Stops the server and waits for its thread. Counts remain readable.
    pub fn stop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // The panic hook has already reported a panic of the thread.
            let _ = thread.join();
        }
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The two sockets of an address.
struct Sockets {
    address: SocketAddr,
    udp: Socket,
    tcp: Socket,
}

impl Sockets {
    fn bind(address: SocketAddr) -> io::Result<Sockets> {
        let mut tries = if address.port() == 0 { PORT_TRIES } else { 1 };
        loop {
            tries -= 1;
            match Sockets::bind_once(address) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries > 0 => {}
                bound => return bound,
            }
        }
    }

    fn bind_once(wanted: SocketAddr) -> io::Result<Sockets> {
        let domain = Domain::for_address(wanted);
        let udp = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
        udp.set_nonblocking(true)?;
        // The system may provide less; a burst of queries then loses some, as on any network.
        let _ = udp.set_recv_buffer_size(RECEIVE_BUFFER);
        udp.bind(&wanted.into())?;
        let bound = udp.local_addr()?.as_socket();
        let address = bound.ok_or_else(|| io::Error::other("a socket without an internet address"))?;
        let tcp = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
        tcp.set_reuse_address(true)?;
        tcp.set_nonblocking(true)?;
        tcp.bind(&address.into())?;
        tcp.listen(BACKLOG)?;
        Ok(Sockets { address, udp, tcp })
    }
}

fn set_up(sockets: Vec<Sockets>) -> io::Result<(LocalRuntime, Vec<(UdpSocket, TcpListener)>)> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    let entered = runtime.enter();
    let register = |sockets: Sockets| {
        Ok((UdpSocket::from_std(sockets.udp.into())?, TcpListener::from_std(sockets.tcp.into())?))
    };
    let sockets = sockets.into_iter().map(register).collect::<io::Result<_>>()?;
    drop(entered);
    Ok((runtime, sockets))
}

async fn run(
    service: Rc<QueryService>,
    sockets: Vec<(UdpSocket, TcpListener)>,
    mut stopped: watch::Receiver<bool>,
) {
    for (udp, tcp) in sockets {
        tokio::task::spawn_local(datagrams(Rc::clone(&service), udp));
        tokio::task::spawn_local(connections(Rc::clone(&service), tcp));
    }
    // An error means that the handle is gone, which also stops the server. Dropping the runtime drops all tasks.
    let _ = stopped.wait_for(|&stopped| stopped).await;
}

/// The state that the tasks share.
struct QueryService {
    zone: Zone,
    ttl: u32,
    counters: Arc<Counters>,
    connections: Cell<usize>,
}

impl QueryService {
    fn reply(&self, request: &[u8], transport: Transport) -> Option<Vec<u8>> {
        let Some(reply) = reply(&self.zone, self.ttl, request, transport) else {
            self.counters.ignored.add(1);
            return None;
        };
        match transport {
            Transport::Udp => self.counters.udp_queries.add(1),
            Transport::Tcp => self.counters.tcp_queries.add(1),
        }
        self.counters.count(reply.outcome);
        self.counters.truncated.add(reply.truncated.into());
        Some(reply.message)
    }
}

async fn datagrams(service: Rc<QueryService>, socket: UdpSocket) {
    let mut buffer = vec![0; STREAM_LIMIT];
    loop {
        let (length, client) = match socket.recv_from(&mut buffer).await {
            Ok(received) => received,
            // The error may be temporary; the pause keeps the loop from spinning if it is not.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(1)).await;
                continue;
            }
        };
        let Some(message) = service.reply(&buffer[..length], Transport::Udp) else { continue };
        if socket.send_to(&message, client).await.is_err() {
            service.counters.send_errors.add(1);
        }
    }
}

async fn connections(service: Rc<QueryService>, listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) if service.connections.get() < MAX_CONNECTIONS => {
                service.counters.connections.add(1);
                service.connections.set(service.connections.get() + 1);
                let service = Rc::clone(&service);
                tokio::task::spawn_local(async move {
                    // Clients may leave at any time.
                    let _ = converse(&service, stream).await;
                    service.connections.set(service.connections.get() - 1);
                });
            }
            Ok(_) => service.counters.connections_refused.add(1),
            // Usually the process is out of file descriptors, and some must be closed first.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Answers the messages of a connection in order, each preceded by its length (RFC 1035, section 4.2.2).
async fn converse(service: &QueryService, mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut request = Vec::new();
    loop {
        let length = timeout(IDLE_TIMEOUT, stream.read_u16()).await??;
        request.resize(usize::from(length), 0);
        timeout(IDLE_TIMEOUT, stream.read_exact(&mut request)).await??;
        // A client that sends anything but queries is disconnected.
        let Some(message) = service.reply(&request, Transport::Tcp) else { return Ok(()) };
        let mut framed = Vec::with_capacity(message.len() + 2);
        framed.extend_from_slice(&(message.len() as u16).to_be_bytes());
        framed.extend_from_slice(&message);
        timeout(IDLE_TIMEOUT, stream.write_all(&framed))
            .await?
            .inspect_err(|_| service.counters.send_errors.add(1))?;
    }
}
