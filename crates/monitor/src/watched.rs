//! What is known of all processes that are watched.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use polygraph_live::{LiveCounts, LiveState, LiveStatistics};
use polygraph_stats::Side;

/// Points in the history of a process: an hour of messages, or more where older ones are sparse.
const MOST_POINTS: usize = 3600;
/// A process that has sent nothing for so long is silent.
pub const SILENT_AFTER: Duration = Duration::from_secs(15);
/// The most processes; a view with more would show nothing to anybody.
const MOST_PROCESSES: usize = 100_000;

/// Which process and side a message is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessKey {
    /// The name of the host.
    pub host: String,
    /// The process id.
    pub pid: u32,
    /// `client` or `server`.
    pub side: &'static str,
}

impl ProcessKey {
    /// The key of a message.
    pub fn of(message: &LiveStatistics) -> ProcessKey {
        ProcessKey { host: message.host.clone(), pid: message.pid, side: message.side.name() }
    }
}

/// What a message said, without its texts.
#[derive(Clone, Copy, Debug)]
pub struct HistoryPoint {
    /// The end of the time that it covers, in seconds since 1970.
    pub at_s: f64,
    /// What was counted in that time.
    pub counts: LiveCounts,
    /// Open connections at its end.
    pub open_connections: u64,
}

/// One side of a process.
#[derive(Clone, Debug)]
pub struct WatchedProcess {
    /// The last message.
    pub latest: LiveStatistics,
    /// What it did before.
    pub history: VecDeque<HistoryPoint>,
    /// When the last message came.
    pub seen: Instant,
    /// Whether the connection to the process has ended.
    pub gone: bool,
}

impl WatchedProcess {
    /// What it does, or what is wrong with it: `running`, `silent`, `lost` and so on.
    pub fn condition(&self, now: Instant) -> &'static str {
        match self.latest.state {
            LiveState::Running if self.gone => "lost",
            LiveState::Running if now.saturating_duration_since(self.seen) > self.silent_after() => "silent",
            LiveState::Waiting if self.gone => "gone",
            state => state.name(),
        }
    }

    /// Whether the figures of the last message are those of now.
    pub fn is_current(&self, now: Instant) -> bool {
        self.condition(now) == LiveState::Running.name()
    }

    /// Statistics intervals may be long.
    fn silent_after(&self) -> Duration {
        let interval = Duration::try_from_secs_f64(3.0 * self.latest.interval.seconds).unwrap_or_default();
        interval.max(SILENT_AFTER)
    }
}

/// All processes.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    processes: BTreeMap<ProcessKey, WatchedProcess>,
}

impl Watched {
    /// Takes a message that came at `now`.
    pub fn take(&mut self, message: LiveStatistics, now: Instant) {
        if self.is_known_better(&message) {
            return;
        }
        if !message.version.is_empty() {
            self.forget_notifications_of(&message);
        }
        let key = ProcessKey::of(&message);
        if self.processes.len() >= MOST_PROCESSES && !self.processes.contains_key(&key) {
            return;
        }
        let point = HistoryPoint {
            at_s: message.start_unix_us as f64 * 1e-6 + message.elapsed_s,
            counts: message.interval,
            open_connections: message.open_connections,
        };
        let process = self.processes.entry(key).or_insert_with(|| WatchedProcess {
            latest: message.clone(),
            history: VecDeque::new(),
            seen: now,
            gone: false,
        });
        // A process id may come back, and whoever attaches again gets the history again, from the start.
        if message.start_unix_us != process.latest.start_unix_us || message.state == LiveState::Waiting {
            process.history.clear();
        }
        // The history of a process may come after its first new messages.
        let place = process.history.partition_point(|known| known.at_s < point.at_s);
        let is_new = process.history.get(place).is_none_or(|known| known.at_s > point.at_s);
        if is_new && point.counts.seconds > 0.0 {
            process.history.insert(place, point);
            if process.history.len() > MOST_POINTS {
                process.history.pop_front();
            }
        }
        let is_older = message.start_unix_us == process.latest.start_unix_us
            && message.elapsed_s < process.latest.elapsed_s;
        if !is_older {
            process.latest = message;
        }
        process.seen = now;
        process.gone = false;
    }

    /// The connection to these processes has ended.
    pub fn lose(&mut self, keys: &[ProcessKey]) {
        for key in keys {
            if let Some(process) = self.processes.get_mut(key) {
                process.gone = true;
            }
        }
    }

    /// Forgets processes that have ended or disappeared.
    pub fn forget_ended(&mut self, now: Instant) {
        self.processes
            .retain(|_, process| !matches!(process.condition(now), "ended" | "lost" | "gone" | "silent"));
    }

    /// All processes, in order of host and id.
    pub fn processes(&self) -> impl Iterator<Item = (&ProcessKey, &WatchedProcess)> {
        self.processes.iter()
    }

    /// A process may send notifications while it is attached to; they say less.
    fn is_known_better(&self, message: &LiveStatistics) -> bool {
        message.version.is_empty()
            && self
                .processes
                .values()
                .any(|process| !process.latest.version.is_empty() && is_same_run(&process.latest, message))
    }

    fn forget_notifications_of(&mut self, message: &LiveStatistics) {
        self.processes.retain(|_, process| {
            !process.latest.version.is_empty() || !is_same_run(&process.latest, message)
        });
    }

    /// The sum of a figure over the processes that `wanted` selects, in `steps` equal steps of the time before `until_s`.
    /// `None` where no process has a figure.
    pub fn series(
        &self,
        span: TimeSpan,
        figure: SeriesFigure,
        wanted: impl Fn(&ProcessKey, &WatchedProcess) -> bool,
    ) -> Vec<Option<f64>> {
        let mut sums: Vec<StepSums> = vec![StepSums::default(); span.steps];
        for (_, process) in self.processes.iter().filter(|(key, process)| wanted(key, process)) {
            let mut of_process: Vec<Option<StepSums>> = vec![None; span.steps];
            for point in &process.history {
                for step in span.steps_of(point) {
                    of_process[step].get_or_insert_default().add(point);
                }
            }
            for (sum, one) in sums.iter_mut().zip(of_process) {
                if let Some(one) = one {
                    sum.merge(&one);
                }
            }
        }
        sums.iter().map(|sum| sum.value(figure)).collect()
    }

    /// The time of the last point of any process, in seconds since 1970.
    pub fn last_s(&self) -> f64 {
        let last = self.processes.values().filter_map(|process| process.history.back());
        last.map(|point| point.at_s).fold(0.0, f64::max)
    }
}

fn is_same_run(one: &LiveStatistics, other: &LiveStatistics) -> bool {
    one.side == other.side && one.start_unix_us == other.start_unix_us && one.start_unix_us > 0
}

/// A figure over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesFigure {
    /// Transactions that succeeded per second.
    Rate,
    /// Mean response time in milliseconds.
    ResponseTime,
    /// Document hit ratio in percent.
    HitRatio,
    /// Failed transactions per second.
    Errors,
    /// Open connections.
    OpenConnections,
}

/// A time that is cut into equal steps.
#[derive(Clone, Copy, Debug)]
pub struct TimeSpan {
    /// Its end, in seconds since 1970.
    pub until_s: f64,
    /// The length of a step in seconds.
    pub step_s: f64,
    /// The number of steps.
    pub steps: usize,
}

impl TimeSpan {
    /// The steps whose middles a point covers.
    fn steps_of(&self, point: &HistoryPoint) -> std::ops::Range<usize> {
        let from_s = self.until_s - self.step_s * self.steps as f64;
        let step =
            |at_s: f64| ((at_s - from_s) / self.step_s - 0.5).ceil().clamp(0.0, self.steps as f64) as usize;
        step(point.at_s - point.counts.seconds)..step(point.at_s)
    }
}

/// What processes counted in a step.
#[derive(Clone, Copy, Debug, Default)]
struct StepSums {
    counts: LiveCounts,
    ok_rate: f64,
    error_rate: f64,
    open: f64,
    covered: bool,
}

impl StepSums {
    /// Adds a point of one process; a later one takes the place of an earlier one.
    fn add(&mut self, point: &HistoryPoint) {
        let rate = |count: f64| point.counts.per_second(count).unwrap_or(0.0);
        *self = StepSums {
            counts: point.counts,
            ok_rate: rate(point.counts.ok),
            error_rate: rate(point.counts.failed),
            open: point.open_connections as f64,
            covered: true,
        };
    }

    /// Adds another process.
    fn merge(&mut self, other: &StepSums) {
        self.counts.merge(&other.counts);
        self.ok_rate += other.ok_rate;
        self.error_rate += other.error_rate;
        self.open += other.open;
        self.covered |= other.covered;
    }

    fn value(&self, figure: SeriesFigure) -> Option<f64> {
        if !self.covered {
            return None;
        }
        match figure {
            SeriesFigure::Rate => Some(self.ok_rate),
            SeriesFigure::ResponseTime => self.counts.mean_rptm_ms(),
            SeriesFigure::HitRatio => self.counts.hit_percent(),
            SeriesFigure::Errors => Some(self.error_rate),
            SeriesFigure::OpenConnections => Some(self.open),
        }
    }
}

/// Both sides, in the order of views.
pub const SIDES: [Side; 2] = [Side::Client, Side::Server];
