//! The search for the highest rate that a device sustains: state, console lines and page.

mod file;
pub mod page;
mod state;
mod text;

use polygraph_plan::Goal;
use polygraph_plan::phases::WARM_SHARE;
use polygraph_report::judge::LEAST_TRANSACTIONS;

pub use self::state::{SearchRun, SearchState};
pub use self::text::{conclusion, heading, next_step, shown, status_of, step_line};

/// Length of a run in seconds if the user gives no goal.
const RUN_SECONDS: f64 = 60.0;

/// The shortest run, in think times of the servers. The warm-up, a tenth of it, must be longer than the time until replies come as
/// fast as requests go out; otherwise a device that keeps up seems to fall behind. The default goal is enough for the default think
/// time, whose mean is a little more than 3 s because no think time is negative.
const LEAST_THINK_TIMES: f64 = 19.0;

/// Extends a goal to a run at `rate` requests per second that is long enough for a verdict, including the warm-up, in which
/// nothing is measured. It plans for 1.5 times the transactions that a verdict needs, because random arrivals then fall short
/// only once in a million runs, and for 19 times the mean think time of the servers (`think`, in seconds).
pub fn long_enough(goal: Goal, rate: f64, think: f64) -> Goal {
    let transactions = LEAST_TRANSACTIONS as f64 * 1.5 / (1.0 - WARM_SHARE);
    let seconds = (transactions / rate).max(LEAST_THINK_TIMES * think);
    Goal {
        duration: goal.duration.map(|goal| goal.max(seconds.ceil())),
        xactions: goal.xactions.map(|count| count.max((seconds * rate).ceil() as u64)),
        ..goal
    }
}

/// The goal of each run if the user gives none.
pub fn default_goal() -> Goal {
    Goal { duration: Some(RUN_SECONDS), ..Goal::default() }
}

/// A rate as PGL and the command line write it.
pub fn rate_text(rate: f64) -> String {
    format!("{}/sec", shown(rate))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use polygraph_plan::peak::{PeakResult, Search, SearchEnd, Vote};
    use polygraph_report::peak::{PeakCriteria, PeakStatus, RateMeasurement, SearchSummary, TimeLimit};

    use super::*;

    fn state(steps: &[(f64, Vote)]) -> SearchState {
        let step = |&(rate, vote): &(f64, Vote)| SearchRun {
            what: String::new(),
            rate,
            why: "first".to_owned(),
            vote,
            reasons: Vec::new(),
            measured: RateMeasurement { mean_ms: Some(rate), ..RateMeasurement::default() },
            seconds: 10.0,
            directory: String::new(),
        };
        SearchState {
            version: String::new(),
            begin_s: Some(1_000_000_000),
            command: Vec::new(),
            directory: PathBuf::new(),
            search: Search { first: 50.0, most: None, precision: 0.02, confirm: 0, runs: 60 },
            criteria: PeakCriteria {
                errors: 0.03,
                rate_gap: 0.03,
                mean: Some(TimeLimit { factor: 1.25, more_ms: 250.0 }),
                p95: None,
                dhr_gap: None,
            },
            steps: steps.iter().map(step).collect(),
        }
    }

    #[test]
    fn the_last_line_names_the_peak_and_its_bracket() {
        use Vote::{Failed, Held};
        let found = state(&[(99.0, Held), (100.5, Failed), (99.0, Held), (99.0, Failed)]);
        let finding = |end| PeakResult { end, held: Some(99.0), failed: Some(100.5) };
        for (finding, text) in [
            (
                finding(SearchEnd::Found),
                "FOUND: peak 99/s, sustained 99/s in 2 of 3 runs, failed at 100.5/s in 1 of 1 run",
            ),
            (
                PeakResult { failed: None, ..finding(SearchEnd::Most) },
                "NOT REACHED: peak at least 99/s, sustained 99/s in 2 of 3 runs; the search was limited by --most",
            ),
            (
                finding(SearchEnd::BenchLimit),
                "BENCH LIMIT: peak at least 99/s, sustained 99/s in 2 of 3 runs; the bench was the limit at 100.5/s",
            ),
            (
                finding(SearchEnd::OutOfRuns),
                "NOT NARROWED DOWN: peak 99/s after 4 runs, sustained 99/s in 2 of 3 runs, failed at 100.5/s in 1 of 1 run",
            ),
            (
                PeakResult { failed: None, ..finding(SearchEnd::OutOfRuns) },
                "NOT NARROWED DOWN: peak at least 99/s after 4 runs, sustained 99/s in 2 of 3 runs",
            ),
            (
                PeakResult { held: None, failed: None, end: SearchEnd::OutOfRuns },
                "NOT NARROWED DOWN: no run counted",
            ),
            (
                PeakResult { held: None, ..finding(SearchEnd::BenchLimit) },
                "NOT FOUND: the bench was the limit down to 100.5/s",
            ),
            (
                PeakResult { held: None, ..finding(SearchEnd::Nothing) },
                "NOT FOUND: the device did not sustain any rate down to 100.5/s",
            ),
        ] {
            assert_eq!(conclusion(&found, &finding), text);
        }
    }

    #[test]
    fn runs_are_long_enough_to_be_judged() {
        let goal = Goal { duration: Some(5.0), errors: Some(0.3), ..Goal::default() };
        assert_eq!(long_enough(goal, 10.0, 0.1), Goal { duration: Some(17.0), ..goal });
        assert_eq!(long_enough(goal, 1000.0, 0.1), goal);
        assert_eq!(long_enough(goal, 1000.0, 3.0).duration, Some(57.0));
        assert_eq!(long_enough(default_goal(), 1000.0, 3.083), default_goal());
        let count = Goal { xactions: Some(50), ..Goal::default() };
        assert_eq!(long_enough(count, 10.0, 0.1).xactions, Some(167));
        assert_eq!(long_enough(count, 10.0, 3.0).xactions, Some(570));
        // Nine tenths of it are measured: 153 transactions, of which 100 are needed; 53 are more than four standard
        // deviations.
        assert!((17.0 * 10.0 * (1.0 - WARM_SHARE) - 100.0) / 153f64.sqrt() > 4.0);
    }

    #[test]
    fn a_search_that_found_no_peak_says_what_to_do() {
        let finding = |end, held| PeakResult { end, held, failed: None };
        assert_eq!(next_step(&finding(SearchEnd::Found, Some(1.0))), None);
        for (end, held, word) in [
            (SearchEnd::Most, Some(1.0), "--most"),
            (SearchEnd::BenchLimit, Some(1.0), "processors"),
            (SearchEnd::BenchLimit, None, "lowest rate"),
            (SearchEnd::Nothing, None, "--from"),
            (SearchEnd::OutOfRuns, Some(1.0), "--max_runs"),
        ] {
            assert!(next_step(&finding(end, held)).is_some_and(|text| text.contains(word)), "{end:?}");
        }
    }

    #[test]
    fn a_state_survives_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let before = state(&[(50.0, Vote::Held), (100.0, Vote::Void), (25.0, Vote::Held)]);
        before.save(directory.path()).unwrap();
        let after = SearchState::load(directory.path()).unwrap();
        assert_eq!(
            (after.trials(), after.search, after.criteria),
            (before.trials(), before.search, before.criteria)
        );
        assert_eq!(after.low().and_then(|low| low.mean_ms), Some(25.0));
        // The void run, the bisection of a gap of a half to 2 %, and one doubling at 10 s each.
        assert_eq!(after.remaining_s(), Some(60.0));
        assert!(SearchState::load(&directory.path().join("other")).is_err());
    }

    #[test]
    fn the_file_of_a_search_has_its_summary() {
        use Vote::{Failed, Held};
        let directory = tempfile::tempdir().unwrap();
        let summary = |steps: &[(f64, Vote)]| {
            let mut state = state(steps);
            for (number, step) in state.steps.iter_mut().enumerate() {
                step.directory = format!("step-{number}");
            }
            state.save(directory.path()).unwrap();
            SearchSummary::read(directory.path()).unwrap()
        };
        let found = summary(&[(50.0, Held), (50.5, Failed)]);
        let text = "peak 50/s, sustained 50/s in 1 of 1 run, failed at 50.5/s in 1 of 1 run";
        assert_eq!((found.status, found.text.as_str()), (PeakStatus::Found, text));
        assert_eq!((found.peak_run.as_deref(), found.last_run.as_deref()), (Some("step-0"), Some("step-1")));
        assert_eq!(found.begin_s, Some(1_000_000_000));
        let searching = summary(&[(50.0, Failed)]);
        assert_eq!((searching.status, searching.peak_run), (PeakStatus::Searching, None));
        assert!(searching.text.starts_with("the search continues"), "{}", searching.text);
    }
}
