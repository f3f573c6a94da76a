//! Connections of robots: acquired, released, closed (`docs/reference/models.md`, "Connections").

use std::cell::{Cell, RefCell, RefMut};
use std::future::pending;
use std::rc::Rc;

use polygraph_link::{Conn, IdleState, Link, Nanos};
use polygraph_multiplex::{ClientConnection, WireBytes};
use polygraph_stats::evidence::fact;
use polygraph_stats::{AuthScheme, Block, CloseKind, ErrorKind, Evidence, HttpVersion};
use polygraph_tls::handshake::Handshake;
use polygraph_transport::Channel;
use polygraph_transport::http3::PathCounts;
use rustc_hash::FxHashMap;

use super::counts;
use super::hop::Hop;
use super::layers::{Layered, SetUp, SetUpState, add_layers, open_http3};
use super::multiplexed::{MultiplexedConnection, Protocol};
use super::pending::{PendingConnections, PendingGuard};
use super::wait_queue::{WaitEnd, WaitQueue};
use crate::context::{GroupContext, RobotContext};
use crate::failure::{Incomplete, TransactionFailure};
use crate::request::auth::{ConnectionAuth, RobotIdentity};

/// A connection that a transaction uses, or that is idle in a robot's pool.
#[derive(Debug)]
pub struct PooledConnection<C: Conn> {
    /// The connection, with the layers that messages need.
    pub conn: Channel<C>,
    /// Number of requests sent on it.
    pub uses: u32,
    /// Number of requests after which it is closed.
    pub use_limit: u32,
    /// Its number among those of the loop, from 1.
    pub number: u64,
    /// Whether something was sent on it, which shows that it is established.
    pub established: bool,
    /// The time that its set-up took, until a transaction is charged with it.
    pub set_up: Option<SetUp>,
    /// The scheme by which a SOCKS proxy accepted the robot when it was set up, or else the proxy that opened the tunnel.
    pub granted: Option<AuthScheme>,
    /// The handshakes of authentication on it, if there were any.
    pub auth: Option<Box<ConnectionAuth>>,
    /// Whether it was idle before the transaction that uses it.
    pub was_idle: bool,
    /// The connection of which it is a stream, if it is one.
    multiplexed: Option<Rc<MultiplexedConnection>>,
    /// When it was opened.
    pub opened: Nanos,
    idle_since: Nanos,
    /// The peer.
    pub hop: Hop,
}

impl<C: Conn> PooledConnection<C> {
    /// How it was closed at `now`, its lifetime in microseconds, and the number of requests.
    fn ending(&self, kind: CloseKind, now: Nanos) -> (CloseKind, u64, u64) {
        (kind, (now - self.opened).as_micros(), u64::from(self.uses))
    }

    /// Whether the peer may have closed it before a request arrived, and could not know of the request. The peer of other streams
    /// is not idle.
    pub fn may_race(&self) -> bool {
        if self.is_stream() { self.was_idle } else { self.uses > 0 }
    }

    /// The facts of its TLS handshake, once after it is complete.
    pub fn take_handshake(&mut self) -> Option<Handshake> {
        let of_all = || self.multiplexed.as_ref()?.take_handshake();
        self.conn.take_handshake().or_else(of_all)
    }

    /// Whether it is a stream of an HTTP/2 or HTTP/3 connection.
    pub fn is_stream(&self) -> bool {
        self.multiplexed.is_some()
    }
}

/// How a connection was closed at `now`, its lifetime in microseconds, and the number of requests.
fn ending_of(connection: &MultiplexedConnection, kind: CloseKind, now: Nanos) -> (CloseKind, u64, u64) {
    (kind, (now - connection.opened).as_micros(), u64::from(connection.uses()))
}

/// Opens a stream on a connection that has room for it.
fn open_stream<L: Link>(
    cx: RobotContext<'_, L>,
    connection: Rc<MultiplexedConnection>,
) -> Box<PooledConnection<L::Conn>> {
    let uses = connection.uses();
    let was_idle = uses > 0 && connection.is_idle();
    let conn = connection.open_stream();
    cx.recorder.with(|block| block.streams.concurrent.record(connection.open_streams() as u64));
    Box::new(PooledConnection {
        conn,
        uses,
        use_limit: connection.use_limit,
        number: connection.number,
        // That is known of the whole connection when an exchange is complete.
        established: true,
        set_up: connection.take_set_up(),
        granted: connection.granted,
        auth: None,
        was_idle,
        opened: connection.opened,
        idle_since: connection.idle_since.get(),
        hop: connection.hop,
        multiplexed: Some(connection),
    })
}

fn count_bytes(block: &mut Block, bytes: WireBytes) {
    block.streams.sent += bytes.sent;
    block.streams.received += bytes.received;
    block.streams.sent_content += bytes.sent_content;
    block.streams.received_content += bytes.received_content;
}

fn count_packets(block: &mut Block, path: PathCounts) {
    block.streams.packets += path.sent;
    block.streams.lost_packets += path.lost;
}

/// The connections of one robot.
#[derive(Debug)]
struct RobotConnections<C: Conn> {
    /// Number of open connections, busy and idle.
    open: u32,
    /// The robot's session is idle until then.
    session_idle_until: Nanos,
    /// Idle connections, the most recently used one last. They are moved often, so they are boxed.
    idle: Vec<Box<PooledConnection<C>>>,
    /// Open HTTP/2 and HTTP/3 connections.
    multiplexed: Vec<Rc<MultiplexedConnection>>,
}

/// The connections of all robots of a group.
#[derive(Debug)]
pub struct ConnectionPool<C: Conn> {
    robots: RefCell<Vec<RobotConnections<C>>>,
    /// Transactions that wait for a connection, by robot.
    queues: RefCell<FxHashMap<usize, Rc<WaitQueue>>>,
    /// Connections for several requests that are being set up.
    pending: PendingConnections,
    /// Whether a connection for several exchanges at a time was opened.
    multiplexes: Cell<bool>,
    /// Number of open connections of all robots.
    open: Cell<usize>,
    /// Number of connections that were opened so far.
    opened: Cell<u64>,
    /// What the set-up of connections needs.
    pub set_up: SetUpState,
}

impl<C: Conn> ConnectionPool<C> {
    /// Empty pools of `robots` robots.
    pub fn new(robots: usize) -> ConnectionPool<C> {
        let robot = |_| RobotConnections {
            open: 0,
            session_idle_until: Nanos::ZERO,
            idle: Vec::new(),
            multiplexed: Vec::new(),
        };
        ConnectionPool {
            robots: RefCell::new((0..robots).map(robot).collect()),
            queues: RefCell::default(),
            pending: PendingConnections::default(),
            multiplexes: Cell::new(false),
            open: Cell::new(0),
            opened: Cell::new(0),
            set_up: SetUpState::default(),
        }
    }

    fn of(&self, robot: usize) -> RefMut<'_, RobotConnections<C>> {
        RefMut::map(self.robots.borrow_mut(), |robots| &mut robots[robot])
    }

    /// A connection of the robot to `hop`: the idle one that it used last, or a new one. Waits if the robot has reached
    /// its connection limit. `who` is the robot.
    ///
    /// # Errors
    /// As [`ConnectionPool::open_or_wait`].
    pub async fn acquire<L: Link<Conn = C>>(
        &self,
        cx: RobotContext<'_, L>,
        hop: Hop,
        deadline: Option<Nanos>,
        who: RobotIdentity<'_>,
    ) -> Result<Box<PooledConnection<C>>, Incomplete> {
        match self.take_idle(cx, hop) {
            Some(connection) => Ok(connection),
            None => self.open_or_wait(cx, hop, deadline, who).await,
        }
    }

    /// A new connection of the robot to `hop`. Waits if the robot has reached its connection limit; then the connection may be
    /// an old one. `who` is the robot.
    ///
    /// # Errors
    /// If no connection is available before `deadline`, or if the robot's session becomes idle before (`docs/reference/models.md`,
    /// "Sessions").
    pub async fn open_or_wait<L: Link<Conn = C>>(
        &self,
        cx: RobotContext<'_, L>,
        hop: Hop,
        deadline: Option<Nanos>,
        who: RobotIdentity<'_>,
    ) -> Result<Box<PooledConnection<C>>, Incomplete> {
        loop {
            if let Some(pending) = self.pending.with_room(cx.robot, hop) {
                let started = cx.now();
                self.wait_in(cx, &pending.waiting, deadline).await?;
                if let Some(failure) = pending.failure() {
                    return Err(TransactionFailure { started: Some(started), ..failure }.into());
                }
                if let Some(mut connection) = self.take_idle(cx, hop) {
                    // The request has waited for the set-up like the first one on the connection.
                    connection.set_up.get_or_insert(SetUp { started, ended: cx.now() });
                    return Ok(connection);
                }
                continue;
            }
            if self.has_room(cx) {
                if cx.version_to(hop) == HttpVersion::Http3 {
                    // A set-up is rare and its state is large, so it is boxed.
                    return Ok(Box::pin(self.open_http3(cx, hop, deadline)).await?);
                }
                // The next waiter must not keep waiting for a slot that this transaction could not use.
                let opened = self.open_new(cx, hop).inspect_err(|_| self.wake_waiter(cx.robot))?;
                let ready = match cx.is_secure(hop) || cx.socks().is_some() {
                    // A set-up is rare and its state is large, so it is boxed.
                    true => Box::pin(self.set_up(cx, opened, who, deadline)).await?,
                    false => opened,
                };
                return Ok(match cx.http_version().is_multiplexed() {
                    true => self.multiplex(cx, *ready),
                    false => ready,
                });
            }
            if self.is_session_idle(cx) {
                return Err(Incomplete::Cancelled);
            }
            let queue = self.queue(cx)?;
            self.wait_in(cx, &queue, deadline).await?;
            if let Some(connection) = self.take_idle(cx, hop) {
                return Ok(connection);
            }
        }
    }

    /// Waits in a queue for a connection.
    async fn wait_in<L: Link<Conn = C>>(
        &self,
        cx: RobotContext<'_, L>,
        queue: &WaitQueue,
        deadline: Option<Nanos>,
    ) -> Result<(), Incomplete> {
        let now = cx.now();
        cx.recorder.with(|block| block.waiting.enter(now));
        let end = match deadline {
            // Waits are rare and their state is large, so it is boxed.
            Some(at) => Box::pin(queue.wait(cx.link.sleep_until(at))).await,
            None => queue.wait(pending()).await,
        };
        let now = cx.now();
        cx.recorder.with(|block| block.waiting.leave(now));
        match end {
            WaitEnd::Woken => Ok(()),
            WaitEnd::Cancelled => Err(Incomplete::Cancelled),
            WaitEnd::TimedOut => {
                let detail = "while waiting for a connection";
                Err(TransactionFailure::new(ErrorKind::Timeout, detail).into())
            }
        }
    }

    /// The set-up of a connection to `hop` begins, which will be used for so many requests. Others wait for it if it can have several
    /// at the same time.
    fn begin_set_up<L: Link<Conn = C>>(
        &self,
        cx: RobotContext<'_, L>,
        hop: Hop,
        use_limit: u32,
    ) -> Option<PendingGuard<'_>> {
        let most = use_limit.min(cx.profile().http2.streams);
        cx.version_to(hop).is_multiplexed().then(|| self.pending.begin(cx.robot, hop, most))
    }

    /// The idle connection of the robot that a request to `hop` can use, the last used one if there are several. For robots that
    /// speak HTTP/2 or HTTP/3, a stream of a connection that has room for it.
    pub fn take_idle<L: Link<Conn = C>>(
        &self,
        cx: RobotContext<'_, L>,
        hop: Hop,
    ) -> Option<Box<PooledConnection<C>>> {
        if cx.version_to(hop).is_multiplexed() {
            return self.take_stream(cx, hop);
        }
        let to_hop = self.take_quiet(cx, |other| other == hop);
        let minimize = cx.profile().minimize_new_conn;
        if to_hop.is_some() || minimize <= 0.0 || !cx.draw_event(minimize) {
            return to_hop;
        }
        let substitutes = cx.settings.field.substitutes.iter().find(|group| group.contains(&hop.address))?;
        self.take_quiet(cx, |other| other.server == hop.server && substitutes.contains(&other.address))
    }

    /// Takes the last used idle connection that `fits` and on which nothing has happened. Closes the others that fit.
    fn take_quiet<L: Link<Conn = C>>(
        &self,
        cx: RobotContext<'_, L>,
        fits: impl Fn(Hop) -> bool,
    ) -> Option<Box<PooledConnection<C>>> {
        loop {
            let mut connection = {
                let idle = &mut self.of(cx.robot).idle;
                let at = idle.iter().rposition(|connection| fits(connection.hop))?;
                idle.remove(at)
            };
            if is_quiet(cx, &mut connection) {
                connection.was_idle = true;
                return Some(connection);
            }
            self.close_idle(cx, *connection, CloseKind::IdleForeign);
        }
    }

    /// Whether the robot may open a connection. Closes an idle one if that makes room.
    fn has_room<L: Link<Conn = C>>(&self, cx: RobotContext<'_, L>) -> bool {
        let Some(limit) = cx.profile().open_limit else { return true };
        let oldest = {
            let mut robot = self.of(cx.robot);
            if robot.open < limit as u32 {
                return true;
            }
            (!robot.idle.is_empty()).then(|| robot.idle.remove(0))
        };
        let Some(connection) = oldest else {
            return self.close_multiplexed(cx, CloseKind::Other, 1, |_| true) > 0;
        };
        self.close_idle(cx, *connection, CloseKind::Other);
        true
    }

    /// The queue of the robot's transactions that wait for a connection.
    fn queue<L: Link>(&self, cx: RobotContext<'_, L>) -> Result<Rc<WaitQueue>, TransactionFailure> {
        let queue = Rc::clone(self.queues.borrow_mut().entry(cx.robot).or_default());
        match cx.profile().wait_limit {
            Some(limit) if queue.len() >= limit => {
                let detail = format!("waiting transactions of the robot: {}", queue.len());
                Err(TransactionFailure::new(ErrorKind::TooManyOpen, detail))
            }
            _ => Ok(queue),
        }
    }

    fn open_new<L: Link<Conn = C>>(
        &self,
        cx: RobotContext<'_, L>,
        hop: Hop,
    ) -> Result<Box<PooledConnection<C>>, TransactionFailure> {
        let (opened, use_limit) = self.admit(cx)?;
        let conn = Channel::Plain(cx.link.connect(cx.address(), cx.socks().unwrap_or(hop.address))?);
        let number = self.enter(cx, opened);
        Ok(Box::new(PooledConnection {
            conn,
            uses: 0,
            use_limit,
            number,
            established: false,
            set_up: None,
            granted: None,
            auth: None,
            was_idle: false,
            multiplexed: None,
            opened,
            idle_since: opened,
            hop,
        }))
    }

    /// Opens an HTTP/3 connection, and its first stream.
    async fn open_http3<L: Link<Conn = C>>(
        &self,
        cx: RobotContext<'_, L>,
        hop: Hop,
        deadline: Option<Nanos>,
    ) -> Result<Box<PooledConnection<C>>, TransactionFailure> {
        // The next waiter must not keep waiting for a slot that this transaction could not use.
        let (opened, use_limit) = self.admit(cx).inspect_err(|_| self.wake_waiter(cx.robot))?;
        let number = self.enter(cx, opened);
        let pending = self.begin_set_up(cx, hop, use_limit);
        let client = match open_http3(cx, hop, &self.set_up.tls, opened, deadline).await {
            Ok(client) => client,
            Err(failure) => {
                pending.iter().for_each(|pending| pending.fail(&failure));
                self.forget(cx, false, None, cx.now());
                return Err(TransactionFailure { started: Some(opened), ..failure });
            }
        };
        let ended = cx.now();
        cx.recorder.with(|block| block.set_up_connection(opened, ended));
        let client = Protocol::Http3(client);
        let mut connection = MultiplexedConnection::new(client, (hop, number), use_limit, opened);
        connection.set_up = Cell::new(Some(SetUp { started: opened, ended }));
        connection.established = Cell::new(true);
        let connection = Rc::new(connection);
        self.keep_multiplexed(cx, &connection);
        Ok(open_stream(cx, connection))
    }

    /// Counts a new connection of the robot. Returns its number on the loop.
    fn enter<L: Link<Conn = C>>(&self, cx: RobotContext<'_, L>, opened: Nanos) -> u64 {
        self.of(cx.robot).open += 1;
        self.open.set(self.open.get() + 1);
        self.opened.set(self.opened.get() + 1);
        cx.recorder.with(|block| block.conns.enter(opened));
        self.opened.get()
    }

    /// Checks whether another connection may be opened at all. Returns the time, and after how many requests it is closed.
    fn admit<L: Link<Conn = C>>(&self, cx: RobotContext<'_, L>) -> Result<(Nanos, u32), TransactionFailure> {
        let open = self.open.get();
        if open >= cx.settings.open_limit {
            // If the test needs more connections than the host allows, the device is not the cause.
            let (kind, why) = match cx.settings.limited_by_host {
                true => (ErrorKind::NoDescriptor, ", as many as the file descriptors allow"),
                false => (ErrorKind::TooManyOpen, ""),
            };
            return Err(TransactionFailure::new(kind, format!("open connections: {open}{why}")));
        }
        let drawn = cx.profile().requests_per_connection.sample(&mut *cx.reply_rng.borrow_mut());
        Ok((cx.now(), drawn.trunc().clamp(1.0, f64::from(u32::MAX)) as u32))
    }

    /// Adds the layers that the first request on a new connection needs.
    async fn set_up<L: Link<Conn = C>>(
        &self,
        cx: RobotContext<'_, L>,
        connection: Box<PooledConnection<C>>,
        who: RobotIdentity<'_>,
        deadline: Option<Nanos>,
    ) -> Result<Box<PooledConnection<C>>, TransactionFailure> {
        let plain = *connection;
        let opened = plain.opened;
        let pending = self.begin_set_up(cx, plain.hop, plain.use_limit);
        match add_layers(cx, plain.conn, plain.hop, who, &self.set_up, deadline).await {
            Ok(Layered { conn, granted }) => {
                let ended = cx.now();
                cx.recorder.with(|block| block.set_up_connection(opened, ended));
                let set_up = Some(SetUp { started: opened, ended });
                Ok(Box::new(PooledConnection { conn, established: true, set_up, granted, ..plain }))
            }
            Err(failure) => {
                pending.iter().for_each(|pending| pending.fail(&failure));
                self.forget(cx, false, None, cx.now());
                Err(TransactionFailure { started: Some(opened), ..failure })
            }
        }
    }

    /// Keeps the connection for the robot's next request, idle from `now` on, or closes it if it cannot be reused.
    pub fn release<L: Link<Conn = C>>(
        &self,
        cx: RobotContext<'_, L>,
        mut connection: Box<PooledConnection<C>>,
        keep_alive: bool,
        now: Nanos,
    ) {
        if connection.multiplexed.is_some() {
            return self.end_stream(cx, connection, true);
        }
        if keep_alive && connection.uses < connection.use_limit && !self.is_session_idle(cx) {
            connection.idle_since = now;
            connection.conn.note_idle(cx.robot as u32);
            cx.recorder.with(|block| block.idle.enter(now));
            self.of(cx.robot).idle.push(connection);
            self.wake_waiter(cx.robot);
        } else {
            self.close(cx, connection, true);
        }
    }

    /// Closes a connection in use. It counts in the statistics of lifetimes and uses only if its exchanges were `good`.
    pub fn close<L: Link<Conn = C>>(
        &self,
        cx: RobotContext<'_, L>,
        connection: Box<PooledConnection<C>>,
        good: bool,
    ) {
        if connection.multiplexed.is_some() {
            return self.end_stream(cx, connection, good);
        }
        let now = cx.now();
        self.forget(cx, connection.established, good.then(|| connection.ending(CloseKind::Busy, now)), now);
    }

    fn close_idle<L: Link<Conn = C>>(
        &self,
        cx: RobotContext<'_, L>,
        connection: PooledConnection<C>,
        kind: CloseKind,
    ) {
        let now = cx.now();
        cx.recorder.with(|block| block.idle.leave(now));
        self.forget(cx, connection.established, Some(connection.ending(kind, now)), now);
    }

    fn forget<L: Link<Conn = C>>(
        &self,
        cx: RobotContext<'_, L>,
        established: bool,
        ending: Option<(CloseKind, u64, u64)>,
        now: Nanos,
    ) {
        self.open.set(self.open.get() - 1);
        self.of(cx.robot).open -= 1;
        cx.recorder.with(|block| {
            block.conns.leave(now);
            if established {
                block.established.leave(now);
            }
            if let Some((kind, ttl_us, uses)) = ending {
                block.close_connection(kind, ttl_us, uses);
            }
        });
        self.wake_waiter(cx.robot);
    }

    fn wake_waiter(&self, robot: usize) {
        let queue = self.queues.borrow().get(&robot).cloned();
        if let Some(queue) = queue {
            queue.wake_first();
        }
    }

    /// Ends a busy or an idle period of the robot's session: cancels the transactions that wait for a connection, and closes all
    /// idle connections. If the session becomes idle, it is so until `idle_until`.
    pub fn change_session<L: Link<Conn = C>>(&self, cx: RobotContext<'_, L>, idle_until: Option<Nanos>) {
        self.of(cx.robot).session_idle_until = idle_until.unwrap_or(Nanos::ZERO);
        let queue = self.queues.borrow().get(&cx.robot).cloned();
        if let Some(queue) = queue {
            queue.cancel_all();
        }
        self.pending.cancel(cx.robot);
        self.close_all_idle(cx);
    }

    /// Whether the robot's session is idle: its connections are not kept, and its transactions do not wait for one.
    fn is_session_idle<L: Link>(&self, cx: RobotContext<'_, L>) -> bool {
        let until = self.of(cx.robot).session_idle_until;
        until > Nanos::ZERO && cx.now() < until
    }

    fn close_all_idle<L: Link<Conn = C>>(&self, cx: RobotContext<'_, L>) {
        let idle = std::mem::take(&mut self.of(cx.robot).idle);
        idle.into_iter().for_each(|connection| self.close_idle(cx, *connection, CloseKind::Other));
        self.close_multiplexed(cx, CloseKind::Other, usize::MAX, |_| true);
    }

    /// Makes a new connection carry HTTP/2, and opens its first stream.
    fn multiplex<L: Link<Conn = C>>(
        &self,
        cx: RobotContext<'_, L>,
        connection: PooledConnection<C>,
    ) -> Box<PooledConnection<C>> {
        let PooledConnection { conn, hop, number, use_limit, opened, established, .. } = connection;
        let scheme = if cx.has_tls(hop) { "https" } else { "http" };
        let handshake = conn.handshake_facts();
        let client = Protocol::Http2(ClientConnection::start(&cx.link, conn, scheme, &cx.profile().http2));
        let mut multiplexed = MultiplexedConnection::new(client, (hop, number), use_limit, opened);
        multiplexed.set_up = Cell::new(connection.set_up);
        multiplexed.granted = connection.granted;
        multiplexed.handshake = handshake;
        multiplexed.established = Cell::new(established);
        let multiplexed = Rc::new(multiplexed);
        self.keep_multiplexed(cx, &multiplexed);
        open_stream(cx, multiplexed)
    }

    fn keep_multiplexed<L: Link>(&self, cx: RobotContext<'_, L>, connection: &Rc<MultiplexedConnection>) {
        self.multiplexes.set(true);
        self.of(cx.robot).multiplexed.push(Rc::clone(connection));
    }

    /// A stream of the robot's latest connection to `hop` that has room for one.
    fn take_stream<L: Link<Conn = C>>(
        &self,
        cx: RobotContext<'_, L>,
        hop: Hop,
    ) -> Option<Box<PooledConnection<C>>> {
        // Connections that the peer has left while they were idle are no longer of use.
        self.close_multiplexed(cx, CloseKind::IdleForeign, usize::MAX, |connection| connection.was_left());
        let found = {
            let robot = self.of(cx.robot);
            robot.multiplexed.iter().rev().find(|other| other.hop == hop && other.has_room()).map(Rc::clone)
        };
        found.map(|connection| open_stream(cx, connection))
    }

    /// Ends a stream. Its connection is closed with its last stream if no further ones can be opened on it.
    fn end_stream<L: Link<Conn = C>>(
        &self,
        cx: RobotContext<'_, L>,
        mut stream: Box<PooledConnection<C>>,
        good: bool,
    ) {
        let now = cx.now();
        let Some(connection) = stream.multiplexed.take() else { return };
        drop(stream);
        cx.recorder.with(|block| {
            count_bytes(block, connection.take_bytes());
            count_packets(block, connection.take_path());
            if good && !connection.established.replace(true) {
                block.established.enter(now);
            }
        });
        if !connection.is_idle() {
            return self.wake_waiter(cx.robot);
        }
        if connection.is_finished() || self.is_session_idle(cx) {
            let ending = good.then(|| ending_of(&connection, CloseKind::Busy, now));
            return self.forget_multiplexed(cx, &connection, ending, now);
        }
        connection.idle_since.set(now);
        cx.recorder.with(|block| block.idle.enter(now));
        self.wake_waiter(cx.robot);
    }

    /// Opens no further streams on the connection of a stream: the peer wants requests on another one.
    pub fn retire(&self, stream: &PooledConnection<C>) {
        if let Some(connection) = &stream.multiplexed {
            connection.retire();
        }
    }

    /// Closes up to `most` idle HTTP/2 and HTTP/3 connections that `fit`, the oldest first. Returns their number.
    fn close_multiplexed<L: Link<Conn = C>>(
        &self,
        cx: RobotContext<'_, L>,
        kind: CloseKind,
        most: usize,
        fits: impl Fn(&MultiplexedConnection) -> bool,
    ) -> usize {
        let closed: Vec<_> = {
            let robot = self.of(cx.robot);
            let idle = robot.multiplexed.iter().filter(|connection| connection.is_idle() && fits(connection));
            idle.take(most).map(Rc::clone).collect()
        };
        // Every transaction comes here, nearly always for nothing.
        if closed.is_empty() {
            return 0;
        }
        let now = cx.now();
        for connection in &closed {
            cx.recorder.with(|block| block.idle.leave(now));
            self.forget_multiplexed(cx, connection, Some(ending_of(connection, kind, now)), now);
        }
        closed.len()
    }

    fn forget_multiplexed<L: Link<Conn = C>>(
        &self,
        cx: RobotContext<'_, L>,
        connection: &Rc<MultiplexedConnection>,
        ending: Option<(CloseKind, u64, u64)>,
        now: Nanos,
    ) {
        self.of(cx.robot).multiplexed.retain(|other| !Rc::ptr_eq(other, connection));
        if let Some(error) = connection.failure() {
            counts::alert(cx, &error);
        }
        cx.recorder.with(|block| {
            count_bytes(block, connection.take_bytes());
            block.streams.per_connection.record(u64::from(connection.uses()));
            block.streams.goaways += u64::from(connection.has_goaway());
            count_packets(block, connection.take_path());
        });
        self.forget(cx, connection.established.get(), ending, now);
    }

    /// Closes idle connections that would otherwise stay open until their next use: those that the peer has closed, those that
    /// have been idle for longer than the idle timeout, and those of robots for which `is_active` is false. `all_active`: there are
    /// no such robots.
    pub fn reap<L: Link<Conn = C>>(
        &self,
        group: &GroupContext<L>,
        all_active: bool,
        is_active: impl Fn(usize) -> bool,
    ) {
        let disturbed = group.link.take_disturbed();
        let time_out = group.settings.profiles.iter().any(|profile| profile.idle_timeout.is_some());
        if let Some(disturbed) =
            disturbed.as_ref().filter(|_| all_active && !time_out && !self.multiplexes.get())
        {
            return disturbed.iter().for_each(|robot| self.reap_of(group.of(*robot as usize), true));
        }
        for robot in 0..group.settings.robots {
            if all_active || is_active(robot) {
                let is_disturbed = |robots: &Vec<u32>| robots.binary_search(&(robot as u32)).is_ok();
                self.reap_of(group.of(robot), disturbed.as_ref().is_none_or(is_disturbed));
            } else {
                self.close_all_idle(group.of(robot));
            }
        }
    }

    /// Closes idle connections of an active robot. Without `disturbed`, nothing has happened on those with one exchange at a time.
    fn reap_of<L: Link<Conn = C>>(&self, cx: RobotContext<'_, L>, disturbed: bool) {
        let (now, timeout) = (cx.now(), cx.profile().idle_timeout);
        if !self.of(cx.robot).multiplexed.is_empty() {
            self.close_multiplexed(cx, CloseKind::IdleForeign, usize::MAX, |idle| idle.was_left());
            let is_late = |idle: &MultiplexedConnection| {
                timeout.is_some_and(|timeout| now > idle.idle_since.get() + timeout)
            };
            self.close_multiplexed(cx, CloseKind::IdleLocal, usize::MAX, is_late);
        }
        let mut kept = std::mem::take(&mut self.of(cx.robot).idle);
        let mut at = 0;
        while at < kept.len() {
            let connection = &mut kept[at];
            let kind = if disturbed && !is_quiet(cx, connection) {
                CloseKind::IdleForeign
            } else if timeout.is_some_and(|timeout| now > connection.idle_since + timeout) {
                CloseKind::IdleLocal
            } else {
                at += 1;
                continue;
            };
            let connection = kept.remove(at);
            self.close_idle(cx, *connection, kind);
        }
        self.of(cx.robot).idle = kept;
    }
}

/// Whether nothing has happened on an idle connection. Bytes on it would follow a reply that was already complete.
fn is_quiet<L: Link>(cx: RobotContext<'_, L>, connection: &mut PooledConnection<L::Conn>) -> bool {
    match connection.conn.idle_state() {
        IdleState::Quiet => return true,
        IdleState::Closed => {}
        IdleState::Bytes(first) => {
            let now = cx.now();
            cx.recorder.error_with(ErrorKind::LateBytes, now, || {
                let idle = (now - connection.idle_since).as_f64() * 1e-6;
                let PooledConnection { number, uses, hop, .. } = connection;
                Evidence::new(format!("on connection {number} to {hop}, {idle:.1} ms after reply {uses}"))
                    .fact(fact::ROBOT, cx.number().to_string())
                    .expected("no bytes", format!("`{}`", first.escape_ascii()))
            });
        }
    }
    false
}
