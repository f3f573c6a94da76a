//! What large programs cost, by counts and sizes: nothing here looks at a clock.

use polygraph_pgl::check::hir;
use polygraph_pgl::render::Style;
use polygraph_pgl::syntax::tree;
use polygraph_pgl::{Code, Compilation, Limits, MemoryLoader, Options, compile};

fn compile_within(limits: Limits, texts: &[(&str, &str)]) -> Compilation {
    let loader = texts.iter().fold(MemoryLoader::default(), |loader, (name, text)| loader.with(name, *text));
    compile("test.pg", &loader, &Options { limits, ..Options::default() })
}

fn codes(compilation: &Compilation) -> Vec<Code> {
    compilation.diagnostics.iter().map(|finding| finding.code).collect()
}

#[test]
fn words_are_counted_over_all_files() {
    let limits = |tokens| Limits { tokens, ..Limits::default() };
    let files = [("test.pg", "#include \"a.pg\"\n// not counted\nint x = 5 ;"), ("a.pg", "int y = 5;")];
    // The directive is one of the eleven.
    assert_eq!(codes(&compile_within(limits(11), &files)), [Code::NothingUsed]);
    assert_eq!(codes(&compile_within(limits(10), &files)), [Code::SourceTooLarge]);
}

#[test]
fn elements_of_arrays_are_small() {
    // Programs may list millions of addresses.
    assert!(size_of::<tree::ArrayItem>() <= 64, "{}", size_of::<tree::ArrayItem>());
    assert!(size_of::<hir::ArrayItem>() <= 72, "{}", size_of::<hir::ArrayItem>());
}

#[test]
fn a_finding_in_a_long_line_is_told_without_the_line() {
    let text = format!("int x = 5; {}print(y);", "x = x; ".repeat(20_000));
    let compilation = crate::compile_text(&text);
    let told = compilation.render(Style::Plain);
    assert!(told.contains("test.pg:1:140018") && told.contains("unknown name `y`"), "{}", told.len());
    assert!(told.len() < 500, "{}", told.len());
}

#[test]
fn findings_without_end_are_counted_and_not_kept() {
    let text = format!("Robot R = {{ {} }};", "req_rate = y; ".repeat(5_000));
    let compilation = crate::compile_text(&text);
    assert_eq!(compilation.diagnostics.len(), 101);
    assert!(compilation.diagnostics[100].message.contains("4900 more"), "{:?}", compilation.diagnostics[100]);
}

#[test]
fn names_in_maps_are_unique_over_all_maps() {
    let map = |index: usize| {
        let name = if index == 2_999 { 7 } else { index };
        format!(
            "AddrMap M{index} = {{ names = ['n{name}.x.com:80']; addresses = ['127.0.0.1:80']; }}; use(M{index});\n"
        )
    };
    let text: String = (0..3_000).map(map).collect();
    let compilation = crate::compile_text(&text);
    let twice: Vec<_> = compilation
        .diagnostics
        .iter()
        .filter(|found| found.code == Code::BadMap)
        .map(|found| &found.message)
        .collect();
    assert_eq!(twice, ["n7.x.com:80 is in two maps"]);
}

#[test]
fn many_comments_in_a_line_are_formatted() {
    let text = format!("int x = 5;{} int y = -5;\n", " /* c */".repeat(20_000));
    assert_eq!(polygraph_pgl::format::format(&text).as_ref(), Ok(&text));
}
