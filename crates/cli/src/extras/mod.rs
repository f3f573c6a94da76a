//! Man pages and completions of shells for all commands and classic names.

mod man;

use std::io;

use clap::Command;
use clap_complete::{Shell, generate};

use crate::lazy::whole_of;

/// A file of an installation.
#[derive(Clone, Debug)]
pub struct ExtraFile {
    /// Its path below the prefix.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// The shells with completions, and the path of the completions of a program.
const SHELLS: [(Shell, &str, &str); 3] = [
    (Shell::Bash, "share/bash-completion/completions/", ""),
    (Shell::Zsh, "share/zsh/site-functions/_", ""),
    (Shell::Fish, "share/fish/vendor_completions.d/", ".fish"),
];

/// The files for a program and the classic names of its commands.
///
/// # Errors
/// If a page cannot be written, which does not happen in memory.
pub fn files(program: &Command, classic: &[(&'static str, &str)]) -> io::Result<Vec<ExtraFile>> {
    let mut found = Vec::new();
    man::pages(program, &mut found)?;
    completions(program, "polygraph", &mut found);
    for (name, subcommand) in classic {
        let Some(command) = program.find_subcommand(subcommand) else { continue };
        // The program calls itself `polygraph client`, whatever its name.
        let command = command.clone().name(*name).bin_name(*name).display_name(*name);
        let command = whole_of(&command.version(crate::VERSION));
        let see_also = format!("polygraph-{subcommand}");
        let page = man::page(&command, name, &["polygraph".to_owned(), see_also])?;
        // `polygraph-lx` is a classic name, and the page of `polygraph lx` has the same name.
        if found.iter().all(|file| file.path != page.path) {
            found.push(page);
        }
        completions(&command, name, &mut found);
    }
    Ok(found)
}

fn completions(command: &Command, name: &str, found: &mut Vec<ExtraFile>) {
    for (shell, before, behind) in SHELLS {
        let mut text = Vec::new();
        generate(shell, &mut command.clone(), name, &mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        found.push(ExtraFile { path: format!("{before}{name}{behind}"), text });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;
    use crate::Cli;
    use crate::legacy::programs::CLASSIC;

    #[test]
    fn every_command_and_classic_name_has_its_files() {
        let program = crate::help::dress(Cli::command());
        let files = files(&program, &CLASSIC).unwrap();
        let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths.len(), files.len(), "a file is written twice");
        for (name, _) in CLASSIC {
            for path in [
                format!("share/man/man1/{name}.1"),
                format!("share/bash-completion/completions/{name}"),
                format!("share/zsh/site-functions/_{name}"),
                format!("share/fish/vendor_completions.d/{name}.fish"),
            ] {
                assert!(paths.contains(path.as_str()), "{path}");
            }
        }
        for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
            let path = format!("share/man/man1/polygraph-{}.1", command.get_name());
            assert!(paths.contains(path.as_str()), "{path}");
        }
        assert!(paths.contains("share/man/man1/polygraph-net-wan.1"));
        assert!(!paths.contains("share/man/man1/polygraph-worker.1"));
    }

    #[test]
    fn pages_have_options_and_examples_as_they_are() {
        let program = crate::help::dress(Cli::command());
        let files = files(&program, &CLASSIC).unwrap();
        let text = |path: &str| &files.iter().find(|file| file.path == path).unwrap().text;
        let page = text("share/man/man1/polyclt.1");
        for part in [".TH polyclt 1", "\\-\\-req_rate", ".SH VALUES", ".BR polygraph\\-client (1)"] {
            assert!(page.contains(part), "{part}: {page}");
        }
        let run = text("share/man/man1/polygraph-run.1");
        let examples = run.split(".SH EXAMPLES").nth(1).unwrap();
        assert!(examples.contains(".nf\n") && examples.contains("\npolygraph run \\-\\-"), "{examples}");
        assert!(text("share/bash-completion/completions/polygraph").contains("--device_opt"));
    }
}
