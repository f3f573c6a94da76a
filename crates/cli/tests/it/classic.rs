//! The scripts of the 1999 deployment paper, run as they are printed there but for addresses, ports and
//! durations. Much of what typesetting did to them reaches the program, which understands it.
//!
//! Two things never reach the program. ` \setminus` at the end of a line is the paper's `\`: a shell would end
//! the command there, so it is set right here. And `./polysrv--port` is one word to a shell: it runs because
//! there is a link of that name.

use std::process::Command;

use rustix::process::Signal;

use crate::sandbox::{Done, Running, Sandbox, free_port};

const SFILL: &str = r"#!/bin/csh
#Fill server script file for Poly1 host at 200.100.50.10
./polysrv - - port 80 \
--verb_lvl 2 \
-- goal 1hr
";

const CFILL: &str = r"#!/bin/csh
#Fill client script for Poly2 host at 200.100.50.11
./polyclt -- ports 1024:30000 \
--proxy 200.100.50.253:8080 \
--origin 200.100.50.10:80 \
--verb_lvl 2 \
--robots 1 \
--rep_cachable 100p \
--goal 1hr
";

const SMIX1: &str = r"#!/bin/csh
#Polymix-1 server script file for Poly1 host at 200.100.50.10
./polysrv--port 80 \
--xact_think norm:3s,1.5s \
--verb_lvl 1 \
--goal-1:1hr:0.30
";

const CMIX1: &str = r"#!/bin/sh
#Polymix-1 client script for Poly2 at 200.100.50.11
./polyclt -- ports 1024:30000 \
--proxy 200.100.50.253:8080 \
--origin 200.100.50.10:80 \
--verb lvl 2 \
--robots 1 \setminus
--rep_cachable 80p \
--dhr 55p \
--req rate $1/sec
--pop_model unif \
--tmp loc none \
--cool\_phase 1min \setminus
--log $2 \
--goal -1:1hr:0.30
";

const REPORT: &str = r"./lx \
--out $1.out \
--phase meas \
--objects all \
--prn_names yes \
$1
tail $1.out
";

/// The paper's two machines and the device between them, on this one.
struct Lab {
    sandbox: Sandbox,
    device: Running,
    server: u16,
}

impl Lab {
    fn new() -> Lab {
        let sandbox = Sandbox::new();
        ["polysrv", "polyclt", "lx", "polysrv--port"].iter().for_each(|name| sandbox.link(name));
        let device = sandbox.start("proxy --port 0 --loops 1");
        Lab { sandbox, device, server: free_port() }
    }

    /// Writes a script with the addresses and durations of this lab.
    fn script(&mut self, name: &str, text: &str) {
        let (proxy, server) = (self.device.port("proxy at"), self.server);
        let text = text
            .replace("200.100.50.253:8080", &format!("127.0.0.1:{proxy}"))
            .replace("200.100.50.10:80", &format!("127.0.0.1:{server}"))
            .replace("port 80 ", &format!("port {server} "))
            .replace("1hr", "6sec")
            .replace("1min", "1sec")
            .replace("norm:3s,1.5s", "norm:300msec,150msec")
            .replace("\\setminus", "\\")
            .replace("$1/sec\n", "$1/sec \\\n");
        self.sandbox.write(name, &text);
    }

    fn start(&self, script: &str) -> Running {
        self.sandbox.start_program("sh", script)
    }

    /// Runs the script of the server and then that of the client, as the paper's reader does.
    fn both(&self, server: &str, client: &str) -> (Done, Done) {
        let mut server = self.start(server);
        server.wait_for("listening at");
        let client = self.start(client).finish();
        (server.finish(), client)
    }
}

/// Fields of the statistics lines of `span` and phase, for example `i-meas`.
fn lines<'a>(out: &'a str, name: &str) -> Vec<Vec<&'a str>> {
    let fields = out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    fields.filter(|fields| fields.get(1) == Some(&name)).collect()
}

#[test]
fn the_papers_scripts_run() {
    let mut lab = Lab::new();
    for (name, text) in
        [("sfill", SFILL), ("cfill", CFILL), ("smix1", SMIX1), ("cmix1", CMIX1), ("report", REPORT)]
    {
        lab.script(name, text);
    }

    let (server, client) = lab.both("sfill", "cfill");
    assert_eq!((server.code(), client.code()), (Some(0), Some(0)), "{server:?}\n{client:?}");
    assert!(server.err.contains("understood `- - port` as `--port`"), "{}", server.err);
    assert!(server.err.contains("understood `-- goal` as `--goal`"), "{}", server.err);
    assert!(client.err.contains("understood `-- ports` as `--ports`"), "{}", client.err);
    // Best effort without think time: far more than the few requests of an open loop.
    let filled: u64 = lines(&client.out, "p-meas")[0][2].parse().unwrap();
    assert!(filled > 1000, "{filled} fills: {}", client.out);

    let (server, client) = lab.both("smix1", "cmix1 150 my150run.log");
    assert_eq!((server.code(), client.code()), (Some(0), Some(0)), "{server:?}\n{client:?}");
    assert!(server.err.contains("understood `--goal-1:6sec:0.30` as `--goal -1:6sec:0.30`"), "{server:?}");
    for repair in ["`-- ports` as `--ports`", "`--verb lvl` as `--verb_lvl`", "`--req rate` as `--req_rate`"]
    {
        assert!(client.err.contains(&format!("understood {repair}")), "{repair}: {}", client.err);
    }
    // Columns: time, phase, replies so far, replies per second, hit ratio, errors, open connections; the last
    // one only for intervals.
    for (name, columns) in [("i-warm", 7), ("p-warm", 6), ("i-meas", 7), ("p-meas", 6), ("p-cool", 6)] {
        let found = lines(&client.out, name);
        assert!(!found.is_empty() && found.iter().all(|line| line.len() == columns), "{}", client.out);
    }
    let times: Vec<f64> = lines(&client.out, "i-meas").iter().map(|line| line[0].parse().unwrap()).collect();
    assert!(times[0] > 1.7e9 && times.is_sorted(), "{times:?}");

    let table = lab.start("report my150run.log").finish();
    assert_eq!(table.code(), Some(0), "{table:?}");
    check_table(&table.out);
    assert!(lab.sandbox.read("my150run.log.out").ends_with(&table.out));
}

/// The paper's script shows the last ten lines of what `lx` wrote; the last nine are the paper's table.
fn check_table(out: &str) {
    let table: Vec<(&str, &str)> = out.lines().skip(1).map(|line| line.split_once(": ").unwrap()).collect();
    let names: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        [
            "log_cnt",
            "req_rate",
            "rep_rate",
            "resp_tm_mean",
            "conn_ttl_mean",
            "req_dhr",
            "rep_dhr",
            "err_cnt",
            "err_pct"
        ]
    );
    for (name, value) in &table {
        let decimals = value.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        assert_eq!(decimals, if name.ends_with("_cnt") { 0 } else { 2 }, "{name}: {value}");
    }
    let value = |name: &str| table.iter().find(|line| line.0 == name).unwrap().1.parse::<f64>().unwrap();
    assert_eq!((value("log_cnt"), value("err_cnt"), value("err_pct")), (1.0, 0.0, 0.0));
    // 5.4 s at 150/s: 810 requests, sigma 28, which is 5.3/s.
    assert!((value("req_rate") - 150.0).abs() < 4.0 * 5.3, "{out}");
    assert!((value("rep_rate") - value("req_rate")).abs() < 20.0, "{out}");
}

#[test]
fn bare_classic_programs_print_usage() {
    let sandbox = Sandbox::new();
    for (name, option) in [("polyclt", "--req_rate"), ("polysrv", "--rep_sz"), ("lx", "--objects")] {
        sandbox.link(name);
        let done = sandbox.start_program(&sandbox.path().join(name).display().to_string(), "").finish();
        assert_eq!((done.code(), done.err.as_str()), (Some(0), ""), "{name}");
        assert!(done.out.contains("Usage: ") && done.out.contains(option), "{name}: {}", done.out);
    }
}

/// The paper's reader who has set no goal stops both sides by hand.
#[test]
fn programs_without_a_goal_are_stopped_by_hand() {
    let mut lab = Lab::new();
    lab.script("sfill", &SFILL.replace("-- goal 1hr", ""));
    lab.script("cfill", &CFILL.replace("--goal 1hr", "--log fill.log").replace("./", "exec ./"));
    let mut server = lab.start("sfill");
    server.wait_for("listening at");
    let mut client = lab.start("cfill");
    client.wait_for("i-meas");
    client.signal(Signal::INT);
    let client = client.finish();
    assert!(client.out.contains("shutdown reason: interrupted"), "{client:?}");
    let (meas, remarks) = lab.sandbox.lx("--phase meas", "fill.log");
    assert!(meas["ok_xact.count"] > 0.0 && remarks.is_empty(), "{remarks}");
}

#[test]
fn every_classic_name_is_a_program() {
    let names = Command::new(env!("CARGO_BIN_EXE_polygraph")).arg("installed-names").output().unwrap();
    let names = String::from_utf8(names.stdout).unwrap();
    assert!(names.lines().any(|name| name == "pmix3-ips"), "{names}");
    let sandbox = Sandbox::new();
    for name in names.lines() {
        sandbox.link(name);
        let program = sandbox.path().join(name).display().to_string();
        let done = sandbox.start_program(&program, "--help").finish();
        assert!(done.code() == Some(0) && done.out.contains("Usage: "), "{name}: {done:?}");
    }
}
