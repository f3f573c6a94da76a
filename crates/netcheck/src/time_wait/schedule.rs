//! When the SYN is repeated.

use std::time::Duration;

/// Times this much below the rule meet it: clocks differ, and timers are not exact.
pub const TOLERANCE: Duration = Duration::from_millis(100);
/// The time between two repetitions close to the rule.
const FINE: Duration = Duration::from_millis(100);
/// What is close to the rule.
const CLOSE: Duration = Duration::from_secs(1);

/// The times of repetitions, counted from the end of the connection: soon after it, then at equal distances, and closer
/// to each other where the verdict is decided.
pub struct ProbeSchedule {
    last: Option<Duration>,
    every: Duration,
    fine: Duration,
    /// The times between which repetitions are close to each other.
    close: (Duration, Duration),
}

impl ProbeSchedule {
    /// The times for a rule. Repetitions are at least two round trips apart, so that an answer belongs to the last one.
    pub fn new(every: Duration, rule: Duration, round_trip: Duration) -> ProbeSchedule {
        let fine = FINE.max(round_trip * 2);
        let close = (rule.saturating_sub(CLOSE), rule + CLOSE);
        ProbeSchedule { last: None, every: every.max(fine), fine, close }
    }
}

impl Iterator for ProbeSchedule {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let (from, to) = self.close;
        let next = match self.last {
            None => self.fine,
            Some(last) if last < from => (last + self.every).min(from.max(last + self.fine)),
            Some(last) if last < to => last + self.fine.min(self.every),
            Some(last) => last + self.every,
        };
        self.last = Some(next);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(every: f64, rule: f64, round_trip: f64, until: f64) -> Vec<f64> {
        let [every, rule, round_trip] = [every, rule, round_trip].map(Duration::from_secs_f64);
        let all = ProbeSchedule::new(every, rule, round_trip).map(|time| time.as_secs_f64());
        all.take_while(|time| *time <= until).collect()
    }

    #[test]
    fn repetitions_are_closest_at_the_rule() {
        let found = times(1.0, 60.0, 0.0001, 70.0);
        assert_eq!(found[..3], [0.1, 1.1, 2.1]);
        let around: Vec<f64> = found.iter().copied().filter(|time| (58.0..62.0).contains(time)).collect();
        assert_eq!(around.len(), 22, "{around:?}");
        assert!(found.windows(2).all(|pair| pair[1] - pair[0] < 1.001), "{found:?}");
    }

    #[test]
    fn answers_have_time_to_come() {
        let found = times(1.0, 5.0, 0.4, 12.0);
        assert!(found.windows(2).all(|pair| pair[1] - pair[0] > 0.79), "{found:?}");
        // A rule that is shorter than the distance.
        assert_eq!(times(1.0, 0.3, 0.0, 1.25).len(), 12);
    }
}
