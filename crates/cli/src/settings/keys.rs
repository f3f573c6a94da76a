//! The options that can have default values: all options of all commands.

use clap::{Arg, ArgAction, Command};

use super::{Key, OptionDefault, Origin};

/// Options that only a command line can have, because they permit what a file of somebody else must not permit.
const COMMAND_LINE_ONLY: [&str; 1] = ["allow_exec"];

/// An option with its definition.
#[derive(Clone, Debug)]
pub struct KnownKey {
    /// The option.
    pub key: Key,
    /// Whether it has no value.
    pub is_flag: bool,
    /// Whether it can be repeated.
    pub is_list: bool,
    /// Whether only a command line can have it.
    pub command_line_only: bool,
}

impl KnownKey {
    /// A value of this option.
    pub fn setting(&self, values: Vec<String>, origin: Origin) -> OptionDefault {
        OptionDefault { key: self.key.clone(), is_flag: self.is_flag, values, origin, replaced: Vec::new() }
    }
}

/// All options of a [whole](crate::lazy::whole) program.
pub fn keys(program: &Command) -> Vec<KnownKey> {
    let mut found = Vec::new();
    collect(program, &[], &mut found);
    found
}

fn collect(command: &Command, path: &[String], found: &mut Vec<KnownKey>) {
    found.extend(own_options(command).filter_map(|arg| known(arg, path)));
    for inner in subcommands(command) {
        let path: Vec<String> = path.iter().cloned().chain([inner.get_name().to_owned()]).collect();
        collect(inner, &path, found);
    }
}

/// The options of a command, without those that all commands have; of the program, these.
pub fn own_options(command: &Command) -> impl Iterator<Item = &Arg> {
    let is_program = command.get_name() == env!("CARGO_PKG_NAME");
    let is_help = |arg: &Arg| ["help", "version"].contains(&arg.get_id().as_str());
    command
        .get_arguments()
        .filter(move |arg| !arg.is_hide_set() && !is_help(arg) && (is_program || !arg.is_global_set()))
}

/// The commands below a command that users see.
pub fn subcommands(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|inner| !inner.is_hide_set() && inner.get_name() != "help")
}

fn known(arg: &Arg, path: &[String]) -> Option<KnownKey> {
    let option = arg.get_long()?;
    let (is_flag, is_list) = match arg.get_action() {
        ArgAction::SetTrue => (true, false),
        ArgAction::Set => (false, false),
        ArgAction::Append => (false, true),
        // Help and version.
        _ => return None,
    };
    Some(KnownKey {
        key: Key { command: path.to_vec(), option: option.to_owned() },
        is_flag,
        is_list,
        command_line_only: COMMAND_LINE_ONLY.contains(&option),
    })
}

/// The option that a name means, with `-` for `_` or the other way round.
pub fn find<'a>(keys: &'a [KnownKey], command: &[String], option: &str) -> Option<&'a KnownKey> {
    keys.iter().find(|known| known.key.command == command && plain(&known.key.option) == plain(option))
}

/// Whether there is a command with these names.
pub fn is_command(program: &Command, command: &[String]) -> bool {
    let mut at = program;
    command.iter().all(|name| match subcommands(at).find(|found| found.get_name() == name) {
        Some(found) => {
            at = found;
            true
        }
        None => false,
    })
}

/// Names differ only in what is left here.
pub fn plain(name: &str) -> String {
    name.replace('-', "_").to_ascii_lowercase()
}

/// The most similar of some names, if it may be a misspelling.
pub fn similar<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let score = |other: &str| strsim::jaro_winkler(&plain(name), &plain(other));
    all.max_by(|a, b| score(a).total_cmp(&score(b))).filter(|best| score(best) > 0.8)
}
