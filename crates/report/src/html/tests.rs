use std::collections::HashSet;

use polygraph_stats::{EndReason, ErrorKind};

use super::*;
use crate::fold::{Log, fold};
use crate::figures::value;
use crate::testlog::Run;
use crate::text;

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

/// What a figure must have: a picture with a title and a description, a table with rows, data if it is interactive.
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
    if let Some((_, data)) = figure.split_once("<script type=\"application/json\">") {
        let data = data.split_once("</script>").unwrap().0;
        serde_json::from_str::<serde_json::Value>(data).unwrap_or_else(|e| panic!("{name} {id}: {e}"));
    }
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
        // Error samples quote URLs; nothing else names a place elsewhere.
        let elsewhere = page.matches("http").count() - page.matches("http-equiv").count();
        assert_eq!(elsewhere, page.matches("<code>http://127").count(), "{name}");
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
    let top = &page[..page.find("<nav").unwrap()];
    let scope = &facts.headline.as_ref().unwrap().scope;
    assert!(top.contains(">VALID<") && top.contains("phase meas, 30 s long"));
    for (name, decimals) in [("rep_rate", 1), ("rep_dhr", 1), ("rep_bhr", 1), ("err_pct", 2)] {
        let shown = text::number(value(name, scope), decimals);
        assert!(top.contains(&format!("<div class=\"value\">{shown}<")), "{name} {shown}");
    }
}

#[test]
fn every_figure_is_there() {
    let run = Run { error: Some((40, ErrorKind::BadStatus)), ..Run::default() };
    let page = html(&fold(&run.logs()).unwrap());
    let figures: Vec<_> = attributes(&page, "id").into_iter().filter(|id| id.starts_with("fig-")).collect();
    let drawn = figures.iter().filter(|id| !id.ends_with("-t") && !id.ends_with("-d")).count();
    assert_eq!(drawn, 11, "{figures:?}");
    let sections: Vec<_> =
        page.split("<section id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let all = [
        "load",
        "response-time",
        "hits",
        "correctness",
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
        "Requests, phase meas",
        "conditional requests answered with 304",
        "Kinds of content, phase meas",
        "Pages, phase meas",
        "Validations by the device",
        "Closed connections, phase meas",
        "idle, by the peer",
        "names looked up",
        "replies with cookies",
        "The cache is too small: ",
        "it had been a hit before: evicted",
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
        "made for one user, was delivered to another one",
        "<th scope=\"row\">expected</th><td>4096 bytes</td>",
        "<th scope=\"row\">reply header</th><td>Via: 1.1 &#60;device&#62;</td>",
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

#[test]
fn reports_are_written_and_failures_named() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("client.log");
    fs::write(&log, Run::default().bytes(polygraph_stats::Side::Client)).unwrap();
    let out = dir.path().join("report.html");
    let facts = write_report(std::slice::from_ref(&log), &out).unwrap();
    assert_eq!(facts.verdict.outcome, crate::Outcome::Valid);
    assert_eq!(fs::read_to_string(&out).unwrap(), html(&facts));
    let error = |result: Result<RunFacts, ReportError>| result.unwrap_err().to_string();
    assert!(error(write_report(&[log], dir.path())).starts_with("cannot write "));
    assert!(error(write_report(&[out], &dir.path().join("x"))).ends_with("is not a polygraph log"));
    assert_eq!(error(write_report(&[], &dir.path().join("x"))), "no log given");
}

/// A run of four hours, to measure time and memory of `polygraph report` with (docs/report.md).
#[test]
#[ignore = "writes a gigabyte to the directory REPORT_PAGES"]
fn logs_of_a_long_run() {
    let dir = std::env::var_os("REPORT_PAGES").map(PathBuf::from).expect("REPORT_PAGES is set");
    let run = Run { rate: 300.0, phases: [3600.0, 9600.0, 1200.0], rich: true, ..Run::default() };
    for side in [polygraph_stats::Side::Client, polygraph_stats::Side::Server] {
        fs::write(dir.join(format!("{}.log", side.name())), run.bytes(side)).unwrap();
    }
}
