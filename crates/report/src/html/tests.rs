use std::collections::HashSet;
use std::fs;

use polygraph_stats::{EndReason, ErrorKind};

use super::*;
use crate::figures::value;
use crate::fold::fold;
use crate::log::Log;
use crate::popularity::Curve;
use crate::testlog::Run;
use crate::text;

mod browser;

/// A run with something in every table.
fn rich_run() -> Run {
    Run {
        rich: true,
        error: Some((150, ErrorKind::PrivateLeak)),
        second_error: Some((90, ErrorKind::Stale)),
        ..Run::default()
    }
}

/// The kinds of runs whose pages are looked at.
fn runs() -> Vec<(&'static str, Vec<Log>)> {
    let overload = Run { capacity: 40.0, open_limit: 600, ..Run::default() };
    let killed = Run { end: None, stop_at: Some(15.5), ..Run::default() };
    let early = Run { end: Some(EndReason::Interrupted), stop_at: Some(0.4), rate: 1.0, ..Run::default() };
    let long = Run { rate: 3.0, phases: [60.0, 3000.0, 60.0], ..Run::default() };
    let errors =
        Run { error: Some((40, ErrorKind::BadStatus)), clock_step_ns: 200_000_000, ..Run::default() };
    let rich = rich_run();
    vec![
        ("valid", Run::default().logs()),
        ("overload", overload.logs()),
        ("killed", vec![killed.client()]),
        ("nothing", vec![early.client()]),
        ("server", vec![Run::default().server()]),
        ("long", long.logs()),
        ("rich", rich.logs()),
        ("errors", errors.logs()),
    ]
}

/// The page without its script, which must not ask anybody for anything either.
fn without_script(page: &str) -> String {
    let (before, rest) = page.split_once("<script>").expect("a script");
    let (script, after) = rest.split_once("</script>").expect("its end");
    for forbidden in ["fetch(", "XMLHttpRequest", "import(", "sendBeacon", "WebSocket", "eval(", ".src"] {
        assert!(!script.contains(forbidden), "{forbidden}");
    }
    format!("{before}{after}")
}

/// A figure has a picture with a title and a description, and a table with rows.
fn check_figure(name: &str, figure: &str) {
    let id = figure.split('"').next().unwrap();
    let text = |tag: &str| {
        let (_, rest) =
            figure.split_once(&format!("<{tag} id=\"{id}-")).unwrap_or_else(|| panic!("{name} {id}: {tag}"));
        rest.split_once('>').unwrap().1.split('<').next().unwrap().len()
    };
    assert!(text("title") > 5 && text("desc") > 20, "{name}: {id} says what it is");
    assert!(figure.contains("role=\"img\"") && figure.contains("aria-labelledby"), "{name}: {id}");
    let table = figure
        .split("<table class=\"values\">")
        .nth(1)
        .unwrap_or_else(|| panic!("{name}: {id} has no table"));
    let rows =
        table.split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap().matches("<tr>").count();
    assert!((1..=121).contains(&rows), "{name}: {id} has {rows} rows");
}

/// The data that the script of a page works with.
fn chart_data(page: &str) -> serde_json::Value {
    let (_, data) = page.split_once("<script type=\"application/json\" id=\"chart-data\">").expect("data");
    serde_json::from_str(data.split_once("</script>").unwrap().0).expect("JSON")
}

fn attributes<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let start = format!(" {name}=\"");
    page.split(&start).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// Writes pages where a person can look at them, and checks what a program can.
#[test]
fn pages_are_whole_small_and_offline() {
    let dir = std::env::var_os("REPORT_PAGES").map(PathBuf::from);
    for (name, logs) in runs() {
        let page = html(&fold(&logs).unwrap());
        if let Some(dir) = &dir {
            fs::write(dir.join(format!("{name}.html")), &page).unwrap();
        }
        assert!(page.len() < 600_000, "{name}: {} bytes", page.len());
        let page = without_script(&page);
        let ids = attributes(&page, "id");
        let unique: HashSet<_> = ids.iter().collect();
        assert_eq!(ids.len(), unique.len(), "{name}: an id is there twice");
        let links =
            attributes(&page, "href").into_iter().map(|link| link.strip_prefix('#').expect("local link"));
        let labels = attributes(&page, "aria-labelledby");
        for wanted in links.chain(labels.iter().flat_map(|ids| ids.split(' '))) {
            assert!(unique.contains(&wanted), "{name}: #{wanted} is referenced, but does not exist");
        }
        for forbidden in [" src=", "<link", "<iframe", "@import", "url(", "xlink", "NaN", "inf ", "Infinity"]
        {
            assert!(!page.contains(forbidden), "{name}: {forbidden}");
        }
        page.split("<figure id=\"").skip(1).for_each(|figure| check_figure(name, figure));
        let data = chart_data(&page);
        for id in data["charts"].as_object().unwrap().keys() {
            assert!(unique.contains(&id.as_str()), "{name}: data of #{id}, which does not exist");
        }
        // Error samples quote URLs of servers; nothing else names a place elsewhere.
        let elsewhere = page.matches("http").count() - page.matches("http-equiv").count();
        assert_eq!(elsewhere, page.matches("http://127").count(), "{name}");
        for (open, close) in [
            ("<section", "</section>"),
            ("<svg", "</svg>"),
            ("<table", "</table>"),
            ("<tr>", "</tr>"),
            ("<details", "</details>"),
            ("<figure", "</figure>"),
        ] {
            assert_eq!(page.matches(open).count(), page.matches(close).count(), "{name}: {open}");
        }
    }
}

#[test]
fn the_first_screen_says_what_the_facts_say() {
    let facts = fold(&Run::default().logs()).unwrap();
    let page = html(&facts);
    let top = &page[..page.find("<section id=").unwrap()];
    let scope = &facts.headline.as_ref().unwrap().scope;
    let run = text::duration(facts.client.as_ref().unwrap().total.as_ref().unwrap().seconds);
    assert!(
        top.contains(">VALID<")
            && top.contains(&format!("figures from phase meas: 30 s of a run of {run} ·"))
    );
    for (name, decimals) in [("ok_xact.rate", 1), ("rep_dhr", 1)] {
        let shown = text::number(value(name, scope), decimals);
        assert!(top.contains(&format!("<div class=\"value\">{shown}<")), "{name} {shown}");
    }
    for name in ["hit.rptm", "miss.rptm"] {
        let (mean, unit) = text::in_unit(value(&format!("{name}.mean"), scope));
        assert!(top.contains(&format!("{mean}<span class=\"unit\"> {unit}<")), "{name} {mean}");
        let p95 = text::ms(value(&format!("{name}.p95"), scope)).replace(' ', "\u{a0}");
        assert!(top.contains(&format!("p95\u{a0}{p95}")), "{name} {p95}");
    }
    assert!(top.contains("<figure id=\"fig-overview\">"), "one figure on the first screen");
    assert!(!page.contains(" us<"), "micro is µ");
}

/// The ids of sections in their order.
fn sections(page: &str) -> Vec<&str> {
    page.split("<section id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

#[test]
fn a_run_that_failed_shows_its_errors_first() {
    let page = |run: Run| html(&fold(&run.logs()).unwrap());
    let failed = page(Run { error: Some((4, ErrorKind::BadStatus)), ..Run::default() });
    let (top, _) = failed.split_once("<section id=").unwrap();
    assert!(top.contains("FAILED") && top.contains("<ul class=\"faults\"><li>"), "{top}");
    assert!(top.contains(" transactions failed: "), "{top}");
    let (bad, good) =
        (top.find("Failed transactions").unwrap(), top.find("Successful transactions").unwrap());
    assert!(bad < good && top.contains("class=\"tile bad\""), "{top}");
    assert_eq!(sections(&failed)[0], "errors");
    let busy = page(Run { busy: 0.99, ..Run::default() });
    assert_eq!(sections(&busy)[0], "health", "the section about the limit comes first");
    assert!(busy.contains("Lateness of requests, p99"), "and a card says how late");
    let valid = page(Run::default());
    assert!(sections(&valid)[0] == "load" && !valid.contains("<ul class=\"faults\">"));
}

/// Tables without a figure in them tell nothing.
#[test]
fn a_run_without_a_good_reply_has_no_empty_tables() {
    let run = Run { error: Some((1, ErrorKind::ConnectFailed)), ..Run::default() };
    let page = html(&fold(&run.logs()).unwrap());
    // Further down servers say what they saw.
    let (upper, _) = page.split_once("<section id=\"scopes\">").unwrap();
    for table in ["Response time in ms, phase meas", "Hit ratio, phase meas"] {
        assert!(!upper.contains(table), "{table}");
    }
    assert_eq!(sections(&page)[0], "errors");
    assert!(!page.contains("Response time of hits"), "nor cards");
}

/// The agents of a fleet have a section, and what it has lost stands on the first screen.
#[test]
fn a_fleet_says_what_it_did_and_what_it_has_lost() {
    let dir = tempfile::tempdir().unwrap();
    let facts = fold(&Run::default().logs()).unwrap();
    let inventory = serde_json::json!({ "name": "clt1", "host": "pc7", "cores": 4, "weight": 1.5 });
    let manifest = |lost: &[&str]| {
        serde_json::json!({ "fleet": {
            "run": "r", "lost_policy": "degrade",
            "agents": [{ "inventory": inventory, "clock_offset_s": -0.00125, "clock_uncertainty_s": 0.0005 }],
            "division": { "hosts": [{ "host": "clt1", "client": { "agents": 150, "rate": 60.04, "addresses": [] }, "server": null }] },
            "incidents": [{ "at": "2026-11-24T08:00:01+00:00", "text": "the agent clt9 on <pc9> is late" }],
            "lost": lost, "missing_logs": lost,
        } })
    };
    let page = |manifest: &serde_json::Value| {
        fs::write(dir.path().join(crate::run_dir::MANIFEST), manifest.to_string()).unwrap();
        html_with(&facts, &Extras::of_run(dir.path()))
    };
    let whole = page(&manifest(&[]));
    let (top, rest) = whole.split_once("<section id=\"fleet\"").unwrap();
    for part in [
        "pc7",
        "-1.25 ms ± 0.50",
        "150",
        "60.0",
        "2026-11-24T08:00:01+00:00: the agent clt9 on &lt;pc9&gt; is late",
    ] {
        assert!(rest.contains(part), "{part}: {rest}");
    }
    assert!(!top.contains("What the fleet has lost") && !html(&facts).contains("id=\"fleet\""));
    let less = page(&manifest(&["clt2"]));
    let (top, _) = less.split_once("<section id=").unwrap();
    assert!(top.contains("Lost during the run: clt2; the verdict is about the others."), "{top}");
    assert!(top.contains("The logs of clt2 are missing here"), "{top}");
}

/// What the program knows of the device stands under the title, in a section, and in figures.
#[test]
fn the_protocols_are_under_the_title() {
    let top = |run: Run| {
        let page = html(&fold(&run.logs()).unwrap());
        page.split_once("<main>").unwrap().0.to_owned()
    };
    let with_tls = top(Run { rich: true, ..Run::default() });
    assert!(with_tls.contains("<dt>Protocols</dt>") && with_tls.contains("handshake"), "{with_tls}");
    assert!(!top(Run::default()).contains("Protocols"));
}

#[test]
fn the_device_is_under_the_title() {
    let dir = tempfile::tempdir().unwrap();
    let facts = fold(&Run::default().logs()).unwrap();
    let manifest = serde_json::json!({ "device": {
        "name": "squid", "version": "6.13", "role": "forward", "address": "127.0.0.1:3128", "options": { "mem": "64MB" },
        "configuration": ["device/squid.conf"],
        "result": { "cpu_s": 12.5, "resident_bytes": 88080384, "log": { "requests": 4000, "hits": 2100 } },
    } });
    fs::write(dir.path().join(crate::run_dir::MANIFEST), manifest.to_string()).unwrap();
    fs::create_dir(dir.path().join("device")).unwrap();
    fs::write(dir.path().join("device/squid.conf"), "cache_mem <64> MB").unwrap();
    let usage = "seconds,cpu_seconds,resident_bytes,processes\n1,0.5,52428800,1\n2,0.75,53477376,1\n3,1.25,54525952,1\n";
    fs::write(dir.path().join(crate::device::USAGE), usage).unwrap();
    let page = html_with(&facts, &Extras::of_run(dir.path()));
    let (top, rest) = page.split_once("<section id=").unwrap();
    assert!(top.contains("<h1>squid 6.13 under "), "{top}");
    for shown in [
        "mem=64MB",
        "12.50 s of processor time (",
        "84.0 MB of memory",
        "2,100 hits in 4,000 requests; robots saw ",
    ] {
        assert!(top.contains(shown), "{shown}");
    }
    assert!(rest.contains("cache_mem &lt;64&gt; MB") && rest.contains("id=\"fig-device-memory\""));
    let (_, cpu) = rest.split_once("<figure id=\"fig-device-cpu\">").unwrap();
    let (cpu, _) = cpu.split_once("</figure>").unwrap();
    assert!(cpu.contains("<td>25.0</td>") && cpu.contains("<td>50.0</td>"), "percent of a core: {cpu}");
    assert!(!html(&facts).contains("id=\"device\""));
}

#[test]
fn every_figure_is_there() {
    let run = Run { error: Some((40, ErrorKind::BadStatus)), ..Run::default() };
    let page = html(&fold(&run.logs()).unwrap());
    let figures: Vec<_> = attributes(&page, "id").into_iter().filter(|id| id.starts_with("fig-")).collect();
    let drawn = figures.iter().filter(|id| !id.ends_with("-t") && !id.ends_with("-d")).count();
    assert_eq!(drawn, 19, "{figures:?}");
    let sections: Vec<_> =
        page.split("<section id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let all = [
        "load",
        "response-time",
        "hits",
        "correctness",
        "traffic",
        "popularity",
        "connections",
        "errors",
        "phases",
        "scopes",
        "health",
        "configuration",
        "glossary",
    ];
    assert_eq!(sections, all);
}

#[test]
fn what_was_not_measured_is_not_shown() {
    let page = |logs: &[Log]| html(&fold(logs).unwrap());
    let server = page(&[Run::default().server()]);
    assert!(!server.contains("id=\"hits\"") && !server.contains("Document hit ratio<"));
    let nothing = page(&runs().remove(3).1);
    assert!(nothing.contains("INVALID") && !nothing.contains("<figure id=\"fig-rptm\""));
}

#[test]
fn a_rich_workload_shows_its_kinds() {
    let page = |run: Run| html(&fold(&run.logs()).unwrap());
    let rich = page(Run { rich: true, ..Run::default() });
    let plain = page(Run::default());
    for shown in [
        "<th scope=\"row\">conditional requests answered with 304</th>",
        "Kinds of content, phase meas",
        "Pages, phase meas",
        "Validations by the device",
        "Closed connections, phase meas",
        "while idle, by the peer",
        "names looked up",
        "replies with cookies",
        "The cache is too small, ",
        "the object had been evicted after an earlier hit",
    ] {
        assert!(rich.contains(shown), "{shown}");
        assert!(!plain.contains(shown) || shown.starts_with("Closed"), "{shown}");
    }
}

#[test]
fn correctness_is_a_section_of_its_own() {
    let section = |run: Run| {
        let page = html(&fold(&run.logs()).unwrap());
        let (_, rest) = page.split_once("<section id=\"correctness\">").unwrap();
        rest.split_once("</section>").unwrap().0.to_owned()
    };
    let clean = section(Run::default());
    assert!(clean.contains("<li>No correctness error in ") && !clean.contains("<table"), "{clean}");
    let wrong = section(rich_run());
    for shown in [
        "c202: private reply given to another robot",
        "which must not be stored, was delivered to another user",
        "<th scope=\"row\">expected</th><td>4096 bytes</td>",
        "<th scope=\"row\">reply header</th><td>Via: 1.1 &lt;device&gt;</td>",
    ] {
        assert!(wrong.contains(shown), "{shown}\n{wrong}");
    }
    let (leak, stale) = (wrong.find("c202: ").unwrap(), wrong.find("c33: ").unwrap());
    assert!(leak < stale, "wrong content comes first");
}

#[test]
fn foreign_text_is_escaped() {
    let page = html(&fold(&runs().pop().unwrap().1).unwrap());
    assert!(!page.contains("<b>") && !page.contains("<label>"));
}

/// The cells of the row with that heading in the table with that caption.
fn cells<'a>(page: &'a str, caption: &str, heading: &str) -> Vec<&'a str> {
    let (_, table) =
        page.split_once(&format!("<caption>{caption}</caption>")).unwrap_or_else(|| panic!("{caption}"));
    let (table, _) = table.split_once("</table>").unwrap();
    let (_, row) =
        table.split_once(&format!("<th scope=\"row\">{heading}</th>")).unwrap_or_else(|| panic!("{heading}"));
    let (row, _) = row.split_once("</tr>").unwrap();
    row.split("<td>").skip(1).map(|cell| cell.trim_end_matches("</td>")).collect()
}

/// The report folds files as it reads them, `lx` reads them first; both must say the same.
#[test]
fn the_numbers_are_those_of_lx() {
    let dir = tempfile::tempdir().unwrap();
    let run = Run { rich: true, error: Some((40, ErrorKind::BadStatus)), ..Run::default() };
    let paths = [polygraph_stats::Side::Client, polygraph_stats::Side::Server].map(|side| {
        let path = dir.path().join(side.name()).with_extension("log");
        fs::write(&path, run.bytes(side)).unwrap();
        path
    });
    let out = dir.path().join("report.html");
    write_report(&paths, &out).unwrap();
    let page = fs::read_to_string(&out).unwrap();
    let logs: Vec<Log> = paths.iter().map(|path| Log::open(path).unwrap()).collect();
    for (caption, phases) in [("phase meas", &["meas"][..]), ("all phases", &["warm", "meas", "cool"])] {
        let options = crate::lx::LxOptions {
            phases: phases.iter().map(|name| (*name).to_owned()).collect(),
            ..Default::default()
        };
        let figures: serde_json::Value =
            serde_json::from_str(&crate::lx::lx_json(&logs, &options).unwrap()).unwrap();
        let lx = |name: &str| -> Option<f64> {
            figures["figures"].get(name).unwrap_or_else(|| panic!("{name}")).as_f64()
        };
        let fixed = |name: &str, decimals| text::number(lx(name), decimals);
        let percent = |name: &str| format!("{} %", fixed(name, 2));
        let load = |row| cells(&page, &format!("Load, {caption}"), row);
        assert_eq!(load("offered")[..2], [fixed("req_rate", 2), fixed("xact.started", 0)]);
        assert_eq!(load("finished")[..2], [fixed("rep_rate", 2), fixed("xact.finished", 0)]);
        assert_eq!(load("succeeded")[1..], [fixed("ok_xact.count", 0), fixed("rep.bwidth", 2)]);
        for (row, prefix) in
            [("all", "baseline.rptm"), ("hits", "hit.rptm"), ("uncachable", "uncachable.rptm")]
        {
            let want: Vec<String> = ["count", "mean", "p50", "p90", "p95", "p99", "max"]
                .iter()
                .map(|leaf| {
                    let value = lx(&format!("{prefix}.{leaf}"));
                    if *leaf == "count" { text::number(value, 0) } else { text::short(value) }
                })
                .collect();
            assert_eq!(cells(&page, &format!("Response time in ms, {caption}"), row), want, "{row}");
        }
        let hits = |row| cells(&page, &format!("Hit ratio, {caption}"), row);
        assert_eq!(hits("measured, from benchmark header fields"), [percent("rep_dhr"), percent("rep_bhr")]);
        assert_eq!(hits("ideal: a cache that keeps everything"), [percent("req_dhr"), percent("req_bhr")]);
        let connections =
            cells(&page, &format!("Concurrent connections and transactions, {caption}"), "connections");
        assert_eq!(
            connections[..3],
            [fixed("conn.open.started", 0), fixed("conn.open.finished", 0), fixed("conn.open.level.mean", 1)]
        );
        let images = cells(&page, &format!("Kinds of content, {caption}"), "image");
        assert_eq!(images[0], fixed("cont_type.image.size.count", 0));
    }
}

#[test]
fn two_sided_hit_ratios_come_from_counts_of_both_sides() {
    let facts = fold(&Run { rich: true, ..Run::default() }.logs()).unwrap();
    let view = view::View::headline(&facts).unwrap();
    let two = view.two_sided().unwrap();
    let server = &facts.server.as_ref().unwrap().phase("meas").unwrap().scope.as_ref().unwrap().block;
    let client = &view.scope.block;
    let want = 100.0 * (client.ok_count() as f64 - server.ok_count() as f64) / client.ok_count() as f64;
    assert!((two.hits[0].unwrap() - want).abs() < 1e-9);
    let useless = server.validations.useless.size.count() as f64;
    assert!(useless > 0.0);
    let cheap = want + 100.0 * useless / client.ok_count() as f64;
    assert!((two.cheap[0].unwrap() - cheap).abs() < 1e-9);
    // Without the servers' logs nobody knows.
    let alone = fold(&[Run::default().client()]).unwrap();
    assert_eq!(view::View::headline(&alone).unwrap().two_sided(), None);
}

#[test]
fn a_trace_is_shown_beside_the_run() {
    let facts = fold(&Run::default().logs()).unwrap();
    let trace = Curve::of_counts((1..=1000).map(|rank| 5_000 / rank).collect()).unwrap();
    let page =
        html_with(&facts, &Extras { trace: Some(("urls.txt".to_owned(), trace)), ..Extras::default() });
    assert_eq!(cells(&page, "Requests and objects, whole run", "trace urls.txt")[1], "1,000");
    assert!(page.contains("</svg>trace urls.txt</span>") && page.contains("Zipf"));
    assert!(!html(&facts).contains("urls.txt"));
}

/// A result directory holds more than logs.
#[test]
fn predictions_and_cuts_are_shown() {
    let dir = tempfile::tempdir().unwrap();
    let facts = fold(&Run { workload_text: "use(R < S);".into(), ..Run::default() }.logs()).unwrap();
    let plain = html_with(&facts, &Extras::of_run(dir.path()));
    assert_eq!(plain, html(&facts));
    assert_eq!(plain.matches("use(R &lt; S);").count(), 1, "both sides have the same text");
    let cut = crate::downtime::PowerCut { killed_s: 10.0, restarted_s: Some(15.0), listening_s: None };
    let downtime = crate::downtime::downtime(&Run::default().client().log, cut);
    fs::write(dir.path().join(crate::downtime::DOWNTIME), serde_json::to_string(&downtime).unwrap()).unwrap();
    let prediction = r#"{ "prediction": { "device": "lru:1GB", "phases": [{ "phase": "meas",
        "rep_rate": { "measured": 99.5, "predicted": 100.25 }, "dhr": { "measured": 55.0, "predicted": null } }] } }"#;
    fs::write(dir.path().join(crate::run_dir::MANIFEST), prediction).unwrap();
    let page = html_with(&facts, &Extras::of_run(dir.path()));
    let caption = "Measured, and predicted by a simulation (device: lru:1GB)";
    assert_eq!(cells(&page, caption, "meas"), ["99.50", "100.25", "55.00", text::UNDEFINED]);
    let restart = cells(&page, "When the device was available again", "device started again");
    assert_eq!(restart, ["15.00", "+5.00", "+0.00"]);
    assert!(page.contains("<section id=\"downtime\">") && page.contains("<li>outage seen by the robots: "));
}

#[test]
fn reports_are_written_and_failures_named() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("client.log");
    fs::write(&log, Run::default().bytes(polygraph_stats::Side::Client)).unwrap();
    let out = dir.path().join("report.html");
    let facts = write_report(std::slice::from_ref(&log), &out).unwrap();
    assert_eq!(facts.verdict.outcome, crate::VerdictOutcome::Valid);
    assert_eq!(fs::read_to_string(&out).unwrap(), html(&facts));
    let error = |result: Result<RunFacts, ReportError>| result.unwrap_err().to_string();
    assert!(error(write_report(&[log], dir.path())).starts_with("cannot write "));
    assert!(error(write_report(&[out], &dir.path().join("x"))).ends_with("is not a polygraph log"));
    assert_eq!(error(write_report(&[], &dir.path().join("x"))), "no log given");
}
