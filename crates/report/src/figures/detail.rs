//! Breakdowns: exchanges of a transaction, authentication, times at which bytes were sent and received, choice of objects and
//! ranges.

use std::borrow::Cow;

use polygraph_stats::{AuthScheme, Class, ClassStats, CoarseHistogram, Histogram};

use super::Unit;
use super::table::{FigureTable, NeededBins};
use crate::scope::Scope;
use crate::spread::{SHARES, ServerShare, Spread};

/// A histogram over some classes and all authentication steps.
pub(super) fn with_steps<'s>(
    scope: &'s Scope,
    classes: &[Class],
    pick: fn(&ClassStats) -> &Histogram,
) -> Cow<'s, Histogram> {
    let mut all = scope.over(classes, pick);
    let steps = scope.block.auth_steps.iter().map(pick).filter(|steps| steps.count() > 0);
    steps.for_each(|steps| all.to_mut().merge(steps));
    all
}

/// Exchanges of a transaction, and transactions by their number.
pub(super) fn exchanges(t: &mut FigureTable) {
    let what = "exchanges per transaction: more than one if it answered challenges";
    t.add_histogram_of(NeededBins::OF_COMPUTED, "baseline.exchanges", what, Unit::Things, 1.0, |s| {
        let mut all = over_compounds(s, |compound| &compound.exchanges);
        let single = s.block.ok_count().saturating_sub(all.count());
        all.record_n(1, single);
        Cow::Owned(all)
    });
    for scheme in AuthScheme::ALL {
        let name = format!("compound.auth.{}", scheme.name());
        let what = format!("transactions that answered challenges of scheme {}", scheme.name());
        let at = scheme as usize;
        t.add_histogram(
            &format!("{name}.rptm"),
            &format!("response time of {what}"),
            Unit::Ms,
            1e-3,
            move |s| &s.block.compounds[at].rptm_us,
        );
        let text = format!("bytes of all requests of {what}");
        t.add_histogram(&format!("{name}.req.size"), &text, Unit::Bytes, 1.0, move |s| {
            &s.block.compounds[at].request_size
        });
        let text = format!("bytes of the last reply to {what}");
        t.add_histogram(&format!("{name}.rep.size"), &text, Unit::Bytes, 1.0, move |s| {
            &s.block.compounds[at].size
        });
        let text = format!("exchanges per transaction, for {what}");
        t.add_histogram(&format!("{name}.exchanges"), &text, Unit::Things, 1.0, move |s| {
            &s.block.compounds[at].exchanges
        });
    }
    let what = "transactions with a single exchange";
    t.add_histogram_of(
        NeededBins::OF_COMPUTED,
        "compound.not.rptm",
        &format!("response time of {what}"),
        Unit::Ms,
        1e-3,
        |s| Cow::Owned(s.rptm_us().without(&over_compounds(s, |compound| &compound.rptm_us))),
    );
    t.add_histogram_of(
        NeededBins::OF_COMPUTED,
        "compound.not.req.size",
        &format!("request size of {what}"),
        Unit::Bytes,
        1.0,
        |s| Cow::Owned(s.block.req_size.without(&over_compounds(s, |compound| &compound.request_size))),
    );
    t.add_histogram_of(
        NeededBins::OF_COMPUTED,
        "compound.not.rep.size",
        &format!("reply size of {what}"),
        Unit::Bytes,
        1.0,
        |s| Cow::Owned(s.sizes().without(&over_compounds(s, |compound| &compound.size))),
    );
}

fn over_compounds(
    scope: &Scope,
    pick: fn(&polygraph_stats::counts::CompoundStats) -> &Histogram,
) -> Histogram {
    let mut all = Histogram::new();
    scope.block.compounds.iter().for_each(|compound| all.merge(pick(compound)));
    all
}

/// Which robots were given access, by scheme.
pub(super) fn authentication(t: &mut FigureTable) {
    t.start_section("Authentication");
    let what = "unsuccessful authentication steps: challenges, and refusals of intentionally wrong passwords";
    t.add_time_and_size(
        "auth.ing",
        what,
        |s| with_steps(s, &[Class::Authenticating], |c| &c.rptm_us),
        |s| with_steps(s, &[Class::Authenticating], |c| &c.size),
    );
    for scheme in AuthScheme::ALL {
        let what = format!("challenges of scheme {} that were answered", scheme.name());
        t.add_class_stats(&format!("auth.ing.{}", scheme.name()), &what, move |s| {
            s.block.auth_steps[scheme as usize].clone()
        });
    }
    t.add_class_stats("auth.ed", "transactions that sent credentials and were granted access", authenticated);
    for scheme in AuthScheme::ALL {
        let what =
            format!("transactions that sent credentials of scheme {} and were granted access", scheme.name());
        t.add_class_stats(&format!("auth.ed.{}", scheme.name()), &what, move |s| {
            s.block.authenticated[scheme as usize].clone()
        });
    }
    t.add_class_stats("auth.none", "transactions without authentication", |s| {
        s.all().without(&authenticated(s)).without(s.block.class(Class::Authenticating))
    });
    t.add_figure(
        "authenticating.rep.rate",
        Unit::PerSecond,
        "unsuccessful authentication steps per second",
        |s| s.rate(with_steps(s, &[Class::Authenticating], |c| &c.size).count() as f64),
    );
    t.add_distribution_alias("authenticating.rep.rptm", "auth.ing.rptm");
    t.add_distribution_alias("authenticating.rep.size", "auth.ing.size");
}

fn authenticated(scope: &Scope) -> ClassStats {
    let mut all = ClassStats::default();
    scope.block.authenticated.iter().for_each(|stats| all.merge(stats));
    all
}

/// How requests were spread over servers.
pub(super) fn servers(t: &mut FigureTable) {
    t.start_section("Requests by server");
    let columns =
        &["server", "requests", "%", "replies", "rptm mean, ms", "rptm p95, ms", "failed", "unmarked"];
    let what = "servers: requests of robots by server, and the requests without X-Xact that a device makes by itself";
    t.add_list("servers.tbl", what, columns, |s| {
        let figure = |value: Option<f64>| value.map_or("-1".to_owned(), |value| format!("{value:.2}"));
        let row = |server: &ServerShare| {
            let stats = &server.stats;
            let times = &stats.rptm_us;
            vec![
                server.address.clone(),
                stats.requests.to_string(),
                figure(server.percent),
                times.count().to_string(),
                figure(times.mean().map(|us| us * 1e-3)),
                figure(times.quantile(0.95).map(|us| us as f64 * 1e-3)),
                stats.failed.to_string(),
                stats.unmarked.to_string(),
            ]
        };
        Spread::of(s).servers.iter().map(row).collect()
    });
    let definitions = ["the smallest share of a server in the requests of robots", "the largest share"];
    for (name, definition) in SHARES.into_iter().zip(definitions) {
        let definition = format!("servers: {definition}; without servers with bad certificates");
        t.add_figure(name, Unit::Percent, &definition, move |s| Spread::of(s).share_named(name));
    }
}

type PickCoarse = fn(&Scope) -> &CoarseHistogram;

const LATENCY: [(&str, &str, PickCoarse); 4] = [
    ("last_req_byte_written", "clients: until the request header was written to the socket", |s| {
        &s.block.latency.last_request_byte_written_us
    }),
    ("first_resp_byte_read", "clients: until the first bytes of the reply arrived", |s| {
        &s.block.latency.first_reply_byte_read_us
    }),
    ("last_req_byte_read", "servers: from the first byte of the request to its last", |s| {
        &s.block.latency.last_request_byte_read_us
    }),
    (
        "first_resp_byte_written",
        "servers: until the first bytes of the reply were written to the socket",
        |s| &s.block.latency.first_reply_byte_written_us,
    ),
];

/// When bytes were sent and received, and how many at a time.
pub(super) fn latency(t: &mut FigureTable) {
    t.start_section("Reads and writes");
    for (name, what, pick) in LATENCY {
        let text = format!("time since the start of basic transactions; {what}");
        t.add_histogram(name, &text, Unit::Ms, 1e-3, pick);
    }
    t.add_histogram("so_read.size", "bytes per read from a socket", Unit::Bytes, 1.0, |s| &s.block.reads);
    t.add_histogram("so_write.size", "bytes per write to a socket", Unit::Bytes, 1.0, |s| &s.block.writes);
}

/// How robots chose objects and ranges, and replies in their custom scope.
pub(super) fn choice(t: &mut FigureTable) {
    use Unit::{Bytes, Things};
    t.start_section("Choice of objects and ranges");
    t.add_count(
        "oid_gen.categories.count",
        "objects chosen for requests that do not follow from a page or a redirect",
        |s| {
            let made = &s.block.oid_gen;
            made.new + made.repeat + made.new_foreign + made.repeat_foreign
        },
    );
    t.add_count("oid_gen.need.new_pub.count", "requests drawn to be for a new object", |s| {
        s.block.oid_gen.need_new
    });
    t.add_count("oid_gen.need.rep_pub.count", "requests drawn to repeat an object", |s| {
        s.block.oid_gen.need_repeat
    });
    t.add_count(
        "oid_gen.lack.rep_pub.count",
        "requests drawn to repeat an object when no object could be repeated yet",
        |s| s.block.oid_gen.lack_repeat,
    );
    t.add_count("oid_gen.gen.new_pub.count", "requests for a new object", |s| s.block.oid_gen.new);
    t.add_count("oid_gen.gen.rep_pub.count", "requests that repeated an object", |s| s.block.oid_gen.repeat);
    t.add_count("oid_gen.new_foreign.count", "requests for a new foreign URL", |s| {
        s.block.oid_gen.new_foreign
    });
    t.add_count("oid_gen.rep_foreign.count", "requests that repeated a foreign URL", |s| {
        s.block.oid_gen.repeat_foreign
    });
    t.add_histogram(
        "url.ordinal",
        "ordinal number of a request among the requests for the same object: 1, 2, 3 and so on",
        Things,
        1.0,
        |s| &s.block.ordinals,
    );
    t.add_summary("range_gen.spec_size", "bytes of a requested range", Bytes, |s| {
        s.block.range_gen.spec_size
    });
    t.add_summary("range_gen.set_size", "bytes of all ranges in a request", Bytes, |s| {
        s.block.range_gen.set_size
    });
    t.add_summary("range_gen.specs_per_set", "ranges per request", Things, |s| {
        s.block.range_gen.specs_per_set
    });
    t.add_count(
        "range_gen.first_last_swap",
        "ranges that became one byte long because their last byte would have been before the first",
        |s| s.block.range_gen.first_last_swap,
    );
    t.add_count("range_gen.spec_overflow", "ranges that extend beyond the end of the object", |s| {
        s.block.range_gen.spec_overflow
    });
    let what = "requests with fewer ranges than drawn, because the next range would begin beyond the end of the object";
    t.add_count("range_gen.set_overflow", what, |s| s.block.range_gen.set_overflow);
    let what = "replies whose status is in the `custom_stats_scope` of the agent, including failed transactions and challenges";
    t.add_time_and_size(
        "custom.rep",
        what,
        |s| Cow::Borrowed(&s.block.custom.rptm_us),
        |s| Cow::Borrowed(&s.block.custom.size),
    );
    t.add_distribution_alias("custom.rptm", "custom.rep.rptm");
    t.add_distribution_alias("custom.size", "custom.rep.size");
}
