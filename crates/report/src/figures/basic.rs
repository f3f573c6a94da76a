//! The names of generation 1.x, and the order of the later ones.

use std::borrow::Cow;

use polygraph_stats::{BinSet, Class, ErrorKind};

use super::table::{FigureTable, NeededBins, PERCENTILES};
use super::{Unit, detail, error_count, percent, ratio, tls, transactions};

const HIT: &[Class] = &[Class::Hit];
const NOT_HIT: &[Class] = &[Class::Miss, Class::Uncachable];
const FILL: &[Class] = &[Class::Miss];
const UNCACHABLE: &[Class] = &[Class::Uncachable];
const CACHABLE: &[Class] = &[Class::Hit, Class::Miss];

/// The names of the 1.x extractor.
pub(super) fn classic(table: &mut FigureTable) {
    use Unit::{Bytes, Count, Ms, PerSecond, Percent, Things};
    let t = table;
    t.start_section("Names of generation 1.x");
    t.add_figure("log_cnt", Count, "number of logs", |s| Some(s.logs as f64));
    t.add_figure("req_rate", PerSecond, "offered rate: transactions started per second", |s| {
        s.rate(s.block.xacts.entered as f64)
    });
    t.add_figure(
        "rep_rate",
        PerSecond,
        "measured rate: transactions ended per second, including failed transactions",
        |s| s.rate(s.block.xacts.left as f64),
    );
    t.add_figure("resp_tm_mean", Ms, "mean response time, from the actual start to the last byte", |s| {
        Some(s.block.rptm_us_summary().mean()? * 1e-3)
    });
    t.add_figure("conn_ttl_mean", Ms, "mean lifetime of closed connections", |s| {
        Some(s.block.conn_ttl_us.mean()? * 1e-3)
    });
    t.add_figure(
        "req_dhr",
        Percent,
        "offered document hit ratio: share of basic transactions that repeat a request for a cachable object",
        |s| Some(100.0 * s.block.offered_hit_ratio()?),
    );
    t.add_figure(
        "rep_dhr",
        Percent,
        "measured document hit ratio: share of basic transactions that were hits",
        |s| Some(100.0 * s.block.hit_ratio()?),
    );
    t.add_figure("err_cnt", Count, "failed transactions", |s| Some(s.block.failed_count() as f64));
    t.add_figure("err_pct", Percent, "share of ended transactions that failed", |s| {
        Some(100.0 * s.block.error_ratio()?)
    });
    t.add_figure("req_bhr", Percent, "offered byte hit ratio", |s| {
        Some(100.0 * s.block.offered_byte_hit_ratio()?)
    });
    t.add_figure("rep_bhr", Percent, "measured byte hit ratio", |s| Some(100.0 * s.block.byte_hit_ratio()?));
    for (leaf, q) in PERCENTILES {
        let text = format!("{} % of the response times do not exceed it", q * 100.0);
        t.add_figure_of_bins(BinSet::RESPONSE_TIMES, &format!("resp_tm_{leaf}"), Ms, &text, move |s| {
            Some(s.rptm_us().quantile(q)? as f64 * 1e-3)
        });
    }
    t.add_figure("due_resp_tm_mean", Ms, "mean response time from the scheduled start", |s| {
        Some(s.block.due_rptm_us_summary().mean()? * 1e-3)
    });
    t.add_figure("rptm_mean:hit", Ms, "mean response time of hits", |s| {
        Some(s.block.class(Class::Hit).rptm_us.mean()? * 1e-3)
    });
    t.add_figure("rptm_mean:miss", Ms, "mean response time of all replies that were not hits", |s| {
        Some(s.over(NOT_HIT, |stats| &stats.rptm_us).mean()? * 1e-3)
    });
    t.add_figure("rep_sz_mean", Bytes, "mean reply size, header and body", |s| {
        s.block.sizes_summary().mean()
    });
    t.add_figure("conn_use_mean", Things, "mean number of transactions per closed connection", |s| {
        s.block.conn_uses.mean()
    });
    t.add_figure("conn_lvl_mean", Things, "mean number of open connections, weighted by time", |s| {
        s.block.conns.mean(s.seconds)
    });
}

/// The dotted names of the later extractors, and our own names of the same form.
pub(super) fn dotted(table: &mut FigureTable) {
    phases(table);
    load(table);
    hits(table);
    transactions::misses(table);
    transactions::classes(table);
    levels(table);
    transactions::exchange(table);
    tls::tls(table);
    detail::authentication(table);
    transactions::socks(table);
    transactions::kerberos(table);
    detail::latency(table);
    detail::choice(table);
    detail::servers(table);
    errors(table);
    transactions::verification(table);
    health(table);
    table.add_alias("log.count", "log_cnt");
}

/// The planned phases.
fn phases(t: &mut FigureTable) {
    use Unit::{Bytes, Count, Percent, Seconds};
    t.start_section("Phases");
    t.add_list("name", "names of the phases; names of consecutive phases are joined with |", &[], |s| {
        s.plan.iter().map(|plan| vec![plan.name.clone()]).collect()
    });
    t.add_figure(
        "primary",
        Count,
        "1 if the workload measures the phase, or one of the phases; otherwise 0",
        |s| Some(f64::from(s.plan.as_ref()?.primary)),
    );
    t.add_figure("goal.duration", Seconds, "planned duration", |s| s.plan.as_ref()?.duration_s);
    t.add_figure("goal.xactions", Count, "planned number of transactions", |s| {
        Some(s.plan.as_ref()?.xactions? as f64)
    });
    t.add_figure("goal.fill.size", Bytes, "planned fill of the cache", |s| {
        Some(s.plan.as_ref()?.fill_bytes? as f64)
    });
    t.add_figure("goal.errors.ratio", Percent, "share of failed transactions that ends the test", |s| {
        Some(100.0 * s.plan.as_ref()?.errors.filter(|&limit| limit < 1.0)?)
    });
    t.add_figure("goal.errors.count", Count, "number of failed transactions that ends the test", |s| {
        s.plan.as_ref()?.errors.filter(|&limit| limit >= 1.0)
    });
    t.add_figure(
        "duration",
        Seconds,
        "duration: that of the longest of concurrent processes, summed over phases",
        |s| Some(s.seconds),
    );
}

/// Requests and replies: rates, response times and sizes.
fn load(t: &mut FigureTable) {
    use Unit::{Bytes, Mbps, Ms, PerSecond};
    t.start_section("Load, response times and sizes");
    t.add_alias("baseline.req.rate", "req_rate");
    t.add_alias("baseline.rep.rate", "rep_rate");
    t.add_histogram_of(
        NeededBins::of_sums(BinSet::RESPONSE_TIMES),
        "baseline.rptm",
        "response time of all successful transactions: includes aborted ones, excludes \
    authentication steps (see rep.rptm)",
        Ms,
        1e-3,
        |s| Cow::Borrowed(s.rptm_us()),
    );
    let what = "response time from the scheduled start";
    t.add_histogram_of(
        NeededBins::of_sums(BinSet::DUE_RESPONSE_TIMES),
        "baseline.due_rptm",
        what,
        Ms,
        1e-3,
        |s| Cow::Borrowed(s.due_rptm_us()),
    );
    t.add_histogram("baseline.req.size", "request size of successful transactions", Bytes, 1.0, |s| {
        &s.block.req_size
    });
    t.add_histogram_of(
        NeededBins::of_sums(BinSet::SIZES),
        "baseline.rep.size",
        "reply size of all successful transactions: includes aborted ones, excludes \
    authentication steps (see rep.size)",
        Bytes,
        1.0,
        |s| Cow::Borrowed(s.sizes()),
    );
    detail::exchanges(t);
    t.add_time_and_size(
        "rep",
        "all replies: includes authentication steps, excludes aborted transactions (see baseline.rptm and baseline.rep.size)",
        |s| detail::with_steps(s, transactions::REPLIES, |stats| &stats.rptm_us),
        |s| detail::with_steps(s, transactions::REPLIES, |stats| &stats.size),
    );
    t.add_figure("req.bwidth", Mbps, "request traffic of successful transactions", |s| {
        s.rate(s.block.req_size.sum() * 8e-6)
    });
    t.add_figure("rep.bwidth", Mbps, "reply traffic of successful transactions", |s| {
        s.rate(s.block.ok_bytes() * 8e-6)
    });
    t.add_count("ok_xact.count", "successful transactions", |s| s.block.ok_count());
    t.add_figure("err_xact.rate", PerSecond, "failed transactions per second", |s| {
        s.rate(s.block.failed_count() as f64)
    });
    t.add_figure("ok_xact.rate", PerSecond, "successful transactions per second", |s| {
        s.rate(s.block.ok_count() as f64)
    });
    t.add_alias("err_xact.ratio", "err_pct");
    t.add_alias("err_xact.count", "err_cnt");
    t.add_count(
        "retr_xact.count",
        "transactions restarted because the peer closed a persistent connection while the request was being sent",
        |s| s.block.retried,
    );
    t.add_count(
        "launch.skipped.count",
        "launches by the clock that robots skipped because requests for embedded objects and redirects took their place",
        |s| s.block.skipped_launches,
    );
}

/// Hit ratios and the basic classes.
fn hits(t: &mut FigureTable) {
    use Unit::{Bytes, Percent};
    t.start_section("Hits and misses");
    t.add_classes("basic", "basic replies: hits and misses", &Class::BASIC);
    t.add_alias("offered.hit.ratio.obj", "req_dhr");
    t.add_alias("offered.hit.ratio.byte", "req_bhr");
    t.add_summary(
        "offered.hit.size",
        "reply size of basic transactions that a perfect cache would have answered",
        Bytes,
        |s| s.block.offered_hits,
    );
    t.add_summary(
        "offered.miss.size",
        "reply size of basic transactions that no cache could have answered",
        Bytes,
        |s| s.block.offered_misses,
    );
    t.add_alias("hit.ratio.obj", "rep_dhr");
    t.add_alias("hit.ratio.byte", "rep_bhr");
    t.add_classes("hit", "hits", HIT);
    t.add_classes("miss", "replies that are not hits", NOT_HIT);
    t.add_figure(
        "cachable.ratio.obj",
        Percent,
        "share of basic replies that are hits or cachable misses",
        |s| percent(s.block.count_of(CACHABLE) as f64, s.block.count_of(&Class::BASIC) as f64),
    );
    t.add_figure(
        "cachable.ratio.byte",
        Percent,
        "share of basic reply bytes that belong to hits or cachable misses",
        |s| percent(s.block.bytes_of(CACHABLE), s.block.bytes_of(&Class::BASIC)),
    );
    t.add_classes("cachable", "hits and cachable misses", CACHABLE);
    t.add_classes("uncachable", "uncachable replies", UNCACHABLE);
    t.add_classes("fill", "cachable misses", FILL);
    for (prefix, what, classes) in [
        ("hit", "hits", HIT),
        ("miss", "replies that are not hits", NOT_HIT),
        ("fill", "cachable misses", FILL),
    ] {
        t.add_due_response_time(prefix, what, classes);
    }
}

/// Numbers of concurrent transactions and connections.
fn levels(t: &mut FigureTable) {
    use Unit::{Count, Ms, Things};
    t.start_section("Concurrency and connections");
    t.add_level("xact", "transactions", |block| &block.xacts);
    t.add_level("baseline", "transactions", |block| &block.xacts);
    t.add_level("populus", "active robots or servers", |block| &block.populus);
    t.add_level("wait", "transactions that wait for a connection", |block| &block.waiting);
    t.add_level("conn.open", "open connections", |block| &block.conns);
    t.add_level("conn.estb", "established connections", |block| &block.established);
    t.add_level("conn.idle", "connections without a transaction", |block| &block.idle);
    let what = "time until new connections took their first request, with SOCKS, CONNECT and TLS (without HTTP/2 that is not over TLS)";
    t.add_histogram("conn.setup", what, Ms, 1e-3, |s| &s.block.conn_setup_us);
    t.add_figure("conn.setup.slow.count", Count, "new connections that took about a second or longer", |s| {
        Some(s.block.slow_setups as f64)
    });
    t.add_histogram("conn.ttl", "lifetime of closed connections", Ms, 1e-3, |s| &s.block.conn_ttl_us);
    t.add_histogram("conn.use", "transactions per closed connection", Things, 1.0, |s| &s.block.conn_uses);
}

/// Errors by class.
fn errors(t: &mut FigureTable) {
    t.start_section("Errors");
    t.add_count("errors.count", "errors, including those that were only noted", |s| {
        s.block.failed_count() + s.block.noted_count()
    });
    t.add_count("errors.noted.count", "errors of transactions that succeeded nevertheless", |s| {
        s.block.noted_count()
    });
    t.add_list("errors.tbl", "errors by class, the most frequent first", &["count", "%", "error"], |s| {
        let all = (s.block.failed_count() + s.block.noted_count()) as f64;
        let mut kinds: Vec<_> = ErrorKind::all().filter(|&kind| s.block.errors[kind] > 0).collect();
        kinds.sort_by_key(|&kind| std::cmp::Reverse(s.block.errors[kind]));
        let row = |kind: ErrorKind| {
            let count = error_count(&s.block, kind);
            let text = format!("\"({}) {}\"", kind.number(), kind.text());
            vec![count.to_string(), format!("{:.2}", 100.0 * count / all), text]
        };
        kinds.into_iter().map(row).collect()
    });
    for kind in ErrorKind::all() {
        let text = format!("errors {}: {}", kind.number(), kind.text());
        t.add_figure(&format!("errors.{}.count", kind.name()), Unit::Count, &text, move |s| {
            Some(error_count(&s.block, kind))
        });
    }
}

/// How well the load generator worked.
fn health(t: &mut FigureTable) {
    use Unit::{Bytes, Ms, Percent, Us};
    t.start_section("Health of the bench");
    t.add_histogram_of(
        NeededBins::of_sums(BinSet::LATENESS),
        "late",
        "lateness of starts (clients) or of the ends of think times (servers): actual minus scheduled time",
        Ms,
        1e-3,
        |s| Cow::Borrowed(&s.block.late_us),
    );
    t.add_figure(
        "cpu.busiest.share",
        Percent,
        "share of the time that the busiest event loop was working",
        |s| Some(100.0 * s.busiest_share?),
    );
    t.add_figure(
        "cpu.throttled.share",
        Percent,
        "share of the time for which a quota of processor time (control groups) stopped the event loops; of several processes, the \
         largest share",
        |s| (s.seconds > 0.0).then(|| 100.0 * s.throttled_seconds / s.seconds),
    );
    t.add_figure("cpu.xact.time", Us, "processor time of the event loops per ended transaction", |s| {
        ratio(s.cpu_seconds * 1e6, s.ended_count() as f64)
    });
    t.add_figure(
        "rss.size",
        Bytes,
        "resident memory: largest value of each process, summed over processes",
        |s| (s.rss_bytes > 0).then_some(s.rss_bytes as f64),
    );
    t.add_figure("clock.step", Ms, "largest step of the time-of-day clock in an interval", |s| {
        Some(s.clock_step_ns as f64 * 1e-6)
    });
}
