//! Nothing of others is in the tree: the work of third parties comes as a dependency, never as a file.

use polygraph_tidy::tree;

/// Extensions of files that are read as text here.
const TEXT: [&str; 14] =
    ["rs", "js", "css", "html", "md", "py", "sh", "toml", "pg", "lua", "yaml", "yml", "ts", "svg"];
/// Scripts that are written here. Each other script would be somebody else's.
const SCRIPTS: [&str; 2] = ["crates/monitor/assets/monitor.js", "crates/report/assets/report.js"];
/// A line of this many bytes is the mark of generated or minified text.
const LONG_LINE: usize = 1_000;

/// Why a file looks like somebody else's, if it does.
fn objection(path: &str, text: &str) -> Option<String> {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    if folders
        .split('/')
        .any(|folder| ["vendor", "vendored", "third_party", "node_modules"].contains(&folder))
    {
        return Some("a folder for other people's files".to_owned());
    }
    let lower = name.to_lowercase();
    if path != "LICENSE"
        && ["license", "licence", "copying", "notice"].iter().any(|word| lower.starts_with(word))
    {
        return Some("a second licence".to_owned());
    }
    if lower.contains(".min.") {
        return Some("a minified file".to_owned());
    }
    if (lower.ends_with(".js") || lower.ends_with(".ts")) && !SCRIPTS.contains(&path) {
        return Some("a script that the list of our own does not name".to_owned());
    }
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    if !TEXT.contains(&extension) || path == "crates/tidy/tests/it/foreign_files.rs" {
        return None;
    }
    for (number, line) in text.lines().enumerate() {
        if line.len() > LONG_LINE {
            return Some(format!("line {} has {} bytes, as minified text has", number + 1, line.len()));
        }
        let line = line.to_lowercase();
        let marks = ["copyright (c)", "copyright ©", "all rights reserved", "permission is hereby granted"];
        if marks.iter().any(|mark| line.contains(mark))
            || line.contains(concat!("spdx-license", "-identifier"))
        {
            return Some(format!("line {} is a notice of a licence", number + 1));
        }
    }
    None
}

#[test]
fn files_of_others_are_recognised() {
    for (path, text) in [
        ("crates/report/assets/plot.min.css", ""),
        ("crates/report/assets/plot.js", ""),
        ("vendor/plot/plot.rs", ""),
        ("crates/x/LICENSE-MIT", ""),
        ("crates/x/src/a.rs", "// Copyright (c) 2020 Somebody"),
        ("crates/x/a.css", &"a{}".repeat(500)),
    ] {
        assert!(objection(path, text).is_some(), "{path}");
    }
    assert_eq!(objection("crates/x/src/a.rs", "fn copyright() {}"), None);
    assert_eq!(objection("LICENSE", "Copyright (c)"), None);
}

#[test]
fn no_file_of_others_is_in_the_tree() {
    let root = tree::root();
    let mut found = Vec::new();
    for file in tree::files() {
        let bytes = std::fs::read(root.join(&file)).unwrap();
        let path = file.to_str().unwrap();
        // The last one, which is about to go.
        if path.starts_with("crates/report/assets/uplot/") {
            continue;
        }
        if let Some(why) = objection(path, &String::from_utf8_lossy(&bytes)) {
            found.push(format!("{path}: {why}"));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}
