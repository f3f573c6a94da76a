//! Tables of kinds of requests and content, pages, connections and validations; empty tables are left out.

use polygraph_stats::{Class, CloseKind, HttpVersion};
use polygraph_tls::names::{cipher_name, group_name};

use super::table::{Table, columns, row};
use super::tables::caption;
use super::view::View;
use crate::correctness::Correctness;
use crate::facts::RunFacts;
use crate::failover::Failover;
use crate::figures::tls::version_name;
use crate::figures::{SPECIAL, value};
use crate::misses::MissExplanation;
use crate::scope::Scope;
use crate::spread::{ServerShare, Spread};
use crate::text::{UNDEFINED, bytes, duration, ms, number};

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| UNDEFINED.to_owned(), |share| format!("{} %", number(Some(share), 2)))
}

/// A part of a whole in percent; a dash if there is no whole.
fn share(part: f64, whole: f64) -> String {
    percent((whole > 0.0).then(|| 100.0 * part / whole))
}

/// The kinds of replies: name of their figures, text, classes.
fn kinds(view: &View<'_>) -> Vec<(&'static str, &'static str, &'static [Class])> {
    let plain: [(_, _, &[Class]); 4] = [
        ("basic", "plain requests", &Class::BASIC),
        ("hit", "hits", &[Class::Hit]),
        ("fill", "cachable misses", &[Class::Miss]),
        ("uncachable", "uncachable", &[Class::Uncachable]),
    ];
    let plain = if view.sees_hits() { &plain[..] } else { &plain[..1] };
    plain.iter().copied().chain(SPECIAL).collect()
}

/// All kinds of replies: how many, how large, how fast. Kinds overlap where one is a part of another.
pub fn requests(view: &View<'_>) -> Option<Table> {
    let scope = view.scope;
    let all = scope.block.ok_count() as f64;
    let line = |name: &str, sizes: &str, text: &str, count: f64, volume: f64| {
        let figure = |leaf: &str| value(&format!("{name}.{leaf}"), scope);
        row(
            text,
            [
                number(Some(count), 0),
                share(count, all),
                share(volume, scope.block.ok_bytes()),
                number(scope.rate(count), 2),
                number(scope.rate(volume * 8e-6), 2),
                ms(figure("rptm.min")),
                ms(figure("rptm.mean")),
                ms(figure("rptm.p95")),
                ms(figure("rptm.max")),
                bytes(value(&format!("{sizes}.mean"), scope)),
                bytes(value(&format!("{sizes}.max"), scope)),
            ],
        )
    };
    let mut rows: Vec<_> = kinds(view)
        .into_iter()
        .filter(|(_, _, classes)| scope.block.count_of(classes) > 0)
        .map(|(name, text, classes)| {
            line(
                name,
                &format!("{name}.size"),
                text,
                scope.block.count_of(classes) as f64,
                scope.block.bytes_of(classes),
            )
        })
        .collect();
    if all > 0.0 {
        rows.push(line("baseline", "baseline.rep.size", "all", all, scope.block.ok_bytes()));
    }
    let head = columns(&[
        "",
        "count",
        "of all",
        "of all bytes",
        "per second",
        "Mbit/s",
        "fastest",
        "mean response time",
        "p95",
        "slowest",
        "mean reply",
        "largest",
    ]);
    (!rows.is_empty()).then(|| Table::new(caption("Requests and replies", view), head, rows))
}

/// A sentence that lists the kinds without any reply.
pub fn unseen(view: &View<'_>) -> Option<String> {
    let none = kinds(view).into_iter().filter(|(_, _, classes)| view.scope.block.count_of(classes) == 0);
    let names: Vec<&str> = none.map(|(_, text, _)| text).collect();
    (!names.is_empty()).then(|| format!("Not seen in {}: {}.", view.name, names.join(", ")))
}

/// A name for a kind of content in tests without a workload file, which does not name them; see
/// [`Header::contents`](polygraph_stats::Header::contents).
fn content_name(number: usize) -> String {
    match number {
        0 => "foreign".to_owned(),
        1 => "without body".to_owned(),
        2 => "unknown".to_owned(),
        3 => "objects".to_owned(),
        n => format!("objects, kind {}", n - 2),
    }
}

/// Kinds of content.
pub fn contents(view: &View<'_>) -> Option<Table> {
    let scope = view.scope;
    let names = &view.side.header().contents;
    let all = scope.block.ok_count() as f64;
    let hits = view.sees_hits();
    let rows: Vec<_> = scope
        .block
        .kinds
        .iter()
        .enumerate()
        .filter(|(_, kind)| kind.all().count > 0)
        .map(|(n, kind)| {
            let name = names.get(n).cloned().unwrap_or_else(|| content_name(n));
            let count = kind.all().count as f64;
            let mut cells = vec![
                number(Some(count), 0),
                share(count, all),
                bytes(Some(kind.all().bytes as f64 / count)),
                ms(Some(kind.replies.rptm_us.sum() * 1e-3 / count)),
            ];
            if hits {
                let (of, volume) = (kind.basic.count as f64, kind.basic.bytes as f64);
                cells.extend([
                    share(kind.offered_hits.count as f64, of),
                    share(kind.hits.count as f64, of),
                    share(kind.offered_hits.bytes as f64, volume),
                    share(kind.hits.bytes as f64, volume),
                ]);
            }
            row(&name, cells)
        })
        .collect();
    let mut head = columns(&["content", "replies", "of all", "mean size", "mean response time"]);
    if hits {
        head.extend(columns(&[
            "document hit ratio offered",
            "measured",
            "byte hit ratio offered",
            "measured",
        ]));
    }
    (!rows.is_empty()).then(|| Table {
        caption: caption("Kinds of content", view),
        head,
        rows,
        ..Table::default()
    })
}

/// How requests were spread over servers; `None` for a single one.
pub fn servers(spread: &Spread, phases: &str) -> Option<Table> {
    let others = spread.servers.iter().any(|server| server.stats.unmarked > 0);
    let line = |server: &ServerShare| {
        let stats = &server.stats;
        let time = |us: Option<f64>| ms(us.map(|us| us * 1e-3));
        let bandwidth = (spread.seconds > 0.0).then(|| stats.bytes as f64 * 8e-6 / spread.seconds);
        let mut cells = vec![
            number(Some(stats.requests as f64), 0),
            server.share(),
            number(server.rate(spread.seconds), 2),
            number(Some(stats.rptm_us.count() as f64), 0),
            time(stats.rptm_us.mean()),
            time(stats.rptm_us.quantile(0.95).map(|us| us as f64)),
            time(stats.rptm_us.max().map(|us| us as f64)),
            number(server.concurrent(spread.seconds), 2),
            number(bandwidth, 2),
            number(Some(stats.failed as f64), 0),
        ];
        cells.extend(others.then(|| number(Some(stats.unmarked as f64), 0)));
        row(&server.address, cells)
    };
    let mut head = columns(&[
        "server",
        "requests",
        "of all",
        "per second",
        "replies",
        "mean response time",
        "p95",
        "slowest",
        "concurrent, mean",
        "Mbit/s",
        "failed",
    ]);
    head.extend(others.then_some("requests without X-Xact").map(Into::into));
    let rows = || spread.servers.iter().map(line).collect();
    (spread.servers.len() > 1).then(|| Table::new(format!("Requests by server, {phases}"), head, rows()))
}

/// Servers that ended or stood still; `None` if all were there all the time.
pub fn failovers(all: &[Failover]) -> Option<Table> {
    let line = |failover: &Failover| {
        let failed_for = match failover.failed_for_s {
            Some(_) if failover.lasts => "to the end of the run".to_owned(),
            Some(seconds) => duration(seconds),
            None => UNDEFINED.to_owned(),
        };
        row(
            &failover.server,
            [
                format!("{:.1} s", failover.at_s),
                failover.back_s.map_or("ended".to_owned(), |back| duration(back - failover.at_s)),
                number(Some(failover.failed as f64), 0),
                failed_for,
            ],
        )
    };
    let head = columns(&["server", "from", "away for", "failed transactions", "failures lasted"]);
    (!all.is_empty()).then(|| {
        Table::new("Servers that ended or stood still, whole run", head, all.iter().map(line).collect())
    })
}

/// Pages with their embedded objects.
pub fn pages(view: &View<'_>) -> Option<Table> {
    let scope = view.scope;
    let block = &scope.block;
    if block.pages.parts.count() == 0 && block.embedded.count == 0 {
        return None;
    }
    let figure = |name| value(name, scope);
    Some(Table {
        caption: caption("Pages", view),
        head: columns(&[
            "",
            "pages",
            "replies each",
            "mean response time",
            "p95",
            "mean size",
            "embedded, of all replies",
        ]),
        rows: vec![row(
            "complete",
            [
                number(figure("page.parts.count"), 0),
                number(figure("page.parts.mean"), 2),
                ms(figure("page.rptm.mean")),
                ms(figure("page.rptm.p95")),
                bytes(figure("page.size.mean")),
                share(block.embedded.count as f64, block.ok_count() as f64),
            ],
        )],
        ..Table::default()
    })
}

/// How connections were closed, and how many transactions they carried.
pub fn closes(view: &View<'_>) -> Option<Table> {
    let scope = view.scope;
    let closed: u64 = scope.block.closes.iter().map(|closes| closes.count()).sum();
    let line = |kind: CloseKind| {
        let closes = &scope.block.closes[kind as usize];
        let figure = |leaf: &str| value(&format!("conn_close.{}.{leaf}", kind.name()), scope);
        (closes.count() > 0).then(|| {
            row(
                kind.text(),
                [
                    number(Some(closes.count() as f64), 0),
                    share(closes.count() as f64, closed as f64),
                    number(figure("use.mean"), 2),
                    ms(figure("ttl.mean")),
                ],
            )
        })
    };
    (closed > 0).then(|| Table {
        caption: caption("Closed connections", view),
        head: columns(&["closed", "connections", "of all", "transactions each", "mean lifetime"]),
        rows: CloseKind::ALL.into_iter().filter_map(line).collect(),
        ..Table::default()
    })
}

/// Reuse, streams, versions of HTTP, pipelining, name look-ups, SOCKS proxies, Kerberos, cookies and waits for 100 (continue).
pub fn exchange(view: &View<'_>) -> Option<Table> {
    let scope = view.scope;
    let block = &scope.block;
    let figure = |name: &str| value(name, scope);
    let mut rows = Vec::new();
    let mut line = |name: &str, count: u64, text: String| {
        if count > 0 {
            rows.push(row(name, [number(Some(count as f64), 0), text]));
        }
    };
    line(
        "transactions on reused connections",
        block.reused,
        share(block.reused as f64, block.xacts.entered as f64) + " of those started",
    );
    line(
        "pipelined connections",
        block.pipeline_depth.count(),
        format!("mean depth {}", number(figure("conn.pipeline.depth.mean"), 2)),
    );
    line(
        "HTTP/2 and HTTP/3 streams",
        block.streams.count(),
        format!(
            "{} concurrently on a connection, {} per connection; {} reset, {} refused, {} not processed",
            number(figure("streams.concurrent.mean"), 2),
            number(figure("streams.per_conn.mean"), 1),
            number(figure("streams.reset.count"), 0),
            number(figure("streams.refused.count"), 0),
            number(figure("streams.unprocessed.count"), 0)
        ),
    );
    line(
        "bytes on HTTP/2 and HTTP/3 connections",
        block.streams.sent + block.streams.received,
        format!(
            "{} of them frames and fields; {} connections ended by GOAWAY",
            percent(figure("streams.overhead.ratio")),
            number(figure("streams.goaway.count"), 0)
        ),
    );
    line(
        "QUIC packets",
        block.streams.packets,
        format!("{} lost ({})", number(figure("quic.lost.count"), 0), percent(figure("quic.lost.ratio"))),
    );
    for version in HttpVersion::ALL {
        let replies = &block.versions[version as usize];
        // One version is what all other tables are about.
        let others = replies.size.count() < block.ok_count();
        line(
            version.title(),
            if others { replies.size.count() } else { 0 },
            format!(
                "{} of the transactions; response time: mean {}, p95 {}",
                share(replies.size.count() as f64, block.ok_count() as f64),
                ms(figure(&format!("version.{}.rptm.mean", version.word()))),
                ms(figure(&format!("version.{}.rptm.p95", version.word())))
            ),
        );
    }
    line(
        "transactions that waited for a connection",
        block.waiting.entered,
        format!("{} concurrently", number(figure("wait.level.mean"), 2)),
    );
    line(
        "names looked up",
        block.dns.lookups,
        format!(
            "{} from the cache; others: mean {}, p95 {}",
            percent(figure("dns.cache.hit.ratio")),
            ms(figure("dns.rptm.mean")),
            ms(figure("dns.rptm.p95"))
        ),
    );
    line(
        "connections through SOCKS proxies",
        block.socks.opened_us.count(),
        format!(
            "opened in {} on average, p95 {}; {} not opened",
            ms(figure("socks.open.mean")),
            ms(figure("socks.open.p95")),
            number(figure("socks.refused.count"), 0)
        ),
    );
    line(
        "transactions through SOCKS proxies",
        block.socks.transactions.size.count(),
        format!("mean {}, {} hits", ms(figure("socks.rptm.mean")), percent(figure("socks.hit.ratio"))),
    );
    line(
        "logins with Kerberos",
        block.kerberos.login_us.count(),
        format!("mean {}, p95 {}", ms(figure("kerberos.login.mean")), ms(figure("kerberos.login.p95"))),
    );
    line(
        "tickets of Kerberos for services",
        block.kerberos.ticket_us.count(),
        format!("mean {}, p95 {}", ms(figure("kerberos.ticket.mean")), ms(figure("kerberos.ticket.p95"))),
    );
    line(
        "requests with cookies",
        block.cookies.sent.count(),
        format!("{} each", number(figure("cookies.sent.mean"), 2)),
    );
    line(
        "replies with cookies",
        block.cookies.received.count(),
        format!(
            "{} each; {} replaced, {} expired, {} dropped for lack of space",
            number(figure("cookies.recv.mean"), 2),
            number(figure("cookies.updated"), 0),
            number(figure("cookies.purged.stale"), 0),
            number(figure("cookies.purged.fresh"), 0)
        ),
    );
    line(
        "waits for 100 (continue)",
        block.continue_us.count(),
        format!("mean {}, p95 {}", ms(figure("100_continue.mean")), ms(figure("100_continue.p95"))),
    );
    (!rows.is_empty()).then(|| Table {
        caption: caption("Connections, name look-ups, SOCKS, Kerberos and cookies", view),
        head: columns(&["", "count", ""]),
        rows,
        ..Table::default()
    })
}

/// TLS handshakes and what they agreed on, transactions over TLS, and tunnels.
pub fn tls(view: &View<'_>) -> Option<Table> {
    let scope = view.scope;
    let tls = &scope.block.tls;
    let figure = |name: &str| value(name, scope);
    let mut rows = Vec::new();
    let times = |name: &str| {
        let of = |leaf: &str| ms(figure(&format!("{name}.{leaf}")));
        format!("mean {}, p95 {}", of("mean"), of("p95"))
    };
    for (text, name, count) in [
        ("full handshakes", "ssl.handshake.full", tls.full_us.count()),
        ("resumed handshakes", "ssl.handshake.resumed", tls.resumed_us.count()),
        ("resumed with early data (0-RTT)", "ssl.handshake.early", tls.early_us.count()),
        (
            "transactions over TLS, with the set-up of connections",
            "ssl.rptm",
            tls.transactions.rptm_us.count(),
        ),
        ("the same without it", "ssl.ready_rptm", tls.ready_rptm_us.count()),
        ("tunnels (CONNECT)", "connect.rptm", tls.connects.rptm_us.count()),
        ("transactions through tunnels", "tunneled.rptm", tls.tunneled.rptm_us.count()),
        ("refusals of bad certificates", "ssl.refusal.rptm", tls.refusal_count()),
    ] {
        if count > 0 {
            rows.push(row(text, [number(Some(count as f64), 0), times(name)]));
        }
    }
    for (what, faults) in [("refused", &tls.refused_faults), ("accepted", &tls.accepted_faults)] {
        for (fault, n) in faults.iter() {
            let count = number(Some(n as f64), 0);
            rows.push(row(&format!("bad certificates {what}: {fault}"), [count, String::new()]));
        }
    }
    if tls.refused_handshakes > 0 {
        let count = number(Some(tls.refused_handshakes as f64), 0);
        rows.push(row("handshakes broken off because of a bad certificate", [count, String::new()]));
    }
    let codes = [
        (&tls.versions, version_name as fn(u16) -> Option<&'static str>),
        (&tls.ciphers, cipher_name),
        (&tls.groups, group_name),
    ];
    for (counts, name) in codes {
        let all = counts.sum() as f64;
        for (code, n) in counts.iter() {
            let text = name(code).map_or_else(|| format!("{code:#06x}"), str::to_owned);
            rows.push(row(&text, [number(Some(n as f64), 0), share(n as f64, all)]));
        }
    }
    for (text, n) in tls.staples.iter() {
        rows.push(row(&format!("OCSP responses: {text}"), [number(Some(n as f64), 0), String::new()]));
    }
    for (issuer, n) in tls.issuers.iter() {
        rows.push(row(
            &format!("certificates issued by {issuer}"),
            [number(Some(n as f64), 0), String::new()],
        ));
    }
    (!rows.is_empty()).then(|| Table {
        caption: caption("TLS and tunnels", view),
        head: columns(&["", "count", ""]),
        rows,
        ..Table::default()
    })
}

/// Validations that the device itself started, over the whole run.
pub fn validations(facts: &RunFacts) -> Option<Table> {
    let scope: &Scope = facts.server.as_ref()?.total.as_ref()?;
    let all = scope.block.validations.useful.size.count() + scope.block.validations.useless.size.count();
    let line = |text: &str, name: &str| {
        let figure = |leaf: &str| value(&format!("proxy_validation.{name}.{leaf}"), scope);
        let count = figure("size.count");
        row(
            text,
            [
                number(count, 0),
                share(count.unwrap_or(0.0), all as f64),
                ms(figure("rptm.mean")),
                bytes(figure("size.mean")),
            ],
        )
    };
    (all > 0).then(|| Table {
        caption: "Validations by the device, counted at the servers, whole run".to_owned(),
        head: columns(&["answer", "count", "of all", "mean response time", "mean reply"]),
        rows: vec![line("a new copy (200)", "useful"), line("copy confirmed (304)", "useless")],
        ..Table::default()
    })
}

/// Causes of missed hits in the measured phases.
pub fn missed(story: &MissExplanation) -> Table {
    let total =
        |phase: usize| story.causes.iter().map(|(_, tallies)| tallies[phase].count).sum::<u64>() as f64;
    let rows = story.causes.iter().map(|(cause, tallies)| {
        let cells = tallies.iter().enumerate().map(|(phase, tally)| {
            let count = tally.count as f64;
            format!("{} ({})", number(Some(count), 0), share(count, total(phase)))
        });
        row(cause.text(), cells)
    });
    Table {
        caption: "Offered hits that were misses, by cause".to_owned(),
        head: std::iter::once("cause".into())
            .chain(story.phases.iter().map(|phase| format!("phase {phase}").into()))
            .collect(),
        rows: rows.collect(),
        ..Table::default()
    }
}

/// Correctness errors; `None` if there are none.
pub fn findings(found: &Correctness<'_>) -> Option<Table> {
    let line = |finding: &crate::correctness::CorrectnessFinding<'_>| {
        let kind = finding.kind;
        row(
            &format!("{}: {}", kind.number(), kind.text()),
            [
                finding.side.name().to_owned(),
                number(Some(finding.count as f64), 0),
                format!("{} %", number(Some(100.0 * finding.share), 3)),
            ],
        )
    };
    (!found.findings.is_empty()).then(|| Table {
        caption: "Correctness errors of the whole run".to_owned(),
        head: columns(&["error", "side", "count", "of transactions"]),
        rows: found.findings.iter().map(line).collect(),
        ..Table::default()
    })
}
