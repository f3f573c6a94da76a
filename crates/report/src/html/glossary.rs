//! Words of the page.

use super::page::Term;
use crate::figures;

/// Terms of the page: definitions of the figures behind the large numbers, as everywhere else, and some words.
pub fn terms() -> Vec<Term> {
    let figure = |name: &str, shown: &str| {
        let definition = figures::find(name).map_or("", |figure| &figure.definition);
        Term { name: format!("{shown} ({name})"), text: definition.to_owned() }
    };
    let word = |name: &str, text: &str| Term { name: name.to_owned(), text: text.to_owned() };
    vec![
        word("device", "what is measured: a proxy, cache or other intermediary between robots and servers"),
        word("robot", "a simulated user; a transaction is one request of it with its reply"),
        word(
            "hit, miss, uncachable",
            "answered by the device alone; fetched from a server and cachable; fetched and not cachable",
        ),
        figure("req_rate", "offered load"),
        figure("ok_xact.rate", "good replies"),
        figure("resp_tm_mean", "mean response time"),
        word("p50, p95, p99", "percentiles: 50, 95, 99 % of the replies took no longer; p50 is the median"),
        figure("req_dhr", "offered document hit ratio"),
        figure("rep_dhr", "measured document hit ratio"),
        figure("rep_bhr", "measured byte hit ratio"),
        figure("err_pct", "error share"),
        word("lateness", "how much later than due a request was started, by the bench's own fault"),
        word("primary phase", "the phase that results are taken from"),
        word(
            "VALID, FAILED, INVALID",
            "figures can be trusted; the device did not hold; the bench did not do its part",
        ),
    ]
}
