//! Reading settings: files and the environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::Command;
use polygraph_runner::Failure;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{KnownKey, find, is_command, keys, plain, similar, subcommands};
use super::{Key, OptionDefault, Origin, Settings, SettingsFile};
use crate::lazy::whole_of;

/// The environment variable that names the only file to read; `none`: neither files nor variables are read.
pub const CONFIG_VARIABLE: &str = "POLYGRAPH_CONFIG";
/// The start of environment variables with defaults of options. It is long, so that variables which other programs derive
/// from the name of the program, as Kubernetes does from the names of services, do not become settings.
const PREFIX: &str = "POLYGRAPH_DEFAULT_";
/// The name of files with settings.
const FILE: &str = "polygraph.toml";

/// The environment variable of an option.
pub fn environment_name(key: &Key) -> String {
    let words = key.command.iter().chain([&key.option]).map(|word| plain(word).to_ascii_uppercase());
    format!("{PREFIX}{}", words.collect::<Vec<_>>().join("_"))
}

/// The environment of this process. From now on it says that there are no settings: programs that this process starts get
/// whole command lines.
pub fn variables() -> impl Iterator<Item = (String, String)> {
    let text = |text: std::ffi::OsString| text.into_string().ok();
    let found: Vec<(String, String)> =
        std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?))).collect();
    let own = found.iter().find(|(name, _)| name == CONFIG_VARIABLE).map(|(_, value)| value.clone());
    let _ = GIVEN.set(own);
    // SAFETY: this is called at the start of the program, when it has one thread.
    unsafe { std::env::set_var(CONFIG_VARIABLE, "none") };
    found.into_iter()
}

/// Gives a program of the user the variable as it was when this process was started.
pub fn as_given(command: &mut std::process::Command) {
    match GIVEN.get() {
        Some(Some(value)) => command.env(CONFIG_VARIABLE, value),
        _ => command.env_remove(CONFIG_VARIABLE),
    };
}

/// The value of [`CONFIG_VARIABLE`] when this process was started.
static GIVEN: OnceLock<Option<String>> = OnceLock::new();

/// Reads all settings for a program.
///
/// # Errors
/// If a file cannot be read or is not TOML, or a name or value is not one of an option. The message names the place.
pub fn load(
    program: &Command,
    variables: impl Iterator<Item = (String, String)>,
) -> Result<Settings, Failure> {
    let variables: BTreeMap<String, String> = variables.collect();
    let named = variables.get(CONFIG_VARIABLE).filter(|value| !value.is_empty());
    if named.is_some_and(|value| value == "none") {
        return Ok(Settings::default());
    }
    let files = match named {
        Some(path) => vec![SettingsFile { role: CONFIG_VARIABLE, path: path.into(), exists: true }],
        None => usual_files(&variables),
    };
    let is_setting = |name: &String| name.starts_with(PREFIX);
    if !variables.keys().any(is_setting) && !files.iter().any(|file| file.exists) {
        return Ok(Settings { files, settings: Vec::new() });
    }
    let program = &whole_of(program);
    let known = keys(program);
    let mut found = from_variables(&variables, &known)?;
    for file in files.iter().filter(|file| file.exists) {
        found.extend(from_file(&file.path, program, &known)?);
    }
    let mut settings: Vec<OptionDefault> = Vec::new();
    for setting in found {
        match settings.iter_mut().find(|other| other.key == setting.key) {
            Some(other) => other.replaced.push((setting.values, setting.origin)),
            None => settings.push(setting),
        }
    }
    settings.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(Settings { files, settings })
}

/// The project's file and the user's, the more important first.
fn usual_files(variables: &BTreeMap<String, String>) -> Vec<SettingsFile> {
    let set = |name: &str| variables.get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let directory = set("XDG_CONFIG_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| set("HOME").map(|home| home.join(".config")));
    let user = directory.map(|directory| ("user", directory.join("polygraph").join(FILE)));
    let file = |(role, path): (&'static str, PathBuf)| SettingsFile { role, exists: path.exists(), path };
    [("project", PathBuf::from(FILE))].into_iter().chain(user).map(file).collect()
}

fn from_variables(
    variables: &BTreeMap<String, String>,
    known: &[KnownKey],
) -> Result<Vec<OptionDefault>, Failure> {
    let mut found = Vec::new();
    for (name, value) in variables.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
        let Some(option) = known.iter().find(|known| environment_name(&known.key) == *name) else {
            let names: Vec<String> = known.iter().map(|known| environment_name(&known.key)).collect();
            let hint = similar(name, names.iter().map(String::as_str));
            let hint = hint.map_or_else(String::new, |hint| format!("; did you mean {hint}?"));
            return Err(Failure::usage(format!("the environment variable {name} is no setting{hint}")));
        };
        let wrong = |problem: &str| Failure::usage(format!("the environment variable {name}: {problem}"));
        allowed(option).map_err(|problem| wrong(&problem))?;
        let value = match option.is_flag {
            true => flag(value).ok_or_else(|| wrong("write true or false"))?.to_owned(),
            false => value.clone(),
        };
        let origin = Origin::Variable(name.clone());
        found.push(option.setting(vec![value], origin));
    }
    Ok(found)
}

fn flag(text: &str) -> Option<&'static str> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some("true"),
        "" | "0" | "false" | "no" | "off" => Some("false"),
        _ => None,
    }
}

fn allowed(option: &KnownKey) -> Result<(), String> {
    match option.command_line_only {
        true => Err(format!("--{} must be given on the command line", option.key.option)),
        false => Ok(()),
    }
}

fn from_file(path: &Path, program: &Command, known: &[KnownKey]) -> Result<Vec<OptionDefault>, Failure> {
    let wrong = |problem: String| Failure::usage(format!("{}{problem}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(format!(": {error}")))?;
    let table = DeTable::parse(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(&text, span.start));
        wrong(format!(":{line}: {}", error.message()))
    })?;
    let mut file = SettingsReader { path, text: &text, program, known, found: Vec::new() };
    file.table(&[], table.get_ref())
        .map_err(|(at, problem)| wrong(format!(":{}: {problem}", line_of(&text, at))))?;
    Ok(file.found)
}

/// The line of a byte, counted from 1.
fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// Where something in a file is wrong, and what.
type Wrong = (usize, String);

struct SettingsReader<'a> {
    path: &'a Path,
    text: &'a str,
    program: &'a Command,
    known: &'a [KnownKey],
    found: Vec<OptionDefault>,
}

impl SettingsReader<'_> {
    fn table(&mut self, command: &[String], table: &DeTable<'_>) -> Result<(), Wrong> {
        for (name, value) in table {
            let at = name.span().start;
            let name = name.get_ref().as_ref();
            if let DeValue::Table(inner) = value.get_ref() {
                let path: Vec<String> = command.iter().cloned().chain([name.to_owned()]).collect();
                if !is_command(self.program, &path) {
                    return Err((at, self.unknown_command(command, name)));
                }
                self.table(&path, inner)?;
                continue;
            }
            let Some(option) = find(self.known, command, name) else {
                return Err((at, self.unknown_option(command, name)));
            };
            allowed(option).map_err(|problem| (at, problem))?;
            let values = values(option, value).map_err(|problem| (value.span().start, problem))?;
            let origin = Origin::File { path: self.path.to_owned(), line: line_of(self.text, at) };
            self.found.push(option.setting(values, origin));
        }
        Ok(())
    }

    fn unknown_command(&self, command: &[String], name: &str) -> String {
        let outer = command.iter().fold(self.program, |at, name| at.find_subcommand(name).unwrap_or(at));
        let names = subcommands(outer).map(Command::get_name);
        let hint = similar(name, names).map_or_else(String::new, |hint| format!("; did you mean [{hint}]?"));
        format!("there is no command `{}`{hint}", [command, &[name.to_owned()]].concat().join(" "))
    }

    fn unknown_option(&self, command: &[String], name: &str) -> String {
        let own = self.known.iter().filter(|known| known.key.command == command);
        let hint = similar(name, own.map(|known| known.key.option.as_str()));
        let mut hint = hint.map_or_else(String::new, |hint| format!("; did you mean {hint}?"));
        if command.is_empty() {
            if hint.is_empty() {
                hint = "; options of a command belong into its table, for example [run]".to_owned();
            }
            return format!("`{name}` is not an option of all commands{hint}");
        }
        format!("`polygraph {}` has no option `{name}`{hint}", command.join(" "))
    }
}

/// The values of an option, as on a command line.
fn values(option: &KnownKey, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, String> {
    let DeValue::Array(list) = value.get_ref() else {
        return one(option, value.get_ref()).map(|value| vec![value]);
    };
    if !option.is_list {
        return Err(format!("--{} has one value, not a list", option.key.option));
    }
    list.iter().map(|value| one(option, value.get_ref())).collect()
}

fn one(option: &KnownKey, value: &DeValue<'_>) -> Result<String, String> {
    match (value, option.is_flag) {
        (DeValue::Boolean(value), true) => Ok(value.to_string()),
        (_, true) => Err(format!("--{} is true or false", option.key.option)),
        (DeValue::Boolean(value), false) => Ok(if *value { "yes" } else { "no" }.to_owned()),
        (DeValue::String(text), false) => Ok(text.as_ref().to_owned()),
        (DeValue::Integer(number), false) => Ok(number.to_string()),
        (DeValue::Float(number), false) => Ok(number.to_string()),
        _ => Err(format!("write the value of --{} as on a command line, as a string", option.key.option)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    fn variables(list: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
        let list: Vec<_> =
            list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        list.into_iter()
    }

    fn read(text: &str) -> Result<Vec<(String, String, String)>, String> {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("p.toml");
        std::fs::write(&path, text).unwrap();
        let list = [(CONFIG_VARIABLE, path.to_str().unwrap())];
        let settings = load(&Cli::command(), variables(&list));
        let shown = |setting: &OptionDefault| {
            let origin = setting.origin.to_string();
            let (_, line) = origin.rsplit_once(':').unwrap();
            (setting.key.to_string(), setting.values.join(","), line.to_owned())
        };
        settings
            .map(|settings| settings.settings.iter().map(shown).collect())
            .map_err(|failure| failure.to_string().rsplit_once("p.toml").unwrap().1.to_owned())
    }

    #[test]
    fn files() {
        let text = "quiet = true\n[run]\nreq-rate = \"100/sec\"\nloops = 1\nset = ['A=1', 'B=2']\n[net.wan]\ndelay = '40ms'\n";
        let found = read(text).unwrap();
        let expected = [
            ("net.wan.delay", "40ms", "7"),
            ("quiet", "true", "1"),
            ("run.loops", "1", "4"),
            ("run.req_rate", "100/sec", "3"),
            ("run.set", "A=1,B=2", "5"),
        ];
        let found: Vec<(&str, &str, &str)> = found.iter().map(|(a, b, c)| (&**a, &**b, &**c)).collect();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        let mut sorted = found;
        sorted.sort_unstable();
        assert_eq!(sorted, expected);
    }

    #[test]
    fn mistakes_in_files_name_place_and_remedy() {
        for (text, problem) in [
            ("\n[run]\nreq_rat = 1\n", ":3: `polygraph run` has no option `req_rat`; did you mean req_rate?"),
            ("[rum]\n", ":1: there is no command `rum`; did you mean [run]?"),
            ("[net.wann]\n", ":1: there is no command `net wann`; did you mean [wan]?"),
            ("[worker]\n", ":1: there is no command `worker`"),
            ("quite = true\n", ":1: `quite` is not an option of all commands; did you mean quiet?"),
            ("device = 'squid'\n", ":1: `device` is not an option of all commands"),
            ("[run]\nno_proxy = 'yes'\n", ":2: --no_proxy is true or false"),
            ("[run]\nproxy = ['a:1', 'b:1']\n", ":2: --proxy has one value, not a list"),
            ("[run]\nallow_exec = true\n", ":2: --allow_exec must be given on the command line"),
            ("[run]\nhelp = true\n", ":2: `polygraph run` has no option `help`"),
            ("[run\n", ":1: "),
            ("run = 1\n", ":1: "),
        ] {
            let found = read(text).unwrap_err();
            assert!(found.starts_with(problem), "{text}: {found}");
        }
    }

    #[test]
    fn variables_have_one_meaning_each() {
        let known = keys(&whole_of(&Cli::command()));
        let names: BTreeSet<String> = known.iter().map(|known| environment_name(&known.key)).collect();
        assert_eq!(names.len(), known.len());
        let load = |list: &[(&str, &str)]| load(&Cli::command(), variables(list)).map_err(|e| e.to_string());
        let found =
            load(&[("POLYGRAPH_DEFAULT_RUN_REQ_RATE", "5/sec"), ("POLYGRAPH_DEFAULT_QUIET", "1")]).unwrap();
        let found: Vec<String> =
            found.settings.iter().map(|setting| format!("{} {}", setting.key, setting.values[0])).collect();
        assert_eq!(found, ["quiet true", "run.req_rate 5/sec"]);
        // What others derive from the name of the program is none of ours.
        let others = [("POLYGRAPH_SERVER_PORT", "tcp://10.0.0.1:80"), ("POLYGRAPH_VERSION", "0.3.0")];
        assert_eq!(load(&others).unwrap().settings, []);
        let error = load(&[("POLYGRAPH_DEFAULT_RUN_REQ_RAT", "5/sec")]).unwrap_err();
        assert!(error.contains("did you mean POLYGRAPH_DEFAULT_RUN_REQ_RATE?"), "{error}");
        assert!(load(&[("POLYGRAPH_DEFAULT_QUIET", "perhaps")]).is_err());
        assert_eq!(
            load(&[("POLYGRAPH_DEFAULT_X", "1"), (CONFIG_VARIABLE, "none")]).unwrap(),
            Settings::default()
        );
    }

    #[test]
    fn the_more_important_value_is_used() {
        let place = tempfile::tempdir().unwrap();
        let user = place.path().join("polygraph");
        std::fs::create_dir(&user).unwrap();
        std::fs::write(user.join(FILE), "[run]\nloops = 1\ndhr = '50%'\n").unwrap();
        let list =
            [("XDG_CONFIG_HOME", place.path().to_str().unwrap()), ("POLYGRAPH_DEFAULT_RUN_LOOPS", "2")];
        let settings = load(&Cli::command(), variables(&list)).unwrap();
        let [dhr, loops] = &settings.settings[..] else { panic!("{settings:?}") };
        assert_eq!((dhr.values[0].as_str(), loops.values[0].as_str()), ("50%", "2"));
        assert_eq!(loops.origin, Origin::Variable("POLYGRAPH_DEFAULT_RUN_LOOPS".to_owned()));
        assert_eq!(loops.replaced.len(), 1);
        assert!(loops.replaced[0].1.to_string().ends_with("polygraph.toml:2"));
    }
}
