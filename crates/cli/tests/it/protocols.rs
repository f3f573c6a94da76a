//! The matrix of protocols in `docs/protocols.md`: each cell that is supported runs for a few seconds. The table is written from
//! the list here.

use serde_json::Value;

use crate::sandbox::Sandbox;

/// How robots reach servers: the device, the versions of HTTP on both sides of it, and the options that make it so.
struct Cell {
    device: &'static str,
    robots: &'static str,
    servers: &'static str,
    options: &'static str,
}

const fn cell(
    device: &'static str,
    robots: &'static str,
    servers: &'static str,
    options: &'static str,
) -> Cell {
    Cell { device, robots, servers, options }
}

const CELLS: [Cell; 10] = [
    cell("none", "1.1", "1.1", "--no_proxy"),
    cell("none", "2", "2", "--no_proxy"),
    cell("haproxy", "1.1", "1.1", "--device haproxy"),
    cell("haproxy", "2", "1.1", "--device haproxy --device_opt http2=frontend"),
    cell("haproxy", "1.1", "2", "--device haproxy --device_opt http2=backend"),
    cell("haproxy", "2", "2", "--device haproxy --device_opt http2=both"),
    cell("nginx", "1.1", "1.1", "--device nginx"),
    cell("nginx", "2", "1.1", "--device nginx --device_opt http2=on"),
    cell("builtin", "1.1", "1.1", "--device builtin"),
    cell("trafficserver", "1.1", "1.1", "--device trafficserver"),
];

fn page() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocols.md")
}

fn table() -> String {
    let mut table =
        "| device | robots | servers | options of `polygraph run` |\n|---|---|---|---|\n".to_owned();
    for Cell { device, robots, servers, options } in CELLS {
        table += &format!("| {device} | {robots} | {servers} | `{options} --http_version {robots}` |\n");
    }
    table
}

#[test]
fn the_matrix_is_documented() {
    let (begin, end) = ("<!-- matrix -->\n", "<!-- end of the matrix -->\n");
    let text = std::fs::read_to_string(page()).unwrap();
    let (before, rest) = text.split_once(begin).expect("the page has a place for the table");
    let (_, after) = rest.split_once(end).expect("the place of the table ends");
    let expected = format!("{before}{begin}{}{end}{after}", table());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(page(), expected).unwrap();
    } else {
        assert!(
            text == expected,
            "docs/protocols.md is stale: UPDATE_DOCS=1 cargo test -p polygraph --test it protocols"
        );
    }
}

/// Runs a cell and checks what each side saw.
fn check(cell: &Cell) {
    let Cell { robots, servers, options, device } = cell;
    let sandbox = Sandbox::new();
    let load = "--pconn_use_lmt 1000 --req_rate 60/sec --xact_think 50ms --goal 6s --cool_phase 1s";
    let done = sandbox.polygraph(&format!("run {options} --http_version {robots} {load}"));
    let (client, _) = sandbox.lx("", sandbox.result().join("client.log"));
    let (server, _) = sandbox.lx("--side srv", sandbox.result().join("server.log"));
    let (n, ok) = (client["xact.started"], client["ok_xact.count"]);
    assert_eq!((client["err_cnt"], server["err_cnt"]), (0.0, 0.0), "{options}: {done:?}");
    assert!(n > 200.0, "{options}, {n} transactions: {done:?}");
    // All transactions of a side are over its version, and every body was compared.
    assert_eq!(client[&format!("version.{robots}.size.count")], ok, "{options}");
    assert_eq!(server[&format!("version.{servers}.size.count")], server["ok_xact.count"], "{options}");
    assert_eq!(client["streams.concurrent.count"] > 0.0, *robots == "2", "{options}");
    if *device == "none" {
        return;
    }
    let text = std::fs::read_to_string(sandbox.result().join("manifest.json")).unwrap();
    let found = serde_json::from_str::<Value>(&text).unwrap()["device"].take();
    let logged = |name: &str| found["result"]["log"][name].as_f64().unwrap_or_else(|| panic!("{found:#}"));
    // A transaction or two may be under way at the end.
    assert!((logged("requests") - n).abs() <= 2.0, "{options}, {n} transactions: {found:#}");
    assert!((logged("hits") - client["hit.rptm.count"]).abs() <= 2.0, "{options}: {found:#}");
}

#[test]
fn robots_and_servers_without_a_device() {
    CELLS.iter().filter(|cell| cell.device == "none").for_each(check);
}

#[test]
fn both_legs_of_haproxy() {
    CELLS.iter().filter(|cell| cell.device == "haproxy").for_each(check);
}

#[test]
fn nginx_with_and_without_streams() {
    CELLS.iter().filter(|cell| cell.device == "nginx").for_each(check);
}
