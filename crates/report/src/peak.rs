//! Decides whether a device sustained a rate, by checking the figures of a run against criteria.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::facts::RunFacts;
use crate::figures::value;
use crate::text;
use crate::verdict::{FindingSeverity, VerdictOutcome};

/// Whether and how a search for a peak ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PeakStatus {
    /// The search continues, or was interrupted.
    Searching,
    /// One rate was sustained, and a slightly higher one was not.
    Found,
    /// The highest rate that the search may try was sustained: the peak is higher.
    NotReached,
    /// The bench cannot offer more than the sustained rate.
    BenchLimit,
    /// The search ran out of runs.
    OutOfRuns,
    /// No rate was sustained.
    Nothing,
}

impl PeakStatus {
    /// All of them.
    pub const ALL: [PeakStatus; 6] = [
        PeakStatus::Searching,
        PeakStatus::Found,
        PeakStatus::NotReached,
        PeakStatus::BenchLimit,
        PeakStatus::OutOfRuns,
        PeakStatus::Nothing,
    ];

    /// The status as the report and the console show it.
    pub fn word(self) -> &'static str {
        match self {
            PeakStatus::Searching => "SEARCHING",
            PeakStatus::Found => "FOUND",
            PeakStatus::NotReached => "NOT REACHED",
            PeakStatus::BenchLimit => "BENCH LIMIT",
            PeakStatus::OutOfRuns => "NOT NARROWED DOWN",
            PeakStatus::Nothing => "NOT FOUND",
        }
    }
}

/// Name of the file that describes a search, in its directory.
pub const SEARCH_FILE: &str = "peak.json";

/// What the file of a search says to those who list searches, as its member `summary`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchSummary {
    /// Start of the search, in seconds since 1970; `None` if version 0.3.0 started it.
    pub begin_s: Option<i64>,
    /// Whether and how it ended.
    pub status: PeakStatus,
    /// The result, or what is missing, in a sentence.
    pub text: String,
    /// Name of the result directory of the last run at the peak, within that of the search.
    pub peak_run: Option<String>,
    /// Name of the result directory of the last run.
    pub last_run: Option<String>,
}

/// Why the summary of a search is not known.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The file cannot be read.
    #[error("{SEARCH_FILE} cannot be read ({0}): open report.html in the directory instead")]
    Io(#[from] io::Error),
    /// The file is damaged.
    #[error("{SEARCH_FILE} is damaged ({0}): open report.html in the directory instead")]
    Json(#[from] serde_json::Error),
    /// Version 0.3.0 wrote the file, without a summary.
    #[error(
        "a peak search by version {version}, which lists cannot show: open {directory}/report.html, or run `polygraph peak --resume \
         {directory}`, which completes the search if it was interrupted; then it is listed"
    )]
    NoSummary {
        /// The version.
        version: String,
        /// The directory of the search.
        directory: String,
    },
}

impl SearchSummary {
    /// Reads the summary of the search in a directory.
    ///
    /// # Errors
    /// If the file cannot be read, or has no summary.
    pub fn read(directory: &Path) -> Result<SearchSummary, SearchError> {
        #[derive(Deserialize)]
        struct SearchFile {
            version: String,
            summary: Option<SearchSummary>,
        }
        let text = std::fs::read_to_string(directory.join(SEARCH_FILE))?;
        let SearchFile { version, summary } = serde_json::from_str(&text)?;
        let directory = directory.display().to_string();
        summary.ok_or(SearchError::NoSummary { version, directory })
    }
}

/// The figures of the primary phase of a run at one rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RateMeasurement {
    /// Offered rate: transactions started per second.
    pub offered: Option<f64>,
    /// Measured rate: transactions finished per second.
    pub measured: Option<f64>,
    /// Mean response time in milliseconds.
    pub mean_ms: Option<f64>,
    /// 95th percentile of the response time in milliseconds.
    pub p95_ms: Option<f64>,
    /// The longest response time in milliseconds.
    pub max_ms: Option<f64>,
    /// Measured document hit ratio in percent.
    pub dhr: Option<f64>,
    /// Offered document hit ratio in percent.
    pub offered_dhr: Option<f64>,
    /// Failed transactions in percent.
    pub errors: Option<f64>,
    /// Number of finished transactions.
    pub ended: u64,
    /// Length of the primary phase in seconds.
    pub seconds: f64,
}

impl RateMeasurement {
    /// The figures of a run; all zero if no phase has statistics.
    pub fn of(facts: &RunFacts) -> RateMeasurement {
        let Some(headline) = &facts.headline else { return RateMeasurement::default() };
        let figure = |name| value(name, &headline.scope);
        RateMeasurement {
            offered: figure("req_rate"),
            measured: figure("ok_xact.rate"),
            mean_ms: figure("resp_tm_mean"),
            p95_ms: figure("resp_tm_p95"),
            max_ms: figure("baseline.rptm.max"),
            dhr: figure("rep_dhr"),
            offered_dhr: figure("req_dhr"),
            errors: figure("err_pct"),
            ended: headline.scope.ended_count(),
            seconds: headline.scope.seconds,
        }
    }
}

/// A limit that may depend on the value at low load: `factor` times that value, plus `more_ms`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeLimit {
    /// Multiplier of the value at low load; 0 for a limit that does not depend on it.
    pub factor: f64,
    /// Milliseconds added to the product.
    pub more_ms: f64,
}

impl TimeLimit {
    /// The limit in milliseconds, for this value at low load; `None` if it depends on an unknown value.
    pub fn at(self, low_ms: Option<f64>) -> Option<f64> {
        if self.factor == 0.0 {
            Some(self.more_ms)
        } else {
            low_ms.map(|low| self.factor * low + self.more_ms)
        }
    }
}

/// Criteria for a sustained rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeakCriteria {
    /// Share of failed transactions (0 to 1) that is allowed.
    pub errors: f64,
    /// Share (0 to 1) by which the measured rate may be below the offered rate.
    pub rate_gap: f64,
    /// Limit of the mean response time.
    pub mean: Option<TimeLimit>,
    /// Limit of the 95th percentile of the response time.
    pub p95: Option<TimeLimit>,
    /// Share of basic transactions (0 to 1) by which the measured hit ratio may be below the offered one.
    pub dhr_gap: Option<f64>,
}

/// The judgement of a run at a rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RateJudgement {
    /// The device sustained the rate.
    Held,
    /// The device did not sustain the rate; the reasons, in sentences.
    Failed(Vec<String>),
    /// The bench was the limit; the reasons, in sentences.
    Void(Vec<String>),
    /// The run was too short for a judgement; the reasons, in sentences.
    TooShort(Vec<String>),
}

impl PeakCriteria {
    /// Judges a run. `low` has the figures at low load; without it, limits that depend on them are not applied.
    pub fn judge(&self, facts: &RunFacts, low: Option<&RateMeasurement>) -> RateJudgement {
        let verdict = &facts.verdict;
        let findings = || {
            let against =
                verdict.findings.iter().filter(|finding| finding.weight != FindingSeverity::Warning);
            against.map(|finding| finding.text.clone()).collect::<Vec<_>>()
        };
        match verdict.outcome {
            VerdictOutcome::Invalid => {
                let mut against = verdict.of_weight(FindingSeverity::Invalid);
                let short = against.all(|finding| finding.rule == "samples");
                return if short {
                    RateJudgement::TooShort(findings())
                } else {
                    RateJudgement::Void(findings())
                };
            }
            VerdictOutcome::Failed => return RateJudgement::Failed(findings()),
            VerdictOutcome::Valid => {}
        }
        match self.against(&RateMeasurement::of(facts), low) {
            reasons if reasons.is_empty() => RateJudgement::Held,
            reasons => RateJudgement::Failed(reasons),
        }
    }

    /// The criteria that a run with these figures does not meet, in sentences.
    pub fn against(&self, run: &RateMeasurement, low: Option<&RateMeasurement>) -> Vec<String> {
        let mut reasons = Vec::new();
        if let Some(errors) = run.errors.filter(|errors| *errors > self.errors * 100.0) {
            reasons.push(format!("{errors:.2} % errors, above {:.2} %", self.errors * 100.0));
        }
        if let (Some(offered), Some(measured)) = (run.offered, run.measured)
            && measured < offered * (1.0 - self.rate_gap)
        {
            let (offered, measured) = (text::short(Some(offered)), text::short(Some(measured)));
            reasons.push(format!("{measured} of {offered} transactions/s finished"));
        }
        let mut time = |what: &str, limit: Option<TimeLimit>, pick: fn(&RateMeasurement) -> Option<f64>| {
            let limit = limit.and_then(|limit| limit.at(low.and_then(pick)));
            if let (Some(limit), Some(ms)) = (limit, pick(run))
                && ms > limit
            {
                let (ms, limit) = (text::ms(Some(ms)), text::ms(Some(limit)));
                reasons.push(format!("{what} response time {ms}, above {limit}"));
            }
        };
        time("mean", self.mean, |run| run.mean_ms);
        time("p95 of the", self.p95, |run| run.p95_ms);
        if let (Some(gap), Some(offered), Some(measured)) = (self.dhr_gap, run.offered_dhr, run.dhr)
            && measured < offered - gap * 100.0
        {
            reasons.push(format!(
                "{measured:.1} % hits, more than {:.1} points below the offered {offered:.1} %",
                gap * 100.0
            ));
        }
        reasons
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::fold;
    use crate::testlog::Run;

    const CRITERIA: PeakCriteria = PeakCriteria {
        errors: 0.03,
        rate_gap: 0.03,
        mean: Some(TimeLimit { factor: 1.25, more_ms: 250.0 }),
        p95: None,
        dhr_gap: Some(0.05),
    };

    #[test]
    fn limits_may_follow_the_low_load() {
        let limit = |factor, more_ms| TimeLimit { factor, more_ms };
        for (limit, low, ms) in [
            (limit(0.0, 500.0), None, Some(500.0)),
            (limit(0.0, 500.0), Some(9.0), Some(500.0)),
            (limit(1.25, 250.0), Some(1000.0), Some(1500.0)),
            (limit(2.0, 0.0), None, None),
        ] {
            assert_eq!(limit.at(low), ms, "{limit:?}");
        }
    }

    #[test]
    fn each_criterion_speaks_for_itself() {
        let good = RateMeasurement {
            offered: Some(100.0),
            measured: Some(99.0),
            mean_ms: Some(1400.0),
            p95_ms: Some(4000.0),
            max_ms: Some(9000.0),
            dhr: Some(53.0),
            offered_dhr: Some(55.0),
            errors: Some(0.5),
            ended: 10_000,
            seconds: 100.0,
        };
        let low = RateMeasurement { mean_ms: Some(1200.0), p95_ms: Some(3000.0), ..good.clone() };
        let tail = PeakCriteria { p95: Some(TimeLimit { factor: 1.2, more_ms: 0.0 }), ..CRITERIA };
        let no_dhr = PeakCriteria { dhr_gap: None, ..CRITERIA };
        let rows = [
            (CRITERIA, good.clone(), None),
            (
                CRITERIA,
                RateMeasurement { errors: Some(3.5), ..good.clone() },
                Some("3.50 % errors, above 3.00 %"),
            ),
            (
                CRITERIA,
                RateMeasurement { measured: Some(96.0), ..good.clone() },
                Some("96.0 of 100 transactions/s finished"),
            ),
            (
                CRITERIA,
                RateMeasurement { mean_ms: Some(1800.0), ..good.clone() },
                Some("mean response time 1,800 ms, above 1,750 ms"),
            ),
            (tail, good.clone(), Some("p95 of the response time 4,000 ms, above 3,600 ms")),
            (
                CRITERIA,
                RateMeasurement { dhr: Some(49.0), ..good.clone() },
                Some("49.0 % hits, more than 5.0 points below the offered 55.0 %"),
            ),
            (no_dhr, RateMeasurement { dhr: Some(1.0), ..good.clone() }, None),
            (CRITERIA, RateMeasurement { dhr: None, mean_ms: None, ..good.clone() }, None),
        ];
        for (criteria, run, reason) in rows {
            let reasons = criteria.against(&run, Some(&low));
            assert_eq!(reasons.iter().map(String::as_str).collect::<Vec<_>>(), Vec::from_iter(reason));
        }
        assert!(CRITERIA.against(&RateMeasurement { mean_ms: Some(1800.0), ..good }, None).is_empty());
    }

    #[test]
    fn a_verdict_against_device_or_bench_comes_first() {
        let judge = |run: Run| CRITERIA.judge(&fold(&run.logs()).unwrap(), None);
        assert_eq!(judge(Run::default()), RateJudgement::Held);
        let over = judge(Run { capacity: 80.0, ..Run::default() });
        assert!(matches!(&over, RateJudgement::Failed(reasons) if !reasons.is_empty()), "{over:?}");
        let short = judge(Run { rate: 2.0, capacity: 1000.0, ..Run::default() });
        assert!(matches!(&short, RateJudgement::TooShort(reasons) if reasons.len() == 1), "{short:?}");
        let both = judge(Run { rate: 2.0, busy: 0.99, ..Run::default() });
        assert!(matches!(&both, RateJudgement::Void(_)), "a longer run would not help: {both:?}");
        let busy = judge(Run { busy: 0.99, ..Run::default() });
        assert!(matches!(&busy, RateJudgement::Void(reasons) if !reasons.is_empty()), "{busy:?}");
    }
}
