//! The standard workloads compile, name what is missing, and have the published numbers of agents.

use polygraph_pgl::render::Style;
use polygraph_pgl::{Compilation, DiskLoader, Loader, MemoryLoader, Options, compile};

const POLYMIX_3: &str = "TheBench.client_side.addr_mask='10.16.0.0' TheBench.server_side.addr_mask='10.16.0.0:80' \
     TheBench.peak_req_rate=1000/sec FillRate=500/sec ProxyCacheSize=37GB";
const POLYMIX_4: &str =
    "TheBench.peak_req_rate=1000/sec FillRate=500/sec ProxyCacheSize=54GB DnsServers=['172.16.101.100:53']";
const WEBAXE_4: &str = "TheBench.server_side.hosts=['172.16.101.191-192:80'] \
     TheBench.proxy_side.hosts=['172.16.101.32:80'] TheBench.peak_req_rate=1000/sec FillRate=750/sec \
     ProxyCacheSize=54GB WSS=1GB";

fn workloads(path: &str) -> String {
    format!("{}/../../workloads/{path}", env!("CARGO_MANIFEST_DIR"))
}

/// Compiles a standard workload followed by more text; `settings` are `NAME=VALUE` with blanks between them.
fn with_text(file: &str, settings: &str, more: &str) -> Compilation {
    let text = format!("#include \"{file}\"\n{more}\n");
    compile_text(&text, settings)
}

fn compile_text(text: &str, settings: &str) -> Compilation {
    let mut loader = MemoryLoader::default().with("test.pg", text);
    for dir in ["", "include/"] {
        for entry in std::fs::read_dir(workloads(dir)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "pg") {
                let name = path.file_name().unwrap().to_str().unwrap();
                loader = loader.with(name, std::fs::read(&path).unwrap());
            }
        }
    }
    compile_with("test.pg", &loader, settings)
}

fn compile_with(name: &str, loader: &dyn Loader, settings: &str) -> Compilation {
    let split =
        |setting: &str| setting.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    let settings = settings.split_whitespace().filter_map(split).collect();
    let options = Options { search_path: vec![workloads("include")], settings, ..Options::default() };
    compile(name, loader, &options)
}

/// Values of expressions at the end of a workload.
#[track_caller]
fn values<const N: usize>(file: &str, settings: &str, expressions: [&str; N]) -> [String; N] {
    let prints: String = expressions.iter().map(|expression| format!("print({expression});\n")).collect();
    let compilation = with_text(file, settings, &prints);
    assert_eq!(compilation.render(Style::Plain), "", "{file}");
    compilation.script_output.try_into().unwrap_or_else(|output| panic!("{file}: {output:?}"))
}

#[test]
fn every_workload_compiles_with_its_parameters_and_names_them_without() {
    #[track_caller]
    fn check(file: &str, settings: &str) {
        let path = workloads(file);
        let set = compile_with(&path, &DiskLoader, settings);
        assert_eq!(set.render(Style::Plain), "", "{file}");
        assert_eq!(set.script_output, [""; 0], "{file}");
        let workload = set.workload.unwrap_or_else(|| panic!("{file} gives no workload"));
        assert!(workload.robot_count() > 0 && workload.server_count() > 0, "{file}");

        let unset = compile_with(&path, &DiskLoader, "");
        let findings = unset.render(Style::Plain);
        for setting in settings.split_whitespace() {
            let name = setting.split_once('=').map_or(setting, |(name, _)| name);
            assert!(
                findings.contains(&format!("--set {name}="))
                    || findings.contains(&format!("--set \"{name}=")),
                "{file} does not say that {name} is missing:\n{findings}"
            );
        }
        assert_eq!(unset.has_errors(), !settings.is_empty(), "{file}");
        let missing = settings.split_whitespace().count();
        assert!(unset.diagnostics.len() <= missing, "{file} says things more than once:\n{findings}");
    }
    let pairs = "RobotAddrs=['10.16.1.1-250'] ServerAddrs=['10.16.129-131.1-175:80']";
    let webaxe = "TheBench.peak_req_rate=1000/sec FillRate=500/sec ProxyCacheSize=17GB WSS=100MB";
    let balancer =
        "TheBench.client_side.hosts=['172.16.45.61-70'] TheBench.server_side.hosts=['172.16.45.191-199:80']";
    let vip = "TheBench.proxy_side.hosts=['172.16.45.254:80']";
    check("simple.pg", "");
    check("correctness.pg", "");
    check("polymix-1.pg", "ReqRate=50/sec");
    check("datacomm-1.pg", "ReqRate=50/sec");
    check("polymix-2.pg", pairs);
    check("polyfill-2.pg", &format!("{pairs} ProxyCacheSize=10GB"));
    check("downtime-2.pg", "RobotAddrs=['10.12.1.1'] ServerAddrs=['10.12.129.1:8080']");
    check("polymix-3.pg", POLYMIX_3);
    check("polymix-4.pg", POLYMIX_4);
    check("polymix-4-tls.pg", POLYMIX_4);
    check("rptmstat.pg", &POLYMIX_4.replace("FillRate=500/sec ", ""));
    check("rptmstat-1.pg", "PeakRate=1000/sec");
    check("webaxe-1.pg", &format!("{pairs} FillRate=50/sec ProxyCacheSize=17GB WSS=100MB"));
    check("webaxe-3.pg", webaxe);
    check("webaxe-4.pg", WEBAXE_4);
    check("webaxe-4-tls.pg", WEBAXE_4);
    check("polymix-2026.pg", WEBAXE_4);
    check("srvlb-l4-4.pg", &format!("{balancer} {vip}"));
    check("nolb-l4-4.pg", balancer);
    check("srvlb-l7-4.pg", &format!("{balancer} {vip}"));
    check("pxylb-4.pg", "TheBench.peak_req_rate=500/sec FillRate=250/sec ProxyCacheSize=1GB");
}

#[test]
fn the_list_above_is_complete() {
    let mut files: Vec<String> = std::fs::read_dir(workloads(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".pg"))
        .collect();
    files.sort();
    let tested = [
        "correctness.pg",
        "datacomm-1.pg",
        "downtime-2.pg",
        "nolb-l4-4.pg",
        "polyfill-2.pg",
        "polymix-1.pg",
        "polymix-2.pg",
        "polymix-2026.pg",
        "polymix-3.pg",
        "polymix-4-tls.pg",
        "polymix-4.pg",
        "pxylb-4.pg",
        "rptmstat-1.pg",
        "rptmstat.pg",
        "simple.pg",
        "srvlb-l4-4.pg",
        "srvlb-l7-4.pg",
        "webaxe-1.pg",
        "webaxe-3.pg",
        "webaxe-4-tls.pg",
        "webaxe-4.pg",
    ];
    assert_eq!(files, tested);
}

const COUNTS: [&str; 3] = ["count(R.addresses)", "count(S.addresses)", "clientHostCount(TheBench)"];

#[test]
fn polymix_3_bench_16_at_1000_per_second() {
    assert_eq!(values("polymix-3.pg", POLYMIX_3, COUNTS), ["2508", "756", "3"]);
    // 4,875,552 objects in all; the hit ratio formulas give 72.37% and 9.09%.
    assert_eq!(
        values(
            "polymix-3.pg",
            POLYMIX_3,
            [
                "int(PeakFillRate * 4hour + 0.5)",
                "int(R.recurrence * 10000)",
                "int(phWarm.recur_factor_beg * 10000)",
                "R.addresses",
                "S.addresses"
            ]
        ),
        ["4875552", "7236", "909", "['10.16.1-12.1-209']", "['10.16.129-134.1-126:80']"]
    );
}

#[test]
fn agent_counts_of_polymix_4() {
    #[track_caller]
    fn check(rate: u32, robots: &str, servers: &str, hosts: &str) {
        let settings = POLYMIX_4.replace("=500/sec", &format!("={rate}/2sec"));
        let settings = settings.replace("=1000/sec", &format!("={rate}/sec"));
        assert_eq!(values("polymix-4.pg", &settings, COUNTS), [robots, servers, hosts], "{rate}/sec");
    }
    check(1, "4", "500", "1");
    check(10, "26", "503", "1");
    check(100, "250", "525", "1");
    check(500, "1250", "625", "1");
    check(501, "1256", "626", "2");
    check(800, "2000", "700", "2");
    check(1000, "2500", "750", "2");
    check(1500, "3750", "876", "3");
    check(2000, "5000", "1000", "4");
    check(5000, "12500", "1750", "10");
}

#[test]
fn polymix_4_names_and_addresses() {
    let [robots, names, small] = values(
        "polymix-4.pg",
        POLYMIX_4,
        ["R.addresses", "count(TheMap.names)", "int(smallFactor * 1000000)"],
    );
    assert_eq!(
        robots,
        "['lo0::10.101.0-1.1-250/22', 'lo0::10.101.2.1-125/22', 'lo0::10.101.4-5.1-250/22', \
         'lo0::10.101.6.1-125/22'] ** 2"
    );
    assert_eq!((&*names, &*small), ("750", "400"));
}

#[test]
fn agent_counts_of_webaxe_4() {
    assert_eq!(values("webaxe-4.pg", WEBAXE_4, COUNTS), ["2500", "2", "2"]);
    assert_eq!(
        values("webaxe-4.pg", WEBAXE_4, ["int(WSS / 11KB)", "int(WSS / 11KB / 2)"]),
        ["95325", "47662"]
    );
}

#[test]
fn agents_of_the_balancer_workloads() {
    let hosts = "TheBench.client_side.hosts=['172.16.45.61-70'] TheBench.server_side.hosts=['172.16.45.191-196:80'] \
         TheBench.proxy_side.hosts=['172.16.45.254:80']";
    assert_eq!(values("srvlb-l4-4.pg", hosts, COUNTS), ["10000", "6", "10"]);
    assert_eq!(values("nolb-l4-4.pg", hosts, COUNTS), ["10000", "6", "10"]);
    assert_eq!(
        values("srvlb-l7-4.pg", hosts, ["count(R.addresses)", "pngServer.addresses", "phPlat.goal.duration"]),
        ["10000", "['172.16.45.193:80', '172.16.45.194:80']", "1hour"]
    );
}

#[test]
fn a_shorter_plateau_makes_a_smaller_working_set() {
    let cap = |file: &str, settings: &str| {
        let compilation = compile_with(&workloads(file), &DiskLoader, settings);
        compilation.workload.unwrap_or_else(|| panic!("{file}")).working_set_cap.unwrap()
    };
    let pxylb = "TheBench.peak_req_rate=500/sec FillRate=250/sec ProxyCacheSize=1GB";
    let rptmstat = POLYMIX_4.replace("FillRate=500/sec ", "");
    for (file, settings, whole) in [
        ("polymix-3.pg", POLYMIX_3, 1_625_184),
        ("polymix-4.pg", POLYMIX_4, 2_592_000),
        ("rptmstat.pg", &rptmstat, 2_592_000),
        ("pxylb-4.pg", pxylb, 607_500),
    ] {
        assert_eq!(cap(file, settings), whole, "{file}");
        // A tenth: 24 minutes of 4 hours, and 6 of one.
        let plateau = if file == "pxylb-4.pg" { "platDur=6min" } else { "platDur=24min" };
        let tenth = cap(file, &format!("{settings} {plateau}"));
        assert!((i64::from(tenth) * 10 - i64::from(whole)).abs() <= 5, "{file}: {tenth}");
    }
    // The working set of a site does not depend on how long it is measured.
    assert_eq!(cap("webaxe-4.pg", &format!("{WEBAXE_4} platDur=6min")), 47_662);
}

/// What headers say of all phases that end by time.
#[test]
fn runs_take_as_long_as_the_headers_say() {
    #[track_caller]
    fn check(file: &str, settings: &str, said: &str, minutes: f64) {
        let compilation = compile_with(&workloads(file), &DiskLoader, settings);
        let phases = compilation.workload.unwrap_or_else(|| panic!("{file}")).phases;
        let goals = phases.iter().filter_map(|phase| phase.goal.as_deref());
        let seconds: f64 = goals.filter_map(|goal| goal.duration).map(|time| time.secs()).sum();
        assert!((seconds / 60.0 - minutes).abs() < 1e-6, "{file}: {} minutes", seconds / 60.0);
        let text = std::fs::read_to_string(workloads(file)).unwrap();
        let header = text.split("*/").next().unwrap().replace("\n *", "");
        assert!(header.contains(said), "{file} does not say: {said}");
    }
    let hosts = "TheBench.client_side.hosts=['172.16.45.61-70'] TheBench.server_side.hosts=['172.16.45.191-196:80'] \
         TheBench.proxy_side.hosts=['172.16.45.254:80']";
    let no_balancer = hosts.split_once(" TheBench.proxy").unwrap().0;
    check("polymix-3.pg", POLYMIX_3, "11 hours and 34 minutes plus the fill", 694.0);
    check("polymix-4.pg", POLYMIX_4, "10 hours and 20 minutes plus the fill", 620.0);
    check("webaxe-4.pg", WEBAXE_4, "10 hours and 20 minutes plus the fill", 620.0);
    check("polymix-4-tls.pg", POLYMIX_4, "10 hours and 20 minutes plus the fill", 620.0);
    check("webaxe-4-tls.pg", WEBAXE_4, "10 hours and 20 minutes plus the fill", 620.0);
    check("polymix-2026.pg", WEBAXE_4, "10 hours and 20 minutes plus the fill", 620.0);
    check("srvlb-l4-4.pg", hosts, "two and a half hours", 150.0);
    check("nolb-l4-4.pg", no_balancer, "two and a half hours", 150.0);
    check("srvlb-l7-4.pg", hosts, "two hours", 120.0);
}

#[test]
fn versions_of_http_are_those_of_the_originals() {
    // All but the smallest, and ours, keep to HTTP/1.0 so that results can be compared.
    for entry in
        std::fs::read_dir(workloads("")).unwrap().chain(std::fs::read_dir(workloads("include")).unwrap())
    {
        let path = entry.unwrap().path();
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let count = |what: &str| text.lines().filter(|line| line.starts_with(what)).count();
        let agents = count("Server ") + count("Robot ")
            - count("Server S = SrvLbServer")
            - count("Robot R = SrvLbRobot");
        let copies = text.matches("Server = SrvLbServer;").count();
        let versions = text.matches("http_versions = [ \"1.0\" ];").count();
        let name = path.file_name().unwrap().to_str().unwrap();
        let expected = match name {
            "simple.pg" => 0,
            "correctness.pg" => 0,
            "polymix-2026-guts.pg" => 0,
            _ => agents - copies,
        };
        assert_eq!(versions, expected, "{name}");
    }
}

/// The example of the WebAxe-4 how-to with its file names filled in and X as bench 101.
const WEBAXE_4_EXAMPLE: &str = r#"
#include "benches.pg"
Bench TheBench = benchWebAxe4;
TheBench.client_side.addr_space = [ 'lo0::10.101.0-123.1-250/22' ];
TheBench.client_side.hosts = [ '172.16.101.61-62' ];
TheBench.server_side.hosts = [ '172.16.101.191-192:80' ];
TheBench.proxy_side.hosts = [ '172.16.101.32:80' ];
TheBench.peak_req_rate = 1000/sec;
rate FillRate = 75% * TheBench.peak_req_rate;
size ProxyCacheSize = 50GB + 4GB;
size WSS = 1GB;
#include "webaxe-4-guts.pg"
print(count(R.addresses), " ", count(S.addresses));
"#;

#[test]
fn the_example_of_the_webaxe_4_how_to_compiles() {
    let compilation = compile_text(WEBAXE_4_EXAMPLE.trim_start(), "");
    assert_eq!(compilation.render(Style::Plain), "");
    assert_eq!(compilation.script_output, ["2500 2"]);
}

#[test]
fn old_forms_work_with_a_note() {
    let text = r#"#include "benches.pg"
Bench TheBench = benchPolyMix3;
TheBench.client_addr_mask = '10.16.0.0';
TheBench = { server_addr_mask = '10.16.0.0:80'; };
TheBench.peak_req_rate = 1000/sec;
rate FillRate = 50% * TheBench.peak_req_rate;
size ProxyCacheSize = 37GB;
#include "polymix-3-guts.pg"
print(count(R.addresses), " ", count(S.addresses));
"#;
    let compilation = compile_text(text, "");
    assert!(!compilation.has_errors(), "{}", compilation.render(Style::Plain));
    assert_eq!(compilation.script_output, ["2508 756"]);
    assert_eq!(compilation.diagnostics.len(), 2);
    for finding in &compilation.diagnostics {
        assert!(finding.message.contains("_addr_mask` is the old name of"), "{}", finding.message);
    }
}

#[test]
fn a_fill_rate_outside_its_bounds_is_told() {
    let settings = POLYMIX_4.replace("FillRate=500/sec", "FillRate=50/sec");
    let compilation = with_text("polymix-4.pg", &settings, "");
    assert!(!compilation.has_errors());
    assert_eq!(
        compilation.script_output,
        ["warning: FillRate is 50/sec; it should be 10% to 100% of the peak rate"]
    );
}

/// One line for each phase: name, length, and the factors that it sets, in percent.
#[track_caller]
fn schedule(file: &str, settings: &str) -> String {
    let compilation = with_text(file, settings, "");
    let workload = compilation.workload.unwrap_or_else(|| panic!("{file} gives no workload"));
    let mut lines = String::new();
    for phase in &workload.phases {
        let goal = phase.goal.clone().unwrap_or_else(|| panic!("a phase of {file} has no goal"));
        lines += phase.name.as_deref().unwrap_or("-");
        if let Some(time) = goal.duration {
            lines += &format!(" {}sec", time.secs());
        }
        if let Some(size) = goal.fill_size {
            lines += &format!(" {}MB", size.0 >> 20);
        }
        let factors = [
            ("populus", phase.populus_factor_beg, phase.populus_factor_end),
            ("load", phase.load_factor_beg, phase.load_factor_end),
            ("recur", phase.recur_factor_beg, phase.recur_factor_end),
            ("special", phase.special_msg_factor_beg, phase.special_msg_factor_end),
        ];
        let percent =
            |factor: Option<f64>| factor.map_or(String::new(), |f| format!("{}", (f * 1e4).round() / 100.0));
        for (name, beg, end) in factors.iter().filter(|(_, beg, end)| beg.or(*end).is_some()) {
            lines += &format!(" {name} {}..{}", percent(*beg), percent(*end));
        }
        for sample in &phase.stats_samples {
            lines += &format!(" sample {}", sample.capacity.unwrap_or_default());
        }
        for (name, flag) in [
            (" unlogged", !phase.log_stats),
            (" waits", phase.wait_wss_freeze),
            (" alone", !phase.synchronize),
        ] {
            lines += if flag { name } else { "" };
        }
        lines += "\n";
    }
    lines
}

#[test]
fn schedules() {
    #[track_caller]
    fn check(file: &str, settings: &str, expected: &str) {
        assert_eq!(schedule(file, settings), expected, "{file}");
    }
    let polymix_4 = "\
framp 1200sec populus 0.04..50 recur 9.09.. special 10..
fill 55296MB sample 1000 waits
fexit 1200sec populus ..0.04 recur ..100 special ..100
inc1 1200sec populus ..100
top1 14400sec sample 10000
dec1 1200sec populus ..10
idle 1200sec
inc2 1200sec populus ..100
top2 14400sec sample 10000
dec2 1200sec populus ..0 alone
";
    check("polymix-4.pg", POLYMIX_4, polymix_4);
    check("webaxe-4.pg", &WEBAXE_4.replace("=750/sec", "=500/sec"), polymix_4);
    check(
        "polymix-3.pg",
        POLYMIX_3,
        "\
warm 180sec load 10.. recur 9.09.. special 10.. unlogged
framp 1800sec load ..49.84
fill 25258MB sample 1000 waits
fexit 1800sec load ..10 recur ..100 special ..100
inc1 1800sec load ..100
top1 14400sec sample 10000
dec1 1800sec load ..10
idle 1800sec
inc2 1800sec load ..100
top2 14400sec sample 10000
dec2 1800sec load ..10
cool 60sec load ..0 unlogged
",
    );
    check(
        "webaxe-3.pg",
        "TheBench.peak_req_rate=1000/sec FillRate=500/sec ProxyCacheSize=17GB WSS=1GB",
        "\
warm 180sec load 10..50 recur 5.26.. unlogged
fill 17408MB waits
link1 300sec recur ..100
link2 300sec load ..100
top1 3600sec
dec 300sec load ..10
idle 600sec
inc 300sec load ..100
top2 3600sec
cool 60sec load ..0 unlogged
",
    );
    check(
        "pxylb-4.pg",
        "TheBench.peak_req_rate=500/sec FillRate=250/sec ProxyCacheSize=1GB",
        "\
warm 120sec load 1.. recur 9.09.. special 10.. unlogged
framp 600sec load ..50
fill 2048MB waits
fderamp 600sec load ..1 recur ..100 special ..100
ramp 600sec load ..100
plat 3600sec
deramp 600sec load ..1
",
    );
    check(
        "nolb-l4-4.pg",
        "TheBench.client_side.hosts=['172.16.45.61-70'] TheBench.server_side.hosts=['172.16.45.191-200:80']",
        "ramp 1800sec populus 1..100\nplat 5400sec\nexit 1800sec load ..1\n",
    );
}

#[test]
fn sizes_of_working_sets() {
    #[track_caller]
    fn check(file: &str, settings: &str, cap: Option<u32>, length_secs: Option<f64>) {
        let compilation = with_text(file, settings, "");
        let workload = compilation.workload.unwrap_or_else(|| panic!("{file} gives no workload"));
        let length = workload.working_set_length.map(|time| time.secs());
        assert_eq!((workload.working_set_cap, length), (cap, length_secs), "{file}");
    }
    check("polymix-3.pg", POLYMIX_3, Some(1_625_184), None);
    check("polymix-4.pg", POLYMIX_4, Some(2_592_000), None);
    check("webaxe-4.pg", WEBAXE_4, Some(47_662), None);
    let pairs = "RobotAddrs=['10.16.1.1-250'] ServerAddrs=['10.16.129.1-9:80']";
    check("polymix-2.pg", pairs, None, Some(14400.0));
    // 100MB of objects of 10KB, and 50 * 5% * 80% = 2 of them are added each second.
    check(
        "webaxe-1.pg",
        &format!("{pairs} FillRate=50/sec ProxyCacheSize=17GB WSS=100MB"),
        None,
        Some(5120.0),
    );
}

#[test]
fn workloads_are_formatted() {
    for dir in ["", "include/"] {
        for entry in std::fs::read_dir(workloads(dir)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "pg") {
                let text = std::fs::read_to_string(&path).unwrap();
                assert_eq!(polygraph_pgl::format::format(&text), Ok(text), "{}", path.display());
            }
        }
    }
}
