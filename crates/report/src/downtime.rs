//! The effect of a power failure of the device: when replies, misses and hits resumed (docs/reference/workloads.md,
//! "Downtime procedure").
//!
//! Times are those of statistics intervals, so their precision is the length of an interval; only first errors have
//! exact times.

use std::fmt::Write;

use polygraph_stats::{Class, Interval, ReadLog, Record};
use serde::{Deserialize, Serialize};

/// Name of the file of a result directory that contains the downtime.
pub const DOWNTIME: &str = "downtime.json";

/// Length, in seconds, of the window whose means are compared with those before the failure.
const WINDOW_S: f64 = 10.0;
/// Minimum number of replies in such a window.
const WINDOW_REPLIES: u64 = 20;
/// Response times have recovered when they are longer by at most this share,
const RPTM_SLACK: f64 = 0.2;
/// or by at most this many milliseconds.
const RPTM_SLACK_MS: f64 = 1.0;
/// The hit ratio (0 to 1) has recovered when it is lower by at most this.
const HIT_SLACK: f64 = 0.05;

/// When the device was off, in seconds since the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PowerCut {
    /// When the device was killed.
    pub killed_s: f64,
    /// When the device was restarted; `None` if it was not.
    pub restarted_s: Option<f64>,
    /// When the device was ready for a test: it listened, and the settling time in its description was over.
    pub listening_s: Option<f64>,
}

/// The outage as the robots saw it, in seconds since the start of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Downtime {
    /// When the device was off.
    pub cut: PowerCut,
    /// Length of the statistics intervals: the precision of all times.
    pub resolution_s: f64,
    /// The first transaction that failed after the power cut.
    pub first_error_s: Option<f64>,
    /// Number of transactions that failed after the power cut.
    pub errors: u64,
    /// The end of the interval with the first reply after the restart of the device.
    pub first_reply_s: Option<f64>,
    /// The end of the interval with the first miss.
    pub first_miss_s: Option<f64>,
    /// The end of the interval with the first hit.
    pub first_hit_s: Option<f64>,
    /// Mean response time of the phase before the cut in milliseconds.
    pub rptm_before_ms: Option<f64>,
    /// Hit ratio of the phase before the cut (0 to 1).
    pub hits_before: Option<f64>,
    /// Start of the first ten seconds in which the mean response time had recovered.
    pub rptm_back_s: Option<f64>,
    /// Start of the first ten seconds in which the hit ratio had recovered.
    pub hits_back_s: Option<f64>,
}

/// Sums over intervals.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    replies: u64,
    rptm_us: f64,
    hits: u64,
    basic: u64,
}

impl Sums {
    fn of<'a>(intervals: impl IntoIterator<Item = &'a Interval>) -> Sums {
        let mut sums = Sums::default();
        for block in intervals.into_iter().map(|interval| &interval.block) {
            sums.replies += block.ok_count();
            sums.rptm_us += block.mean_rptm_us().unwrap_or(0.0) * block.ok_count() as f64;
            sums.hits += count(block, Class::Hit);
            sums.basic +=
                Class::ALL.iter().filter(|class| class.is_basic()).map(|c| count(block, *c)).sum::<u64>();
        }
        sums
    }

    fn rptm_ms(&self) -> Option<f64> {
        (self.replies > 0).then(|| self.rptm_us / self.replies as f64 / 1000.0)
    }

    fn hit_ratio(&self) -> Option<f64> {
        (self.basic > 0).then(|| self.hits as f64 / self.basic as f64)
    }
}

fn count(block: &polygraph_stats::Block, class: Class) -> u64 {
    block.class(class).rptm_us.count()
}

fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}

/// Evaluates the log of the robots after a power cut.
pub fn downtime(client: &ReadLog, cut: PowerCut) -> Downtime {
    let intervals: Vec<&Interval> = client.intervals().collect();
    let before = intervals.iter().rfind(|interval| seconds(interval.end_ns) <= cut.killed_s);
    let before = Sums::of(intervals.iter().copied().filter(|interval| {
        before.is_some_and(|last| interval.phase == last.phase) && seconds(interval.end_ns) <= cut.killed_s
    }));
    let dark: Vec<&Interval> =
        intervals.iter().copied().filter(|interval| seconds(interval.begin_ns) >= cut.killed_s).collect();
    let back: Vec<&Interval> = match cut.restarted_s {
        Some(restarted) => dark.iter().copied().filter(|i| seconds(i.end_ns) > restarted).collect(),
        None => Vec::new(),
    };
    let first = |found: &dyn Fn(&Interval) -> bool| {
        back.iter().find(|interval| found(interval)).map(|interval| seconds(interval.end_ns))
    };
    let first_error = client.records.iter().find_map(|record| match record {
        Record::ErrorSample { at_ns, kind, .. } if kind.fails() && seconds(*at_ns) >= cut.killed_s => {
            Some(seconds(*at_ns))
        }
        _ => None,
    });
    let first_reply_s = first(&|interval| interval.block.ok_count() > 0);
    // Nothing has recovered before there are replies.
    let steady: Vec<&Interval> = match first_reply_s {
        Some(reply) => back.iter().copied().filter(|i| seconds(i.begin_ns) >= reply - 1e-6).collect(),
        None => Vec::new(),
    };
    let (rptm_before_ms, hits_before) = (before.rptm_ms(), before.hit_ratio());
    let rptm_back = rptm_before_ms.and_then(|before| {
        let most = (before * (1.0 + RPTM_SLACK)).max(before + RPTM_SLACK_MS);
        level(&steady, |sums| sums.rptm_ms().is_some_and(|rptm| rptm <= most))
    });
    let hits_back = hits_before.and_then(|before| {
        level(&steady, |sums| sums.hit_ratio().is_some_and(|ratio| ratio >= before - HIT_SLACK))
    });
    Downtime {
        cut,
        resolution_s: intervals.iter().map(|interval| interval.seconds()).fold(0.0, f64::max),
        first_error_s: first_error,
        errors: dark.iter().map(|interval| interval.block.failed_count()).sum(),
        first_reply_s,
        first_miss_s: first(&|interval| count(&interval.block, Class::Miss) > 0),
        first_hit_s: first(&|interval| count(&interval.block, Class::Hit) > 0),
        rptm_before_ms,
        hits_before,
        rptm_back_s: rptm_back,
        hits_back_s: hits_back,
    }
}

/// The start of the first window that meets the condition.
fn level(intervals: &[&Interval], is_wanted: impl Fn(&Sums) -> bool) -> Option<f64> {
    let mut last = 0;
    (0..intervals.len()).find_map(|first| {
        let begin = seconds(intervals[first].begin_ns);
        while last < intervals.len() && seconds(intervals[last].end_ns) - begin < WINDOW_S - 1e-6 {
            last += 1;
        }
        // A window that the end of the run truncates proves nothing.
        let window = intervals.get(first..=last)?;
        let sums = Sums::of(window.iter().copied());
        (sums.replies >= WINDOW_REPLIES && is_wanted(&sums)).then_some(begin)
    })
}

/// An event of the outage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DowntimeMoment {
    /// Description of the event.
    pub name: &'static str,
    /// Seconds since the start of the run; `None` if the event did not occur.
    pub at_s: Option<f64>,
    /// Seconds since the device was killed.
    pub after_kill_s: Option<f64>,
    /// Seconds since the device was restarted; negative before.
    pub after_restart_s: Option<f64>,
}

impl Downtime {
    /// The moments in their expected order.
    pub(crate) fn moments(&self) -> impl Iterator<Item = DowntimeMoment> {
        let PowerCut { killed_s, restarted_s, listening_s } = self.cut;
        let all = [
            ("device killed", Some(killed_s)),
            ("first error", self.first_error_s),
            ("device started again", restarted_s),
            ("device ready for a test", listening_s),
            ("first reply", self.first_reply_s),
            ("first miss", self.first_miss_s),
            ("first hit", self.first_hit_s),
            ("response time as before (for 10 s from here)", self.rptm_back_s),
            ("hit ratio as before (for 10 s from here)", self.hits_back_s),
        ];
        all.into_iter().map(move |(name, at_s)| DowntimeMoment {
            name,
            at_s,
            after_kill_s: at_s.map(|at| at - killed_s),
            after_restart_s: at_s.zip(restarted_s).map(|(at, from)| at - from),
        })
    }

    /// The length of the outage that robots saw, in a sentence.
    pub(crate) fn outage(&self) -> String {
        let length = self
            .first_reply_s
            .map_or_else(|| "to the end".into(), |at| format!("{:.2} s", at - self.cut.killed_s));
        format!("outage seen by the robots: {length}, {} failed transactions", self.errors)
    }

    /// The figures before the failure, in a sentence.
    pub(crate) fn before(&self) -> String {
        let number = |value: Option<f64>, unit: &str| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1} {unit}"))
        };
        format!(
            "before the kill: response time {}, hit ratio {}; times are exact to {:.2} s",
            number(self.rptm_before_ms, "ms"),
            number(self.hits_before.map(|ratio| ratio * 100.0), "%"),
            self.resolution_s
        )
    }

    /// The table as text, with times since the kill and since the restart.
    pub fn text(&self) -> String {
        let mut text = format!("{:<46} {:>9} {:>14} {:>16}\n", "", "run", "after kill", "after restart");
        for DowntimeMoment { name, at_s, after_kill_s, after_restart_s } in self.moments() {
            let run = at_s.map_or_else(|| "-".to_owned(), |at| format!("{at:.2} s"));
            let [kill, restart] = [after_kill_s, after_restart_s]
                .map(|after| after.map_or_else(|| "-".to_owned(), |after| format!("{after:+.2} s")));
            let _ = writeln!(text, "{name:<46} {run:>9} {kill:>14} {restart:>16}");
        }
        let _ = writeln!(text, "{}\n{}", self.outage(), self.before());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polygraph_stats::{Block, ErrorKind, Finished, Header, Side};

    /// Tenths of seconds: 20 s as usual, 5 s nothing but errors, then misses, then hits again.
    fn log() -> ReadLog {
        let mut records = Vec::new();
        for tenth in 0..600_u64 {
            let mut block = Block::new();
            let (hits, misses, rptm_ms, failed) = match tenth {
                0..200 => (6, 4, 10, 0),
                200..250 => (0, 0, 0, 3),
                250..257 => (0, 0, 0, 1),
                257..270 => (0, 10, 50, 0),
                270..400 => (2, 8, 50, 0),
                _ => (6, 4, 10, 0),
            };
            for (class, count) in [(Class::Hit, hits), (Class::Miss, misses)] {
                let finished = Finished {
                    class,
                    rptm_us: rptm_ms * 1000,
                    size: 1000,
                    offered_hit: class == Class::Hit,
                    ..Finished::default()
                };
                (0..count).for_each(|_| block.finish(&finished));
            }
            for _ in 0..failed {
                block.errors.count(ErrorKind::ConnectFailed);
            }
            let at_ns = |tenths: f64| (tenths * 1e8) as u64;
            if failed > 0 {
                let (kind, detail, facts) = (ErrorKind::ConnectFailed, String::new(), Vec::new());
                records.push(Record::ErrorSample { at_ns: at_ns(tenth as f64 + 0.5), kind, detail, facts });
            }
            records.push(Record::Interval(Box::new(Interval {
                phase: u32::from(tenth >= 200) + u32::from(tenth >= 250),
                begin_ns: at_ns(tenth as f64),
                end_ns: at_ns(tenth as f64 + 1.0),
                cpu_ns: 0,
                busiest_loop_ns: 0,
                throttled_ns: 0,
                rss_bytes: 0,
                clock_step_ns: 0,
                block,
            })));
        }
        let header = Header {
            side: Side::Client,
            version: String::new(),
            label: String::new(),
            start_unix_ns: 0,
            pid: 0,
            environment: Vec::new(),
            command: Vec::new(),
            settings: Vec::new(),
            workload: String::new(),
            loops: 1,
            phases: Vec::new(),
            offered_rate: None,
            offered_dhr: None,
            limits: Default::default(),
            contents: Vec::new(),
            workload_text: String::new(),
        };
        ReadLog { header, records, missing: Vec::new() }
    }

    #[test]
    fn times_by_example() {
        let cut = PowerCut { killed_s: 20.0, restarted_s: Some(25.0), listening_s: Some(25.5) };
        let found = downtime(&log(), cut);
        let near = |value: Option<f64>, expected: f64| {
            assert!(
                value.is_some_and(|value| (value - expected).abs() < 1e-6),
                "{value:?} {expected}: {found:#?}"
            );
        };
        near(found.first_error_s, 20.05);
        near(found.first_reply_s, 25.8);
        near(found.first_miss_s, 25.8);
        near(found.first_hit_s, 27.1);
        near(found.rptm_before_ms, 10.0);
        near(found.hits_before, 0.6);
        near(found.hits_back_s, 38.8);
        near(found.rptm_back_s, 39.5);
        assert_eq!(found.errors, 5 * 30 + 7);
        let text = found.text();
        let line = text.lines().find(|line| line.starts_with("first hit")).unwrap();
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(cells, ["first", "hit", "27.10", "s", "+7.10", "s", "+2.10", "s"]);
        assert!(text.contains("outage seen by the robots: 5.80 s, 157 failed transactions"), "{text}");
    }

    #[test]
    fn what_never_came_back_is_not_zero() {
        let cut = PowerCut { killed_s: 20.0, restarted_s: None, listening_s: None };
        let found = downtime(&log(), cut);
        assert_eq!((found.first_reply_s, found.first_hit_s, found.rptm_back_s), (None, None, None));
        assert!(found.text().contains("outage seen by the robots: to the end"), "{}", found.text());
    }
}
