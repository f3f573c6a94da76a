//! The formatter.

use polygraph_pgl::format::format;

use crate::programs::workloads;

/// All programs of the repository.
pub fn corpus() -> Vec<(String, String)> {
    let root = env!("CARGO_MANIFEST_DIR");
    let dirs = [workloads(), format!("{}/include", workloads()), format!("{root}/tests/programs")];
    let mut files = Vec::new();
    for dir in dirs {
        for entry in std::fs::read_dir(&dir).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|extension| extension == "pg") {
                files.push((path.display().to_string(), std::fs::read_to_string(&path).expect("text")));
            }
        }
    }
    files.sort();
    files
}

fn check(text: &str, expected: &str) {
    let formatted = format(text).expect("no errors");
    assert_eq!(formatted, expected);
    assert_eq!(format(&formatted).as_deref(), Ok(expected), "formatting again changes something");
}

#[test]
fn layout() {
    check("int  x=1;int y = - x;", "int x = 1;\nint y = -x;\n");
    check(
        "Robot R={\nreq_rate=0.4/sec;\n\n\n  recurrence = 55% / 80%;};",
        "Robot R = {\n    req_rate = 0.4/sec;\n\n    recurrence = 55% / 80%;\n};\n",
    );
    check("Goal g = {duration=20sec;};  // soon", "Goal g = { duration = 20sec; }; // soon\n");
    check("// a\n\n\n\n/* b\n   c */\nuse( R,S );", "// a\n\n/* b\n   c */\nuse(R, S);\n");
    check("addr [] a=['10.0.0.1' , '10.0.0.2':5%]**2;", "addr[] a = ['10.0.0.1', '10.0.0.2': 5%] ** 2;\n");
    check("x=[\n1,\n2\n];", "x = [\n    1,\n    2\n];\n");
    check("int x = 1 +\n2;", "int x = 1 +\n    2;\n");
    check(
        "if(x<1)then{print(1);}\nelse{\nprint(2);\n}",
        "if (x < 1) then { print(1); } else {\n    print(2);\n}\n",
    );
    check("#include \"a.pg\"\nint x;", "#include \"a.pg\"\nint x;\n");
    check("Bench B = {\n#include \"b.pg\"\nx = 1; };", "Bench B = {\n#include \"b.pg\"\n    x = 1;\n};\n");
    check("re r = url =~/a b/i && !url_host ==@x@;", "re r = url =~/a b/i && !url_host ==@x@;\n");
    check("Robot R = { };", "Robot R = { };\n");
    check("a = 7 % 3; b=1 .. 5; c=lmt+0;", "a = 7 % 3;\nb = 1 .. 5;\nc = lmt + 0;\n");
    assert!(format("int x = ;").is_err());
}

#[test]
fn comments_in_any_encoding_stay_as_they_are() {
    use polygraph_pgl::format::format_bytes;
    let latin = b"int  x=1; // caf\xe9 \xa0\n/* \xc3\xa9 and \xe9\x85 */";
    assert_eq!(format_bytes(latin).unwrap(), b"int x = 1; // caf\xe9 \xa0\n/* \xc3\xa9 and \xe9\x85 */\n");
    assert_eq!(
        format_bytes("\u{feff}int  x; // \u{e9}\u{a0}".as_bytes()).unwrap(),
        "int x; // \u{e9}\u{a0}\n".as_bytes()
    );
    assert!(format_bytes(b"int x\xe9 = 1;").is_err(), "outside of comments only ASCII is allowed");
}

#[test]
fn formatting_the_corpus_twice_changes_nothing_more() {
    for (name, text) in corpus() {
        let once = format(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(format(&once).as_ref(), Ok(&once), "{name}");
    }
}

proptest::proptest! {
    /// Any run of tokens that can be formatted is stable afterwards.
    #[test]
    fn formatting_is_stable(words in proptest::collection::vec(proptest::sample::select(WORDS), 0..40)) {
        let text = words.concat();
        if let Ok(once) = format(&text) {
            proptest::prop_assert_eq!(format(&once), Ok(once.clone()), "from {:?}", text);
        }
    }
}

const WORDS: &[&str] = &[
    "x = 1;",
    "Robot R = {",
    "};",
    "}",
    "{",
    ";",
    "\n",
    "\n\n\n",
    " ",
    "// c\n",
    "/* d */",
    "/* e\n f */",
    "[",
    "]",
    "(1)",
    "a.b = ",
    "-",
    "+",
    "10/sec",
    "/",
    "^",
    "1",
    ",",
    "use(R);",
    "if (1) then {",
    "else {",
    "#include \"f\"\n",
    "\n#include \"g\"",
    "y",
    "'10.0.0.1'",
    "\"s\"",
    "=",
    "addr[] z;",
    "**",
    "..",
    "!",
    "\t",
    "print(1, 2);",
    "int k",
    " = ",
    "[1, 2:\n5%]",
];
