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
use crate::network::Network;
use crate::tasks::Tasks;
use crate::timers::Alarm;

/// Tasks that get so many turns in one moment will never wait: even a hundred thousand robots need less.
const MOST_TURNS: u64 = 2_000_000;

/// Takes connections in; its second argument is the address that they go to.
type Accept = dyn Fn(VirtualConn, SocketAddr);
/// Answers a datagram, or not.
type Answer = dyn Fn(&[u8]) -> Option<Vec<u8>>;

/// A loop with a virtual clock. Clones are handles to the same loop.
///
/// Tasks keep their loop alive and the loop keeps its tasks: [`VirtualLink::end`] lets go of both.
#[derive(Clone)]
pub struct VirtualLink(Rc<World>);

struct World {
    network: Rc<Network>,
    /// The time of day when the clock shows 0, in seconds since 1970.
    epoch: u64,
    tasks: Tasks,
    listeners: RefCell<FxHashMap<SocketAddr, Rc<Accept>>>,
    /// Listens at all other addresses.
    anywhere: RefCell<Option<Rc<Accept>>>,
    name_servers: RefCell<FxHashMap<SocketAddr, Rc<Answer>>>,
    /// From then on there is no local port.
    no_port_from: Cell<Nanos>,
    /// The second for which the date is written, and the date.
    date: Cell<(u64, [u8; 29])>,
}

impl fmt::Debug for VirtualLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualLink").field("now", &self.0.network.now.get()).finish_non_exhaustive()
    }
}

impl VirtualLink {
    /// A loop whose clock shows 0 when the time of day is `epoch` (seconds since 1970).
    pub fn new(epoch: u64) -> VirtualLink {
        VirtualLink(Rc::new(World {
            network: Rc::default(),
            epoch,
            tasks: Tasks::default(),
            listeners: RefCell::default(),
            anywhere: RefCell::default(),
            name_servers: RefCell::default(),
            no_port_from: Cell::new(Nanos::MAX),
            date: Cell::new((u64::MAX, [b' '; 29])),
        }))
    }

    /// Runs all tasks until `until`; then the clock shows that. False if it will never come to that, because tasks go
    /// on and on in the same moment.
    pub fn run(&self, until: Nanos) -> bool {
        let world = &self.0;
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

    /// Ends all tasks and forgets all listeners.
    pub fn end(&self) {
        self.0.tasks.clear();
        self.0.listeners.borrow_mut().clear();
        self.0.name_servers.borrow_mut().clear();
        *self.0.anywhere.borrow_mut() = None;
    }

    /// Hands every connection to `address` over to `accept`; an unspecified address stands for all of its kind.
    pub fn listen(&self, address: SocketAddr, accept: impl Fn(VirtualConn, SocketAddr) + 'static) {
        self.0.listeners.borrow_mut().insert(address, Rc::new(accept));
    }

    /// Hands every connection to an address where nobody listens over to `accept`.
    pub fn listen_anywhere(&self, accept: impl Fn(VirtualConn, SocketAddr) + 'static) {
        *self.0.anywhere.borrow_mut() = Some(Rc::new(accept));
    }

    /// Answers datagrams to `address`.
    pub fn answer_at(&self, address: SocketAddr, answer: impl Fn(&[u8]) -> Option<Vec<u8>> + 'static) {
        self.0.name_servers.borrow_mut().insert(address, Rc::new(answer));
    }

    /// From now on everything takes so long from one end of the network to the other.
    pub fn set_delay(&self, delay: Nanos) {
        self.0.network.delay.set(delay);
    }

    /// From `at` on no connection can be opened for want of local ports.
    pub fn run_out_of_ports(&self, at: Nanos) {
        self.0.no_port_from.set(at);
    }

    /// The two ends of a new connection.
    pub fn pair(&self) -> (VirtualConn, VirtualConn) {
        VirtualConn::pair(&self.0.network)
    }
}

/// The address that stands for all addresses of the same kind.
fn unspecified(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// Someone who sleeps.
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
        let timers = &self.link.0.network.timers;
        if !self.alarm.is_some_and(|alarm| timers.redirect(alarm, cx.waker())) {
            self.alarm = Some(timers.set(self.at, cx.waker()));
        }
        Poll::Pending
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        if let Some(alarm) = self.alarm {
            self.link.0.network.timers.cancel(alarm);
        }
    }
}

impl Link for VirtualLink {
    type Conn = VirtualConn;

    fn now(&self) -> Nanos {
        self.0.network.now.get()
    }

    fn http_date(&self) -> [u8; 29] {
        let second = self.0.epoch + self.now() / SECOND;
        let (written, date) = self.0.date.get();
        if written == second {
            return date;
        }
        let date = date::text(second);
        self.0.date.set((second, date));
        date
    }

    fn unix_seconds(&self) -> i64 {
        (self.0.epoch + self.now() / SECOND) as i64
    }

    fn unix_millis(&self) -> u64 {
        self.0.epoch * 1000 + self.now() / (SECOND / 1000)
    }

    async fn sleep_until(&self, at: Nanos) {
        let mut sleep = Sleep { link: self, at, alarm: None };
        poll_fn(|cx| sleep.poll(cx)).await;
    }

    fn connect(&self, _: Option<IpAddr>, to: SocketAddr) -> Result<VirtualConn, ConnectError> {
        if self.now() >= self.0.no_port_from.get() {
            return Err(ConnectError::NoPort);
        }
        let listeners = self.0.listeners.borrow();
        let any = SocketAddr::new(unspecified(to.ip()), to.port());
        let listener = listeners.get(&to).or_else(|| listeners.get(&any)).map(Rc::clone);
        drop(listeners);
        let accept = listener.or_else(|| self.0.anywhere.borrow().as_ref().map(Rc::clone));
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
        let answer = self.0.name_servers.borrow().get(&server).map(Rc::clone);
        let Some(answer) = answer else { return Err(io::ErrorKind::ConnectionRefused.into()) };
        let limit = until.unwrap_or(Nanos::MAX);
        let reply = answer(datagram);
        self.sleep_until((self.now() + 2 * self.0.network.delay.get()).min(limit)).await;
        if self.now() < limit
            && let Some(result) = reply.and_then(|reply| accept(&reply))
        {
            return Ok(result);
        }
        self.sleep_until(limit).await;
        Err(io::ErrorKind::TimedOut.into())
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.0.tasks.spawn(task);
    }
}
