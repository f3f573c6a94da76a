//! The optional model of a slower device: a queue in front of one server, and a latency.
//!
//! The queue is what queueing theory calls M/G/1: requests arrive at random, one server works on them in the order of
//! arrival, and the time it needs for each is drawn from a distribution. So response time rises with the load,
//! slowly at first and without bound towards the capacity, which is one over the mean work. With mean work `w`,
//! squared coefficient of variation `c2` and a load of `r` per second, requests wait for
//! `r w^2 (1 + c2) / (2 (1 - r w))` seconds on average (Pollaczek and Khinchine) and are then worked on for `w`.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use polygraph_traffic::{Distr, Stream};

/// How a device is slower than the machine it runs on. By default it is not.
///
/// All times have the resolution of the runtime, 1 ms, but those of the queue do not add up: throughput is exact.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceModel {
    /// Seconds of work for each request, all through one queue with one server.
    pub work: Option<Distr>,
    /// Further seconds of work in the same queue for each request that an origin has to be asked for.
    pub miss_work: Option<Distr>,
    /// Latency in seconds that requests have after the queue, all at the same time.
    pub latency: Option<Distr>,
    /// From so long after the start on, work and latency are so many times what they were at the start.
    pub changes: Vec<(Duration, f64)>,
}

impl ServiceModel {
    /// Constant work for `rate` requests per second, a positive number.
    pub fn rate(rate: f64) -> Distr {
        Distr::Const(1.0 / rate)
    }

    /// True if requests are delayed.
    pub fn is_slower(&self) -> bool {
        self.work.is_some() || self.miss_work.is_some() || self.latency.is_some()
    }

    /// What is wrong with it, if anything.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        if self.changes.iter().any(|(_, factor)| !(factor.is_finite() && *factor > 0.0)) {
            Some("a device can be made slower or faster by a positive factor only")
        } else if !self.changes.is_empty() && !self.is_slower() {
            Some("a device that is as fast as the machine cannot be made slower: give it work or latency")
        } else {
            None
        }
    }

    /// The factor in force so long after the start.
    fn factor(&self, since_start: Duration) -> f64 {
        let past = self.changes.iter().filter(|(after, _)| *after <= since_start);
        past.max_by_key(|(after, _)| *after).map_or(1.0, |(_, factor)| *factor)
    }
}

/// A device that follows a model, shared by all loops.
#[derive(Debug)]
pub struct Service {
    model: ServiceModel,
    start: Instant,
    queue: Queue,
}

impl Service {
    /// A device that starts now.
    pub fn new(model: ServiceModel, start: Instant) -> Service {
        Service { model, start, queue: Queue { free_ns: AtomicU64::new(0) } }
    }

    /// Whether requests are delayed.
    pub fn is_slower(&self) -> bool {
        self.model.is_slower()
    }

    /// When a request that arrives at `now` may be answered or passed on.
    pub fn enter(&self, now: Instant, draws: &RefCell<Stream>) -> Instant {
        let served = self.queue(&self.model.work, now, draws);
        served + self.draw(&self.model.latency, now, draws)
    }

    /// When a request that an origin has to be asked for at `now` may be passed on.
    pub fn miss(&self, now: Instant, draws: &RefCell<Stream>) -> Instant {
        self.queue(&self.model.miss_work, now, draws)
    }

    fn queue(&self, work: &Option<Distr>, now: Instant, draws: &RefCell<Stream>) -> Instant {
        match work {
            Some(_) => {
                let served = self.queue.enter(self.since_start(now), self.draw(work, now, draws));
                self.start + served
            }
            None => now,
        }
    }

    fn draw(&self, distr: &Option<Distr>, now: Instant, draws: &RefCell<Stream>) -> Duration {
        let seconds = distr.as_ref().map_or(0.0, |distr| distr.sample(&mut *draws.borrow_mut()));
        let factor = self.model.factor(self.since_start(now));
        Duration::try_from_secs_f64(seconds * factor).unwrap_or_default()
    }

    fn since_start(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.start)
    }
}

/// One server with one unbounded queue.
///
/// No transaction ever waits in a list: the moment at which the server becomes free again is enough to tell
/// each arrival when it will be served, in the order of arrival.
#[derive(Debug)]
struct Queue {
    /// Nanoseconds after the start at which everything accepted so far is served.
    free_ns: AtomicU64,
}

impl Queue {
    /// Enters the queue with so much work; gives the moment at which it is done. Both moments count from the start.
    fn enter(&self, now: Duration, work: Duration) -> Duration {
        let (now_ns, work_ns) = (now.as_nanos() as u64, work.as_nanos() as u64);
        let served = |free_ns: u64| free_ns.max(now_ns).saturating_add(work_ns);
        let before = self.free_ns.fetch_update(Relaxed, Relaxed, |free_ns| Some(served(free_ns)));
        Duration::from_nanos(served(before.unwrap_or_else(|free_ns| free_ns)))
    }
}

#[cfg(test)]
mod tests {
    use polygraph_traffic::Seed;

    use super::*;

    fn draws() -> RefCell<Stream> {
        RefCell::new(Seed(1).stream("test", 0))
    }

    #[test]
    fn a_burst_leaves_at_the_rate_and_idle_time_is_not_saved_up() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let service = Service::new(
            ServiceModel { work: Some(ServiceModel::rate(100.0)), ..ServiceModel::default() },
            start,
        );
        let enter = |ms| service.enter(at(ms), &draws());
        assert_eq!([enter(0), enter(0), enter(15), enter(1000)], [at(10), at(20), at(30), at(1010)]);
    }

    #[test]
    fn misses_work_twice_and_latency_is_served_at_the_same_time() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let model = ServiceModel {
            work: Some(Distr::Const(0.010)),
            miss_work: Some(Distr::Const(0.005)),
            latency: Some(Distr::Const(0.100)),
            changes: Vec::new(),
        };
        let service = Service::new(model, start);
        assert_eq!(service.enter(at(0), &draws()), at(110));
        assert_eq!(service.miss(at(0), &draws()), at(15), "no latency, and behind the first");
        assert_eq!(service.enter(at(0), &draws()), at(125));
    }

    #[test]
    fn the_latest_change_is_in_force() {
        let seconds = Duration::from_secs;
        let changes = vec![(seconds(480), 1.5), (seconds(60), 2.0)];
        let model = ServiceModel { latency: Some(Distr::Const(0.1)), changes, ..ServiceModel::default() };
        for (since, factor) in [(0, 1.0), (59, 1.0), (60, 2.0), (479, 2.0), (480, 1.5), (9000, 1.5)] {
            assert_eq!(model.factor(seconds(since)), factor, "after {since} s");
        }
        let start = Instant::now();
        let now = start + seconds(100);
        assert_eq!(Service::new(model, start).enter(now, &draws()), now + Duration::from_millis(200));
    }

    #[test]
    fn models_that_make_no_sense_are_refused() {
        let work = Some(Distr::Const(0.01));
        let change = |factor| ServiceModel {
            work: work.clone(),
            changes: vec![(Duration::ZERO, factor)],
            ..ServiceModel::default()
        };
        for (model, good) in [
            (ServiceModel::default(), true),
            (change(1.5), true),
            (change(0.0), false),
            (change(f64::NAN), false),
            (ServiceModel { work: None, ..change(1.5) }, false),
        ] {
            assert_eq!(model.problem().is_none(), good, "{model:?}");
        }
    }

    /// Arrivals as they are in a test, work as in M/D/1, M/M/1 and with heavy tails: the mean waiting time is that of
    /// the formula of Pollaczek and Khinchine within 5 %.
    #[test]
    fn waiting_times_are_those_of_queueing_theory() {
        use polygraph_traffic::Random;
        const WORK: f64 = 0.01;
        const COUNT: u32 = 300_000;
        let distrs = [
            (Distr::Const(WORK), 0.0),
            (Distr::Exp { mean: WORK }, 1.0),
            (Distr::logn(WORK, 2.0 * WORK), 4.0),
        ];
        for (work, c2) in distrs {
            for load in [0.3, 0.7] {
                let start = Instant::now();
                let model = ServiceModel { work: Some(work.clone()), ..ServiceModel::default() };
                let (service, draws) = (Service::new(model, start), draws());
                let mut arrivals = Seed(2).stream("arrivals", 0);
                let (mut at, mut sum) = (0.0, 0.0);
                for _ in 0..COUNT {
                    at -= (1.0 - arrivals.unit()).ln() * WORK / load;
                    let now = start + Duration::from_secs_f64(at);
                    sum += (service.enter(now, &draws) - now).as_secs_f64();
                }
                let expected = WORK + load * WORK * (1.0 + c2) / (2.0 * (1.0 - load));
                let mean = sum / f64::from(COUNT);
                assert!((mean / expected - 1.0).abs() < 0.05, "{work} at {load}: {mean}, not {expected}");
            }
        }
    }
}
