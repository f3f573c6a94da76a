//! The built-in proxy on sockets: one thread with its own event loop and listening socket each.

use std::future::pending;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread::JoinHandle;

use polygraph_cache::{Counters, Identity, Proxy, ProxyConfig, Shared, Snapshot};
use polygraph_link::{Link, Nanos, SECOND, run_until};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::oneshot;
use tokio::sync::watch::{Receiver, Sender, channel};

use crate::event_loop::{Engine, EventLoop};
use crate::listen::{self, AcceptFault, accept_all};
use crate::net::Net;
use crate::timers::{DEFAULT_QUANTUM, now};
use crate::worker::sweep_deadlines;

/// How long a stop waits for transactions in progress.
const GRACE: Nanos = SECOND;
/// Interval between checks of transactions in progress during a stop.
const STOP_CHECK: Nanos = Nanos::from_millis(2);
/// Interval between checks of idle connections to origins.
const SWEEP: Nanos = SECOND;

/// A running proxy. Dropping it stops it.
#[derive(Debug)]
pub struct ProxyServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<ProxyThread>,
    stop: Sender<bool>,
}

/// The handle of one thread.
#[derive(Debug)]
struct ProxyThread {
    counters: Arc<Counters>,
    cpu: Arc<ThreadCpu>,
    /// The thread; `None` after its end.
    handle: Option<JoinHandle<()>>,
}

/// The processor time of a thread.
#[derive(Debug, Default)]
struct ThreadCpu {
    /// Kernel id of the thread, 0 before its start and after its end.
    thread: AtomicU64,
    /// Nanoseconds that the thread published last: at every sweep and at its end.
    published_ns: AtomicU64,
}

impl ProxyServer {
    /// Binds, starts the threads and returns at once; requests are served from then on.
    ///
    /// # Errors
    /// `InvalidInput` if the settings are invalid. Other errors mean that the address cannot be bound, or that the
    /// system cannot provide a thread or an event queue.
    pub fn start(config: ProxyConfig, engine: Engine) -> io::Result<ProxyServer> {
        let (address, loops) = (config.listen, config.loops);
        let shared = Shared::new(config, Identity::unique(), now(), None)
            .map_err(|problem| io::Error::new(io::ErrorKind::InvalidInput, problem))?;
        let (address, sockets) = listen::listen_on_all(address, loops)?;
        let (stop, stopped) = channel(false);
        // From here on an error drops the server, which stops the threads that run already.
        let mut server = ProxyServer { address, shared: Arc::new(shared), threads: Vec::new(), stop };
        for (index, socket) in sockets.into_iter().enumerate() {
            server.start_thread(engine, index, socket, stopped.clone())?;
        }
        Ok(server)
    }

    fn start_thread(
        &mut self,
        engine: Engine,
        index: usize,
        socket: OwnedFd,
        stopped: Receiver<bool>,
    ) -> io::Result<()> {
        let cpu = Arc::new(ThreadCpu::default());
        let (started, ready) = mpsc::sync_channel(1);
        let (shared, of_thread) = (Arc::clone(&self.shared), Arc::clone(&cpu));
        let live = move || {
            of_thread.begin();
            let _ = match EventLoop::new(engine, DEFAULT_QUANTUM, None) {
                Ok(event_loop) => {
                    let net = event_loop.net().clone();
                    event_loop.run(live(net, shared, index, socket, Arc::clone(&of_thread), started, stopped))
                }
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

    /// The address on which the proxy listens, with the actual port.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// The current counts of the proxy. The call is cheap enough to be made every second.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot(self.threads.iter().map(|thread| &*thread.counters))
    }

    /// Processor time of all threads so far, user and system, in seconds.
    pub fn cpu_seconds(&self) -> f64 {
        self.threads.iter().map(|thread| thread.cpu.seconds()).sum()
    }

    /// Stops the proxy in order: it accepts no connections, closes idle ones, and gives transactions in progress a
    /// second to end. Returns when all threads have ended; counts remain readable.
    pub fn stop(&mut self) {
        self.stop.send_replace(true);
        for handle in self.threads.iter_mut().filter_map(|thread| thread.handle.take()) {
            // The panic hook has already reported a panic of the thread.
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

    /// The processor time from the kernel while the thread is running (the first field of `schedstat`, in nanoseconds).
    /// Otherwise the published time, which is at most one sweep old.
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

/// The main function of a thread: serves connections until the proxy is stopped.
async fn live(
    net: Net,
    shared: Arc<Shared>,
    index: usize,
    socket: OwnedFd,
    cpu: Arc<ThreadCpu>,
    started: mpsc::SyncSender<io::Result<Arc<Counters>>>,
    mut stopped: Receiver<bool>,
) {
    let proxy = Rc::new(Proxy::new(net.clone(), shared, index, Box::new(look_up)));
    // The send fails only if the starting thread has ended, which then does not need the message.
    let _ = started.send(Ok(Arc::clone(proxy.counters())));
    let (serving, counting) = (Rc::clone(&proxy), Rc::clone(&proxy));
    let serve = move |socket| Rc::clone(&serving).serve(socket);
    let accepting = accept_all(net.clone(), socket, serve, move |fault| match fault {
        AcceptFault::Refused(_) => counting.count_accept_error(),
        AcceptFault::QueueFull(times) => counting.count_full_queue(times),
    });
    net.spawn(sweep_deadlines(net.clone()));
    net.spawn(sweep(net.clone(), Rc::clone(&proxy), cpu));
    // An error means that the handle was dropped, which also stops the proxy. If accepting ends, the other tasks go on.
    let stopped = async { drop(stopped.wait_for(|&stopped| stopped).await) };
    run_until(stopped, async {
        let _ = accepting.await;
        pending::<()>().await;
    })
    .await;
    proxy.stop();
    let end = net.now() + GRACE;
    while proxy.active() > 0 && net.now() < end {
        net.sleep_until(net.now() + STOP_CHECK).await;
    }
    // The loop ends next, and with it the remaining connections.
}

/// Closes idle connections to origins and publishes the processor time, once a second.
async fn sweep(net: Net, proxy: Rc<Proxy<Net>>, cpu: Arc<ThreadCpu>) {
    loop {
        net.sleep_until(net.now() + SWEEP).await;
        proxy.sweep();
        cpu.publish();
    }
}

/// Finds addresses with the system's resolver, which blocks, on its own thread.
fn look_up(host: &str, port: u16) -> Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>>>> {
    let host = host.to_owned();
    Box::pin(async move {
        let (tell, told) = oneshot::channel();
        std::thread::Builder::new().name("resolver".to_owned()).spawn(move || {
            let found = (host.as_str(), port).to_socket_addrs().map(Iterator::collect);
            // Nobody asks any more if the transaction was given up.
            drop(tell.send(found));
        })?;
        told.await.map_err(io::Error::other)?
    })
}
