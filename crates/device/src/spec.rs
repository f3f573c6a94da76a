//! Device descriptions: the format of `device.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::access_log::LogFormat;

/// The role of a device between robots and servers.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum DeviceRole {
    /// A forward proxy: robots connect to it and send absolute URLs (RFC 9112, section 3.2.2).
    Forward,
    /// A caching reverse proxy: it represents the origins, and robots send requests in origin form.
    Surrogate,
    /// A load balancer: like a surrogate, but it stores nothing and spreads requests over the origins.
    Balancer,
}

impl DeviceRole {
    /// The name of the role in `device.toml`.
    pub fn word(self) -> &'static str {
        match self {
            DeviceRole::Forward => "forward",
            DeviceRole::Surrogate => "surrogate",
            DeviceRole::Balancer => "balancer",
        }
    }

    /// The option that names a running device of this role.
    pub fn option(self) -> &'static str {
        match self {
            DeviceRole::Forward => "--proxy",
            DeviceRole::Surrogate => "--surrogate",
            DeviceRole::Balancer => "--balancer",
        }
    }

    /// Whether robots connect to the device as if it were the servers.
    pub fn acts_as_servers(self) -> bool {
        self != DeviceRole::Forward
    }
}

/// A device that is a program. All arguments, file names and directories are templates; empty arguments are omitted.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// A description in one line.
    pub summary: String,
    /// The role of the device.
    pub role: DeviceRole,
    /// Whether a forward proxy sees the requests in tunnels, because it ends TLS with its own certificates.
    #[serde(default)]
    pub intercepts: bool,
    /// The program: a name, which is looked up in the usual directories, or a path.
    pub program: String,
    /// The Debian package that contains the program.
    pub package: Option<String>,
    /// The user to run as when started by root; `None`: the device runs as root.
    pub user: Option<String>,
    /// Arguments that make the program print its version.
    pub version: Vec<String>,
    /// Templates of configuration files, by their path both in the device's directory and in the work directory.
    #[serde(default)]
    pub templates: Vec<String>,
    /// Directories to create in the work directory.
    #[serde(default)]
    pub directories: Vec<String>,
    /// Arguments that start the program in the foreground.
    pub args: Vec<String>,
    /// The versions of HTTP that it speaks with robots, as written in `--http_version`; `None`: nobody says.
    pub http_versions: Option<Vec<String>>,
    /// How many seconds after it listens the device needs until it uses its whole configuration.
    #[serde(default)]
    pub settle_s: f64,
    /// Arguments that make the program prepare an empty store.
    pub prepare: Option<Prepare>,
    /// A second program, which writes the access log.
    pub logger: Option<Logger>,
    /// A program between robots and the first one.
    pub front: Option<Front>,
    /// A command that empties the store of the running device. Without it, the device is restarted with an empty
    /// store.
    pub flush: Option<Flush>,
    /// Files that the program leaves outside of its work directory; a `*` at the end matches any text.
    #[serde(default)]
    pub leftovers: Vec<String>,
    /// Files of the work directory, besides its output, to which the program writes errors.
    #[serde(default)]
    pub messages: Vec<String>,
    /// The format of the access log.
    pub log: LogFormat,
    /// Settings that only this device has.
    #[serde(default)]
    pub options: BTreeMap<String, Setting>,
}

/// A run of the program that prepares an empty store.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prepare {
    /// An expression over the parameters; the run is necessary if it is true.
    pub when: String,
    /// The arguments of the program.
    pub args: Vec<String>,
}

/// A program that writes the access log of the device.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Logger {
    /// The program.
    pub program: String,
    /// Arguments that start it in the foreground.
    pub args: Vec<String>,
    /// The logger is ready when it has mapped a file whose path contains this text.
    pub maps: String,
}

/// A program that robots connect to instead of the first one, for example because it terminates TLS.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Front {
    /// An expression over the parameters; the program runs if it is true.
    pub when: String,
    /// The program.
    pub program: String,
    /// The Debian package that contains it.
    pub package: Option<String>,
    /// Arguments that start it in the foreground, listening at the address of the device.
    pub args: Vec<String>,
    /// The socket of the Unix domain in the work directory at which the first program then listens.
    pub socket: String,
}

/// A command that empties the store of the running device.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flush {
    /// The program.
    pub program: String,
    /// The arguments of the command.
    pub args: Vec<String>,
}

/// A setting of one device.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// The default value.
    pub default: String,
    /// The allowed values; if empty, any value.
    #[serde(default)]
    pub values: Vec<String>,
    /// Whether the value names a file. The device gets a copy in its work directory that only its user can read.
    #[serde(default)]
    pub file: bool,
    /// A description in one line.
    pub help: String,
}
