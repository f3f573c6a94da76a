//! Seeded mutation of programs, for fuzzing without coverage: by tests briefly, by the example `fuzz_pgl` at length.

use std::path::Path;

use polygraph_pgl::format::format;
use polygraph_pgl::render::Style;
use polygraph_pgl::{Limits, MemoryLoader, Options, compile};

/// Runs the whole front end on any bytes. It must neither panic nor take long.
pub fn run(data: &[u8]) {
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
    if let Ok(formatted) = format(&text) {
        assert_eq!(format(&formatted).as_ref(), Ok(&formatted), "formatting is stable");
    }
}

/// The programs that mutation starts from.
pub fn corpus() -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for dir in ["../../fuzz/corpus/pgl", "../../workloads", "../../workloads/include", "tests/programs"] {
        let Ok(entries) = std::fs::read_dir(root.join(dir)) else { continue };
        files.extend(
            entries.filter_map(|entry| entry.ok()).map(|entry| entry.path()).filter(|path| path.is_file()),
        );
    }
    files.sort();
    files.iter().filter_map(|path| std::fs::read(path).ok()).filter(|text| text.len() < 20_000).collect()
}

/// A small generator of random numbers (xorshift); a seed makes a run repeatable.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 11) as usize % bound.max(1)
    }
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

/// Another program made from those of the corpus.
pub fn mutate(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut data = corpus[random.below(corpus.len())].clone();
    // Long programs are mostly alike; a part of one finds as much in less time.
    if data.len() > 2000 {
        let start = random.below(data.len() - 1000);
        data = data[start..(start + 1000).min(data.len())].to_vec();
    }
    for _ in 0..1 + random.below(5) {
        let at = random.below(data.len() + 1);
        let end = (at + random.below(30)).min(data.len());
        match random.below(9) {
            0 => drop(data.drain(at..end)),
            1..=3 => {
                let word = WORDS[random.below(WORDS.len())].bytes();
                drop(data.splice(at..at, word));
            }
            4 => {
                let word = WORDS[random.below(WORDS.len())].bytes();
                drop(data.splice(at..end, word));
            }
            5 => {
                let copy = data[at..end].repeat(1 + random.below(4));
                drop(data.splice(at..at, copy));
            }
            6 => {
                let other = &corpus[random.below(corpus.len())];
                let from = random.below(other.len());
                let to = (from + random.below(60)).min(other.len());
                drop(data.splice(at..at, other[from..to].iter().copied()));
            }
            7 => {
                if let Some(byte) = data.get_mut(at) {
                    *byte = random.next() as u8;
                }
            }
            _ => {
                let word = WORDS[random.below(WORDS.len())].repeat(1 + random.below(200));
                drop(data.splice(at..at, word.bytes()));
            }
        }
    }
    data
}
