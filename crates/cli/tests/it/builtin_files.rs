//! The files that are built into the program: names instead of paths, and copies that work like the originals.

use serde_json::Value;

use crate::sandbox::Sandbox;

#[test]
fn names_stand_for_files() {
    let sandbox = Sandbox::new();
    // What the file in the source tree says, the name says too.
    let tree = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads");
    let by_name = sandbox.polygraph("check polymix-1 --set ReqRate=50/sec --no_simulation");
    let by_path =
        sandbox.polygraph(&format!("check {tree}/polymix-1.pg --set ReqRate=50/sec --no_simulation"));
    assert_eq!((by_name.code(), &by_name.out), (Some(0), &by_path.out), "{by_name:?}");
    for words in [
        "check polymix-4 --set TheBench.peak_req_rate=100/sec --set FillRate=50/sec --set ProxyCacheSize=1GB --set DnsServers=[] --no_simulation",
        "bakeoff five-caches --dry_run",
        "lab up two-hosts --dry_run",
        "lab up polymix-3 --set TheBench.peak_req_rate=20/sec --dry_run",
        "import bakeoff-1",
        "pgl2ips --config builtin:webaxe-1",
        "accounts polymix-1 --set ReqRate=1/sec --format plain",
    ] {
        let done = sandbox.polygraph(words);
        let missing =
            done.err.contains("No such") || done.err.contains("cannot find") || done.err.contains("no file");
        assert!(!missing && done.code() != Some(2), "{words}: {done:?}");
    }
    assert!(sandbox.path().join("runs/bakeoff/imported/bakeoff-1/bakeoff-1-products.csv").is_file());

    // The run of a name needs nothing but the program.
    let words = "run simple --no_proxy --predict no --loops 1 --out result --set phRun.goal.duration=2sec";
    let done = sandbox.polygraph(words);
    assert!(sandbox.path().join("result/client.log").is_file(), "{done:?}");
    // The settings that others need are in the manual.
    let done = sandbox.polygraph("run polymix-2026 --no_proxy");
    assert!(done.code() == Some(2) && done.err.contains("docs/workloads.md has a command"), "{done:?}");
}

#[test]
fn a_name_with_two_meanings_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("simple.pg", "this is another file");
    for words in ["check simple", "run simple --no_proxy", "client --config simple", "simulate simple"] {
        let done = sandbox.polygraph(words);
        assert_eq!(done.code(), Some(2), "{words}: {done:?}");
        assert!(done.err.contains("builtin:simple") && done.err.contains("./simple.pg"), "{words}: {done:?}");
    }
    assert_eq!(sandbox.polygraph("check builtin:simple --no_simulation").code(), Some(0));
    // Own files include the standard parts, but not the other way round.
    sandbox.write("own.pg", "#include \"contents.pg\"\n");
    let own = sandbox.polygraph("check own.pg --json");
    assert!(!own.out.contains("cannot find"), "{own:?}");
    sandbox.write("contents.pg", "this is not a workload");
    let own = sandbox.polygraph("check own.pg");
    assert!(own.err.contains("contents.pg:1:"), "{own:?}");
    assert_eq!(sandbox.polygraph("check polymix-1 --set ReqRate=1/sec --no_simulation").code(), Some(0));
    let missing = sandbox.polygraph("run polymix-4.pg --no_proxy");
    assert!(missing.code() == Some(2) && missing.err.contains("is called `polymix-4`"), "{missing:?}");
}

#[test]
fn copies_work_like_the_originals() {
    let sandbox = Sandbox::new();
    let list = sandbox.polygraph("workloads list --json");
    let list: Value = serde_json::from_str(&list.out).unwrap();
    assert_eq!(list["schema"], 1);
    let entries = list["entries"].as_array().unwrap();
    assert!(entries.iter().any(|entry| entry["name"] == "five-caches" && entry["kind"] == "bakeoffs"));
    let text = sandbox.polygraph("workloads list").out;
    assert!(entries.iter().all(|entry| text.contains(entry["name"].as_str().unwrap())), "{text}");

    let shown = sandbox.polygraph("workloads show polymix-4");
    assert_eq!(shown.out, include_str!("../../../../workloads/polymix-4.pg"));
    assert!(shown.err.contains("workloads/include/polymix-4-guts.pg"), "{shown:?}");
    assert_eq!(
        sandbox.polygraph("workloads show workloads/include/benches.pg").out,
        include_str!("../../../../workloads/include/benches.pg")
    );
    let device = sandbox.polygraph("workloads show squid").out;
    assert!(
        device.contains("==> devices/squid/device.toml <==") && device.contains("squid.conf"),
        "{device}"
    );
    let several = sandbox.polygraph("workloads show polymix-3");
    assert!(several.code() == Some(2) && several.err.contains("`labs/polymix-3`"), "{several:?}");
    assert_eq!(sandbox.polygraph("workloads show nothing").code(), Some(2));

    let copied = sandbox.polygraph("workloads copy polymix-4 labs/two-hosts .");
    assert_eq!(copied.code(), Some(0), "{copied:?}");
    let settings = "--set TheBench.peak_req_rate=100/sec --set FillRate=50/sec --set ProxyCacheSize=1GB --set DnsServers=[]";
    let by_copy = sandbox.polygraph(&format!("check workloads/polymix-4.pg {settings} --no_simulation"));
    let by_name = sandbox.polygraph(&format!("check polymix-4 {settings} --no_simulation"));
    assert_eq!((by_copy.code(), &by_copy.out), (Some(0), &by_name.out), "{by_copy:?}");
    assert!(sandbox.path().join("labs/two-hosts.toml").is_file());

    // Changed files are not replaced by accident.
    sandbox.write("workloads/polymix-4.pg", "changed");
    let refused = sandbox.polygraph("workloads copy --all .");
    assert!(refused.code() == Some(3) && refused.err.contains("--force"), "{refused:?}");
    assert!(!sandbox.path().join("bakeoffs").exists());
    assert_eq!(sandbox.read("workloads/polymix-4.pg"), "changed");
    assert_eq!(sandbox.polygraph("workloads copy --all --force .").code(), Some(0));
    assert_eq!(sandbox.read("workloads/polymix-4.pg"), shown.out);
    assert!(sandbox.path().join("devices/trafficserver/etc/records.config").is_file());
    for words in ["workloads copy polymix-4", "workloads copy --all a b", "workloads copy"] {
        assert_eq!(sandbox.polygraph(words).code(), Some(2), "{words}");
    }
}
