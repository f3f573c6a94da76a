//! The built-in proxy on sockets: one thread with its own event loop and listening socket each.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread::JoinHandle;

use polygraph_cache::{Counters, Identity, Proxy, ProxyConfig, Shared, Snapshot};
use polygraph_link::{Link, Nanos, SECOND};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch::{Receiver, Sender, channel};

use crate::listen::{self, accept_all};
use crate::net::Net;
use crate::timers::{DEFAULT_QUANTUM, now};
use crate::worker::sweep_deadlines;

/// How long a stop waits for transactions in progress.
const GRACE: Nanos = SECOND;
/// Time between two looks at transactions in progress during a stop.
const STOP_CHECK: Nanos = Nanos::from_millis(2);
/// Time between two looks at idle connections to origins.
const SWEEP: Nanos = SECOND;

/// A running proxy. Dropping it stops it.
#[derive(Debug)]
pub struct ProxyServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<ProxyThread>,
    stop: Sender<bool>,
}

/// What is known of one thread from outside.
#[derive(Debug)]
struct ProxyThread {
    counters: Arc<Counters>,
    cpu: Arc<ThreadCpu>,
    /// `None` after its end.
    handle: Option<JoinHandle<()>>,
}

/// The processor time of a thread.
#[derive(Debug, Default)]
struct ThreadCpu {
    /// Kernel id of the thread, 0 before its start and after its end.
    thread: AtomicU64,
    /// Nanoseconds as the thread published them last: at every sweep, and at its end.
    published_ns: AtomicU64,
}

impl ProxyServer {
    /// Binds, starts the threads and returns at once; requests are served from then on.
    ///
    /// # Errors
    /// `InvalidInput` if the settings make no sense; otherwise if the address cannot be bound, or the system gives no
    /// thread or event queue.
    pub fn start(config: ProxyConfig) -> io::Result<ProxyServer> {
        let (address, loops) = (config.listen, config.loops);
        let shared = Shared::new(config, Identity::unique(), now(), None)
            .map_err(|problem| io::Error::new(io::ErrorKind::InvalidInput, problem))?;
        let (address, sockets) = listen::listen_on_all(address, loops)?;
        let (stop, stopped) = channel(false);
        // From here on an error drops the server, which stops the threads that run already.
        let mut server = ProxyServer { address, shared: Arc::new(shared), threads: Vec::new(), stop };
        for (index, socket) in sockets.into_iter().enumerate() {
            server.start_thread(index, socket, stopped.clone())?;
        }
        Ok(server)
    }

    fn start_thread(&mut self, index: usize, socket: OwnedFd, stopped: Receiver<bool>) -> io::Result<()> {
        let cpu = Arc::new(ThreadCpu::default());
        let (started, ready) = mpsc::sync_channel(1);
        let (shared, of_thread) = (Arc::clone(&self.shared), Arc::clone(&cpu));
        let live = move || {
            of_thread.begin();
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default());
            let _ = match runtime {
                Ok(runtime) => runtime.block_on(live(shared, index, socket, &of_thread, started, stopped)),
                Err(error) => started.send(Err(error)).map_err(io::Error::other),
            };
            of_thread.end();
        };
        let handle = std::thread::Builder::new().name(format!("proxy-{index}")).spawn(live)?;
        let counters = ready
            .recv()
            .unwrap_or_else(|_| Err(io::Error::other("a thread of the proxy ended at its start")));
        match counters {
            Ok(counters) => self.threads.push(ProxyThread { counters, cpu, handle: Some(handle) }),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The address it listens on, with the actual port.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// What it has done and what it stores, at this moment. Cheap enough for every second.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot(self.threads.iter().map(|thread| &*thread.counters))
    }

    /// Processor time of all threads so far, user and system, in seconds.
    pub fn cpu_seconds(&self) -> f64 {
        self.threads.iter().map(|thread| thread.cpu.seconds()).sum()
    }

    /// Stops in order: no new connections, idle ones are closed, transactions in progress have a second to end.
    /// Returns when all threads have ended; figures stay readable.
    pub fn stop(&mut self) {
        self.stop.send_replace(true);
        for handle in self.threads.iter_mut().filter_map(|thread| thread.handle.take()) {
            // A thread that panicked has said so already.
            let _ = handle.join();
        }
    }
}

impl Drop for ProxyServer {
    fn drop(&mut self) {
        self.stop();
    }
}

impl ThreadCpu {
    fn begin(&self) {
        self.thread.store(rustix::thread::gettid().as_raw_nonzero().get() as u64, Relaxed);
    }

    fn publish(&self) {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        self.published_ns
            .store((time.tv_sec as u64 * SECOND + Nanos::new(time.tv_nsec as u64)).as_u64(), Relaxed);
    }

    fn end(&self) {
        self.publish();
        self.thread.store(0, Relaxed);
    }

    /// Asks the kernel while the thread lives (`schedstat` starts with nanoseconds on a processor). Where the kernel
    /// cannot be asked, the published time is at most a sweep old.
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

/// A thread's life, from its first connection to its orderly end.
async fn live(
    shared: Arc<Shared>,
    index: usize,
    socket: OwnedFd,
    cpu: &Arc<ThreadCpu>,
    started: mpsc::SyncSender<io::Result<Arc<Counters>>>,
    mut stopped: Receiver<bool>,
) -> io::Result<()> {
    let net = match Net::new(DEFAULT_QUANTUM, None) {
        Ok(net) => net,
        Err(error) => {
            let _ = started.send(Err(error));
            return Ok(());
        }
    };
    let proxy = Rc::new(Proxy::new(net.clone(), shared, index, Box::new(look_up)));
    // Nobody receives this only if the starting thread is gone, and then nobody needs to know.
    let _ = started.send(Ok(Arc::clone(proxy.counters())));
    let (serving, counting) = (Rc::clone(&proxy), Rc::clone(&proxy));
    let serve = move |socket| Rc::clone(&serving).serve(socket);
    let accepting = accept_all(net.clone(), socket, serve, move |_| counting.count_accept_error());
    let accepting = tokio::task::spawn_local(accepting);
    net.spawn(sweep_deadlines(net.clone()));
    net.spawn(sweep(net.clone(), Rc::clone(&proxy), Arc::clone(cpu)));
    // An error means that the server is gone, which is a stop as well.
    let _ = stopped.wait_for(|&stopped| stopped).await;
    proxy.stop();
    accepting.abort();
    let end = net.now() + GRACE;
    while proxy.active() > 0 && net.now() < end {
        net.sleep_until(net.now() + STOP_CHECK).await;
    }
    // The runtime is dropped next, and with it the remaining connections.
    Ok(())
}

/// Closes idle connections to origins and publishes the processor time, once a second.
async fn sweep(net: Net, proxy: Rc<Proxy<Net>>, cpu: Arc<ThreadCpu>) {
    loop {
        net.sleep_until(net.now() + SWEEP).await;
        proxy.sweep();
        cpu.publish();
    }
}

/// Finds addresses with the system's resolver.
fn look_up(host: &str, port: u16) -> Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>>>> {
    let host = host.to_owned();
    Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
}
