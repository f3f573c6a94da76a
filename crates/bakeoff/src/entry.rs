//! A participating device: prices, claims, results, and figures computed from them.

/// A number with the number of decimals that its source prints.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrintedNumber {
    /// The value.
    pub value: f64,
    /// Number of decimals to print.
    pub decimals: usize,
}

impl PrintedNumber {
    /// A number to be printed with this number of decimals.
    pub fn new(value: f64, decimals: usize) -> PrintedNumber {
        PrintedNumber { value, decimals }
    }

    /// The number as text.
    pub fn text(self) -> String {
        format!("{:.*}", self.decimals, self.value)
    }
}

/// A line of the price list.
#[derive(Clone, Debug, PartialEq)]
pub struct PriceLine {
    /// Description of the item.
    pub part: String,
    /// Number of items of this kind.
    pub quantity: u32,
    /// The price of the whole quantity, in dollars; `None` if it is not published.
    pub price: Option<f64>,
    /// Whether this is network equipment that the device needs, which is part of the total price only.
    pub network: bool,
    /// A remark.
    pub note: String,
}

/// The prices of a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Price {
    /// The parts.
    pub lines: Vec<PriceLine>,
    /// The published price without network equipment, which takes precedence over the sum of the lines.
    pub stated_alone: Option<f64>,
    /// The published price with network equipment, which takes precedence over the sum of the lines.
    pub stated_total: Option<f64>,
}

impl Price {
    /// The sum of the lines, including network equipment if `network`. `None` without lines, or if a price is missing.
    pub fn sum(&self, network: bool) -> Option<f64> {
        if self.lines.is_empty() {
            return None;
        }
        self.lines.iter().filter(|line| network || !line.network).map(|line| line.price).sum()
    }

    /// Price of the cache alone, in dollars.
    pub fn alone(&self) -> Option<f64> {
        self.stated_alone.or_else(|| self.sum(false))
    }

    /// Price with network equipment, in dollars.
    pub fn total(&self) -> Option<f64> {
        self.stated_total.or_else(|| self.sum(true))
    }

    /// Share of network equipment in the total price, 0 to 1.
    pub fn network_share(&self) -> Option<f64> {
        let (alone, total) = (self.alone()?, self.total()?);
        (total > 0.0).then(|| (total - alone) / total)
    }
}

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttemptStatus {
    /// The device sustained the load.
    Passed,
    /// The device did not sustain the load.
    Failed,
    /// The bench was the limit: the run counts neither for nor against the device.
    Invalid,
}

impl AttemptStatus {
    /// The outcome in one word.
    pub fn word(self) -> &'static str {
        match self {
            AttemptStatus::Passed => "passed",
            AttemptStatus::Failed => "failed",
            AttemptStatus::Invalid => "invalid",
        }
    }
}

/// The reported run at one request rate.
#[derive(Clone, Debug, PartialEq)]
pub struct RatePoint {
    /// Offered requests per second.
    pub rate: f64,
    /// The outcome of the run.
    pub status: AttemptStatus,
    /// Mean response time in seconds.
    pub mean_s: Option<PrintedNumber>,
    /// Median response time in seconds.
    pub median_s: Option<f64>,
    /// 75th percentile of the response time in seconds.
    pub p75_s: Option<f64>,
    /// Measured document hit ratio in percent.
    pub hit_pct: Option<PrintedNumber>,
    /// Failed transactions in percent of all transactions.
    pub error_pct: Option<f64>,
    /// Processor time of the device per transaction, in milliseconds, if it ran on this machine.
    pub cpu_ms: Option<f64>,
    /// Distribution of response times: seconds, and the share of replies (0 to 1) that took no longer.
    pub curve: Vec<(f64, f64)>,
    /// A remark.
    pub note: String,
}

impl RatePoint {
    /// A point with only rate and status.
    pub fn new(rate: f64, status: AttemptStatus) -> RatePoint {
        RatePoint {
            rate,
            status,
            mean_s: None,
            median_s: None,
            p75_s: None,
            hit_pct: None,
            error_pct: None,
            cpu_ms: None,
            curve: Vec::new(),
            note: String::new(),
        }
    }
}

/// A run, reported or not.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// Offered requests per second.
    pub rate: f64,
    /// Number of the run at this rate, from 1.
    pub number: u32,
    /// The outcome of the run.
    pub status: AttemptStatus,
    /// The reason for the outcome.
    pub reason: String,
    /// The result directory.
    pub run: String,
    /// Whether this run is reported for its rate.
    pub reported: bool,
}

/// A comment on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// The author.
    pub heading: String,
    /// The text, in paragraphs.
    pub text: String,
}

/// Figures that a publication states in addition to those computed from its results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatedFigures {
    /// Highest rate of a passed run.
    pub achieved: Option<f64>,
    /// Smallest and largest mean response time in seconds.
    pub mean_s: Option<(f64, f64)>,
    /// Smallest and largest hit ratio in percent.
    pub hit_pct: Option<(f64, f64)>,
}

/// A participating device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Participant {
    /// Name in tables.
    pub name: String,
    /// The participant: the vendor or person that entered the device.
    pub vendor: String,
    /// The source of the results.
    pub source: String,
    /// The letter of its appendix in a publication, if there is one.
    pub appendix: String,
    /// Whether the device was measured by a series of this program, not imported.
    pub own: bool,
    /// Whether results were withheld.
    pub withheld: bool,
    /// Whether results were measured elsewhere, not at the event with which they are shown.
    pub guest: bool,
    /// The prices of the device.
    pub price: Price,
    /// The highest claimed rate, after the claim was raised.
    pub claimed: Option<f64>,
    /// The claim before it was raised.
    pub first_claim: Option<f64>,
    /// The reported runs, one for each rate, in order of rate.
    pub points: Vec<RatePoint>,
    /// All runs in order, if they are known.
    pub attempts: Vec<Attempt>,
    /// Configuration: names and values.
    pub facts: Vec<(String, String)>,
    /// Checks before the runs: names and results.
    pub checks: Vec<(String, String)>,
    /// Remarks that readers must know.
    pub remarks: Vec<String>,
    /// Comments on the device.
    pub comments: Vec<Comment>,
    /// Figures stated in a publication.
    pub stated: StatedFigures,
}

impl Participant {
    /// The passed runs.
    pub fn passed(&self) -> impl Iterator<Item = &RatePoint> {
        self.points.iter().filter(|point| point.status == AttemptStatus::Passed)
    }

    /// The highest rate of a passed run.
    pub fn achieved(&self) -> Option<f64> {
        self.passed().map(|point| point.rate).reduce(f64::max)
    }

    /// Throughput cost: total price over rate, in dollars for each request per second.
    pub fn cost(&self, rate: f64) -> Option<f64> {
        (rate > 0.0).then_some(self.price.total()? / rate)
    }

    /// Rate divided by the highest rate of a passed run; at most 1 for passed runs.
    pub fn utilisation(&self, rate: f64) -> Option<f64> {
        Some(rate / self.achieved()?)
    }

    /// Smallest and largest value of a figure over passed runs.
    pub fn range(&self, figure: impl Fn(&RatePoint) -> Option<f64>) -> Option<(f64, f64)> {
        let values = self.passed().filter_map(figure);
        values.fold(None, |range, v| {
            Some(range.map_or((v, v), |(low, high): (f64, f64)| (low.min(v), high.max(v))))
        })
    }

    /// Smallest and largest mean response time in seconds.
    pub fn mean_range(&self) -> Option<(f64, f64)> {
        self.range(|point| Some(point.mean_s?.value))
    }

    /// Smallest and largest document hit ratio in percent.
    pub fn hit_range(&self) -> Option<(f64, f64)> {
        self.range(|point| Some(point.hit_pct?.value))
    }

    /// Differences between stated figures and those computed from the data, in sentences.
    pub fn disagreements(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut compare = |what: &str, stated: Option<f64>, derived: Option<f64>| {
            if let (Some(stated), Some(derived)) = (stated, derived)
                && (stated - derived).abs() > 1e-9
            {
                found.push(format!(
                    "{}: the published {what} is {stated}, but the data yield {derived}; the published figure is used.",
                    self.name
                ));
            }
        };
        compare("price without network equipment", self.price.stated_alone, self.price.sum(false));
        compare("price with network equipment", self.price.stated_total, self.price.sum(true));
        compare("highest rate passed", self.stated.achieved, self.achieved());
        let ranges = [
            ("mean response time", self.stated.mean_s, self.mean_range(), 1),
            ("hit ratio", self.stated.hit_pct, self.hit_range(), 0),
        ];
        for (what, stated, derived, decimals) in ranges {
            if let (Some(stated), Some(derived)) = (stated, derived) {
                let text = |(low, high)| format!("{}-{}", rounded(low, decimals), rounded(high, decimals));
                if text(stated) != text(derived) {
                    found.push(format!(
                        "{}: the published range of the {what} is {}, but the results yield {}.",
                        self.name,
                        text(stated),
                        text(derived)
                    ));
                }
            }
        }
        found
    }
}

/// A number with this number of decimals, with halves rounded away from zero. The binary value is rounded: that of 6.05
/// is slightly smaller, so the result is 6.0.
pub fn rounded(value: f64, decimals: usize) -> String {
    if decimals == 0 { format!("{:.0}", value.round()) } else { format!("{value:.decimals$}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(price: f64, network: bool) -> PriceLine {
        PriceLine { part: String::new(), quantity: 1, price: Some(price), network, note: String::new() }
    }

    fn point(rate: f64, status: AttemptStatus, mean: f64, hits: f64) -> RatePoint {
        RatePoint {
            mean_s: Some(PrintedNumber::new(mean, 2)),
            hit_pct: Some(PrintedNumber::new(hits, 1)),
            ..RatePoint::new(rate, status)
        }
    }

    #[test]
    fn what_follows_from_price_and_results() {
        let entry = Participant {
            price: Price { lines: vec![line(300.0, false), line(100.0, true)], ..Price::default() },
            points: vec![
                point(10.0, AttemptStatus::Passed, 1.5, 55.0),
                point(20.0, AttemptStatus::Passed, 2.5, 40.0),
                point(30.0, AttemptStatus::Failed, 9.0, 1.0),
                point(40.0, AttemptStatus::Invalid, 9.0, 1.0),
            ],
            ..Participant::default()
        };
        assert_eq!((entry.price.alone(), entry.price.total()), (Some(300.0), Some(400.0)));
        assert_eq!(entry.price.network_share(), Some(0.25));
        assert_eq!(entry.achieved(), Some(20.0));
        assert_eq!((entry.cost(20.0), entry.cost(0.0)), (Some(20.0), None));
        assert_eq!(entry.utilisation(10.0), Some(0.5));
        assert_eq!((entry.mean_range(), entry.hit_range()), (Some((1.5, 2.5)), Some((40.0, 55.0))));
    }

    #[test]
    fn what_is_unknown_stays_so() {
        let none = Participant::default();
        assert_eq!(
            (none.price.total(), none.achieved(), none.cost(5.0), none.utilisation(5.0)),
            (None, None, None, None)
        );
        assert_eq!(none.mean_range(), None);
        let unpriced = PriceLine { price: None, ..line(0.0, true) };
        let price = Price { lines: vec![line(5.0, false), unpriced], ..Price::default() };
        assert_eq!((price.alone(), price.total()), (Some(5.0), None));
    }

    #[test]
    fn published_figures_win_and_disagreements_are_told() {
        let price = Price { lines: vec![line(10.0, false)], stated_total: Some(9.0), ..Price::default() };
        let entry = Participant { name: "X".into(), price, ..Participant::default() };
        assert_eq!(entry.price.total(), Some(9.0));
        let found = entry.disagreements();
        assert!(found.len() == 1 && found[0].contains("is 9,") && found[0].contains("yield 10"), "{found:?}");
    }

    #[test]
    fn rounding() {
        for (value, decimals, want) in [
            (50.5, 0, "51"),
            (54.5, 0, "55"),
            (46.6, 0, "47"),
            (6.05, 1, "6.0"),
            (4.16, 1, "4.2"),
            (1.37, 1, "1.4"),
        ] {
            assert_eq!(rounded(value, decimals), want, "{value}");
        }
    }
}
