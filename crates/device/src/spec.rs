//! The description of a device: `device.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::access_log::LogFormat;

/// What a device is to robots and servers.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum DeviceRole {
    /// A forward proxy: robots are told its address and send it absolute URLs (RFC 9112, section 3.2.2).
    Forward,
    /// A caching reverse proxy: it stands for the origins, robots send it requests in origin form.
    Surrogate,
    /// As a surrogate, but it stores nothing and spreads requests over the origins.
    Balancer,
}

impl DeviceRole {
    /// The word of `device.toml`.
    pub fn word(self) -> &'static str {
        match self {
            DeviceRole::Forward => "forward",
            DeviceRole::Surrogate => "surrogate",
            DeviceRole::Balancer => "balancer",
        }
    }
}

/// A device that is a program. All arguments, file names and directories are templates; arguments that render
/// to nothing are left out.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// One line about the device.
    pub summary: String,
    /// What it is to robots and servers.
    pub role: DeviceRole,
    /// The program: a name to look for in the usual directories, or a path.
    pub program: String,
    /// Debian's package that has the program.
    pub package: Option<String>,
    /// The account to become if started by root; without it the device runs as root.
    pub user: Option<String>,
    /// Arguments that make the program say its version.
    pub version: Vec<String>,
    /// Templates of configuration files, by their path in the device's directory and in the work directory.
    #[serde(default)]
    pub templates: Vec<String>,
    /// Directories to make in the work directory.
    #[serde(default)]
    pub directories: Vec<String>,
    /// Arguments that start the program in the foreground.
    pub args: Vec<String>,
    /// From the moment when it listens it needs so many seconds more until it knows all that it was told.
    #[serde(default)]
    pub settle_s: f64,
    /// A run of the program that prepares an empty store.
    pub prepare: Option<Prepare>,
    /// A second program that writes the access log.
    pub logger: Option<Logger>,
    /// A command that empties the store of the running device; without it the device is started anew for that.
    pub flush: Option<Flush>,
    /// Files that the program leaves behind outside of its work directory; a `*` at the end stands for anything.
    #[serde(default)]
    pub leftovers: Vec<String>,
    /// Files of the work directory, beside its output, in which the program complains.
    #[serde(default)]
    pub messages: Vec<String>,
    /// The access log.
    pub log: LogFormat,
    /// Settings beyond those that all devices have.
    #[serde(default)]
    pub options: BTreeMap<String, Setting>,
}

/// A run of the program that prepares an empty store.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prepare {
    /// An expression over the parameters; nothing is to be done unless it is true.
    pub when: String,
    /// Arguments.
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
    /// It misses nothing from the moment on when it has mapped a file whose path contains this.
    pub maps: String,
}

/// A command that empties the store of the running device.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flush {
    /// The program.
    pub program: String,
    /// Arguments.
    pub args: Vec<String>,
}

/// A setting of one device.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Its value unless it is given.
    pub default: String,
    /// The values it may have; none: any.
    #[serde(default)]
    pub values: Vec<String>,
    /// What it is for.
    pub help: String,
}
