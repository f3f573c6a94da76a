//! PolyMix-1 through Debian's Squid, in a shortened form: one tenth of the think time, 40 s.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::sandbox::{Done, Running, Sandbox, free_port, quiet, valid};

/// Squid in a folder of its own, configured as `devices/squid` says.
struct Squid {
    folder: Sandbox,
    process: Option<Running>,
    port: u16,
    service: String,
}

impl Squid {
    fn start() -> Squid {
        const PROGRAM: &str = "/usr/sbin/squid";
        assert!(Path::new(PROGRAM).exists(), "install Debian's package squid, or run `make test`");
        let folder = Sandbox::new();
        // Squid gives up root before it opens its files.
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        let port = free_port();
        let template = concat!(env!("CARGO_MANIFEST_DIR"), "/../../devices/squid/squid.conf");
        let config = std::fs::read_to_string(template).unwrap();
        let config = config.replace("@PORT@", &port.to_string());
        folder.write("squid.conf", &config.replace("@DIR@", &folder.path().display().to_string()));
        // A service name of its own, because Squids of one name share memory segments.
        let service = format!("polygraph{port}");
        let conf = folder.path().join("squid.conf");
        let words = format!("-N -d1 -n {service} -f {}", conf.display());
        let mut process = folder.start_program(PROGRAM, &words);
        process.wait_for("Accepting HTTP Socket connections");
        Squid { folder, process: Some(process), port, service }
    }

    /// Stops it; returns the result codes of its access log.
    fn stop(mut self) -> Vec<String> {
        self.process.take().unwrap().stop();
        let log = self.folder.read("access.log");
        log.lines().map(|line| line.split_whitespace().nth(3).unwrap().to_owned()).collect()
    }
}

impl Drop for Squid {
    fn drop(&mut self) {
        drop(self.process.take());
        // Squid leaves its segments behind, whatever way it ends.
        for name in ["metadata", "queues", "readers"] {
            let _ = std::fs::remove_file(format!("/dev/shm/{}-cf__{name}.shm", self.service));
        }
    }
}

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

#[test]
fn polymix_1_through_squid() {
    let _quiet = quiet();
    let mut codes = Vec::new();
    let (sandbox, done) = valid(|| {
        let squid = Squid::start();
        let result = polymix_1(&format!("--proxy 127.0.0.1:{}", squid.port), 40);
        codes = squid.stop();
        result
    });
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
    let squid_hits =
        codes.iter().filter(|code| code.split('/').next().unwrap().ends_with("HIT")).count() as f64;
    let transactions = all["xact.started"];
    assert!((codes.len() as f64 - transactions).abs() <= 0.005 * transactions, "{} logged", codes.len());
    let hits = all["hit.rptm.count"];
    assert!((squid_hits - hits).abs() <= 0.005 * transactions, "{hits} hits, in Squid's log {squid_hits}");
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
