//! Whole programs.

use std::path::Path;

use polygraph_pgl::render::Style;
use polygraph_pgl::{Code, Compilation, DiskLoader, MemoryLoader, Options, Severity, compile};

fn lab() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/lab.pg"))
        .expect("readable")
}

/// The folder of the standard workloads.
pub fn workloads() -> String {
    format!("{}/../../workloads", env!("CARGO_MANIFEST_DIR"))
}

/// Compiles a standard workload with settings.
pub fn standard(name: &str, settings: &[(&str, &str)]) -> Compilation {
    let options = Options {
        search_path: vec![workloads(), format!("{}/include", workloads())],
        settings: settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        ..Options::default()
    };
    compile(name, &DiskLoader, &options)
}

#[test]
fn the_complete_program_of_the_reference_has_240_robots() {
    let compilation = crate::compile_text(&lab());
    assert!(compilation.diagnostics.is_empty(), "{}", crate::findings(&compilation));
    let workload = compilation.workload.expect("no errors");
    assert_eq!(workload.robot_count(), 240);
    assert_eq!(workload.server_count(), 1);
    let robots = &workload.robots[0].agent.addresses.0;
    assert_eq!(robots[0].to_string(), "eth1::172.20.0.1/22");
    assert_eq!(robots[79].to_string(), "eth1::172.20.0.80/22");
    // The whole list of addresses comes again, not each address several times.
    assert_eq!(robots[80], robots[0]);
    assert_eq!(workload.phases.len(), 2);
    assert_eq!(workload.contents.len(), 2);
    let kinds: Vec<_> = workload.contents.iter().filter_map(|content| content.kind.as_deref()).collect();
    assert_eq!(kinds, ["page", "blob"]);
    assert!((workload.robots[0].recurrence - 0.4 / (0.7 * 0.95)).abs() < 1e-12);
    assert_eq!(workload.scripts.count(), 1);
}

#[test]
fn standard_workloads_compile_with_parameters() {
    for (name, settings) in STANDARD {
        let compilation = standard(name, settings);
        let text = compilation.render(Style::Plain);
        assert!(!compilation.has_errors(), "{name}\n{text}");
    }
}

/// The standard workloads with the parameters they leave to the user.
pub const STANDARD: &[(&str, &[(&str, &str)])] = &[
    ("simple.pg", &[]),
    ("polymix-1.pg", &[("ReqRate", "50/sec")]),
    ("datacomm-1.pg", &[("ReqRate", "50/sec")]),
    ("downtime-2.pg", &[("RobotAddrs", "['10.12.1.1']"), ("ServerAddrs", "['10.12.129.1:8080']")]),
    (
        "nolb-l4-4.pg",
        &[
            ("TheBench.client_side.hosts", "['172.16.45.61-70']"),
            ("TheBench.server_side.hosts", "['172.16.45.191-200:80']"),
        ],
    ),
    (
        "polyfill-2.pg",
        &[
            ("ProxyCacheSize", "10GB"),
            ("RobotAddrs", "['10.12.1-4.1-250']"),
            ("ServerAddrs", "['10.12.129-130.1-250:80']"),
        ],
    ),
    ("polymix-2.pg", &[("RobotAddrs", "['10.12.1-4.1-250']"), ("ServerAddrs", "['10.12.129-130.1-250:80']")]),
    ("polymix-3.pg", POLYMIX_3),
    ("polymix-4.pg", POLYMIX_4),
    ("polymix-4-tls.pg", POLYMIX_4),
    (
        "pxylb-4.pg",
        &[("TheBench.peak_req_rate", "500/sec"), ("FillRate", "250/sec"), ("ProxyCacheSize", "1GB")],
    ),
    (
        "rptmstat.pg",
        &[
            ("TheBench.peak_req_rate", "150/sec"),
            ("ProxyCacheSize", "22GB"),
            ("DnsServers", "['172.16.101.100:53']"),
        ],
    ),
    ("srvlb-l4-4.pg", SRVLB),
    (
        "srvlb-l7-4.pg",
        &[
            ("TheBench.client_side.hosts", "['172.16.45.61']"),
            ("TheBench.server_side.hosts", "['172.16.45.191-196:80']"),
            ("TheBench.proxy_side.hosts", "['172.16.45.254:80']"),
        ],
    ),
    (
        "webaxe-1.pg",
        &[
            ("RobotAddrs", "['10.11.1-4.1-250']"),
            ("ServerAddrs", "['172.16.128.61-62:80']"),
            ("FillRate", "200/sec"),
            ("ProxyCacheSize", "17GB"),
            ("WSS", "1GB"),
        ],
    ),
    (
        "webaxe-3.pg",
        &[
            ("TheBench.peak_req_rate", "800/sec"),
            ("FillRate", "400/sec"),
            ("ProxyCacheSize", "17GB"),
            ("WSS", "1GB"),
        ],
    ),
    ("webaxe-4.pg", WEBAXE_4),
    ("webaxe-4-tls.pg", WEBAXE_4),
    ("polymix-2026.pg", WEBAXE_4),
];

const POLYMIX_3: &[(&str, &str)] = &[
    ("TheBench.client_side.addr_mask", "'10.16.0.0'"),
    ("TheBench.server_side.addr_mask", "'10.16.0.0:80'"),
    ("TheBench.peak_req_rate", "1000/sec"),
    ("FillRate", "500/sec"),
    ("ProxyCacheSize", "54GB"),
];

pub const POLYMIX_4: &[(&str, &str)] = &[
    ("TheBench.peak_req_rate", "1000/sec"),
    ("FillRate", "500/sec"),
    ("ProxyCacheSize", "54GB"),
    ("DnsServers", "['172.16.101.100:53']"),
];

const WEBAXE_4: &[(&str, &str)] = &[
    ("TheBench.server_side.hosts", "['172.16.101.191-192:80']"),
    ("TheBench.proxy_side.hosts", "['172.16.101.32:80']"),
    ("TheBench.peak_req_rate", "1000/sec"),
    ("TheBench.client_side.addr_space", "[ 'lo0::10.101.0-123.1-250/22' ]"),
    ("FillRate", "75% * 1000/sec"),
    ("ProxyCacheSize", "54GB"),
    ("WSS", "1GB"),
];

const SRVLB: &[(&str, &str)] = &[
    ("TheBench.client_side.hosts", "['172.16.45.61-70']"),
    ("TheBench.server_side.hosts", "['172.16.45.191-200:80']"),
    ("TheBench.proxy_side.hosts", "['172.16.45.254:80']"),
];

#[test]
fn standard_workloads_name_the_parameters_that_are_missing() {
    for (name, settings) in STANDARD {
        for (missing, _) in *settings {
            let rest: Vec<_> = settings.iter().copied().filter(|(name, _)| name != missing).collect();
            let text = standard(name, &rest).render(Style::Plain);
            // Some parameters have defaults in the shared files; those that have none are named.
            if text.contains("error[") {
                assert!(
                    text.contains(&format!("--set {missing}="))
                        || text.contains(&format!("--set \"{missing}=")),
                    "{name} without {missing}:\n{text}"
                );
            }
        }
        if !settings.is_empty() {
            assert!(standard(name, &[]).has_errors(), "{name} needs parameters");
        }
    }
}

/// Checks the numbers of robots and servers, and the ranges of their addresses without interface, subnet and repeats.
fn check_agents(name: &str, settings: &[(&str, &str)], robots: (usize, &str), servers: (usize, &str)) {
    let compilation = standard(name, settings);
    let text = compilation.render(Style::Plain);
    let workload = compilation.workload.unwrap_or_else(|| panic!("{name}\n{text}"));
    let ranges = |addrs: &[polygraph_addr::Addr]| {
        let mut seen = std::collections::HashSet::new();
        let unique = addrs.iter().filter(|addr| seen.insert((*addr).clone()));
        let bare = unique.map(|addr| polygraph_addr::Addr { interface: None, subnet: None, ..addr.clone() });
        polygraph_addr::join(&polygraph_addr::compact(bare), " ")
    };
    let robot = &workload.robots[0].agent.addresses.0;
    let server: Vec<_> =
        workload.servers.iter().flat_map(|server| server.agent.addresses.0.clone()).collect();
    assert_eq!((workload.robot_count(), ranges(robot).as_str()), robots, "{name} robots");
    assert_eq!((workload.server_count(), ranges(&server).as_str()), servers, "{name} servers");
}

#[test]
fn agents_of_standard_workloads() {
    check_agents("polymix-3.pg", POLYMIX_3, (2508, "10.16.1-12.1-209"), (756, "10.16.129-134.1-126:80"));
    check_agents(
        "polymix-4.pg",
        POLYMIX_4,
        (2500, "10.101.0-1.1-250 10.101.2.1-125 10.101.4-5.1-250 10.101.6.1-125"),
        (750, "10.101.128.1-250:80 10.101.129.1-125:80 10.101.132.1-250:80 10.101.133.1-125:80"),
    );
    check_agents(
        "webaxe-4.pg",
        WEBAXE_4,
        (2500, "10.101.0-1.1-250 10.101.2.1-125 10.101.4-5.1-250 10.101.6.1-125"),
        (2, "172.16.101.191-192:80"),
    );
    check_agents(
        "srvlb-l4-4.pg",
        SRVLB,
        (10000, "10.45.1-4.1-250 10.45.8-43.1-250"),
        (10, "172.16.45.191-200:80"),
    );
}

#[test]
fn scripts_are_checked_against_all_global_variables() {
    // The script runs when the whole program was read, so it sees what is declared after it.
    let program = "Phase P = { goal.duration = 1min; script = { later = 2; int own = later; print(own); }; }; int later = 1;";
    assert!(!crate::compile_text(program).has_errors(), "{}", crate::findings(&crate::compile_text(program)));
    let wrong = [
        "Phase P = { script = { print(nowhere); }; };",
        "Phase P = { script = { use(P); }; };",
        "Phase P = { script = { int own = 1; every P.goal do { print(own); } }; };",
        "Phase P = { script = { setSamplingGoalTo(P.goal); }; };",
        "Phase P = { script = { every 5sec do { } }; };",
        "Phase P = { script = { setLoadFactorTo(\"x\"); }; };",
        "Phase P = { script = { StatSample s = currentSample(); }; };",
    ];
    for program in wrong {
        assert!(crate::compile_text(program).has_errors(), "{program}");
    }
}

#[test]
fn settings_replace_what_the_file_says() {
    let check = |program: &str, settings: &[(&str, &str)], expected: &str| {
        let settings =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let options = Options { settings, ..Options::default() };
        let loader = polygraph_pgl::MemoryLoader::default().with("test.pg", program);
        let compilation = compile("test.pg", &loader, &options);
        let text = compilation.render(Style::Plain);
        assert_eq!(compilation.script_output.last().map(String::as_str), Some(expected), "{program}\n{text}");
    };
    check("rate r; print(r);", &[("r", "5/sec")], "5/sec");
    check("rate r = undef(); print(r);", &[("r", "5/sec")], "5/sec");
    check("rate r = 1/sec; print(r);", &[("r", "5/sec")], "5/sec");
    check(
        "Bench B = { peak_req_rate = undef(); }; print(B.peak_req_rate);",
        &[("B.peak_req_rate", "5/sec")],
        "5/sec",
    );
    check(
        "Bench A; Bench B = A; B.peak_req_rate = 2/sec; print(B.peak_req_rate);",
        &[("B.peak_req_rate", "5/sec")],
        "5/sec",
    );
    // A copy of a whole record does not undo a setting of one of its fields.
    check("Bench A; Bench B; B = A; print(B.peak_req_rate);", &[("B.peak_req_rate", "5/sec")], "5/sec");
    check("int n; int m = n * 2; print(m);", &[("n", "21")], "42");
    check(
        "DnsResolver R = { servers = [ undef() ]; }; print(count(R.servers));",
        &[("R.servers", "['10.0.0.1-3']")],
        "3",
    );
    check("rate a = 2/sec; rate b; print(b);", &[("b", "50% * a")], "1/sec");
}

#[test]
fn old_forms_of_bench_settings_work_with_a_note() {
    let compilation = crate::compile_text(
        "Bench B = { client_addr_mask = '10.16.0.0'; };\nB.server_addr_mask = '10.16.0.0:80';\n\
         print(B.client_side.addr_mask, B.server_side.addr_mask);",
    );
    assert_eq!(compilation.script_output, ["'10.16.0.0''10.16.0.0:80'"], "{}", crate::findings(&compilation));
    let notes =
        compilation.diagnostics.iter().filter(|finding| finding.code == polygraph_pgl::Code::Deprecated);
    assert_eq!(notes.count(), 2);
}

#[test]
fn nothing_eats_memory_or_time() {
    let programs = [
        "int[] a = [1]; ".to_owned() + &"a = a + a;".repeat(60),
        "int[] a = [1] ** 2000000000; int[] b = [a] ** 2000000000;".to_owned(),
        "re r = url =~/x/; ".to_owned() + &"r = r && r;".repeat(100),
        "Content C = { size = exp(1KB); }; ".to_owned() + &"C.may_contain = [C, C];".repeat(100),
        format!("int x = {}1{};", "(".repeat(100_000), ")".repeat(100_000)),
        format!("int x = {}1;", "-".repeat(100_000)),
        format!("{}{}", "{".repeat(100_000), "}".repeat(100_000)),
        format!("int x = 1{};", " + 1".repeat(100_000)),
        format!("int[] a = {}{};", "[".repeat(100_000), "]".repeat(100_000)),
        "addr[] a = ['10.0-255.0-255.0-255:1-65535']; Robot R = { addresses = a; }; use(R);".to_owned(),
        "string[] s = [\"x[0-4000000000]y[0-4000000000]z[0-4000000000]\"]; print(count(s));".to_owned(),
        "int[] a = 1 .. 1000000; ".to_owned() + &"a = a + [1];".repeat(1000),
    ];
    for program in &programs {
        let start = std::time::Instant::now();
        crate::compile_text(program);
        let took = start.elapsed();
        // Generous, for busy machines: what is meant is no minutes and no gigabytes.
        assert!(took.as_secs() < 20, "{took:?} for {}", &program[..60.min(program.len())]);
    }
}

#[test]
fn included_files_are_found_beside_the_file_that_asks_and_in_its_include_directory() {
    let loader = MemoryLoader::default()
        .with("w/main.pg", "#include \"part.pg\"\n#include \"beside.pg\"\nprint(n + m + k);")
        .with("w/include/part.pg", "#include \"deeper.pg\"\nint n = 1;")
        .with("w/include/deeper.pg", "int k = 3;")
        .with("w/beside.pg", "int m = 2;");
    let compilation = compile("w/main.pg", &loader, &Options::default());
    assert_eq!(compilation.script_output, ["6"], "{}", compilation.render(Style::Plain));
}

#[test]
fn settings_replace_initialisers_with_undef_in_them() {
    let run = |text: &str, settings: &[(&str, &str)]| {
        let settings =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let loader = MemoryLoader::default().with("test.pg", text);
        let compilation = compile("test.pg", &loader, &Options { settings, ..Options::default() });
        let errors = compilation.diagnostics.iter().filter(|found| found.severity == Severity::Error);
        let errors: Vec<_> = errors.map(|found| found.code).collect();
        (compilation.script_output, errors)
    };
    let factor = "rate P = 5/sec; rate F = undef() * P; print(F);";
    assert_eq!(run(factor, &[("F", "1/sec")]), (vec!["1/sec".to_owned()], vec![]));
    assert_eq!(run(factor, &[]).1, [Code::UndefOperand]);
    let set = [("B.peak_req_rate", "1/sec")];
    let bench = "Bench B; B = { peak_req_rate = -undef() / 2; }; print(B.peak_req_rate);";
    assert_eq!(run(bench, &set), (vec!["1/sec".to_owned()], vec![]));
    let call = "time_distr d = exp(undef()); addr[] a = [ undef() ]; print(d, a);";
    let set = [("d", "const(1sec)"), ("a", "['10.0.0.1']")];
    assert_eq!(run(call, &set), (vec!["const(1sec)['10.0.0.1']".to_owned()], vec![]));
    assert_eq!(run(call, &[]).1, [Code::UndefOperand, Code::UndefOperand]);
}

#[test]
fn points_in_time_keep_their_digits_and_nothing_is_a_negative_zero() {
    let shown = |text: &str| crate::compile_text(&format!("print({text});")).script_output.concat();
    for (text, expected) in [
        ("'2014/10/22 10:20:30'", "1413973230sec"),
        ("'2014/10/22 10:20:30' + 0.25sec", "1413973230.25sec"),
        ("'2001/01/01'", "11323day"),
        ("10sec/3", "3.33333sec"),
        ("-0.0", "0"),
        ("-(0.0/sec)", "0/sec"),
        ("-0sec * 1.5", "0sec"),
        ("const(-0.0)", "const(0.0)"),
        ("-1.0 * (0KB/sec)", "0bit/sec"),
    ] {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn a_mark_of_the_byte_order_is_skipped() {
    let loader = MemoryLoader::default()
        .with("test.pg", "\u{feff}#include \"a.pg\"\nprint(a);")
        .with("a.pg", "\u{feff}int a = 5;");
    let compilation = compile("test.pg", &loader, &Options::default());
    assert!(!compilation.has_errors());
    assert_eq!(compilation.script_output, ["5"]);
}

const AGENTS: &str = "Content C = { size = exp(1KB); };\nServer S = { contents = [ C ]; addresses = ['127.0.0.1:9090']; };\n\
                      Robot R = { origins = S.addresses; addresses = ['127.0.0.1']; req_rate = 1/sec; };\n";

#[test]
fn what_says_nothing_does_no_harm() {
    let run = |more: &str| crate::compile_text(&format!("{AGENTS}{more}\nuse(S, R);"));
    for more in ["R.foreign_trace = \"trace\";", "R = { foreign_trace = \"\"; };"] {
        let compilation = run(more);
        let codes: Vec<Code> = compilation.diagnostics.iter().map(|found| found.code).collect();
        assert_eq!(codes, [Code::RobotIgnores, Code::NoSchedule], "{more}");
        assert!(compilation.workload.is_some());
    }
    assert!(!run("S.ssl_wraps = { };\nR = { ssl_wraps = { }; };").has_errors());
    assert!(
        run("R = { interests = [ \"foreign\" ]; foreign_trace = \"\"; };").has_errors(),
        "an empty name is none"
    );
}
