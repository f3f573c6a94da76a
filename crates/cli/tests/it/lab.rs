//! Labs: hosts that come, run tests and go without a trace, also after a crash.

use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox::{ATTEMPTS, Done, Sandbox, many_neighbours, quiet, valid};

/// A lab of a test. It is taken down when this is dropped, also on panic.
struct TestLab {
    sandbox: Sandbox,
    name: String,
}

impl TestLab {
    /// A folder with a copy of `two-hosts.toml` under a name that no other test has.
    fn new(word: &str) -> TestLab {
        let (sandbox, name) = (Sandbox::new(), format!("pg{}{word}", std::process::id()));
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs/two-hosts.toml"));
        sandbox.write(&format!("{name}.toml"), &text.unwrap());
        sandbox.write("small.pg", WORKLOAD);
        TestLab { sandbox, name }
    }

    /// Runs `polygraph lab` with `NAME` replaced.
    fn lab(&self, words: &str) -> Done {
        self.sandbox.polygraph(&format!("lab {}", words.replace("NAME", &self.name)))
    }

    fn up(&self) {
        let done = self.lab("up NAME.toml");
        assert_eq!(done.code(), Some(0), "labs need root and iproute2: {done:?}");
    }

    /// The network namespaces of the lab, its records of changes, and its file.
    fn traces(&self) -> Vec<String> {
        let output = Command::new("ip").args(["netns", "list"]).output().unwrap();
        let namespaces = String::from_utf8(output.stdout).unwrap();
        let records = self.sandbox.polygraph("net status").out;
        let file = format!("/run/polygraph/labs/{}.json", self.name);
        let file = std::path::Path::new(&file).exists().then_some(file);
        let lines = namespaces.lines().chain(records.lines()).map(str::to_owned);
        lines.filter(|line| line.contains(&self.name)).chain(file).collect()
    }
}

impl Drop for TestLab {
    fn drop(&mut self) {
        if !self.traces().is_empty() {
            self.lab("down NAME");
        }
    }
}

/// Robots and a server with the addresses of the hosts.
const WORKLOAD: &str = "
    ObjLifeCycle L = { length = const(2year); variance = 0%; with_lmt = 100%; expires = [ nmt + const(0sec) ]; };
    Content C = { size = const(2KB); cachable = 100%; obj_life_cycle = L; };
    Server S = { contents = [ C ]; direct_access = contents; addresses = ['10.55.0.2:80']; };
    Robot R = { origins = S.addresses; recurrence = 50%; pop_model.pop_distr = popUnif(); req_rate = 40/sec; addresses = ['10.55.0.1']; };
    Phase P = { name = \"p\"; goal.duration = 4sec; };
    schedule(P);
    use(S, R);
";

#[test]
fn hosts_reach_each_other_and_go_without_a_trace() {
    let lab = TestLab::new("a");
    lab.up();
    assert!(!lab.traces().is_empty());
    let pinged = lab.lab("exec NAME clt1 -- ping -n -c 1 -W 5 10.55.0.2");
    assert_eq!(pinged.code(), Some(0), "{pinged:?}");
    let unreachable = lab.lab("exec NAME srv1 -- ping -n -c 1 -W 1 10.55.0.77");
    assert_eq!(unreachable.code(), Some(1), "the exit code is that of the command: {unreachable:?}");
    let status = lab.lab("status NAME");
    for line in ["clt1     client  10.55.0.1", "device   device  10.55.0.3        port 8080"] {
        assert!(status.out.contains(line), "{status:?}");
    }
    let json: serde_json::Value = serde_json::from_str(&lab.lab("status NAME --json").out).unwrap();
    assert_eq!(json["labs"][0]["hosts"].as_array().unwrap().len(), 4);
    assert_eq!(json["labs"][0]["hosts"][1]["namespace"], format!("pglab-{}-srv1", lab.name));
    let again = lab.lab("up NAME.toml");
    assert_eq!(again.code(), Some(3), "{again:?}");
    assert!(again.err.contains("is up already"), "{again:?}");
    // A process that runs on a host ends with the lab.
    let mut sleeper = lab.sandbox.start(&format!("lab exec {} clt1 -- sleep 600", lab.name));
    while lab.lab("status NAME").out.lines().all(|line| !line.contains("; 1 process")) {
        assert!(!sleeper.has_ended());
    }
    let down = lab.lab("down NAME");
    assert_eq!((down.code(), lab.traces()), (Some(0), Vec::new()), "{down:?}");
    assert_eq!(sleeper.finish().killed_by(), Some(Signal::TERM));
    let gone = lab.lab("down NAME");
    assert_eq!(gone.code(), Some(2), "{gone:?}");
    assert!(gone.err.contains("there is no lab"), "{gone:?}");
}

#[test]
fn a_killed_lab_up_leaves_nothing_that_clean_does_not_remove() {
    for calls in [2, 5, 9] {
        let lab = TestLab::new("k");
        // The call of `ip` with this number hangs; it says so first.
        let wrapper = format!(
            "#!/bin/sh\necho x >> calls\nif [ $(wc -l < calls) -ge {calls} ]; then echo $$ > hangs; exec sleep 600; fi\n\
             PATH=${{PATH#*:}}\nexec ip \"$@\"\n"
        );
        std::fs::create_dir(lab.sandbox.path().join("bin")).unwrap();
        lab.sandbox.write("bin/ip", &wrapper);
        let program = env!("CARGO_BIN_EXE_polygraph");
        let script =
            format!("chmod +x bin/ip; PATH=$PWD/bin:$PATH exec {program} lab up {}.toml\n", lab.name);
        lab.sandbox.write("up.sh", &script);
        let up = lab.sandbox.start_program("sh", "up.sh");
        let hangs = lab.sandbox.path().join("hangs");
        let sleeper = loop {
            let text = std::fs::read_to_string(&hangs).unwrap_or_default();
            if let Ok(pid) = text.trim().parse() {
                break Pid::from_raw(pid).unwrap();
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        assert!(!lab.traces().is_empty(), "{calls} calls");
        up.signal(Signal::KILL);
        assert_eq!(up.finish().killed_by(), Some(Signal::KILL));
        kill_process(sleeper, Signal::KILL).unwrap();
        // Another test may start a command that cleans up before this one does.
        let cleaned = lab.sandbox.polygraph("net clean");
        assert_eq!((cleaned.code(), lab.traces()), (Some(0), Vec::new()), "{calls} calls: {cleaned:?}");
    }
}

/// A run through a device, in a lab that is made for it; the folder has its `result`.
fn run_through(word: &str, device: &str) -> (Sandbox, Done) {
    valid(|| {
        let lab = TestLab::new(word);
        let done = lab.lab(&format!("run NAME.toml --config small.pg --device {device} --out result"));
        assert_eq!(lab.traces(), [] as [String; 0], "a lab that is made for a run goes with it");
        let kept = Sandbox::new();
        let result = lab.sandbox.path().join("result");
        let moved = Command::new("mv").arg(result).arg(kept.path()).status();
        assert!(moved.unwrap().success(), "{done:?}");
        (kept, done)
    })
}

#[test]
fn a_test_runs_through_a_device_on_its_own_host() {
    let (sandbox, done) = run_through("d", "squid --device_opt mem=16MB");
    let manifest: serde_json::Value = serde_json::from_str(&sandbox.read("result/manifest.json")).unwrap();
    assert_eq!(manifest["device"]["address"], "10.55.0.3:8080");
    let logged = manifest["device"]["result"]["log"]["requests"].as_u64().unwrap();
    assert!((100..250).contains(&logged), "{manifest:#}");
    assert_eq!(manifest["lab"]["hosts"][0]["name"], "clt1");
    let (figures, _) = sandbox.lx("--objects xact.count,hit_count,rep_dhr", "result/clt1.log");
    assert!(figures["rep_dhr"] > 20.0, "Squid stores replies: {figures:?}");
    assert!(sandbox.read("result/report.html").contains("squid"), "{done:?}");
    assert!(sandbox.read("result/console/srv1.txt").contains("listening at 10.55.0.2:80"));
}

/// Clients know the role of the device, so the report does not look for hits of a balancer.
#[test]
fn a_test_runs_through_a_balancer_on_its_own_host() {
    let (sandbox, done) = run_through("b", "haproxy");
    let log = sandbox.polygraph("lr result/clt1.log").out;
    assert!(log.contains("device: balancer"), "{log}");
    assert!(!done.out.contains("If there is one in the path"), "{done:?}");
}

#[test]
fn runs_without_a_device_and_runs_that_cannot_work() {
    let lab = TestLab::new("n");
    lab.up();
    let run = |words: &str| lab.lab(&format!("run NAME --config small.pg {words}"));
    let done = run("--no_proxy --set P.goal.duration=1sec --json");
    let json: serde_json::Value = serde_json::from_str(&done.out).unwrap_or_else(|_| panic!("{done:?}"));
    assert!(json["verdict"].is_string(), "{json:#}");
    // Nothing listens there.
    let nobody = run("--proxy 10.55.0.3:3128");
    assert_eq!(nobody.code(), Some(3), "{nobody:?}");
    assert!(nobody.err.contains("clt1 could not do its work"), "{nobody:?}");
    let option = run("--no_proxy --client_opt speed=9");
    assert_eq!(option.code(), Some(2), "{option:?}");
    assert!(option.err.contains("--speed"), "{option:?}");
    for (words, code, part) in [
        ("run NAME --no_proxy", 2, "has no workload"),
        ("run NAME --config small.pg", 2, "say what is tested"),
        ("run NAME --config small.pg --proxy 10.55.0.3:1 --balancer 10.55.0.3:1", 2, "cannot be used with"),
        ("run NAME --config none.pg --no_proxy", 2, "none.pg"),
        ("run nosuchlab --config small.pg --no_proxy", 2, "there is no lab nosuchlab"),
        ("exec NAME clt9 -- true", 2, "its hosts are clt1, srv1, device, monitor"),
        ("up none.toml", 3, "none.toml"),
        ("run NAME --config small.pg --device nosuch", 2, "nosuch"),
    ] {
        let done = lab.lab(words);
        assert_eq!(done.code(), Some(code), "{words}: {done:?}");
        assert!(done.err.contains(part), "{words}: {done:?}");
    }
    let results = std::fs::read_dir(lab.sandbox.path().join("runs")).unwrap();
    let results = results.flatten().filter(|entry| entry.path().is_dir()).count();
    assert_eq!(results, 1, "runs that cannot work leave no result directory");
}

/// How long the short form of a how-to may take.
const HOW_TO_PATIENCE: Duration = Duration::from_secs(900);

/// Runs one of the scripts of the how-to documents in a short form, and checks its steps and results. The script itself fails
/// if the mean response time without a device is not that of the how-to.
fn how_to(script: &str, without_device: &str, device: &str, settings: &str, steps: &[&str]) {
    let path = format!("{}/../../examples/{script}.sh", env!("CARGO_MANIFEST_DIR"));
    for attempt in 1..=ATTEMPTS {
        let lab =
            TestLab { sandbox: Sandbox::new(), name: format!("pg{}{}", std::process::id(), &script[..1]) };
        let (name, program) = (&lab.name, env!("CARGO_BIN_EXE_polygraph"));
        let words = format!(
            "POLYGRAPH={program} NAME={name} RUNS=runs DEVICE={device} RATE=20 PLATEAU=10 RAMP=2 FILL_SIZE=500KB THROUGHPUT_TIME=1s {settings} sh {path}"
        );
        let done = lab.sandbox.start_program("env", &words).finish_within(HOW_TO_PATIENCE);
        assert_eq!(lab.traces(), [] as [String; 0], "the script takes its lab down: {done:?}");
        // The machine may be busy with other work.
        let busy = ["started late", "was saturated", "rptm@top1"].iter().any(|why| done.out.contains(why));
        if done.code() != Some(0) && busy && attempt < ATTEMPTS {
            continue;
        }
        assert_eq!(done.code(), Some(0), "{done:?}");
        let mut rest = done.out.as_str();
        for step in steps {
            let at = rest.find(step).unwrap_or_else(|| panic!("no `{step}` in its place: {done:?}"));
            rest = &rest[at..];
        }
        for run in [without_device, device] {
            let directory = format!("runs/{name}-{run}");
            let manifest: serde_json::Value =
                serde_json::from_str(&lab.sandbox.read(format!("{directory}/manifest.json"))).unwrap();
            assert_eq!(manifest["device"].is_null(), run == without_device, "{run}");
            assert!(lab.sandbox.read(format!("{directory}/report.html")).contains("top2"), "{run}");
            assert!(lab.sandbox.path().join(format!("{directory}/clt1.log")).exists(), "{run}");
        }
        return;
    }
}

#[test]
fn the_how_to_of_polymix_3_works_step_by_step() {
    let _alone = (quiet(), many_neighbours());
    let steps = [
        "10.16.1.1-200",
        "eth0: 200 addresses added",
        "5 packets transmitted, 5 received",
        "== 4.1",
        "2 packets transmitted, 2 received",
        "== 4.2",
        "Mbit/s",
        "== 5: a no-proxy test",
        "rptm@top1",
        "== 6.1",
        "2 packets transmitted, 2 received",
        "left out, because it takes a minute",
        "== 7",
        "== 9",
        "srv1.log",
    ];
    // Robots first visit each of the more than 500 servers: at 20 requests per second, that takes minutes.
    how_to("polymix-3", "no-proxy", "squid", "RATE=80", &steps);
}

#[test]
fn the_how_to_of_webaxe_4_works_step_by_step() {
    let _quiet = quiet();
    let steps = [
        "== 3.1, 5.2",
        "2 routes added",
        "10.101.0.0/22 via 172.16.101.61",
        "10.101.4.0/22 via 172.16.101.62",
        "lo: 1 address added",
        "== 4.2",
        "2 packets transmitted, 2 received",
        "== 4.3",
        "Mbit/s",
        "== 5.3",
        "5 packets transmitted, 5 received",
        "lo: 1 address removed",
        "== 6: a no-surrogate test",
        "rptm@top1",
        "== 7.1",
        "== 8",
        "== 9",
        "clt2.log",
    ];
    how_to("webaxe-4", "no-surrogate", "nginx", "WSS=2MB", &steps);
}
