//! What tests over real sockets need: a loop with a resolver, and servers that misbehave.

use polygraph_link::Nanos;
use std::cell::RefCell;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

use polygraph_dns::{AddressCache, QueryType, Resolver, ResolverConfig, ResolverStats};
use polygraph_engine::net::Net;
use polygraph_engine::timers::DEFAULT_QUANTUM;

/// Runs a test on an event loop.
pub fn on_a_loop(test: impl AsyncFnOnce(Net)) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default()).unwrap();
    runtime.block_on(async {
        let net = Net::on_epoll(DEFAULT_QUANTUM, None).unwrap();
        // A test that hangs is a failure.
        tokio::time::timeout(Duration::from_secs(30), test(net)).await.unwrap();
    });
}

/// A resolver and its counts.
pub fn resolver(
    net: &Net,
    servers: &[SocketAddr],
    timeout_ms: u64,
    cache: AddressCache,
) -> (Resolver<Net>, Rc<RefCell<ResolverStats>>) {
    let config = ResolverConfig {
        servers: servers.to_vec(),
        timeout: Some(Nanos::new(timeout_ms * 1_000_000)),
        query_type: QueryType::A,
    };
    let stats = Rc::new(RefCell::new(ResolverStats::default()));
    (Resolver::new(net.clone(), Rc::new(config), cache, Rc::clone(&stats), 1), stats)
}

/// A server that does what the test says.
pub struct Fake {
    pub address: SocketAddr,
    asked: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Fake {
    /// Sends back the datagrams that `behave` makes of each query.
    pub fn start(behave: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> Fake {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let address = socket.local_addr().unwrap();
        let (asked, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, stopped) = (Arc::clone(&asked), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 2000];
            while !stopped.load(SeqCst) {
                let Ok((length, client)) = socket.recv_from(&mut buffer) else { continue };
                count.fetch_add(1, SeqCst);
                for datagram in behave(&buffer[..length]) {
                    socket.send_to(&datagram, client).unwrap();
                }
            }
        });
        Fake { address, asked, stop, thread: Some(thread) }
    }

    /// Number of queries it got.
    pub fn asked(&self) -> usize {
        self.asked.load(SeqCst)
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        let _ = self.thread.take().unwrap().join();
    }
}

/// An address at which nobody listens.
pub fn nobody() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
