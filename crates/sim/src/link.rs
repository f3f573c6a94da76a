//! The virtual loop and its network.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::task::Poll;

use polygraph_link::{ConnectError, Link, Nanos, SECOND};
use polygraph_wire::date;
use rustc_hash::FxHashMap;

use crate::conn::VirtualConn;
use crate::datagrams::{Exchange, VirtualDatagrams};
use crate::network::Network;
use crate::tasks::Tasks;
use crate::timers::Alarm;

/// Maximum number of turns of tasks at one moment. Tasks that exceed it would never wait: even a hundred thousand
/// robots need fewer.
const MOST_TURNS: u64 = 2_000_000;

/// Accepts connections; the second argument is the destination address.
type Accept = dyn Fn(VirtualConn, SocketAddr);
/// Answers a datagram, or ignores it.
type Answer = dyn Fn(&[u8]) -> Option<Vec<u8>>;

/// A loop with a virtual clock. Clones are handles to the same loop.
///
/// Tasks own a handle of their loop, and the loop owns its tasks; [`VirtualLink::end`] breaks this cycle.
#[derive(Clone)]
pub struct VirtualLink {
    world: Rc<World>,
    /// The number of the handle and its clones.
    handle: u32,
}

struct World {
    network: Rc<Network>,
    datagrams: Rc<Exchange>,
    /// The time of day at time 0 of the clock, in seconds since 1970.
    epoch: u64,
    tasks: Tasks,
    listeners: RefCell<FxHashMap<SocketAddr, Rc<Accept>>>,
    /// The listener for all other addresses.
    anywhere: RefCell<Option<Rc<Accept>>>,
    name_servers: RefCell<FxHashMap<SocketAddr, Rc<Answer>>>,
    /// The time from which no local port is available.
    no_port_from: Cell<Nanos>,
    /// The second of the cached date, and the date.
    date: Cell<(u64, [u8; 29])>,
}

impl fmt::Debug for VirtualLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualLink").field("now", &self.world.network.now.get()).finish_non_exhaustive()
    }
}

impl VirtualLink {
    /// A loop whose clock starts at 0 with the time of day `epoch` (seconds since 1970).
    pub fn new(epoch: u64) -> VirtualLink {
        let network = Rc::<Network>::default();
        let handle = network.disturbed.enter();
        let world = World {
            network,
            datagrams: Rc::default(),
            epoch,
            tasks: Tasks::default(),
            listeners: RefCell::default(),
            anywhere: RefCell::default(),
            name_servers: RefCell::default(),
            no_port_from: Cell::new(Nanos::MAX),
            date: Cell::new((u64::MAX, [b' '; 29])),
        };
        VirtualLink { world: Rc::new(world), handle }
    }

    /// Runs all tasks until the time `until`, which the clock then shows. Returns false if this time is never reached,
    /// because tasks keep running at the same moment.
    pub fn run(&self, until: Nanos) -> bool {
        let world = &self.world;
        loop {
            if !world.tasks.run(MOST_TURNS) {
                return false;
            }
            match world.network.timers.next() {
                Some(next) if next <= until => {
                    world.network.now.set(next.max(world.network.now.get()));
                    world.network.timers.strike(world.network.now.get());
                }
                _ => break,
            }
        }
        world.network.now.set(until.max(world.network.now.get()));
        true
    }

    /// Ends all tasks and removes all listeners.
    pub fn end(&self) {
        self.world.tasks.clear();
        self.world.listeners.borrow_mut().clear();
        self.world.name_servers.borrow_mut().clear();
        *self.world.anywhere.borrow_mut() = None;
    }

    /// Passes every connection to `address` to `accept`; an unspecified address represents all addresses of its family.
    pub fn listen(&self, address: SocketAddr, accept: impl Fn(VirtualConn, SocketAddr) + 'static) {
        self.world.listeners.borrow_mut().insert(address, Rc::new(accept));
    }

    /// Passes every connection to an address without a listener to `accept`.
    pub fn listen_anywhere(&self, accept: impl Fn(VirtualConn, SocketAddr) + 'static) {
        *self.world.anywhere.borrow_mut() = Some(Rc::new(accept));
    }

    /// Answers datagrams to `address`.
    pub fn answer_at(&self, address: SocketAddr, answer: impl Fn(&[u8]) -> Option<Vec<u8>> + 'static) {
        self.world.name_servers.borrow_mut().insert(address, Rc::new(answer));
    }

    /// Sets the delay of the network in one direction.
    pub fn set_delay(&self, delay: Nanos) {
        self.world.network.delay.set(delay);
    }

    /// From the time `at` on, no connection can be opened because local ports have run out.
    pub fn run_out_of_ports(&self, at: Nanos) {
        self.world.no_port_from.set(at);
    }

    /// A UDP socket that receives datagrams at `address`.
    ///
    /// # Errors
    /// If there is a socket at this address.
    pub fn bind_datagrams(&self, address: SocketAddr) -> io::Result<VirtualDatagrams> {
        self.world.datagrams.open(&self.world.network, address)
    }

    /// From now on, one of `n` datagrams is lost; none if `n` is 0.
    pub fn lose_one_of(&self, n: u64) {
        self.world.datagrams.lose_one_of(n);
    }

    /// From now on, datagrams of more than `size` bytes are lost.
    pub fn lose_larger_than(&self, size: usize) {
        self.world.datagrams.lose_larger_than(size);
    }

    /// From now on, the datagrams that `forge` makes of each one arrive before it, as if its sender had sent them.
    pub fn forge(&self, forge: impl FnMut(&[u8]) -> Vec<Vec<u8>> + 'static) {
        self.world.datagrams.forge(Box::new(forge));
    }

    /// The two ends of a new connection.
    pub fn pair(&self) -> (VirtualConn, VirtualConn) {
        VirtualConn::pair(&self.world.network, self.handle)
    }
}

/// The unspecified address of the same family.
fn unspecified(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// A sleeping task.
struct Sleep<'a> {
    link: &'a VirtualLink,
    at: Nanos,
    alarm: Option<Alarm>,
}

impl Sleep<'_> {
    fn poll(&mut self, cx: &mut std::task::Context<'_>) -> Poll<()> {
        if self.link.now() >= self.at {
            return Poll::Ready(());
        }
        let timers = &self.link.world.network.timers;
        if !self.alarm.is_some_and(|alarm| timers.redirect(alarm, cx.waker())) {
            self.alarm = Some(timers.set(self.at, cx.waker()));
        }
        Poll::Pending
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        if let Some(alarm) = self.alarm {
            self.link.world.network.timers.cancel(alarm);
        }
    }
}

impl Link for VirtualLink {
    type Conn = VirtualConn;
    type Datagrams = VirtualDatagrams;

    fn now(&self) -> Nanos {
        self.world.network.now.get()
    }

    fn http_date(&self) -> [u8; 29] {
        let second = self.world.epoch + self.now() / SECOND;
        let (written, date) = self.world.date.get();
        if written == second {
            return date;
        }
        let date = date::text(second);
        self.world.date.set((second, date));
        date
    }

    fn unix_seconds(&self) -> i64 {
        (self.world.epoch + self.now() / SECOND) as i64
    }

    fn unix_millis(&self) -> u64 {
        self.world.epoch * 1000 + self.now() / (SECOND / 1000)
    }

    async fn sleep_until(&self, at: Nanos) {
        let mut sleep = Sleep { link: self, at, alarm: None };
        poll_fn(|cx| sleep.poll(cx)).await;
    }

    fn connect(&self, _: Option<IpAddr>, to: SocketAddr) -> Result<VirtualConn, ConnectError> {
        if self.now() >= self.world.no_port_from.get() {
            return Err(ConnectError::NoPort);
        }
        let listeners = self.world.listeners.borrow();
        let any = SocketAddr::new(unspecified(to.ip()), to.port());
        let listener = listeners.get(&to).or_else(|| listeners.get(&any)).map(Rc::clone);
        drop(listeners);
        let accept = listener.or_else(|| self.world.anywhere.borrow().as_ref().map(Rc::clone));
        let Some(accept) = accept else {
            return Err(ConnectError::Refused(io::ErrorKind::ConnectionRefused));
        };
        let (ours, theirs) = self.pair();
        accept(theirs, to);
        Ok(ours)
    }

    async fn exchange_datagram<R>(
        &self,
        _: Option<IpAddr>,
        server: SocketAddr,
        datagram: &[u8],
        until: Option<Nanos>,
        mut accept: impl FnMut(&[u8]) -> Option<R>,
    ) -> io::Result<R> {
        let answer = self.world.name_servers.borrow().get(&server).map(Rc::clone);
        let Some(answer) = answer else { return Err(io::ErrorKind::ConnectionRefused.into()) };
        let limit = until.unwrap_or(Nanos::MAX);
        let reply = answer(datagram);
        self.sleep_until((self.now() + 2 * self.world.network.delay.get()).min(limit)).await;
        if self.now() < limit
            && let Some(result) = reply.and_then(|reply| accept(&reply))
        {
            return Ok(result);
        }
        self.sleep_until(limit).await;
        Err(io::ErrorKind::TimedOut.into())
    }

    fn connect_datagrams(
        &self,
        from: Option<IpAddr>,
        to: SocketAddr,
    ) -> Result<VirtualDatagrams, ConnectError> {
        let from = SocketAddr::new(from.unwrap_or(unspecified(to.ip())), 0);
        self.bind_datagrams(from).map_err(|_| ConnectError::NoPort)
    }

    fn separate(&self) -> VirtualLink {
        VirtualLink { world: Rc::clone(&self.world), handle: self.world.network.disturbed.enter() }
    }

    fn take_disturbed(&self) -> Option<Vec<u32>> {
        Some(self.world.network.disturbed.take(self.handle, self.now()))
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.world.tasks.spawn(task);
    }
}
