//! A device that is killed in the middle of a test.

use serde_json::Value;

use crate::sandbox::{Done, Sandbox, valid};

/// A short procedure at 60 requests per second, and its figures.
fn cut(words: &str) -> (Sandbox, Done, Value) {
    let (sandbox, done) = valid(|| {
        let sandbox = Sandbox::new();
        let done = sandbox.polygraph(&format!(
            "downtime {words} --warm 4sec --load 4sec --dark 2sec --meas 16sec --req_rate 60/sec --rep_sz const:2KB"
        ));
        (sandbox, done)
    });
    let text = sandbox.read(sandbox.result().join("downtime.json"));
    (sandbox, done, serde_json::from_str(&text).unwrap())
}

fn time(found: &Value, name: &str) -> f64 {
    found[name].as_f64().unwrap_or_else(|| panic!("{name}: {found:#}"))
}

#[test]
fn robots_say_when_the_device_was_away_and_when_it_came_back() {
    let (sandbox, done, found) = cut("--device builtin");
    let [killed, restarted] = ["killed_s", "restarted_s"].map(|name| time(&found["cut"], name));
    assert!((8.0..10.0).contains(&killed) && restarted - killed > 1.0, "{found:#}");
    let first_error = time(&found, "first_error_s");
    assert!((killed..restarted).contains(&first_error), "{found:#}");
    let reply = time(&found, "first_reply_s");
    assert!(reply >= restarted && reply < restarted + 5.0, "{found:#}");
    assert!(time(&found, "first_miss_s") >= reply);
    // What the store knew is lost: a hit needs an object that was fetched again before.
    assert!(time(&found, "first_hit_s") >= time(&found, "first_miss_s"), "{found:#}");
    assert!(time(&found, "errors") >= 30.0, "{found:#}");
    assert!(time(&found, "hits_before") > 0.2, "{found:#}");
    let table = sandbox.read(sandbox.result().join("downtime.txt"));
    assert!(done.out.contains(&table) && table.contains("outage seen by the robots: "), "{done:?}");
    assert!(sandbox.read(sandbox.result().join("report.html")).contains("<section id=\"downtime\">"));
    assert_eq!(done.code(), Some(0), "{done:?}");
}

#[test]
fn what_a_disk_keeps_is_a_hit_again() {
    // Memory is too small for anything that counts.
    let (_sandbox, done, found) = cut("--device squid --device_opt mem=64KB --device_opt disk=100MB");
    let restarted = time(&found["cut"], "restarted_s");
    let (reply, hit) = (time(&found, "first_reply_s"), time(&found, "first_hit_s"));
    assert!(reply >= restarted && hit >= reply, "{found:#}");
    assert!(time(&found, "hits_back_s") >= restarted, "{found:#}");
    assert_eq!(done.code(), Some(0), "{done:?}");
}

#[test]
fn a_workload_must_say_when_the_device_is_off() {
    let sandbox = Sandbox::new();
    let done = sandbox.polygraph("downtime");
    assert_eq!(done.code(), Some(2), "{done:?}");
    sandbox.write(
        "plain.pg",
        "Content C = { size = const(1KB); }; Server S = { contents = [C]; direct_access = contents;\n\
         addresses = ['127.102.3.1:9083']; }; Robot R = { origins = S.addresses; addresses = ['127.102.3.2']; };\n\
         Phase P = { name = \"meas\"; goal.duration = 1sec; }; schedule(P); use(S, R);",
    );
    let done = sandbox.polygraph("downtime --device builtin --config plain.pg");
    assert_eq!(done.code(), Some(2), "{done:?}");
    assert!(done.err.contains("no phase called `dark`"), "{done:?}");
}
