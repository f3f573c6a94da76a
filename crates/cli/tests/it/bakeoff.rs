//! Bake-offs end to end: a miniature one that is killed and resumed, the report beside the results of 1999, and messages
//! about invalid plans and files.

use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::Value;

use crate::sandbox::{Sandbox, quiet};

/// Two rates of a few seconds each through the built-in proxy. If other work on the machine makes the bench late in one of
/// four runs, one of the four steps fails five times in a row with a probability of 4 × 0.25^5 = 0.4 %.
const MINI: &str = r#"
title = "Miniature"
rates = [40, 80]
[workload]
duration = "8s"
cool = "1s"
options = { xact_think = "norm:600ms,200ms" }
[rules]
launch_window = "500ms"
idle_gap = "100ms"
attempts = 5
[checks]
no_proxy = "4s"
network = "500ms"
[[device]]
name = "small"
title = "Small box"
device = "builtin"
options = { mem = "4MB" }
comments = "small.txt"
prices = [{ part = "box", price = 100 }, { part = "hub", price = 20, network = true }]
"#;

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("mini.toml", MINI);
    sandbox.write("small.txt", "It is small.\n\nAnd proud of it.\n");
    sandbox
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/bakeoff-1.csv")
}

/// The journal's events of a kind.
fn events(sandbox: &Sandbox, kind: &str) -> Vec<Value> {
    let text = sandbox.read("runs/bakeoff/mini/journal.jsonl");
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|event| event["event"] == kind).collect()
}

fn passed(events: &[Value]) -> Vec<f64> {
    events.iter().filter(|end| end["status"] == "passed").map(|end| end["rate"].as_f64().unwrap()).collect()
}

#[test]
fn a_miniature_that_is_killed_goes_on() {
    let _quiet = quiet();
    let sandbox = sandbox();
    let outlook = sandbox.polygraph("bakeoff mini.toml --dry_run");
    assert_eq!(outlook.code(), Some(0), "{outlook:?}");
    assert!(
        outlook.out.contains("4 steps, about") && outlook.out.contains("difference from 1999: Length"),
        "{outlook:?}"
    );

    let mut series = sandbox.start("bakeoff mini.toml");
    // The last of the rates: the second one, or the first if a busy machine has spoiled its first run.
    series.wait_for("/s, 1 to go");
    let busy = sandbox.polygraph("bakeoff mini.toml");
    assert!(busy.code() == Some(3) && busy.err.contains("another process is already working"), "{busy:?}");
    series.signal(Signal::KILL);
    assert_eq!(series.finish().killed_by(), Some(Signal::KILL));
    let before = events(&sandbox, "end");
    assert_eq!(passed(&before).len(), 1, "{before:?}");
    assert!(events(&sandbox, "begin").len() == before.len() + 1, "the run that was killed has no end");

    let done = sandbox.polygraph("bakeoff mini.toml");
    assert_eq!(done.code(), Some(0), "{done:?}");
    let ends = events(&sandbox, "end");
    assert_eq!(ends[..before.len()], before, "what was done stays");
    let mut rates = passed(&ends);
    rates.sort_by(f64::total_cmp);
    assert_eq!(rates, [40.0, 80.0], "each rate is passed once: {ends:?}");
    let fills = events(&sandbox, "filled");
    assert_eq!(fills.len(), 2, "after the kill the device was empty");
    for fill in &fills {
        assert!(fill["bytes"].as_u64().unwrap() >= 4 << 20 && fill["fullness"] == "observed", "{fill:?}");
    }
    assert_eq!(passed(&events(&sandbox, "no-proxy")).len(), 1, "the check was not done again");
    assert!(done.out.contains("Small box  80    80 "), "{}", done.out);

    // What the report says is what lx says.
    let report = sandbox.read("runs/bakeoff/mini/report.html");
    for end in ends.iter().filter(|end| end["status"] == "passed") {
        let log = Path::new("runs/bakeoff/mini").join(end["run"].as_str().unwrap()).join("client.log");
        // As JSON, because figures that are rounded already may round to another cell.
        let lx = sandbox.polygraph(&format!("lx --json --phase meas {}", log.display()));
        assert_eq!(lx.code(), Some(0), "{lx:?}");
        let lx: Value = serde_json::from_str(&lx.out).unwrap();
        let figure = |name: &str| lx["figures"][name].as_f64().unwrap();
        let cells = [
            format!("<td>{:.3}</td>", figure("resp_tm_mean") * 1e-3),
            format!("<td>{:.3}</td>", figure("resp_tm_p75") * 1e-3),
            format!("<td>{:.1}</td>", figure("rep_dhr")),
        ];
        for cell in cells {
            assert!(report.contains(&cell), "no {cell} in the report");
        }
    }
    assert!(report.contains("Figure 3.1. Popularity of objects by rank"), "popularity");
    assert!(report.contains("<p>And proud of it.</p>") && report.contains("$120"), "comments and prices");

    // Its runs are listed, with the device that the series started, and the files of the device are not.
    let listed = sandbox.polygraph("runs runs/bakeoff/mini/small");
    for end in &ends {
        let name = end["run"].as_str().unwrap().rsplit('/').next().unwrap();
        let line = listed.out.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        assert!(line.contains(" builtin "), "{name}: {listed:?}");
    }
    assert!(!listed.out.contains("UNREADABLE"), "{listed:?}");

    let again = sandbox.polygraph("bakeoff mini.toml");
    assert!(again.code() == Some(0) && again.err.contains("0 steps to go"), "{again:?}");
    assert_eq!(events(&sandbox, "end"), ends, "there is nothing left to do");

    // Another configuration must not be mixed in; its results can be dropped.
    sandbox.write("mini.toml", &MINI.replace("4MB", "8MB"));
    let mixed = sandbox.polygraph("bakeoff mini.toml");
    assert!(mixed.code() == Some(3) && mixed.err.contains("--drop small"), "{mixed:?}");
    sandbox.write("mini.toml", &MINI.replace("[40, 80]", "[80, 40]"));
    let stranger = sandbox.polygraph("bakeoff mini.toml --drop big");
    assert!(stranger.code() == Some(2) && stranger.err.contains("no such device"), "{stranger:?}");

    // Beside the devices of 1999.
    let imported = sandbox.polygraph(&format!("import {}", data().display()));
    assert_eq!(imported.code(), Some(0), "{imported:?}");
    let all = sandbox.polygraph("bakeoff report --out both.html");
    assert_eq!(all.code(), Some(0), "{all:?}");
    let page = sandbox.read("both.html");
    for part in ["Appendix I: Squid", "Appendix K: Small box", "1.4-6.0", "Miniature", "Figure 5.6", "49,995"]
    {
        assert!(page.contains(part), "no {part} in the report");
    }
}

#[test]
fn published_results_alone() {
    let sandbox = Sandbox::new();
    let nothing = sandbox.polygraph("bakeoff report");
    assert!(nothing.code() == Some(2) && nothing.err.contains("polygraph import"), "{nothing:?}");
    let done = sandbox.polygraph(&format!("import {}", data().display()));
    assert!(done.code() == Some(0) && done.err.contains("10 devices with 88 results"), "{done:?}");
    let done = sandbox.polygraph("bakeoff report bakeoff-1 --title Then --out then.html");
    assert_eq!(done.code(), Some(0), "{done:?}");
    let page = sandbox.read("then.html");
    assert!(
        page.contains("<h1>Then</h1>")
            && page.contains("Peregrine")
            && !page.contains("http-equiv=\"refresh")
    );
    let unknown = sandbox.polygraph("bakeoff report mini");
    assert!(unknown.code() == Some(2) && unknown.err.contains("known names: bakeoff-1"), "{unknown:?}");
    sandbox.write("bad.csv", "product,rate\nx,1\n");
    let bad = sandbox.polygraph("import bad.csv");
    assert!(bad.code() == Some(4) && bad.err.contains("no column"), "{bad:?}");
}

#[test]
fn plans_that_cannot_be_used() {
    let sandbox = sandbox();
    for (from, to, code, part) in [
        ("rates = [40, 80]", "rates = [40, 40]", 2, "device `small`, rates: 40 is listed twice"),
        ("small.txt", "none.txt", 2, "none.txt: create it, or remove the line"),
        ("\"builtin\"", "\"squib\"", 2, "there is no device `squib`"),
        ("mem = \"4MB\"", "mem = \"much\"", 2, "`much` is not a size"),
    ] {
        sandbox.write("mini.toml", &MINI.replace(from, to));
        let done = sandbox.polygraph("bakeoff mini.toml");
        assert!(done.code() == Some(code) && done.err.contains(part), "{part}: {done:?}");
    }
    assert_eq!(sandbox.polygraph("bakeoff").code(), Some(2));
}

#[test]
fn bb_writes_the_plan_of_the_classic_sequence() {
    let sandbox = Sandbox::new();
    sandbox.link("bb");
    let bb = sandbox.path().join("bb").display().to_string();
    let bare = sandbox.start_program(&bb, "").finish();
    assert!(bare.code() == Some(0) && bare.out.contains("--rates"), "{bare:?}");
    let done =
        sandbox.start_program(&bb, "--device squib --rates 20,10 --goal 1min --launch_win 5s").finish();
    assert!(done.code() == Some(2) && done.err.contains("there is no device `squib`"), "{done:?}");
    assert!(!sandbox.path().join("runs").exists(), "a plan that cannot be carried out is not written");
    let nobody = "--proxy 127.0.0.1:1 --size 1GB --rates 20,10 --goal 1min --launch_win 5s";
    let done = sandbox.start_program(&bb, nobody).finish();
    assert!(done.code() == Some(3) && done.err.contains("cannot be reached at 127.0.0.1:1"), "{done:?}");
    let plan = sandbox.read("runs/bakeoff/bb.toml");
    assert!(plan.contains("rates = [20.0, 10.0]") && plan.contains("duration = \"1min\""), "{plan}");
}
