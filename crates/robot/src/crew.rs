//! The robots of one event loop: when they launch requests, and which connections they hold.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::IpAddr;
use std::rc::Rc;

use polygraph_link::{Conn, Link, Nanos, SECOND, nanos, yield_now};
use polygraph_stats::{ErrorKind, Recorder};
use polygraph_traffic::{Arrivals, IdSource, LoadCurve, Random, Stream};
use polygraph_wire::url;

use crate::account;
use crate::exchange::{Fault, exchange};
use crate::order::{Chooser, Order, RequestWriter, connection_uses};
use crate::pace::Pace;
use crate::settings::{Load, Settings};

/// So many overdue requests are launched before replies and timers get their turn.
const LAUNCHES_IN_A_ROW: u32 = 16;

/// A connection in the hands of a transaction or waiting in a robot's pool.
#[derive(Debug)]
pub struct Leased<C> {
    /// The connection.
    pub conn: C,
    /// Requests sent on it so far.
    pub uses: u32,
    /// It is closed after so many requests.
    pub use_limit: u32,
    opened: Nanos,
    /// Number of the origin server it leads to; 0 for the proxy.
    hop: usize,
}

#[derive(Debug)]
struct Robot<C> {
    /// Decides everything that is this robot's own choice.
    rng: Stream,
    /// Idle connections, the most recently used one last.
    idle: Vec<Leased<C>>,
}

/// The robots of one event loop.
#[derive(Debug)]
pub struct Crew<L: Link> {
    link: L,
    settings: Settings,
    recorder: Recorder,
    writer: RequestWriter,
    chooser: RefCell<Chooser>,
    robots: RefCell<Vec<Robot<L::Conn>>>,
    /// Draws the length of connections, which depends on when they are opened and thus on replies; apart from
    /// the robots' own streams so that the sequence of their requests does not.
    connection_rng: RefCell<Stream>,
    /// Head of the request that is being sent.
    request: RefCell<Vec<u8>>,
    open: Cell<usize>,
    pace: Cell<Pace>,
    /// The working set is frozen: see [`Crew::freeze_working_set`].
    frozen: Cell<bool>,
}

impl<L: Link> Crew<L> {
    /// Robots that are ready to start.
    pub fn new(link: L, settings: Settings, recorder: Recorder, ids: IdSource) -> Rc<Crew<L>> {
        let robots = (0..settings.robots)
            .map(|i| Robot {
                rng: settings.seed.stream("robot", (settings.first_robot + i) as u64),
                idle: Vec::new(),
            })
            .collect();
        Rc::new(Crew {
            chooser: RefCell::new(Chooser::new(&settings, ids)),
            writer: RequestWriter::new(&settings),
            connection_rng: RefCell::new(settings.seed.stream("connection", settings.first_robot as u64)),
            robots: RefCell::new(robots),
            request: RefCell::default(),
            open: Cell::new(0),
            pace: Cell::new(Pace::FULL),
            frozen: Cell::new(false),
            link,
            settings,
            recorder,
        })
    }

    /// Sets the factors in force from now on.
    pub fn set_pace(&self, pace: Pace) {
        self.pace.set(pace);
    }

    /// From now on repeats are drawn from as many of the newest objects as there are now (reference: models.md,
    /// section 3.3). Repeated calls do nothing.
    pub fn freeze_working_set(&self) {
        self.frozen.set(true);
    }

    /// Runs the robots from `start` until the pace stops them. Transactions that are running then go on
    /// as tasks of the link.
    pub async fn run(self: Rc<Self>, start: Nanos) {
        match self.settings.load.clone() {
            Load::Open { rate } => self.run_open(start, rate).await,
            Load::Closed { think } => {
                for robot in 0..self.settings.robots {
                    self.link.spawn(Rc::clone(&self).run_closed(start, robot, think.clone()));
                }
            }
        }
    }

    /// Launches requests when they are due, whatever became of earlier ones.
    async fn run_open(self: Rc<Self>, start: Nanos, rate: f64) {
        let curve = LoadCurve { launch_window: self.settings.launch_window };
        let mut arrivals = vec![Arrivals::new(rate); self.settings.robots];
        let mut next = |robot: usize| {
            let seconds = arrivals[robot].next(&curve, &mut self.robots.borrow_mut()[robot].rng);
            start + nanos(seconds)
        };
        // Ties are broken by robot number, so the order of launches follows from the seed alone.
        let mut agenda: BinaryHeap<_> = (0..self.settings.robots).map(|i| Reverse((next(i), i))).collect();
        let mut launched_in_a_row = 0;
        while let Some(&Reverse((due, robot))) = agenda.peek() {
            if due > self.link.now() {
                self.link.sleep_until(due).await;
                launched_in_a_row = 0;
            } else if launched_in_a_row == LAUNCHES_IN_A_ROW {
                yield_now().await;
                launched_in_a_row = 0;
            }
            launched_in_a_row += 1;
            if self.pace.get().stopped {
                return;
            }
            agenda.pop();
            agenda.push(Reverse((next(robot), robot)));
            let order = self.order(robot, due);
            if self.lets_through(due, robot) {
                let crew = Rc::clone(&self);
                self.link.spawn(async move {
                    let started = crew.link.now();
                    crew.transact(robot, order, started).await;
                });
            }
        }
    }

    /// Launches the next request when the previous one has ended.
    async fn run_closed(self: Rc<Self>, start: Nanos, robot: usize, think: Option<polygraph_traffic::Distr>) {
        let number = (self.settings.first_robot + robot) as f64;
        let wait = self.settings.launch_window * number / self.settings.all_robots as f64;
        self.link.sleep_until(start + nanos(wait)).await;
        loop {
            if let Some(think) = &think {
                let pause = think.sample(&mut self.robots.borrow_mut()[robot].rng);
                self.link.sleep_until(self.link.now() + nanos(pause)).await;
            }
            let now = self.link.now();
            let order = self.order(robot, now);
            if self.pace.get().stopped || !self.lets_through(now, robot) {
                return;
            }
            let failed = self.transact(robot, order, now).await;
            if failed {
                // A device that refuses at once must not turn a robot into a busy loop.
                self.link.sleep_until(self.link.now() + SECOND / 100).await;
            }
        }
    }

    /// One transaction from its start, now, to its end. Returns true if it failed.
    async fn transact(&self, robot: usize, order: Order, started: Nanos) -> bool {
        self.recorder.with(|block| {
            block.xacts.enter(started);
            block.late_us.record(started.saturating_sub(order.due) / 1000);
        });
        let outcome = exchange(self, robot, &order, started).await;
        let failed = outcome.is_err();
        account::settle(self, &order, started, outcome);
        failed
    }

    fn order(&self, robot: usize, due: Nanos) -> Order {
        let rng = &mut self.robots.borrow_mut()[robot].rng;
        self.chooser.borrow_mut().order(&self.settings, due, rng)
    }

    /// While the load falls, an open-loop request goes out with the current share as probability, and of
    /// closed-loop robots the current share stays active.
    fn lets_through(&self, now: Nanos, robot: usize) -> bool {
        let pace = self.pace.get();
        let share = pace.load.at(now) * pace.populus.at(now);
        if pace.stopped || share >= 1.0 {
            return !pace.stopped;
        }
        match self.settings.load {
            Load::Open { .. } => self.connection_rng.borrow_mut().event(share),
            Load::Closed { .. } => {
                ((self.settings.first_robot + robot) as f64) < share * self.settings.all_robots as f64
            }
        }
    }
}

/// What transactions need of their crew.
impl<L: Link> Crew<L> {
    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The time now.
    pub fn now(&self) -> Nanos {
        self.link.now()
    }

    /// Where to count.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// The URL of an order, for messages.
    pub fn url(&self, order: &Order) -> String {
        let authority = &self.settings.origins[order.origin].authority;
        format!("http://{authority}{}", String::from_utf8_lossy(&url::path(&order.oid)))
    }

    /// Writes the head of the request for `order` and hands it to `send`.
    pub fn with_request<R>(&self, order: &Order, last: bool, send: impl FnOnce(&[u8]) -> R) -> R {
        let mut request = self.request.borrow_mut();
        request.clear();
        self.writer.write(order, last, &mut request);
        send(&request)
    }

    /// Counts bytes written to a connection.
    pub fn count_written(&self, bytes: usize) {
        self.recorder.with(|block| block.bytes_written += bytes as u64);
    }

    /// Counts bytes read from a connection.
    pub fn count_read(&self, bytes: usize) {
        self.recorder.with(|block| block.bytes_read += bytes as u64);
    }

    /// Counts a retry.
    pub fn count_retry(&self) {
        self.recorder.with(|block| block.retried += 1);
    }

    /// A connection for `robot` to the proxy, or to an origin server if there is none: the idle one it used last,
    /// or a new one.
    ///
    /// # Errors
    /// If no connection can be had.
    pub fn lease(&self, robot: usize, origin: usize) -> Result<Leased<L::Conn>, Fault> {
        let (hop, address) = match self.settings.proxy {
            Some(proxy) => (0, proxy),
            None => (origin, self.settings.origins[origin].address),
        };
        while let Some(mut leased) = self.pop_idle(robot, hop) {
            if !leased.conn.is_disturbed() {
                return Ok(leased);
            }
            self.close(leased, true);
        }
        if self.open.get() >= self.settings.open_limit {
            let detail = format!("{} connections are open", self.open.get());
            return Err(Fault { kind: ErrorKind::TooManyOpen, detail });
        }
        let use_limit = connection_uses(&self.settings, &mut *self.connection_rng.borrow_mut());
        let opened = self.link.now();
        let conn = self.link.connect(self.address(robot), address)?;
        self.open.set(self.open.get() + 1);
        self.recorder.with(|block| block.conns.enter(opened));
        Ok(Leased { conn, uses: 0, use_limit, opened, hop })
    }

    fn pop_idle(&self, robot: usize, hop: usize) -> Option<Leased<L::Conn>> {
        let idle = &mut self.robots.borrow_mut()[robot].idle;
        let at = idle.iter().rposition(|leased| leased.hop == hop)?;
        Some(idle.remove(at))
    }

    fn address(&self, robot: usize) -> Option<IpAddr> {
        let addresses = &self.settings.addresses;
        (!addresses.is_empty()).then(|| addresses[(self.settings.first_robot + robot) % addresses.len()])
    }

    /// Keeps the connection for the robot's next request, or closes it if that is not possible.
    pub fn give_back(&self, robot: usize, leased: Leased<L::Conn>, keep_alive: bool) {
        if keep_alive && leased.uses < leased.use_limit {
            self.robots.borrow_mut()[robot].idle.push(leased);
        } else {
            self.close(leased, true);
        }
    }

    /// Closes a connection; only those that did nothing wrong count in the statistics of lifetimes and uses.
    pub fn close(&self, leased: Leased<L::Conn>, good: bool) {
        let now = self.link.now();
        self.open.set(self.open.get() - 1);
        self.recorder.with(|block| {
            block.conns.leave(now);
            if good {
                block.conn_ttl_us.record((now - leased.opened) / 1000);
                block.conn_uses.record(u64::from(leased.uses));
            }
        });
    }

    /// Closes idle connections that the peer has closed, which nobody would notice before their next use.
    pub fn reap(&self) {
        for robot in 0..self.settings.robots {
            let mut kept = std::mem::take(&mut self.robots.borrow_mut()[robot].idle);
            let mut at = 0;
            while at < kept.len() {
                if kept[at].conn.is_disturbed() {
                    self.close(kept.remove(at), true);
                } else {
                    at += 1;
                }
            }
            self.robots.borrow_mut()[robot].idle = kept;
        }
    }
}
