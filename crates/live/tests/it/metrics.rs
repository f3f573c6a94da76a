//! The metrics of a process, as another program reads them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};

use polygraph_live::from_records::SideStatistics;
use polygraph_live::{LiveStatistics, Publisher, metrics};
use polygraph_stats::Side;

use crate::records;

fn statistics(side: Side) -> LiveStatistics {
    let header = records::header(side);
    let mut made = SideStatistics::new(&header);
    for record in records::run(side, 12) {
        made.add(&header, &record);
    }
    made.now().clone()
}

/// The value of a sample.
fn value(page: &str, sample: &str) -> f64 {
    let line = page.lines().find(|line| line.starts_with(sample));
    line.unwrap_or_else(|| panic!("no {sample} in\n{page}")).rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn names_have_units_and_values_are_those_of_the_messages() {
    let page = metrics::page(&[statistics(Side::Client), statistics(Side::Server)]);
    for (sample, expected) in [
        ("polygraph_transactions_total{side=\"client\",result=\"ok\"}", 1200.0),
        ("polygraph_transactions_total{side=\"server\",result=\"failed\"}", 12.0),
        ("polygraph_response_time_seconds_total{side=\"client\"}", 1200.0 * 0.018),
        ("polygraph_hits_total{side=\"client\"}", 720.0),
        ("polygraph_basic_transactions_total{side=\"client\"}", 1200.0),
        ("polygraph_reply_bytes_total{side=\"client\"}", 1_200_000.0),
        ("polygraph_open_connections{side=\"server\"}", 7.0),
        ("polygraph_resident_memory_bytes{side=\"client\"}", 1_048_576.0),
        ("polygraph_phase{side=\"client\",phase=\"meas\",primary=\"yes\"}", 1.0),
        ("polygraph_phase_planned_seconds{side=\"client\"}", 10.0),
        ("polygraph_state{side=\"client\",state=\"running\"}", 1.0),
        ("polygraph_state{side=\"client\",state=\"ended\"}", 0.0),
        ("polygraph_start_time_seconds{side=\"client\"}", 1.7e9),
    ] {
        let found = value(&page, sample);
        assert!((found - expected).abs() <= expected * 0.01, "{sample}: {found}");
    }
    assert!(!page.contains("polygraph_hits_total{side=\"server\"}"), "servers do not see hits");
    assert!(page.contains("# UNIT polygraph_response_time_seconds seconds\n"), "{page}");
    assert!(page.ends_with("# EOF\n"), "{page}");
    assert_eq!(metrics::page(&[]), "# EOF\n", "before the first message");
}

/// Debian's `python3-prometheus-client` has a strict parser of the format.
#[test]
fn another_program_can_read_the_page() {
    let mut awkward = statistics(Side::Client);
    awkward.label = "a \"quoted\\ label\nof two lines".into();
    let page = metrics::page(&[awkward, statistics(Side::Server)]);
    let script = "import sys\n\
        from prometheus_client.openmetrics.parser import text_string_to_metric_families as read\n\
        families = list(read(sys.stdin.read()))\n\
        labels = [s.labels['label'] for f in families if f.name == 'polygraph_run_details' for s in f.samples]\n\
        print(len(families), sorted({f.type for f in families}), labels[0] == 'a \"quoted\\\\ label\\nof two lines')";
    let read = |page: &str| {
        let mut child = Command::new("/usr/bin/python3")
            .args(["-I", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("python3 (make test-deps)");
        child.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let good = read(&page);
    let said = String::from_utf8_lossy(&good.stdout);
    let problem = String::from_utf8_lossy(&good.stderr);
    assert!(good.status.success(), "{problem}\n{page}");
    assert!(said.contains("['counter', 'gauge'] True"), "{said}{problem}");
    let families: usize = said.split(' ').next().unwrap().parse().unwrap();
    assert!(families > 20, "{said}");
    // A parser that accepts everything would prove nothing.
    assert!(!read(&page.replace("# EOF\n", "")).status.success());
}

#[test]
fn the_page_is_served() {
    let mut publisher = Publisher::new().unwrap();
    let address = metrics::serve(SocketAddr::from(([127, 0, 0, 1], 0)), publisher.hub()).unwrap();
    let get = |words: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "{words} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    };
    let empty = get("GET /metrics");
    assert!(empty.starts_with("HTTP/1.1 200") && empty.ends_with("# EOF\n"), "{empty}");
    let header = records::header(Side::Client);
    records::run(Side::Client, 3).iter().for_each(|record| publisher.observe(&header, record));
    // Messages are made on another thread.
    let page = loop {
        let page = get("GET /metrics");
        if page.contains("result=\"ok\"} 300") {
            break page;
        }
        std::thread::yield_now();
    };
    assert!(page.contains("content-type: application/openmetrics-text; version=1.0.0"), "{page}");
    assert!(get("GET /").starts_with("HTTP/1.1 404"));
    let post = get("POST /metrics");
    assert!(post.starts_with("HTTP/1.1 405") && post.contains("allow: GET"), "{post}");
}
