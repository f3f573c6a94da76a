//! UDP sockets in memory. Datagrams arrive after the delay of the network, in the order in which they were sent, except those that
//! the network loses.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use polygraph_link::{Datagrams, IncomingDatagrams, Nanos, OutgoingDatagrams};
use rustc_hash::FxHashMap;

use crate::network::Network;
use crate::timers::Alarm;

/// Number of bytes that may wait at a socket; more are lost, as with sockets of the system.
const MOST_WAITING: usize = 4 << 20;

/// The sockets of a virtual network by their address.
#[derive(Default)]
pub struct Exchange {
    sockets: RefCell<FxHashMap<SocketAddr, Rc<Inbox>>>,
    /// The next local port.
    port: Cell<u16>,
    sent: Cell<u64>,
    /// One of so many datagrams is lost; 0: none.
    loses_one_of: Cell<u64>,
    /// Larger datagrams are lost; `None`: none.
    largest: Cell<Option<usize>>,
    /// Makes further datagrams of each one.
    forge: RefCell<Option<Forge>>,
}

type Forge = Box<dyn FnMut(&[u8]) -> Vec<Vec<u8>>>;

#[derive(Default)]
struct Inbox {
    waiting: RefCell<VecDeque<Letter>>,
    bytes: Cell<usize>,
    reader: RefCell<Option<Waker>>,
}

struct Letter {
    at: Nanos,
    from: SocketAddr,
    segment: usize,
    bytes: Vec<u8>,
}

/// A UDP socket. Dropping it closes it.
pub struct VirtualDatagrams {
    network: Rc<Network>,
    exchange: Rc<Exchange>,
    address: SocketAddr,
    inbox: Rc<Inbox>,
    alarm: Cell<Option<Alarm>>,
}

impl fmt::Debug for VirtualDatagrams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualDatagrams").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Exchange {
    /// From now on, one of `n` datagrams is lost; none if `n` is 0.
    pub fn lose_one_of(&self, n: u64) {
        self.loses_one_of.set(n);
    }

    /// From now on, datagrams of more than `size` bytes are lost.
    pub fn lose_larger_than(&self, size: usize) {
        self.largest.set(Some(size));
    }

    /// From now on, what `forge` makes of each datagram arrives before it.
    pub fn forge(&self, forge: Forge) {
        *self.forge.borrow_mut() = Some(forge);
    }

    /// A socket at `address`. With port 0, it gets its own port.
    ///
    /// # Errors
    /// If there is a socket at this address.
    pub fn open(
        self: &Rc<Exchange>,
        network: &Rc<Network>,
        mut address: SocketAddr,
    ) -> io::Result<VirtualDatagrams> {
        let mut sockets = self.sockets.borrow_mut();
        for _ in 0..=u16::MAX {
            if address.port() != 0 {
                break;
            }
            self.port.set(self.port.get().wrapping_add(1).max(1024));
            let free = SocketAddr::new(address.ip(), self.port.get());
            if !sockets.contains_key(&free) {
                address = free;
            }
        }
        if address.port() == 0 || sockets.contains_key(&address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let inbox = Rc::<Inbox>::default();
        sockets.insert(address, Rc::clone(&inbox));
        Ok(VirtualDatagrams {
            network: Rc::clone(network),
            exchange: Rc::clone(self),
            address,
            inbox,
            alarm: Cell::new(None),
        })
    }
}

impl Drop for VirtualDatagrams {
    fn drop(&mut self) {
        self.exchange.sockets.borrow_mut().remove(&self.address);
        if let Some(alarm) = self.alarm.get() {
            self.network.timers.cancel(alarm);
        }
    }
}

impl Datagrams for VirtualDatagrams {
    fn most_segments(&self) -> usize {
        10
    }

    fn keeps_whole(&self) -> bool {
        true
    }

    fn try_send(&self, datagrams: &OutgoingDatagrams<'_>) -> io::Result<()> {
        let exchange = &self.exchange;
        let receiver = exchange.sockets.borrow().get(&datagrams.to).map(Rc::clone);
        let Some(receiver) = receiver else { return Err(io::ErrorKind::ConnectionRefused.into()) };
        for bytes in datagrams.bytes.chunks(datagrams.segment.unwrap_or(datagrams.bytes.len()).max(1)) {
            exchange.sent.set(exchange.sent.get() + 1);
            let n = exchange.loses_one_of.get();
            let is_large = exchange.largest.get().is_some_and(|largest| bytes.len() > largest);
            let is_lost = is_large || n > 0 && exchange.sent.get().is_multiple_of(n);
            let forged = exchange.forge.borrow_mut().as_mut().map(|forge| forge(bytes)).unwrap_or_default();
            let sent = (!is_lost).then(|| bytes.to_vec());
            for bytes in forged.into_iter().chain(sent) {
                if receiver.bytes.get() + bytes.len() > MOST_WAITING {
                    continue;
                }
                receiver.bytes.set(receiver.bytes.get() + bytes.len());
                receiver.waiting.borrow_mut().push_back(Letter {
                    at: self.network.arrival(),
                    from: self.address,
                    segment: bytes.len(),
                    bytes,
                });
            }
        }
        if let Some(reader) = receiver.reader.take() {
            reader.wake();
        }
        Ok(())
    }

    fn poll_writable(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        mut take: impl FnMut(&IncomingDatagrams<'_>),
    ) -> Poll<io::Result<()>> {
        let now = self.network.now.get();
        let mut waiting = self.inbox.waiting.borrow_mut();
        let due = waiting.front().map(|letter| letter.at);
        if due.is_some_and(|at| at <= now)
            && let Some(letter) = waiting.pop_front()
        {
            drop(waiting);
            self.inbox.bytes.set(self.inbox.bytes.get() - letter.bytes.len());
            let Letter { from, segment, bytes, .. } = &letter;
            take(&IncomingDatagrams { from: *from, to: None, ecn: 0, segment: *segment, bytes });
            return Poll::Ready(Ok(()));
        }
        *self.inbox.reader.borrow_mut() = Some(cx.waker().clone());
        if let Some(at) = due {
            let timers = &self.network.timers;
            let kept = self.alarm.get().filter(|alarm| alarm.at == at);
            if !kept.is_some_and(|alarm| timers.redirect(alarm, cx.waker())) {
                self.alarm.set(Some(timers.set(at, cx.waker())));
            }
        }
        Poll::Pending
    }
}
