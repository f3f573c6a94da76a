//! Starting and stopping: one thread with its own loop and listening socket each.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::sync::watch;

use crate::client::{refuse, serve};
use crate::config::ProxyConfig;
use crate::counters::{Counters, Snapshot};
use crate::service::Service;
use crate::store::Store;
use crate::worker::{Common, Worker};

/// Connections the kernel may hold for us until they are accepted.
const BACKLOG: i32 = 4096;
/// Refused connections that are told so politely at a time, per loop; more are just closed.
const MAX_REFUSALS: usize = 64;
/// How long a stop waits for transactions under way.
const GRACE: Duration = Duration::from_secs(1);
/// How often idle connections to origins are looked through.
const SWEEP: Duration = Duration::from_secs(1);

/// A running proxy. Dropping it stops it.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    common: Arc<Common>,
    open: Arc<AtomicU64>,
    loops: Vec<Loop>,
    stop: watch::Sender<bool>,
}

/// What the handle knows of one loop.
#[derive(Debug)]
struct Loop {
    counters: Arc<Counters>,
    cpu: Arc<Cpu>,
    thread: Option<JoinHandle<()>>,
}

/// The CPU time of a loop's thread.
#[derive(Debug, Default)]
struct Cpu {
    /// Kernel id of the thread, 0 before its start and after its end.
    thread: AtomicU64,
    /// Nanoseconds as the thread said last: at every sweep, and at its end.
    published_ns: AtomicU64,
}

impl Proxy {
    /// Binds, starts the threads and returns at once; requests are served from then on.
    ///
    /// # Errors
    /// If the settings make no sense (`InvalidInput`), the address cannot be bound, or the system gives no
    /// thread or event queue.
    pub fn start(config: ProxyConfig) -> io::Result<Proxy> {
        if let Some(problem) = config.problem() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let sockets = listen(&config)?;
        let address = local_address(&sockets[0])?;
        let now = Instant::now();
        let common = Arc::new(Common {
            store: Arc::new(Store::new(config.cache_bytes)),
            service: Service::new(config.service.clone(), now),
            secret: unique_number(),
            name: format!("polygraph-{:08x}", unique_number() as u32),
            config,
        });
        let open = Arc::new(AtomicU64::new(0));
        let (stop, stopped) = watch::channel(false);
        // From here on an error drops the handle, which stops the loops that run already.
        let mut proxy = Proxy { address, common, open, loops: Vec::new(), stop };
        for (index, socket) in sockets.into_iter().enumerate() {
            proxy.start_loop(index, socket, stopped.clone())?;
        }
        Ok(proxy)
    }

    fn start_loop(&mut self, index: usize, socket: Socket, stopped: watch::Receiver<bool>) -> io::Result<()> {
        let counters = Arc::new(Counters::default());
        let cpu = Arc::new(Cpu::default());
        let (ready, started) = mpsc::sync_channel(1);
        let parts =
            (Arc::clone(&self.common), Arc::clone(&counters), Arc::clone(&cpu), Arc::clone(&self.open));
        let thread = std::thread::Builder::new().name(format!("proxy-{index}")).spawn(move || {
            let (common, counters, cpu, open) = parts;
            cpu.begin();
            match set_up(socket) {
                Ok((runtime, listener)) => {
                    // Nobody listens only if the starting thread is gone, and then nobody needs to know.
                    let _ = ready.send(Ok(()));
                    let worker = Rc::new(Worker::new(common, counters, index));
                    runtime.block_on(run(worker, listener, open, Arc::clone(&cpu), stopped));
                }
                Err(error) => {
                    let _ = ready.send(Err(error));
                }
            }
            cpu.end();
        })?;
        self.loops.push(Loop { counters, cpu, thread: Some(thread) });
        started.recv().unwrap_or_else(|_| Err(io::Error::other("a loop of the proxy ended at its start")))
    }

    /// The address it listens on, with the actual port.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// What it has done and what it holds, at this moment. Cheap enough for every second.
    pub fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for one in &self.loops {
            snapshot.add(&one.counters);
        }
        let store = self.common.store.figures();
        snapshot.client_connections = self.open.load(Relaxed);
        snapshot.store_bytes = store.bytes;
        snapshot.store_objects = store.objects;
        snapshot.evicted = store.evicted;
        snapshot
    }

    /// CPU time of all loops so far, user and system, in seconds.
    pub fn cpu_seconds(&self) -> f64 {
        self.loops.iter().map(|one| one.cpu.seconds()).sum()
    }

    /// Stops in order: no new connections, idle ones are closed, transactions under way have a second to end.
    /// Returns when all threads have ended; figures stay readable.
    pub fn stop(&mut self) {
        self.stop.send_replace(true);
        for thread in self.loops.iter_mut().filter_map(|one| one.thread.take()) {
            // A loop that panicked has said so on its own.
            let _ = thread.join();
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Cpu {
    fn begin(&self) {
        self.thread.store(rustix::thread::gettid().as_raw_nonzero().get() as u64, Relaxed);
    }

    fn publish(&self) {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        self.published_ns.store(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64, Relaxed);
    }

    fn end(&self) {
        self.publish();
        self.thread.store(0, Relaxed);
    }

    /// Asks the kernel while the thread lives (`schedstat` begins with nanoseconds on a CPU); where it cannot
    /// be asked, what the thread said last is at most a sweep old.
    fn seconds(&self) -> f64 {
        let published = self.published_ns.load(Relaxed);
        let current = match self.thread.load(Relaxed) {
            0 => None,
            thread => std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok(),
        };
        let current = current.and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        current.unwrap_or(published).max(published) as f64 / 1e9
    }
}

/// One listening socket per loop, all on the same address.
fn listen(config: &ProxyConfig) -> io::Result<Vec<Socket>> {
    if config.loops > 1 && config.listen.port() != 0 {
        // Sockets that share a port would also share it with another proxy of the same user, and each would
        // get a part of the connections. A socket that does not share finds out.
        drop(bind(config.listen, false)?);
    }
    let first = bind(config.listen, config.loops > 1)?;
    let address = local_address(&first)?;
    let mut sockets = vec![first];
    while sockets.len() < config.loops {
        sockets.push(bind(address, true)?);
    }
    Ok(sockets)
}

fn bind(address: SocketAddr, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

fn local_address(socket: &Socket) -> io::Result<SocketAddr> {
    socket.local_addr()?.as_socket().ok_or_else(|| io::Error::other("a socket without an internet address"))
}

fn unique_number() -> u64 {
    use std::hash::BuildHasher;
    std::hash::RandomState::new().hash_one(std::process::id())
}

fn set_up(socket: Socket) -> io::Result<(LocalRuntime, TcpListener)> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    let _entered = runtime.enter();
    let listener = TcpListener::from_std(socket.into())?;
    drop(_entered);
    Ok((runtime, listener))
}

/// A loop's life, from its first connection to its orderly end.
async fn run(
    worker: Rc<Worker>,
    listener: TcpListener,
    open: Arc<AtomicU64>,
    cpu: Arc<Cpu>,
    mut stopped: watch::Receiver<bool>,
) {
    let accepting = tokio::task::spawn_local(accept(Rc::clone(&worker), listener, open));
    let sweeping = tokio::task::spawn_local(sweep(Rc::clone(&worker), cpu));
    // An error means that the handle is gone, which is a stop as well.
    let _ = stopped.wait_for(|&stopped| stopped).await;
    worker.stopping.set(true);
    accepting.abort();
    sweeping.abort();
    let end = Instant::now() + GRACE;
    while worker.active.get() > 0 && Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    // The runtime is dropped next, and with it the remaining connections.
}

async fn sweep(worker: Rc<Worker>, cpu: Arc<Cpu>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        worker.origins.sweep(worker.common.config.idle_timeout);
        cpu.publish();
    }
}

async fn accept(worker: Rc<Worker>, listener: TcpListener, open: Arc<AtomicU64>) {
    let limit = worker.common.config.max_connections as u64;
    let refusals = Rc::new(());
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(_) => {
                // As a rule the process is out of file descriptors: some have to be closed first.
                worker.counters.accept_errors.add(1);
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        // Without it small replies would wait for the client's acknowledgements; a failure is no reason to stop.
        let _ = stream.set_nodelay(true);
        let place = Place(Arc::clone(&open));
        if open.fetch_add(1, Relaxed) < limit {
            worker.counters.accepted.add(1);
            let worker = Rc::clone(&worker);
            tokio::task::spawn_local(async move {
                serve(worker, stream).await;
                drop(place);
            });
        } else {
            drop(place);
            worker.counters.refused.add(1);
            if Rc::strong_count(&refusals) <= MAX_REFUSALS {
                let (worker, refusal) = (Rc::clone(&worker), Rc::clone(&refusals));
                tokio::task::spawn_local(async move {
                    refuse(worker, stream).await;
                    drop(refusal);
                });
            }
        }
    }
}

/// One of the connections that may be open.
struct Place(Arc<AtomicU64>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
