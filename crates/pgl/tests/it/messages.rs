//! A message for each class of mistakes a user meets; the snapshots are what a person reads.

use polygraph_pgl::{Code, MemoryLoader, Options, Severity, compile};

/// Compiles a program with these other files and gives all findings but those about missing agents and phases.
fn messages(text: &str, files: &[(&str, &str)], options: &Options) -> String {
    let mut loader = MemoryLoader::default().with("test.pg", text);
    for (name, text) in files {
        loader = loader.with(name, *text);
    }
    let mut compilation = compile("test.pg", &loader, options);
    compilation.diagnostics.retain(|finding| !matches!(finding.code, Code::NothingUsed | Code::NoSchedule));
    assert!(!compilation.diagnostics.is_empty(), "nothing to say about {text}");
    crate::findings(&compilation)
}

/// One section for each program.
fn section(programs: &[&str]) -> String {
    programs.iter().map(|text| messages(text, &[], &Options::default())).collect::<Vec<_>>().join("\n")
}

#[test]
fn preprocessing() {
    let options = Options { search_path: vec!["inc".to_owned(), "more".to_owned()], ..Options::default() };
    let files = [
        ("inc/a.pg", "#include \"b.pg\"\n"),
        ("inc/b.pg", "\nint x = 5\nint y = 6;\n"),
        ("self.pg", "#include \"self.pg\"\n"),
    ];
    let texts = [
        "#include \"nowhere.pg\"\n",
        "#include \"a.pg\"\n",
        "#include \"self.pg\"\n",
        "#include nowhere\n",
        "#define X 5\n",
        " #include \"a.pg\"\n",
        "int x = `echo 5`;",
        "int x = 5; /* a /* b */",
    ];
    let all: Vec<String> = texts.iter().map(|text| messages(text, &files, &options)).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn syntax() {
    insta::assert_snapshot!(section(&[
        "int x = ;",
        "Robot R = {\n    req_rate = 1/sec\n    recurrence = 5%;\n};",
        "Robot R = { recurrence = 5%; }\nRobot S;",
        "int a = (1 + 2;",
        "Robot R = {\n  recurrence = 5%;\n",
        "}",
        "string s = \"abc;\nint x = 5;",
        "int x = 5; // fine\nint y = 5 § 6;",
        "if (1 < 2) { print(1); }",
        "if (1 < 2) then { print(1); } else if (2 < 3) then { print(2); }",
        "int[] a = [1, 2, ];",
        "print(7%3);",
        "print(1 < 2 < 3);",
        "x == 5;",
        "int sec = 5;",
    ]));
}

#[test]
fn literals() {
    insta::assert_snapshot!(section(&[
        "addr a = '::10.0.0.1';",
        "addr a = '10.0.0.1:';",
        "addr a = '10.0.0.1:http';",
        "addr a = '10.0.0.256';",
        "addr a = '10.0.0.1/33';",
        "addr a = 'www.a.com/24';",
        "addr a = '[fe80::1';",
        "addr a = '[fe80::1]x';",
        "addr[] a = ['10.0.5-3.1'];",
        "string[] a = [\"user[1,5]\"];",
        "time t = '2001/02/30';",
        "MimeHeader h = ': x';",
        "size s = 9bit;",
        "int x = 3000000000;",
        "time t = 5secs;",
        "size s = 5kb;",
        "time t = 1e3sec;",
        "re r = url_hots =~/foo/;",
        "re r = url =~/(foo/;",
    ]));
}

#[test]
fn names() {
    insta::assert_snapshot!(section(&[
        "robot R;",
        "timer t;",
        "print(undeclared);",
        "rate peak = 5/sec;\nprint(peek);",
        "Robot R = { recurence = 5%; };",
        "Robot R;\nR.pop_model.hot_set_fraq = 1%;",
        "Bench B = { client_addr_mask = '10.1.0.0'; };",
        "Bench B;\nB.client_side.hosts.foo = 1;",
        "Robot A.b;",
        "int x = 1;\nint y = 2;\nint x = 3;",
        "int k = 1;\nRobot R = {\n    int k = 2;\n};",
        "Robot R = {\n    int kind = 2;\n};",
        "Phase p = { script = { StatSample s = currentPhase(); print(s.rep.rptm.means); }; };",
    ]));
}

#[test]
fn undefined_values() {
    insta::assert_snapshot!(section(&[
        "rate PeakRate = undef();\nrate Half = PeakRate / 2;",
        "Bench B;\nprint(B.client_side.max_host_load);",
        "rate max_host_load = 1/sec;\nBench B = {\n    client_side = { max_agent_load = max_host_load; };\n};",
        "DnsResolver Resolver = { servers = [ undef() ]; };",
        "int x = 1 + undef();",
        "Robot R;\nR.kerberos_wrap = { realm = \"X\"; };",
        "int n;\nint[] a = [1] ** n;",
    ]));
}

#[test]
fn types() {
    insta::assert_snapshot!(section(&[
        "int x = 2.5;",
        "int x = 10/sec * 1sec;",
        "time t = 5;",
        "rate r = 100;",
        "addr[] a = '10.0.0.1';",
        "addr a = '10.0.0.1-5';",
        "Robot R = { pipeline_depth = const(5); };",
        "Content C = { size = 10KB; };",
        "string s = 5;",
        "float[] f = [1.5, 2];",
        "Content A;\nServer S = { contents = [ A: 50%, '10.0.0.1' ]; };",
        "time t = 5sec + 5KB;",
        "print(\"a\" + \"b\");",
        "print('10.0.0.1-2' + '10.0.0.3');",
        "print(1.0 == 1.0);",
        "print(0 + 10sec);",
        "print(10sec + 5);",
        "if (5sec) then { print(1); }",
        "print(count(5));",
        "int x = int(\"5 apples\");",
        "ObjLifeCycle o = { expires = [ lmt + 5sec ]; };",
        "int[] a = [1] ** 2.5;",
        "Server S;\nS.contents = { kind = \"x\"; };",
    ]));
}

#[test]
fn values_and_calls() {
    insta::assert_snapshot!(section(&[
        "int x = 2147483647 + 1;",
        "int zero = 0;\nint x = 5 / zero;",
        "rate r = 10/0sec;",
        "int[] a = [1] ** -2;",
        "addr[] a = select(['10.0.0.1'], 0);",
        "addr[] a = setAddrPort(['10.0.0.1'], 70000);",
        "addr[] a;\naddr[] b;\n[a, b] = ['10.0.0.1-3'];",
        "int[] a = 1 .. 100000000;",
        "addr[] a = select(['10.0.0.1-2'], 5);",
        "foo(1);",
        "addr[] a = hostedUrls(\"x\");",
        "int n = cuont([1]);",
        "float f = unif(1);",
        "Robot R;\nuse([R]);",
        "int x = 5;\nuse(x);",
        "count([1]);",
        "int x = use(1);",
        "changeLoadFactorBy(10%);",
        "Goal g = { duration = 1sec; };\nevery g do { print(1); }",
        "int[] a = [1: 30%, 2: 30%];",
        "Robot R;\nuse(R);",
    ]));
}

#[test]
fn schemes() {
    insta::assert_snapshot!(section(&[
        "Bench TheBench;\nPolyMix4As asPolyMix4;\naddr[] a = robotAddrs(asPolyMix4, TheBench);",
        "Bench B = {\n    peak_req_rate = undef();\n    client_side = { max_host_load = 500/sec; max_agent_load = 0.4/sec; addr_space = ['10.1.0-3.1-250']; };\n};\nPolyMix4As as4 = { agents_per_addr = 2; };\naddr[] a = robotAddrs(as4, B);",
        "Bench B = {\n    peak_req_rate = 5000/sec;\n    client_side = { max_host_load = 500/sec; max_agent_load = 0.4/sec; addr_space = ['10.1.0-3.1-250/22']; };\n};\nPolyMix4As as4 = { agents_per_addr = 2; };\naddr[] a = robotAddrs(as4, B);",
        "Bench B = { peak_req_rate = 100/sec; };\nint n = clientHostCount(B);",
    ]));
}

/// A working test that the next programs break in one place each.
const BASE: &str = "
Content C = { size = exp(13KB); cachable = 80%; };
Server S = { contents = [ C ]; addresses = ['127.0.0.1:9090']; };
Robot R = { origins = S.addresses; addresses = ['127.0.0.1']; req_rate = 1/sec; };
Phase P = { name = \"p\"; goal.duration = 1min; };
schedule(P);
";

fn agents(changes: &[&str]) -> String {
    let programs: Vec<String> =
        changes.iter().map(|change| format!("{BASE}{change}\nuse(S, R);\n")).collect();
    let programs: Vec<&str> = programs.iter().map(String::as_str).collect();
    section(&programs)
}

#[test]
fn the_base_of_the_next_tests_is_fine() {
    let compilation = crate::compile_text(&format!("{BASE}use(S, R);"));
    assert!(compilation.diagnostics.is_empty(), "{}", crate::findings(&compilation));
}

/// Mistakes in settings of robots.
const ROBOTS: &[&str] = &[
    "R.req_inter_arrival = exp(1sec);",
    "R.origins = undef();",
    "R.origins = ['127.0.0.1:9091'];",
    "R.origins = ['127.0.0.1:9090', '127.0.0.1:9090'];",
    "R.recurrence = 50%;",
    "R.interests = [\"publik\"];",
    "R.interests = [\"foreign\": 10%, \"public\"];",
    "R.req_methods = [\"GET\", \"POST\": 5%];",
    "R.req_types = [\"Basic\", \"Ims302\": 5%];",
    "R.post_contents = [ C ];",
    "R.upload_contents = [ C ];",
    "SingleRange r = { first_byte_pos_absolute = 0Byte; }; R.ranges = [ r ];",
    "R.req_body_pause_prob = 5%; R.req_body_pause_start = 5KB;",
    "R.socks_prob = 5%;",
    "R.minimize_new_conn = 50%;",
    "R.session.idle_period_duration = const(5sec);",
    "R.addresses = ['127.0.0.1:80'];",
    "R.addresses = ['www.a.com'];",
    "R.proxies = ['127.0.0.1:3128'];",
    "R.embed_recur = 150%;",
    "R.open_conn_lmt = 0;",
    "R.wait_xact_lmt = -1;",
];

#[test]
fn robots() {
    insta::assert_snapshot!(agents(ROBOTS));
}

/// Mistakes in settings of servers.
const SERVERS: &[&str] = &[
    "S.contents = undef();",
    "Content D = C; D.cachable = 90%; S.direct_access = [ D ];",
    "S.addresses = ['127.0.0.1'];",
    "S.addresses = ['127.0.0.1:9090' ** 2];",
    "S.addresses = ['www.a.com:80'];",
    "S.cookie_set_prob = 10%;",
    "S.rep_types = [\"Basic\", \"302 Found\": 5%];",
    "S.protocol = [\"HTTPS\"];",
    "S.auth_schemes = [ \"ntml\" ];",
];

#[test]
fn servers() {
    insta::assert_snapshot!(agents(SERVERS));
}

/// Mistakes in settings of contents.
const CONTENTS: &[&str] = &[
    "C.size = undef(); S.contents = [ C ];",
    "C = { content_db = \"a.cdb\"; document_root = \"b\"; }; S.contents = [ C ];",
    "C.may_contain = [ C ]; S.contents = [ C ];",
    "C.inject_db = \"x\"; S.contents = [ C ];",
    "C.encodings = [\"gzp\"]; S.contents = [ C ];",
    "C.generator = \"random\"; S.contents = [ C ];",
    "C.obj_life_cycle = { length = const(1day); expires = [ const(5sec) ]; }; S.contents = [ C ];",
    "C.cachable = 80; S.contents = [ C ];",
];

#[test]
fn contents() {
    insta::assert_snapshot!(agents(CONTENTS));
}

/// The statements in the advice of a finding: `R.recurrence = 5%;` in backquotes.
fn advised(finding: &polygraph_pgl::Diagnostic) -> Vec<&str> {
    let quoted = finding.help.iter().flat_map(|help| help.split('`').skip(1).step_by(2));
    let of_agent = |code: &&str| ["R.", "S.", "C."].iter().any(|owner| code.starts_with(owner));
    quoted.filter(|code| code.ends_with(';')).filter(of_agent).collect()
}

#[test]
fn whoever_follows_the_advice_gets_another_result() {
    let mut followed = 0;
    for change in [ROBOTS, SERVERS, CONTENTS, PARTS].concat() {
        let program = |more: &str| format!("{BASE}{change}\n{more}\nuse(S, R);\n");
        let before = crate::compile_text(&program(""));
        for finding in &before.diagnostics {
            for statement in advised(finding) {
                let refill = if statement.starts_with("C.") { "S.contents = [ C ];" } else { "" };
                let after = crate::compile_text(&program(&format!("{statement} {refill}")));
                let again = after.diagnostics.iter().find(|other| other.message == finding.message);
                let known = |other: &&polygraph_pgl::Diagnostic| {
                    before.diagnostics.iter().any(|old| old.code == other.code)
                };
                let new = after
                    .diagnostics
                    .iter()
                    .filter(|other| other.severity == Severity::Error)
                    .find(|it| !known(it));
                assert!(
                    again.is_none() && new.is_none(),
                    "{change} {statement}\n{}",
                    crate::findings(&after)
                );
                followed += 1;
            }
        }
    }
    assert!(followed >= 12, "{followed}");
}

/// What is not implemented: settings, and the field whose description says so.
#[test]
fn what_cannot_be_run() {
    let cases = [
        ("Agent", "socket", "R.socket.nagle = true;"),
        ("Agent", "world", "S.world = uniqId();"),
        ("Robot", "ftp_proxies", "R.ftp_proxies = [ '10.0.0.9:1080' ];"),
        ("Robot", "passive_ftp", "R.passive_ftp = 50%;"),
        ("Robot", "acl", "R.acl.allow = url =~/x/;"),
        ("Robot", "icp_port", "R.icp_port = 3130;"),
        ("Robot", "peer_http", "R.peer_http = '10.0.0.9:80';"),
        ("Robot", "peer_icp", "R.peer_icp = '10.0.0.9:3130';"),
        ("Robot", "credentials", "R.credentials = [ \"joe:x\", \"${target_ip}:p\" ];"),
        ("Server", "accept_lmt", "S.accept_lmt = 5;"),
        ("Server", "protocol", "S.protocol = [ \"HTTP\", \"FTP\": 5% ];"),
        (
            "Session",
            "heartbeat_notif_rate",
            "R.session = { busy_period.duration = 1min; idle_period_duration = exp(1min); heartbeat_notif_rate = 1/sec; };",
        ),
    ];
    let page = polygraph_pgl::docs::reference();
    for (rec, field, _) in cases {
        let of_type = page.split("\n### ").find(|part| part.starts_with(&format!("{rec}\n"))).unwrap();
        let row = of_type.lines().find(|line| line.starts_with(&format!("| `{field}` |"))).unwrap();
        assert!(row.contains("not implemented"), "{row}");
    }
    let mut changes: Vec<&str> = cases.iter().map(|(_, _, change)| *change).collect();
    changes.extend([
        "MembershipMap M = { group_space = [ \"g\" ]; member_space = [ \"m\" ]; groups_per_member = const(1); }; use(M);",
        "AddrMap M = { names = dynamize([ 'w.tst:80' ], 10%); addresses = S.addresses; }; use(M); R.origins = M.names;",
        "S.xact_think = seq(1sec);",
        "C.obj_life_cycle = { length = const(1day); with_lmt = 100%; expires = [ now + seq(5sec) ]; }; S.contents = [ C ];",
    ]);
    insta::assert_snapshot!(agents(&changes));
    for change in changes {
        let compilation = crate::compile_text(&format!("{BASE}{change} use(S, R);"));
        let errors = compilation.diagnostics.iter().filter(|finding| finding.severity == Severity::Error);
        assert!(
            errors.map(|finding| finding.code).eq([Code::NotSupported]),
            "{}",
            crate::findings(&compilation)
        );
    }
    let list: Vec<String> =
        (0..254).map(|n| format!("Content C{n} = {{ size = const({n}Byte); }};")).collect();
    let names: Vec<String> = (0..254).map(|n| format!("C{n}")).collect();
    let text = format!("{BASE}{}\nS.contents = [ {} ]; use(S, R);", list.join("\n"), names.join(", "));
    let compilation = crate::compile_text(&text);
    assert!(
        crate::findings(&compilation).contains("254 contents, but 253 are possible"),
        "{}",
        crate::findings(&compilation)
    );
}

#[test]
fn behavior_of_contents() {
    let with = |behavior: &str, robot: &str| {
        format!("C.client_behavior = {{ {behavior} }}; S.contents = [ C ]; {robot}")
    };
    insta::assert_snapshot!(agents(&[
        &with("req_types = [\"Ims34\"]; req_methods = [\"GETT\"];", ""),
        &with("recurrence = 250%; pop_model.pop_distr = popUnif();", ""),
        &with("recurrence = 50%;", ""),
        &with("pop_model.hot_set_frac = 1%;", ""),
        &with("req_methods = [\"POST\"];", ""),
        &with("req_types = [\"Basic\", \"Upload\": 10%];", "R.post_contents = [ C ];"),
        &with("req_types = [\"Range\"];", ""),
        &with(
            "req_types = [\"Range\"]; SingleRange r = { last_byte_pos_absolute = 10Byte; }; ranges = [ r ];",
            ""
        ),
        &with("req_methods = [\"POTS\"];", "R.post_contents = [ C ];"),
        // A robot that does not ask for it.
        "Content D = C; D.client_behavior.req_methods = [\"POST\"]; \
         Server T = { contents = [ D ]; addresses = ['127.0.0.2:9090']; }; use(T); R.post_contents = [ C ];",
    ]));
}

#[test]
fn behavior_of_contents_that_is_complete() {
    let fine = [
        ("req_methods = [\"POST\"];", "R.post_contents = [ C ];"),
        ("req_types = [\"Upload\"];", "R.upload_contents = [ C ];"),
        (
            "req_types = [\"Range\"];",
            "SingleRange r = { first_byte_pos_absolute = 0Byte; }; R.ranges = [ r ];",
        ),
        (
            "req_types = [\"Range\"]; SingleRange r = { first_byte_pos_absolute = 0Byte; }; ranges = [ r ];",
            "",
        ),
        ("recurrence = 50%;", "R.pop_model.pop_distr = popUnif();"),
        ("recurrence = 50%; pop_model.pop_distr = popUnif();", ""),
    ];
    let map =
        "AddrMap M = { names = ['a.com:9090']; addresses = S.addresses; }; use(M); R.origins = M.names;";
    for (behavior, robot) in fine {
        for map in ["", map] {
            let text = format!(
                "{BASE}C.client_behavior = {{ {behavior} }}; S.contents = [ C ]; {robot}{map} use(S, R);"
            );
            let compilation = crate::compile_text(&text);
            assert!(compilation.diagnostics.is_empty(), "{behavior} {}", crate::findings(&compilation));
        }
    }
}

#[test]
fn parts_of_pages_that_servers_lack() {
    let page = "Content I = { kind = \"img\"; size = const(1KB); }; \
                C = { kind = \"page\"; may_contain = [ I ]; embedded_obj_cnt = const(2); }; S.contents = [ C ];";
    let follow = "R.embed_recur = 100%;";
    let map = "Server T = { contents = [ I ]; addresses = ['127.0.0.2:9090']; }; \
               AddrMap M = { names = ['127.0.0.3:80']; addresses = [ S.addresses, T.addresses ]; }; use(T, M);";
    insta::assert_snapshot!(agents(&[&format!("{page} {follow}"), &format!("{page} {follow} {map}")]));
    for fine in [
        page.to_owned(),
        format!("{page} {follow} S.contents = [ C, I ]; S.direct_access = [ C ];"),
        format!("{page} {follow} {map} R.origins = M.names;"),
    ] {
        let compilation = crate::compile_text(&format!("{BASE}{fine} use(S, R);"));
        assert!(compilation.diagnostics.is_empty(), "{fine} {}", crate::findings(&compilation));
    }
}

/// Mistakes in settings of other parts.
const PARTS: &[&str] = &[
    "R.req_types = [\"Basic\", \"Range\": 5%]; SingleRange r; R.ranges = [ r ];",
    "R.session = { busy_period.errors = 3; idle_period_duration = const(5sec); };",
    "R.session = { busy_period.xactions = -3; idle_period_duration = const(5sec); };",
    "SslWrap W = { rsa_key_sizes = [ 256bit ]; }; S.ssl_wraps = [ W ];",
    "SslWrap W = { protocols = [ \"TLSv9\" ]; }; S.ssl_wraps = [ W ];",
    "SslWrap W = { certificates = [ \"a.pem\" ]; generate_certificates = yes; }; S.ssl_wraps = [ W ];",
    "AddrMap M = { names = ['a.com:80', 'b.com:80']; addresses = ['10.0.0.1-3:80']; }; use(M);",
    "AddrMap M = { names = ['a.com:80']; }; use(M);",
    "Bench B = { client_side.hosts = ['10.0.0.1-2']; client_side.cpu_cores = [[1], [2], [3]]; }; use(B);",
    "Bench A; Bench B; use(A); use(B);",
    "Phase Q = { name = \"q\"; load_factor_end = 150%; goal.duration = 1min; }; schedule(Q);",
    "Phase Q = { name = \"q\"; load_factor_beg = 0.1; load_factor_end = 1.0; }; schedule(Q);",
    "Phase Q = { name = \"q\"; goal.duration = 0sec; }; schedule(Q);",
    "Phase Q = { name = \"q\"; goal.xactions = 0; }; schedule(Q);",
    "Phase Q = { name = \"q\"; stats_samples = [ StatsSampleOf ]; }; schedule(Q);",
    "StatsSample X = { capacity = 10; }; schedule(X);",
    "Phase Q = { name = \"q\"; goal.duration = 1min; rptmstat.load_delta = 1%; }; schedule(Q);",
    "KerberosWrap K; K.timeout = 1sec; R.kerberos_wrap = K;",
    "R.dns_resolver = { timeout = 5sec; query_type = \"MX\"; };",
    "working_set_cap(10); working_set_length(5min);",
    "compat(\"5.0\");",
];

#[test]
fn other_parts() {
    insta::assert_snapshot!(agents(PARTS));
}

/// Compiles a changed [`BASE`] and gives all findings, or that there are none.
fn all_of(changes: &[(&str, &str)]) -> String {
    let sections = changes.iter().map(|(from, to)| {
        assert!(BASE.contains(from), "{from}");
        let text = format!("{}use(S, R);\n", BASE.replacen(from, to, 1));
        format!("--- {to}\n{}", crate::findings(&crate::compile_text(&text)))
    });
    sections.collect::<Vec<_>>().join("\n")
}

#[test]
fn one_mistake_makes_one_finding() {
    insta::assert_snapshot!(all_of(&[
        ("80%", "80p"),
        ("80%", "13KB"),
        ("exp(13KB)", "exp(13sec)"),
        ("exp(13KB)", "logn(9k, 4k)"),
        ("exp(13KB)", "Size"),
        ("S = { contents = [ C ]; addresses", "S = { contents = [ C ]; adresses"),
        ("S = { contents = [ C ]; addresses", "S = { contents = [ C ]; addr"),
        ("S = { contents = [ C ]; addresses", "S = { contents = [ C ]; whereabouts"),
        ("contents = [ C ]", "contents = [ D ]"),
        ("'127.0.0.1:9090'", "'127.0.0.1'"),
        ("origins = S.addresses", "origins = ['127.0.0.1:9091']"),
        ("origins = S.addresses", "origins = T.addresses"),
        ("req_rate = 1/sec", "req_rate = Rate / 2"),
        ("req_rate = 1/sec", "req_rate = 5"),
        ("req_rate = 1/sec", "req_rate = 5p/sec"),
        ("req_rate = 1/sec", "recurrence = 50%; pop_model.pop_distr = zipf(1)"),
        ("req_rate = 1/sec", "recurrence = 50%; popularity = popUnif()"),
        ("req_rate = 1/sec", "recurrence = 50%; pop_distr = popUnif()"),
        ("req_rate = 1/sec", "rate r = 10; req_rate = r"),
        ("req_rate = 1/sec", "rate r; req_rate = r"),
        ("req_rate = 1/sec", "req_types = [ \"Basc\" ]"),
        ("name = \"p\"; goal.duration", "load_factor_beg = 10%; load_factor_end = 100%; duration"),
        ("schedule(P);", "schedule(Q);"),
        ("schedule(P);", ""),
        ("schedule(P);", "use(R, T);"),
    ]));
}

#[test]
fn settings_that_schemes_lack() {
    let bench = "Bench B = { peak_req_rate = RATE; client_side = { max_host_load = 500/sec; max_agent_load = 0.4/sec; \
                 addr_space = ['10.1.0-1.1-250/22']; hosts = ['127.0.0.1']; }; };\nPolyMix4As scheme;\n";
    let with = |rate: &str, more: &str| {
        format!("{}{more}addr[] a = robotAddrs(scheme, B);\nprint(a);", bench.replace("RATE", rate))
    };
    insta::assert_snapshot!(section(&[
        &with("undef()", ""),
        &with("100", ""),
        &with("100", "scheme.agents_per_addr = 1;\n"),
        &with("100/sec", "scheme.agents_per_adr = 1;\n"),
    ]));
}

#[test]
fn units_by_what_is_wanted() {
    insta::assert_snapshot!(section(&[
        "time t = 5m;",
        "size s = 5m;",
        "size s = 5x;",
        "int n = 5k;",
        "time t = 5KiB;",
        "bwidth b = 5kb/sec;",
        "print(5p, 5minutes);",
        "time_distr d = unif(1sec, 5scs);",
        "int[] a = [1: 30p, 2];",
    ]));
}

#[test]
fn how_values_of_each_type_are_written() {
    insta::assert_snapshot!(section(&[
        "bool b = \"x\";",
        "int n = 5sec;",
        "float f = 5sec;",
        "string s = '10.0.0.1';",
        "time t = \"5sec\";",
        "size s = 5sec;",
        "rate r = 5sec;",
        "bwidth b = 5KB;",
        "addr a = \"10.0.0.1:80\";",
        "addr[] a = [ 5 ];",
        "addr[] a = \"x\";",
        "time_distr d = 5sec;",
        "time_distr d = 5KB;",
        "time_distr d = exp(10KB);",
        "size_distr d = unif(10sec, 1min);",
        "float_distr d = const(5);",
        "PopDistr p = zipf(5);",
        "PopDistr p = 5;",
        "DynamicName d = \"x\";",
        "re r = \"x\";",
        "uniq_id u = 5;",
        "Goal g = 10min;",
        "Phase p; p.goal = 10min;",
        "Phase p; p.script = 5;",
        "Robot R; R.ranges = [ 5 ];",
        "Server S; S.contents = [ 13KB ];",
        "int n = \"5\";",
        "int n = [ 5 ];",
    ]));
}

#[test]
fn settings() {
    let set = |name: &str, value: &str| {
        let options = Options { settings: vec![(name.to_owned(), value.to_owned())], ..Options::default() };
        messages("Bench TheBench = { peak_req_rate = undef(); };\nint n = 5;", &[], &options)
    };
    let all = [
        set("TheBensh.peak_req_rate", "100/sec"),
        set("TheBench.peak_rate", "100/sec"),
        set("TheBench.peak_req_rate", "100"),
        set("n", "\"x"),
        set("n", "1 +"),
    ];
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn what_people_write_instead() {
    insta::assert_snapshot!(section(&[
        "size s = 3 KB;",
        "time t = 3 seconds;",
        "int x = 3;\nif (x = 3) then { print(x); }",
        "int x = 3;\nif x = 3 then { print(x); }",
        "rate r = 10 per sec;",
        "bwidth b = 10KB per second;",
        "float f = .5;",
        "time t = .5sec;",
        "float f = 55 %;",
        "float[] f = [1.0: 55 %, 2.0];",
        "float f = 55 % / 80%;",
        "Content C = { kind: \"x\"; };",
        "rate r = 10/second;",
        "rate r = 10/s;",
        "Robot R {\n    req_rate = 10/sec;\n};",
        "Robot R;\nR { req_rate = 10/sec; };",
        "Robot R;\nServer S;\nuse R, S;",
        "print \"x\";",
    ]));
}

/// A suggestion has the number of the user, in the unit that it probably has.
#[test]
fn sizes_and_times_without_units() {
    insta::assert_snapshot!(section(&[
        "size s = 700000;",
        "size s = 20;",
        "size s = 2.5;",
        "size_distr d = 5000;",
        "size_distr d = exp(8000);",
        "size_distr d = const(13);",
        "size_distr d = logn(25000, 10000);",
        "size_distr d = unif(10, 9000);",
        "size_distr d = exp(8*1000);",
        "size_distr d = 20*KB;",
        "time_distr d = 3;",
        "time_distr d = norm(3, 1.5);",
    ]));
}

/// Programs in which something is defined and left out, each after a working test.
#[test]
fn what_is_never_used() {
    insta::assert_snapshot!(agents(&[
        "Content D = { size = exp(13KB); cachable = 80%; };",
        "Server T = S;",
        "Robot Q;\nQ.addresses = R.addresses;\nprint(Q.addresses);",
        "Phase Q = { name = \"q\"; goal.duration = P.goal.duration; };",
    ]));
}

/// What the warning above must not say anything about: templates, branches, parts of contents, included files, and programs that
/// use or schedule nothing at all.
#[test]
fn what_is_used_after_all() {
    let about = |text: &str| {
        let loader = MemoryLoader::default()
            .with("test.pg", text)
            .with("lib.pg", "Content Spare = { size = exp(1KB); cachable = 0%; };\nPhase Idle;\n");
        let compilation = compile("test.pg", &loader, &Options::default());
        assert!(
            !compilation.diagnostics.iter().any(|finding| finding.code.severity() == Severity::Error),
            "{text}"
        );
        compilation.diagnostics.iter().filter(|finding| finding.code == Code::NeverUsed).count()
    };
    let part = "Content D = { size = exp(1KB); cachable = 80%; };\nC.may_contain = [ D ];\nC.embedded_obj_cnt = const(1);\n";
    let part = part.replace("C.", "B.");
    for change in [
        "#include \"lib.pg\"\nuse(S, R);",
        "Robot Q = R;\nuse(S, Q);",
        "if (1 == 2) then { use(R); } else { use(S); }",
        &format!("Content B = C;\n{part}S.contents = [ B ];\nuse(S, R);"),
        "Robot[] all = [ R ];\nuse(S);",
    ] {
        assert_eq!(about(&format!("{BASE}{change}\n")), 0, "{change}");
    }
    // A test without agents or without phases has its own warning.
    assert_eq!(about(BASE), 0);
    assert_eq!(about(&format!("{}use(S, R);", BASE.replace("schedule(P);", ""))), 0);
    assert_eq!(about(&format!("{BASE}use(S);")), 1, "R");
}

#[test]
fn missing_braces() {
    insta::assert_snapshot!(section(&[
        "Content C = {\n    size = const(1KB);\n\nServer S = {\n    contents = [ C ];\n};\nuse(S);\n",
        "Robot R = {\n    pop_model = {\n        pop_distr = popUnif();\n    req_rate = 1/sec;\n};\nuse(R);\n",
        "Robot R = {\n    pop_model = {\n        pop_distr = popUnif();\n    };\nuse(R);\n",
        "Robot R = { pop_model = { pop_distr = popUnif(); }; use(R);",
        "Robot R = {\n    req_rate = 1/sec;\n};\n    recurrence = 5%;\n};\n",
    ]));
}

#[test]
fn values_that_come_too_late() {
    insta::assert_snapshot!(section(&[
        "print(late);\nint late = 3;",
        "Robot R = { req_rate = Rate; };\nrate Rate = 3/sec;",
        "int a;\nprint(a);\na = 5;",
        "Robot R;\nprint(R.req_rate);\nR.req_rate = 5/sec;",
        "Robot R;\nprint(R.req_rate);\nR = { req_rate = 5/sec; };",
        "rate a;\nrate b;\nrate c = a;\n[ a, b ] = 5/sec;",
    ]));
}

#[test]
fn slips_that_are_legal() {
    insta::assert_snapshot!(section(&[
        "Robot R;\nR.recurrence = 55/80;",
        "float f = 1/3 * 2.0;",
        "int a = 55;\nint b = 80;\nRobot R = { recurrence = (a/b) * 100%; };",
        "time t = 1/3 * 10sec;",
        "int[] n = [ 5: 1/4, 6 ];",
        "Acl acl;\nRobot R = { acl = acl; };",
        "float recurrence = 50%;\nRobot R = { recurrence = 40%; recurrence = recurrence / 80%; };",
    ]));
}

#[test]
fn tests_that_cannot_be_meant() {
    let agents = "Content c = { size = const(1KB); cachable = 0%; };\nServer S = { contents = [ c ]; direct_access = contents; addresses = ['127.0.0.1:80']; };\n\
                  Robot R = { origins = S.addresses; addresses = ['127.0.0.1']; req_rate = ";
    let with = |rest: &str| format!("{agents}{rest}");
    insta::assert_snapshot!(section(&[
        &with(
            "1/sec; };\nPhase p = { name = \"p\"; };\nPhase q = { name = \"q\"; };\nschedule(p, q);\nuse(S, R);"
        ),
        &with(
            "1/sec; };\nPhase p = { name = \"warm\"; goal.duration = 1sec; };\nPhase q = { name = \"warm\"; goal.xactions = 5; };\nschedule(p, q);\nuse(S, R);"
        ),
        &with("0/sec; };\nPhase p = { name = \"p\"; goal.errors = 5; };\nschedule(p);\nuse(S, R);"),
    ]));
}

#[test]
fn amounts_that_are_no_objects() {
    insta::assert_snapshot!(section(&[
        "rate FillRate = 50%;",
        "size WSS;\nworking_set_cap(int(WSS / 13KB));",
    ]));
}

/// What the warnings above must not say anything about.
#[test]
fn divisions_and_names_that_are_meant() {
    let text = "int a = 3/4;\nint b = count([1, 2]) / 250 + 1;\nfloat f = 55%/80%;\nfloat g = 8/4;\nrate r = 0/sec;\nint c = max(1, 3/4);\n\
                rate load = 1/sec;\nBench B = { client_side = { max_host_load = load; }; client_side.max_agent_load = client_side.max_host_load; };\n\
                Acl rules;\nServer S = { ssl_wraps = { }; };\nRobot R = { acl = rules; recurrence = 40%; recurrence = recurrence / 80%; };\n";
    let mut compilation = crate::compile_text(text);
    compilation.diagnostics.retain(|finding| !matches!(finding.code, Code::NothingUsed | Code::NoSchedule));
    assert_eq!(crate::findings(&compilation), "");
}
