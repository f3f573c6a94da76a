//! The figures of a run that a bake-off compares.

use polygraph_report::figures::find;
use polygraph_report::{RunFacts, Scope};
use serde::{Deserialize, Serialize};

/// The figures of the primary phase of a run. They are computed from its logs whenever a report is written. The journal
/// contains them as well, because later versions of the program may be unable to read the logs of an old series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MainFigures {
    /// Mean response time in seconds.
    pub mean_s: Option<f64>,
    /// Median response time in seconds.
    pub median_s: Option<f64>,
    /// 75th percentile of the response time in seconds.
    pub p75_s: Option<f64>,
    /// Measured document hit ratio in percent.
    pub hit_pct: Option<f64>,
    /// Failed transactions in percent of all transactions.
    pub error_pct: Option<f64>,
    /// Percentiles 1 to 99 of the response time in seconds; empty without replies.
    pub percentiles_s: Vec<f64>,
    /// Number of finished transactions of the whole run, successful or not.
    pub transactions: u64,
}

impl MainFigures {
    /// The figures of a run.
    pub fn of(facts: &RunFacts) -> MainFigures {
        let total = facts.client.as_ref().and_then(|side| side.total.as_ref());
        let transactions = total.map_or(0, Scope::ended_count);
        let Some(headline) = &facts.headline else {
            return MainFigures { transactions, ..MainFigures::default() };
        };
        let scope = &headline.scope;
        let figure = |name: &str| find(name).and_then(|figure| figure.of(scope));
        let seconds = |name: &str| figure(name).map(|ms| ms * 1e-3);
        let percentile = |percent: u32| scope.rptm_us().quantile(f64::from(percent) * 0.01);
        MainFigures {
            mean_s: seconds("resp_tm_mean"),
            median_s: seconds("resp_tm_p50"),
            p75_s: seconds("resp_tm_p75"),
            hit_pct: figure("rep_dhr"),
            error_pct: figure("err_pct"),
            percentiles_s: (1..=99).filter_map(percentile).map(|us| us as f64 * 1e-6).collect(),
            transactions,
        }
    }
}
