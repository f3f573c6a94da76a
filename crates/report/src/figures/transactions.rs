//! Figures of special transactions, and of connections, look-ups, cookies and verification.

use std::borrow::Cow;

use polygraph_stats::{Class, ClassStats, CloseKind, CountAndBytes, ErrorKind, HttpVersion, MissCause};

use super::table::FigureTable;
use super::{Unit, percent};
use crate::scope::Scope;

/// The classes of successful transactions with a complete reply: all but the aborted ones.
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

/// The classes that hit ratios do not count, with their names and texts.
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
    ("auth.ing", "unsuccessful authentication steps", &[Class::Authenticating]),
];

/// Classes beside the basic ones, and pages.
pub(super) fn classes(t: &mut FigureTable) {
    t.start_section("Other classes of requests, and pages");
    for (name, what, classes) in SPECIAL {
        // `auth.ing` has several parts; the section about authentication adds it.
        if name != "auth.ing" {
            t.add_classes(name, what, classes);
        }
    }
    t.add_count_and_bytes("embedded", "transactions for objects embedded in pages", |s| s.block.embedded);
    t.add_count_and_bytes("direct", "successful transactions for objects not embedded in pages", |s| {
        CountAndBytes {
            count: s.block.ok_count() - s.block.embedded.count.min(s.block.ok_count()),
            bytes: (s.block.ok_bytes() as u64).saturating_sub(s.block.embedded.bytes),
        }
    });
    t.add_histogram("page.rptm", "response time of complete pages", Unit::Ms, 1e-3, |s| {
        &s.block.pages.rptm_us
    });
    t.add_histogram("page.size", "size of complete pages: all their replies", Unit::Bytes, 1.0, |s| {
        &s.block.pages.size
    });
    t.add_histogram("page.parts", "replies per complete page", Unit::Things, 1.0, |s| &s.block.pages.parts);
    for (name, what, pick) in VALIDATIONS {
        t.add_class_stats(name, what, pick);
    }
    t.add_figure(
        "basic.marked.count",
        Unit::Count,
        "basic transactions of servers whose requests carry a robot's X-Xact: requests that the device passed on",
        |s| Some(s.block.basic_marked as f64),
    );
    t.add_figure(
        "unmarked.count",
        Unit::Count,
        "requests at servers for objects of the test without a robot's X-Xact: the device made them by itself, or removed the field",
        |s| Some(s.block.unmarked as f64),
    );
    t.add_figure(
        "upload.first_hand.count",
        Unit::Count,
        "uploads (POST, PUT) of robots whose replies have the mark that a server made them for these requests",
        |s| Some(s.block.first_hand_uploads as f64),
    );
    t.add_distribution_alias("proxy_validation.rptm", "proxy_validations.rptm");
    t.add_distribution_alias("proxy_validation.size", "proxy_validations.size");
}

type PickClass = fn(&Scope) -> ClassStats;

const VALIDATIONS: [(&str, &str, PickClass); 3] = [
    ("proxy_validations", "validations by the device, counted at the servers", |s| {
        let mut all = s.block.validations.useful.clone();
        all.merge(&s.block.validations.useless);
        all
    }),
    ("proxy_validation.useful", "validations by the device that returned the object (200)", |s| {
        s.block.validations.useful.clone()
    }),
    ("proxy_validation.useless", "validations by the device that confirmed its copy (304)", |s| {
        s.block.validations.useless.clone()
    }),
];

/// Why offered hits were missed, and hits that were not offered.
pub(super) fn misses(t: &mut FigureTable) {
    use Unit::Ms;
    t.start_section("Missed and false hits");
    t.add_count_and_bytes("false_hit", "hits that were not offered", |s| s.block.false_hits);
    t.add_count_and_bytes("missed", "offered hits that were misses for a known reason", |s| {
        s.block.missed_total()
    });
    for cause in MissCause::ALL {
        let what = format!("offered hits that were misses because {}", cause.text());
        t.add_count_and_bytes(&format!("missed.{}", cause.name()), &what, move |s| {
            s.block.missed[cause as usize]
        });
    }
    t.add_histogram(
        "hit.age",
        "time since the robots last transferred the object of a hit (not its Age header)",
        Ms,
        1.0,
        |s| &s.block.hit_since_transfer_ms,
    );
    t.add_histogram(
        "missed.age",
        "time since the robots last transferred the object of a missed hit (not its Age header)",
        Ms,
        1.0,
        |s| &s.block.miss_since_transfer_ms,
    );
    t.add_figure(
        "url.unique.count",
        Unit::Count,
        "successful transactions for objects that no robot had requested before",
        |s| Some(s.block.unique as f64),
    );
    t.add_figure(
        "url.recurrence.ratio",
        Unit::Percent,
        "share of ended transactions that repeated an object",
        |s| {
            let ended = s.ended_count() as f64;
            percent(ended - s.block.unique as f64, ended)
        },
    );
}

/// Figures of connections, name look-ups, cookies and 100 (Continue).
pub(super) fn exchange(t: &mut FigureTable) {
    use Unit::{Count, Ms, Percent, Things};
    t.add_figure(
        "conn.reused.count",
        Count,
        "transactions started on a connection that had been used before",
        |s| Some(s.block.reused as f64),
    );
    t.add_histogram("conn.pipeline.depth", "depth of pipelined connections", Things, 1.0, |s| {
        &s.block.pipeline_depth
    });
    let columns = &["count", "%", "kind"];
    t.add_list(
        "conn_close.categories",
        "closed connections by the way in which they were closed",
        columns,
        |s| {
            let all: u64 = s.block.closes.iter().map(|closes| closes.count()).sum();
            let row = |kind: CloseKind| {
                let count = s.block.closes[kind as usize].count();
                let share = format!("{:.2}", 100.0 * count as f64 / all as f64);
                (count > 0).then(|| vec![count.to_string(), share, kind.name().to_owned()])
            };
            CloseKind::ALL.into_iter().filter_map(row).collect()
        },
    );
    for kind in CloseKind::ALL {
        let (name, text) = (kind.name(), kind.text());
        t.add_count(&format!("conn_close.{name}.count"), &format!("connections closed {text}"), move |s| {
            s.block.closes[kind as usize].count()
        });
        let what = format!("transactions per connection closed {text}");
        t.add_histogram(&format!("conn_close.{name}.use"), &what, Things, 1.0, move |s| {
            &s.block.closes[kind as usize].uses
        });
        let what = format!("lifetime of connections closed {text}");
        t.add_histogram(&format!("conn_close.{name}.ttl"), &what, Ms, 1e-3, move |s| {
            &s.block.closes[kind as usize].ttl_us
        });
    }
    versions(t);
    t.start_section("Name look-ups, cookies and 100 (Continue)");
    t.add_histogram("100_continue", "time until 100 (Continue) arrived", Ms, 1e-3, |s| &s.block.continue_us);
    t.add_figure("dns.lookup.count", Count, "names that were looked up", |s| {
        Some(s.block.dns.lookups as f64)
    });
    t.add_figure("dns.cache.hit.count", Count, "look-ups answered from the robots' own cache", |s| {
        Some(s.block.dns.cache_hits as f64)
    });
    t.add_figure(
        "dns.cache.hit.ratio",
        Percent,
        "share of look-ups answered from the robots' own cache",
        |s| percent(s.block.dns.cache_hits as f64, s.block.dns.lookups as f64),
    );
    t.add_histogram("dns.rptm", "response time of name servers", Ms, 1e-3, |s| &s.block.dns.rptm_us);
    t.add_histogram("cookies.sent", "cookies per request that carried any", Things, 1.0, |s| {
        &s.block.cookies.sent
    });
    t.add_histogram("cookies.recv", "cookies per reply that carried any", Things, 1.0, |s| {
        &s.block.cookies.received
    });
    t.add_figure("cookies.purged.fresh", Count, "cookies dropped for lack of space", |s| {
        Some(s.block.cookies.purged_fresh as f64)
    });
    t.add_figure("cookies.purged.stale", Count, "cookies dropped because they had expired", |s| {
        Some(s.block.cookies.purged_stale as f64)
    });
    t.add_figure("cookies.updated", Count, "cookies replaced by a cookie with the same name", |s| {
        Some(s.block.cookies.updated as f64)
    });
}

/// Connections through SOCKS proxies, and the transactions on them.
pub(super) fn socks(t: &mut FigureTable) {
    use Unit::{Count, Ms, Percent};
    t.start_section("SOCKS");
    let what = "transactions through SOCKS proxies";
    t.add_time_and_size(
        "socks",
        what,
        |s| Cow::Borrowed(&s.block.socks.transactions.rptm_us),
        |s| Cow::Borrowed(&s.block.socks.transactions.size),
    );
    t.add_count_and_bytes("socks.hit", "hits through SOCKS proxies", |s| s.block.socks.hits);
    t.add_figure(
        "socks.hit.ratio",
        Percent,
        "share of hits among the transactions through SOCKS proxies",
        |s| percent(s.block.socks.hits.count as f64, s.block.socks.transactions.size.count() as f64),
    );
    let what = "time until a SOCKS proxy had opened a connection, once the robot was connected to the proxy";
    t.add_histogram("socks.open", what, Ms, 1e-3, |s| &s.block.socks.opened_us);
    t.add_figure(
        "socks.password.count",
        Count,
        "connections for which SOCKS proxies demanded a password",
        |s| Some(s.block.socks.with_password as f64),
    );
    t.add_figure("socks.refused.count", Count, "connections that SOCKS proxies did not open", |s| {
        Some(s.block.socks.refused as f64)
    });
}

/// Tickets of Kerberos.
pub(super) fn kerberos(t: &mut FigureTable) {
    use Unit::{Count, Ms};
    t.start_section("Kerberos");
    let what = "time of a login: all messages until a robot has a ticket-granting ticket, and the key of its password";
    t.add_histogram("kerberos.login", what, Ms, 1e-3, |s| &s.block.kerberos.login_us);
    let what =
        "time until a robot has the ticket for a proxy or server, once it has a ticket-granting ticket";
    t.add_histogram("kerberos.ticket", what, Ms, 1e-3, |s| &s.block.kerberos.ticket_us);
    t.add_figure("kerberos.failed.count", Count, "logins and requests for tickets that failed", |s| {
        Some(s.block.kerberos.failed as f64)
    });
    t.add_figure(
        "kerberos.too_big.count",
        Count,
        "messages to a KDC that were sent again over TCP because the reply did not fit a datagram",
        |s| Some(s.block.kerberos.too_big as f64),
    );
}

/// Figures of each version of HTTP, and of the streams of multiplexed connections.
fn versions(t: &mut FigureTable) {
    t.start_section("HTTP versions and streams");
    for version in HttpVersion::ALL {
        let at = version as usize;
        let what = format!("transactions over {}", version.title());
        t.add_time_and_size(
            &format!("version.{}", version.word()),
            &what,
            move |s| Cow::Borrowed(&s.block.versions[at].rptm_us),
            move |s| Cow::Borrowed(&s.block.versions[at].size),
        );
    }
    t.add_histogram(
        "streams.concurrent",
        "streams of the connection that are open when another one is opened, itself included",
        Unit::Things,
        1.0,
        |s| &s.block.streams.concurrent,
    );
    t.add_histogram("streams.per_conn", "streams per closed connection", Unit::Things, 1.0, |s| {
        &s.block.streams.per_connection
    });
    let bytes: [(&str, &str, PickCount); 4] = [
        ("streams.sent.bytes", "all bytes sent on multiplexed connections", |s| s.block.streams.sent),
        ("streams.recv.bytes", "all bytes received on multiplexed connections", |s| s.block.streams.received),
        ("streams.sent_content.bytes", "bytes of content among those that were sent", |s| {
            s.block.streams.sent_content
        }),
        ("streams.recv_content.bytes", "bytes of content among those that were received", |s| {
            s.block.streams.received_content
        }),
    ];
    for (name, text, pick) in bytes {
        t.add_figure(name, Unit::Bytes, text, move |s| Some(pick(s) as f64));
    }
    t.add_figure(
        "streams.overhead.ratio",
        Unit::Percent,
        "share of the bytes on multiplexed connections that is not content: frame headers, field sections, settings",
        |s| {
            let streams = &s.block.streams;
            percent(streams.overhead() as f64, (streams.sent + streams.received) as f64)
        },
    );
    t.add_figure(
        "quic.lost.ratio",
        Unit::Percent,
        "share of the QUIC packets sent by this side that count as lost",
        |s| percent(s.block.streams.lost_packets as f64, s.block.streams.packets as f64),
    );
    let counts: [(&str, &str, PickCount); 9] = [
        ("quic.packets.count", "QUIC packets that this side sent", |s| s.block.streams.packets),
        ("quic.lost.count", "QUIC packets that this side sent and that count as lost", |s| {
            s.block.streams.lost_packets
        }),
        ("streams.reset.count", "streams that the peer reset, without refused ones", |s| {
            s.block.streams.resets
        }),
        ("streams.refused.count", "streams that the peer refused", |s| s.block.streams.refused),
        (
            "streams.unprocessed.count",
            "streams that the peer did not process because it ended the connection",
            |s| s.block.streams.unprocessed,
        ),
        ("streams.goaway.count", "connections whose end the peer announced", |s| s.block.streams.goaways),
        (
            "streams.misdirected.count",
            "replies 421 after which the request was sent on another connection",
            |s| s.block.streams.misdirected,
        ),
        ("alt_svc.switch.count", "how often a robot began to use an alternative service (Alt-Svc)", |s| {
            s.block.streams.alternatives
        }),
        ("alt_svc.broken.count", "alternative services that could not be used", |s| {
            s.block.streams.broken_alternatives
        }),
    ];
    for (name, text, pick) in counts {
        t.add_count(name, text, pick);
    }
}

/// Picks a counter.
type PickCount = fn(&Scope) -> u64;

/// Verified replies and wrong replies.
pub(super) fn verification(t: &mut FigureTable) {
    use Unit::{Bytes, Count, Percent};
    t.start_section("Correctness");
    t.add_figure(
        "verified.count",
        Count,
        "replies that were verified to belong to the requested object; of servers: request bodies that were verified",
        |s| Some(s.block.verified.replies as f64),
    );
    t.add_figure(
        "verified.due.count",
        Count,
        "successful replies with an object of our servers, which must be verified; of servers: request bodies",
        |s| Some(s.block.verified.due as f64),
    );
    t.add_figure(
        "verified.marked.count",
        Count,
        "successful replies without a body that carry the marks of our servers",
        |s| Some(s.block.verified.marked as f64),
    );
    t.add_figure("verified.size.sum", Bytes, "body bytes that were compared with those of the object", |s| {
        Some(s.block.verified.bytes as f64)
    });
    t.add_figure(
        "verified.uncompared.size.sum",
        Bytes,
        "body bytes that were not compared with anything",
        |s| Some(s.block.verified.uncompared as f64),
    );
    t.add_figure("verified.digest.count", Count, "bodies whose digest was checked", |s| {
        Some(s.block.verified.digests as f64)
    });
    t.add_figure(
        "errors.correctness.count",
        Count,
        "wrong replies: wrong content, or a violation of the rules of caching",
        |s| Some(s.block.errors.sum(ErrorKind::concerns_correctness) as f64),
    );
    t.add_figure(
        "errors.correctness.ratio",
        Percent,
        "share of ended transactions with a wrong reply",
        |s| percent(s.block.errors.sum(ErrorKind::concerns_correctness) as f64, s.ended_count() as f64),
    );
}
