//! The figures of a run that a bake-off compares.

use polygraph_report::figures::find;
use polygraph_report::{RunFacts, Scope};
use serde::{Deserialize, Serialize};

/// The figures of a run, of its primary phase. They are computed from its logs whenever a report is written; the
/// journal notes them too, for a series may outlive the program that can read its logs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MainFigures {
    /// Mean response time in seconds.
    pub mean_s: Option<f64>,
    /// 50 % of the replies took no longer, in seconds.
    pub median_s: Option<f64>,
    /// 75 % of the replies took no longer, in seconds.
    pub p75_s: Option<f64>,
    /// Measured document hit ratio, percent.
    pub hit_pct: Option<f64>,
    /// Failed transactions, percent of all.
    pub error_pct: Option<f64>,
    /// Seconds that 1 %, 2 % ... 99 % of the replies did not exceed; empty without replies.
    pub percentiles_s: Vec<f64>,
    /// Transactions of the whole run that ended, well or not.
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
        let percentile = |percent: u32| scope.all.rptm_us.quantile(f64::from(percent) * 0.01);
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
