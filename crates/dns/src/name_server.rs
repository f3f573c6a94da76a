//! A name server with a thread of its own: one event loop for UDP and TCP.

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

/// Bytes of queries that the kernel holds for us, per address: some thousand of them.
const RECEIVE_BUFFER: usize = 1 << 20;
/// TCP connections open at a time; more are closed at once (RFC 7766 section 6.2.2).
const MAX_CONNECTIONS: usize = 256;
/// Connections the kernel may hold for us until they are accepted.
const BACKLOG: i32 = 128;
/// How long a connection may say nothing, or take for a message (RFC 7766 section 6.2.3: a few seconds).
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// How often another port is tried if the system's choice for UDP is in use for TCP.
const PORT_TRIES: usize = 20;

/// Settings of a [`NameServer`].
#[derive(Debug)]
pub struct NameServerConfig {
    /// Addresses to listen on, at least one; with port 0 the system chooses one for UDP and TCP. Replies come
    /// from the address that was asked only if that is named here: clients check it.
    pub listen: Vec<SocketAddr>,
    /// Time to live of answers and of the absence of names, in seconds.
    pub ttl: u32,
    /// The names.
    pub zone: Zone,
}

impl NameServerConfig {
    /// On the loopback address at a port of the system's choice, answers good for an hour.
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
    /// Binds, starts the thread and returns; queries are answered from then on.
    ///
    /// # Errors
    /// If there is no address (`InvalidInput`), one cannot be bound (ports below 1024 need a privilege), or the
    /// system gives no thread or event queue.
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
                    // Nobody listens only if the starting thread is gone, and then nobody needs to know.
                    let _ = ready.send(Ok(()));
                    runtime.block_on(run(Rc::new(service), sockets, stopped));
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                }
            }
        })?;
        let server = NameServer { addresses, counters, stop, thread: Some(thread) };
        started.recv().unwrap_or_else(|_| Err(io::Error::other("the name server ended at its start")))?;
        Ok(server)
    }

    /// The addresses it listens on, in the order of the settings, with actual ports; the same for UDP and TCP.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What it has done so far.
    pub fn snapshot(&self) -> NameServerCounts {
        self.counters.snapshot()
    }

    /// Stops and returns when its thread has ended; figures stay readable.
    pub fn stop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so on its own.
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
        // The system may give less; queries that come all at once are lost then, as on any network.
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
    // An error means that the handle is gone, which is a stop as well. The runtime is dropped next, and with
    // it all tasks.
    let _ = stopped.wait_for(|&stopped| stopped).await;
}

/// What the tasks share.
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
            // The next datagram may be better; if it is not, the loop must not spin.
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
                    // Clients may leave at any time, and nobody needs to know how.
                    let _ = converse(&service, stream).await;
                    service.connections.set(service.connections.get() - 1);
                });
            }
            Ok(_) => service.counters.connections_refused.add(1),
            // As a rule the process is out of file descriptors: some have to be closed first.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Answers the messages of a connection in their order, each behind its length (RFC 1035 section 4.2.2).
async fn converse(service: &QueryService, mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut request = Vec::new();
    loop {
        let length = timeout(IDLE_TIMEOUT, stream.read_u16()).await??;
        request.resize(usize::from(length), 0);
        timeout(IDLE_TIMEOUT, stream.read_exact(&mut request)).await??;
        // Who sends something else than queries has nothing more to say.
        let Some(message) = service.reply(&request, Transport::Tcp) else { return Ok(()) };
        let mut framed = Vec::with_capacity(message.len() + 2);
        framed.extend_from_slice(&(message.len() as u16).to_be_bytes());
        framed.extend_from_slice(&message);
        timeout(IDLE_TIMEOUT, stream.write_all(&framed))
            .await?
            .inspect_err(|_| service.counters.send_errors.add(1))?;
    }
}
