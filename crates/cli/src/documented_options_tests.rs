//! Every command that a document shows can be read, and every option that it names exists.

use std::collections::BTreeSet;

use clap::CommandFactory;
use clap::error::ErrorKind;
use polygraph_tidy::{commands, tree};

use crate::Cli;
use crate::lazy::whole;
use crate::legacy::{command_line, programs, unsupported_options};
use crate::options_page;

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
        let end = name.find(|c: char| !c.is_ascii_alphanumeric() && !"_-.".contains(c)).unwrap_or(name.len());
        Some(name[..end].trim_end_matches('.')).filter(|name| !name.is_empty())
    })
}

/// What stands between backquotes, outside of code blocks.
fn inline_code(page: &str) -> Vec<&str> {
    let mut is_fenced = false;
    let is_text = |line: &&str| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence && !line.starts_with("    ")
    };
    page.lines().filter(is_text).flat_map(|line| line.split('`').skip(1).step_by(2)).collect()
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
fn options_in_text_exist() {
    let program = whole::<Cli>();
    let of_all: BTreeSet<String> =
        program.get_arguments().filter_map(|arg| arg.get_long()).map(str::to_owned).collect();
    let known: BTreeSet<String> =
        program.get_subcommands().flat_map(options).chain(of_all.iter().cloned()).collect();
    let (mut wrong, mut right) = (Vec::new(), 0);
    for path in commands::pages() {
        let classic = path.ends_with("classic.md");
        let page = std::fs::read_to_string(tree::root().join(&path)).unwrap();
        for line in inline_code(&page) {
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
                of_all.contains(*name)
                    || of_command.contains(&name.replace('-', "_"))
                    || of_command.contains(*name)
                    || is_explained(name)
            };
            let (good, bad): (Vec<&str>, Vec<&str>) = named(line).partition(is_known);
            right += good.len();
            wrong.extend(bad.iter().map(|name| format!("{}: --{name} in `{line}`", path.display())));
        }
    }
    assert!(right > 200, "only {right} options were found");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Whether a command line is one of this program: as `polygraph`, or by a classic name.
fn is_ours(words: &[String]) -> bool {
    let name = words[0].rsplit('/').next().unwrap_or_default();
    name == "polygraph" || programs::CLASSIC.iter().any(|(classic, _)| *classic == name)
}

/// The words of a command line as a program would get them: variables of the shell have a value, and `...`, which stands
/// for words that a page leaves out, is gone together with the option before it.
fn filled_in(words: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for word in words {
        if word == "..." {
            out.pop_if(|option| option.starts_with("--"));
            continue;
        }
        let mut parts = word.split('$');
        let mut value = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let is_name = |c: char| c.is_ascii_alphanumeric() || "_{}".contains(c);
            value.push('1');
            value.push_str(part.trim_start_matches(is_name));
        }
        out.push(value);
    }
    out
}

/// Reads a command line as `main` does.
fn read(words: &[String]) -> Result<(), String> {
    let program = Cli::command();
    let is_abbreviated = words.iter().any(|word| word == "...");
    let words = filled_in(words);
    if let Some(text) = programs::unknown_name(&words, &program) {
        return Err(text);
    }
    let (words, _) = command_line::modernize(words, &program);
    let Err(error) = program.try_get_matches_from(&words) else { return Ok(()) };
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Ok(()),
        ErrorKind::MissingRequiredArgument if is_abbreviated => Ok(()),
        _ => Err(error.to_string().lines().next().unwrap_or_default().to_owned()),
    }
}

/// The files of the tree that a command line names and that are not there.
fn missing_files(words: &[String]) -> impl Iterator<Item = &String> {
    let folders = ["workloads/", "labs/", "bakeoffs/", "data/", "examples/", "bench/"];
    words.iter().filter(move |word| {
        folders.iter().any(|folder| word.starts_with(folder)) && !tree::root().join(word).exists()
    })
}

#[test]
fn commands_in_documents_can_be_read() {
    let (mut wrong, mut right) = (Vec::new(), 0);
    for block in commands::all_blocks().iter().filter(|block| block.is_shell()) {
        for words in commands::commands(&block.text).iter().filter(|words| is_ours(words)) {
            let line = words.join(" ");
            match read(words) {
                Ok(()) => right += 1,
                Err(text) => wrong.push(format!("{}: `{line}`: {text}", block.place())),
            }
            wrong.extend(missing_files(words).map(|file| format!("{}: there is no {file}", block.place())));
        }
    }
    assert!(right > 200, "only {right} commands were found");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn commands_that_cannot_be_read_are_found() {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    for line in [
        "polygraph run --no_proxy --goal 5s",
        "polygraph run x.pg --no_proxy",
        "polygraph dns --config x.pg --set ... --listen 127.0.0.1:53",
        "polysrv - - port 80 --xact_think norm:3s,1.5s",
        "polygraph lx --help",
        "polygraph run --no_proxy --local_rng_seed $i --robots ${n} --out results/new$i",
    ] {
        assert!(is_ours(&words(line)), "{line}");
        assert_eq!(read(&words(line)), Ok(()), "{line}");
    }
    for line in [
        "polygraph run --goal",
        "polygraph rum",
        "polygraph run --no_proxy --req_rate fast",
        "polygraph compare",
    ] {
        assert!(read(&words(line)).is_err(), "{line}");
    }
    assert!(!is_ours(&words("squid -N")));
    assert_eq!(missing_files(&words("lx workloads/simple.pg workloads/no.pg")).count(), 1);
}

#[test]
fn options_are_found_in_text() {
    let page = "See `--rep_size`, or `lx --phase all`\n\n    `--no`\n\n```sh\n`--no`\n```\n`--yes`\n";
    assert_eq!(inline_code(page), ["--rep_size", "lx --phase all", "--yes"]);
    assert_eq!(named("client --proxy a:1 (--dhr=5p)").collect::<Vec<_>>(), ["proxy", "dhr"]);
    assert_eq!(
        [subcommand("polygraph run --x"), subcommand("lx a"), subcommand("--x")],
        [Some("run"), Some("lx"), None]
    );
}

#[test]
fn the_page_of_commands_lists_every_command() {
    let page = std::fs::read_to_string(tree::root().join("docs/reference/tools.md")).unwrap();
    let missing: Vec<String> = Cli::command()
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(|command| format!("| [`{0}`](generated/options.md#{0}) |", command.get_name()))
        .filter(|start| !page.lines().any(|line| line.starts_with(start.as_str())))
        .collect();
    assert!(missing.is_empty(), "docs/reference/tools.md lacks rows that begin with {missing:#?}");
}

#[test]
fn the_page_of_options_is_fresh() {
    let path = tree::root().join("docs/reference/generated/options.md");
    let page = options_page::page(Cli::command());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        known == page,
        "docs/reference/generated/options.md is stale: run `UPDATE_DOCS=1 cargo test -p polygraph --bin polygraph the_page_of_options`"
    );
}
