//! Sums over any period of time, without histograms, for live views and load controllers while a test runs.

mod members;

use serde::{Deserialize, Serialize};

use crate::block::{Block, Finished};
use crate::class::Class;
use crate::error::{ErrorKind, Layer, Nature};
use crate::fold::{Fold, fold_fields};
use crate::histogram::Histogram;
use crate::level::Level;
use crate::summary_stats::{SummaryStats, TimeAndSize};

pub use members::NoSuchMember;

/// A level in a period of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelDelta {
    /// Value at the end.
    pub last: u64,
    /// Number of increments.
    pub entered: u64,
    /// Number of decrements.
    pub left: u64,
    /// Integral over the time, in units times seconds.
    pub integral: f64,
}

impl LevelDelta {
    fn of(level: &Level) -> LevelDelta {
        LevelDelta { last: level.last, entered: level.entered, left: level.left, integral: level.integral }
    }

    fn since(&self, earlier: &LevelDelta) -> LevelDelta {
        LevelDelta {
            last: self.last,
            entered: self.entered.saturating_sub(earlier.entered),
            left: self.left.saturating_sub(earlier.left),
            integral: self.integral - earlier.integral,
        }
    }
}

/// Concurrent levels are added; see [`Window::append`] for consecutive ones.
impl Fold for LevelDelta {
    fn fold(&mut self, other: &LevelDelta) {
        self.last += other.last;
        self.entered += other.entered;
        self.left += other.left;
        self.integral += other.integral;
    }

    fn clear(&mut self) {
        *self = LevelDelta::default();
    }

    fn drop_bins(&mut self) {}
}

/// Sums over the robots of a loop, a process or a whole side in a period of time.
///
/// Loops publish their sums 20 times a second, so a window starts and ends up to 1/20 s away from the intended moment.
/// All sums of a window cover exactly the same transactions; extremes are exact.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Length in seconds, summed over loops, which do not publish at the same time.
    loop_seconds: f64,
    /// Number of loops.
    loops: u64,
    /// Finished transactions by [`Class`].
    pub classes: [TimeAndSize; Class::COUNT],
    /// Basic transactions by the result of a perfect cache: a hit or a miss.
    pub offered: [TimeAndSize; 2],
    /// Authentication steps that led to a further exchange.
    pub auth_steps: TimeAndSize,
    /// Replies whose status is in the agent's custom scope.
    pub custom: TimeAndSize,
    /// Transactions with accepted credentials.
    pub authenticated: TimeAndSize,
    /// Transactions without credentials. Authentication steps are included in neither count.
    pub anonymous: TimeAndSize,
    /// Transactions through SOCKS proxies: hits, and all others.
    pub socks: [TimeAndSize; 2],
    /// Transactions over TLS: hits, and all others.
    pub secure: [TimeAndSize; 2],
    /// Transactions through tunnels.
    pub tunneled: TimeAndSize,
    /// Requests that opened a tunnel.
    pub connects: TimeAndSize,
    /// Complete pages.
    pub pages: TimeAndSize,
    /// Lifetimes of closed connections in microseconds.
    pub conn_ttl_us: SummaryStats,
    /// Transactions per closed connection.
    pub conn_uses: SummaryStats,
    /// Failed transactions.
    pub failed: u64,
    /// Transactions in which a bad certificate was refused, as it must be.
    pub refused: u64,
    /// Failed transactions whose access was refused or granted wrongly.
    pub failed_access: u64,
    /// Transactions that failed because of a SOCKS proxy, of TLS, and of a tunnel that was not opened.
    pub failed_layers: [u64; 3],
    /// Transactions that were restarted.
    pub retried: u64,
    /// Concurrent transactions.
    pub xacts: LevelDelta,
    /// Transactions that wait for a connection.
    pub waiting: LevelDelta,
    /// Open connections.
    pub conns: LevelDelta,
    /// Open connections that are established.
    pub established: LevelDelta,
    /// Open connections that wait for their next request.
    pub idle: LevelDelta,
    /// Live robots.
    pub populus: LevelDelta,
    /// Unfinished transactions at the end: their ages, and the reply bytes that have arrived so far.
    pub live: TimeAndSize,
}

fold_fields! {
    Window {
        classes, offered, auth_steps, custom, authenticated, anonymous, socks, secure, tunneled, connects, pages, conn_ttl_us, conn_uses, failed, refused,
        failed_access, failed_layers, retried, xacts, waiting,
        conns, established, idle, populus, live, loops;
        loop_seconds
    }
}

/// The response times and sizes of the two histograms, with the extremes of the values since the last call.
fn take_time_and_size<const DIGITS: u8>(
    rptm_us: &mut Histogram<DIGITS>,
    size: &mut Histogram<DIGITS>,
) -> TimeAndSize {
    TimeAndSize { rptm_us: rptm_us.take_summary(), size: size.take_summary() }
}

impl Window {
    /// Counts a successful transaction by properties that blocks do not keep.
    pub(crate) fn finish(&mut self, done: &Finished) {
        if done.class.is_basic() {
            self.offered[usize::from(!done.offered_hit)].record(done.rptm_us, done.size);
        }
        let sums = match done.authenticated.is_some() {
            true => &mut self.authenticated,
            false => &mut self.anonymous,
        };
        if !matches!(done.class, Class::Authenticating | Class::Abort) {
            sums.record(done.rptm_us, done.size);
        }
        let rest = usize::from(done.class != Class::Hit);
        if done.socks {
            self.socks[rest].record(done.rptm_us, done.size);
        }
        if done.secure {
            self.secure[rest].record(done.rptm_us, done.size);
        }
    }

    /// The counts of a block; extremes are those since the last call.
    pub(crate) fn take(block: &mut Block, seconds: f64) -> Window {
        let access = |kind: ErrorKind| kind.fails() && kind.nature() == Nature::Access;
        let of_layer = |layer| block.errors.sum(|kind| kind.fails() && kind.layer() == Some(layer));
        let failed_layers = [Layer::Socks, Layer::Tls, Layer::Tunnel].map(of_layer);
        let mut classes = [TimeAndSize::default(); Class::COUNT];
        for (sums, stats) in classes.iter_mut().zip(&mut block.classes) {
            *sums = take_time_and_size(&mut stats.rptm_us, &mut stats.size);
        }
        let steps =
            block.auth_steps.iter_mut().map(|stats| take_time_and_size(&mut stats.rptm_us, &mut stats.size));
        Window {
            loop_seconds: seconds,
            loops: 1,
            classes,
            custom: take_time_and_size(&mut block.custom.rptm_us, &mut block.custom.size),
            auth_steps: steps.fold(TimeAndSize::default(), |sum, steps| sum.with(&steps)),
            tunneled: take_time_and_size(&mut block.tls.tunneled.rptm_us, &mut block.tls.tunneled.size),
            connects: take_time_and_size(&mut block.tls.connects.rptm_us, &mut block.tls.connects.size),
            pages: take_time_and_size(&mut block.pages.rptm_us, &mut block.pages.size),
            conn_ttl_us: block.conn_ttl_us.take_summary(),
            conn_uses: block.conn_uses.take_summary(),
            failed: block.failed_count(),
            refused: block.tls.refusal_count(),
            failed_access: block.errors.sum(access),
            failed_layers,
            retried: block.retried,
            xacts: LevelDelta::of(&block.xacts),
            waiting: LevelDelta::of(&block.waiting),
            conns: LevelDelta::of(&block.conns),
            established: LevelDelta::of(&block.established),
            idle: LevelDelta::of(&block.idle),
            populus: LevelDelta::of(&block.populus),
            ..Window::default()
        }
    }

    /// The counts since `earlier`, in the same block.
    pub(crate) fn since(&self, earlier: &Window) -> Window {
        let tm_sz = |pick: fn(&Window) -> &TimeAndSize| pick(self).since(pick(earlier));
        let flow = |pick: fn(&Window) -> &LevelDelta| pick(self).since(pick(earlier));
        Window {
            loop_seconds: self.loop_seconds - earlier.loop_seconds,
            loops: self.loops,
            classes: std::array::from_fn(|at| self.classes[at].since(&earlier.classes[at])),
            auth_steps: tm_sz(|window| &window.auth_steps),
            custom: tm_sz(|window| &window.custom),
            tunneled: tm_sz(|window| &window.tunneled),
            connects: tm_sz(|window| &window.connects),
            pages: tm_sz(|window| &window.pages),
            conn_ttl_us: self.conn_ttl_us.since(&earlier.conn_ttl_us),
            conn_uses: self.conn_uses.since(&earlier.conn_uses),
            failed: self.failed - earlier.failed,
            refused: self.refused - earlier.refused,
            failed_access: self.failed_access - earlier.failed_access,
            failed_layers: std::array::from_fn(|at| self.failed_layers[at] - earlier.failed_layers[at]),
            retried: self.retried - earlier.retried,
            xacts: flow(|window| &window.xacts),
            waiting: flow(|window| &window.waiting),
            conns: flow(|window| &window.conns),
            established: flow(|window| &window.established),
            idle: flow(|window| &window.idle),
            populus: flow(|window| &window.populus),
            ..Window::default()
        }
    }

    /// The window of one loop without events for this many seconds.
    pub fn lasting(seconds: f64) -> Window {
        Window { loop_seconds: seconds, loops: 1, ..Window::default() }
    }

    /// Adds the window of another loop over the same time.
    pub fn merge(&mut self, other: &Window) {
        self.fold(other);
        self.loop_seconds += other.loop_seconds;
    }

    /// Appends a later window of the same loops.
    pub fn append(&mut self, later: &Window) {
        let loops = later.loops.max(self.loops);
        self.live = TimeAndSize::default();
        self.flows_mut().into_iter().for_each(|flow| flow.last = 0);
        self.merge(later);
        self.loops = loops;
    }

    /// The window of length 0 that follows this one: no counts, and unchanged levels.
    #[must_use]
    pub fn carry(&self) -> Window {
        let mut next = Window { loops: self.loops, live: self.live, ..Window::default() };
        for (to, from) in next.flows_mut().into_iter().zip(self.flows()) {
            to.last = from.last;
        }
        next
    }

    fn flows(&self) -> [&LevelDelta; 6] {
        [&self.xacts, &self.waiting, &self.conns, &self.established, &self.idle, &self.populus]
    }

    fn flows_mut(&mut self) -> [&mut LevelDelta; 6] {
        let Window { xacts, waiting, conns, established, idle, populus, .. } = self;
        [xacts, waiting, conns, established, idle, populus]
    }

    /// Length in seconds.
    pub fn seconds(&self) -> f64 {
        if self.loops == 0 { 0.0 } else { self.loop_seconds / self.loops as f64 }
    }

    /// Finished transactions of some classes.
    pub fn of(&self, classes: &[Class]) -> TimeAndSize {
        classes.iter().fold(TimeAndSize::default(), |sum, &class| sum.with(&self.classes[class as usize]))
    }

    /// All successful transactions. A response-time controller keeps the [`SummaryStats::mean`] of their times constant.
    pub fn all(&self) -> TimeAndSize {
        self.of(&Class::ALL)
    }

    /// Cachable misses, which fill a cache.
    pub fn fills(&self) -> TimeAndSize {
        self.of(&[Class::Miss])
    }

    /// Completed transactions, successful or failed.
    pub fn ended(&self) -> u64 {
        self.all().size.count + self.failed + self.refused
    }
}
