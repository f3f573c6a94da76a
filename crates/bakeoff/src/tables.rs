//! The tables of a bake-off report, with their formulas. Numbers of tables and figures are those of 1999.
//!
//! | table | columns | formula |
//! |---|---|---|
//! | 5.1 prices | cache alone, cache with network | published total, otherwise the sum of the lines without and with network equipment |
//! | 5.2 peaks | achieved, claimed (the raised claim if there is one) | highest rate of a passed run; the claim that was made last |
//! | 5.3 summary | total price, peak, ranges, appendix | smallest and largest mean response time and hit ratio over passed runs, rounded |
//! | price and performance | cost per request per second | total price / rate |
//! | results (appendices) | rate, mean response time, hit ratio | as measured |

use polygraph_report::html::table::{Table, columns};
use polygraph_report::text::{UNDEFINED, number};

use crate::entry::{AttemptStatus, Participant, PrintedNumber, RatePoint, rounded};

/// Utilisations at which costs are shown, as shares of the achieved peak.
const UTILISATIONS: [f64; 3] = [0.25, 0.5, 1.0];

fn money(value: Option<f64>) -> String {
    match value {
        Some(value) => format!("${}", number(Some(value), 0)),
        None => UNDEFINED.to_owned(),
    }
}

fn rate(value: Option<f64>) -> String {
    value.map_or_else(|| UNDEFINED.to_owned(), |rate| rate.to_string())
}

/// Table 5.1: prices. `None` if no device has a price.
pub fn prices(entries: &[Participant]) -> Option<Table> {
    let priced =
        entries.iter().filter(|entry| entry.price.total().is_some() || entry.price.alone().is_some());
    let rows: Vec<Vec<String>> = priced
        .map(|entry| {
            let share = entry.price.network_share().map(|share| 100.0 * share);
            vec![
                entry.name.clone(),
                money(entry.price.alone()),
                money(entry.price.total()),
                share.map_or_else(|| UNDEFINED.into(), |share| format!("{} %", number(Some(share), 1))),
            ]
        })
        .collect();
    let head = columns(&["Box", "Cache alone", "Cache with network", "Share of network equipment"]);
    (!rows.is_empty()).then(|| Table::new("Table 5.1. Prices", head, rows))
}

/// Table 5.2: peaks. `None` if there are no claims.
pub fn peaks(entries: &[Participant]) -> Option<Table> {
    let claiming = entries.iter().filter(|entry| entry.claimed.is_some() && !entry.points.is_empty());
    let rows: Vec<Vec<String>> = claiming
        .map(|entry| {
            let claimed = match entry.first_claim {
                Some(first) => format!("{} (raised from {first})", rate(entry.claimed)),
                None => rate(entry.claimed),
            };
            vec![entry.name.clone(), rate(entry.achieved()), claimed]
        })
        .collect();
    let head = columns(&["Box", "Achieved (req/sec)", "Claimed (req/sec)"]);
    (!rows.is_empty()).then(|| Table::new("Table 5.2. Peak throughput", head, rows))
}

/// Table 5.3: the summary.
pub fn summary(entries: &[Participant]) -> Option<Table> {
    let range = |range: Option<(f64, f64)>, decimals| match range {
        Some((low, high)) => format!("{}-{}", rounded(low, decimals), rounded(high, decimals)),
        None => UNDEFINED.to_owned(),
    };
    // Devices whose response times are far below a second would all be 0.0.
    let fast = |entry: &Participant| entry.mean_range().is_some_and(|(low, _)| low < 0.1);
    let row = |entry: &Participant| {
        vec![
            entry.name.clone(),
            number(entry.price.total(), 0),
            rate(entry.achieved()),
            range(entry.mean_range(), if fast(entry) { 3 } else { 1 }),
            range(entry.hit_range(), 0),
            if entry.appendix.is_empty() { UNDEFINED.into() } else { entry.appendix.clone() },
        ]
    };
    let rows: Vec<Vec<String>> = entries.iter().filter(|entry| !entry.points.is_empty()).map(row).collect();
    let head = columns(&[
        "Box",
        "Total price ($)",
        "Peak throughput (req/sec)",
        "Mean response time (sec)",
        "Hit ratio (%)",
        "Appendix",
    ]);
    (!rows.is_empty()).then(|| Table::new("Table 5.3. Price and performance summary", head, rows))
}

/// Throughput cost: the price for each request per second. `None` if no device has both a price and a peak.
pub fn costs(entries: &[Participant]) -> Option<Table> {
    let rows: Vec<Vec<String>> = entries
        .iter()
        .filter(|entry| entry.price.total().is_some() && entry.achieved().is_some())
        .map(|entry| {
            let at = |share: f64| {
                let rate = entry.achieved()? * share;
                entry.cost(rate)
            };
            let cost = |value: Option<f64>| {
                value.map_or_else(|| UNDEFINED.into(), |cost| format!("${}", number(Some(cost), 2)))
            };
            let thousand = at(1.0).map(|cost| 1000.0 * cost);
            [vec![entry.name.clone()], UTILISATIONS.map(at).map(cost).to_vec(), vec![money(thousand)]]
                .concat()
        })
        .collect();
    let head = columns(&[
        "Box",
        "At 25 % of its peak",
        "At 50 %",
        "At its peak",
        "A cluster for 1000 req/sec, each at its peak",
    ]);
    (!rows.is_empty())
        .then(|| Table::new("Throughput cost: total price for each request per second", head, rows))
}

/// The devices by their highest sustained rate, the faster one first if rates are equal, and devices without a
/// sustained rate last. `None` without results.
pub fn ranking(entries: &[Participant]) -> Option<Table> {
    let mut ranked: Vec<&Participant> = entries.iter().filter(|entry| !entry.points.is_empty()).collect();
    let mean =
        |entry: &Participant| at_peak(entry).and_then(|point| point.mean_s).map_or(f64::MAX, |num| num.value);
    let peak = |entry: &Participant| entry.achieved().unwrap_or(0.0);
    ranked.sort_by(|a, b| peak(b).total_cmp(&peak(a)).then(mean(a).total_cmp(&mean(b))));
    let rows = ranked.iter().enumerate().map(|(index, entry)| {
        let point = at_peak(entry);
        let text = |num: Option<PrintedNumber>| num.map_or_else(|| UNDEFINED.to_owned(), PrintedNumber::text);
        let cost = entry.achieved().and_then(|peak| entry.cost(peak));
        vec![
            (index + 1).to_string(),
            entry.name.clone(),
            rate(entry.achieved()),
            rate(entry.claimed),
            text(point.and_then(|point| point.mean_s)),
            text(point.and_then(|point| point.hit_pct)),
            number(point.and_then(|point| point.error_pct), 2),
            number(point.and_then(|point| point.cpu_ms), 2),
            cost.map_or_else(|| UNDEFINED.to_owned(), |cost| format!("${}", number(Some(cost), 2))),
            format!("{} of {}", entry.passed().count(), entry.points.len()),
        ]
    });
    let head = columns(&[
        "Rank",
        "Box",
        "Peak (req/sec)",
        "Claimed (req/sec)",
        "Mean response time there (sec)",
        "Hit ratio there (%)",
        "Errors there (%)",
        "Device processor time there (ms)",
        "Throughput cost there",
        "Rates passed",
    ]);
    let rows: Vec<Vec<String>> = rows.collect();
    (!rows.is_empty()).then(|| Table::new("Ranking by peak throughput", head, rows))
}

/// The run at the highest rate that a device sustained.
fn at_peak(entry: &Participant) -> Option<&RatePoint> {
    let peak = entry.achieved()?;
    entry.passed().find(|point| point.rate == peak)
}

/// The participants.
pub fn participants(entries: &[Participant]) -> Table {
    let dash = |text: &str| if text.is_empty() { UNDEFINED.to_owned() } else { text.to_owned() };
    let rows = entries.iter().map(|entry| {
        let source = match (entry.withheld, entry.guest) {
            (true, _) => "results withheld".to_owned(),
            (_, true) => format!("{}; not a participant of the event", entry.source),
            _ => dash(&entry.source),
        };
        vec![entry.name.clone(), dash(&entry.appendix), dash(&entry.vendor), source]
    });
    Table::new("Participants", columns(&["Box", "Appendix", "Participant", "Results from"]), rows.collect())
}

/// The price list of an appendix. `None` without lines.
pub fn equipment(entry: &Participant) -> Option<Table> {
    if entry.price.lines.is_empty() {
        return None;
    }
    let mut rows: Vec<Vec<String>> = entry
        .price
        .lines
        .iter()
        .map(|line| {
            let note = if line.note.is_empty() { UNDEFINED } else { &line.note };
            vec![
                format!("({}) {}", line.quantity, line.part),
                money(line.price),
                if line.network { "yes" } else { "no" }.into(),
                note.to_owned(),
            ]
        })
        .collect();
    rows.push(vec!["Total".into(), money(entry.price.total()), UNDEFINED.into(), UNDEFINED.into()]);
    Some(Table::new("Equipment", columns(&["Description", "Price", "Network equipment", "Remark"]), rows))
}

/// A column of results: its name and the cell of a run; `None` for an empty cell.
type Column = (&'static str, fn(&RatePoint) -> Option<String>);

/// The columns of results, except empty ones.
const RESULTS: [Column; 6] = [
    ("Mean response time (seconds)", |point| point.mean_s.map(PrintedNumber::text)),
    ("Median (s)", |point| point.median_s.map(|value| format!("{value:.3}"))),
    ("75 % (s)", |point| point.p75_s.map(|value| format!("{value:.3}"))),
    ("Hit ratio (percent)", |point| point.hit_pct.map(PrintedNumber::text)),
    ("Errors (%)", |point| point.error_pct.map(|value| format!("{value:.2}"))),
    ("Device processor time (ms)", |point| point.cpu_ms.map(|value| format!("{value:.2}"))),
];

/// The results of an appendix: passed runs by rate.
pub fn results(entry: &Participant) -> Option<Table> {
    let used = |(_, cell): &&Column| entry.passed().any(|point| cell(point).is_some());
    let shown: Vec<&Column> = RESULTS.iter().filter(used).collect();
    let head: Vec<&str> =
        std::iter::once("Request rate (per second)").chain(shown.iter().map(|c| c.0)).collect();
    let row = |point: &RatePoint| {
        let cells = shown.iter().map(|(_, cell)| cell(point).unwrap_or_else(|| UNDEFINED.to_owned()));
        std::iter::once(point.rate.to_string()).chain(cells).collect()
    };
    (!shown.is_empty())
        .then(|| Table::new("Results by request rate", columns(&head), entry.passed().map(row).collect()))
}

/// All runs of a device, in order. `None` if they are not known.
pub fn attempts(entry: &Participant) -> Option<Table> {
    let rows: Vec<Vec<String>> = entry
        .attempts
        .iter()
        .map(|attempt| {
            vec![
                attempt.rate.to_string(),
                attempt.number.to_string(),
                attempt.status.word().into(),
                if attempt.reported { "yes" } else { "no" }.into(),
                attempt.reason.clone(),
                attempt.run.clone(),
            ]
        })
        .collect();
    let head = columns(&["Request rate", "Run", "Outcome", "Reported", "Why", "Result directory"]);
    (!rows.is_empty()).then(|| Table::new("Runs in order", head, rows))
}

/// Runs that were not passed.
pub fn failures(entries: &[Participant]) -> Option<Table> {
    let rows: Vec<Vec<String>> = entries
        .iter()
        .flat_map(|entry| {
            let failed = entry.points.iter().filter(|point| point.status != AttemptStatus::Passed);
            failed.map(|point| {
                let note = if point.note.is_empty() { UNDEFINED } else { &point.note };
                vec![entry.name.clone(), point.rate.to_string(), point.status.word().into(), note.to_owned()]
            })
        })
        .collect();
    let head = columns(&["Box", "Request rate", "Outcome", "Remark"]);
    (!rows.is_empty()).then(|| Table::new("Rates without a passed run", head, rows))
}
