//! The optional model of a slower device: a queue in front of one server, and a latency.
//!
//! The queue is what queueing theory calls M/G/1: requests arrive at random, one server works on them in the order of arrival,
//! and the time it needs for each is drawn from a distribution. The response time rises with the load, slowly at first and
//! without bound near the capacity, which is 1 divided by the mean work. With mean work `w`, squared coefficient of variation
//! `c2` and a load of `r` per second, requests wait for `r w^2 (1 + c2) / (2 (1 - r w))` seconds on average (Pollaczek and
//! Khinchine) and are then worked on for `w`.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use polygraph_link::Nanos;
use polygraph_traffic::{Distr, Stream};

/// The model of a device that is slower than the machine on which it runs. By default there are no delays.
///
/// All times have the resolution of the event loop's timers, but errors of the queue do not add up: throughput is exact.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceModel {
    /// Seconds of work for each request, in one queue with one server.
    pub work: Option<Distr>,
    /// Further seconds of work in the same queue for each request that is forwarded to an origin.
    pub miss_work: Option<Distr>,
    /// Latency of requests after the queue in seconds; requests have it in parallel.
    pub latency: Option<Distr>,
    /// Further latency in seconds of requests that the store answers.
    pub hit_latency: Option<Distr>,
    /// Further latency in seconds of all other requests.
    pub miss_latency: Option<Distr>,
    /// Times after the start, each with a factor by which work and latency at the start are multiplied from then on.
    pub changes: Vec<(Duration, f64)>,
}

impl ServiceModel {
    /// Constant work for `rate` requests per second, a positive number.
    pub fn rate(rate: f64) -> Distr {
        Distr::Const(1.0 / rate)
    }

    /// True if requests are delayed.
    pub fn is_slower(&self) -> bool {
        [&self.work, &self.miss_work, &self.latency, &self.hit_latency, &self.miss_latency]
            .iter()
            .any(|time| time.is_some())
    }

    /// The problem of the model, if there is one.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        if self.changes.iter().any(|(_, factor)| !(factor.is_finite() && *factor > 0.0)) {
            Some("a device can be made slower or faster by a positive factor only")
        } else if !self.changes.is_empty() && !self.is_slower() {
            Some("a device without service time cannot be made slower: also configure work or latency")
        } else {
            None
        }
    }

    /// The factor in force at this time after the start.
    fn factor(&self, since_start: Nanos) -> f64 {
        let past = self.changes.iter().filter(|(after, _)| nanos_of(*after) <= since_start);
        past.max_by_key(|(after, _)| *after).map_or(1.0, |(_, factor)| *factor)
    }
}

/// A device that follows a model, shared by all event loops.
///
/// The queue has one server and no limit. There is no list of waiting requests: the time at which the server becomes
/// free determines when the next arrival is served.
#[derive(Debug)]
pub struct Service {
    model: ServiceModel,
    start: Nanos,
    /// When all requests in the queue have been served.
    free_at: AtomicU64,
}

impl Service {
    /// A device that starts at `start`.
    pub fn new(model: ServiceModel, start: Nanos) -> Service {
        Service { model, start, free_at: AtomicU64::new(start.as_u64()) }
    }

    /// Whether requests are delayed.
    pub fn is_slower(&self) -> bool {
        self.model.is_slower()
    }

    /// When the proxy may decide on a request that arrives at `now`.
    pub fn enter(&self, now: Nanos, draws: &RefCell<Stream>) -> Nanos {
        let served = self.queue(&self.model.work, now, draws);
        served + self.draw(&self.model.latency, now, draws)
    }

    /// When a request on which the proxy decided at `now` may be answered or forwarded; `hit` if the store answers it.
    pub fn decided(&self, now: Nanos, hit: bool, draws: &RefCell<Stream>) -> Nanos {
        let latency = if hit { &self.model.hit_latency } else { &self.model.miss_latency };
        now + self.draw(latency, now, draws)
    }

    /// When a request that needs an origin may be forwarded.
    pub fn miss(&self, now: Nanos, draws: &RefCell<Stream>) -> Nanos {
        self.queue(&self.model.miss_work, now, draws)
    }

    /// Adds a request to the queue, and returns the time at which its work is done.
    fn queue(&self, work: &Option<Distr>, now: Nanos, draws: &RefCell<Stream>) -> Nanos {
        if work.is_none() {
            return now;
        }
        let work = self.draw(work, now, draws);
        let served = |free_at: Nanos| free_at.max(now).saturating_add(work);
        let before =
            self.free_at.fetch_update(Relaxed, Relaxed, |free_at| Some(served(Nanos::new(free_at)).as_u64()));
        served(Nanos::new(before.unwrap_or_else(|free_at| free_at)))
    }

    fn draw(&self, distr: &Option<Distr>, now: Nanos, draws: &RefCell<Stream>) -> Nanos {
        let Some(distr) = distr else { return Nanos::ZERO };
        let factor = self.model.factor(now.saturating_sub(self.start));
        let seconds = distr.sample(&mut *draws.borrow_mut()) * factor;
        // At most thirty years, so that sums do not overflow.
        Nanos::new((seconds * 1e9).round().clamp(0.0, 1e18) as u64)
    }
}

/// A duration in nanoseconds; durations beyond 500 years saturate.
pub(crate) fn nanos_of(duration: Duration) -> Nanos {
    Nanos::new(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 2))
}

#[cfg(test)]
mod tests {
    use polygraph_link::{SECOND, nanos};
    use polygraph_traffic::Seed;

    use super::*;

    fn draws() -> RefCell<Stream> {
        RefCell::new(Seed(1).stream("test", 0))
    }

    #[test]
    fn a_burst_leaves_at_the_rate_and_idle_time_is_not_saved_up() {
        let start = SECOND;
        let at = |ms: u64| start + Nanos::new(ms * 1_000_000);
        let service = Service::new(
            ServiceModel { work: Some(ServiceModel::rate(100.0)), ..ServiceModel::default() },
            start,
        );
        let enter = |ms| service.enter(at(ms), &draws());
        assert_eq!([enter(0), enter(0), enter(15), enter(1000)], [at(10), at(20), at(30), at(1010)]);
    }

    #[test]
    fn misses_work_twice_and_latency_is_served_at_the_same_time() {
        let start = SECOND;
        let at = |ms: u64| start + Nanos::new(ms * 1_000_000);
        let model = ServiceModel {
            work: Some(Distr::Const(0.010)),
            miss_work: Some(Distr::Const(0.005)),
            latency: Some(Distr::Const(0.100)),
            ..ServiceModel::default()
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
            assert_eq!(model.factor(since * SECOND), factor, "after {since} s");
        }
        let now = 100 * SECOND;
        assert_eq!(Service::new(model, Nanos::ZERO).enter(now, &draws()), now + SECOND / 5);
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
                let model = ServiceModel { work: Some(work.clone()), ..ServiceModel::default() };
                let (service, draws) = (Service::new(model, Nanos::ZERO), draws());
                let mut arrivals = Seed(2).stream("arrivals", 0);
                let (mut at, mut sum) = (0.0, 0.0);
                for _ in 0..COUNT {
                    at -= (1.0 - arrivals.unit()).ln() * WORK / load;
                    let now = nanos(at);
                    sum += (service.enter(now, &draws) - now).as_f64() * 1e-9;
                }
                let expected = WORK + load * WORK * (1.0 + c2) / (2.0 * (1.0 - load));
                let mean = sum / f64::from(COUNT);
                assert!((mean / expected - 1.0).abs() < 0.05, "{work} at {load}: {mean}, not {expected}");
            }
        }
    }
}
