//! Command lines as documents of 1999 print them: classic program names, any number of dashes, any case, and misprints.
//!
//! | printed | meant |
//! |---|---|
//! | `- - port 80`, `-- port 80`, `–port 80` | `--port 80` |
//! | `--goal-1:1hr:0.30` | `--goal -1:1hr:0.30` |
//! | `--verb lvl 2` | `--verb_lvl 2` |
//! | `--cool\_phase 1min` | `--cool_phase 1min` |
//! | `polysrv--port 80` | `polysrv --port 80` |
//!
//! `polygraph run FILE.pg` is short for `polygraph run --config FILE.pg`, at any place among the options, and likewise for all
//! commands with `--config` and no arguments; the file may be the name of a built-in workload.

use crate::lazy::whole_of;
use clap::{Arg, Command};
use polygraph_assets::{EntryKind, SCHEME, find, similar};

use super::programs::{CLASSIC, WITHOUT_ARGUMENTS};

/// A misprint in an option that was corrected.
#[derive(Debug, PartialEq, Eq)]
pub struct Correction {
    /// The option as given.
    pub was: String,
    /// The option as understood.
    pub is: String,
}

/// Turns a command line into one for `cli`: a classic program name becomes a subcommand, and options get their canonical
/// spelling.
pub fn modernize(words: Vec<String>, cli: &Command) -> (Vec<String>, Vec<Correction>) {
    let mut words = words.into_iter();
    let program = words.next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    let mut out = vec!["polygraph".to_owned()];
    let mut rest: Vec<String> = Vec::new();
    // Only a wrapper that passes words on can call the program by the name `polysrv--port`.
    let (name, glued) = match name.split_once("--") {
        Some((name, option)) => (name, Some(format!("--{option}"))),
        None => (name, None),
    };
    rest.extend(glued);
    let classic = CLASSIC.iter().find(|(classic, _)| *classic == name);
    let subcommand = match classic {
        Some((_, subcommand)) => Some((*subcommand).to_owned()),
        None => words.next(),
    };
    rest.extend(words);
    let Some(subcommand) = subcommand else { return (out, Vec::new()) };
    out.push(subcommand.clone());
    let Some(command) = cli.find_subcommand(&subcommand) else {
        out.extend(rest);
        return (out, Vec::new());
    };
    // Most original programs print their usage when they are started without arguments.
    let is_classic = CLASSIC.iter().any(|(_, classic)| *classic == subcommand)
        && !WITHOUT_ARGUMENTS.contains(&subcommand.as_str());
    if rest.is_empty() && is_classic {
        out.push("--help".to_owned());
        return (out, Vec::new());
    }
    let command = whole_of(command);
    let options: Vec<String> =
        command.get_arguments().filter_map(|arg| arg.get_long()).map(str::to_owned).collect();
    let (mut rest, corrections) = options_of(&rest, &options);
    if options.iter().any(|option| option == "config")
        && command.get_positionals().next().is_none()
        && let Some(at) = lone(&rest, &command, is_workload)
            .or_else(|| lone(&rest, &command, |word| similar(EntryKind::Workload, word).is_some()))
    {
        rest.insert(at, "--config".to_owned());
    }
    out.extend(rest);
    (out, corrections)
}

/// The place of the first word with this property that is not the value of an option. A misspelt name of a workload is also found, so that
/// the message about it can name the right one.
fn lone(words: &[String], command: &Command, is_wanted: impl Fn(&str) -> bool) -> Option<usize> {
    // How many words after an option may be its values.
    let mut values = 0;
    words.iter().position(|word| {
        if word.starts_with('-') && word != "-" {
            let name = word.strip_prefix("--");
            let option = command.get_arguments().find(|arg| name.is_some() && arg.get_long() == name);
            let takes = |arg: &Arg| arg.get_num_args().map_or(1, |range| range.max_values());
            values = option.filter(|arg| arg.get_action().takes_values()).map_or(0, takes);
            return false;
        }
        let is_value = values > 0;
        values = values.saturating_sub(1);
        !is_value && is_wanted(word)
    })
}

/// Whether a word names a workload by itself: a file or a built-in one.
fn is_workload(word: &str) -> bool {
    let is_path = word.ends_with(".pg") && !word.starts_with(['-', '–']);
    is_path || find(EntryKind::Workload, word.strip_prefix(SCHEME).unwrap_or(word)).is_some()
}

fn options_of(words: &[String], known: &[String]) -> (Vec<String>, Vec<Correction>) {
    let mut out = Vec::new();
    let mut corrections = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let (option, used) = match read_option(&words[at..], known) {
            Some(found) => found,
            None => {
                out.push(words[at].clone());
                at += 1;
                continue;
            }
        };
        let was = words[at..at + used].join(" ");
        let is = option.join(" ");
        // The original accepts any number of dashes and any case. Dashes inside of names are common elsewhere.
        let name = |text: &str| text.trim_start_matches('-').to_ascii_lowercase().replace('-', "_");
        if name(&was) != name(&is) {
            corrections.push(Correction { was: format!("`{was}`"), is: format!("`{is}`") });
        }
        out.extend(option);
        at += used;
    }
    (out, corrections)
}

/// Reads a known option in any spelling at the start of `words`. Returns its canonical words, with a value that was attached
/// to it, and the number of words read.
fn read_option(words: &[String], known: &[String]) -> Option<(Vec<String>, usize)> {
    let dash = |c: char| matches!(c, '-' | '–' | '—');
    let dashes = words.iter().take_while(|word| !word.is_empty() && word.chars().all(dash)).count();
    let word = words.get(dashes)?;
    // A dash before an option is an argument, standard input.
    if dashes > 0 && word.starts_with(dash) {
        return None;
    }
    if dashes == 0 && !word.starts_with(dash) {
        return None;
    }
    let clean =
        |text: &str| text.trim_start_matches(dash).replace('\\', "").replace('-', "_").to_ascii_lowercase();
    let name = clean(word);
    let find = |name: &str| known.iter().find(|option| option.replace('-', "_") == name);
    if let Some(option) = find(&name) {
        return Some((vec![format!("--{option}")], dashes + 1));
    }
    if let Some(next) = words.get(dashes + 1)
        && let Some(option) = find(&format!("{name}_{}", clean(next)))
    {
        return Some((vec![format!("--{option}")], dashes + 2));
    }
    // A value may be attached to its option by its sign or by `=`.
    let text = word.trim_start_matches(dash).replace('\\', "");
    let cut = text.find('=').or_else(|| {
        text.match_indices('-')
            .map(|(i, _)| i)
            .find(|&i| text[i + 1..].starts_with(|c: char| c.is_ascii_digit()))
    })?;
    let option = find(&clean(&text[..cut]))?;
    let value = text[cut..].trim_start_matches('=').to_owned();
    Some((vec![format!("--{option}"), value], dashes + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 6] = ["port", "goal", "verb_lvl", "cool_phase", "robots", "ports"];

    #[track_caller]
    fn check(given: &str, expected: &str, corrections: usize) {
        let words: Vec<String> = given.split(' ').map(str::to_owned).collect();
        let known = KNOWN.map(str::to_owned);
        let (words, made) = options_of(&words, &known);
        assert_eq!(words.join(" "), expected);
        assert_eq!(made.len(), corrections, "{made:?}");
    }

    #[test]
    fn classic_spellings_need_no_message() {
        check("--port 80 --verb_lvl 2", "--port 80 --verb_lvl 2", 0);
        check("-port 80 ---Verb_Lvl 2", "--port 80 --verb_lvl 2", 0);
        check("--goal -1:1hr:0.30 --robots 1", "--goal -1:1hr:0.30 --robots 1", 0);
        check("--verb-lvl 2", "--verb_lvl 2", 0);
        check("--unknown x", "--unknown x", 0);
        check("- --port 80", "- --port 80", 0);
    }

    #[test]
    fn a_run_needs_only_the_name_of_its_workload() {
        use clap::CommandFactory as _;
        let program = crate::Cli::command();
        for (given, expected) in [
            ("polygraph run x.pg --no_proxy", "polygraph run --config x.pg --no_proxy"),
            ("polygraph run --config x.pg", "polygraph run --config x.pg"),
            ("polygraph run polymix-4 --no_proxy", "polygraph run --config polymix-4 --no_proxy"),
            ("polygraph run builtin:simple", "polygraph run --config builtin:simple"),
            ("polygraph run --no_proxy x.pg --goal 3s", "polygraph run --no_proxy --config x.pg --goal 3s"),
            ("polygraph run --device squid polymix-4", "polygraph run --device squid --config polymix-4"),
            // Values of options look like workloads, too.
            ("polygraph run --label polymix-4 x.pg", "polygraph run --label polymix-4 --config x.pg"),
            ("polygraph run --label=x.pg", "polygraph run --label x.pg"),
            ("polygraph run --config simple --label simple", "polygraph run --config simple --label simple"),
            ("polygraph pgl2ips x.pg --host a", "polygraph pgl2ips --config x.pg --host a"),
            ("polygraph dns-cfg --names a b x.pg", "polygraph dns-cfg --names a b x.pg"),
            ("polygraph check x.pg", "polygraph check x.pg"),
        ] {
            let words = given.split(' ').map(str::to_owned).collect();
            assert_eq!(modernize(words, &program).0.join(" "), expected);
        }
    }

    #[test]
    fn misprints_are_corrected_and_named() {
        check("- - port 80", "--port 80", 1);
        check("-- ports 1024:30000", "--ports 1024:30000", 1);
        check("–goal 1hr", "--goal 1hr", 1);
        check("--goal-1:1hr:0.30", "--goal -1:1hr:0.30", 1);
        check("-- goal 1hr", "--goal 1hr", 1);
        check("--verb lvl 2", "--verb_lvl 2", 1);
        check("--cool\\_phase 1min", "--cool_phase 1min", 1);
        check("--port=80", "--port 80", 1);
    }
}
