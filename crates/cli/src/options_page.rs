//! The page of all commands with their options, made from the definitions of the command line.

use std::fmt::Write as _;

use clap::{Arg, Command};

const HEAD: &str = "# Options

`cargo test -p polygraph` generates this page from the definitions of the command line; do not edit it.

`polygraph COMMAND -h` shows the most important options of a command on the terminal, and `--help` shows all of them with examples. [Commands](../tools.md) has the commands by purpose,
their classic names, and the [notation of values](../tools.md#value-grammar). All commands have [`--quiet` and `--color`](../../config.md#console).
";

/// The page.
pub fn page(mut program: Command) -> String {
    program.build();
    let mut out = HEAD.to_owned();
    for command in visible(&program) {
        section(command, 2, command.get_name(), &mut out);
    }
    out
}

/// The commands of a program, or the subcommands of a command, that `--help` lists.
fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

/// A command with its options, then its subcommands.
fn section(command: &Command, level: usize, title: &str, out: &mut String) {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    let _ = write!(out, "\n{} {title}\n\n{}.\n\n```text\n{usage}\n```\n", "#".repeat(level), prose(&about));
    let listed = |arg: &&Arg| {
        !arg.is_hide_set() && !arg.is_global_set() && !["help", "version"].contains(&arg.get_id().as_str())
    };
    let args: Vec<&Arg> = command.get_arguments().filter(listed).collect();
    let group = |arg: &Arg| match arg.get_help_heading() {
        Some(heading) => heading.to_owned(),
        None if arg.is_positional() => "Arguments".to_owned(),
        None => "Options".to_owned(),
    };
    let mut groups: Vec<String> = Vec::new();
    for arg in &args {
        if !groups.contains(&group(arg)) {
            groups.push(group(arg));
        }
    }
    for name in groups {
        let _ = write!(out, "\n**{name}**\n\n| option | default | meaning |\n|---|---|---|\n");
        for arg in args.iter().filter(|arg| group(arg) == name) {
            let _ = writeln!(out, "{}", row(arg));
        }
    }
    for nested in visible(command) {
        section(nested, level + 1, &format!("{title} {}", nested.get_name()), out);
    }
}

/// The line of an option or argument.
fn row(arg: &Arg) -> String {
    let takes_values = arg.get_action().takes_values();
    let values: Vec<&str> =
        arg.get_value_names().unwrap_or_default().iter().map(|name| name.as_str()).collect();
    let values = values.join(" ");
    let is_optional = arg.get_num_args().is_some_and(|number| number.min_values() == 0);
    let name = match arg.get_long() {
        Some(long) if !takes_values => format!("--{long}"),
        Some(long) if is_optional => format!("--{long} [{values}]"),
        Some(long) => format!("--{long} {values}"),
        None => values,
    };
    let default: Vec<String> = match takes_values {
        true => arg.get_default_values().iter().map(|value| code(&value.to_string_lossy())).collect(),
        false => Vec::new(),
    };
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut meaning = prose(&help);
    let choices: Vec<String> = match takes_values {
        true => arg.get_possible_values().iter().map(|value| code(value.get_name())).collect(),
        false => Vec::new(),
    };
    if !choices.is_empty() {
        let _ = write!(meaning, " ({})", choices.join(", "));
    }
    format!("| {} | {} | {meaning} |", code(&name), default.join(", "))
}

/// Text as code in a cell of a table.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}

/// Text in a cell of a table: on one line, and without characters that Markdown would read, except in code.
fn prose(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    let escape = |(at, part): (usize, &str)| match at % 2 {
        0 => part.replace('<', "&lt;").replace('*', "\\*"),
        _ => part.to_owned(),
    };
    text.split('`').enumerate().map(escape).collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use clap::{Arg, ArgAction};

    use super::*;

    #[test]
    fn rows_have_names_defaults_choices_and_safe_text() {
        let command = Command::new("x").about("Do *it*").arg(
            Arg::new("a")
                .long("a")
                .value_name("ON|OFF")
                .default_value("on")
                .value_parser(["on", "off"])
                .help("A <b> `c*d`"),
        );
        let command = command
            .arg(Arg::new("flag").long("flag").action(ArgAction::SetTrue).help("Yes"))
            .arg(Arg::new("hidden").long("hidden").hide(true))
            .arg(
                Arg::new("web")
                    .long("web")
                    .value_name("ADDR")
                    .num_args(0..=1)
                    .help_heading("Page")
                    .help("Serve"),
            )
            .subcommand(Command::new("y").about("Sub"));
        let page = page(Command::new("polygraph").subcommand(command));
        for line in [
            "| `--a ON\\|OFF` | `on` | A &lt;b> `c*d` (`on`, `off`) |",
            "| `--flag` |  | Yes |",
            "| `--web [ADDR]` |  | Serve |",
            "**Page**",
            "### x y",
            "Do \\*it\\*.",
        ] {
            assert!(page.lines().any(|found| found == line), "{line}: {page}");
        }
        assert!(!page.contains("hidden") && !page.contains("--help COMMAND"), "{page}");
    }
}
