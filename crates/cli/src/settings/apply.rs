//! Settings become words of a command line.

use std::collections::BTreeSet;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use super::{OptionDefault, Settings};

/// A command line with the settings that apply to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The command line.
    pub words: Vec<String>,
    /// The settings that it contains.
    pub used: Vec<OptionDefault>,
}

/// Adds settings to a command line: those of its command that it does not have, unless they contradict what it has.
pub fn apply(words: &[String], program: &Command, settings: &Settings) -> Applied {
    let unchanged = Applied { words: words.to_vec(), used: Vec::new() };
    if settings.settings.is_empty() {
        return unchanged;
    }
    // What is wrong with the command line is for the real parser to say.
    let Ok(found) = program.clone().ignore_errors(true).try_get_matches_from(words) else { return unchanged };
    let (path, found) = leaf(&found);
    let mut command = program.clone();
    command.build();
    let Some(command) = path.iter().try_fold(&command, |at, name| at.find_subcommand(name)) else {
        return unchanged;
    };
    let Some(at) = position(words, &path) else { return unchanged };
    let given: Vec<&Arg> = command.get_arguments().filter(|arg| is_given(found, arg)).collect();
    if given.iter().any(|arg| arg.is_exclusive_set()) {
        return unchanged;
    }
    let of_command = |setting: &&OptionDefault| setting.key.command.is_empty() || setting.key.command == path;
    let fits = |setting: &&OptionDefault| {
        let arg = command.get_arguments().find(|arg| arg.get_long() == Some(&*setting.key.option));
        arg.is_some_and(|arg| given.iter().all(|other| !clash(command, arg, other)))
    };
    let says_something = |setting: &&OptionDefault| !setting.is_flag || setting.values[0] == "true";
    let chosen = settings.settings.iter().filter(of_command).filter(fits).filter(says_something);
    let mut used: Vec<OptionDefault> = chosen.cloned().collect();
    // An option that needs another one, which is not there, says nothing here.
    let parses = |used: &[OptionDefault]| {
        let words = with(words, at, used);
        program.clone().try_get_matches_from(words).map(drop).map_err(|error| error.kind())
    };
    while let Err(
        clap::error::ErrorKind::MissingRequiredArgument | clap::error::ErrorKind::ArgumentConflict,
    ) = parses(&used)
    {
        let helps = |index: &usize| {
            let rest: Vec<OptionDefault> =
                used.iter().enumerate().filter(|(other, _)| other != index).map(|(_, s)| s.clone()).collect();
            parses(&rest).is_ok()
        };
        match (0..used.len()).find(helps) {
            Some(index) => drop(used.remove(index)),
            None => break,
        }
    }
    Applied { words: with(words, at, &used), used }
}

/// The names of the command of a command line, and what its options have.
fn leaf(found: &ArgMatches) -> (Vec<String>, &ArgMatches) {
    let (mut path, mut at) = (Vec::new(), found);
    while let Some((name, inner)) = at.subcommand() {
        path.push(name.to_owned());
        at = inner;
    }
    (path, at)
}

/// The place behind the name of the command.
fn position(words: &[String], path: &[String]) -> Option<usize> {
    let mut at = 1;
    for name in path {
        at += words[at..].iter().position(|word| word == name)? + 1;
    }
    Some(at)
}

fn is_given(found: &ArgMatches, arg: &Arg) -> bool {
    // Options of other levels are unknown here.
    let source = found
        .try_contains_id(arg.get_id().as_str())
        .ok()
        .and_then(|_| found.value_source(arg.get_id().as_str()));
    source == Some(ValueSource::CommandLine)
}

/// Whether two options contradict each other, or are the same.
fn clash(command: &Command, a: &Arg, b: &Arg) -> bool {
    let excludes =
        |a: &Arg, b: &Arg| command.get_arg_conflicts_with(a).iter().any(|other| other.get_id() == b.get_id());
    a.get_id() == b.get_id() || excludes(a, b) || excludes(b, a)
}

/// The command line with settings behind the name of the command.
fn with(words: &[String], at: usize, used: &[OptionDefault]) -> Vec<String> {
    let mut out = words[..at].to_vec();
    for setting in used {
        let option = &setting.key.option;
        for value in &setting.values {
            match (setting.is_flag, value.as_str()) {
                (true, "true") => out.push(format!("--{option}")),
                (true, _) => {}
                (false, value) => out.push(format!("--{option}={value}")),
            }
        }
    }
    out.extend_from_slice(&words[at..]);
    out
}

/// The options among the settings that an error message names, with their origins.
pub fn origins_in(message: &str, used: &[OptionDefault]) -> Vec<String> {
    let words: BTreeSet<&str> =
        message.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-')).collect();
    let is_named = |setting: &&OptionDefault| words.contains(format!("--{}", setting.key.option).as_str());
    used.iter()
        .filter(is_named)
        .map(|setting| format!("--{} comes from {}", setting.key.option, setting.origin))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use clap::CommandFactory;

    use super::*;
    use crate::Cli;
    use crate::settings::{Key, Origin};

    fn setting(key: &str, values: &[&str]) -> OptionDefault {
        let mut names: Vec<String> = key.split('.').map(str::to_owned).collect();
        let option = names.pop().unwrap();
        OptionDefault {
            key: Key { command: names, option },
            is_flag: matches!(values, ["true" | "false"]),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
            origin: Origin::File { path: PathBuf::from("p.toml"), line: 1 },
            replaced: Vec::new(),
        }
    }

    #[track_caller]
    fn check(given: &str, settings: &[(&str, &[&str])], expected: &str) {
        let words: Vec<String> = given.split(' ').map(str::to_owned).collect();
        let settings = settings.iter().map(|(key, values)| setting(key, values)).collect();
        let settings = Settings { files: Vec::new(), settings };
        assert_eq!(apply(&words, &Cli::command(), &settings).words.join(" "), expected);
    }

    #[test]
    fn settings_fill_what_the_command_line_leaves_open() {
        check("polygraph run", &[("run.device", &["squid"])], "polygraph run --device=squid");
        check("polygraph run --device nginx", &[("run.device", &["squid"])], "polygraph run --device nginx");
        check("polygraph try", &[("run.device", &["squid"])], "polygraph try");
        check(
            "polygraph run simple --no_proxy".replace("simple", "--config=simple").as_str(),
            &[("run.set", &["A=1", "B=2"]), ("quiet", &["true"])],
            "polygraph run --set=A=1 --set=B=2 --quiet --config=simple --no_proxy",
        );
        check(
            "polygraph net wan status",
            &[("net.wan.status.json", &["true"])],
            "polygraph net wan status --json",
        );
        check("polygraph run --no_proxy", &[("run.json", &["false"])], "polygraph run --no_proxy");
        check(
            "polygraph --quiet run --no_proxy",
            &[("quiet", &["true"])],
            "polygraph --quiet run --no_proxy",
        );
    }

    #[test]
    fn settings_that_contradict_the_command_line_are_left_out() {
        for (given, key) in [
            ("polygraph run --proxy 127.0.0.1:1", "run.device"),
            ("polygraph run --device squid", "run.proxy"),
            ("polygraph run --no_proxy --config simple", "run.req_rate"),
            ("polygraph run --no_proxy --req_rate 5/sec", "run.config"),
        ] {
            let value = match key {
                "run.device" => "squid",
                "run.proxy" => "127.0.0.1:2",
                "run.req_rate" => "5/sec",
                _ => "simple",
            };
            check(given, &[(key, &[value])], given);
        }
        // A factor needs a workload.
        check("polygraph run --no_proxy", &[("run.scale", &["1/60"])], "polygraph run --no_proxy");
        check(
            "polygraph run --no_proxy --config simple",
            &[("run.scale", &["1/60"])],
            "polygraph run --scale=1/60 --no_proxy --config simple",
        );
    }

    #[test]
    fn messages_get_the_origin_of_what_they_name() {
        let used = [setting("run.req_rate", &["fast"]), setting("run.rep_sz", &["1KB"])];
        let found = origins_in("error: invalid value 'fast' for '--req_rate <RATE>'", &used);
        assert_eq!(found, ["--req_rate comes from p.toml:1"]);
    }
}
