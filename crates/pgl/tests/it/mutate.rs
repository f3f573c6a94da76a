//! Seeded mutation of programs, for fuzzing without coverage: by tests briefly, by the example `fuzz_pgl` at length.

use std::path::Path;

use polygraph_pgl::format::format;
use polygraph_pgl::render::Style;
use polygraph_pgl::{Limits, MemoryLoader, Options, compile};
use polygraph_testing::mutation::{Mutator, Random, files};

/// Runs the whole front end on any bytes. It must neither panic nor take long. True if the syntax is right.
pub fn run(data: &[u8]) -> bool {
    let limits = Limits {
        include_depth: 8,
        inclusions: 16,
        source_bytes: 1 << 18,
        tokens: 1 << 15,
        work: 1 << 14,
        items: 1 << 13,
        findings: 20,
    };
    let options = Options {
        search_path: vec!["inc".to_owned()],
        settings: vec![("x".to_owned(), "5".to_owned()), ("B.peak_req_rate".to_owned(), "7/sec".to_owned())],
        limits,
        ..Options::default()
    };
    let loader = MemoryLoader::default()
        .with("test.pg", data)
        .with("inc/a.pg", "int included = 1;\nRobot R = {\n")
        .with("inc/self.pg", "#include \"self.pg\"\n#include \"test.pg\"\n")
        .with("t.dst", "int_distr t = {\n1 5\n2:4 10\n:9 */20\n}\n")
        .with("t.urls", "http://a.com/x\nhttp://10.0.0.1:80/\n");
    // Without settings most programs come further; with them other code is reached.
    let plain = Options { settings: Vec::new(), ..options.clone() };
    let chosen = if data.len().is_multiple_of(4) { &options } else { &plain };
    let compilation = compile("test.pg", &loader, chosen);
    std::hint::black_box(compilation.render(Style::Plain));
    let text = String::from_utf8_lossy(data);
    let formatted = format(&text);
    if let Ok(formatted) = &formatted {
        assert_eq!(format(formatted).as_ref(), Ok(formatted), "formatting is stable");
    }
    formatted.is_ok()
}

/// The programs that mutation starts from.
pub fn corpus() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directories =
        ["../../fuzz/corpus/pgl", "../../workloads", "../../workloads/include", "tests/programs"];
    let programs = directories.iter().flat_map(|directory| files(&root.join(directory)));
    programs.filter(|program| program.len() < 20_000).collect()
}

const WORDS: &[&str] = &[
    "[",
    "]",
    "{",
    "}",
    "(",
    ")",
    ";",
    ",",
    ":",
    ".",
    "..",
    "**",
    "=",
    "==",
    "!=",
    "<=",
    "^",
    "^^",
    "%",
    "&&",
    "||",
    "!",
    "-",
    "/*",
    "*/",
    "//",
    "#include \"a.pg\"\n",
    "\n#include \"self.pg\"\n",
    "`echo 1`",
    "\"",
    "'",
    "\\",
    "\n",
    " ",
    "\u{e9}",
    "2147483647",
    "0",
    "1",
    "-1",
    "99999999999999999999",
    "1e308",
    "0.0",
    "5sec",
    "1year",
    "9GB",
    "1bit",
    "100%",
    "1000000",
    "'10.0-255.0-255.0-255'",
    "'[::0-ffff:0-ffff:0-ffff:0-ffff]:1-65535'",
    "'a[1-9].b:80'",
    "\"u[0-4000000000]\"",
    "'X: y'",
    "'2001/01/01 10:00:00'",
    "url =~/a(b|c)*/i",
    "undef()",
    "const(5sec)",
    "exp(13KB)",
    "zipf(16)",
    "select([1,2],3)",
    "count(",
    "print(",
    "use(R);",
    "use(S);",
    "schedule(P);",
    "robotAddrs(W, B)",
    "ipsToNames(",
    "setAddrPort(",
    "dynamize(",
    "table(\"t.dst\")",
    "tracedHosts(\"t.urls\")",
    "credentials(5, \"x\")",
    "lmt + ",
    "nmt",
    "if (x < 1) then {",
    "} else {",
    "every g do {",
    "script = {",
    "Robot R",
    "Server S",
    "Content C",
    "Phase P",
    "Bench B",
    "WebAxe4As W",
    "int x",
    "addr[] a",
    "time_distr d",
    "R.req_rate",
    "recurrence",
    "contents",
    "client_side",
    "hosts",
    "[a: 10%, b] = ",
    "currentSample()",
    "int",
    "x = [x];",
    "x = x ** 3;",
    "C.may_contain = [C, C];",
    "r = r && r;",
    "anyOf([r])",
    "min(",
    "R = ",
    "true",
    "sec",
    "KB",
];

/// Another program made from those of the corpus. Long programs are mostly alike; a part of one finds as much in less time.
pub fn mutate(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let words: Vec<&[u8]> = WORDS.iter().map(|word| word.as_bytes()).collect();
    Mutator { pieces: &words, changes: 5, longest: 2000, ..Mutator::default() }.mutate(corpus, random)
}
