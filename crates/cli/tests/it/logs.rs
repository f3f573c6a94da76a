//! Commands that read logs: statistics, traces, comparisons, tables.

use std::path::Path;
use std::process::Command;

use crate::sandbox::{Sandbox, free_port, valid};

const WORKLOAD: &str = "
    Content C = { size = exp(8KB); cachable = 80%; };
    Server S = {
        contents = [ C ]; direct_access = contents; addresses = ['127.0.0.1:PORT']; xact_think = const(5msec);
    };
    Robot R = {
        origins = S.addresses; req_rate = 75/sec; recurrence = 60%; addresses = ['127.0.0.1'] ** 2;
        pop_model = { pop_distr = popUnif(); };
    };
    StatsSample T = { capacity = 20; };
    Phase warm = { name = \"warm\"; goal.duration = 500msec; };
    Phase meas = { name = \"meas\"; goal.duration = 3sec; primary = true; stats_samples = [ T ]; };
    schedule(warm, meas);
    use(S, R);
";

/// A short run without a device; it leaves both logs.
fn run() -> (Sandbox, String) {
    let (sandbox, _) = valid(|| {
        let sandbox = Sandbox::new();
        sandbox.write("w.pg", &WORKLOAD.replace("PORT", &free_port().to_string()));
        let done = sandbox.polygraph("run --no-proxy --config w.pg");
        (sandbox, done)
    });
    let result = sandbox.result().display().to_string();
    (sandbox, result)
}

/// Standard output of a command that must succeed.
fn out(sandbox: &Sandbox, words: &str) -> String {
    let done = sandbox.polygraph(words);
    assert_eq!(done.code(), Some(0), "{words}: {done:?}");
    done.out
}

#[test]
fn logs_become_statistics_traces_and_tables() {
    let (sandbox, result) = run();
    let log = format!("{result}/client.log");

    // The command names figures that do not exist; if none exists, it fails.
    let done = sandbox.polygraph(&format!("lx --objects rep_rate,icp,nothing {log}"));
    assert_eq!((done.code(), done.out.lines().count()), (Some(0), 1), "{done:?}");
    assert!(done.err.contains("no figure `icp`: robots do not send ICP queries"), "{}", done.err);
    assert!(done.err.contains("no figure `nothing`"), "{}", done.err);
    let done = sandbox.polygraph(&format!("lx --objects ssl.req.rate {log}"));
    assert_eq!((done.code(), done.out.as_str()), (Some(4), ""), "{done:?}");
    assert!(out(&sandbox, "lx --list --all").contains("icp.*"));

    // Short names are those of `compare`.
    assert!(out(&sandbox, &format!("lx --objects dhr {log}")).starts_with("hit.ratio.obj: "));
    let done = sandbox.polygraph(&format!("lx --objects rptm.meen {log}"));
    assert!(done.code() == Some(4) && done.err.contains("did you mean baseline.rptm.mean,"), "{done:?}");

    // Every form says the same.
    let text = out(&sandbox, &format!("lx --phases meas --objects xact.started {log}"));
    let csv = out(&sandbox, &format!("lx --phases meas --objects xact.started --format csv {log}"));
    let count = text.trim().strip_prefix("xact.started: ").unwrap();
    assert_eq!(csv, format!("name,unit,value\nxact.started,,{count}\n"));
    let json: serde_json::Value =
        serde_json::from_str(&out(&sandbox, &format!("lx --phases meas --format json {log}"))).unwrap();
    let figure = |name: &str| json["figures"][name].as_f64().unwrap_or_else(|| panic!("{name}: {json:#}"));
    assert_eq!(count.parse(), Ok(figure("xact.started")));

    // What only a real run has: levels, bytes on their way, choices.
    let finished = figure("ok_xact.count");
    assert_eq!(figure("populus.level.last"), 2.0);
    let (opened, established) = (figure("conn.open.started"), figure("conn.estb.started"));
    assert!((opened - established).abs() <= 0.05 * opened, "{established} of {opened}");
    assert_eq!(figure("first_resp_byte_read.count"), figure("basic.size.count"));
    let (first, whole) = (figure("first_resp_byte_read.mean"), figure("basic.rptm.mean"));
    let told = figure("last_req_byte_written.mean");
    assert!(told < first && 4.0 < first && first <= whole + 0.001, "{told} {first} {whole}");
    assert!(
        figure("so_read.size.count") >= finished
            && figure("so_read.size.sum") >= figure("rep.size.sum") * 0.9
    );
    let wanted = figure("oid_gen.need.rep_pub.count");
    assert_eq!(wanted - figure("oid_gen.lack.rep_pub.count"), figure("oid_gen.gen.rep_pub.count"));
    assert!(wanted > 0.4 * figure("oid_gen.categories.count"), "{json:#}");
    assert_eq!(figure("rep_status_code.200.size.count"), finished);
    assert_eq!((figure("baseline.exchanges.mean"), figure("auth.none.size.count")), (1.0, finished));
    let server = format!("lx --side srv --phases meas --format json {result}/server.log");
    let server: serde_json::Value = serde_json::from_str(&out(&sandbox, &server)).unwrap();
    let written = server["figures"]["first_resp_byte_written.mean"].as_f64().unwrap();
    assert!(written > 4.9, "servers think for 5 ms: {written}");

    // Over time nothing is lost.
    sandbox.link("ltrace");
    let words = format!("--objects time,name,xact.started --win_len 1s --time_unit 1s --side clt {log}");
    let done = sandbox.start_program(sandbox.path().join("ltrace").to_str().unwrap(), &words).finish();
    let mut lines = done.out.lines();
    assert_eq!(lines.next(), Some("# time name xact.started"), "{done:?}");
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(' ').collect()).collect();
    let all = out(&sandbox, &format!("lx --prn_names no --phases all --objects xact.started {log}"));
    let traced: u64 = rows.iter().map(|row| row[2].parse::<u64>().unwrap()).sum();
    assert_eq!(traced.to_string(), all.trim());
    assert!(rows.len() >= 3 && rows.iter().any(|row| row[1] == "meas"), "{rows:?}");
    assert_eq!(sandbox.polygraph(&format!("ltrace --objects all {log}")).code(), Some(2));

    // An output differs from itself in nothing, and from the servers' in much.
    out(&sandbox, &format!("lx --out client.lx {log}"));
    out(&sandbox, &format!("lx --out server.lx --side srv {result}/server.log"));
    assert_eq!(out(&sandbox, "cmp-lx --scope all client.lx client.lx"), "");
    let done = sandbox.polygraph("cmp-lx client.lx server.lx");
    assert!(done.code() == Some(1) && done.out.contains("uniq"), "{done:?}");

    // Log by log, and from standard input.
    assert!(out(&sandbox, &format!("lr --phase {log}")).starts_with("warm: "));
    let piped =
        format!("exec {} lx --phases meas --objects xact.started - < {log}", env!("CARGO_BIN_EXE_polygraph"));
    let piped = Command::new("sh").args(["-c", &piped]).current_dir(sandbox.path()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&piped.stdout), text);

    tables(&sandbox, &result);
}

/// Logs of two runs are added up like those of one, but not silently.
#[test]
fn logs_that_are_not_those_of_one_run_cause_a_warning() {
    let sandbox = Sandbox::new();
    for name in ["a", "b"] {
        sandbox.write(&format!("{name}.pg"), &WORKLOAD.replace("PORT", "80"));
        out(&sandbox, &format!("simulate {name}.pg --out {name}"));
    }
    for command in
        ["lx --objects rptm.mean", "ltrace --objects rptm.mean", "export --format csv --out tables"]
    {
        let one = sandbox.polygraph(&format!("{command} a/client.log"));
        assert!(one.code() == Some(0) && !one.err.contains("one run"), "{one:?}");
        let two = sandbox.polygraph(&format!("{command} a/client.log b/client.log"));
        let warning = "warning: the logs may not come from one run: workloads differ (a.pg, b.pg)";
        assert!(two.code() == Some(0) && two.err.contains(warning), "{two:?}");
    }
}

/// A program of a clone is no release, and its logs, manifests and reports say the same as `--version`.
#[test]
fn results_name_the_build() {
    let sandbox = Sandbox::new();
    let version = out(&sandbox, "--version");
    let (version, missing) = version.trim().split_once('\n').unwrap_or((version.trim(), ""));
    assert_eq!(missing.contains("TLS and HTTP/3 (tls)"), !cfg!(feature = "tls"), "{missing}");
    let version = version.strip_prefix("polygraph ").unwrap();
    let build = version.strip_prefix(env!("CARGO_PKG_VERSION")).unwrap();
    let is_clone = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.git").exists();
    if option_env!("POLYGRAPH_BUILD").is_none() {
        assert_eq!(build, if is_clone { "+dev" } else { "" });
    }
    sandbox.write("w.pg", &WORKLOAD.replace("PORT", "80"));
    out(&sandbox, "simulate w.pg --out one");
    assert!(out(&sandbox, "lr one").contains(&format!(", version {version}, ")));
    let manifest: serde_json::Value =
        serde_json::from_slice(&std::fs::read(sandbox.path().join("one/manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["version"], version);
    let report = std::fs::read_to_string(sandbox.path().join("one/report.html")).unwrap();
    assert!(report.contains(&format!("polygraph {version}")), "the report names the version");
}

/// Exports in all forms and reads them with DuckDB and pandas, beside what `lx` says.
fn tables(sandbox: &Sandbox, result: &str) {
    let python = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../python/bin/python3");
    assert!(python.exists(), "there is no {}: run `make test-deps`", python.display());
    let mut words: Vec<String> = ["parquet", "csv", "jsonl"].map(String::from).to_vec();
    for format in &words {
        let done = sandbox.polygraph(&format!("export {result} --format {format} --out {format}"));
        assert_eq!(done.code(), Some(0), "{done:?}");
    }
    for side in ["client", "server"] {
        for phase in ["warm", "meas", "all"] {
            let file = format!("{side}-{phase}.json");
            let options = format!("--side {side} --phases {phase} --format json --out {file}");
            out(sandbox, &format!("lx {options} {result}/client.log {result}/server.log"));
            words.push(file);
        }
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../export/tests/check.py");
    let check =
        Command::new(python).arg("-B").arg(script).args(words).current_dir(sandbox.path()).output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
}
