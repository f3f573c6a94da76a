//! Pages: every page of `docs/` is in the book, and every link between files of the tree leads somewhere.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use polygraph_tidy::tree;

/// The Markdown files of the tree with their text, code blocks left out.
fn pages() -> Vec<(PathBuf, String)> {
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(tree::root().join(&path)).unwrap();
        (path, without_code(&text))
    };
    tree::files().into_iter().filter(is_page).map(read).collect()
}

fn without_code(text: &str) -> String {
    let mut is_code = false;
    let mut kept = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// The targets of `[text](target)`.
fn links(text: &str) -> Vec<&str> {
    let after = |(at, _): (usize, &str)| &text[at + 2..];
    let target = |rest: &'_ str| rest.split_once(')').map_or(0, |(target, _)| target.len());
    text.match_indices("](").map(after).map(|rest| &rest[..target(rest)]).collect()
}

/// The anchor that a heading gets: lower case, blanks as dashes, without punctuation.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading.trim().to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#'))).collect()
}

/// `path` without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(parts.pop()),
            Component::CurDir => {}
            part => parts.push(part),
        }
    }
    parts
}

#[test]
fn every_relative_link_leads_somewhere() {
    let (pages, root) = (pages(), tree::root());
    let mut dead = Vec::new();
    for (page, text) in &pages {
        for link in links(text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, section) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => page.clone(),
                file => normal(&page.parent().unwrap().join(file)),
            };
            let known = pages.iter().find(|(other, _)| *other == target);
            let leads = match known {
                Some((_, text)) => section.is_empty() || anchors(text).contains(section),
                None => root.join(&target).exists(),
            };
            if !leads {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}

#[test]
fn every_page_of_docs_is_in_the_book() {
    let summary = std::fs::read_to_string(tree::root().join("docs/SUMMARY.md")).unwrap();
    let listed: BTreeSet<PathBuf> = links(&summary).into_iter().map(PathBuf::from).collect();
    let of_docs = |(path, _): (PathBuf, String)| path.strip_prefix("docs").ok().map(Path::to_path_buf);
    let found: BTreeSet<PathBuf> =
        pages().into_iter().filter_map(of_docs).filter(|path| *path != Path::new("SUMMARY.md")).collect();
    assert_eq!(found, listed, "docs/SUMMARY.md must list every page of docs/ once");
}

#[test]
fn links_are_found_and_headings_have_anchors() {
    assert_eq!(links("see [a](b.md#c), `x` and [d](e)"), ["b.md#c", "e"]);
    assert_eq!(anchor(" What `--scale` changes"), "what---scale-changes");
    assert_eq!(anchor("Transaction classes"), "transaction-classes");
}

/// What stands between backquotes.
fn code_words(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// Whether a type of this name is defined in the sources of a crate.
fn defines(crate_folder: &Path, name: &str) -> bool {
    let sources = tree::files().into_iter().map(|path| tree::root().join(path));
    let of_crate = sources.filter(|path| path.starts_with(crate_folder.join("src")) && path.exists());
    let keywords = ["struct", "enum", "trait", "type"];
    of_crate.filter_map(|path| std::fs::read_to_string(path).ok()).any(|text| {
        let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        words.windows(2).any(|pair| keywords.contains(&pair[0]) && pair[1] == name)
    })
}

/// `crates/x/src/y.rs`, `docs/y.md`, `x/y.rs` of crate `x`, and `x::Type` exist. Anything else is no name of the tree.
fn names_something(word: &str) -> bool {
    let root = tree::root();
    if word.contains(|c: char| c.is_whitespace() || "*<>=$".contains(c)) || word.contains("NAME") {
        return true;
    }
    let of_crate = |name: &str| root.join("crates").join(name);
    if let Some((name, rest)) = word.split_once("::") {
        let last = rest.rsplit("::").next().unwrap();
        let is_type = last.starts_with(char::is_uppercase) && last.chars().all(char::is_alphanumeric);
        return !of_crate(name).is_dir() || !is_type || defines(&of_crate(name), last);
    }
    let Some((first, rest)) = word.split_once('/') else { return true };
    match first {
        "crates" | "docs" | "devices" | "workloads" | "bench" | "data" | "fuzz" => root.join(word).exists(),
        first if of_crate(first).is_dir() => of_crate(first).join("src").join(rest).exists(),
        _ => true,
    }
}

#[test]
fn pages_for_contributors_name_what_exists() {
    let mut wrong = Vec::new();
    for page in ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/glossary.md"] {
        let text = std::fs::read_to_string(tree::root().join(page)).unwrap();
        let text = without_code(&text);
        let missing = code_words(&text).filter(|word| !names_something(word));
        wrong.extend(missing.map(|word| format!("{page}: `{word}`")));
    }
    assert!(wrong.is_empty(), "names of nothing:\n{}", wrong.join("\n"));
}

/// The pages and sections that the comments of a source file cite: `docs/x.md, "A"` or `docs/x.md, "A" and "B"`.
fn citations(text: &str) -> Vec<(String, Vec<String>)> {
    // A citation may go on in the next line of its comment.
    let lines = text.lines().map(|line| line.trim_start().trim_start_matches(['/', '!']).trim());
    let text = lines.collect::<Vec<_>>().join(" ");
    let starts = text.match_indices("docs/").map(|(at, _)| &text[at..]);
    let cited = starts.filter_map(|rest| {
        let (page, rest) = rest.split_once(".md")?;
        let is_page = page.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "/-_".contains(c));
        let mut rest = rest.trim_start_matches('`');
        let mut sections = Vec::new();
        while let Some(title) = rest.strip_prefix(", \"").or_else(|| rest.strip_prefix(" and \"")) {
            let (title, after) = title.split_once('"')?;
            sections.push(title.to_owned());
            rest = after;
        }
        is_page.then(|| (format!("{page}.md"), sections))
    });
    cited.collect()
}

#[test]
fn comments_cite_pages_and_sections_that_exist() {
    let pages = pages();
    let mut wrong = Vec::new();
    for source in tree::files().into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs")) {
        let text = std::fs::read_to_string(tree::root().join(&source)).unwrap();
        if source.ends_with("tests/it/pages.rs") {
            continue;
        }
        for (page, sections) in citations(&text) {
            let known = pages.iter().find(|(path, _)| *path == Path::new(&page));
            let has = |title: &String| known.is_some_and(|(_, text)| anchors(text).contains(&anchor(title)));
            if known.is_none() || !sections.iter().all(has) {
                wrong.push(format!("{}: {page} {sections:?}", source.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "comments cite what is not there:\n{}", wrong.join("\n"));
}

/// The names in the first column of the table of crates.
fn crates_in_order() -> Vec<String> {
    let text = std::fs::read_to_string(tree::root().join("ARCHITECTURE.md")).unwrap();
    let (_, section) = text.split_once("\n## Crates\n").expect("the table of crates");
    let section = section.split("\n## ").next().unwrap();
    let name = |line: &str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned());
    section.lines().filter_map(name).collect()
}

#[test]
fn crates_depend_on_those_above_them_in_the_table() {
    let order = crates_in_order();
    let mut all: Vec<String> = std::fs::read_dir(tree::root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("Cargo.toml").is_file())
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    all.sort_unstable();
    let mut sorted = order.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, all, "the table names every crate once");
    let mut wrong = Vec::new();
    for (at, name) in order.iter().enumerate() {
        let manifest = tree::root().join("crates").join(name).join("Cargo.toml");
        let text = std::fs::read_to_string(manifest).unwrap();
        let (_, needed) = text.split_once("\n[dependencies]\n").unwrap_or_default();
        let needed = needed.split("\n[").next().unwrap();
        let needed =
            needed.lines().filter_map(|line| line.strip_prefix("polygraph-")?.split(['.', ' ']).next());
        let below = needed.filter(|needed| !order[..at].iter().any(|above| above == needed));
        wrong.extend(below.map(|needed| format!("{name} needs {needed}")));
    }
    assert!(wrong.is_empty(), "not above in the table: {wrong:#?}");
}
