//! Every option that a document names exists and belongs to the command beside it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::CommandFactory;

use crate::Cli;
use crate::legacy::{programs, unsupported_options};

/// The folder of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All pages for users.
fn pages() -> Vec<PathBuf> {
    let folders =
        ["", "docs", "workloads", "devices", "bakeoffs", "editors"].map(|folder| root().join(folder));
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
    let mut pages: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    pages.sort();
    pages
}

/// Misprinted options that a page shows to explain how the program reads them.
const MISPRINTS: [&str; 2] = ["goal-1", "verb"];

/// Names of the options of a command and of its subcommands, without dashes.
fn options(command: &clap::Command) -> BTreeSet<String> {
    let nested = command.get_subcommands().flat_map(options);
    let names = command.get_arguments().flat_map(|arg| {
        let aliases = arg.get_all_aliases().unwrap_or_default();
        arg.get_long().into_iter().chain(aliases).map(str::to_owned).collect::<Vec<_>>()
    });
    names.chain(["help".to_owned(), "version".to_owned()]).chain(nested).collect()
}

/// The options that a text names: `--x`, wherever a word begins.
fn named(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| c.is_whitespace() || "()[]{}|,;:'\"`".contains(c));
    words.filter_map(|word| {
        let name = word.strip_prefix("--")?;
        let end =
            name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-').unwrap_or(name.len());
        Some(&name[..end]).filter(|name| !name.is_empty())
    })
}

/// Pieces of code of a page: code blocks line by line, continued lines as one, and what stands between backquotes.
fn code(page: &str) -> Vec<String> {
    let (mut found, mut fenced, mut open) = (Vec::new(), false, String::new());
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced || line.starts_with("    ") || !open.is_empty() {
            match line.strip_suffix('\\') {
                Some(part) => open.push_str(part),
                None => found.push(std::mem::take(&mut open) + line),
            }
        } else {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    found
}

/// The commands in a piece of code.
fn commands(code: &str) -> impl Iterator<Item = &str> {
    code.split(['|', '&', ';']).map(|command| {
        let command = command.split(" #").next().unwrap_or_default().trim();
        // Words before the two dashes are for Cargo.
        command.strip_prefix("cargo").and_then(|rest| rest.split_once(" -- ")).map_or(command, |(_, own)| own)
    })
}

/// The subcommand that a command line is for: by its name, or by a classic one.
fn subcommand(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let first = words.next()?;
    let classic = programs::CLASSIC.iter().find(|(name, _)| *name == first);
    match first {
        "polygraph" => words.next(),
        "try" => Some(first),
        _ => classic.map(|(_, command)| *command),
    }
}

#[test]
fn options_in_documents_exist() {
    let program = Cli::command();
    let known: BTreeSet<String> = program.get_subcommands().flat_map(options).collect();
    let (mut wrong, mut right) = (Vec::new(), 0);
    for path in pages() {
        // It names options that no longer exist.
        if path.ends_with("CHANGELOG.md") {
            continue;
        }
        let classic = path.ends_with("classic.md");
        let page = std::fs::read_to_string(&path).unwrap();
        for code in code(&page) {
            for line in commands(&code) {
                let command = subcommand(line).and_then(|name| program.find_subcommand(name));
                let of_command = match command {
                    Some(command) => options(command),
                    // An option without a command may belong to any command; options of other programs are skipped.
                    None if line.starts_with("--") => known.clone(),
                    None => continue,
                };
                // The page about the original names options that this program explains.
                let is_explained = |name: &str| {
                    classic
                        && (MISPRINTS.contains(&name)
                            || unsupported_options::explain(&[format!("--{name}")]).is_some())
                };
                let is_known = |name: &&str| {
                    of_command.contains(&name.replace('-', "_"))
                        || of_command.contains(*name)
                        || is_explained(name)
                };
                let (good, bad): (Vec<&str>, Vec<&str>) = named(line).partition(is_known);
                right += good.len();
                wrong.extend(bad.iter().map(|name| format!("{}: --{name} in `{line}`", path.display())));
            }
        }
    }
    assert!(right > 200, "only {right} options were found");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn options_are_found_in_text() {
    let page = "See `--rep_size`, or\n\n    polygraph client --proxy a:1 \\\n        --dhr=5p | lx --phase all # --not\n";
    let code = code(page);
    let lines: Vec<_> = code.iter().flat_map(|code| commands(code)).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(
        lines.iter().map(|line| subcommand(line)).collect::<Vec<_>>(),
        [None, Some("client"), Some("lx")]
    );
    let names: Vec<Vec<&str>> = lines.iter().map(|line| named(line).collect()).collect();
    assert_eq!(names, [vec!["rep_size"], vec!["proxy", "dhr"], vec!["phase"]]);
}

#[test]
fn the_page_of_commands_lists_every_option() {
    let page = include_str!("../../../docs/reference/tools.md");
    let row_of = |name: &str| {
        let start = format!("| `{name}` |");
        page.lines().find(|line| line.starts_with(&start)).unwrap_or_default()
    };
    let mut missing = Vec::new();
    for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
        let row = row_of(command.get_name());
        let others = ["run", "fleet"].map(|other| match row.contains(&format!("those of `{other}`")) {
            true => row_of(other),
            false => "",
        });
        let longs = command.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(|arg| arg.get_long());
        let is_listed =
            |name: &str| [row, others[0], others[1]].iter().any(|row| row.contains(&format!("`--{name}`")));
        let absent = longs.filter(|name| *name != "help" && !is_listed(name));
        missing.extend(absent.map(|name| format!("{}: --{name}", command.get_name())));
    }
    assert!(missing.is_empty(), "docs/reference/tools.md lacks {missing:#?}");
}
