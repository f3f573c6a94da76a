//! The search for the highest rate that a device sustains: which rate to try next, and when to stop.
//!
//! From the first rate upwards the load is doubled until a run fails. Then the gap between the highest rate
//! that was sustained and the lowest that failed is halved until it is narrow enough, and both ends are
//! repeated. Runs are noisy near the limit, so every run is a vote, and the majority decides about a rate: an
//! end whose repetitions say otherwise moves, and the search continues from there.
//!
//! The search is a function of the trials so far and uses neither time nor devices, so an interrupted search
//! can be resumed.

use serde::{Deserialize, Serialize};

/// How often the first rate is halved before the search concludes that no rate is sustained.
const HALVINGS: i32 = 6;
/// The number of void runs of a rate, without a valid one, that make it the limit of the bench.
const VOIDS: usize = 3;

/// The result of a run for its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vote {
    /// The device sustained the rate.
    Held,
    /// The device did not sustain the rate.
    Failed,
    /// The run was invalid: the bench was the limit, so it says nothing about the device.
    Void,
}

/// A run of the search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Requests per second.
    pub rate: f64,
    /// The result of the run.
    pub vote: Vote,
}

/// The parameters of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// The first rate, positive. Response times at higher rates are compared with those at this one.
    pub first: f64,
    /// The highest rate to try.
    pub most: Option<f64>,
    /// The largest gap between the sustained and the failed rate at which the search stops, as a share of the
    /// failed one (0 to 1).
    pub precision: f64,
    /// How often the highest sustained rate is repeated.
    pub confirm: usize,
    /// The largest number of runs.
    pub runs: usize,
}

/// Why a rate is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialReason {
    /// This is the first rate.
    First,
    /// All rates so far were sustained.
    Raise,
    /// No rate so far was sustained.
    Lower,
    /// The rate lies between a sustained and a failed one.
    Bisect,
    /// The runs of this rate do not agree so far, or the bench was the limit.
    Repeat,
    /// The rate is one of the ends of the result.
    Confirm,
}

impl TrialReason {
    /// The reason as one word.
    pub fn word(self) -> &'static str {
        match self {
            TrialReason::First => "first",
            TrialReason::Raise => "raise",
            TrialReason::Lower => "lower",
            TrialReason::Bisect => "bisect",
            TrialReason::Repeat => "repeat",
            TrialReason::Confirm => "confirm",
        }
    }
}

/// How the search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchEnd {
    /// The peak lies between two rates that are close enough to each other.
    Found,
    /// The device sustains the highest rate that may be tried.
    Most,
    /// Beyond the highest sustained rate, the bench is the limit.
    BenchLimit,
    /// The device sustains no rate.
    Nothing,
    /// The search used the largest number of runs.
    OutOfRuns,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PeakResult {
    /// How the search ended.
    pub end: SearchEnd,
    /// The highest sustained rate below which all rates are sustained.
    pub held: Option<f64>,
    /// The lowest rate that failed.
    pub failed: Option<f64>,
}

/// The next step of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SearchStep {
    /// Run the test at this rate.
    Run(f64, TrialReason),
    /// The search is complete.
    Done(PeakResult),
}

/// The status of a rate after its runs so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RateStatus {
    Held,
    Failed,
    /// The bench cannot offer this rate.
    Blocked,
    /// The rate needs another run.
    Open,
}

/// The votes of one rate.
#[derive(Clone, Copy, Debug, Default)]
struct Votes {
    held: usize,
    failed: usize,
    void: usize,
}

impl Votes {
    fn of(trials: &[Trial], rate: f64) -> Votes {
        let count = |vote| trials.iter().filter(|trial| trial.rate == rate && trial.vote == vote).count();
        Votes { held: count(Vote::Held), failed: count(Vote::Failed), void: count(Vote::Void) }
    }

    fn standing(self) -> RateStatus {
        match self.held.cmp(&self.failed) {
            std::cmp::Ordering::Greater => RateStatus::Held,
            std::cmp::Ordering::Less => RateStatus::Failed,
            std::cmp::Ordering::Equal if self.held == 0 && self.void >= VOIDS => RateStatus::Blocked,
            std::cmp::Ordering::Equal => RateStatus::Open,
        }
    }

    fn count(self) -> usize {
        self.held + self.failed
    }
}

/// The ends of the gap that contains the peak.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bracket {
    low: Option<f64>,
    high: Option<f64>,
}

impl Search {
    /// The next step after these trials.
    pub fn next(&self, trials: &[Trial]) -> SearchStep {
        match self.wanted(trials) {
            SearchStep::Run(..) if trials.len() >= self.runs => {
                let bracket = bracket(trials);
                let end = if self.reached_most(bracket) { SearchEnd::Most } else { SearchEnd::OutOfRuns };
                SearchStep::Done(PeakResult { end, held: bracket.low, failed: bracket.high })
            }
            next => next,
        }
    }

    /// The next step without the limit of runs.
    fn wanted(&self, trials: &[Trial]) -> SearchStep {
        let bracket = bracket(trials);
        let done = |end| SearchStep::Done(PeakResult { end, held: bracket.low, failed: bracket.high });
        let votes = |rate| Votes::of(trials, rate);
        if let Some(open) = trials.iter().find(|trial| votes(trial.rate).standing() == RateStatus::Open) {
            return SearchStep::Run(open.rate, TrialReason::Repeat);
        }
        match bracket {
            Bracket { low: None, high: None } => SearchStep::Run(self.top(self.first), TrialReason::First),
            Bracket { low: None, high: Some(high) } => {
                match high > self.first * 0.5f64.powi(HALVINGS) * 1.5 {
                    true => SearchStep::Run(high / 2.0, TrialReason::Lower),
                    false => done(SearchEnd::Nothing),
                }
            }
            Bracket { low: Some(low), high: None } => {
                if !self.reached_most(bracket) {
                    SearchStep::Run(self.top(low * 2.0), TrialReason::Raise)
                } else if votes(low).count() <= self.confirm {
                    SearchStep::Run(low, TrialReason::Confirm)
                } else {
                    done(SearchEnd::Most)
                }
            }
            Bracket { low: Some(low), high: Some(high) } => {
                let blocked = votes(high).standing() == RateStatus::Blocked;
                if high - low > self.precision * high {
                    SearchStep::Run(between(low, high), TrialReason::Bisect)
                } else if votes(low).count() <= self.confirm {
                    SearchStep::Run(low, TrialReason::Confirm)
                } else if !blocked && votes(high).count() <= self.confirm.min(1) {
                    SearchStep::Run(high, TrialReason::Confirm)
                } else {
                    done(if blocked { SearchEnd::BenchLimit } else { SearchEnd::Found })
                }
            }
        }
    }

    /// An estimate of the number of runs to come, provided that further runs do not contradict these.
    pub fn remaining(&self, trials: &[Trial]) -> usize {
        if matches!(self.next(trials), SearchStep::Done(_)) {
            return 0;
        }
        let Bracket { low, high } = bracket(trials);
        let votes = |rate: Option<f64>| rate.map_or(0, |rate| Votes::of(trials, rate).count());
        // Before the first failure, the next run may fail.
        let gap = match (low, high) {
            (Some(low), Some(high)) => 1.0 - low / high,
            _ => 0.5,
        };
        let raise = if low.is_some() && high.is_some() { 0 } else { 1 };
        let halvings = (gap / self.precision).log2().ceil().max(0.0) as usize;
        // After more halvings the ends will be different ones.
        let (held, failed) = if halvings == 0 { (votes(low), votes(high)) } else { (1, 1) };
        let confirm =
            (self.confirm + 1).saturating_sub(held) + (self.confirm.min(1) + 1).saturating_sub(failed);
        (raise + halvings + confirm).min(self.runs - trials.len()).max(1)
    }

    /// Whether the highest rate that may be tried is sustained, and no rate failed.
    fn reached_most(&self, bracket: Bracket) -> bool {
        bracket.high.is_none() && bracket.low.zip(self.most).is_some_and(|(low, most)| low >= most)
    }

    fn top(&self, rate: f64) -> f64 {
        self.most.map_or(rate, |most| rate.min(most))
    }
}

/// The highest sustained rate below the lowest failed one. A rate sustained above a failure contradicts it; a
/// repetition decides.
fn bracket(trials: &[Trial]) -> Bracket {
    let rates = |wanted: fn(RateStatus) -> bool| {
        trials.iter().map(|trial| trial.rate).filter(move |&rate| wanted(Votes::of(trials, rate).standing()))
    };
    let high =
        rates(|standing| matches!(standing, RateStatus::Failed | RateStatus::Blocked)).reduce(f64::min);
    let below = |rate: &f64| high.is_none_or(|high| *rate < high);
    Bracket { low: rates(|standing| standing == RateStatus::Held).filter(below).reduce(f64::max), high }
}

/// A rate near the middle, rounded to as few digits as possible.
fn between(low: f64, high: f64) -> f64 {
    let (middle, gap) = ((low + high) / 2.0, high - low);
    let step = 10f64.powf((gap / 4.0).log10().floor());
    // Dividing is more exact where possible, because 0.1 has no exact binary form.
    let round = |rate: f64| {
        if step < 1.0 { (rate / step).round() / (1.0 / step).round() } else { (rate / step).round() * step }
    };
    let rounded = round(middle);
    if rounded > low && rounded < high { rounded } else { middle }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SEARCH: Search = Search { first: 50.0, most: None, precision: 0.02, confirm: 2, runs: 60 };

    /// Searches for the limit of a device whose results come from `answer`, a function of the rate and the
    /// number of the run.
    fn search(
        rules: Search,
        mut answer: impl FnMut(f64, usize) -> Vote,
    ) -> (PeakResult, Vec<(Trial, TrialReason)>) {
        let (mut trials, mut reasons) = (Vec::new(), Vec::new());
        loop {
            match rules.next(&trials) {
                SearchStep::Run(rate, why) => {
                    let trial = Trial { rate, vote: answer(rate, trials.len()) };
                    trials.push(trial);
                    reasons.push((trial, why));
                }
                SearchStep::Done(finding) => return (finding, reasons),
            }
            assert!(trials.len() <= rules.runs);
        }
    }

    fn holds(held: bool) -> Vote {
        if held { Vote::Held } else { Vote::Failed }
    }

    #[test]
    fn a_search_doubles_bisects_and_confirms() {
        let (finding, runs) = search(SEARCH, |rate, _| holds(rate <= 187.0));
        let told: Vec<String> =
            runs.iter().map(|(trial, why)| format!("{} {}", why.word(), trial.rate)).collect();
        let expected = "first 50, raise 100, raise 200, bisect 150, bisect 180, bisect 190, bisect 185, bisect 188, \
                        confirm 185, confirm 185, confirm 188";
        assert_eq!(told.join(", "), expected);
        assert_eq!(finding, PeakResult { end: SearchEnd::Found, held: Some(185.0), failed: Some(188.0) });
    }

    #[test]
    fn searches_end_as_they_must() {
        type Answer = fn(f64, usize) -> Vote;
        type Row = (Search, Answer, SearchEnd, Option<f64>, Option<f64>);
        let rows: [Row; 8] = [
            (Search { most: Some(300.0), ..SEARCH }, |_, _| Vote::Held, SearchEnd::Most, Some(300.0), None),
            // There are no runs left to confirm the highest rate, but it was sustained.
            (
                Search { most: Some(300.0), runs: 4, ..SEARCH },
                |_, _| Vote::Held,
                SearchEnd::Most,
                Some(300.0),
                None,
            ),
            (
                Search { most: Some(300.0), runs: 3, ..SEARCH },
                |_, _| Vote::Held,
                SearchEnd::OutOfRuns,
                Some(200.0),
                None,
            ),
            (SEARCH, |_, _| Vote::Failed, SearchEnd::Nothing, None, Some(50.0 / 64.0)),
            (SEARCH, |_, _| Vote::Void, SearchEnd::Nothing, None, Some(50.0 / 64.0)),
            (SEARCH, |rate, _| holds(rate <= 3.0), SearchEnd::Found, Some(3.0), Some(3.05)),
            // The bench reaches 150; the device would sustain more.
            (
                Search { precision: 0.1, ..SEARCH },
                |rate, _| if rate > 150.0 { Vote::Void } else { Vote::Held },
                SearchEnd::BenchLimit,
                Some(150.0),
                Some(165.0),
            ),
            (
                Search { runs: 3, ..SEARCH },
                |rate, _| holds(rate < 70.0),
                SearchEnd::OutOfRuns,
                Some(50.0),
                Some(80.0),
            ),
        ];
        for (rules, answer, end, held, failed) in rows {
            let (finding, runs) = search(rules, answer);
            assert_eq!(finding.end, end, "{runs:?}");
            let near = |a: Option<f64>, b: Option<f64>| match (a, b) {
                (Some(a), Some(b)) => (a / b - 1.0).abs() < 0.03,
                (a, b) => a == b,
            };
            assert!(near(finding.held, held) && near(finding.failed, failed), "{finding:?} after {runs:?}");
        }
    }

    #[test]
    fn one_bad_run_of_the_bench_is_repeated() {
        let (finding, runs) = search(SEARCH, |rate, run| match run {
            1 => Vote::Void,
            _ => holds(rate <= 120.0),
        });
        assert_eq!((runs[2].1, runs[2].0.rate), (TrialReason::Repeat, 100.0));
        assert_eq!(finding.held, Some(119.0));
    }

    #[test]
    fn bad_and_good_luck_are_found_out() {
        // Wrong results at different points of the search: at the first doubling, in the middle, at the end.
        for liar in 0..12 {
            let (finding, runs) = search(SEARCH, |rate, run| holds((rate <= 187.0) != (run == liar)));
            let held = finding.held.unwrap_or(0.0);
            assert!((180.0..=187.0).contains(&held), "{finding:?} with a lie in run {liar}: {runs:?}");
        }
    }

    /// For a device whose probability of success falls from 88 % to 12 % within 4 % around its limit, nine of
    /// ten searches end within 5 % of that limit (1000 devices).
    #[test]
    fn noise_near_the_limit_moves_the_result_little() {
        use polygraph_traffic::{Random, Seed};
        let (mut near, count) = (0, 1000);
        for number in 0..count {
            let mut draws = Seed(7).stream("noise", number);
            let limit = 60.0 + 2000.0 * draws.unit();
            let (finding, _) = search(SEARCH, |rate, _| {
                let odds = 1.0 / (1.0 + ((rate / limit - 1.0) / 0.01).exp());
                holds(draws.unit() < odds)
            });
            near += u64::from(finding.held.is_some_and(|held| (held / limit - 1.0).abs() < 0.05));
        }
        assert!(near >= count * 9 / 10, "{near} of {count}");
    }

    proptest! {
        #[test]
        fn a_known_limit_is_found_within_the_precision(
            limit in 1.0f64..1e5, first in 1.0f64..1e3, precision in 0.002f64..0.2, confirm in 0usize..4,
        ) {
            prop_assume!(limit > first / 60.0);
            let rules = Search { first, most: None, precision, confirm, runs: 100 };
            let mut trials = Vec::new();
            let finding = loop {
                let expected = rules.remaining(&trials);
                match rules.next(&trials) {
                    SearchStep::Done(finding) => {
                        prop_assert_eq!(expected, 0);
                        break finding;
                    }
                    SearchStep::Run(rate, _) => {
                        prop_assert!(expected > 0);
                        trials.push(Trial { rate, vote: holds(rate <= limit) });
                    }
                }
            };
            prop_assert_eq!(finding.end, SearchEnd::Found);
            let (held, failed) = (finding.held.unwrap(), finding.failed.unwrap());
            prop_assert!(held <= limit && limit < failed, "{} {} {}", held, limit, failed);
            prop_assert!(failed - held <= precision * failed);
            // Doublings, halvings of a gap of a half, and confirmations.
            let doublings = (limit / first).log2().abs().ceil() + 1.0;
            let most = doublings + (0.5 / precision).log2().ceil().max(0.0) * 1.5 + 3.0 + confirm as f64 + 1.0;
            prop_assert!(trials.len() as f64 <= most, "{} runs", trials.len());
        }

        #[test]
        fn any_answers_come_to_an_end(answers in prop::collection::vec(0usize..3, 60)) {
            let votes = [Vote::Held, Vote::Failed, Vote::Void];
            let (finding, _) = search(SEARCH, |_, run| votes[answers[run]]);
            if let (Some(held), Some(failed)) = (finding.held, finding.failed) {
                prop_assert!(held < failed);
            }
        }
    }
}
