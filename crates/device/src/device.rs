//! Device descriptions: the built-in set, and directories of users in the same form.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use polygraph_assets::{EntryKind, SCHEME, closest, locate};

use crate::access_log::LogFormat;
use crate::builtin;
use crate::error::{Error, Result};
use crate::spec::{DeviceRole, Setting, Spec};

/// The file name of a description.
const DESCRIPTION: &str = "device.toml";
/// Directories of programs besides `PATH`, which lacks system programs for ordinary users.
const SYSTEM_DIRECTORIES: [&str; 5] = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin"];

/// A device that can be started.
#[derive(Clone, Debug)]
pub struct Device {
    name: String,
    pub(crate) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Builtin {
        role: DeviceRole,
        summary: &'static str,
    },
    Program {
        spec: Box<Spec>,
        /// The templates, each with its path in the work directory.
        templates: Vec<(String, String)>,
        /// The directory of the description, which relative paths of programs refer to.
        directory: Option<PathBuf>,
    },
}

impl Device {
    /// The built-in set: the built-in proxy in its roles, and devices from Debian packages.
    ///
    /// # Errors
    /// If a description in the binary is invalid, which the tests exclude.
    pub fn set() -> Result<Vec<Device>> {
        let builtin = builtin::DEVICES.into_iter().map(|(name, role, summary)| {
            Ok(Device { name: name.into(), kind: Kind::Builtin { role, summary } })
        });
        let entries = polygraph_assets::entries().into_iter();
        let set = entries.filter(|entry| entry.kind == EntryKind::Device).map(|entry| embedded(entry.name));
        builtin.chain(set).collect()
    }

    /// Finds a device of the built-in set by name (`squid` or `builtin:squid`), or reads a directory with a
    /// `device.toml`, for example `./squid`.
    ///
    /// # Errors
    /// If there is no such device, its description is invalid, or the name may also be that of a directory.
    pub fn find(name: &str) -> Result<Device> {
        let set = Device::set()?;
        let plain = name.strip_prefix(SCHEME).unwrap_or(name);
        if let Some(device) = set.iter().find(|device| device.name == plain) {
            if matches!(device.kind, Kind::Program { .. }) {
                locate(EntryKind::Device, name).map_err(|error| Error::Ambiguous(error.to_string()))?;
            }
            return Ok(device.clone());
        }
        let directory = Path::new(name);
        if directory.join(DESCRIPTION).is_file() {
            return read(directory);
        }
        let known: Vec<&str> = set.iter().map(Device::name).collect();
        let hint = closest(plain, known.iter().copied());
        let hint = hint.map_or_else(String::new, |hint| format!("; did you mean {hint}?"));
        Err(Error::Unknown { name: name.into(), known: known.join(", "), hint })
    }

    /// The name of the device, which is that of its directory.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The role of the device between robots and servers.
    pub fn role(&self) -> DeviceRole {
        match &self.kind {
            Kind::Builtin { role, .. } => *role,
            Kind::Program { spec, .. } => spec.role,
        }
    }

    /// Whether it sees the requests in tunnels.
    pub fn intercepts(&self) -> bool {
        matches!(&self.kind, Kind::Program { spec, .. } if spec.intercepts)
    }

    /// A description in one line.
    pub fn summary(&self) -> &str {
        match &self.kind {
            Kind::Builtin { summary, .. } => summary,
            Kind::Program { spec, .. } => &spec.summary,
        }
    }

    /// Whether the device uses `Params::hosts`.
    pub fn takes_hosts(&self) -> bool {
        match &self.kind {
            Kind::Builtin { .. } => true,
            Kind::Program { templates, .. } => templates.iter().any(|(_, text)| text.contains("hosts_file")),
        }
    }

    /// The format of its access log; `None` for the built-in proxy, which counts its own requests.
    pub fn log_format(&self) -> Option<&LogFormat> {
        match &self.kind {
            Kind::Builtin { .. } => None,
            Kind::Program { spec, .. } => Some(&spec.log),
        }
    }

    /// The settings that only this device has.
    pub fn options(&self) -> Vec<(&str, &Setting)> {
        match &self.kind {
            Kind::Builtin { .. } => builtin::OPTIONS.iter().map(|(name, setting)| (*name, setting)).collect(),
            Kind::Program { spec, .. } => {
                spec.options.iter().map(|(name, setting)| (name.as_str(), setting)).collect()
            }
        }
    }

    /// The version of the installed program, for example `5.7`; `built-in` for the built-in proxy, whose version is
    /// that of this program.
    ///
    /// # Errors
    /// If the program is not installed or reports no version.
    pub fn version(&self) -> Result<String> {
        let Kind::Program { spec, .. } = &self.kind else {
            return Ok("built-in".into());
        };
        let program = self.program(&spec.program)?;
        let output = Command::new(&program)
            .args(&spec.version)
            .stdin(Stdio::null())
            .output()
            .map_err(|source| Error::Start { program: program.clone(), source })?;
        // Some programs report it on standard output, others on standard error.
        let text = [output.stdout, output.stderr].concat();
        version_in(&String::from_utf8_lossy(&text)).map(str::to_owned).ok_or_else(|| Error::Failed {
            device: self.name.clone(),
            problem: format!("{} {} does not print a version", program.display(), spec.version.join(" ")),
            messages: String::new(),
        })
    }

    /// The path of a program of this device, from its own package.
    pub(crate) fn program(&self, program: &str) -> Result<PathBuf> {
        match &self.kind {
            Kind::Builtin { .. } => Ok(program.into()),
            Kind::Program { spec, .. } => self.program_of(program, spec.package.as_deref()),
        }
    }

    /// The path of a program of this device, which is in this Debian package.
    pub(crate) fn program_of(&self, program: &str, package: Option<&str>) -> Result<PathBuf> {
        let Kind::Program { directory, .. } = &self.kind else { return Ok(program.into()) };
        let missing = |remedy| Error::Missing { device: self.name.clone(), program: program.into(), remedy };
        if program.contains('/') {
            let path = directory.as_ref().map_or_else(|| program.into(), |place| place.join(program));
            let remedy = || format!("build {}, or correct its device.toml", path.display());
            return if path.is_file() { Ok(path) } else { Err(missing(remedy())) };
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places = std::env::split_paths(&path).chain(SYSTEM_DIRECTORIES.map(PathBuf::from));
        places.map(|place| place.join(program)).find(|path| path.is_file()).ok_or_else(|| {
            missing(match package {
                Some(package) => format!("on Debian: apt-get install {package}"),
                None => "install it, or correct its device.toml".into(),
            })
        })
    }
}

fn embedded(name: &str) -> Result<Device> {
    assemble(name, None, |file| {
        let text = polygraph_assets::builtin(&format!("{SCHEME}devices/{name}/{file}"))?;
        text.ok().map(str::to_owned)
    })
}

fn read(directory: &Path) -> Result<Device> {
    let directory = std::path::absolute(directory).map_err(Error::file("find", directory))?;
    let name = directory.file_name().map_or("device".into(), |name| name.to_string_lossy().into_owned());
    assemble(&name, Some(&directory), |file| std::fs::read_to_string(directory.join(file)).ok())
}

fn assemble(name: &str, directory: Option<&Path>, find: impl Fn(&str) -> Option<String>) -> Result<Device> {
    let path = |file: &str| {
        directory.map_or_else(|| format!("{name}/{file}"), |place| place.join(file).display().to_string())
    };
    let wrong = |file: &str, problem: String| Error::Description { path: path(file), problem };
    let get = |file: &str| find(file).ok_or_else(|| wrong(file, "cannot be read".into()));
    let spec: Spec = toml::from_str(&get(DESCRIPTION)?).map_err(|e| wrong(DESCRIPTION, e.to_string()))?;
    let templates =
        spec.templates.iter().map(|file| Ok((file.clone(), get(file)?))).collect::<Result<Vec<_>>>()?;
    let stray = spec.templates.iter().chain(&spec.directories).chain([&spec.log.file]).find(|p| leaves(p));
    if let Some(stray) = stray {
        return Err(wrong(DESCRIPTION, format!("`{stray}` is not a path inside the work directory")));
    }
    let plain = spec.log.plain.as_ref().map_or(1, |plain| plain.column);
    if spec.log.result_column == 0 || spec.log.bytes_column == 0 || plain == 0 {
        return Err(wrong(DESCRIPTION, "columns of the log are counted from 1".into()));
    }
    if [spec.log.delay_s, spec.settle_s].iter().any(|seconds| !(0.0..=60.0).contains(seconds)) {
        return Err(wrong(DESCRIPTION, "delay_s and settle_s must be times from 0 to 60 seconds".into()));
    }
    let kind = Kind::Program { spec: Box::new(spec), templates, directory: directory.map(Path::to_path_buf) };
    Ok(Device { name: name.into(), kind })
}

/// Whether a path leaves the directory that it is joined to.
fn leaves(path: &str) -> bool {
    Path::new(path).components().any(|part| !matches!(part, std::path::Component::Normal(_)))
}

/// The first text that looks like a version: it starts a word, or follows a `/` or `-`, with a digit, and contains a
/// dot.
fn version_in(text: &str) -> Option<&str> {
    let mut words = text.split(|c: char| c.is_whitespace() || "/(),;".contains(c));
    words.find_map(|word| {
        let dash = word.find('-').map(|at| &word[at + 1..]);
        let starts = |part: &&str| part.starts_with(|c: char| c.is_ascii_digit()) && part.contains('.');
        [Some(word), dash].into_iter().flatten().find(starts)
    })
}

#[cfg(test)]
impl Device {
    /// The description and the templates of a device that is a program.
    pub(crate) fn parts(&self) -> (&Spec, &[(String, String)]) {
        match &self.kind {
            Kind::Builtin { .. } => panic!("{} has no description", self.name),
            Kind::Program { spec, templates, .. } => (spec, templates),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        for (text, expected) in [
            ("Squid Cache: Version 5.7\nService Name: squid", Some("5.7")),
            ("nginx version: nginx/1.22.1", Some("1.22.1")),
            ("HAProxy version 2.6.12-1+deb12u4 2025/10/03", Some("2.6.12-1+deb12u4")),
            ("varnishd (varnish-7.1.1 revision 7cee1c58)", Some("7.1.1")),
            ("Apache Traffic Server - traffic_server - 9.2.9 - (build # 040414)", Some("9.2.9")),
            ("usage: 7 options", None),
            ("", None),
        ] {
            assert_eq!(version_in(text), expected, "{text}");
        }
    }

    #[test]
    fn descriptions_that_are_wrong_say_why() {
        let good = "summary='s'\nrole='forward'\nprogram='p'\nversion=[]\nargs=[]\n";
        let log = "[log]\nfile='l'\nresult_column=1\nbytes_column=2\n";
        let device = |text: &str| assemble("d", None, |file| (file == DESCRIPTION).then(|| text.to_owned()));
        assert_eq!(device(&format!("{good}{log}")).unwrap().role(), DeviceRole::Forward);
        for (text, part) in [
            (String::new(), "missing field"),
            (format!("{good}speed=1\n{log}"), "unknown field `speed`"),
            (format!("{good}{log}").replace("forward", "sideways"), "unknown variant `sideways`"),
            (format!("{good}templates=['../x']\n{log}"), "../x: cannot be read"),
            (format!("{good}directories=['/tmp']\n{log}"), "not a path inside"),
            (format!("{good}{log}").replace("column=1", "column=0"), "counted from 1"),
            (format!("{good}{log}plain={{column=0,text='GET'}}"), "counted from 1"),
            (format!("{good}{log}delay_s=-1"), "delay_s"),
            (format!("{good}templates=['none']\n{log}"), "d/none: cannot be read"),
        ] {
            let error = device(&text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        let error = Device::find("squib").unwrap_err().to_string();
        assert!(error.contains("`squib`") && error.contains("squid, squid-bump, trafficserver"), "{error}");
        assert!(error.ends_with("; did you mean squid?"), "{error}");
        let error = Device::find("bluecoat").unwrap_err().to_string();
        assert!(error.ends_with("or a directory with a device.toml"), "{error}");
        let text = "summary='s'\nrole='forward'\nprogram='no-such-program'\npackage='pack'\nversion=[]\nargs=[]\n\
            [log]\nfile='l'\nresult_column=1\nbytes_column=2\n";
        let device = assemble("d", None, |_| Some(text.into())).unwrap();
        let error = device.version().unwrap_err().to_string();
        assert!(error.contains("no-such-program") && error.contains("apt-get install pack"), "{error}");
    }
}
