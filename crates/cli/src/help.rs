//! The layout of `-h` and `--help`: commands by purpose, the most important options, and the meaning of placeholders.

use std::fmt::Write as _;

use clap::Command;

use crate::output;

/// Commands by purpose.
const GROUPS: [(&str, &[&str]); 9] = [
    ("Measure", &["try", "run", "peak", "downtime", "simulate", "bakeoff", "bb"]),
    ("Parts of a bench", &["client", "server", "proxy", "dns", "certs", "doctor", "devices"]),
    (
        "Results",
        &[
            "report",
            "runs",
            "compare",
            "lx",
            "ltrace",
            "lr",
            "cmp-lx",
            "export",
            "import",
            "label-results",
            "make-report",
        ],
    ),
    ("Workload files", &["workloads", "check", "explain", "accounts", "fmt", "lsp"]),
    ("Watch", &["mon", "udp2tcpd"]),
    ("Installation", &["config", "extras"]),
    ("Many hosts", &["agent", "fleet"]),
    ("Network", &["net", "aka", "msl_test", "polyprobe", "lab"]),
    ("Addresses and names", &["pmix2-ips", "pmix3-ips", "webaxe4-ips", "pgl2ips", "dns-cfg"]),
];

/// The options that `-h` shows, for commands with many options; `--help` shows all. Positional arguments are always shown.
const FIRST: [(&str, &[&str]); 7] = [
    (
        "run",
        &[
            "proxy",
            "surrogate",
            "device",
            "no_proxy",
            "config",
            "settings",
            "req_rate",
            "dhr",
            "goal",
            "expect",
        ],
    ),
    (
        "peak",
        &[
            "proxy",
            "device",
            "no_proxy",
            "config",
            "settings",
            "req_rate",
            "goal",
            "most",
            "precision",
            "resume",
        ],
    ),
    (
        "downtime",
        &["device", "device_opt", "config", "settings", "req_rate", "warm", "load", "dark", "meas", "label"],
    ),
    (
        "simulate",
        &[
            "device",
            "settings",
            "scale",
            "net_delay",
            "out",
            "cfg_dirs",
            "label",
            "loops",
            "stats_cycle",
            "expect",
        ],
    ),
    (
        "client",
        &["proxy", "origin", "config", "settings", "robots", "req_rate", "dhr", "rep_sz", "goal", "log"],
    ),
    (
        "server",
        &[
            "port",
            "listen",
            "config",
            "settings",
            "rep_sz",
            "xact_think",
            "goal",
            "idle_tout",
            "log",
            "verb_lvl",
        ],
    ),
    (
        "proxy",
        &[
            "port",
            "listen",
            "cache",
            "loops",
            "max_connections",
            "service_rate",
            "service_time",
            "auth",
            "user",
            "duration",
        ],
    ),
];

/// Placeholders with their meaning.
const VALUES: [(&str, &str); 9] = [
    ("TIME", "a number with a unit: 100usec, 250ms, 5s, 3min, 1hr, 2day"),
    ("RATE", "a number per time: 50/sec, 3000/min"),
    ("SIZE", "a number of bytes: 512B, 13KB, 256MB, 4GB"),
    ("SHARE", "a percentage: 55p or 55%"),
    ("DISTR", "a value or a distribution: 3s, const:1KB, exp:13KB, unif:1s,2s, norm:3s,1.5s, zipf:64"),
    (
        "GOAL",
        "a time or a number of transactions: 1hr, 5000; or transactions:time:errors, with -1 for no limit: -1:1hr:0.30 (errors is a share of all transactions)",
    ),
    ("HOST:PORT", "a host name or address, and a port: 127.0.0.1:3128, squid.lab:3128, [::1]:3128"),
    ("NAME=VALUE", "a name in the workload and its value in PGL: ReqRate=100/sec"),
    ("CONDITION", "a figure of `lx --list`, or its short name, and a limit: 'dhr>=54%', 'rptm.p95<2s'"),
];

/// Lays out the help of the program.
pub fn dress(cli: Command) -> Command {
    let groups = groups(&cli, output::columns());
    cli.help_template(
        "{about-with-newline}\n{usage-heading} {usage}\n\n{before-help}{after-help}\n\nOptions:\n{options}",
    )
    .before_help(groups)
}

/// Lays out the help of a subcommand.
pub fn dress_subcommand(command: Command) -> Command {
    let first = FIRST.iter().find(|(name, _)| *name == command.get_name()).map(|(_, first)| *first);
    with_values(short(command, first), output::columns())
}

/// Hides all but the first options, and those that all commands have, from the short help.
fn short(command: Command, first: Option<&[&str]>) -> Command {
    let Some(first) = first else { return command };
    command.mut_args(|arg| {
        let shown = arg.is_positional() || arg.is_global_set() || first.contains(&arg.get_id().as_str());
        if shown { arg } else { arg.hide_short_help(true) }
    })
}

/// Adds the meaning of placeholders to the long help.
fn with_values(command: Command, width: usize) -> Command {
    let used: Vec<String> = command
        .get_arguments()
        .filter_map(|arg| arg.get_value_names())
        .flatten()
        .map(|name| name.as_str().to_owned())
        .collect();
    let is_used = |value: &str| used.iter().any(|name| name.split('|').any(|part| part == value));
    let values: Vec<(&str, &str)> = VALUES.into_iter().filter(|(value, _)| is_used(value)).collect();
    if values.is_empty() {
        return command;
    }
    let before = command.get_after_help().map(|text| format!("{text}\n\n")).unwrap_or_default();
    let table = table(values.into_iter(), width);
    command.after_long_help(format!("{before}Values:\n{}", table.trim_end()))
}

/// The commands by purpose.
fn groups(cli: &Command, width: usize) -> String {
    let mut out = String::new();
    for (title, names) in GROUPS {
        let about = |name: &&'static str| {
            let about = cli.find_subcommand(name).and_then(Command::get_about).map(ToString::to_string);
            (*name, about.unwrap_or_default())
        };
        let rows: Vec<(&str, String)> = names.iter().map(about).collect();
        let _ = write!(
            out,
            "{title}:\n{}\n",
            table(rows.iter().map(|(name, about)| (*name, about.as_str())), width)
        );
    }
    out.trim_end().to_owned()
}

/// Two columns, the second wrapped.
fn table<'a>(rows: impl Iterator<Item = (&'a str, &'a str)>, width: usize) -> String {
    const LEFT: usize = 16;
    let mut out = String::new();
    for (name, text) in rows {
        let mut line = format!("  {name:<LEFT$}");
        let mut fresh = true;
        for word in text.split(' ') {
            if !fresh && line.chars().count() + 1 + word.chars().count() > width {
                let _ = writeln!(out, "{line}");
                line = " ".repeat(LEFT + 2);
                fresh = true;
            }
            if !fresh {
                line.push(' ');
            }
            line.push_str(word);
            fresh = false;
        }
        let _ = writeln!(out, "{line}");
    }
    out
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;
    use crate::lazy::whole;

    #[test]
    fn every_command_has_its_group() {
        let cli = Cli::command();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        for command in cli.get_subcommands().filter(|command| !command.is_hide_set()) {
            let times = grouped.iter().filter(|name| **name == command.get_name()).count();
            assert_eq!(times, 1, "{}", command.get_name());
        }
        for name in grouped {
            assert!(cli.find_subcommand(name).is_some(), "{name}");
        }
    }

    #[test]
    fn the_options_that_matter_exist_and_are_ten_at_most() {
        let cli = whole::<Cli>();
        for (name, first) in FIRST {
            let command = cli.find_subcommand(name).unwrap();
            assert!(first.len() <= 10, "{name}");
            for id in first {
                assert!(command.get_arguments().any(|arg| arg.get_id() == id), "{name} has no {id}");
            }
        }
    }

    #[test]
    fn lines_fit_the_terminal() {
        for width in [40, 60, 100] {
            let text = groups(&Cli::command(), width);
            assert!(text.lines().all(|line| line.chars().count() <= width.max(60)), "{width}: {text}");
        }
    }
}
