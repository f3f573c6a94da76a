//! What a first user and a CI server meet: help, names, refused options, results for people and for programs.

use rustix::process::Signal;
use serde_json::Value;

use crate::sandbox::{Sandbox, free_port};

/// A run of some seconds without a device, with further options.
const RUN: &str =
    "run --no_proxy --req_rate 100/sec --xact_think none --goal 3s --cool_phase 0s --predict no --loops 1";

#[test]
fn results_for_programs() {
    let sandbox = Sandbox::new();
    let done = sandbox
        .polygraph(&format!("{RUN} --json --junit ci.xml --expect rptm.p95<0.0001ms --expect err_pct<=100%"));
    let found: Value = serde_json::from_str(&done.out).unwrap_or_else(|e| panic!("{e}: {done:?}"));
    let verdict = found["verdict"].as_str().unwrap();
    assert!(["valid", "invalid", "failed"].contains(&verdict.to_lowercase().as_str()), "{found:#}");
    assert_eq!(found["expected"][0]["holds"], false, "{found:#}");
    assert_eq!(found["expected"][1]["holds"], true, "{found:#}");
    let path = |name: &str| sandbox.path().join(found[name].as_str().unwrap());
    assert!(path("report").is_file() && path("directory").is_dir(), "{found:#}");
    assert!(found["rate"].as_f64().is_some_and(|rate| rate > 10.0), "{found:#}");
    let xml = sandbox.read("ci.xml");
    assert!(xml.contains("tests=\"3\"") && xml.contains("name=\"expect rptm.p95&lt;0.0001ms\""), "{xml}");
    assert!(xml.contains("not met") && xml.trim_end().ends_with("</testsuites>"), "{xml}");

    // The directory stands for its logs.
    let directory = found["directory"].as_str().unwrap();
    for command in ["lx", "lr", "ltrace --objects name,rep_rate --win_len 1s"] {
        let by_name = sandbox.polygraph(&format!("{command} {directory}"));
        let one_by_one =
            sandbox.polygraph(&format!("{command} {directory}/client.log {directory}/server.log"));
        assert_eq!((by_name.code(), &by_name.out), (Some(0), &one_by_one.out), "{command}: {by_name:?}");
        assert!(!by_name.out.is_empty(), "{command}");
    }
    let none = sandbox.polygraph("lx .");
    assert!(none.code() == Some(4) && none.err.contains("no logs"), "{none:?}");

    let list = sandbox.polygraph("lx --list --json --objects rep");
    let list: Value = serde_json::from_str(&list.out).unwrap();
    let list = list["figures"].as_array().unwrap();
    assert!(
        list.len() > 5
            && list.iter().all(|figure| figure["name"].is_string() && figure["definition"].is_string())
    );
    let devices = sandbox.polygraph("devices --json");
    let devices: Value = serde_json::from_str(&devices.out).unwrap();
    let squid =
        devices["devices"].as_array().unwrap().iter().find(|device| device["name"] == "squid").unwrap();
    let options = squid["options"].as_array().unwrap();
    assert!(
        squid["version"].is_string() && options.iter().any(|option| option["name"] == "store_type"),
        "{squid:#}"
    );
}

#[test]
fn a_run_that_cannot_begin_is_told_to_programs_too() {
    let sandbox = Sandbox::new();
    let done = sandbox.polygraph("run --proxy 127.0.0.1:1 --json --junit ci.xml --goal 3s");
    assert_eq!(done.code(), Some(3), "{done:?}");
    let found: Value = serde_json::from_str(&done.out).unwrap();
    assert!(
        found["verdict"].is_null() && found["headline"].as_str().unwrap().contains("nothing listens"),
        "{found}"
    );
    let xml = sandbox.read("ci.xml");
    assert!(xml.contains("errors=\"1\"") && xml.contains("nothing listens"), "{xml}");
}

#[test]
fn what_is_refused_leaves_nothing_behind() {
    let sandbox = Sandbox::new();
    sandbox.write("plan.toml", "title = \"x\"\nrates = [10]\n[[device]]\nname = \"a\"\ndevice = \"squib\"\n");
    sandbox.write("fine.toml", "title = \"x\"\nrates = [10]\n[[device]]\nname = \"a\"\ndevice = \"builtin\"\noptions = { mem = \"4MB\" }\n");
    sandbox.write("x.log", "this is no log, but somebody's");
    for (words, code, text) in [
        ("run --device squid --device_opt store_type=paper", 2, "store_type"),
        ("run --device squid --device_opt memory=5", 2, "its settings are: listen, mem, disk,"),
        (
            "run --device builtin --device_opt memory=5",
            2,
            "its settings are: listen, mem, workers, hosts, cert, service_rate",
        ),
        ("run --no_proxy --open_conn_lmt 4000000000", 3, "--open_conn_lmt"),
        ("run --no_proxy --config nofile.pg", 2, "nofile.pg"),
        (
            "run --device haproxy --device_opt http2=frontend",
            2,
            "speaks HTTP/2 with robots, and robots speak HTTP/1.1",
        ),
        ("run --device nginx --http_version 2", 2, "robots speak HTTP/2: add --device_opt http2=on"),
        ("peak --device squid --device_opt store_type=paper --req_rate 10/sec", 2, "store_type"),
        ("downtime --device squid --device_opt store_type=paper", 2, "store_type"),
        ("simulate nofile.pg", 2, "nofile.pg"),
        ("client --config nofile.pg --log x.log", 2, "nofile.pg"),
        ("client --open_conn_lmt 4000000000 --log x.log", 3, "--open_conn_lmt"),
        ("server --config nofile.pg --log x.log", 2, "nofile.pg"),
        ("bakeoff plan.toml --dry_run", 2, "squib"),
        ("bakeoff plan.toml", 2, "squib"),
        ("bb --device squib --rates 10", 2, "squib"),
    ] {
        let done = sandbox.polygraph(words);
        assert_eq!(done.code(), Some(code), "{words}: {done:?}");
        assert!(done.err.contains(text), "{words}: {done:?}");
        assert!(!sandbox.path().join("runs").join("bakeoff").exists(), "{words}");
        let left = std::fs::read_dir(sandbox.path().join("runs")).map_or(0, |entries| entries.count());
        assert_eq!(left, 0, "{words}");
        assert!(!sandbox.path().join("x.log.old").exists(), "{words}");
    }
    let dry = sandbox.polygraph("bakeoff fine.toml --dry_run");
    assert!(dry.code() == Some(0) && !sandbox.path().join("runs").join("bakeoff").exists(), "{dry:?}");
}

#[test]
fn options_that_a_workload_replaces_name_the_way() {
    let sandbox = Sandbox::new();
    let done = sandbox.polygraph("run --no_proxy --config x.pg --req_rate 10/sec");
    assert!(done.code() == Some(2) && done.err.contains("--set NAME=VALUE"), "{done:?}");
    let done = sandbox.polygraph("run --no_proxy --proxy 127.0.0.1:1");
    assert!(done.code() == Some(2) && !done.err.contains("--set"), "{done:?}");
}

#[test]
fn help_is_short_at_first_and_whole_if_wanted() {
    let sandbox = Sandbox::new();
    let options = |text: &str| text.lines().filter(|line| line.starts_with("      --")).count();
    for command in ["run", "client", "server", "peak", "simulate", "downtime", "proxy"] {
        let (short, whole) =
            (sandbox.polygraph(&format!("{command} -h")), sandbox.polygraph(&format!("{command} --help")));
        assert!(options(&short.out) <= 11, "{command}: {}", short.out);
        assert!(options(&whole.out) > options(&short.out), "{command}: {}", whole.out);
        assert!(whole.out.contains("Values:") && whole.out.contains("100usec"), "{command}: {}", whole.out);
        for line in short.out.lines().chain(whole.out.lines()).filter(|line| !line.contains("polygraph ")) {
            assert!(line.chars().count() <= 110, "{command}: {line}");
        }
    }
    let all = sandbox.polygraph("--help").out;
    for text in ["Measure:", "Results:", "  run ", "  lx ", "polygraph try"] {
        assert!(all.contains(text), "{text}: {all}");
    }
    assert!(all.find("Measure:") < all.find("  run "), "{all}");
}

#[test]
fn unknown_names_say_what_to_do() {
    let sandbox = Sandbox::new();
    for (name, text) in [("cdb", "content_db"), ("polyfoo", "not a name of this program")] {
        sandbox.link(name);
        let program = sandbox.path().join(name);
        let done = sandbox.start_program(program.to_str().unwrap(), "").finish();
        assert_eq!((done.code(), done.out.as_str()), (Some(2), ""), "{done:?}");
        assert!(
            done.err.starts_with("error: ") && done.err.contains(text) && done.err.lines().count() == 1,
            "{done:?}"
        );
    }
}

#[test]
fn a_client_without_a_workload_uses_a_surrogate() {
    let sandbox = Sandbox::new();
    let mut server = sandbox.start("server --listen 127.0.0.1:0 --log srv.log");
    let device = server.port("listening at");
    // Nothing listens at the origin server's address, and its name has none.
    for origin in ["127.0.0.1:1", "www.example.invalid:80"] {
        let words =
            format!("client --surrogate 127.0.0.1:{device} --origin {origin} --goal 50 --log clt.log");
        let client = sandbox.polygraph(&words);
        assert_eq!(client.code(), Some(0), "{client:?}");
    }
    let words = format!("client --surrogate 127.0.0.1:{} --origin 127.0.0.1:{device} --goal 50", free_port());
    let client = sandbox.polygraph(&words);
    assert!(client.code() == Some(3) && client.err.contains("nothing listens"), "{client:?}");
    server.stop();
}

#[test]
fn each_part_of_a_bench_ends_with_what_it_did_and_what_is_next() {
    let sandbox = Sandbox::new();
    let mut server = sandbox.start("server --listen 127.0.0.1:0 --log srv.log");
    let origin = server.port("listening at");
    let mut proxy = sandbox.start("proxy --port 0 --loops 1");
    let port = proxy.port("proxy at");
    let words = format!(
        "client --proxy 127.0.0.1:{port} --origin 127.0.0.1:{origin} --goal 200 --dhr 55p --settle_time 1ms"
    );
    let client = sandbox.polygraph(&format!("{words} --log clt.log"));
    assert_eq!(client.code(), Some(0), "{client:?}");
    for text in ["Judged by the client side alone:", "response time", "polygraph report clt.log SERVER.log"] {
        assert!(client.out.contains(text), "{text}: {client:?}");
    }
    let without = sandbox.polygraph(&words);
    assert!(without.out.contains("requests ") && without.out.contains("--log FILE"), "{without:?}");
    let done = proxy.stop();
    for text in ["requests", "answered from the store", "processor time"] {
        assert!(done.out.contains(text), "{text}: {done:?}");
    }
    assert!(!(done.out.clone() + &done.err).contains("Snapshot"), "{done:?}");
    server.signal(Signal::TERM);
    let done = server.finish();
    for text in ["requests ", "succeeded in", "polygraph report CLIENT.log srv.log"] {
        assert!(done.out.contains(text), "{text}: {done:?}");
    }
}
