//! The glossary of the page.

use super::page::Term;
use crate::figures;

/// Definitions of the headline figures, the same as in `lx --list`, and of terms of the page.
pub fn terms() -> Vec<Term> {
    let figure = |name: &str, shown: &str| {
        let definition = figures::find(name).map_or("", |figure| &figure.definition);
        Term { name: format!("{shown} ({name})"), text: definition.to_owned() }
    };
    let word = |name: &str, text: &str| Term { name: name.to_owned(), text: text.to_owned() };
    vec![
        word(
            "device",
            "the system under test: a proxy, cache or other intermediary between robots and servers",
        ),
        word("bench", "the robots, the origin servers, and the machines and networks that they use"),
        word("robot", "a simulated user agent"),
        word("transaction", "one request of a robot with its reply, as measured"),
        word(
            "plain request (basic transaction)",
            "a GET request without conditions, ranges, reloads or redirects; hit ratios count these",
        ),
        word(
            "origin server",
            "the simulated server that generates the replies; the device forwards misses to it",
        ),
        word(
            "phase",
            "a part of the run with its own load; names such as framp, fill, top1 and idle come from the standard workloads",
        ),
        word("populus", "the number of robots that are active at a time"),
        word(
            "hit, miss, uncachable",
            "answered by the device without a server; fetched from a server and cachable; fetched and not cachable",
        ),
        figure("req_rate", "offered load"),
        figure("ok_xact.rate", "successful transactions"),
        figure("resp_tm_mean", "mean response time"),
        word(
            "p50, p95, p99",
            "percentiles: 50, 95 and 99 % of the replies took no longer; p50 is the median",
        ),
        figure("req_dhr", "offered document hit ratio"),
        figure("rep_dhr", "measured document hit ratio"),
        figure("rep_bhr", "measured byte hit ratio"),
        figure("err_pct", "error share"),
        word(
            "lateness",
            "the delay between the scheduled and the actual start of a request, caused by the bench",
        ),
        word("primary phase", "the phase that the headline figures come from"),
        word(
            "VALID, FAILED, INVALID",
            "the device sustained the load and the bench kept up; the device did not sustain the load; the bench, not the device, was the limit: do not use these figures",
        ),
    ]
}
