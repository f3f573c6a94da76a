//! Code blocks of pages, and the commands in them.

use std::path::Path;

use polygraph_tidy::commands::{all_blocks, blocks, commands};

const PAGE: &str = "Text.

    polygraph lx a.log     # indented
    polygraph lr a.log

```sh run goal=4s needs=squid
polygraph run \\
    --goal 1min
```
```toml
key = 1
```
";

#[test]
fn blocks_are_found_with_their_marks() {
    let found = blocks(Path::new("x.md"), PAGE);
    let places: Vec<String> = found.iter().map(|block| block.place()).collect();
    assert_eq!(places, ["x.md:3", "x.md:7", "x.md:11"]);
    assert!(found[0].is_shell() && found[0].marks.is_empty() && found[0].text.lines().count() == 2);
    assert!(found[1].is_shell() && found[1].has_mark("run") && !found[1].has_mark("parse"));
    assert_eq!(
        (found[1].mark("goal"), found[1].mark("needs"), found[1].mark("exit")),
        (Some("4s"), Some("squid"), None)
    );
    assert!(!found[2].is_shell());
}

#[test]
fn commands_are_split_into_words() {
    let lines = |code: &str| commands(code).iter().map(|words| words.join("_")).collect::<Vec<_>>();
    assert_eq!(lines("a b # c\nd"), ["a_b", "d"]);
    assert_eq!(lines("a \\\n    --set \"X=['1', '2']\" 'c d'"), ["a_--set_X=['1', '2']_c d"]);
    assert_eq!(lines("sudo A=1 a >out 2>&1 & b | c && d; e"), ["a", "b", "c", "d", "e"]);
    assert_eq!(lines("if ! a; then b; fi"), ["a", "b", "fi"]);
    assert_eq!(lines("cargo run --release -- try --x"), ["polygraph_try_--x"]);
    assert_eq!(lines("cargo build --release"), ["cargo_build_--release"]);
    assert_eq!(lines("a \"$(b c)\" x#y"), ["a_$(b c)_x#y"]);
}

#[test]
fn the_manual_says_what_tests_do_with_its_blocks() {
    let is_lesson = |page: &Path| page.starts_with("docs/tutorials") || page == Path::new("docs/start.md");
    let known = |mark: &str| {
        ["run", "parse"].contains(&mark)
            || ["goal=", "needs=", "exit="].iter().any(|name| mark.starts_with(name))
    };
    let mut wrong = Vec::new();
    let mut run = 0;
    for block in all_blocks().iter().filter(|block| block.is_shell()) {
        let is_marked = block.has_mark("run") || block.has_mark("parse");
        run += usize::from(block.has_mark("run"));
        if block.marks.iter().skip(1).any(|mark| !known(mark)) {
            wrong.push(format!("{}: unknown mark in {:?}", block.place(), block.marks));
        }
        if is_lesson(&block.page) && !block.marks.is_empty() && !is_marked {
            wrong.push(format!("{}: neither `run` nor `parse`", block.place()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(run > 15, "only {run} blocks are run");
}
