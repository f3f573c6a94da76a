//! Transactions allocate nothing: counted, not believed.
//!
//! Robots of a closed loop send requests to servers made of a function. What grows with the number of objects (tables of
//! known objects) grows by doubling, so it allocates ever more rarely; everything else must allocate nothing.

use std::cell::{Cell, RefCell};
use std::future::{Future, ready};
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use polygraph_link::{Conn, ConnectError, IdleState, Link, Nanos, NoDatagrams};
use polygraph_robot::{Field, Load, Profile, RobotGroup, Rules, Server, Settings, Tolerance, Verify};
use polygraph_stats::Recorder;
use polygraph_testing::memory::{Counting, allocations};
use polygraph_traffic::{
    Behavior, Catalog, Content, ContentKind, Distr, Fingerprint, IdSource, Seed, Selector,
};
use polygraph_wire::decimal;
use polygraph_wire::marks::{ContentsMark, XactMark};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// A link where a microsecond passes whenever somebody looks, and where tasks run in turns.
#[derive(Clone)]
struct Looking(Rc<World>);

struct World {
    now: Cell<Nanos>,
    looks: Cell<u64>,
    /// Bytes of the largest task.
    largest: Cell<usize>,
    spawned: RefCell<Vec<Task>>,
    catalog: Catalog,
}

impl Looking {
    /// Lets every task run `turns` times.
    fn run(&self, tasks: &mut Vec<Task>, turns: u64) {
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..turns {
            tasks.append(&mut self.0.spawned.borrow_mut());
            tasks.retain_mut(|task| task.as_mut().poll(&mut cx).is_pending());
        }
    }
}

impl Link for Looking {
    type Conn = Obliging;
    type Datagrams = NoDatagrams;

    fn now(&self) -> Nanos {
        self.0.looks.set(self.0.looks.get() + 1);
        self.0.now.set(self.0.now.get() + Nanos::new(1_000));
        self.0.now.get()
    }

    fn http_date(&self) -> [u8; 29] {
        *b"Sat, 21 Nov 2026 00:00:00 GMT"
    }

    fn unix_seconds(&self) -> i64 {
        1_795_219_200
    }

    fn unix_millis(&self) -> u64 {
        1_795_219_200_000
    }

    fn sleep_until(&self, _: Nanos) -> impl Future<Output = ()> {
        ready(())
    }

    fn connect(&self, _: Option<IpAddr>, _: SocketAddr) -> Result<Obliging, ConnectError> {
        let catalog = self.0.catalog.clone();
        let fingerprint = Fingerprint::of(&catalog);
        Ok(Obliging { catalog, fingerprint, reply: Vec::new(), state: State::Quiet })
    }

    async fn exchange_datagram<R>(
        &self,
        _: Option<IpAddr>,
        _: SocketAddr,
        _: &[u8],
        _: Option<Nanos>,
        _: impl FnMut(&[u8]) -> Option<R>,
    ) -> io::Result<R> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn connect_datagrams(&self, _: Option<IpAddr>, _: SocketAddr) -> Result<NoDatagrams, ConnectError> {
        Err(ConnectError::Refused(io::ErrorKind::Unsupported))
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.0.largest.set(self.0.largest.get().max(size_of_val(&task)));
        self.0.spawned.borrow_mut().push(Box::pin(task));
    }
}

/// A connection to a server that replies to every request in the next turn.
struct Obliging {
    catalog: Catalog,
    fingerprint: Fingerprint,
    reply: Vec<u8>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Quiet,
    Asked,
    Answered,
}

impl Obliging {
    fn answer(&mut self, request: &[u8]) {
        let text = std::str::from_utf8(request).unwrap();
        let path = text.split(' ').nth(1).unwrap();
        let oid = polygraph_wire::url::parse(path.as_bytes()).unwrap();
        let mark = text.lines().find_map(|line| line.strip_prefix("X-Xact: ")).unwrap();
        let mark = XactMark::parse(mark.as_bytes()).unwrap();
        let (mut body, out) = (self.catalog.body(&oid, b""), &mut self.reply);
        out.clear();
        let cachable = if self.catalog.cachable(&oid) { "public" } else { "private,no-cache" };
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 00:00:00 GMT\r\nContent-Length: ");
        decimal::write(out, body.len());
        out.extend_from_slice(b"\r\nCache-Control: ");
        out.extend_from_slice(cachable.as_bytes());
        out.extend_from_slice(b"\r\nX-Xact: ");
        XactMark { id: mark.id.mutant(), ..mark }.write(out);
        out.extend_from_slice(b"\r\nX-Contents: ");
        ContentsMark { fingerprint: self.fingerprint, size: Some(body.len()) }.write(out);
        out.extend_from_slice(b"\r\n\r\n");
        while !body.is_empty() {
            let piece = body.chunk();
            let n = piece.len().min(body.len() as usize);
            out.extend_from_slice(&piece[..n]);
            body.advance(n as u64);
        }
        self.state = State::Asked;
    }
}

impl Conn for Obliging {
    fn try_send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        assert_eq!(parts.len(), 1, "requests without a body");
        self.answer(&parts[0]);
        Ok(parts[0].len())
    }

    fn poll_writable(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_recv<R>(&mut self, _: &mut Context<'_>, take: impl FnOnce(&[u8]) -> R) -> Poll<io::Result<R>> {
        match self.state {
            State::Answered => {
                self.state = State::Quiet;
                Poll::Ready(Ok(take(&self.reply)))
            }
            _ => {
                self.state = State::Answered;
                Poll::Pending
            }
        }
    }

    fn idle_state(&mut self) -> IdleState {
        IdleState::Quiet
    }

    fn set_deadline(&mut self, _: Option<Nanos>) {}

    fn finish(&mut self) {}

    fn reset(&mut self) {}
}

const ROBOTS: usize = 8;

/// Robots of a closed loop that ask one server for objects of a few kinds and many sizes, a share of them for known ones.
fn settings(recurrence: f64, think: Option<Distr>) -> Settings {
    let content = |name, cachable| Content::plain(name, Distr::Unif { min: 500.0, max: 20_000.0 }, cachable);
    let catalog = Catalog { seed: Seed(3), contents: vec![content("page", 0.8), content("image", 1.0)] };
    let field = Field {
        servers: vec![Server {
            authority: "10.0.0.1:80".into(),
            addresses: vec![SocketAddr::from(([10, 0, 0, 1], 80))],
            behind: Vec::new(),
            bad_certificate: None,
            direct: 0,
            tls: false,
        }],
        direct: vec![Selector::even(vec![ContentKind::of_index(0), ContentKind::of_index(1)])],
        catalog,
        marks_cachable: None,
        rules: Rules::default(),
        page_delay: 0.0,
        settle: 0.0,
        verify: Verify::Full,
        share_worlds: true,
        redirects: false,
        freshness: polygraph_robot::ToldFreshness::LifeCycle,
        substitutes: Vec::new(),
    };
    let behavior = Behavior { recurrence, ..Behavior::default() };
    let mut profile = Profile::plain("R", ROBOTS, Load::Closed { think }, behavior);
    profile.origins = Selector::only(0);
    profile.requests_per_connection = Distr::Const(1e9);
    Settings {
        first_robot: 0,
        robots: ROBOTS,
        profiles: vec![Arc::new(profile)],
        share: None,
        field: Arc::new(field),
        launch_window: 0.0,
        open_limit: 1000,
        limited_by_host: false,
        seed: Seed(1),
        group: IdSource::reproducible(9, 9).fresh(),
        tolerance: Tolerance::default(),
        share_phases: false,
        others_fill: false,
    }
}

/// What transactions cost.
struct Cost {
    /// Allocations in all transactions.
    allocations: u64,
    /// Readings of the clock in a transaction.
    looks: u64,
    /// Bytes of a robot's task.
    task: usize,
}

/// The cost of `count` transactions after twice as many others. Tables that grow with the number of objects double at powers of
/// two; none is between 40,000 and 60,000.
fn cost(recurrence: f64, think: Option<Distr>, count: u64) -> Cost {
    let settings = settings(recurrence, think);
    let link = Looking(Rc::new(World {
        now: Cell::default(),
        looks: Cell::default(),
        largest: Cell::default(),
        spawned: RefCell::default(),
        catalog: settings.field.catalog.clone(),
    }));
    let recorder = Recorder::new();
    let robots = RobotGroup::new(link.clone(), settings, recorder.clone(), IdSource::reproducible(7, 7));
    let mut tasks: Vec<Task> = vec![Box::pin(robots.run(Nanos::ZERO))];
    let until = |tasks: &mut Vec<Task>, all: u64| {
        while recorder.totals().ok < all {
            assert_eq!(recorder.totals().failed, 0, "{:?}", recorder.with(|block| block.errors.clone()));
            link.run(tasks, 1);
        }
    };
    until(&mut tasks, 2 * count);
    let (allocated, looks, before) = (allocations(), link.0.looks.get(), recorder.totals().ok);
    until(&mut tasks, 3 * count);
    let done = recorder.totals().ok - before;
    recorder.with(|block| assert_eq!(block.verified.due, block.verified.replies, "every body was compared"));
    Cost {
        allocations: allocations() - allocated,
        looks: (link.0.looks.get() - looks) / done,
        task: link.0.largest.get(),
    }
}

#[test]
fn plain_transactions_allocate_nothing() {
    let cost = cost(0.0, None, 20_000);
    assert_eq!(cost.allocations, 0);
    // Its start, the end of its head, and its end.
    assert!(cost.looks <= 3, "{} readings of the clock in a transaction", cost.looks);
}

#[test]
fn repeats_allocate_only_for_tables_that_double() {
    let cost = cost(0.5, None, 20_000);
    assert!(cost.allocations < 20, "{} in 20,000 transactions", cost.allocations);
}

/// A robot of a closed loop is a task, also while it pauses. What it needs only for transactions takes no memory then.
#[test]
fn the_task_of_a_pausing_robot_is_small() {
    let (busy, pausing) = (cost(0.0, None, 8).task, cost(0.0, Some(Distr::Const(1.0)), 8).task);
    assert!(pausing <= 1024 && busy <= 3072, "{pausing} bytes while it pauses, {busy} bytes without pauses");
}
