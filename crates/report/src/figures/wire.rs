//! Figures of what happens on the wire beside plain requests: classes of requests, pages, cookies, connections,
//! look-ups, verification.

use polygraph_stats::{Class, ClassStats, CloseKind, KindStats, MissCause, Tally};

use super::{Figure, Table, Unit, percent, ratio};
use crate::correctness;
use crate::scope::Scope;

/// All replies: everything but aborted ones.
pub(super) const REPLIES: &[Class] = &[
    Class::Hit,
    Class::Miss,
    Class::Uncachable,
    Class::Authenticating,
    Class::RepToRedir,
    Class::RedirectedReq,
    Class::Ims200,
    Class::Ims304,
    Class::Reload,
    Class::Range,
    Class::Head,
    Class::Post,
    Class::Put,
];

/// The classes that are no part of hit ratios, with their names and texts.
pub(crate) const SPECIAL: [(&str, &str, &[Class]); 12] = [
    ("redired_req", "redirected requests", &[Class::RedirectedReq]),
    ("rep_to_redir", "replies that redirect", &[Class::RepToRedir]),
    ("ims", "conditional requests", &[Class::Ims200, Class::Ims304]),
    ("ims.sc200", "conditional requests answered with the object", &[Class::Ims200]),
    ("ims.sc304", "conditional requests answered with 304", &[Class::Ims304]),
    ("reload", "reloads", &[Class::Reload]),
    ("range", "requests for ranges", &[Class::Range]),
    ("head", "HEAD requests", &[Class::Head]),
    ("post", "POST requests", &[Class::Post]),
    ("put", "PUT requests", &[Class::Put]),
    ("abort", "transactions aborted on purpose", &[Class::Abort]),
    ("auth.ing", "unsuccessful steps of authentication", &[Class::Authenticating]),
];

/// Basic requests and the other classes.
pub(super) fn classes(t: &mut Table) {
    t.class("basic", "basic replies: hits and misses", &Class::BASIC);
    for (name, what, classes) in SPECIAL {
        t.class(name, what, classes);
    }
    t.pair("embedded", "transactions for parts of pages", |s| s.block.embedded);
    t.pair("direct", "transactions asked for directly", |s| Tally {
        count: s.block.ok_count() - s.block.embedded.count.min(s.block.ok_count()),
        bytes: (s.block.ok_bytes() as u64).saturating_sub(s.block.embedded.bytes),
    });
    t.hist("page.rptm", "time of complete pages", Unit::Ms, 1e-3, |s| s.block.pages.rptm_us.clone());
    t.hist("page.size", "size of complete pages, all replies", Unit::Bytes, 1.0, |s| {
        s.block.pages.size.clone()
    });
    t.hist("page.parts", "replies per complete page", Unit::Things, 1.0, |s| s.block.pages.parts.clone());
    for (name, what, pick) in VALIDATIONS {
        t.hist(&format!("{name}.rptm"), &format!("response time of {what}"), Unit::Ms, 1e-3, move |s| {
            pick(s).rptm_us
        });
        t.hist(&format!("{name}.size"), &format!("reply size of {what}"), Unit::Bytes, 1.0, move |s| {
            pick(s).size
        });
    }
}

type PickClass = fn(&Scope) -> ClassStats;

const VALIDATIONS: [(&str, &str, PickClass); 3] = [
    ("proxy_validations", "validations made by the device, seen by servers", |s| {
        let mut all = s.block.validations.useful.clone();
        all.merge(&s.block.validations.useless);
        all
    }),
    ("proxy_validation.useful", "validations by the device that brought the object (200)", |s| {
        s.block.validations.useful.clone()
    }),
    ("proxy_validation.useless", "validations by the device that confirmed its copy (304)", |s| {
        s.block.validations.useless.clone()
    }),
];

/// Why offered hits were missed, and hits that were not offered.
pub(super) fn misses(t: &mut Table) {
    use Unit::Ms;
    t.pair("offered.miss", "basic transactions that no cache could have answered", |s| Tally {
        count: s.block.count_of(&Class::BASIC)
            - s.block.offered_hits.count.min(s.block.count_of(&Class::BASIC)),
        bytes: (s.block.bytes_of(&Class::BASIC) as u64).saturating_sub(s.block.offered_hits.bytes),
    });
    t.pair("false_hit", "hits that were not offered", |s| s.block.false_hits);
    t.pair("missed", "offered hits that were misses, with a known cause", |s| s.block.missed_total());
    for cause in MissCause::ALL {
        let what = format!("offered hits that were misses because {}", cause.text());
        t.pair(&format!("missed.{}", cause.name()), &what, move |s| s.block.missed[cause as usize]);
    }
    t.hist("hit.age", "time since the last transfer of the object of a hit", Ms, 1.0, |s| {
        s.block.hit_age_ms.clone()
    });
    t.hist("missed.age", "time since the last transfer of an object that was not kept", Ms, 1.0, |s| {
        s.block.miss_age_ms.clone()
    });
    t.one(
        "url.unique.count",
        Unit::Count,
        "good transactions for objects that nobody had asked for before",
        |s| Some(s.block.unique as f64),
    );
    t.one("url.recurrence.ratio", Unit::Percent, "share of ended transactions that were repeats", |s| {
        let ended = s.ended_count() as f64;
        percent(ended - s.block.unique as f64, ended)
    });
}

/// Connections, look-ups, cookies, 100 (continue).
pub(super) fn exchange(t: &mut Table) {
    use Unit::{Bytes, Count, Mbps, Ms, Percent, Things};
    t.hist("baseline.req.size", "request size of good transactions", Bytes, 1.0, |s| {
        s.block.req_size.clone()
    });
    t.one("req.bwidth", Mbps, "request bytes of good transactions per second", |s| {
        s.rate(s.block.req_size.sum() * 8e-6)
    });
    t.level("wait", "wait", "transactions that wait for a connection", |block| &block.waiting);
    t.one("conn.reused.count", Count, "transactions begun on a connection that had been used before", |s| {
        Some(s.block.reused as f64)
    });
    t.hist("conn.pipeline.depth", "depth of pipelined connections", Things, 1.0, |s| {
        s.block.pipeline_depth.clone()
    });
    for kind in CloseKind::ALL {
        let (name, text) = (kind.name(), kind.text());
        let mut one =
            |leaf: &str, unit, what: &str, compute: fn(&polygraph_stats::counts::Closes) -> Option<f64>| {
                let text = format!("{what} connections closed {text}");
                t.one(&format!("conn_close.{name}.{leaf}"), unit, &text, move |s| {
                    compute(&s.block.closes[kind as usize])
                });
            };
        one("count", Count, "number of", |closes| Some(closes.count as f64));
        one("use.mean", Things, "mean number of transactions of", |c| ratio(c.uses as f64, c.count as f64));
        one("ttl.mean", Ms, "mean lifetime of", |c| ratio(c.ttl_us as f64 * 1e-3, c.count as f64));
    }
    t.hist("100_continue", "time until 100 (continue) came", Ms, 1e-3, |s| s.block.continue_us.clone());
    t.one("dns.lookup.count", Count, "names that were looked up", |s| Some(s.block.dns.lookups as f64));
    t.one("dns.cache.hit.count", Count, "look-ups answered from the robots' own cache", |s| {
        Some(s.block.dns.cache_hits as f64)
    });
    t.one("dns.cache.hit.ratio", Percent, "share of look-ups answered from the robots' own cache", |s| {
        percent(s.block.dns.cache_hits as f64, s.block.dns.lookups as f64)
    });
    t.hist("dns.rptm", "response time of name servers", Ms, 1e-3, |s| s.block.dns.rptm_us.clone());
    t.hist("cookies.sent", "cookies per request that carried any", Things, 1.0, |s| {
        s.block.cookies.sent.clone()
    });
    t.hist("cookies.recv", "cookies per reply that carried any", Things, 1.0, |s| {
        s.block.cookies.received.clone()
    });
    t.one("cookies.purged.fresh", Count, "cookies dropped to make room", |s| {
        Some(s.block.cookies.purged_fresh as f64)
    });
    t.one("cookies.purged.stale", Count, "cookies dropped because they had expired", |s| {
        Some(s.block.cookies.purged_stale as f64)
    });
    t.one("cookies.updated", Count, "cookies replaced by one of the same name", |s| {
        Some(s.block.cookies.updated as f64)
    });
}

/// What was verified, and what was wrong.
pub(super) fn verification(t: &mut Table) {
    use Unit::{Bytes, Count, Percent};
    t.one("verified.count", Count, "replies that were checked to be the object's", |s| {
        Some(s.block.verified.replies as f64)
    });
    t.one("verified.size.sum", Bytes, "body bytes that were compared with those of the object", |s| {
        Some(s.block.verified.bytes as f64)
    });
    t.one("verified.digest.count", Count, "bodies whose digest was checked", |s| {
        Some(s.block.verified.digests as f64)
    });
    t.one(
        "errors.correctness.count",
        Count,
        "wrong replies: wrong content or against the rules of caching",
        |s| Some(s.block.errors.sum(correctness::concerns) as f64),
    );
    t.one("errors.correctness.ratio", Percent, "wrong replies among all ended transactions", |s| {
        percent(s.block.errors.sum(correctness::concerns) as f64, s.ended_count() as f64)
    });
}

/// The figures of kinds of content, whose names come from the logs.
pub fn of_contents(names: &[String]) -> Vec<Figure> {
    let mut t = Table::default();
    for (number, name) in names.iter().enumerate() {
        contents(&mut t, number, name);
    }
    t.0
}

fn contents(t: &mut Table, number: usize, name: &str) {
    use Unit::{Bytes, Count, Ms, Percent};
    let mut one = |leaf: &str, unit, what: &str, compute: fn(&KindStats) -> Option<f64>| {
        let text = format!("{what}, content {name}");
        t.one(&format!("cont_type.{name}.{leaf}"), unit, &text, move |s| compute(s.block.kinds.get(number)?));
    };
    one("rptm.mean", Ms, "mean response time", |k| ratio(k.rptm_us as f64 * 1e-3, k.all.count as f64));
    one("size.count", Count, "good transactions", |k| Some(k.all.count as f64));
    one("size.mean", Bytes, "mean reply size", |k| ratio(k.all.bytes as f64, k.all.count as f64));
    one("size.sum", Bytes, "reply bytes", |k| Some(k.all.bytes as f64));
    one("offered.hit.ratio.obj", Percent, "offered document hit ratio", |k| {
        percent(k.offered_hits.count as f64, k.basic.count as f64)
    });
    one("offered.hit.ratio.byte", Percent, "offered byte hit ratio", |k| {
        percent(k.offered_hits.bytes as f64, k.basic.bytes as f64)
    });
    one("hit.ratio.obj", Percent, "measured document hit ratio", |k| {
        percent(k.hits.count as f64, k.basic.count as f64)
    });
    one("hit.ratio.byte", Percent, "measured byte hit ratio", |k| {
        percent(k.hits.bytes as f64, k.basic.bytes as f64)
    });
}
