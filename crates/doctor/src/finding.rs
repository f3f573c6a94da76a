//! What a check finds: the figure, what it means, and what mends it.

use std::path::{Path, PathBuf};

use serde::Serialize;

/// How much a finding matters, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Impact {
    /// Worth knowing; results are right.
    Note,
    /// Results would be wrong or would depend on this.
    Distorts,
    /// A run cannot work.
    Blocks,
}

impl Impact {
    /// The word for people and programs.
    pub fn word(self) -> &'static str {
        match self {
            Impact::Note => "note",
            Impact::Distorts => "distorts",
            Impact::Blocks => "blocks",
        }
    }
}

/// What mends a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remedy {
    /// The command line, or a sentence if no command does it.
    pub command: String,
    /// Settings of the kernel that the command changes and that this program may change and put back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<(PathBuf, String)>,
    /// Whether the command is one of this program that removes what it left behind itself.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cleans: bool,
}

impl Remedy {
    /// A command line that the user has to run, or a sentence that says what to do.
    pub fn manual(command: impl Into<String>) -> Remedy {
        Remedy { command: command.into(), settings: Vec::new(), cleans: false }
    }

    /// A command of this program that removes what it left behind.
    pub fn clean(command: &str) -> Remedy {
        Remedy { cleans: true, ..Remedy::manual(command) }
    }

    /// A setting below `/proc/sys` that can be changed while the system runs, for example `net.core.somaxconn`.
    pub fn sysctl(name: &str, value: impl ToString) -> Remedy {
        let value = value.to_string();
        let quoted = if value.contains(' ') { format!("'{value}'") } else { value.clone() };
        Remedy {
            command: format!("sysctl -w {name}={quoted}"),
            settings: vec![(Path::new("/proc/sys").join(name.replace('.', "/")), value)],
            cleans: false,
        }
    }

    /// Both remedies, where one alone does not suffice.
    #[must_use]
    pub fn and(mut self, other: Remedy) -> Remedy {
        self.command = format!("{} && {}", self.command, other.command);
        self.settings.extend(other.settings);
        self
    }

    /// A value for files below `/sys`.
    pub fn files(paths: &[PathBuf], value: &str) -> Remedy {
        let list: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        Remedy {
            command: format!("echo {value} | tee {}", list.join(" ")),
            settings: paths.iter().map(|path| (path.clone(), value.to_owned())).collect(),
            cleans: false,
        }
    }

    /// Whether `polygraph doctor --fix` does it.
    pub fn is_safe(&self) -> bool {
        self.cleans || !self.settings.is_empty()
    }
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostFinding {
    /// How much it matters.
    pub impact: Impact,
    /// What was found, with figures.
    pub found: String,
    /// What it does to a run, with figures.
    pub effect: String,
    /// What mends it, in the order in which to do it.
    pub remedies: Vec<Remedy>,
}

impl HostFinding {
    /// A finding with one remedy.
    pub fn new(
        impact: Impact,
        found: impl Into<String>,
        effect: impl Into<String>,
        remedy: Remedy,
    ) -> HostFinding {
        HostFinding { impact, found: found.into(), effect: effect.into(), remedies: vec![remedy] }
    }

    /// Adds another remedy, for those who cannot or do not want to use the first.
    #[must_use]
    pub fn or(mut self, remedy: Remedy) -> HostFinding {
        self.remedies.push(remedy);
        self
    }

    /// The finding in one line.
    pub fn line(&self) -> String {
        let commands: Vec<&str> = self.remedies.iter().map(|remedy| remedy.command.as_str()).collect();
        format!("{}; {}: {}", self.found, self.effect, commands.join(", or "))
    }
}
