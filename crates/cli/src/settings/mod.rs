//! Default values of options, from files and the environment (docs/config.md).
//!
//! A value of the command line replaces one of an environment variable, which replaces one of the project's file, which
//! replaces one of the user's file. Every option of every command can have a default; they become words of the command
//! line before it is parsed, so they are checked like words that the user types.

mod apply;
mod keys;
mod sources;

use std::path::PathBuf;

pub use self::apply::{apply, origins_in};
pub use self::keys::{is_command, own_options};
pub use self::sources::{as_given, environment_name, load, variables};

/// An option of a command.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The names of the command: `["net", "wan"]`; empty for options of all commands.
    pub command: Vec<String>,
    /// The long name of the option.
    pub option: String,
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for name in &self.command {
            write!(f, "{name}.")?;
        }
        f.write_str(&self.option)
    }
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A line of a file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },
    /// An environment variable.
    Variable(String),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::File { path, line } => write!(f, "{}:{line}", path.display()),
            Origin::Variable(name) => f.write_str(name),
        }
    }
}

/// A default value of an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionDefault {
    /// The option.
    pub key: Key,
    /// Whether the option has no value; then `values` is `true` or `false`.
    pub is_flag: bool,
    /// Its values; several for options that can be repeated.
    pub values: Vec<String>,
    /// Where they come from.
    pub origin: Origin,
    /// Values of the same option that these replace, with the most important first.
    pub replaced: Vec<(Vec<String>, Origin)>,
}

impl OptionDefault {
    /// The setting as words of a command line.
    pub fn words(&self) -> String {
        let option = &self.key.option;
        match self.is_flag {
            true => format!("--{option}"),
            false => {
                let words = self.values.iter().map(|value| format!("--{option} {value}"));
                words.collect::<Vec<_>>().join(" ")
            }
        }
    }
}

/// A file that may have settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsFile {
    /// Whose settings it has: `user`, `project`, or the name of the variable that names the file.
    pub role: &'static str,
    /// Its path.
    pub path: PathBuf,
    /// Whether it exists.
    pub exists: bool,
}

/// All default values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The files that were looked for.
    pub files: Vec<SettingsFile>,
    /// The settings, sorted by command and option.
    pub settings: Vec<OptionDefault>,
}
