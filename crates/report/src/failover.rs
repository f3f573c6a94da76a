//! Servers that ended or stood still while robots still sent requests, and what robots saw of it.
//!
//! Times are those of statistics intervals and of the windows of the series, so they are as precise as these are long.

use polygraph_stats::EndReason;

use crate::facts::{ProcessFacts, RunFacts, SideFacts};
use crate::text::{counted, duration};

/// Shorter stalls of a server are none that a device could notice.
const AWAY_S: f64 = 1.0;
/// Failures are over after so many windows without one.
const CALM_WINDOWS: usize = 3;
/// The first one may come so many windows later: devices wait for a server that does not answer.
const FIRST_WINDOWS: usize = 10;

/// A server process that was away for a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Failover {
    /// The addresses of its servers, or the name of its log.
    pub server: String,
    /// When it ended or stopped, in seconds since the start of the run. If its log was not closed, it may have ended one interval later.
    pub at_s: f64,
    /// When it went on; `None` if it ended.
    pub back_s: Option<f64>,
    /// How many transactions of robots failed from then on, without those after a pause.
    pub failed: u64,
    /// For how many seconds from then on transactions failed; `None` if none did.
    pub failed_for_s: Option<f64>,
    /// Whether transactions still failed at the end of the run.
    pub lasts: bool,
}

impl Failover {
    /// What robots saw, as the end of a sentence.
    pub fn effect(&self) -> String {
        match (self.failed_for_s, self.lasts) {
            (None, _) => "no transaction failed then".to_owned(),
            (Some(_), true) => format!("{} failed from then to the end", counted(self.failed, "transaction")),
            (Some(seconds), false) => {
                format!(
                    "{} failed in the {} after it",
                    counted(self.failed, "transaction"),
                    duration(seconds)
                )
            }
        }
    }
}

/// The servers that were away before robots had measured all they wanted, in order of time.
pub fn of_run(facts: &RunFacts) -> Vec<Failover> {
    let (Some(client), Some(server)) = (&facts.client, &facts.server) else { return Vec::new() };
    let until_s = facts.headline.as_ref().map_or(0.0, |headline| headline.end_s);
    let mut all: Vec<Failover> = Vec::new();
    for process in &server.processes {
        let long = process.stalls.iter().filter(|(from, to)| to - from >= AWAY_S);
        all.extend(long.map(|(from, to)| after(client, process, *from, Some(*to))));
        if ended_early(process, until_s) {
            all.push(of_end(client, process));
        }
    }
    all.retain(|away| away.at_s < until_s);
    all.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    all
}

/// What robots saw of the end of a server process.
pub fn of_end(client: &SideFacts, process: &ProcessFacts) -> Failover {
    after(client, process, process.last_s, None)
}

/// Whether a server ended before `until_s`, and not because it had no traffic.
fn ended_early(process: &ProcessFacts, until_s: f64) -> bool {
    !process.lived_until(until_s) && process.end != Some(EndReason::Idle)
}

fn after(client: &SideFacts, process: &ProcessFacts, at_s: f64, back_s: Option<f64>) -> Failover {
    let half =
        client.series.windows(2).map(|pair| pair[1].at_s - pair[0].at_s).fold(f64::MAX, f64::min) / 2.0;
    let later = client.series.iter().filter(|point| point.at_s + half > at_s);
    let (mut failed, mut last, mut calm) = (0.0, None, 0);
    for point in later {
        let here = point.get("err_xact.count").unwrap_or(0.0);
        calm = if here > 0.0 { 0 } else { calm + 1 };
        if calm >= if last.is_some() { CALM_WINDOWS } else { FIRST_WINDOWS } {
            break;
        }
        if here > 0.0 {
            failed += here;
            last = Some(point.at_s + half);
        }
    }
    Failover {
        server: process.setting("addresses").map_or_else(|| process.log.clone(), str::to_owned),
        at_s,
        back_s,
        failed: failed as u64,
        failed_for_s: last.map(|last| last - at_s),
        lasts: last.is_some() && calm < CALM_WINDOWS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::fold;
    use crate::testlog::Run;
    use polygraph_stats::ErrorKind;

    /// A run whose second server was killed after 10 s, or stood still from then on for 4 s, and in which every `every`-th transaction
    /// failed from 10 s on.
    fn away(stalls: bool, every: Option<usize>) -> Vec<Failover> {
        let error = every.map(|every| (every, ErrorKind::Reset));
        let run = Run { error, error_from: 10.0, means: [0.01, 0.01], ..Run::default() };
        let second = match stalls {
            true => Run { stalls: [None, Some((10.0, 14.0))], error: None, ..run.clone() },
            false => Run { stop_at: Some(10.0), end: None, error: None, ..run.clone() },
        };
        let facts = fold(&[run.client(), run.server(), second.server()]).unwrap();
        of_run(&facts)
    }

    #[test]
    fn servers_that_are_away_and_what_robots_saw() {
        let killed = &away(false, None)[..];
        assert_eq!((killed.len(), killed[0].at_s, killed[0].back_s), (1, 10.0, None));
        assert_eq!(killed[0].effect(), "no transaction failed then");
        let stalled = &away(true, Some(20))[..];
        assert_eq!((stalled.len(), stalled[0].at_s, stalled[0].back_s), (1, 10.0, Some(14.0)));
        assert!(stalled[0].failed > 50 && stalled[0].lasts, "{stalled:?}");
        assert!(stalled[0].effect().ends_with("transactions failed from then to the end"));
        // A single failure, which is over long before the end.
        let once = &away(false, Some(1050))[..];
        assert_eq!((once[0].failed, once[0].lasts), (1, false), "{once:?}");
        assert!(once[0].effect().starts_with("1 transaction failed in the "));
    }
}
