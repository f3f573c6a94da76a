//! `polygraph config`: default values of options, and where they come from.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::{Arg, Command, Parser};
use polygraph_runner::Failure;
use serde_json::{Value, json};

use crate::Cli;
use crate::exit::Done;
use crate::lazy::whole;
use crate::output;
use crate::settings::{Key, OptionDefault, Settings, environment_name, is_command, own_options};

/// Options of `config`.
#[derive(Parser, Debug)]
#[command(
    rename_all = "snake_case",
    after_help = "Values come from the command line, or else from environment variables (POLYGRAPH_DEFAULT_RUN_REQ_RATE for --req_rate of run), \
        polygraph.toml in the working directory, or polygraph/polygraph.toml in the user's directory of configurations \
        (docs/config.md).\n\
        Examples:\n  \
        polygraph config                     the settings of files and variables\n  \
        polygraph config run                 all options of run with their values and variables"
)]
pub struct Args {
    /// Show all options of this command, also those without a setting: run, or net wan
    command: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Shows settings.
pub fn run(args: &Args, settings: &Settings) -> Done {
    let program = whole::<Cli>();
    if !is_command(&program, &args.command) {
        return Err(Failure::usage(format!("there is no command `{}`", args.command.join(" "))));
    }
    check_values(&program, settings)?;
    let rows = match &args.command[..] {
        [] => settings.settings.iter().map(Row::of_setting).collect(),
        command => of_command(&program, command, settings),
    };
    output::print_either(args.json, || json_of(settings, &rows), || text_of(settings, &rows));
    Ok(ExitCode::SUCCESS)
}

/// An option with its value.
struct Row {
    key: Key,
    values: Vec<String>,
    origin: String,
    replaced: Vec<(Vec<String>, String)>,
}

impl Row {
    fn of_setting(setting: &OptionDefault) -> Row {
        let replaced = setting.replaced.iter().map(|(values, origin)| (values.clone(), origin.to_string()));
        Row {
            key: setting.key.clone(),
            values: setting.values.clone(),
            origin: setting.origin.to_string(),
            replaced: replaced.collect(),
        }
    }
}

/// All options of a command.
fn of_command(program: &Command, command: &[String], settings: &Settings) -> Vec<Row> {
    let found = command.iter().fold(program, |at, name| at.find_subcommand(name).unwrap_or(at));
    let own = own_options(found);
    let row = |arg: &Arg| {
        let key = Key { command: command.to_vec(), option: arg.get_long()?.to_owned() };
        let setting = settings.settings.iter().find(|setting| setting.key == key);
        Some(setting.map_or_else(
            || {
                let values =
                    arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned());
                let values: Vec<String> =
                    if arg.get_action().takes_values() { values.collect() } else { Vec::new() };
                let origin = if values.is_empty() { "not set" } else { "default" };
                Row { key, values, origin: origin.to_owned(), replaced: Vec::new() }
            },
            Row::of_setting,
        ))
    };
    own.filter_map(row).collect()
}

/// Checks all values as the command line would.
fn check_values(program: &Command, settings: &Settings) -> Result<(), Failure> {
    for setting in settings.settings.iter().filter(|setting| !setting.is_flag) {
        for value in &setting.values {
            let option = format!("--{}={value}", setting.key.option);
            let words = ["polygraph".to_owned()]
                .into_iter()
                .chain(setting.key.command.iter().cloned())
                .chain([option]);
            let Err(error) = program.clone().color(clap::ColorChoice::Never).try_get_matches_from(words)
            else {
                continue;
            };
            use clap::error::ErrorKind::{
                InvalidValue, TooFewValues, TooManyValues, ValueValidation, WrongNumberOfValues,
            };
            // What else the command needs does not matter here.
            if matches!(
                error.kind(),
                InvalidValue | ValueValidation | TooFewValues | TooManyValues | WrongNumberOfValues
            ) {
                let text = error.to_string();
                let text = text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
                return Err(Failure::usage(format!("{}: {text}", setting.origin)));
            }
        }
    }
    Ok(())
}

fn text_of(settings: &Settings, rows: &[Row]) -> String {
    let mut text = String::new();
    for file in &settings.files {
        let missing = if file.exists { "" } else { " (does not exist)" };
        let _ = writeln!(text, "{:<10} {}{missing}", file.role, file.path.display());
    }
    if rows.is_empty() {
        text += "no option has a setting\n";
        return text;
    }
    text.push('\n');
    let name = |row: &Row| row.key.to_string();
    let width = rows.iter().map(|row| name(row).len()).max().unwrap_or_default();
    let value_width = rows.iter().map(|row| row.values.join(" ").len().min(30)).max().unwrap_or_default();
    for row in rows {
        let value = row.values.join(" ");
        let _ = write!(text, "{:<width$}  {value:<value_width$}  {}", name(row), row.origin);
        for (values, origin) in &row.replaced {
            let _ = write!(text, "; replaces {} of {origin}", values.join(" "));
        }
        text.push('\n');
    }
    text
}

fn json_of(settings: &Settings, rows: &[Row]) -> Value {
    let file = |file: &crate::settings::SettingsFile| json!({ "role": file.role, "path": file.path, "exists": file.exists });
    let row = |row: &Row| {
        let replaced =
            row.replaced.iter().map(|(values, origin)| json!({ "values": values, "origin": origin }));
        json!({
            "command": row.key.command,
            "option": row.key.option,
            "variable": environment_name(&row.key),
            "values": row.values,
            "origin": row.origin,
            "replaces": replaced.collect::<Vec<_>>(),
        })
    };
    json!({
        "files": settings.files.iter().map(file).collect::<Vec<_>>(),
        "settings": rows.iter().map(row).collect::<Vec<_>>(),
    })
}
