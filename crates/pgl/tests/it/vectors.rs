//! The conformance vectors of the language reference.

use polygraph_pgl::Code;

use crate::{compile_text, findings};

/// Checks what `print(expression)` prints; `None` means that the expression is rejected.
fn check(expression: &str, expected: Option<&str>) {
    check_program(&format!("print({expression});"), expected);
}

/// Checks the last line a program prints; `None` means that it is rejected.
fn check_program(program: &str, expected: Option<&str>) {
    let compilation = compile_text(program);
    match expected {
        Some(expected) => {
            assert!(!compilation.has_errors(), "{program}\n{}", findings(&compilation));
            let last = compilation.script_output.last().map(String::as_str);
            assert_eq!(last, Some(expected), "{program}\n{}", findings(&compilation));
        }
        None => assert!(compilation.has_errors(), "{program} is accepted: {:?}", compilation.script_output),
    }
}

#[test]
fn expressions() {
    const VECTORS: &[(&str, &str)] = &[
        ("7/2", "3"),
        ("-7/2", "-3"),
        ("7.0/2", "3.5"),
        ("7 % 3", "1"),
        ("2*3^2", "36"),
        ("-2^2", "-4"),
        ("16/4/2", "2"),
        ("10 % 3 * 2", "2"),
        ("!1 == 2", "true"),
        ("!false && false", "false"),
        ("true || false && false", "true"),
        ("1 < 2 == true", "true"),
        ("10/sec + 5/min", "10.0833/sec"),
        ("10/sec * 2sec", "20"),
        ("10/(2/sec)", "5sec"),
        ("10sec/2sec", "5"),
        ("55%/80%", "0.6875"),
        ("100 - 50%", "99.5"),
        ("50% * 100/sec", "50/sec"),
        ("10sec/5", "2sec"),
        ("10KB/5KB", "2"),
        ("10KB/(1KB/sec)", "10sec"),
        ("int(1.5 * 10KB / Byte)", "15360"),
        ("int(12Kb / Byte)", "1536"),
        ("10sec + 0", "10sec"),
        ("1 .. 2 + 3", "[1, 2, 3, 4, 5]"),
        ("5 .. 1", "[5, 4, 3, 2, 1]"),
        ("count([1] ** 0)", "0"),
        ("count((13 .. 15) ** 3)", "9"),
        ("count([1,2,[3,4]])", "4"),
        ("count(\"r[1-100]\")", "100"),
        ("count('w[1-3].x.com:80-81')", "6"),
        ("count('lo0::10.1.0-3.1-250:80/22')", "1000"),
        ("count('127.0.0.1:7001-7030')", "30"),
        ("count('[fe80::10-1f]:80')", "16"),
        ("int(2.9)", "2"),
        ("int(-2.9)", "-2"),
        ("int(\"12  \")", "12"),
        ("float(\" 1.5 \")", "1.5"),
        ("max(10sec, 1min)", "1min"),
        ("int('2014/10/22 10:20:30' / sec)", "1413973230"),
        ("int(('2001/01/01' + 1day) / sec)", "978393600"),
        ("setAddrPort(['10.0.0.1:80'], -1)", "['10.0.0.1']"),
        ("dynamicName('*.foo.com', 0.3)", "dynamicName('.foo.com', 0.3)"),
        ("count(ipsToNames('10.16.129-134.1-126', \"h-${dashed_ip}.org\"))", "756"),
        ("['a.com', 'b.com': 30%] ** 2", "['a.com', 'b.com': 30%] ** 2"),
        // From the prose of sections 1 to 3.
        ("010", "10"),
        ("1..3", "[1, 2, 3]"),
        ("1e3", "1000"),
        ("5.", "5"),
        ("1.2e-12", "1.2e-12"),
        ("5.e+2", "500"),
        ("0.5%", "0.005"),
        ("msec == 1ms", "true"),
        ("hour == 3600s && 1hr == hour && day == 24hour && year == 365day", "true"),
        ("0.3sec == 300msec", "true"),
        ("1.5msec == 1500msec/1000", "true"),
        ("int(Kb / Byte)", "128"),
        ("int(KB / Byte)", "1024"),
        ("int(Mb / Byte)", "131072"),
        ("int(MB / Byte)", "1048576"),
        ("int(Gb / Byte)", "134217728"),
        ("1GB == 1024MB", "true"),
        ("int(8bit / Byte)", "1"),
        ("int(0.5MB / Byte)", "524288"),
        ("90/sec*2", "180/sec"),
        ("100/5min * 1min", "20"),
        ("min(1,2)", "1"),
        ("min(1, 0.5)", "0.5"),
        ("\"a\\\"\"", "a\""),
        ("\"\\[x]\"", "[x]"),
        ("2 ^ -1", "0"),
        ("2.0 ^ 3", "8"),
        ("int(0.29*100)", "28"),
        ("5KB * 0.0", "0Byte"),
        ("10sec * 0", "0sec"),
        ("lmt + const(1hour)", "lmt + const(1hour)"),
        ("nmt + 0", "nmt + const(0sec)"),
        ("now + (lmt + const(1day))", "now + const(1day)"),
        ("const(5)", "const(5)"),
        ("unif(1%, 10%)", "unif(0.01, 0.1)"),
        ("exp(10*1024)", "exp(10240)"),
        ("norm(1sec, 5)", "norm(1sec, 5sec)"),
        ("logn(300KB, 300KB)", "logn(300KB, 300KB)"),
        ("[1] + 2 + [3, 4]", "[1, 2, 3, 4]"),
        ("count(['10.0.0.1-2'] + '10.0.0.9')", "3"),
        ("[1, 2] == [1, 2]", "true"),
        ("[1, 2] == [1, 3]", "false"),
        ("10sec > 0", "true"),
        ("count('my-host.x.org')", "1"),
        ("min(5sec, 2sec) * (10/min)", "0.333333"),
        ("1MB/sec * 2sec / MB", "2"),
        ("10/sec*13KB*2sec/KB", "260"),
        ("!url_host =~/foo/ && url ==@http://x/@C", "(!(url_host =~/foo/i) && url ==/http:\\/\\/x\\//C)"),
    ];
    for (expression, expected) in VECTORS {
        check(expression, Some(expected));
    }
}

#[test]
fn rejected_expressions() {
    const VECTORS: &[&str] = &[
        "1 < 2 < 3",
        "1.0 == 1.0",
        "0 + 10sec",
        "count(\"abc\")",
        "int(\"1.5\")",
        "int(5sec)",
        "7%3",
        ".5",
        "9bit",
        "bit",
        "4294967296",
        "2147483647 + 1",
        "2147483647 * 2",
        "10/0sec",
        "1/0",
        "1.0/0.000000001",
        "5 % 0",
        "[1] ** -1",
        "'300.1.0.1'",
        "'::10.0.0.1'",
        "'10.0.0.1:'",
        "'10.0.0.1:x'",
        "'10.0.0.1/33'",
        "'a.com/24'",
        "'[fe80::1'",
        "'[fe80::1]x'",
        "'2001/1/1'",
        "'2001/13/01'",
        "': x'",
        "'a:b: c'",
        "\"x[5-3]\"",
        "\"x[5-4]\"",
        "\"x[1,2]\"",
        "'10.0.5-3.1'",
        "\"a\" == \"a\"",
        "\"a\" + \"b\"",
        "'..1-2' + 1",
        "'10.0.0.1-2' + '10.0.0.3'",
        "lmt",
        "lmt + 5sec",
        "undef()",
        "[ undef() ]",
        "unif(5, 1)",
        "logn(0sec, 1sec)",
        "setAddrPort(['10.0.0.1'], 65537)",
        "select([1,2], 0)",
        "credentials(0, \"x\")",
        "foo(1)",
        "worker()",
        "use(1)",
        "min()",
        "count()",
        "unif(1)",
        "const(\"x\")",
        "url =~/(/",
        "url =~/x/z",
    ];
    for expression in VECTORS {
        check(expression, None);
    }
}

#[test]
fn declarations() {
    check_program("time_distr d = const(5);", None);
    check_program("size_distr d = 0; print(d);", Some("0"));
    check_program("int x = 10/sec * 1sec;", None);
    check_program("bool b = 1; print(b);", Some("true"));
    check_program("addr a = '10.0.0.1-5';", None);
    check_program("addr[] a = '10.0.0.1';", None);
    check_program("addr[] a = 'my-host.x.org:80'; print(count(a));", Some("1"));
    check_program("string[] s = \"abc\";", None);
    check_program("string[] s = \"x\" ** 3; print(count(s));", Some("3"));
    check_program("addr[] a = '127.0.0.1' ** 3; print(count(a));", Some("3"));
    check_program("addr[] a = ['127.0.0.1' ** 3]; print(count(a));", Some("3"));
    check_program("float x = 3; print(x);", Some("3"));
    check_program("float[] x = [3];", None);
    check_program("time t = 0; print(t);", Some("0sec"));
    check_program("time t = 5;", None);
    check_program("rate r = 0; print(r);", Some("0/sec"));
    check_program("int x = x;", None);
    check_program("int x = 1; int x = 2;", None);
    check_program("int a.b = 1;", None);
    check_program("foo x;", None);
    check_program("Agent x;", None);
    check_program("y = 1;", None);
    check_program("int clientHostCount = 5; print(clientHostCount);", Some("5"));
    check_program("int x = 1; x = undef(); print(x);", None);
    check_program("Robot R = undef(); R.req_rate = 1/sec;", None);
    check_program(
        "addr a = 'lo0::10.1.0.7:80/22'; a.port = 8080; print(a, a.if_name, a.host, a.subnet);",
        Some("'lo0::10.1.0.7:8080/22'lo010.1.0.722"),
    );
    check_program("Robot R; ClientBehavior c = R; print(c.recurrence);", Some("0"));
    check_program("Robot R = { socket.nagle = true; }; print(R.socket.nagle);", Some("true"));
    check_program("Robot R = { socket = { nagle = true; }; }; print(R.socket.nagle);", Some("true"));
}

#[test]
fn names_from_addresses() {
    check("ipsToNames(['10.16.129.1-2:80'], \"z\")", Some("['w[1001-1002].h[1129]o[1016]s[1010].z:80']"));
}

#[test]
fn dynamized_names() {
    check(
        "dynamize(['a.com', 'b.com': 30%, 'w[1-3].c.com'], 10%)",
        Some(
            "[dynamicName('.a.com', 0.1): 35%, dynamicName('.b.com', 0.1): 30%, \
             dynamicName('.w1.c.com', 0.1): 11.6667%, dynamicName('.w2.c.com', 0.1): 11.6667%, \
             dynamicName('.w3.c.com', 0.1): 11.6667%]",
        ),
    );
}

#[test]
fn probabilities() {
    const VECTORS: &[(&str, &str, bool)] = &[
        ("['a.com': 5%, ['b.com': 10%, 'c.com']: 50%, 'd.com']", "5 5 45 45", false),
        ("['a.com': 5%, ['b.com', 'c.com'], 'd.com']", "5 23.75 23.75 47.5", false),
        ("['a.com': 40%, 'b.com' ** 3]", "40 20 20 20", false),
        ("['a.com': 60%, 'b.com': 60%, 'c.com']", "50 50 0", true),
        ("['a.com': 30%, 'b.com': 30%]", "50 50", true),
    ];
    for (array, expected, warns) in VECTORS {
        let compilation = compile_text(&format!("print(setAddrPort({array}, 80));"));
        let line = &compilation.script_output[0];
        let probs: Vec<&str> =
            line.split("': ").skip(1).map(|rest| rest.split('%').next().unwrap_or("")).collect();
        assert_eq!(probs.join(" "), *expected, "{line}");
        let warned = compilation.diagnostics.iter().any(|finding| finding.code == Code::Probabilities);
        assert_eq!(warned, *warns, "{}", findings(&compilation));
    }
    check("setAddrPort(['10.0.0.1', '10.0.0.2'] ** 2, -1)", Some("['10.0.0.1', '10.0.0.1-2', '10.0.0.2']"));
}

#[test]
fn order_of_ranges() {
    let list = |array: &str| {
        let program = format!("print(setAddrPort([{array}: 100%], 9));");
        let line = compile_text(&program).script_output.concat();
        line.split('\'')
            .skip(1)
            .step_by(2)
            .map(|addr| addr.trim_end_matches(":9").to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(list("'10.0.1-2.1-2'"), ["10.0.1.1", "10.0.1.2", "10.0.2.1", "10.0.2.2"]);
    assert_eq!(list("'h[1-2].x'"), ["h1.x", "h2.x"]);
    check("count('h[1-2].x:80-81')", Some("4"));
}

#[test]
fn group_assignment() {
    check_program(
        "addr[] a; addr[] b; addr[] c; [a: 33%, b: 20%, c] = ['10.0.0.1-60']; print(count(a), \" \", count(b), \" \", count(c));",
        Some("20 12 28"),
    );
    check_program("int[] a; int[] b; [a, b] = 1 .. 4; print(b);", Some("[3, 4]"));
    check_program("int[] a; int[] b; [a, b] = 1 .. 5;", None);
    check_program("int a; int b; [a, b] = 7; print(a + b);", Some("14"));
    check_program("int a; int b; [a, b] = [1, 2];", None);
    check_program("addr[] a; addr[] b; [a, b] = '10.0.0.1-3'; print(count(a) + count(b));", Some("6"));
}

#[test]
fn scopes() {
    check_program("int k = 5; Robot R = { int k2 = k; k = 6; }; print(k);", Some("6"));
    check_program("int k = 5; Robot R = { int k2 = k; k = 6; }; print(k2);", None);
    check_program(
        "rate peak_req_rate = 3/sec; Bench B = { peak_req_rate = 5/sec; client_side = { print(peak_req_rate); }; };",
        Some("5/sec"),
    );
    check_program(
        "rate max_host_load = 1/sec; Bench B = { client_side = { max_agent_load = max_host_load; }; };",
        None,
    );
    check_program(
        "Bench A = { peak_req_rate = 5/sec; }; Bench B = A; A.peak_req_rate = 6/sec; print(B.peak_req_rate);",
        Some("5/sec"),
    );
    check_program("if (2 > 1) then { int q = 1; } print(q);", Some("1"));
    check_program("if (2 < 1) then { int q = 1; } else { int q = 2; } print(q);", Some("2"));
    check_program("if (2 < 1) then { int q = 1; } print(q);", None);
    check_program(
        "Bench B = { client_side = { max_host_load = 5/sec; }; server_side = { max_host_load = client_side.max_host_load; }; }; print(B.server_side.max_host_load);",
        Some("5/sec"),
    );
    check_program(
        "Content A; Server S = { contents = [A]; }; A.cachable = 50%; print(S.contents == [A]);",
        Some("false"),
    );
    check_program("{ int x = 1; } print(x);", Some("1"));
    check_program(
        "Robot R = { recurrence = 5%; }; R = { embed_recur = 1.0; }; print(R.recurrence);",
        Some("0.05"),
    );
}
