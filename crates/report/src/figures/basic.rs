//! The names of generation 1.x, and the order of the later ones.

use polygraph_stats::{Class, ErrorKind};

use super::table::{PERCENTILES, Table};
use super::{Unit, detail, error_count, percent, ratio, wire};

const HIT: &[Class] = &[Class::Hit];
const NOT_HIT: &[Class] = &[Class::Miss, Class::Uncachable];
const FILL: &[Class] = &[Class::Miss];
const UNCACHABLE: &[Class] = &[Class::Uncachable];
const CACHABLE: &[Class] = &[Class::Hit, Class::Miss];

/// The names of the 1.x extractor.
pub(super) fn classic(table: &mut Table) {
    use Unit::{Bytes, Count, Ms, PerSecond, Percent, Things};
    let t = table;
    t.section("Names of generation 1.x");
    t.one("log_cnt", Count, "number of logs", |s| Some(s.logs as f64));
    t.one("req_rate", PerSecond, "offered rate: transactions started per second", |s| {
        s.rate(s.block.xacts.entered as f64)
    });
    t.one("rep_rate", PerSecond, "measured rate: transactions ended per second, failed ones included", |s| {
        s.rate(s.block.xacts.left as f64)
    });
    t.one("resp_tm_mean", Ms, "mean response time, from the actual start to the last byte", |s| {
        Some(s.all.rptm_us.mean()? * 1e-3)
    });
    t.one("conn_ttl_mean", Ms, "mean lifetime of closed connections", |s| {
        Some(s.block.conn_ttl_us.mean()? * 1e-3)
    });
    t.one("req_dhr", Percent, "offered document hit ratio: share of repeats of cachable objects", |s| {
        Some(100.0 * s.block.offered_hit_ratio()?)
    });
    t.one(
        "rep_dhr",
        Percent,
        "measured document hit ratio: share of replies that did not come first hand",
        |s| Some(100.0 * s.block.hit_ratio()?),
    );
    t.one("err_cnt", Count, "failed transactions", |s| Some(s.block.failed_count() as f64));
    t.one("err_pct", Percent, "failed transactions among all that ended", |s| {
        Some(100.0 * s.block.error_ratio()?)
    });
    t.one("req_bhr", Percent, "offered byte hit ratio", |s| Some(100.0 * s.block.offered_byte_hit_ratio()?));
    t.one("rep_bhr", Percent, "measured byte hit ratio", |s| Some(100.0 * s.block.byte_hit_ratio()?));
    for (leaf, q) in PERCENTILES {
        let text = format!("{} % of the response times do not exceed it", q * 100.0);
        t.one(&format!("resp_tm_{leaf}"), Ms, &text, move |s| Some(s.all.rptm_us.quantile(q)? as f64 * 1e-3));
    }
    t.one("due_resp_tm_mean", Ms, "mean response time from the moment the request was due", |s| {
        Some(s.all.due_rptm_us.mean()? * 1e-3)
    });
    t.one("rptm_mean:hit", Ms, "mean response time of hits", |s| {
        Some(s.block.class(Class::Hit).rptm_us.mean()? * 1e-3)
    });
    t.one("rptm_mean:miss", Ms, "mean response time of all that were no hits", |s| {
        Some(s.over(NOT_HIT, |stats| &stats.rptm_us).mean()? * 1e-3)
    });
    t.one("rep_sz_mean", Bytes, "mean reply size, head and body", |s| s.all.size.mean());
    t.one("conn_use_mean", Things, "mean number of transactions of closed connections", |s| {
        s.block.conn_uses.mean()
    });
    t.one("conn_lvl_mean", Things, "mean number of open connections, weighted by time", |s| {
        s.block.conns.mean(s.seconds)
    });
}

/// The dotted names of the later extractors, and ours in their manner.
pub(super) fn dotted(table: &mut Table) {
    phases(table);
    load(table);
    hits(table);
    wire::misses(table);
    wire::classes(table);
    levels(table);
    wire::exchange(table);
    detail::authentication(table);
    detail::latency(table);
    detail::choice(table);
    errors(table);
    wire::verification(table);
    health(table);
    table.alias("log.count", "log_cnt");
}

/// What was planned.
fn phases(t: &mut Table) {
    use Unit::{Bytes, Count, Percent, Seconds};
    t.section("Phases");
    t.list("name", "names of the phases; those that follow each other are joined with |", &[], |s| {
        s.plan.iter().map(|plan| vec![plan.name.clone()]).collect()
    });
    t.one("primary", Count, "1 if the workload measures the phase, or one of the phases; else 0", |s| {
        Some(f64::from(s.plan.as_ref()?.primary))
    });
    t.one("goal.duration", Seconds, "planned duration", |s| s.plan.as_ref()?.duration_s);
    t.one("goal.xactions", Count, "planned number of transactions", |s| {
        Some(s.plan.as_ref()?.xactions? as f64)
    });
    t.one("goal.fill.size", Bytes, "planned fill of the cache", |s| {
        Some(s.plan.as_ref()?.fill_bytes? as f64)
    });
    t.one("goal.errors.ratio", Percent, "share of failed transactions that ends the test", |s| {
        Some(100.0 * s.plan.as_ref()?.errors.filter(|&limit| limit < 1.0)?)
    });
    t.one("goal.errors.count", Count, "number of failed transactions that ends the test", |s| {
        s.plan.as_ref()?.errors.filter(|&limit| limit >= 1.0)
    });
    t.one("duration", Seconds, "duration: the longest of concurrent processes, the sum of phases", |s| {
        Some(s.seconds)
    });
}

/// What was asked for and what came.
fn load(t: &mut Table) {
    use Unit::{Bytes, Mbps, Ms, PerSecond};
    t.section("Load, response times and sizes");
    t.alias("baseline.req.rate", "req_rate");
    t.alias("baseline.rep.rate", "rep_rate");
    t.hist("baseline.rptm", "response time of all transactions", Ms, 1e-3, |s| s.all.rptm_us.clone());
    t.hist("baseline.due_rptm", "response time from the due start", Ms, 1e-3, |s| s.all.due_rptm_us.clone());
    t.hist("baseline.req.size", "request size of good transactions", Bytes, 1.0, |s| {
        s.block.req_size.clone()
    });
    t.hist("baseline.rep.size", "reply size of all transactions", Bytes, 1.0, |s| s.all.size.clone());
    detail::exchanges(t);
    t.timed(
        "rep",
        "all replies, steps of authentications included, without aborted ones",
        |s| detail::with_steps(s, wire::REPLIES, |stats| &stats.rptm_us),
        |s| detail::with_steps(s, wire::REPLIES, |stats| &stats.size),
    );
    t.one("req.bwidth", Mbps, "request bytes of good transactions per second", |s| {
        s.rate(s.block.req_size.sum() * 8e-6)
    });
    t.one("rep.bwidth", Mbps, "reply bytes of good transactions per second", |s| {
        s.rate(s.block.ok_bytes() * 8e-6)
    });
    t.count("ok_xact.count", "transactions that ended well", |s| s.block.ok_count());
    t.one("err_xact.rate", PerSecond, "failed transactions per second", |s| {
        s.rate(s.block.failed_count() as f64)
    });
    t.one("ok_xact.rate", PerSecond, "transactions that ended well per second: good replies", |s| {
        s.rate(s.block.ok_count() as f64)
    });
    t.alias("err_xact.ratio", "err_pct");
    t.alias("err_xact.count", "err_cnt");
    t.count("retr_xact.count", "transactions begun again after a persistent-connection race", |s| {
        s.block.retried
    });
}

/// Hit ratios and the basic classes.
fn hits(t: &mut Table) {
    use Unit::{Bytes, Percent};
    t.section("Hits and misses");
    t.class("basic", "basic replies: hits and misses", &Class::BASIC);
    t.alias("offered.hit.ratio.obj", "req_dhr");
    t.alias("offered.hit.ratio.byte", "req_bhr");
    t.moments(
        "offered.hit.size",
        "reply size of basic transactions that a perfect cache would have answered",
        Bytes,
        |s| s.block.offered_hits,
    );
    t.moments(
        "offered.miss.size",
        "reply size of basic transactions that no cache could have answered",
        Bytes,
        |s| s.block.offered_misses,
    );
    t.alias("hit.ratio.obj", "rep_dhr");
    t.alias("hit.ratio.byte", "rep_bhr");
    t.class("hit", "hits", HIT);
    t.class("miss", "replies that are no hits", NOT_HIT);
    t.one("cachable.ratio.obj", Percent, "share of basic replies that are hits or cachable misses", |s| {
        percent(s.block.count_of(CACHABLE) as f64, s.block.count_of(&Class::BASIC) as f64)
    });
    t.one(
        "cachable.ratio.byte",
        Percent,
        "share of basic reply bytes that are hits or cachable misses",
        |s| percent(s.block.bytes_of(CACHABLE), s.block.bytes_of(&Class::BASIC)),
    );
    t.class("cachable", "hits and cachable misses", CACHABLE);
    t.class("uncachable", "uncachable replies", UNCACHABLE);
    t.class("fill", "cachable misses", FILL);
    for (prefix, what, classes) in [
        ("hit", "hits", HIT),
        ("miss", "replies that are no hits", NOT_HIT),
        ("fill", "cachable misses", FILL),
    ] {
        t.due(prefix, what, classes);
    }
}

/// What there was at a time.
fn levels(t: &mut Table) {
    use Unit::{Ms, Things};
    t.section("Concurrency and connections");
    t.level("xact", "transactions", |block| &block.xacts);
    t.level("baseline", "transactions", |block| &block.xacts);
    t.level("populus", "living robots or servers", |block| &block.populus);
    t.level("wait", "transactions that wait for a connection", |block| &block.waiting);
    t.level("conn.open", "open connections", |block| &block.conns);
    t.level("conn.estb", "established connections", |block| &block.established);
    t.level("conn.idle", "connections without a transaction", |block| &block.idle);
    t.hist("conn.ttl", "lifetime of closed connections", Ms, 1e-3, |s| s.block.conn_ttl_us.clone());
    t.hist("conn.use", "transactions of closed connections", Things, 1.0, |s| s.block.conn_uses.clone());
}

/// Errors by class.
fn errors(t: &mut Table) {
    t.section("Errors");
    t.count("errors.count", "errors, those that were only noted included", |s| {
        s.block.failed_count() + s.block.noted_count()
    });
    t.count("errors.noted.count", "errors of transactions that ended well nevertheless", |s| {
        s.block.noted_count()
    });
    t.list("errors.tbl", "errors by class, the most frequent first", &["count", "%", "error"], |s| {
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
        t.one(&format!("errors.{}.count", kind.name()), Unit::Count, &text, move |s| {
            Some(error_count(&s.block, kind))
        });
    }
}

/// How the program itself did.
fn health(t: &mut Table) {
    use Unit::{Bytes, Ms, Percent, Us};
    t.section("Health of the bench");
    t.hist(
        "late",
        "lateness: of starts (clients), of the ends of think times (servers), actual minus due",
        Ms,
        1e-3,
        |s| s.block.late_us.clone(),
    );
    t.one("cpu.busiest.share", Percent, "share of the time that the busiest event loop was at work", |s| {
        Some(100.0 * s.busiest_share?)
    });
    t.one("cpu.xact.time", Us, "processor time of the event loops per ended transaction", |s| {
        ratio(s.cpu_seconds * 1e6, s.ended_count() as f64)
    });
    t.one("rss.size", Bytes, "resident memory, largest of each process, sum over processes", |s| {
        (s.rss_bytes > 0).then_some(s.rss_bytes as f64)
    });
    t.one("clock.step", Ms, "largest step of the time-of-day clock in an interval", |s| {
        Some(s.clock_step_ns as f64 * 1e-6)
    });
}
