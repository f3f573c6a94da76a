//! The programs of the original: classic names of this program, and programs that do not exist here.

use clap::Command;

/// Classic program names and the subcommands they stand for. `make install` links them.
pub const CLASSIC: [(&str, &str); 23] = [
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
    ("aka", "aka"),
    ("pgl-test", "check"),
    ("bb", "bb"),
    ("label_results", "label-results"),
    ("make_report", "make-report"),
    ("msl_test", "msl_test"),
    ("polyprobe", "polyprobe"),
    ("polymon", "mon"),
    ("udp2tcpd", "udp2tcpd"),
];

/// Subcommands with classic names that do their work without arguments. All others print their usage then.
pub const WITHOUT_ARGUMENTS: [&str; 2] = ["mon", "udp2tcpd"];

/// Programs of the original that do not exist here, and what replaces them.
const ABSENT: [(&[&str], &str); 5] = [
    (
        &["beepmon"],
        "sessions of robots are not exchanged with other programs; `polygraph mon` shows what a test does while it runs",
    ),
    (&["polyrrd"], "`polygraph export` writes tables of figures over time for other programs"),
    (&["cdb"], "the contents of a workload name files or directories directly (`content_db`)"),
    (
        &["distr-test", "pop-test", "rng-test"],
        "`polygraph check` shows the values of a workload's distributions",
    ),
    (
        &["pgl2acl", "pgl2ldap", "pgl2eng"],
        "`polygraph check` shows what a workload does, and `pgl2ips` shows its addresses",
    ),
];

/// Explains a program name that is neither `polygraph` nor a classic name. Any other name is fine if a command follows.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_none_of_ours_are_explained() {
        let cli = <crate::Cli as clap::CommandFactory>::command();
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (line, text) in [
            ("/usr/bin/beepmon", "polygraph mon"),
            ("polygraph-beepmon -h", "polygraph mon"),
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
}
