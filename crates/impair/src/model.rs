//! What happens to each packet of a pipe, in virtual time.
//!
//! The order is that of dummynet: a packet may get lost as it enters; the others wait for transmission in a queue with
//! a limit, are transmitted one after the other, and then travel for the time that the delay says.

use std::collections::VecDeque;

use polygraph_traffic::{Distr, Random, Stream};

use crate::pipe::{Pipe, QueueLimit};

/// Nanoseconds on a clock that never goes back.
pub type Nanos = u64;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives at this time.
    Arrives(Nanos),
    /// It gets lost. Those that are resolved in order are finished with it at this time.
    Lost(Nanos),
    /// The queue for transmission is full.
    Overflows,
}

/// The state of a pipe.
#[derive(Clone, Debug)]
pub struct PipeModel {
    pipe: Pipe,
    random: Stream,
    /// When the link has transmitted all packets so far.
    link_free: Nanos,
    /// The packets that are not yet transmitted: the end of their transmission, and their lengths.
    waiting: VecDeque<(Nanos, u32)>,
    waiting_bytes: u64,
    /// When the last packet arrives.
    last: Nanos,
    constant: Option<Nanos>,
}

impl PipeModel {
    /// A pipe without packets.
    pub fn new(pipe: Pipe, random: Stream) -> PipeModel {
        let value = |distr: &Distr| match distr {
            Distr::Const(seconds) => Some(nanos(*seconds)),
            _ => None,
        };
        let jitter = pipe.jitter.as_ref().map_or(Some(0), value);
        let constant = value(&pipe.delay).zip(jitter).map(|(delay, jitter)| delay + jitter);
        PipeModel {
            pipe,
            random,
            link_free: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            last: 0,
            constant,
        }
    }

    /// Sends a packet into the pipe at `now`, which never goes back. `length` in bytes matters only if the bandwidth
    /// is limited.
    pub fn send(&mut self, now: Nanos, length: u32) -> Fate {
        let ordered = |at: Nanos, last: Nanos| if self.pipe.reorder { at } else { at.max(last) };
        if self.pipe.loss > 0.0 && self.random.event(self.pipe.loss) {
            return Fate::Lost(ordered(now, self.last));
        }
        let Some(transmitted) = self.transmit(now, length) else { return Fate::Overflows };
        let delay = self.constant.unwrap_or_else(|| {
            let jitter = self.pipe.jitter.as_ref().map_or(0.0, |jitter| jitter.sample(&mut self.random));
            nanos(self.pipe.delay.sample(&mut self.random) + jitter)
        });
        let ordered = |at: Nanos, last: Nanos| if self.pipe.reorder { at } else { at.max(last) };
        let at = ordered(transmitted.saturating_add(delay), self.last);
        self.last = self.last.max(at);
        Fate::Arrives(at)
    }

    /// When the last bit of a packet has been transmitted. `None` if the packet finds no room.
    fn transmit(&mut self, now: Nanos, length: u32) -> Option<Nanos> {
        let Some(bandwidth) = self.pipe.bandwidth else { return Some(now) };
        while let Some(&(_, length)) = self.waiting.front().filter(|(end, _)| *end <= now) {
            self.waiting.pop_front();
            self.waiting_bytes -= u64::from(length);
        }
        // A packet that is longer than the queue can be transmitted when the link is free.
        let is_full = match self.pipe.queue {
            QueueLimit::Packets(count) => self.waiting.len() >= count.max(1) as usize,
            QueueLimit::Bytes(count) => {
                !self.waiting.is_empty() && self.waiting_bytes + u64::from(length) > count
            }
        };
        if is_full {
            return None;
        }
        let end = self.link_free.max(now).saturating_add(nanos(f64::from(length) * 8.0 / bandwidth));
        self.link_free = end;
        self.waiting.push_back((end, length));
        self.waiting_bytes += u64::from(length);
        Some(end)
    }
}

/// Seconds in nanoseconds. Nonsense becomes 0, and times beyond all measure stay finite.
fn nanos(seconds: f64) -> Nanos {
    (seconds * 1e9).round().clamp(0.0, 1e18) as Nanos
}

#[cfg(test)]
mod tests {
    use polygraph_traffic::Seed;
    use proptest::prelude::*;

    use super::*;

    const MS: Nanos = 1_000_000;

    fn model(pipe: Pipe) -> PipeModel {
        PipeModel::new(pipe, Seed(1).stream("a test", 0))
    }

    #[test]
    fn a_constant_delay_is_exact() {
        let mut model = model(Pipe { delay: Distr::Const(0.04), ..Pipe::default() });
        assert_eq!(model.send(0, 1500), Fate::Arrives(40 * MS));
        assert_eq!(model.send(5, 1500), Fate::Arrives(40 * MS + 5));
    }

    #[test]
    fn a_million_packets_lose_their_share() {
        let mut model = model(Pipe { loss: 0.0005, ..Pipe::default() });
        let lost = (0..1_000_000).filter(|&now| matches!(model.send(now, 100), Fate::Lost(_))).count() as f64;
        // 500 are expected, with a standard deviation of 22.4.
        assert!((lost - 500.0).abs() < 4.0 * 22.4, "{lost}");
    }

    /// Packets that are far apart do not wait for each other, so their delays have the distribution that was asked for.
    #[test]
    fn delays_have_their_distribution() {
        const COUNT: u64 = 100_000;
        let uniform = Distr::Unif { min: 0.02, max: 0.04 };
        let normal = Distr::Norm { mean: 0.05, sd: 0.005 };
        let exponential = Distr::Exp { mean: 0.005 };
        let fixed = Distr::Const(0.01);
        let uniform_sd = 0.02 / 12f64.sqrt();
        let both_sd = (0.005f64.powi(2) + 0.005f64.powi(2)).sqrt();
        for (delay, jitter, mean, sd) in [
            (uniform.clone(), None, 0.03, uniform_sd),
            (normal.clone(), None, 0.05, 0.005),
            (fixed.clone(), Some(uniform), 0.04, uniform_sd),
            (fixed, Some(exponential.clone()), 0.015, 0.005),
            (normal, Some(exponential), 0.055, both_sd),
        ] {
            let mut model = model(Pipe { delay, jitter, ..Pipe::default() });
            let delays: Vec<f64> = (0..COUNT)
                .map(|number| match model.send(number * 1000 * MS, 100) {
                    Fate::Arrives(at) => (at - number * 1000 * MS) as f64 / 1e9,
                    fate => panic!("{fate:?}"),
                })
                .collect();
            let found = delays.iter().sum::<f64>() / COUNT as f64;
            let variance = delays.iter().map(|delay| (delay - found).powi(2)).sum::<f64>() / COUNT as f64;
            assert!((found - mean).abs() < 5.0 * sd / (COUNT as f64).sqrt(), "{found} instead of {mean}");
            assert!((variance.sqrt() / sd - 1.0).abs() < 0.02, "{} instead of {sd}", variance.sqrt());
        }
    }

    #[test]
    fn equal_seeds_give_equal_fates() {
        let pipe = Pipe {
            delay: Distr::Norm { mean: 0.05, sd: 0.005 },
            jitter: Some(Distr::Exp { mean: 0.001 }),
            loss: 0.1,
            ..Pipe::default()
        };
        let fates = |seed: u64| {
            let mut model = PipeModel::new(pipe.clone(), Seed(seed).stream("a test", 0));
            (0..1000).map(|i| model.send(i * MS, 100)).collect::<Vec<_>>()
        };
        assert_eq!(fates(1), fates(1));
        assert_ne!(fates(1), fates(2));
    }

    #[test]
    fn a_link_transmits_one_packet_after_the_other() {
        // 1500 bytes take 12 ms at 1 Mbit/s.
        let mut model = model(Pipe {
            bandwidth: Some(1e6),
            queue: QueueLimit::Packets(3),
            delay: Distr::Const(0.01),
            ..Pipe::default()
        });
        let fates: Vec<Fate> = (0..4).map(|_| model.send(0, 1500)).collect();
        let at = |ms: Nanos| Fate::Arrives((ms + 10) * MS);
        assert_eq!(fates, [at(12), at(24), at(36), Fate::Overflows]);
        // The first one is through, so there is room for another one.
        assert_eq!(model.send(12 * MS, 1500), at(48));
        // After a pause the link starts afresh.
        assert_eq!(model.send(1000 * MS, 1500), at(1012));
    }

    #[test]
    fn a_queue_of_bytes_takes_one_packet_of_any_length() {
        let pipe = Pipe { bandwidth: Some(1e6), queue: QueueLimit::Bytes(2000), ..Pipe::default() };
        let mut model = model(pipe);
        assert!(matches!(model.send(0, 9000), Fate::Arrives(_)));
        assert_eq!(model.send(0, 100), Fate::Overflows);
        let later = 72 * MS;
        assert!(matches!(model.send(later, 1500), Fate::Arrives(_)));
        assert!(matches!(model.send(later, 500), Fate::Arrives(_)));
        assert_eq!(model.send(later, 1), Fate::Overflows);
    }

    #[test]
    fn packets_overtake_only_if_they_may() {
        let jitter = Distr::Unif { min: 0.0, max: 0.01 };
        for reorder in [false, true] {
            let mut model = model(Pipe { delay: jitter.clone(), reorder, ..Pipe::default() });
            let arrivals: Vec<Nanos> = (0..1000)
                .map(|i| match model.send(i * MS, 100) {
                    Fate::Arrives(at) => at,
                    fate => panic!("{fate:?}"),
                })
                .collect();
            assert_eq!(!arrivals.is_sorted(), reorder);
        }
    }

    proptest! {
        /// Whatever the pipe, packets arrive after they are sent, no link carries more than its bandwidth, and the
        /// queue keeps its limit.
        #[test]
        fn pipes_keep_their_limits(
            delay in 0.0f64..0.2,
            spread in 0.0f64..0.1,
            loss in 0.0f64..1.0,
            bandwidth in prop::option::of(1e4f64..1e9),
            limit in 1u32..100,
            reorder: bool,
            packets in prop::collection::vec((0u64..20_000_000, 20u32..65_000), 1..300),
        ) {
            let pipe = Pipe {
                delay: Distr::Norm { mean: delay, sd: spread },
                jitter: None,
                loss,
                bandwidth,
                queue: QueueLimit::Packets(limit),
                reorder,
            };
            let mut model = PipeModel::new(pipe, Seed(7).stream("a test", 0));
            let (mut now, mut last, mut through) = (0, 0, 0.0);
            for (gap, length) in packets {
                now += gap;
                let was_idle = model.link_free <= now;
                match model.send(now, length) {
                    Fate::Arrives(at) => {
                        prop_assert!(at >= now && (reorder || at >= last));
                        last = at;
                        if let Some(bandwidth) = bandwidth {
                            through = if was_idle { 0.0 } else { through };
                            through += f64::from(length) * 8.0 / bandwidth * 1e9;
                            prop_assert!(model.link_free as f64 >= now as f64 + f64::from(length) * 8.0 / bandwidth * 1e9 - 1.0);
                        }
                    }
                    Fate::Lost(at) => prop_assert!(loss > 0.0 && at >= now),
                    Fate::Overflows => prop_assert!(bandwidth.is_some() && !was_idle),
                }
                prop_assert!(model.waiting.len() <= limit as usize);
                let sum: u64 = model.waiting.iter().map(|(_, length)| u64::from(*length)).sum();
                prop_assert_eq!(sum, model.waiting_bytes);
            }
        }
    }
}
