//! What the program says to command lines that are wrong: the option, the value, and what would be right.

use std::fmt::Write as _;

use crate::sandbox::Sandbox;

#[test]
fn wrong_command_lines() {
    let sandbox = Sandbox::new();
    let mut transcript = String::new();
    for words in [
        "client --proxy localhost",
        "client --origin 10.0.0.1:99999",
        "client --req_rate 250",
        "client --req_rate fast/sec",
        "client --rep_cachable 80",
        "client --dhr 155p",
        "client --dhr 90p --rep_cachable 80p",
        "client --pop_model uniform",
        "client --tmp_loc lru",
        "client --goal 1parsec",
        "client --goal -1:soon:0.30",
        "client --goal 0s",
        "run --no-proxy --goal -1:0:0.30",
        "run --no-proxy --expect rptm<5%",
        "client --ports 30000:1024",
        "client --launch_win 60",
        "client --robots none",
        "client --robots 0",
        "client --verb_lvl high",
        "client --global_rng_seed x",
        "client --local_addrs 10.0.0.9-1",
        "client --req_rate 5/sec --xact_think 1s",
        "client --reqrate 250/sec",
        "client --log",
        "server --xact_think norm:3s",
        "server --xact_think normal:3s,1s",
        "server --rep_sz exp:13s",
        "server --port 80000",
        "run",
        "run --proxy 127.0.0.1:3128 --no-proxy",
        "run --device squib",
        "run --device squid --proxy 127.0.0.1:3128",
        "run --no-proxy --device_opt mem=1GB",
        "run --device squid --device_opt mem",
        "run --device squid --device_opt mem=much",
        "run --no-proxy --log x.log",
        "run --no-proxy --req_rate 0/sec",
        "proxy --cache 1furlong",
        "clint",
        "lx --prn_names perhaps x.log",
        "lx nofile.log",
        "lx --side left x.log",
        "report nodir",
        "report .",
        "try 40s",
    ] {
        let done = sandbox.polygraph(words);
        assert_eq!(done.out, "", "{words}");
        let _ = writeln!(transcript, "$ polygraph {words}\n{}exit code {}\n", done.err, done.code().unwrap());
    }
    insta::assert_snapshot!(transcript);
}

#[test]
fn options_that_are_not_there_say_what_to_do_instead() {
    let sandbox = Sandbox::new();
    for (words, text) in [
        ("client --prn_errs", "--prn_errs: use --dump"),
        ("server -Worker 2", "--worker: the program starts worker processes when it needs them; --workers"),
        ("run --no_proxy --icp_tout 2s", "--icp_tout: ICP is not supported yet"),
        ("client --no_such_thing", "unexpected argument"),
    ] {
        let done = sandbox.polygraph(words);
        assert!(done.code() == Some(2) && done.err.contains(text), "{words}: {done:?}");
    }
}
