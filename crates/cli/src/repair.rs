//! Command lines as they stand in documents of 1999: classic program names, any number of dashes, any case,
//! and the damage that typesetting did to them.
//!
//! | printed | meant |
//! |---|---|
//! | `- - port 80`, `-- port 80`, `–port 80` | `--port 80` |
//! | `--goal-1:1hr:0.30` | `--goal -1:1hr:0.30` |
//! | `--verb lvl 2` | `--verb_lvl 2` |
//! | `--cool\_phase 1min` | `--cool_phase 1min` |
//! | `polysrv--port 80` | `polysrv --port 80` |

use clap::Command;

/// Something that was understood although it was misspelt.
#[derive(Debug, PartialEq, Eq)]
pub struct Repair {
    /// As given.
    pub was: String,
    /// As understood.
    pub is: String,
}

/// Classic program names and the subcommands they stand for. `make install` links them.
pub const CLASSIC: [(&str, &str); 18] = [
    ("polyclt", "client"),
    ("polysrv", "server"),
    ("lx", "lx"),
    ("lr", "lr"),
    ("ltrace", "ltrace"),
    ("cmp-lx", "cmp-lx"),
    ("polygraph-lx", "lx"),
    ("polygraph-lr", "lr"),
    ("polygraph-ltrace", "ltrace"),
    ("polygraph-cmp-lx", "cmp-lx"),
    ("pmix2-ips", "pmix2-ips"),
    ("pmix3-ips", "pmix3-ips"),
    ("webaxe4-ips", "webaxe4-ips"),
    ("dns-cfg", "dns-cfg"),
    ("pgl-test", "check"),
    ("bb", "bb"),
    ("label_results", "label-results"),
    ("make_report", "make-report"),
];

/// Programs of the original that are not part of this one, and what does their work.
const ABSENT: [(&[&str], &str); 8] = [
    (
        &["polymon", "beepmon"],
        "the console of a running test shows how it goes, and `ltrace` shows a log over time, also while it grows",
    ),
    (
        &["polyprobe"],
        "`polygraph run --no_proxy` shows what the bench can do, and a bake-off measures the network first",
    ),
    (&["polyrrd"], "`polygraph export` writes tables of figures over time for other programs"),
    (&["cdb"], "contents of a workload name files or directories themselves (`content_db`)"),
    (
        &["distr-test", "pop-test", "rng-test"],
        "`polygraph check` shows what distributions of a workload give",
    ),
    (&["udp2tcpd"], "messages go to standard output and standard error; send these where you want them"),
    (
        &["pgl2acl", "pgl2ldap", "pgl2eng"],
        "`polygraph check` shows what a workload says, and `pgl2ips` its addresses",
    ),
    (&["aka"], "addresses are added with `ip address add`; `pgl2ips` lists those of a workload"),
];

/// What to say to a name that the program was called by and that is not its own. Under a name that somebody chose for
/// it, it works as ever if a command follows.
pub fn unknown_name(words: &[String], cli: &Command) -> Option<String> {
    let program = words.first()?.rsplit('/').next()?;
    let name = program.split("--").next().unwrap_or(program);
    if name == "polygraph" || CLASSIC.iter().any(|(classic, _)| *classic == name) {
        return None;
    }
    let plain = name.strip_prefix("polygraph-").unwrap_or(name);
    if let Some((_, instead)) = ABSENT.iter().find(|(names, _)| names.contains(&plain)) {
        return Some(format!("there is no `{name}` here: {instead}"));
    }
    if cli.find_subcommand(plain).is_some() {
        return Some(format!("`{name}` is not a name of this program; call it as `polygraph {plain}`"));
    }
    let next = words.get(1).map(String::as_str).unwrap_or_default();
    let is_command =
        cli.find_subcommand(next).is_some() || ["help", "-h", "--help", "-V", "--version"].contains(&next);
    (!is_command && !name.contains("polygraph")).then(|| {
        let known: Vec<&str> = CLASSIC.iter().map(|(name, _)| *name).collect();
        format!(
            "`{name}` is not a name of this program; call it as `polygraph COMMAND` (`polygraph --help` lists the commands), or by one of \
             its classic names: {}",
            known.join(", ")
        )
    })
}

/// Turns a command line into one for `cli`: a classic program name into a subcommand, and the spelling of
/// options into the canonical one.
pub fn command_line(words: Vec<String>, cli: &Command) -> (Vec<String>, Vec<Repair>) {
    let mut words = words.into_iter();
    let program = words.next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    let mut out = vec!["polygraph".to_owned()];
    let mut rest: Vec<String> = Vec::new();
    // `polysrv--port` reaches us only when a wrapper passes the words on; the program name is then glued.
    let (name, glued) = match name.split_once("--") {
        Some((name, option)) => (name, Some(format!("--{option}"))),
        None => (name, None),
    };
    rest.extend(glued);
    let classic = CLASSIC.iter().find(|(classic, _)| *classic == name);
    let subcommand = match classic {
        Some((_, subcommand)) => Some((*subcommand).to_owned()),
        None => words.next(),
    };
    rest.extend(words);
    let Some(subcommand) = subcommand else { return (out, Vec::new()) };
    out.push(subcommand.clone());
    let Some(command) = cli.find_subcommand(&subcommand) else {
        out.extend(rest);
        return (out, Vec::new());
    };
    // Programs of old print their usage when they are started bare.
    let is_classic = CLASSIC.iter().any(|(_, classic)| *classic == subcommand);
    if rest.is_empty() && is_classic {
        out.push("--help".to_owned());
        return (out, Vec::new());
    }
    let options: Vec<String> =
        command.get_arguments().filter_map(|arg| arg.get_long()).map(str::to_owned).collect();
    let (rest, repairs) = options_of(&rest, &options);
    out.extend(rest);
    (out, repairs)
}

fn options_of(words: &[String], known: &[String]) -> (Vec<String>, Vec<Repair>) {
    let mut out = Vec::new();
    let mut repairs = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let (option, used) = match read_option(&words[at..], known) {
            Some(found) => found,
            None => {
                out.push(words[at].clone());
                at += 1;
                continue;
            }
        };
        let was = words[at..at + used].join(" ");
        let is = option.join(" ");
        // Fewer or more dashes and another case were always allowed, and dashes inside of names are what
        // everybody else writes.
        let name = |text: &str| text.trim_start_matches('-').to_ascii_lowercase().replace('-', "_");
        if name(&was) != name(&is) {
            repairs.push(Repair { was: format!("`{was}`"), is: format!("`{is}`") });
        }
        out.extend(option);
        at += used;
    }
    (out, repairs)
}

/// Reads a known option at the start of `words`, however it is spelt: its canonical words (with a value that
/// was glued to it) and the number of words used.
fn read_option(words: &[String], known: &[String]) -> Option<(Vec<String>, usize)> {
    let dash = |c: char| matches!(c, '-' | '–' | '—');
    let dashes = words.iter().take_while(|word| !word.is_empty() && word.chars().all(dash)).count();
    let word = words.get(dashes)?;
    // A dash in front of an option stands for itself, namely for standard input.
    if dashes > 0 && word.starts_with(dash) {
        return None;
    }
    if dashes == 0 && !word.starts_with(dash) {
        return None;
    }
    let clean =
        |text: &str| text.trim_start_matches(dash).replace('\\', "").replace('-', "_").to_ascii_lowercase();
    let name = clean(word);
    let find = |name: &str| known.iter().find(|option| option.replace('-', "_") == name);
    if let Some(option) = find(&name) {
        return Some((vec![format!("--{option}")], dashes + 1));
    }
    if let Some(next) = words.get(dashes + 1)
        && let Some(option) = find(&format!("{name}_{}", clean(next)))
    {
        return Some((vec![format!("--{option}")], dashes + 2));
    }
    // A value may be glued to its option by its sign, or by `=`.
    let text = word.trim_start_matches(dash).replace('\\', "");
    let cut = text.find('=').or_else(|| {
        text.match_indices('-')
            .map(|(i, _)| i)
            .find(|&i| text[i + 1..].starts_with(|c: char| c.is_ascii_digit()))
    })?;
    let option = find(&clean(&text[..cut]))?;
    let value = text[cut..].trim_start_matches('=').to_owned();
    Some((vec![format!("--{option}"), value], dashes + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 6] = ["port", "goal", "verb_lvl", "cool_phase", "robots", "ports"];

    #[track_caller]
    fn check(given: &str, expected: &str, repairs: usize) {
        let words: Vec<String> = given.split(' ').map(str::to_owned).collect();
        let known = KNOWN.map(str::to_owned);
        let (words, made) = options_of(&words, &known);
        assert_eq!(words.join(" "), expected);
        assert_eq!(made.len(), repairs, "{made:?}");
    }

    #[test]
    fn names_that_are_none_of_ours_are_explained() {
        let cli = <crate::Cli as clap::CommandFactory>::command();
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (line, text) in [
            ("/usr/bin/polymon", "ltrace"),
            ("polygraph-polymon -h", "ltrace"),
            ("polyfoo --port 80", "not a name of this program"),
            ("polyfoo", "polyclt, polysrv"),
            ("polygraph-check x.pg", "`polygraph check`"),
        ] {
            let found = unknown_name(&words(line), &cli).unwrap_or_else(|| panic!("{line}"));
            assert!(found.contains(text), "{line}: {found}");
        }
        for line in [
            "polygraph",
            "polysrv --port 80",
            "polysrv--port 80",
            "before-polygraph",
            "pg run",
            "pg --help",
            "polygraph-lx x",
        ] {
            assert_eq!(unknown_name(&words(line), &cli), None, "{line}");
        }
    }

    #[test]
    fn classic_spellings_need_no_remark() {
        check("--port 80 --verb_lvl 2", "--port 80 --verb_lvl 2", 0);
        check("-port 80 ---Verb_Lvl 2", "--port 80 --verb_lvl 2", 0);
        check("--goal -1:1hr:0.30 --robots 1", "--goal -1:1hr:0.30 --robots 1", 0);
        check("--verb-lvl 2", "--verb_lvl 2", 0);
        check("--unknown x", "--unknown x", 0);
        check("- --port 80", "- --port 80", 0);
    }

    #[test]
    fn damage_is_repaired_and_named() {
        check("- - port 80", "--port 80", 1);
        check("-- ports 1024:30000", "--ports 1024:30000", 1);
        check("–goal 1hr", "--goal 1hr", 1);
        check("--goal-1:1hr:0.30", "--goal -1:1hr:0.30", 1);
        check("-- goal 1hr", "--goal 1hr", 1);
        check("--verb lvl 2", "--verb_lvl 2", 1);
        check("--cool\\_phase 1min", "--cool_phase 1min", 1);
        check("--port=80", "--port 80", 1);
    }
}
