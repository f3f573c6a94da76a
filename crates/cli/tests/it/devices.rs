//! Devices of Debian's packages in the path of a run; PolyMix-1 through Squid in a shortened form: one tenth of the
//! think time, 40 s.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::sandbox::{Done, Sandbox, quiet, valid};

/// Mean and standard deviation in milliseconds of a normal distribution with mean 300 ms and deviation 150 ms
/// whose negative draws count as zero.
const THINK_MEAN: f64 = 301.3;
const THINK_SD: f64 = 147.0;

fn polymix_1(device: &str, seconds: u32) -> (Sandbox, Done) {
    let sandbox = Sandbox::new();
    let words = format!("run {device} --req_rate 150/sec --xact_think norm:300ms,150ms --goal {seconds}s");
    let done = sandbox.polygraph(&words);
    (sandbox, done)
}

/// What the manifest of the only result directory says of the device.
fn device_in_manifest(sandbox: &Sandbox) -> Value {
    let text = std::fs::read_to_string(sandbox.result().join("manifest.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap()["device"].take()
}

#[test]
fn polymix_1_through_squid() {
    let _quiet = quiet();
    let (sandbox, done) = valid(|| polymix_1("--device squid", 40));
    let log = sandbox.result().join("client.log");
    let (meas, _) = sandbox.lx("--phase meas", &log);

    // 36 s at 150/s: n = 5400 with a standard deviation of sqrt(n) = 73.
    let n = meas["ok_xact.count"];
    assert!((n - 5400.0).abs() < 4.0 * 73.0, "{n} transactions");
    assert_eq!(meas["err_cnt"], 0.0);

    // Each of n requests offers a hit with probability 0.55: sigma = 0.68 points. Squid must hit on all of them.
    let sigma = 100.0 * (0.55 * 0.45 / n).sqrt();
    let (offered, measured) = (meas["req_dhr"], meas["rep_dhr"]);
    assert!((measured - 55.0).abs() < 4.0 * sigma, "document hit ratio {measured} %, sigma {sigma}");
    assert!((measured - offered).abs() < 0.5, "document hit ratio {measured} % of {offered} % offered");

    // 45 % of the transactions wait for a server, the others for nothing; Squid adds a little to all.
    let mean = 0.45 * THINK_MEAN;
    let square = 0.45 * (THINK_MEAN.powi(2) + THINK_SD.powi(2));
    let sigma = ((square - mean * mean) / n).sqrt();
    let found = meas["resp_tm_mean"];
    assert!(found > mean - 4.0 * sigma && found < mean + 4.0 * sigma + 20.0, "mean {found} ms");

    // What Squid logged as hits of any kind is what the client saw as hits, warm-up and cool-down included.
    let (all, _) = sandbox.lx("", &log);
    let device = device_in_manifest(&sandbox);
    let logged = |name: &str| device["result"]["log"][name].as_f64().unwrap_or_else(|| panic!("{device:#}"));
    let transactions = all["xact.started"];
    assert!((logged("requests") - transactions).abs() <= 0.005 * transactions, "{transactions}: {device:#}");
    let hits = all["hit.rptm.count"];
    assert!((logged("hits") - hits).abs() <= 0.005 * transactions, "{hits} hits: {device:#}");
    assert_eq!(logged("unreadable_lines"), 0.0);
    assert!(device["result"]["cpu_s"].as_f64().is_some_and(|cpu| cpu > 0.0 && cpu < 80.0), "{device:#}");
    assert!(done.out.contains("device         squid "), "{}", done.out);
    let report = std::fs::read_to_string(sandbox.result().join("report.html")).unwrap();
    assert!(report.contains("VALID") && report.contains("</html>"));
    assert!(done.out.contains("report.html"), "{}", done.out);
}

#[test]
fn without_a_proxy_nothing_hits_and_responses_take_the_think_time() {
    let _quiet = quiet();
    let (sandbox, _) = valid(|| polymix_1("--no-proxy", 20));
    let log = sandbox.result().join("client.log");
    let (meas, _) = sandbox.lx("--phase meas", &log);
    let n = meas["ok_xact.count"];
    assert!((n - 2700.0).abs() < 4.0 * 52.0, "{n} transactions");
    assert_eq!((meas["err_cnt"], meas["rep_dhr"], meas["hit.rptm.count"]), (0.0, 0.0, 0.0));
    let sigma = THINK_SD / n.sqrt();
    let found = meas["resp_tm_mean"];
    assert!((found - THINK_MEAN).abs() < 4.0 * sigma + 5.0, "mean {found} ms, sigma {sigma}");
    // Both sides count the same transactions.
    let (client, _) = sandbox.lx("", &log);
    let (server, _) = sandbox.lx("--side srv", sandbox.result().join("server.log"));
    let missing = client["ok_xact.count"] - server["ok_xact.count"];
    assert!(missing.abs() <= 5.0, "client and server differ by {missing} transactions");
}

#[test]
fn every_role_is_put_into_the_path() {
    for (device, stores) in [
        ("builtin", true),
        ("builtin-surrogate", true),
        ("trafficserver", true),
        ("varnish", true),
        ("nginx", true),
        ("haproxy", false),
    ] {
        let sandbox = Sandbox::new();
        let words =
            format!("run --device {device} --req_rate 60/sec --xact_think none --goal 6s --cool_phase 1s");
        let done = sandbox.polygraph(&words);
        let (all, _) = sandbox.lx("", sandbox.result().join("client.log"));
        let found = device_in_manifest(&sandbox);
        let logged =
            |name: &str| found["result"]["log"][name].as_f64().unwrap_or_else(|| panic!("{found:#}"));
        assert_eq!(all["err_cnt"], 0.0, "{device}: {done:?}");
        // A transaction or two may be under way at the end. The look before the test counts nowhere.
        let n = all["xact.started"];
        assert!(n > 200.0 && (logged("requests") - n).abs() <= 2.0, "{device}, {n} transactions: {found:#}");
        let hits = all["hit.rptm.count"];
        assert!((logged("hits") - hits).abs() <= 2.0, "{device}, {hits} hits: {found:#}");
        assert_eq!(hits > 0.2 * n, stores, "{device}: {hits} hits");
        let kept = sandbox.result().join("device");
        for file in found["configuration"].as_array().unwrap() {
            assert!(sandbox.result().join(file.as_str().unwrap()).is_file(), "{device}: {file}");
        }
        assert!(kept.join("usage.csv").is_file(), "{device}");
        assert_eq!(found["configuration"].as_array().unwrap().is_empty(), device.starts_with("builtin"));
    }
}

#[test]
fn devices_are_listed_with_their_versions() {
    let done = Sandbox::new().polygraph("devices");
    assert_eq!(done.code(), Some(0), "{done:?}");
    let words = |line: &str| -> [String; 3] {
        let mut words = line.split_whitespace().map(str::to_owned);
        std::array::from_fn(|_| words.next().unwrap_or_default())
    };
    let devices: Vec<[String; 3]> =
        done.out.lines().filter(|line| !line.starts_with(' ')).map(words).collect();
    let roles: Vec<[&str; 2]> =
        devices.iter().map(|[name, role, _]| [name.as_str(), role.as_str()]).collect();
    let expected = [
        ["builtin", "forward"],
        ["builtin-surrogate", "surrogate"],
        ["squid", "forward"],
        ["squid-bump", "forward"],
        ["trafficserver", "forward"],
        ["trafficserver-surrogate", "surrogate"],
        ["varnish", "surrogate"],
        ["nginx", "surrogate"],
        ["nginx-forward", "forward"],
        ["haproxy", "balancer"],
        ["caddy", "balancer"],
        ["haproxy-proxies", "forward"],
    ];
    assert_eq!(roles, expected, "{}", done.out);
    for [name, _, version] in &devices[2..] {
        assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{name}: {}", done.out);
    }
    assert!(done.out.contains("store_type=aufs|rock"), "{}", done.out);
}

/// A device in the test's folder whose program is not on this machine.
#[test]
fn a_missing_program_is_named_with_its_package() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path().join("mine")).unwrap();
    let text = "summary='s'\nrole='forward'\nprogram='no-such-program'\npackage='some-package'\nversion=[]\n\
        args=[]\n[log]\nfile='l'\nresult_column=1\nbytes_column=2\n";
    sandbox.write("mine/device.toml", text);
    let done = sandbox.polygraph("run --device mine --goal 5s");
    assert_eq!(done.code(), Some(3), "{done:?}");
    assert!(
        done.err.contains("no-such-program") && done.err.contains("apt-get install some-package"),
        "{done:?}"
    );
}

#[test]
fn a_killed_run_leaves_no_device_behind() {
    for device in ["squid", "nginx", "varnish", "haproxy", "trafficserver"] {
        let sandbox = Sandbox::new();
        let mut run =
            sandbox.start(&format!("run --device {device} --req_rate 5/sec --goal 60s --verb_lvl 2"));
        let port = run.port(&format!(" {device} "));
        // Statistics mean that the run has begun.
        run.wait_for("i-");
        run.signal(Signal::KILL);
        assert_eq!(run.finish().killed_by(), Some(Signal::KILL));
        let deadline = Instant::now() + Duration::from_secs(30);
        while TcpListener::bind(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < deadline, "{device} still listens at port {port}");
            std::thread::sleep(Duration::from_millis(20));
        }
        let found = device_in_manifest(&sandbox);
        // Another test's `net clean` may have removed it already.
        match std::fs::remove_dir_all(found["work_directory"].as_str().unwrap()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{error}"),
            _ => {}
        }
    }
}
