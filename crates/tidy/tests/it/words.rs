//! Names and phrases that the tree has parted with (docs/glossary.md).

use std::collections::BTreeMap;

use polygraph_tidy::tree;

/// Names of code that became standard terms; nothing may bear them again. They are compared as whole identifiers.
const NAMES: &[&str] = &[
    // Robots.
    "Crew",
    "Chooser",
    "Talk",
    "Gate",
    "Ticket",
    "Asker",
    "Wallet",
    "Kit",
    "Contrast",
    "Heard",
    "Facts",
    "Finding",
    "Standing",
    "ToldWorld",
    "Unfinished",
    "Trouble",
    "Validations",
    // Engine.
    "Books",
    "HandOver",
    "Desk",
    "Keeper",
    "Score",
    "Conductor",
    "Governor",
    "Helm",
    "Thermostat",
    "Gauge",
    "News",
    "GLANCE",
    "REAP",
    "TELL",
    "Frame",
    "Party",
    "Outlook",
    "Stage",
    "Stand",
    "Eagerness",
    "LastWord",
    "Panicked",
    "StopWatch",
    "PhaseBegins",
    "Said",
    "Erred",
    // Origin, devices and names.
    "House",
    "Farm",
    "Site",
    "Wanted",
    "Circumstances",
    "Refusal",
    "Places",
    "Home",
    "CHORE",
    "Flight",
    "Lead",
    // Link, cache and simulation.
    "Tape",
    "Stir",
    "How",
    "Filling",
    "Fetched",
    "Sketch",
    // Statistics and reports.
    "Hist",
    "Coarse",
    "Tally",
    "Taker",
    "Readable",
    "Story",
    "Leaf",
    "Still",
    "Stated",
    "Weight",
    "Judgement",
    "Outcome",
    // Language and plan.
    "Obstacle",
    "Along",
    "Met",
    "Yields",
    "Where",
    "Wants",
    "Denial",
    "Offer",
    "Fed",
    "Declared",
    // The command line.
    "Power",
    "Repair",
    "Later",
    "UnderTest",
    "InPath",
    "Forecast",
    "Preview",
    "Ending",
];

/// Names of libraries that happen to be among those above, with the files that need them.
const OF_LIBRARIES: &[(&str, &str)] = &[
    ("crates/live/src/http.rs", "Frame"),
    ("crates/live/src/metrics.rs", "Gauge"),
    ("crates/monitor/src/terminal.rs", "Home"),
    ("crates/monitor/src/terminal/app.rs", "Home"),
    ("crates/monitor/src/terminal/draw.rs", "Frame"),
    ("crates/quic/src/wire.rs", "Readable"),
];

/// Phrases that are no plain English, compared in comments, messages and documents.
const PHRASES: &[&str] = &[
    "the begin ",
    "ended well",
    "limits of phases",
    "limits of the phases",
    "is told",
    "are told",
    "was told",
    "were told",
    "there is asked",
    "what was told",
    "nothing is claimed",
    "enough has been said",
];

/// Documents of earlier versions keep their words.
const HISTORY: &[&str] = &["CHANGELOG.md", "docs/glossary.md", "crates/tidy/tests/it/words.rs"];

fn identifiers(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Files of the tree that hold code or prose, with their texts.
fn texts() -> Vec<(String, String)> {
    let root = tree::root();
    let is_text = |path: &str| [".rs", ".md", ".html", ".js", ".toml"].iter().any(|end| path.ends_with(end));
    tree::files()
        .into_iter()
        .filter_map(|file| {
            let path = file.to_str().unwrap().to_owned();
            if !is_text(&path) || HISTORY.contains(&path.as_str()) {
                return None;
            }
            let text = std::fs::read_to_string(root.join(&file)).unwrap();
            Some((path, text))
        })
        .collect()
}

#[test]
fn names_of_the_past_are_gone() {
    let mut found = Vec::new();
    for (path, text) in texts().iter().filter(|(path, _)| path.ends_with(".rs")) {
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap();
            // Text in quotation marks is not a name.
            let code: String = code.split('"').step_by(2).collect::<Vec<_>>().join(" ");
            for name in identifiers(&code).filter(|word| NAMES.contains(word)) {
                if OF_LIBRARIES.contains(&(path.as_str(), name)) {
                    continue;
                }
                found.push(format!("{path}:{}: {name}", number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{} places:\n{}", found.len(), found.join("\n"));
}

#[test]
fn phrases_of_the_past_are_gone() {
    let mut found = Vec::new();
    for (path, text) in texts() {
        for (number, line) in text.lines().enumerate() {
            let lower = line.to_lowercase();
            for phrase in PHRASES.iter().filter(|phrase| lower.contains(**phrase)) {
                found.push(format!("{path}:{}: {phrase}", number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{} places:\n{}", found.len(), found.join("\n"));
}

/// A doc comment makes sense alone in a list of search hits.
#[test]
fn no_doc_comment_is_a_single_word() {
    let mut found = Vec::new();
    for (path, text) in texts().iter().filter(|(path, _)| path.ends_with(".rs")) {
        let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
        for (at, line) in lines.iter().enumerate() {
            let is_doc = |at: usize| lines.get(at).is_some_and(|line| line.starts_with("///"));
            let Some(words) = line.strip_prefix("///") else { continue };
            let is_alone = !is_doc(at + 1) && (at == 0 || !is_doc(at - 1));
            // A token, a field or a keyword says all by its spelling.
            if is_alone && words.split_whitespace().count() < 2 && !words.trim().starts_with('`') {
                found.push(format!("{path}:{}: {line}", at + 1));
            }
        }
    }
    assert!(found.is_empty(), "{} places:\n{}", found.len(), found.join("\n"));
}

/// The names of public types, with the files that define them.
fn public_types() -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in texts() {
        if !path.ends_with(".rs") || path.contains("/tests/") || path.ends_with("tests.rs") {
            continue;
        }
        for line in text.lines() {
            let mut words = line.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_');
            let is_type = words.next() == Some("pub")
                && words.next().is_some_and(|word| ["struct", "enum", "trait", "type"].contains(&word));
            if is_type && let Some(name) = words.next() {
                found.entry(name.to_owned()).or_default().push(path.clone());
            }
        }
    }
    found
}

/// One word means one thing. Two rooms may use a word of their trade each (a `Page` of a report, a `Page` that a robot
/// loads); three may not.
#[test]
fn no_public_type_name_stands_for_three_things() {
    // Every subcommand has its arguments; every crate its error, and the result with it.
    let usual = ["Args", "Err", "Error", "Result"];
    let types = public_types();
    let shared: Vec<_> =
        types.iter().filter(|(name, files)| files.len() > 2 && !usual.contains(&name.as_str())).collect();
    assert!(shared.is_empty(), "{shared:#?}");
}
